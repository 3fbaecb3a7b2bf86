// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rate limits of transmit queues.
//!
//! Source: 82576 datasheet, chapter "Transmit Rate Scheduler", and the kernel's
//! `igb_set_vf_rate_limit()`.

use super::Reg;

/// Which queue [`RTTBCNRC`] is about, write only.
pub const RTTDQSEL: Reg = Reg(0x03604);
/// Rate scheduler memory window, in KiB: what a queue that lags behind its rate may make up for.
pub const RTTBCNRM: Reg = Reg(0x03690);
/// Rate scheduler configuration of a queue, write only; see [`rttbcnrc`].
pub const RTTBCNRC: Reg = Reg(0x036b0);

/// Rate scheduler configuration: how many times longer than on the wire a frame takes.
pub mod rttbcnrc {
    /// The limit is in force.
    pub const RS_ENA: u32 = 1 << 31;

    /// Bits of the factor behind the binary point, and in front of it.
    pub const FRACTION_BITS: u32 = 14;
    /// Mask of the factor.
    pub const FACTOR_MASK: u32 = (1 << (2 * FRACTION_BITS)) - 1;

    /// The largest speed of a link, in Mb/s.
    const LINK_MAX: u32 = 1000;

    /// The register's value for a limit of `rate` Mb/s on a link of `link` Mb/s, at most 1000. There is
    /// none for zero, nor for what the link does not exceed.
    #[inline]
    pub const fn encode(link: u32, rate: u32) -> u32 {
        if rate == 0 || rate >= link || link > LINK_MAX {
            return 0;
        }
        let factor = (link << FRACTION_BITS) / rate;

        RS_ENA | factor
    }

    /// The factor that is in force, in units of 2 to the power of minus [`FRACTION_BITS`].
    #[inline]
    pub const fn factor(value: u32) -> Option<u32> {
        if value & RS_ENA != 0 {
            Some(value & FACTOR_MASK)
        } else {
            None
        }
    }
}
