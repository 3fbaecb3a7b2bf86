// SPDX-License-Identifier: MIT OR Apache-2.0

//! Headers of TCP, UDP and SCTP, and their checksums.

use i82576::{
    five_tuple::Protocol,
    regs::{RFCTL, rfctl},
};

use super::{Addresses, Ip, array, word};
use crate::nic::{
    checksum::{crc32c, fold, sum},
    registers::Registers,
};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const SCTP_HEADER: usize = 12;
/// Where SCTP has its checksum.
const SCTP_CHECKSUM: usize = 8;
/// NFS is known by its port. The client's packets go to it, with writes, and the server's come from
/// it, with what was read.
const NFS: u16 = 2049;

/// A transport header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transport {
    pub(crate) protocol: Protocol,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    /// Where the header ends, with options.
    pub(crate) header_end: usize,
    /// TCP's flags, from FIN on.
    pub(crate) flags: u8,
    /// It has the port of NFS, which RFCTL has the device look for.
    pub(crate) nfs: bool,
    /// The checksum is right. `None` if there is none, or it can't be checked.
    pub(crate) checksum: Option<bool>,
}

impl Transport {
    pub(super) fn parse(frame: &[u8], ip: &Ip, registers: &Registers) -> Option<Self> {
        let segment = frame.get(ip.header_end..ip.end?)?;
        if ip.fragment {
            return None;
        }
        let (protocol, len) = match ip.protocol? {
            TCP => (Protocol::Tcp, usize::from(segment.get(12)? >> 4) * 4),
            UDP => (Protocol::Udp, UDP_HEADER),
            SCTP => (Protocol::Sctp, SCTP_HEADER),
            _ => return None,
        };
        if len > segment.len() || protocol == Protocol::Tcp && len < TCP_HEADER {
            return None;
        }
        let (source_port, destination_port) = (word(segment, 0)?, word(segment, 2)?);
        let looks_for = |bit| !registers.has(RFCTL, bit);
        let nfs = protocol != Protocol::Sctp
            && (destination_port == NFS && looks_for(rfctl::NFSW_DIS)
                || source_port == NFS && looks_for(rfctl::NFSR_DIS));
        Some(Self {
            protocol,
            source_port,
            destination_port,
            header_end: ip.header_end + len,
            flags: match protocol {
                Protocol::Tcp => *segment.get(13)?,
                _ => 0,
            },
            nfs,
            checksum: match protocol {
                Protocol::Tcp => internet_checksum(segment, ip, TCP),
                Protocol::Udp => udp_checksum(segment, ip),
                Protocol::Sctp => sctp_checksum(segment),
            },
        })
    }
}

/// The checksum of UDP. Zero is none in IPv4, and wrong in IPv6 (RFC 8200, 8.1). The device is not said
/// to look at the length: where it isn't that of IP, nothing is claimed.
fn udp_checksum(segment: &[u8], ip: &Ip) -> Option<bool> {
    let (len, checksum) = (word(segment, 4)?, word(segment, 6)?);
    match (checksum, &ip.addresses) {
        (0, Addresses::V4 { .. }) => None,
        _ if usize::from(len) != segment.len() => None,
        (0, Addresses::V6 { .. }) => Some(false),
        _ => internet_checksum(segment, ip, UDP),
    }
}

/// The checksum of TCP and UDP, with its pseudo header (RFC 9293, 3.1; RFC 8200, 8.1).
fn internet_checksum(segment: &[u8], ip: &Ip, protocol: u8) -> Option<bool> {
    if ip.rerouted {
        return None;
    }
    let addresses = match &ip.addresses {
        Addresses::V4 {
            source,
            destination,
        } => sum(source) + sum(destination),
        Addresses::V6 {
            source,
            destination,
            ..
        } => sum(source) + sum(destination),
    };
    let pseudo = addresses + u64::from(protocol) + segment.len() as u64;
    Some(fold(pseudo + sum(segment)) == 0xffff)
}

/// The CRC32c of SCTP (RFC 9260, 6.8 and appendix A).
fn sctp_checksum(segment: &[u8]) -> Option<bool> {
    let wanted = u32::from_le_bytes(array(segment, SCTP_CHECKSUM)?);
    let before = segment.get(..SCTP_CHECKSUM)?;
    let behind = segment.get(SCTP_CHECKSUM + 4..)?;
    let bytes = before.iter().chain(&[0; 4]).chain(behind);
    Some(crc32c(bytes) == wanted)
}
