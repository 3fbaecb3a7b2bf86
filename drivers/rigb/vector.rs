// SPDX-License-Identifier: GPL-2.0

//! One MSI-X vector, one NAPI, one pair of an RX and a TX queue.

use i82576::regs::icr;
use kernel::{
    irq::{
        Handler,
        IrqReturn, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use net::{
    device::DeviceRef,
    ethtool::MESSAGE_LINK,
    napi::{
        self,
        Completion,
        Outcome,
        Receive,
        Scheduler, //
    },
    stats::SharedCounter, //
};

use crate::{
    hw::Hw,
    netdev::Adapter,
    rx,
    tx, //
};

/// The state of a queue pair's NAPI.
///
/// `rx` is `None` while the queue is being restarted, or until the device is reset if that failed; both are
/// while the interface is down.
#[derive(Default)]
pub(crate) struct QueuePair<'bound> {
    pub(crate) rx: Option<rx::Queue<'bound>>,
    pub(crate) tx: Option<tx::Completion<'bound>>,
}

impl<'bound> QueuePair<'bound> {
    /// Transmits frames of AF_XDP sockets; returns whether there may be more.
    #[inline]
    fn send_xsk(&mut self, napi: &Receive<'_, Adapter<'bound>>) -> bool {
        let (Some(pool), Some(rx::Queue::Xsk(_))) = (napi.pool(napi.index()), &self.rx) else {
            return false;
        };
        // Without carrier nothing would be sent.
        if !napi.device().has_carrier() {
            return false;
        }
        let more = napi.transmit_frames(napi.index(), |tx, queue| tx.transmit_xsk(pool, queue));

        more == Some(true)
    }
}

impl<'bound> napi::Poll for QueuePair<'bound> {
    type Driver = Adapter<'bound>;
    type Interrupt = Vector<'bound>;

    fn complete(&mut self, napi: &Completion<'_, Adapter<'bound>>) -> bool {
        match &mut self.tx {
            Some(tx) => tx.complete(napi),
            None => true,
        }
    }

    fn receive(&mut self, napi: &Receive<'_, Adapter<'bound>>) -> Outcome {
        let more = self.send_xsk(napi);
        let Some(rx) = &mut self.rx else {
            return if more {
                Outcome::More
            } else {
                Outcome::Done(0)
            };
        };
        let (received, starved) = rx.receive(napi);

        if more || received >= napi.budget() {
            Outcome::More
        } else if starved {
            Outcome::Starved(received)
        } else {
            napi.sample(|| rx.received());
            Outcome::Done(received)
        }
    }

    #[cold]
    fn watch(&mut self, napi: &Receive<'_, Adapter<'bound>>) {
        let adapter = napi.device().driver();

        // This poll unmasks its own interrupt. Nobody polls for the link's: it may have been lost, too, or its
        // handler may have misread a register.
        if napi.index() == 0 {
            adapter.hw.unmask_link(adapter.schedulers.len());
            if adapter.hw.link_is_up() != napi.device().has_carrier() {
                adapter.hw.trigger_link();
            }
        }
        // It would wait for ever. One that could not be started has no ring.
        if self.rx.as_mut().is_none_or(rx::Queue::is_stuck) {
            napi.device().schedule_tx_timeout();
        }
    }
}

/// The interrupt vector of a queue pair.
pub(crate) struct Vector<'bound> {
    hw: Arc<Hw<'bound>>,
    index: u16,
}

impl<'bound> Vector<'bound> {
    pub(crate) fn new(hw: Arc<Hw<'bound>>, index: u16) -> Self {
        Self { hw, index }
    }
}

impl napi::Interrupt for Vector<'_> {
    const MAY_BE_LOST: bool = true;

    fn unmask(&self) {
        self.hw.unmask(self.index.into());
    }

    fn set_interval(&self, us: u16) {
        self.hw.set_interval(self.index, us.into());
    }
}

/// The interrupt handlers.
pub(crate) enum Interrupt<'bound> {
    /// A queue pair's: the device has masked the vector, NAPI unmasks it.
    Queue(Scheduler<Adapter<'bound>>),
    /// The link's.
    Link {
        hw: Arc<Hw<'bound>>,
        dev: DeviceRef<Adapter<'bound>>,
        vector: u32,
        state: Arc<LinkState>,
    },
}

/// The state that the link's interrupt shares with others.
pub(crate) struct LinkState {
    interrupts: SharedCounter,
    msg_enable: Atomic<u32>,
}

impl LinkState {
    pub(crate) fn new() -> Self {
        Self {
            interrupts: SharedCounter::new(),
            msg_enable: Atomic::new(0),
        }
    }

    /// How often the interrupt was raised.
    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts.get()
    }

    /// The message level (`NETIF_MSG_*`). Only link messages exist.
    pub(crate) fn msg_enable(&self) -> u32 {
        self.msg_enable.load(Relaxed)
    }

    pub(crate) fn set_msg_enable(&self, level: u32) {
        self.msg_enable.store(level, Relaxed);
    }
}

impl Handler for Interrupt<'_> {
    fn handle(&self) -> IrqReturn {
        match self {
            Self::Queue(napi) => napi.schedule(),
            Self::Link {
                hw,
                dev,
                vector,
                state,
            } => {
                state.interrupts.add(1);
                if hw.link_causes() & icr::LSC != 0 {
                    let up = hw.link_is_up();

                    dev.set_carrier(up);
                    if up {
                        hw.restore_flow_control();
                        hw.keep_tx_rates();
                        // AF_XDP TX pauses without carrier: kick it.
                        hw.trigger_all(*vector);
                    }
                    if state.msg_enable() & MESSAGE_LINK != 0 {
                        dev.log_link(up);
                    }
                }
                hw.unmask(*vector);
            }
        }
        IrqReturn::Handled
    }
}
