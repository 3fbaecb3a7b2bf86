// SPDX-License-Identifier: GPL-2.0

//! A pair of software NICs, joined by wires in memory: the smallest driver on `net`.
//!
//! Each NIC has two TX queues, two NAPIs and four RX queues. What one NIC puts on TX queue `i`, NAPI
//! `i` of the other copies to a page, and receives on RX queue `2 * i`, or the one after it if it is
//! IPv6. Then it schedules the sender's NAPI, as an interrupt would. Checksums that are still to be
//! filled in are passed up as `CHECKSUM_PARTIAL`, segments that are not cut as merged. There is no bus,
//! no DMA and no interrupt: only what every driver needs.

use kernel::prelude::*;
use net::{
    device::{
        DeviceRef,
        Locked, //
    },
    driver::Driver,
    features::Features,
    fragment::FragmentPool,
    napi::{
        self,
        Napi,
        Outcome,
        Receive,
        Scheduler, //
    },
    registration::{
        Config,
        Registration,
        Unregistered, //
    },
    skb::{
        self,
        RxMetadata,
        RxSkb,
        TxSkb, //
    },
    spsc,
    tx, //
};

module! {
    type: Rwire,
    name: "rwire",
    authors: ["The nobounce developers"],
    description: "Pair of software network devices joined in memory",
    license: "GPL",
}

/// NAPIs, and TX queues.
const NAPIS: u32 = 2;
const RX_QUEUES: u32 = 4;
/// Frames that a wire holds.
const RING: u32 = 256;
const MAX_MTU: u32 = 9000;
/// A frame with a VLAN tag, with the skb's headroom and `skb_shared_info`.
const BUFFER: u32 = skb::HEADROOM + skb::ETH_HLEN + 4 + MAX_MTU + skb::TAILROOM;

/// State that all contexts may read: the other NIC, and its NAPIs' schedulers.
struct Nic {
    peer: DeviceRef<Nic>,
    peer_napis: KVec<Scheduler<Nic>>,
}

/// The producers of the wires that no TX queue has.
type Wires = KVec<Option<spsc::Producer<TxSkb>>>;

/// The producer of a wire, in a TX queue.
struct Transmitter {
    wire: spsc::Producer<TxSkb>,
    receiver: Scheduler<Nic>,
}

impl tx::Transmit for Transmitter {
    fn transmit(&mut self, skb: TxSkb, queue: tx::TxQueue<'_>, more: bool) {
        skb.timestamp();
        queue.count_sent(skb.len());
        // There is room: the queue is stopped before the wire is full.
        if let Some(vacant) = self.wire.vacant() {
            vacant.push(skb);
        }
        self.wire.publish();
        if queue.maybe_stop(|| self.wire.available(), 1, RING / 2) || !more {
            self.receiver.schedule();
        }
    }
}

/// The state of a NAPI.
struct Lane {
    /// The consumer of a wire.
    from: spsc::Consumer<TxSkb>,
    pool: Option<FragmentPool<Nic>>,
    /// The fill level of the wire in the other direction, and its TX queue's completion.
    to: spsc::Observer<TxSkb>,
    completion: Option<tx::TxCompletion<Nic>>,
}

impl napi::Poll for Lane {
    type Driver = Nic;
    type Interrupt = ();

    fn complete(&mut self, napi: &napi::Completion<'_, Nic>) -> bool {
        if let Some(completion) = &mut self.completion {
            completion.completed(napi, 0, 0, || self.to.available(), RING / 2);
        }
        true
    }

    fn receive(&mut self, napi: &Receive<'_, Nic>) -> Outcome {
        let Some(mut pool) = self.pool.as_mut().and_then(|pool| pool.allocator(napi)) else {
            return Outcome::Done(0);
        };
        let (mut received, mut starved) = (0, false);

        while received < napi.budget() && self.from.peek().is_some() {
            let mut buffer = pool.alloc();
            let Some(sent) = buffer.as_ref().and_then(|_| self.from.pop()) else {
                starved = buffer.is_none();
                break;
            };
            // CAST: There are few queues.
            let queue = 2 * napi.index() as u16 + u16::from(sent.protocol() == skb::ETH_P_IPV6);
            if let Some(skb) = RxSkb::copy_sent(&mut buffer, &sent, napi) {
                napi.device().count_received(skb.len());
                let metadata = RxMetadata::of_sent(queue, &sent, &skb);
                napi.receive(skb, &metadata);
            }
            napi.consume(sent);
            received += 1;
        }
        self.from.release();

        let senders = &napi.device().driver().peer_napis;
        if let (Some(sender), true) = (senders.get(napi.index() as usize), received != 0) {
            sender.schedule();
        }
        match (napi.budget() - received, starved) {
            (0, _) => Outcome::More,
            (_, true) => Outcome::Starved(received),
            (_, false) => Outcome::Done(received),
        }
    }
}

