// SPDX-License-Identifier: MIT OR Apache-2.0

//! Setting up an interface so that flows reach a bound queue and nothing else does, and undoing it.
//!
//! ```no_run
//! use devmem_tcp::interface::Interface;
//! use devmem_tcp::steering::Plan;
//! use devmem_tcp::udmabuf::Udmabuf;
//!
//! # fn main() -> devmem_tcp::Result<()> {
//! let memory = Udmabuf::new().create(64 << 20)?;
//! let plan = Plan::new(Interface::by_name("eth0")?).queue(3).tcp_port(5201);
//! let steering = plan.apply(&memory)?;
//! // Connections to port 5201 are received into `memory` now.
//! let left = steering.undo();
//! assert!(left.is_empty(), "{left:?}");
//! # Ok(())
//! # }
//! ```
//!
//! What it does, in this order; it is undone in the opposite one, also after an error or a panic. (After
//! SIGKILL only the binding goes.)
//!
//! 1. Headers are split, of all packets (`ethtool -G <interface> tcp-data-split on hds-thresh 0`).
//! 2. The memory is bound. If another process has bound the queue, or steers to it, this fails, before anything is
//!    taken from that process.
//! 3. The queues are taken out of the indirection table (`ethtool -X`), so that nothing else reaches them.
//! 4. Of several queues an RSS context is made, if the NIC has contexts, which spreads flows over them by their hash.
//!    (It was run on a software NIC that has contexts and receives nothing, never with traffic.)
//! 5. Rules for the flows are inserted (`ethtool -N`): to the context, or else to the queues in turn, those of a
//!    port to the same one.
//!
//! Other processes may do the same with other queues: each undoes its own changes only. Header split stays on while
//! any queue is bound, and the feature for flow rules while there are any; undoing reports that. A process that ends
//! later leaves them on, as it found them on.

mod claim;
mod nic;
mod steps;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use self::claim::Claim;
use self::nic::{Kernel, Nic};
use self::steps::Steps;
use crate::error::{BindError, Refusal, RequestError, SteeringError};
use crate::ethtool::{FlowAction, FlowRule, FlowType};
use crate::interface::Interface;
use crate::netdev::RxBinding;

/// Which flows are to reach which queues.
#[derive(Debug, Clone)]
#[must_use = "nothing is changed before it is applied"]
pub struct Plan {
    interface: Interface,
    queues: Vec<u32>,
    rx_page_size: Option<u32>,
    /// Rules of which those of one entry go to the same queue.
    flows: Vec<Vec<FlowRule>>,
    everything: bool,
}

impl Plan {
    /// A plan for an interface, which is to say queues and flows.
    pub fn new(interface: Interface) -> Self {
        Self {
            interface,
            queues: Vec::new(),
            rx_page_size: None,
            flows: Vec::new(),
            everything: false,
        }
    }

    /// Adds a queue. With several, each flow reaches one of them: [`Steered`] says how.
    pub fn queue(mut self, queue: u32) -> Self {
        self.queues.push(queue);
        self
    }

    /// As [`crate::netdev::RxBinder::rx_page_size`].
    pub fn rx_page_size(mut self, bytes: u32) -> Self {
        self.rx_page_size = Some(bytes);
        self
    }

    /// Adds a flow; which queue its action names doesn't matter.
    pub fn flow(mut self, rule: FlowRule) -> Self {
        self.flows.push(vec![rule]);
        self
    }

    /// Adds what is sent to a TCP port, of all addresses, over IPv4 and IPv6: for a server.
    pub fn tcp_port(self, port: u16) -> Self {
        self.tcp_port_over(&[FlowType::Tcp4, FlowType::Tcp6], port)
    }

