// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the device does with a packet on its way to the wire: checksums, VLAN tags, padding (82576 datasheet,
//! chapters "Transmit Checksum Offloading in Non-segmentation Mode" and "802.1Q VLAN Support").
//!
//! The checksum field of TCP and UDP holds the sum of the pseudo header when a packet comes; to what it
//! is added up is the packet from that header on. When it is segmented, the sum is without a length, as
//! Linux's `igb` has it (`igb_tso()`).

use i82576::{
    limits::{ETHERNET_HEADER, MIN_FRAME},
    regs::{CTRL, TCTL, VET, ctrl, tctl},
    tx::{Context, Data, IpVersion, L4},
};

use super::{checksum::fill, segment};
use crate::nic::{registers::Registers, violation::What};

/// Bytes of both Ethernet addresses, which a tag follows.
const ADDRESSES: usize = 12;
/// The parts of an IPv4 header that the device writes.
const IPV4_HEADER: usize = 20;
const IPV4_CHECKSUM: usize = 10;

/// Where the headers of a packet are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headers {
    pub(super) ip: usize,
    pub(super) l4: usize,
    pub(super) version: Option<IpVersion>,
    pub(super) protocol: L4,
}

impl Headers {
    fn new(context: &Context) -> Self {
        let ip = usize::from(context.mac_len);
        Self {
            ip,
            l4: ip + usize::from(context.ip_len),
            version: context.ip,
            protocol: context.l4,
        }
    }
}

/// The frames that a packet becomes, without their check sequence.
///
/// # Errors
///
/// [`What::Offload`] if what is to be done does not fit the packet.
pub(super) fn frames(
    packet: &[u8],
    data: &Data,
    context: Option<&Context>,
    registers: &Registers,
) -> Result<Vec<Vec<u8>>, What> {
    if packet.len() < ETHERNET_HEADER as usize {
        return Err(What::Offload);
    }
    let context = || context.ok_or(What::Offload);
    let mut frames = if data.tso {
        segment::segments(packet, data, context()?, &Headers::new(context()?))?
    } else {
        vec![packet.to_vec()]
    };
    if data.ip_checksum || data.l4_checksum {
        let headers = Headers::new(context()?);
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
    if registers.has(TCTL, tctl::PSP) {
        for frame in &mut frames {
            frame.resize(frame.len().max(MIN_FRAME as usize), 0);
        }
    }
    Ok(frames)
}

/// Fills in a frame's checksums. `None` if a header lies beyond its end.
fn checksums(frame: &mut [u8], data: &Data, headers: &Headers) -> Option<()> {
    if data.ip_checksum && headers.version == Some(IpVersion::V4) {
        let header = frame.get_mut(headers.ip..headers.l4)?;
        if header.len() < IPV4_HEADER {
            return None;
        }
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].fill(0);
        fill(header, L4::Tcp, IPV4_CHECKSUM)?;
    }
    if data.l4_checksum {
        let at = match headers.protocol {
            L4::Tcp => 16,
            L4::Udp => 6,
            L4::Sctp => 8,
        };
        fill(frame.get_mut(headers.l4..)?, headers.protocol, at)?;
    }
    Some(())
}
