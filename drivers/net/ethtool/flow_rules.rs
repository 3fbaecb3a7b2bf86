// SPDX-License-Identifier: GPL-2.0

//! Rules that say to which queue packets go (`ethtool -n`, `-N`), before RSS is asked.
//!
//! A driver whose device may lack them offers them with
//! [`with_flow_rules`](crate::registration::Unregistered::with_flow_rules); without it users see
//! that there are none.

use kernel::{
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    flow_spec,
    Callbacks, //
};
use crate::{
    device::{
        Driver,
        Locked,
        MacAddress, //
    },
    features::Features, //
};

/// A value of which the bits in `mask` are compared; none by default.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct Masked<T> {
    /// The value.
    pub value: T,
    /// Which of its bits are compared.
    pub mask: T,
}

/// A protocol with ports.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// Addresses of a packet, each in the order of the wire.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum FlowAddresses {
    /// Of IPv4.
    V4 {
        /// The source.
        source: Masked<[u8; 4]>,
        /// The destination.
        destination: Masked<[u8; 4]>,
    },
    /// Of IPv6.
    V6 {
        /// The source.
        source: Masked<[u8; 16]>,
        /// The destination.
        destination: Masked<[u8; 16]>,
    },
}

/// What becomes of a packet.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum FlowAction {
    /// It goes to this RX queue, which is in use.
    Queue(u32),
    /// It goes to a queue of a virtual function; these are counted from 1.
    VirtualFunction {
        /// Which one.
        function: u8,
        /// Its queue.
        queue: u32,
    },
    /// It goes to a queue of the table of this RSS context, which exists; 0 is the device's own.
    RssContext(u32),
    /// It is dropped.
    Drop,
}

/// A rule: which packets it is for, and what becomes of them.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct FlowRule {
    /// The protocol.
    pub protocol: Transport,
    /// The addresses.
    pub addresses: FlowAddresses,
    /// The source port.
    pub source_port: Masked<u16>,
    /// The destination port.
    pub destination_port: Masked<u16>,
    /// Type of service, or traffic class.
    pub tos: Masked<u8>,
    /// The destination MAC address.
    pub mac: Masked<MacAddress>,
    /// EtherType of the VLAN tag.
    pub vlan_type: Masked<u16>,
    /// The VLAN tag (TCI).
    pub vlan_tag: Masked<u16>,
    /// User data, whose meaning the driver defines.
    pub user_data: Masked<u64>,
    /// What becomes of a packet that matches.
    pub action: FlowAction,
}

impl<T: PartialEq + Default> Masked<T> {
    /// Whether any bit is compared.
    pub fn is_compared(&self) -> bool {
        self.mask != T::default()
    }
}

/// Where a rule is put.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum FlowPlace {
    /// There, in place of the rule that is there; the place exists.
    At(u32),
    /// At the first place that is free.
    First,
    /// At the last place that is free.
    Last,
}

/// A driver with rules. While [`Features::NTUPLE`] is off it has none: turning it off removes them
/// ([`Driver::set_features`]).
pub trait FlowRules: Driver {
    /// Places of rules. Of the rules that match a packet, the one at the lowest place counts.
    const FLOW_PLACES: u32;

    /// The rule at a place.
    fn flow_rule(control: &Self::Control, place: u32) -> Option<FlowRule>;

    /// Makes a rule, which stays until it is deleted, also over down and up. Returns its place.
    ///
    /// The core refuses to take away queues that rules name.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for what the device cannot do, `ENOSPC` if no place is free; nothing is
    /// changed.
    fn insert_flow_rule(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        place: FlowPlace,
        rule: &FlowRule,
    ) -> Result<u32>;

    /// Deletes the rule at a place.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    fn delete_flow_rule(dev: Locked<'_, Self>, control: &mut Self::Control, place: u32) -> Result;
}

