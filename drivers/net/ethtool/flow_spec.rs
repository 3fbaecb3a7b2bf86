// SPDX-License-Identifier: GPL-2.0

//! `struct ethtool_rx_flow_spec` as a value, and back. Other kinds of rules than those for TCP, UDP
//! and SCTP, a queue that is added to that of an RSS context (`cap_rss_rxnfc_adds`), and packets that
//! wake the system are in no driver here.

use kernel::prelude::*;
use net_bindings as bindings;

use super::flow_rules::{
    FlowAction,
    FlowAddresses,
    FlowRule,
    Masked,
    Transport, //
};

/// `ring_cookie` of a rule that drops.
// CAST: All ones, which bindgen takes for -1.
const DROP: u64 = bindings::RX_CLS_FLOW_DISC as u64;
/// Bits of `ring_cookie`: the queue, and above it the virtual function.
const QUEUE_MASK: u64 = 0xffff_ffff;
const FUNCTION_SHIFT: u32 = 32;

/// Flags in `flow_type`, beside the kind of flow.
const FLAGS: u32 = bindings::FLOW_EXT | bindings::FLOW_MAC_EXT | bindings::FLOW_RSS;

/// The rule of a specification. `context` is used only with `FLOW_RSS`.
///
/// # Errors
///
/// `EOPNOTSUPP` if it is no [`FlowRule`].
pub(super) fn decode(spec: &bindings::ethtool_rx_flow_spec, context: u32) -> Result<FlowRule> {
    let extended = spec.flow_type & bindings::FLOW_EXT != 0;
    let with_mac = spec.flow_type & bindings::FLOW_MAC_EXT != 0;
    let hashed = spec.flow_type & bindings::FLOW_RSS != 0;
    let (protocol, v6) = match spec.flow_type & !FLAGS {
        bindings::TCP_V4_FLOW => (Transport::Tcp, false),
        bindings::UDP_V4_FLOW => (Transport::Udp, false),
        bindings::SCTP_V4_FLOW => (Transport::Sctp, false),
        bindings::TCP_V6_FLOW => (Transport::Tcp, true),
        bindings::UDP_V6_FLOW => (Transport::Udp, true),
        bindings::SCTP_V6_FLOW => (Transport::Sctp, true),
        _ => return Err(EOPNOTSUPP),
    };
    let action = match (spec.ring_cookie, spec.ring_cookie >> FUNCTION_SHIFT) {
        (DROP, _) => FlowAction::Drop,
        (0, _) if hashed => FlowAction::RssContext(context),
        _ if hashed => return Err(EOPNOTSUPP),
        // CAST: What is below `FUNCTION_SHIFT` is the queue.
        (cookie, 0) => FlowAction::Queue(cookie as u32),
        (cookie, function) => FlowAction::VirtualFunction {
            function: u8::try_from(function).map_err(|_| EOPNOTSUPP)?,
            // CAST: As above.
            queue: (cookie & QUEUE_MASK) as u32,
        },
    };

    let (addresses, source_port, destination_port, tos) = if v6 {
        // SAFETY: All of the union's fields are integers; these are what the flow's type says.
        let (value, mask) = unsafe { (spec.h_u.tcp_ip6_spec, spec.m_u.tcp_ip6_spec) };

        (
            FlowAddresses::V6 {
                source: masked(bytes(value.ip6src), bytes(mask.ip6src)),
                destination: masked(bytes(value.ip6dst), bytes(mask.ip6dst)),
            },
            port(value.psrc, mask.psrc),
            port(value.pdst, mask.pdst),
            masked(value.tclass, mask.tclass),
        )
    } else {
        // SAFETY: As above.
        let (value, mask) = unsafe { (spec.h_u.tcp_ip4_spec, spec.m_u.tcp_ip4_spec) };

        (
            FlowAddresses::V4 {
                source: masked(value.ip4src.to_ne_bytes(), mask.ip4src.to_ne_bytes()),
                destination: masked(value.ip4dst.to_ne_bytes(), mask.ip4dst.to_ne_bytes()),
            },
            port(value.psrc, mask.psrc),
            port(value.pdst, mask.pdst),
            masked(value.tos, mask.tos),
        )
    };

    let (value, mask) = (&spec.h_ext, &spec.m_ext);
    Ok(FlowRule {
        protocol,
        addresses,
        source_port,
        destination_port,
        tos,
        mac: valid_if(with_mac, masked(value.h_dest, mask.h_dest)),
        vlan_type: valid_if(extended, port(value.vlan_etype, mask.vlan_etype)),
        vlan_tag: valid_if(extended, port(value.vlan_tci, mask.vlan_tci)),
        user_data: valid_if(extended, masked(number(value.data), number(mask.data))),
        action,
    })
}

