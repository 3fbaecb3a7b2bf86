// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the device does with a packet on its way to the wire: checksums, VLAN tags, padding (82576 datasheet,
//! chapters "Transmit Checksum Offloading in Non-segmentation Mode" and "802.1Q VLAN Support").
//!
//! The checksum field of TCP and UDP holds the sum of the pseudo header when a packet comes; to what it
//! is added up is the packet from that header on. When it is segmented, the sum is without a length, as
//! Linux's `igb` has it (`igb_tso()`).
//!
//! What the datasheet forbids is refused, rather than sent as some silicon might: a driver that does it is
//! wrong even where it gets away with it.

use i82576::{
    limits::{ETHERNET_HEADER, MAX_FRAME, MIN_FRAME, MIN_TX_FRAME},
    regs::{CTRL, TCTL, VET, ctrl, tctl},
    tx::{Context, Data, IpVersion, L4},
};

use super::segment;
use crate::nic::{checksum::fill, registers::Registers, violation::What};

/// Bytes of both Ethernet addresses, which a tag follows.
const ADDRESSES: usize = 12;
/// Bytes of the shortest IP headers.
const IPV4_HEADER: u16 = 20;
const IPV6_HEADER: u16 = 40;
/// Where the checksum is in an IPv4 header.
const IPV4_CHECKSUM: usize = 10;

/// Where the headers of a packet are. The Ethernet and the IP header are as long as they must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headers {
    pub(super) ip: usize,
    pub(super) l4: usize,
    pub(super) version: IpVersion,
    pub(super) protocol: L4,
}

impl Headers {
    /// What a context says of them; `None` if that is too short to be headers. The version counts where
    /// the IP header is written: for a TCP checksum alone, Linux's `igb` says IPv6 of both.
    fn new(context: &Context, writes_ip: bool) -> Option<Self> {
        let version = context.ip?;
        let shortest = match version {
            IpVersion::V6 if writes_ip => IPV6_HEADER,
            _ => IPV4_HEADER,
        };
        if u32::from(context.mac_len) < ETHERNET_HEADER || context.ip_len < shortest {
            return None;
        }
        let ip = usize::from(context.mac_len);
        Some(Self {
            ip,
            l4: ip + usize::from(context.ip_len),
            version,
            protocol: context.l4,
        })
    }
}

/// The frames that a packet becomes, without their check sequence.
///
/// # Errors
///
/// [`What::Offload`] if what is to be done does not fit the packet, and [`What::TooLong`] if a frame is longer
/// than the device sends.
pub(super) fn frames(
    packet: &[u8],
    data: &Data,
    context: Option<&Context>,
    registers: &Registers,
) -> Result<Vec<Vec<u8>>, What> {
    let pads = registers.has(TCTL, tctl::PSP);
    let shortest = if pads { MIN_TX_FRAME } else { ETHERNET_HEADER };
    if packet.len() < shortest as usize {
        return Err(What::Offload);
    }
    let context = || context.ok_or(What::Offload);
    let writes_ip = data.tso || data.ip_checksum;
    let headers = || Headers::new(context()?, writes_ip).ok_or(What::Offload);
    let mut frames = if data.tso {
        segment::segments(packet, data, context()?, &headers()?)?
    } else if data.paylen as usize == packet.len() {
        vec![packet.to_vec()]
    } else {
        return Err(What::Offload);
    };
    // Without what is still to be added: tags and the check sequence may come on top.
    if frames.iter().any(|frame| frame.len() > MAX_FRAME as usize) {
        return Err(What::TooLong);
    }
    if data.ip_checksum || data.l4_checksum {
        let headers = headers()?;
        for frame in &mut frames {
            checksums(frame, data, &headers).ok_or(What::Offload)?;
        }
    }
    if data.vlan && registers.has(CTRL, ctrl::VME) {
        let kind = registers.get(VET) as u16;
        let tag = [kind, context()?.vlan].map(u16::to_be_bytes);
        for frame in &mut frames {
            frame.splice(ADDRESSES..ADDRESSES, tag.concat());
        }
    }
    if pads {
        for frame in &mut frames {
            frame.resize(frame.len().max(MIN_FRAME as usize), 0);
        }
    }
    Ok(frames)
}

/// Fills in a frame's checksums. `None` if a header lies beyond its end, or is not of IPv4 (POPTS.IXSM).
fn checksums(frame: &mut [u8], data: &Data, headers: &Headers) -> Option<()> {
    if data.ip_checksum {
        if headers.version != IpVersion::V4 {
            return None;
        }
        let header = frame.get_mut(headers.ip..headers.l4)?;
        header.get_mut(IPV4_CHECKSUM..IPV4_CHECKSUM + 2)?.fill(0);
        fill(header, L4::Tcp, IPV4_CHECKSUM)?;
    }
    if data.l4_checksum {
        let at = match headers.protocol {
            L4::Tcp => 16,
            L4::Udp => 6,
            L4::Sctp => 8,
        };
        let l4_bytes = frame.get_mut(headers.l4..)?;
        if l4_bytes.len() < headers.protocol.shortest_header().into() {
            return None;
        }
        fill(l4_bytes, headers.protocol, at)?;
    }
    Some(())
}
