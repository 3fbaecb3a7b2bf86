// SPDX-License-Identifier: MIT OR Apache-2.0

//! Interrupt coalescing (`coalesce-get`, `coalesce-set`; `ethtool -c`, `-C`), and that of single
//! queues, which only the ioctl has (`ethtool --per-queue`).

use netlink_bindings::ethtool::Request;

use super::{Ethtool, command, ioctl::Device, name_interface};
use crate::bytes::u32_at;
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_SCOALESCE: u32 = 0x0f;
const ETHTOOL_PERQUEUE: u32 = 0x4b;
/// Words of a mask of queues (`MAX_NUM_QUEUE` bits).
const MASK: usize = 4096 / 32;
/// Words of `struct ethtool_coalesce`, and where in it what is used here is.
const WORDS: usize = 23;
const RX_USECS: usize = 1;
const USE_ADAPTIVE_RX: usize = 10;

/// How interrupts are coalesced. What the driver does not know is absent; in a change it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coalesce {
    /// Microseconds from a packet's arrival to its interrupt.
    pub rx_usecs: Option<u32>,
    /// Microseconds from a packet's departure to its interrupt.
    pub tx_usecs: Option<u32>,
    /// `rx_usecs` adapts to what is received.
    pub adaptive_rx: Option<bool>,
}

impl Ethtool {
    /// How interrupts of an interface are coalesced.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver does not say, [`RequestError::NoSuchInterface`].
    pub fn coalesce(&mut self, interface: Interface) -> Result<Coalesce, RequestError> {
        let mut request = Request::new().op_coalesce_get_do();
        request.header_mut().cmd = command::COALESCE_GET;
        name_interface(request.encode().nested_header(), interface);
        let subject = Subject {
            operation: "ethtool coalesce-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            Ok(Coalesce {
                rx_usecs: reply.get_rx_usecs().ok(),
                tx_usecs: reply.get_tx_usecs().ok(),
                adaptive_rx: reply.get_use_adaptive_rx().ok().map(|on| on != 0),
            })
        })
    }

    /// Changes how interrupts of an interface are coalesced.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Refused`] for what
    /// the device cannot do.
    pub fn set_coalesce(
        &mut self,
        interface: Interface,
        change: Coalesce,
    ) -> Result<(), RequestError> {
        let mut request = Request::new().op_coalesce_set_do();
        request.header_mut().cmd = command::COALESCE_SET;
        let mut attributes = name_interface(request.encode().nested_header(), interface);
        if let Some(usecs) = change.rx_usecs {
            attributes = attributes.push_rx_usecs(usecs);
        }
        if let Some(usecs) = change.tx_usecs {
            attributes = attributes.push_tx_usecs(usecs);
        }
        if let Some(on) = change.adaptive_rx {
            attributes = attributes.push_use_adaptive_rx(on.into());
        }
        drop(attributes);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool coalesce-set",
                interface,
            },
            &request,
        )
    }
}

/// `struct ethtool_per_queue_op` for one queue, without what follows it.
fn head(command: u32, queue: u32) -> Vec<u32> {
    let mut mask = [0; MASK];
    if let Some(word) = mask.get_mut(queue as usize / 32) {
        *word = 1 << (queue % 32);
    }
    let mut head = vec![ETHTOOL_PERQUEUE, command];
    head.extend(mask);
    head
}

/// How interrupts of one queue are coalesced.
///
/// # Errors
///
/// [`RequestError::Unsupported`], [`RequestError::Refused`] if there is no such queue.
pub fn queue_coalesce(interface: Interface, queue: u32) -> Result<Coalesce, RequestError> {
    let device = Device::new(interface, "coalescing of a queue")?;
    let head = head(ETHTOOL_GCOALESCE, queue);
    let answer = device.call(&head, WORDS * 4)?;
    let word = |index: usize| u32_at(&answer, (head.len() + index) * 4);
    Ok(Coalesce {
        rx_usecs: word(RX_USECS),
        tx_usecs: None,
        adaptive_rx: word(USE_ADAPTIVE_RX).map(|on| on != 0),
    })
}

/// Changes how interrupts of one queue are coalesced, as far as the driver can.
///
/// # Errors
///
/// As [`queue_coalesce`].
pub fn set_queue_coalesce(
    interface: Interface,
    queue: u32,
    change: Coalesce,
) -> Result<(), RequestError> {
    let device = Device::new(interface, "coalescing of a queue")?;
    let now = queue_coalesce(interface, queue)?;
    let mut request = head(ETHTOOL_SCOALESCE, queue);
    let mut coalesce = [0; WORDS];
    coalesce[0] = ETHTOOL_SCOALESCE;
    coalesce[RX_USECS] = change.rx_usecs.or(now.rx_usecs).unwrap_or(0);
    coalesce[USE_ADAPTIVE_RX] = change
        .adaptive_rx
        .or(now.adaptive_rx)
        .unwrap_or(false)
        .into();
    request.extend(coalesce);
    device.call(&request, 0).map(drop)
}
