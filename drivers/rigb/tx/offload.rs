// SPDX-License-Identifier: GPL-2.0

//! What the core wants done with a frame, in the device's terms: checksums and segmentation.

use i82576::{
    offload::{
        l4_by_checksum_offset,
        Headers,
        Offload,
        Segmentation,
        MAX_TCP_HEADER,
        UDP_HEADER, //
    },
    tx::{
        IpVersion,
        L4, //
    },
};
use kernel::prelude::*;
use net::{
    features::Features,
    skb::{
        self,
        SkbRef,
        TxOffloads,
        TxSkb, //
    },
};

const CHECKSUMS: Features = Features::IP_CSUM.with(Features::IPV6_CSUM);
const SEGMENTATION: Features = Features::TSO
    .with(Features::TSO6)
    .with(Features::UDP_SEGMENTATION);

/// The headers of a frame that needs a checksum, one of TCP with `tcp_header` bytes; `None` for a
/// protocol that the device does not know.
fn headers(skb: &SkbRef<'_>, tcp_header: impl FnOnce() -> u32) -> Option<Headers> {
    let l4 = l4_by_checksum_offset(skb.checksum_offset())?;

    Some(Headers {
        network: skb.network_offset(),
        transport: skb.transport_offset(),
        l4_len: match l4 {
            L4::Tcp => tcp_header(),
            _ => UDP_HEADER,
        },
        ip: if skb.protocol() == skb::ETH_P_IP {
            IpVersion::V4
        } else {
            IpVersion::V6
        },
        l4,
    })
}

/// Makes a frame ready for the device.
///
/// # Errors
///
/// `ENOMEM`, and `EINVAL` for what [`supported`] should have kept away.
pub(super) fn prepare(skb: &mut TxSkb, offloads: TxOffloads) -> Result<Offload> {
    if offloads.is_empty() {
        return Ok(Offload::NONE);
    }
    let offload = if offloads.checksum() {
        checksum(skb)?
    } else {
        Offload::NONE
    };

    if offloads.vlan_tag() {
        let tagged = offload.with_vlan(skb.vlan_tag(), skb.network_offset());
        return tagged.ok_or(EINVAL);
    }
    Ok(offload)
}

/// Checksums, and segmentation if the frame is to be segmented.
fn checksum(skb: &mut TxSkb) -> Result<Offload> {
    let segmentation = skb.segmentation().map(|gso| Segmentation {
        mss: gso.mss,
        segments: gso.segments,
    });
    let headers = headers(skb, || skb.tcp_header_len()).ok_or(EINVAL)?;
    let offload = Offload::new(&headers, segmentation).ok_or(EINVAL)?;

    if offload.segments() {
        skb.prepare_segmentation()?;
    }
    Ok(offload)
}

/// Those of `features` that the device has for `skb`; the core does the rest.
pub(crate) fn supported(skb: &SkbRef<'_>, features: Features) -> Features {
    if !skb.needs_checksum() {
        return features;
    }
    // The longest is as good here, and saves a look at the header.
    match headers(skb, || MAX_TCP_HEADER) {
        Some(headers) if headers.can_segment() => features,
        Some(headers) if headers.can_checksum() => features.without(SEGMENTATION),
        _ => features.without(CHECKSUMS.with(SEGMENTATION).with(Features::VLAN_INSERT)),
    }
}
