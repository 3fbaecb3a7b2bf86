// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Statistics registers. All are cleared by reading and stick at their maximum. A counter of
//! two registers is cleared by reading its high half, so read the low one first.

use super::Reg;

/// CRC errors.
pub const CRCERRS: Reg = Reg(0x04000);
/// Alignment errors.
pub const ALGNERRC: Reg = Reg(0x04004);
/// Symbol errors.
pub const SYMERRS: Reg = Reg(0x04008);
/// Receive errors.
pub const RXERRC: Reg = Reg(0x0400c);
/// Packets missed because the packet buffer was full.
pub const MPC: Reg = Reg(0x04010);
/// Single collisions.
pub const SCC: Reg = Reg(0x04014);
/// Excessive collisions.
pub const ECOL: Reg = Reg(0x04018);
/// Multiple collisions.
pub const MCC: Reg = Reg(0x0401c);
/// Late collisions.
pub const LATECOL: Reg = Reg(0x04020);
/// Collisions.
pub const COLC: Reg = Reg(0x04028);
/// Deferrals.
pub const DC: Reg = Reg(0x04030);
/// Packets sent without carrier sense.
pub const TNCRS: Reg = Reg(0x04034);
/// Length errors.
pub const RLEC: Reg = Reg(0x04040);
/// XON frames received.
pub const XONRXC: Reg = Reg(0x04048);
/// XON frames sent.
pub const XONTXC: Reg = Reg(0x0404c);
/// XOFF frames received.
pub const XOFFRXC: Reg = Reg(0x04050);
/// XOFF frames sent.
pub const XOFFTXC: Reg = Reg(0x04054);
/// Flow control frames received that are not supported.
pub const FCRUC: Reg = Reg(0x04058);
/// Packets received of 64 bytes.
pub const PRC64: Reg = Reg(0x0405c);
/// Packets received of 65 to 127 bytes.
pub const PRC127: Reg = Reg(0x04060);
/// Packets received of 128 to 255 bytes.
pub const PRC255: Reg = Reg(0x04064);
/// Packets received of 256 to 511 bytes.
pub const PRC511: Reg = Reg(0x04068);
/// Packets received of 512 to 1023 bytes.
pub const PRC1023: Reg = Reg(0x0406c);
/// Packets received of 1024 bytes and more.
pub const PRC1522: Reg = Reg(0x04070);
/// Good packets received.
pub const GPRC: Reg = Reg(0x04074);
/// Broadcast packets received.
pub const BPRC: Reg = Reg(0x04078);
/// Multicast packets received.
pub const MPRC: Reg = Reg(0x0407c);
/// Good packets sent.
pub const GPTC: Reg = Reg(0x04080);
/// Good octets received, low.
pub const GORCL: Reg = Reg(0x04088);
/// Good octets received, high.
pub const GORCH: Reg = Reg(0x0408c);
/// Good octets sent, low.
pub const GOTCL: Reg = Reg(0x04090);
/// Good octets sent, high.
pub const GOTCH: Reg = Reg(0x04094);
/// Packets received while a ring had no buffer.
pub const RNBC: Reg = Reg(0x040a0);
/// Undersized packets received.
pub const RUC: Reg = Reg(0x040a4);
/// Fragments received.
pub const RFC: Reg = Reg(0x040a8);
/// Oversized packets received.
pub const ROC: Reg = Reg(0x040ac);
/// Jabbers received.
pub const RJC: Reg = Reg(0x040b0);
/// Management packets received.
pub const MGTPRC: Reg = Reg(0x040b4);
/// Management packets dropped.
pub const MGTPDC: Reg = Reg(0x040b8);
/// Management packets sent.
pub const MGTPTC: Reg = Reg(0x040bc);
/// Octets received, low.
pub const TORL: Reg = Reg(0x040c0);
/// Octets received, high.
pub const TORH: Reg = Reg(0x040c4);
/// Octets sent, low.
pub const TOTL: Reg = Reg(0x040c8);
/// Octets sent, high.
pub const TOTH: Reg = Reg(0x040cc);
/// Packets received.
pub const TPR: Reg = Reg(0x040d0);
/// Packets sent.
pub const TPT: Reg = Reg(0x040d4);
/// Packets sent of 64 bytes.
pub const PTC64: Reg = Reg(0x040d8);
/// Packets sent of 65 to 127 bytes.
pub const PTC127: Reg = Reg(0x040dc);
/// Packets sent of 128 to 255 bytes.
pub const PTC255: Reg = Reg(0x040e0);
/// Packets sent of 256 to 511 bytes.
pub const PTC511: Reg = Reg(0x040e4);
/// Packets sent of 512 to 1023 bytes.
pub const PTC1023: Reg = Reg(0x040e8);
/// Packets sent of 1024 bytes and more.
pub const PTC1522: Reg = Reg(0x040ec);
/// Multicast packets sent.
pub const MPTC: Reg = Reg(0x040f0);
/// Broadcast packets sent.
pub const BPTC: Reg = Reg(0x040f4);
/// TCP segmentation contexts sent.
pub const TSCTC: Reg = Reg(0x040f8);
/// Interrupts asserted.
pub const IAC: Reg = Reg(0x04100);
/// Packets handed to the host.
pub const RPTHC: Reg = Reg(0x04104);
/// Good packets the host sent.
pub const HGPTC: Reg = Reg(0x04118);
/// Receive descriptors at their minimum threshold.
pub const RXDMTC: Reg = Reg(0x04120);
/// Good octets the host received, low.
pub const HGORCL: Reg = Reg(0x04128);
/// Good octets the host received, high.
pub const HGORCH: Reg = Reg(0x0412c);
/// Good octets the host sent, low.
pub const HGOTCL: Reg = Reg(0x04130);
/// Good octets the host sent, high.
pub const HGOTCH: Reg = Reg(0x04134);
/// Length errors.
pub const LENERRS: Reg = Reg(0x04138);