    /// Adds what is sent to the port of a TCP listener: over the version of IP that its address is of, or
    /// over both, as the unspecified address of IPv6 has it. A device may have rules for IPv4 alone.
    pub fn tcp_listener(self, at: SocketAddr) -> Self {
        match at.ip().to_canonical() {
            IpAddr::V4(_) => self.tcp_port_over(&[FlowType::Tcp4], at.port()),
            IpAddr::V6(ip) if ip.is_unspecified() => self.tcp_port(at.port()),
            IpAddr::V6(_) => self.tcp_port_over(&[FlowType::Tcp6], at.port()),
        }
    }

    fn tcp_port_over(mut self, flows: &[FlowType], port: u16) -> Self {
        let rule = |&flow| FlowRule {
            destination_port: Some((port, u16::MAX).into()),
            ..FlowRule::all(flow, 0)
        };
        self.flows.push(flows.iter().map(rule).collect());
        self
    }

    /// Adds what a peer sends on one TCP connection: for a client, or a device with exact filters only.
    /// (What an IPv6 socket receives over IPv4 has IPv4-mapped addresses; the rule is for IPv4 then.)
    pub fn tcp_connection(self, local: SocketAddr, peer: SocketAddr) -> Self {
        let [at, from] = [local, peer].map(|end| end.ip().to_canonical());
        let (flow, all) = match at {
            IpAddr::V4(_) => (FlowType::Tcp4, IpAddr::from([0xff; 4])),
            IpAddr::V6(_) => (FlowType::Tcp6, IpAddr::from([0xff; 16])),
        };
        self.flow(FlowRule {
            source: Some((from, all).into()),
            destination: Some((at, all).into()),
            source_port: Some((peer.port(), u16::MAX).into()),
            destination_port: Some((local.port(), u16::MAX).into()),
            ..FlowRule::all(flow, 0)
        })
    }

    /// Lets all hashed traffic reach the queues, for devices without flow rules. Ordinary connections of
    /// this interface then fail when their packets land in device memory.
    pub fn everything(mut self) -> Self {
        self.everything = true;
        self
    }

    /// Binds `dmabuf` to the queues and steers the flows to them.
    ///
    /// # Errors
    ///
    /// The precondition that does not hold; all is as it was before.
    pub fn apply(&self, dmabuf: impl AsFd) -> Result<Steering, SteeringError> {
        self.set_up(|_| {
            let mut binder = RxBinding::to(self.interface).queues(self.queues.iter().copied());
            if let Some(bytes) = self.rx_page_size {
                binder = binder.rx_page_size(bytes);
            }
            binder.bind(&dmabuf).map(Some)
        })
    }

    /// Steers the flows to the queues, which the caller binds: for io_uring ([`crate::zcrx`]).
    ///
    /// # Errors
    ///
    /// The precondition that does not hold, as [`BindError::QueueAlreadyBound`]; all is as it was before.
    pub fn apply_unbound(&self) -> Result<Steering, SteeringError> {
        self.set_up(|nic| self.unbound(nic).map(|()| None))
    }

    /// Refuses queues that don't exist or have a memory provider, as a binding would.
    fn unbound(&self, nic: &mut impl Nic) -> Result<(), BindError> {
        let count = nic.rx_queues();
        if let Some(&queue) = self
            .queues
            .iter()
            .find(|&&queue| queue >= count && count > 0)
        {
            return Err(BindError::NoSuchQueue {
                interface: self.interface.label(),
                queue,
                refusal: Refusal::from_errno(libc::ERANGE),
            });
        }
        let mut queues = nic.bound();
        queues.retain(|queue| self.queues.contains(queue));
        if queues.is_empty() {
            return Ok(());
        }
        Err(BindError::QueueAlreadyBound {
            interface: self.interface.label(),
            queues,
            refusal: Refusal::from_errno(libc::EEXIST),
        })
    }

    fn set_up(
        &self,
        bind: impl FnOnce(&mut Kernel) -> Result<Option<RxBinding>, BindError>,
    ) -> Result<Steering, SteeringError> {
        let claim = Claim::of(self.interface, &self.queues)?;
        let (steps, steered, binding) = carry_out(self, Kernel::new(self.interface), bind)?;
        Ok(Steering {
            binding,
            steps,
            steered,
            _claim: claim,
        })
    }
}