/// The places that have rules.
fn used<T: FlowRules>(control: &T::Control) -> impl Iterator<Item = u32> + '_ {
    (0..T::FLOW_PLACES).filter(|place| T::flow_rule(control, *place).is_some())
}

/// Where a rule is to go, by what the user asks for.
fn place<T: FlowRules>(location: u32) -> Result<FlowPlace> {
    match location {
        bindings::RX_CLS_LOC_ANY | bindings::RX_CLS_LOC_FIRST => Ok(FlowPlace::First),
        bindings::RX_CLS_LOC_LAST => Ok(FlowPlace::Last),
        place if place < T::FLOW_PLACES => Ok(FlowPlace::At(place)),
        _ => Err(EINVAL),
    }
}

fn insert<T: FlowRules>(
    dev: Locked<'_, T>,
    control: &mut T::Control,
    spec: &bindings::ethtool_rx_flow_spec,
    context: u32,
) -> Result<u32> {
    if !dev.device().features().contains(Features::NTUPLE) {
        return Err(EOPNOTSUPP);
    }
    let place = place::<T>(spec.location)?;
    let rule = flow_spec::decode(spec, context)?;

    match rule.action {
        FlowAction::Queue(queue) if queue >= dev.rx_queues() => Err(EINVAL),
        _ => T::insert_flow_rule(dev, control, place, &rule),
    }
}

impl<T: FlowRules> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_rxnfc`.
    pub(super) unsafe extern "C" fn get_rxnfc(
        dev: *mut bindings::net_device,
        request: *mut bindings::ethtool_rxnfc,
        places: *mut u32,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), request) = unsafe { (Locked::<T>::new(dev), &mut *request) };
        // SAFETY: All of the union's fields are one integer: a count, and for one rule its context.
        let count = unsafe { &mut request.__bindgen_anon_1.rule_cnt };

        from_result(|| {
            match request.cmd {
                bindings::ETHTOOL_GRXCLSRLCNT => {
                    // CAST: There are not more than places.
                    *count = used::<T>(control).count() as u32;
                    request.data = (T::FLOW_PLACES | bindings::RX_CLS_LOC_SPECIAL).into();
                }
                bindings::ETHTOOL_GRXCLSRULE => {
                    let place = request.fs.location;
                    let rule = T::flow_rule(control, place).ok_or(ENOENT)?;

                    request.fs = flow_spec::encode(&rule, place);
                    *count = match rule.action {
                        FlowAction::RssContext(context) => context,
                        _ => 0,
                    };
                    request.data = T::FLOW_PLACES.into();
                }
                bindings::ETHTOOL_GRXCLSRLALL => {
                    let room = if places.is_null() { 0 } else { *count as usize };
                    let mut written = 0;

                    for (index, place) in used::<T>(control).enumerate() {
                        if index >= room {
                            return Err(EMSGSIZE);
                        }
                        // SAFETY: For this command the core calls with room for as many as it
                        // asks for, or null.
                        unsafe { places.add(index).write(place) };
                        written += 1;
                    }
                    *count = written;
                    request.data = T::FLOW_PLACES.into();
                }
                _ => return Err(EOPNOTSUPP),
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_rxnfc`.
    pub(super) unsafe extern "C" fn set_rxnfc(
        dev: *mut bindings::net_device,
        request: *mut bindings::ethtool_rxnfc,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((dev, control), request) = unsafe { (Locked::<T>::new(dev), &mut *request) };
        // SAFETY: As in `get_rxnfc`.
        let context = unsafe { request.__bindgen_anon_1.rss_context };

        from_result(|| {
            match request.cmd {
                bindings::ETHTOOL_SRXCLSRLINS => {
                    request.fs.location = insert(dev, control, &request.fs, context)?;
                }
                bindings::ETHTOOL_SRXCLSRLDEL => {
                    T::delete_flow_rule(dev, control, request.fs.location)?;
                }
                _ => return Err(EOPNOTSUPP),
            }
            Ok(0)
        })
    }
}