/// The specification of a rule at a place.
pub(super) fn encode(rule: &FlowRule, place: u32) -> bindings::ethtool_rx_flow_spec {
    let mut spec: bindings::ethtool_rx_flow_spec = pin_init::zeroed();
    let v6 = matches!(rule.addresses, FlowAddresses::V6 { .. });

    spec.location = place;
    spec.flow_type = match (rule.protocol, v6) {
        (Transport::Tcp, false) => bindings::TCP_V4_FLOW,
        (Transport::Udp, false) => bindings::UDP_V4_FLOW,
        (Transport::Sctp, false) => bindings::SCTP_V4_FLOW,
        (Transport::Tcp, true) => bindings::TCP_V6_FLOW,
        (Transport::Udp, true) => bindings::UDP_V6_FLOW,
        (Transport::Sctp, true) => bindings::SCTP_V6_FLOW,
    };
    spec.ring_cookie = match rule.action {
        FlowAction::Drop => DROP,
        FlowAction::RssContext(_) => 0,
        FlowAction::Queue(queue) => queue.into(),
        FlowAction::VirtualFunction { function, queue } => {
            u64::from(function) << FUNCTION_SHIFT | u64::from(queue)
        }
    };

    let (source, destination) = (rule.source_port, rule.destination_port);
    let (ports, port_masks) = (
        (source.value, destination.value),
        (source.mask, destination.mask),
    );
    match rule.addresses {
        FlowAddresses::V4 {
            source,
            destination,
        } => {
            let (values, masks) = (
                (source.value, destination.value),
                (source.mask, destination.mask),
            );

            spec.h_u.tcp_ip4_spec = v4_spec(values, ports, rule.tos.value);
            spec.m_u.tcp_ip4_spec = v4_spec(masks, port_masks, rule.tos.mask);
        }
        FlowAddresses::V6 {
            source,
            destination,
        } => {
            let (values, masks) = (
                (source.value, destination.value),
                (source.mask, destination.mask),
            );

            spec.h_u.tcp_ip6_spec = v6_spec(values, ports, rule.tos.value);
            spec.m_u.tcp_ip6_spec = v6_spec(masks, port_masks, rule.tos.mask);
        }
    }

    if matches!(rule.action, FlowAction::RssContext(_)) {
        spec.flow_type |= bindings::FLOW_RSS;
    }
    let extended =
        rule.vlan_type.is_compared() || rule.vlan_tag.is_compared() || rule.user_data.is_compared();
    if extended {
        spec.flow_type |= bindings::FLOW_EXT;
    }
    if rule.mac.is_compared() {
        spec.flow_type |= bindings::FLOW_MAC_EXT;
    }
    spec.h_ext = bindings::ethtool_flow_ext {
        padding: [0; 2],
        h_dest: rule.mac.value,
        vlan_etype: rule.vlan_type.value.to_be(),
        vlan_tci: rule.vlan_tag.value.to_be(),
        data: halves(rule.user_data.value),
    };
    spec.m_ext = bindings::ethtool_flow_ext {
        padding: [0; 2],
        h_dest: rule.mac.mask,
        vlan_etype: rule.vlan_type.mask.to_be(),
        vlan_tci: rule.vlan_tag.mask.to_be(),
        data: halves(rule.user_data.mask),
    };
    spec
}

/// Source and destination in the order of the wire.
fn v4_spec(
    addresses: ([u8; 4], [u8; 4]),
    ports: (u16, u16),
    tos: u8,
) -> bindings::ethtool_tcpip4_spec {
    bindings::ethtool_tcpip4_spec {
        ip4src: u32::from_ne_bytes(addresses.0),
        ip4dst: u32::from_ne_bytes(addresses.1),
        psrc: ports.0.to_be(),
        pdst: ports.1.to_be(),
        tos,
    }
}

fn v6_spec(
    addresses: ([u8; 16], [u8; 16]),
    ports: (u16, u16),
    tclass: u8,
) -> bindings::ethtool_tcpip6_spec {
    bindings::ethtool_tcpip6_spec {
        ip6src: words(addresses.0),
        ip6dst: words(addresses.1),
        psrc: ports.0.to_be(),
        pdst: ports.1.to_be(),
        tclass,
    }
}

fn masked<T>(value: T, mask: T) -> Masked<T> {
    Masked { value, mask }
}

/// A number of two bytes in the order of the wire.
fn port(value: u16, mask: u16) -> Masked<u16> {
    masked(u16::from_be(value), u16::from_be(mask))
}

/// `field`, or nothing compared: without its flag a field means nothing.
fn valid_if<T: Default>(valid: bool, field: Masked<T>) -> Masked<T> {
    if valid {
        field
    } else {
        Masked::default()
    }
}

/// An IPv6 address.
fn bytes(words: [u32; 4]) -> [u8; 16] {
    let [a, b, c, d] = words.map(u32::to_ne_bytes);
    let mut address = [0; 16];

    for (to, from) in address.iter_mut().zip([a, b, c, d].as_flattened()) {
        *to = *from;
    }
    address
}

fn words(address: [u8; 16]) -> [u32; 4] {
    let number = u128::from_be_bytes(address);

    // CAST: Each is 32 bits of it.
    [96, 64, 32, 0].map(|shift| ((number >> shift) as u32).to_be())
}

/// Two words in the order of the wire.
fn number(data: [u32; 2]) -> u64 {
    u64::from(u32::from_be(data[0])) << 32 | u64::from(u32::from_be(data[1]))
}

fn halves(number: u64) -> [u32; 2] {
    // CAST: Each is half of it.
    [((number >> 32) as u32).to_be(), (number as u32).to_be()]
}