/// How flows reach the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steered {
    /// All that is hashed does, by the indirection table ([`Plan::everything`]).
    Everything,
    /// By rules, which are given to the queues in turn: all flows of a rule reach the same one, and so do those of
    /// a port over both versions of IP.
    Rules,
    /// By rules to the RSS context of this number, which spreads the flows of each over the queues.
    Context(u32),
}

impl fmt::Display for Steered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => write!(f, "the RSS table"),
            Self::Rules => write!(f, "flow rules"),
            Self::Context(number) => write!(f, "flow rules to RSS context {number}"),
        }
    }
}

/// Carries out a plan. What was changed before an error is undone as the steps are dropped, after what
/// was bound.
fn carry_out<N: Nic, B>(
    plan: &Plan,
    nic: N,
    bind: impl FnOnce(&mut N) -> Result<B, BindError>,
) -> Result<(Steps<N>, Steered, B), SteeringError> {
    let interface = || plan.interface.label();
    if !plan.everything && plan.flows.is_empty() {
        return Err(SteeringError::NoFlow {
            interface: interface(),
        });
    }
    let mut steps = Steps::new(plan.interface, nic);
    steps.split()?;
    let bound = bind(steps.nic())?;
    let queues = &plan.queues;
    steps.own(queues);
    if !steps.distribute(|now| match plan.everything {
        true => Some(table::only(now, queues)),
        false => table::without(now, queues),
    })? {
        return Err(SteeringError::NoQueueLeft {
            interface: interface(),
            taken: queues.clone(),
        });
    }
    let steered = match (plan.everything, queues.len()) {
        (true, _) => Steered::Everything,
        (false, ..=1) => Steered::Rules,
        (false, _) => steps
            .context(queues)?
            .map_or(Steered::Rules, Steered::Context),
    };
    let in_turn = plan.flows.iter().zip(queues.iter().cycle());
    for (flow, &queue) in
        in_turn.flat_map(|(flows, queue)| flows.iter().map(move |flow| (flow, queue)))
    {
        let action = match steered {
            Steered::Context(context) => FlowAction::RssContext(context),
            _ => FlowAction::Queue(queue),
        };
        let rule = FlowRule { action, ..*flow };
        steps.rule(&rule).map_err(|error| match error {
            RequestError::Unsupported { refusal, .. } => SteeringError::NoFlowRules {
                interface: interface(),
                refusal,
            },
            error => error.into(),
        })?;
    }
    Ok((steps, steered, bound))
}

/// An interface whose flows reach a bound queue. Dropping it undoes everything; what can't be is printed
/// on the standard error.
#[derive(Debug)]
pub struct Steering {
    // Dropped first: headers must stay split as long as there is a binding.
    binding: Option<RxBinding>,
    steps: Steps<Kernel>,
    steered: Steered,
    // Dropped last: nobody else steers to the queues before all is undone.
    _claim: Claim,
}

impl Steering {
    /// The binding, if [`Plan::apply`] made one.
    #[must_use]
    pub fn binding(&self) -> Option<&RxBinding> {
        self.binding.as_ref()
    }

    /// How flows reach the queues.
    #[must_use]
    pub fn steered(&self) -> Steered {
        self.steered
    }

    /// Undoes everything; returns what could not be, as [`SteeringError::SplitInUse`] or
    /// [`SteeringError::RulesInUse`].
    ///
    /// After [`Plan::apply_unbound`] it waits for the queues to be returned, two seconds at most: end first what
    /// has bound them.
    #[must_use = "what could not be undone stays so"]
    pub fn undo(mut self) -> Vec<SteeringError> {
        drop(self.binding.take());
        self.steps.undo()
    }
}
