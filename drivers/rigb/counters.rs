// SPDX-License-Identifier: GPL-2.0

//! The device's statistics registers, accumulated: reading clears them.
//!
//! They are read when statistics are requested. Those of 32 bits stick at 0xffffffff, which takes 48 minutes
//! of the shortest frames at 1 Gb/s: if nobody requests statistics in that time, counts are lost.

use i82576::regs::{
    self,
    Reg, //
};

use crate::hw::{
    Hw,
    GONE, //
};

/// The frame sizes of the device's histogram, from and to, in bytes with FCS.
pub(crate) const SIZES: [(u16, u16); 6] = [
    (64, 64),
    (65, 127),
    (128, 255),
    (256, 511),
    (512, 1023),
    // CAST: The longest frame is 9.5 KiB.
    (1024, i82576::limits::MAX_FRAME as u16),
];

const RX_SIZES: [Reg; SIZES.len()] = [
    regs::PRC64,
    regs::PRC127,
    regs::PRC255,
    regs::PRC511,
    regs::PRC1023,
    regs::PRC1522,
];

const TX_SIZES: [Reg; SIZES.len()] = [
    regs::PTC64,
    regs::PTC127,
    regs::PTC255,
    regs::PTC511,
    regs::PTC1023,
    regs::PTC1522,
];

/// Defines counters of 32 bits, each with its register.
macro_rules! counters {
    ($($name:ident: $reg:ident,)*) => {
        /// What the device has counted since it was probed.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: u64,)*
            pub(crate) rx_octets: u64,
            pub(crate) tx_octets: u64,
            pub(crate) rx_sizes: [u64; SIZES.len()],
            pub(crate) tx_sizes: [u64; SIZES.len()],
        }

        impl Counters {
            /// Adds what the registers have counted since the last call.
            pub(crate) fn update(&mut self, hw: &Hw<'_>) {
                let new = Self::take(hw);

                // All ones is what a device that is gone reads as, perhaps since a moment ago.
                if hw.read(regs::STATUS) == GONE {
                    return;
                }
                $(self.$name = self.$name.wrapping_add(new.$name);)*
                self.rx_octets = self.rx_octets.wrapping_add(new.rx_octets);
                self.tx_octets = self.tx_octets.wrapping_add(new.tx_octets);
                for (sizes, new) in [
                    (&mut self.rx_sizes, &new.rx_sizes),
                    (&mut self.tx_sizes, &new.tx_sizes),
                ] {
                    for (sum, new) in sizes.iter_mut().zip(new) {
                        *sum = sum.wrapping_add(*new);
                    }
                }
            }

            /// What the registers have counted since the last call.
            fn take(hw: &Hw<'_>) -> Self {
                let read = |reg| u64::from(hw.read(reg));

                Self {
                    $($name: read(regs::$reg),)*
                    rx_octets: wide(hw, regs::GORCL, regs::GORCH),
                    tx_octets: wide(hw, regs::GOTCL, regs::GOTCH),
                    rx_sizes: RX_SIZES.map(read),
                    tx_sizes: TX_SIZES.map(read),
                }
            }
        }
    };
}

counters! {
    crc_errors: CRCERRS,
    alignment_errors: ALGNERRC,
    single_collisions: SCC,
    excessive_collisions: ECOL,
    multiple_collisions: MCC,
    late_collisions: LATECOL,
    deferred: DC,
    no_carrier_sense: TNCRS,
    length_errors: RLEC,
    xon_received: XONRXC,
    xon_sent: XONTXC,
    xoff_received: XOFFRXC,
    xoff_sent: XOFFTXC,
    unsupported_control: FCRUC,
    rx_frames: GPRC,
    rx_broadcast: BPRC,
    rx_multicast: MPRC,
    tx_frames: GPTC,
    undersize: RUC,
    fragments: RFC,
    oversize: ROC,
    jabbers: RJC,
    tx_multicast: MPTC,
    tx_broadcast: BPTC,
}

/// A counter of two registers. Reading the high one clears both.
fn wide(hw: &Hw<'_>, low: Reg, high: Reg) -> u64 {
    let low = u64::from(hw.read(low));

    low | u64::from(hw.read(high)) << 32
}
