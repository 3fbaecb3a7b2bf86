// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Registers: their offsets in BAR 0, and a module of bits for each that has any.
//!
//! All registers are 32 bits wide and little endian. A register array or per-queue register is
//! a function of its index; the index is masked to the array, so that no offset ever lies
//! outside [`BAR_SIZE`].
//!
//! Source: 82576 datasheet, chapter "Programming Interface" (register descriptions).

mod bits;
mod five_tuple;
mod interrupt;
mod phy_nvm;
mod queue;
mod rate;
mod statistics;
mod time;
mod wake;

pub use self::bits::{
    ctrl,
    ctrl_ext,
    fc,
    ledctl,
    mrqc,
    rah,
    rctl,
    rfctl,
    rxcsum,
    status,
    sw_fw_sync,
    swsm,
    tctl,
    tipg,
    vmolr, //
};
pub use self::five_tuple::*;
pub use self::interrupt::*;
pub use self::phy_nvm::*;
pub use self::queue::*;
pub use self::rate::*;
pub use self::statistics::*;
pub use self::time::*;
pub use self::wake::*;

/// Bytes of the register window, BAR 0.
pub const BAR_SIZE: usize = 0x20000;

/// A register: its byte offset in BAR 0.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reg(pub u32);

impl Reg {
    /// The byte offset in BAR 0, as an index type; below [`BAR_SIZE`] for every register here.
    #[inline]
    pub const fn offset(self) -> usize {
        self.0 as usize
    }
}

/// Element `n` of an array at `base` with elements `stride` bytes apart and a power of two
/// `count` of them.
const fn element(base: u32, stride: u32, count: u32, n: u16) -> Reg {
    Reg(base + stride * (n as u32 & (count - 1)))
}

/// Device control; bits in [`ctrl`].
pub const CTRL: Reg = Reg(0x00000);
/// Device status, read only; bits in [`status`]. Reading it flushes posted writes.
pub const STATUS: Reg = Reg(0x00008);
/// Extended device control; bits in [`ctrl_ext`].
pub const CTRL_EXT: Reg = Reg(0x00018);
/// Flow control address, low.
pub const FCAL: Reg = Reg(0x00028);
/// Flow control address, high.
pub const FCAH: Reg = Reg(0x0002c);
/// Flow control EtherType.
pub const FCT: Reg = Reg(0x00030);
/// VLAN EtherType.
pub const VET: Reg = Reg(0x00038);
/// Receive control; bits in [`rctl`].
pub const RCTL: Reg = Reg(0x00100);
/// Flow control transmit timer.
pub const FCTTV: Reg = Reg(0x00170);
/// Transmit control; bits in [`tctl`].
pub const TCTL: Reg = Reg(0x00400);
/// Extended transmit control: collision distance.
pub const TCTL_EXT: Reg = Reg(0x00404);
/// LED control; see [`ledctl`].
pub const LEDCTL: Reg = Reg(0x00e00);
/// Transmit inter-packet gap; defaults in [`tipg`].
pub const TIPG: Reg = Reg(0x00410);
/// Flow control receive threshold, low.
pub const FCRTL: Reg = Reg(0x02160);
/// Flow control receive threshold, high.
pub const FCRTH: Reg = Reg(0x02168);
/// Flow control refresh threshold.
pub const FCRTV: Reg = Reg(0x02460);
/// Receive packet buffer size in KiB.
pub const RXPBS: Reg = Reg(0x02404);
/// Transmit packet buffer size in KiB.
pub const TXPBS: Reg = Reg(0x03404);
/// DMA transmit control.
pub const DTXCTL: Reg = Reg(0x03590);
/// Receive checksum control; bits in [`rxcsum`].
pub const RXCSUM: Reg = Reg(0x05000);
/// Longest receive packet in bytes, FCS included; used while RCTL.LPE is set.
pub const RLPML: Reg = Reg(0x05004);
/// Receive filter control; bits in [`rfctl`].
pub const RFCTL: Reg = Reg(0x05008);
/// Multiple receive queues command; bits in [`mrqc`].
pub const MRQC: Reg = Reg(0x05818);
/// Next generation VMDq control; zero without virtual functions.
pub const VT_CTL: Reg = Reg(0x0581c);
/// Management control.
pub const MANC: Reg = Reg(0x05820);
/// PCIe control.
pub const GCR: Reg = Reg(0x05b00);
/// Software semaphore; bits in [`swsm`].
pub const SWSM: Reg = Reg(0x05b50);
/// Firmware semaphore.
pub const FWSM: Reg = Reg(0x05b54);
/// Software-firmware synchronisation; bits in [`sw_fw_sync`].
pub const SW_FW_SYNC: Reg = Reg(0x05b5c);

/// Receive address `n` of 24, low: the first four bytes of the MAC address, the first in the
/// lowest byte. An `n` beyond 23 is taken modulo 32 and lies in reserved space.
#[inline]
pub const fn ral(n: u16) -> Reg {
    let n = n & 31;
    if n < 16 {
        element(0x05400, 8, 16, n)
    } else {
        element(0x054e0, 8, 16, n)
    }
}

/// Receive address `n` of 24, high: the last two bytes of the MAC address and the bits in
/// [`rah`](mod@rah).
#[inline]
pub const fn rah(n: u16) -> Reg {
    Reg(ral(n).0 + 4)
}

/// Multicast table, register `n` of 128.
#[inline]
pub const fn mta(n: u16) -> Reg {
    element(0x05200, 4, 128, n)
}

/// VLAN filter table, register `n` of 128: bit `v & 31` of register `v >> 5` accepts VLAN `v`.
#[inline]
pub const fn vfta(n: u16) -> Reg {
    element(0x05600, 4, 128, n)
}

/// RSS hash key, register `n` of 16 slots, of which 0..10 exist; see
/// [`Key::registers`](crate::rss::Key::registers).
#[inline]
pub const fn rssrk(n: u16) -> Reg {
    element(0x05c80, 4, 16, n)
}

/// RSS redirection table, register `n` of 32; see
/// [`IndirectionTable::registers`](crate::rss::IndirectionTable::registers).
#[inline]
pub const fn reta(n: u16) -> Reg {
    element(0x05c00, 4, 32, n)
}

/// VM offload register of pool `n` of 8; bits in [`vmolr`](mod@vmolr).
#[inline]
pub const fn vmolr(n: u16) -> Reg {
    element(0x05ad0, 4, 8, n)
}
