// SPDX-License-Identifier: GPL-2.0

//! Link modes: speeds with their media, and what else can be negotiated.

use kernel::prelude::*;
use net_bindings as bindings;

const WORDS: usize = (bindings::ethtool_link_mode_bit_indices___ETHTOOL_LINK_MODE_MASK_NBITS
    as usize)
    .div_ceil(c_ulong::BITS as usize);

/// Link modes (`ETHTOOL_LINK_MODE_*_BIT`), as a set.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct LinkModes([c_ulong; WORDS]);

impl LinkModes {
    /// No mode.
    pub const NONE: Self = Self([0; WORDS]);

    const fn of(bit: bindings::ethtool_link_mode_bit_indices) -> Self {
        let mut words = [0; WORDS];

        words[(bit / c_ulong::BITS) as usize] = 1 << (bit % c_ulong::BITS);
        Self(words)
    }

    /// Returns whether all of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.with(other) == self
    }

    /// Returns both sets together.
    pub const fn with(self, other: Self) -> Self {
        let mut words = self.0;
        let mut i = 0;

        while i < WORDS {
            words[i] |= other.0[i];
            i += 1;
        }
        Self(words)
    }

    /// The set in a bitmap of the core.
    pub(super) const fn from_raw(raw: [c_ulong; WORDS]) -> Self {
        Self(raw)
    }

    /// The set as a bitmap of the core.
    pub(super) const fn as_raw(self) -> [c_ulong; WORDS] {
        self.0
    }
}

/// Defines a set of each mode, as `MODE_10baseT_Half`.
macro_rules! modes {
    ($($name:ident,)*) => {
        ::kernel::macros::paste! {
            #[expect(non_upper_case_globals, reason = "C names")]
            impl LinkModes {
                $(
                    #[doc = concat!("`ETHTOOL_LINK_MODE", stringify!($name), "_BIT`.")]
                    pub const [<MODE $name>]: Self = Self::of(
                        bindings::[<ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE $name _BIT>],
                    );
                )*
            }
        }
    };
}

modes! {
    _10baseT_Half,
    _10baseT_Full,
    _100baseT_Half,
    _100baseT_Full,
    _1000baseT_Half,
    _1000baseT_Full,
    _Autoneg,
    _TP,
    _AUI,
    _MII,
    _FIBRE,
    _BNC,
    _10000baseT_Full,
    _Pause,
    _Asym_Pause,
    _2500baseX_Full,
    _Backplane,
    _1000baseKX_Full,
    _10000baseKX4_Full,
    _10000baseKR_Full,
    _10000baseR_FEC,
    _20000baseMLD2_Full,
    _20000baseKR2_Full,
    _40000baseKR4_Full,
    _40000baseCR4_Full,
    _40000baseSR4_Full,
    _40000baseLR4_Full,
    _56000baseKR4_Full,
    _56000baseCR4_Full,
    _56000baseSR4_Full,
    _56000baseLR4_Full,
    _25000baseCR_Full,
    _25000baseKR_Full,
    _25000baseSR_Full,
    _50000baseCR2_Full,
    _50000baseKR2_Full,
    _100000baseKR4_Full,
    _100000baseSR4_Full,
    _100000baseCR4_Full,
    _100000baseLR4_ER4_Full,
    _50000baseSR2_Full,
    _1000baseX_Full,
    _10000baseCR_Full,
    _10000baseSR_Full,
    _10000baseLR_Full,
    _10000baseLRM_Full,
    _10000baseER_Full,
    _2500baseT_Full,
    _5000baseT_Full,
    _FEC_NONE,
    _FEC_RS,
    _FEC_BASER,
    _50000baseKR_Full,
    _50000baseSR_Full,
    _50000baseCR_Full,
    _50000baseLR_ER_FR_Full,
    _50000baseDR_Full,
    _100000baseKR2_Full,
    _100000baseSR2_Full,
    _100000baseCR2_Full,
    _100000baseLR2_ER2_FR2_Full,
    _100000baseDR2_Full,
    _200000baseKR4_Full,
    _200000baseSR4_Full,
    _200000baseLR4_ER4_FR4_Full,
    _200000baseDR4_Full,
    _200000baseCR4_Full,
    _100baseT1_Full,
    _1000baseT1_Full,
    _400000baseKR8_Full,
    _400000baseSR8_Full,
    _400000baseLR8_ER8_FR8_Full,
    _400000baseDR8_Full,
    _400000baseCR8_Full,
    _FEC_LLRS,
    _100000baseKR_Full,
    _100000baseSR_Full,
    _100000baseLR_ER_FR_Full,
    _100000baseCR_Full,
    _100000baseDR_Full,
    _200000baseKR2_Full,
    _200000baseSR2_Full,
    _200000baseLR2_ER2_FR2_Full,
    _200000baseDR2_Full,
    _200000baseCR2_Full,
    _400000baseKR4_Full,
    _400000baseSR4_Full,
    _400000baseLR4_ER4_FR4_Full,
    _400000baseDR4_Full,
    _400000baseCR4_Full,
    _100baseFX_Half,
    _100baseFX_Full,
    _10baseT1L_Full,
    _800000baseCR8_Full,
    _800000baseKR8_Full,
    _800000baseDR8_Full,
    _800000baseDR8_2_Full,
    _800000baseSR8_Full,
    _800000baseVR8_Full,
    _10baseT1S_Full,
    _10baseT1S_Half,
    _10baseT1S_P2MP_Half,
    _10baseT1BRR_Full,
    _200000baseCR_Full,
    _200000baseKR_Full,
    _200000baseDR_Full,
    _200000baseDR_2_Full,
    _200000baseSR_Full,
    _200000baseVR_Full,
    _400000baseCR2_Full,
    _400000baseKR2_Full,
    _400000baseDR2_Full,
    _400000baseDR2_2_Full,
    _400000baseSR2_Full,
    _400000baseVR2_Full,
    _800000baseCR4_Full,
    _800000baseKR4_Full,
    _800000baseDR4_Full,
    _800000baseDR4_2_Full,
    _800000baseSR4_Full,
    _800000baseVR4_Full,
    _1600000baseCR8_Full,
    _1600000baseKR8_Full,
    _1600000baseDR8_Full,
    _1600000baseDR8_2_Full,
}