impl Nic {
    /// Starts NAPI and TX queue `index`.
    fn start(dev: Locked<'_, Self>, wires: &mut Wires, index: u32) -> Result {
        let at = index as usize;
        let receiver = dev.device().driver().peer_napis.get(at).ok_or(EINVAL)?;
        let mut pool = FragmentPool::new(dev, None, 2 * index, BUFFER, RING)?;
        let mut napi = dev.napi(index)?.unlisted()?.list();
        let transmitter = Transmitter {
            wire: wires.get_mut(at).and_then(Option::take).ok_or(EBUSY)?,
            receiver: receiver.clone(),
        };

        pool.attach(&napi)?;
        napi.state().pool = Some(pool);
        let completion = dev.start_tx(index, transmitter);
        napi.state().completion = Some(completion.map_err(|(error, _)| error)?);
        napi.enable();
        dev.wake_tx(index);
        Ok(())
    }

    /// Stops NAPI and TX queue `index`.
    fn halt(dev: Locked<'_, Self>, wires: &mut Wires, index: u32) {
        if let (Some(tx), Some(wire)) = (dev.stop_tx(index), wires.get_mut(index as usize)) {
            *wire = Some(tx.wire);
        }
        let Some(mut napi) = dev.napi(index).ok().and_then(Napi::quiesce) else {
            return;
        };
        let lane = napi.state();

        lane.completion = None;
        while lane.from.pop().is_some() {}
        lane.from.release();
        if let Some(mut pool) = lane.pool.take() {
            pool.detach(&napi);
        }
        napi.unlist();
    }
}

#[vtable]
impl Driver for Nic {
    type Control = Wires;
    type Tx = Transmitter;
    type Napi = Lane;

    fn open(dev: Locked<'_, Self>, wires: &mut Wires) -> Result {
        let nic = dev.device().driver();

        for index in 0..NAPIS {
            if let Err(error) = Self::start(dev, wires, index) {
                (0..NAPIS).for_each(|index| Self::halt(dev, wires, index));
                return Err(error);
            }
        }
        if nic.peer.is_running() {
            dev.device().set_carrier(true);
            nic.peer.set_carrier(true);
        }
        Ok(())
    }

    fn stop(dev: Locked<'_, Self>, wires: &mut Wires) {
        let nic = dev.device().driver();

        dev.device().set_carrier(false);
        nic.peer.set_carrier(false);
        (0..NAPIS).for_each(|index| Self::halt(dev, wires, index));
    }
}

/// A NIC that is not wired yet.
struct Unwired {
    nic: Unregistered<'static, Nic>,
    wires: Wires,
    napis: KVec<Scheduler<Nic>>,
}

impl Unwired {
    fn new() -> Result<Self> {
        let nic = Unregistered::new_virtual(Config {
            max_mtu: MAX_MTU,
            max_tso: Some(MAX_MTU),
            fixed_features: Features::SG
                .with(Features::HW_CSUM)
                .with(Features::TSO)
                .with(Features::TSO6),
            software_stats: true,
            ..Config::new(RX_QUEUES, NAPIS)
        })?;

        Ok(Self {
            nic,
            wires: KVec::new(),
            napis: KVec::new(),
        })
    }

    fn add_napi(
        &mut self,
        index: u32,
        from: spsc::Consumer<TxSkb>,
        to: spsc::Producer<TxSkb>,
    ) -> Result {
        let config = napi::Config {
            rx: 2 * index..2 * index + 2,
            tx: index..index + 1,
            irq: None,
        };
        let lane = Lane {
            from,
            pool: None,
            to: to.observer(),
            completion: None,
        };

        self.napis
            .push(self.nic.add_napi(config, (), lane)?, GFP_KERNEL)?;
        Ok(self.wires.push(Some(to), GFP_KERNEL)?)
    }
}

/// The module: both NICs.
struct Rwire(#[expect(dead_code)] [Registration<'static, Nic>; 2]);

impl kernel::Module for Rwire {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let (mut a, mut b) = (Unwired::new()?, Unwired::new()?);

        for index in 0..NAPIS {
            let (to_b, from_a) = spsc::new(RING)?;
            let (to_a, from_b) = spsc::new(RING)?;

            a.add_napi(index, from_b, to_b)?;
            b.add_napi(index, from_a, to_a)?;
        }

        let for_a = Nic {
            peer: b.nic.device(),
            peer_napis: b.napis,
        };
        let for_b = Nic {
            peer: a.nic.device(),
            peer_napis: a.napis,
        };
        // SAFETY: The module keeps both, and drops them before it goes.
        unsafe {
            Ok(Self([
                a.nic.register(for_a, a.wires)?,
                b.nic.register(for_b, b.wires)?,
            ]))
        }
    }
}
