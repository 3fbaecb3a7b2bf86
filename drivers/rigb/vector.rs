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
    dim::Dim,
    ethtool::MESSAGE_LINK,
    napi::{
        self,
        Outcome,
        Scheduler, //
    },
    stats::SharedCounter,
    xdp::Pool, //
};

use crate::{
    ethtool::coalesce::Moderator,
    hw::Hw,
    netdev::Adapter,
    rx,
    tx, //
};

/// What a queue pair's NAPI works on.
///
/// `rx` is missing while the queue is being restarted, both while the interface is down.
pub(crate) struct QueuePair<'bound> {
    pub(crate) rx: Option<rx::Queue<'bound>>,
    pub(crate) tx: Option<tx::Completion<'bound>>,
    /// What AF_XDP sockets have bound to the queues.
    pub(crate) pool: Option<Pool>,
    /// Adapts how often the interrupt comes, if the user wants that.
    pub(crate) dim: Option<Dim<Moderator<'bound>>>,
    dev: DeviceRef<Adapter<'bound>>,
    index: u32,
}

impl<'bound> QueuePair<'bound> {
    pub(crate) fn new(dev: DeviceRef<Adapter<'bound>>, index: u32) -> Self {
        Self {
            rx: None,
            tx: None,
            pool: None,
            dim: None,
            dev,
            index,
        }
    }
}

impl QueuePair<'_> {
    /// Sends what AF_XDP sockets have; returns whether there may be more.
    #[inline]
    fn send_xsk(&mut self) -> bool {
        let Some(pool) = &mut self.pool else {
            return false;
        };
        // Without a link nothing would be sent.
        if !self.dev.has_carrier() {
            return false;
        }
        let more = self
            .dev
            .transmit_frames(self.index, |tx, queue| tx.transmit_xsk(pool, queue));

        more == Some(true)
    }
}

impl<'bound> napi::Poll for QueuePair<'bound> {
    type Driver = Adapter<'bound>;
    type Interrupt = Unmask<'bound>;

    fn poll(&mut self, napi: &napi::Context<'_>, budget: u32) -> Outcome {
        let sent = match &mut self.tx {
            Some(tx) => tx.complete(self.dev.tx_queue(self.index), self.pool.as_mut(), budget),
            None => true,
        };
        if budget == 0 {
            return Outcome::Done(0);
        }

        let more = self.send_xsk();
        let (received, starved) = match &mut self.rx {
            Some(rx) => rx.receive(self.pool.as_mut(), napi, &self.dev, budget),
            None => (0, false),
        };

        if !sent || more || received >= budget {
            Outcome::More
        } else if starved {
            Outcome::Starved(received)
        } else {
            if let (Some(dim), Some(rx)) = (&mut self.dim, &self.rx) {
                let (packets, bytes) = rx.received();

                dim.sample(packets, bytes);
            }
            Outcome::Done(received)
        }
    }

    fn unmask(interrupt: &Unmask<'bound>) {
        interrupt.hw.unmask(interrupt.vector);
    }
}

/// How a vector is unmasked when its NAPI is through.
pub(crate) struct Unmask<'bound> {
    hw: Arc<Hw<'bound>>,
    vector: u32,
}

impl<'bound> Unmask<'bound> {
    pub(crate) fn new(hw: Arc<Hw<'bound>>, vector: u32) -> Self {
        Self { hw, vector }
    }
}

/// The interrupt handlers.
pub(crate) enum Interrupt<'bound> {
    /// A queue pair's: the device has masked the vector, NAPI unmasks it.
    Queue(Scheduler<QueuePair<'bound>>),
    /// The link's.
    Link {
        hw: Arc<Hw<'bound>>,
        dev: DeviceRef<Adapter<'bound>>,
        vector: u32,
        watch: Arc<LinkWatch>,
    },
}

/// What others know of the link's interrupt, and tell it.
pub(crate) struct LinkWatch {
    interrupts: SharedCounter,
    messages: Atomic<u32>,
}

impl LinkWatch {
    pub(crate) fn new() -> Self {
        Self {
            interrupts: SharedCounter::new(),
            messages: Atomic::new(0),
        }
    }

    /// How often the interrupt came.
    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts.get()
    }

    /// What is said in the log (`NETIF_MSG_*`). There is not much to say: only of the link.
    pub(crate) fn messages(&self) -> u32 {
        self.messages.load(Relaxed)
    }

    pub(crate) fn set_messages(&self, level: u32) {
        self.messages.store(level, Relaxed);
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
                watch,
            } => {
                watch.interrupts.add(1);
                if hw.link_causes() & icr::LSC != 0 {
                    let up = hw.link_is_up();

                    dev.set_carrier(up);
                    if up {
                        // Xsk have not been sent for without it.
                        hw.trigger_all(*vector);
                    }
                    if watch.messages() & MESSAGE_LINK != 0 {
                        dev.log_link(up);
                    }
                }
                hw.unmask(*vector);
            }
        }
        IrqReturn::Handled
    }
}
