// SPDX-License-Identifier: GPL-2.0

//! What the device does with a frame beside sending it: checksums and segmentation.

use i82576::{
    limits,
    tx::{
        Context,
        IpVersion,
        L4, //
    },
};
use kernel::prelude::*;
use net::skb::{
    self,
    SkBuff,
    SkBuffRef, //
};

/// Where the checksum is in its header, in bytes.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

/// Length of a UDP header in bytes.
const UDP_HEADER: u32 = 8;

/// What the device shall do with a frame beside sending it.
pub(super) struct Offload {
    pub(super) context: Option<Context>,
    pub(super) tso: bool,
    pub(super) ip_checksum: bool,
    pub(super) l4_checksum: bool,
    /// Bytes before the payload, for segmentation.
    pub(super) header: u32,
    pub(super) segments: u32,
}

impl Offload {
    /// # Errors
    ///
    /// `ENOMEM`, and `EINVAL` for what `features_check` should have kept away.
    pub(super) fn prepare(skb: &mut SkBuff) -> Result<Self> {
        if !skb.needs_checksum() {
            return Ok(Self {
                context: None,
                tso: false,
                ip_checksum: false,
                l4_checksum: false,
                header: 0,
                segments: 1,
            });
        }

        let segmentation = skb.segmentation();
        let network = skb.network_offset();
        let transport = skb.transport_offset();
        let ipv4 = skb.protocol() == skb::ETH_P_IP;
        let (l4, l4_len) = match skb.checksum_offset() {
            TCP_CHECKSUM => (L4::Tcp, skb.tcp_header_len()),
            UDP_CHECKSUM => (L4::Udp, UDP_HEADER),
            _ => return Err(EINVAL),
        };
        if segmentation.is_some() {
            skb.prepare_segmentation()?;
        }

        Ok(Self {
            context: Some(Context {
                vlan: 0,
                mac_len: u8::try_from(network)?,
                ip_len: u16::try_from(transport.checked_sub(network).ok_or(EINVAL)?)?,
                ip: Some(if ipv4 { IpVersion::V4 } else { IpVersion::V6 }),
                l4,
                l4_len: u8::try_from(l4_len)?,
                mss: segmentation.as_ref().map_or(0, |gso| gso.mss),
                queue_index: 0,
            }),
            tso: segmentation.is_some(),
            ip_checksum: ipv4 && segmentation.is_some(),
            l4_checksum: true,
            header: transport + l4_len,
            segments: segmentation.map_or(1, |gso| u32::from(gso.segments).max(1)),
        })
    }
}

/// Returns whether the device can do for `skb` what the core would have it do.
pub(crate) fn can_offload(skb: &SkBuffRef<'_>) -> bool {
    if !skb.needs_checksum() {
        return true;
    }
    let network = skb.network_offset();
    let transport = skb.transport_offset();

    network <= u32::from(limits::MAX_MAC_LEN)
        && transport >= network
        && transport - network <= u32::from(limits::MAX_IP_LEN)
        && matches!(skb.checksum_offset(), TCP_CHECKSUM | UDP_CHECKSUM)
}
