// SPDX-License-Identifier: GPL-2.0

//! A software NIC for tests of `net`. It has what no device of the other drivers has, and does what
//! safe code can do and a driver should not:
//!
//! - It drops what it is given in hard interrupt: skbs and XDP frames that are to be sent, and for
//!   each a fragment from a page pool of its own; and a fragment with interrupts off.
//! - It forgets the guard of its NAPI. The NAPI stays enabled, and polls because it claims to be
//!   short of memory, when the interface is down and while the driver is unloaded.
//! - It leaves its TX queue its state, which refers to the device that it is part of.
//! - It starts its TX queue while that has a state, and while the last state can be completed.
//! - With `overcomplete` it completes more bytes than were sent.
//! - With `overpad` it pads frames to more bytes than there can be.
//! - With `loopback` it receives what was sent, on a queue that it does not have, and with `unreadable` it
//!   marks every other one of those frames as unreadable to the CPU.
//!
//! Snippets of what does not compile are in `drivers/net/compile_fail`.

mod bin;
mod hardware;
mod loopback;
mod steering;

use kernel::{
    prelude::*,
    sync::Arc,
    time::hrtimer::{
        ArcHrTimerHandle,
        HrTimerPointer, //
    }, //
};
use net::{
    device::Locked,
    driver::{
        Driver,
        FeaturesSet, //
    },
    ethtool::ExtAck,
    features::Features,
    fragment::FragmentPool,
    napi::{
        self,
        Completion,
        Outcome,
        Receive,
        Scheduler, //
    },
    registration::{
        Config,
        Registration,
        Unregistered, //
    },
    skb::TxSkb,
    tx::{
        Transmit,
        TxCompletion,
        TxQueue, //
    },
    xdp::{
        self,
        HashType,
        Program,
        TransmitFrames,
        Xdp, //
    }, //
};

use self::{
    bin::{
        Bin,
        Item,
        PERIOD, //
    },
    hardware::Hardware,
    loopback::Loopback,
    steering::{
        Steering,
        RX_QUEUES, //
    }, //
};

module! {
    type: Test,
    name: "rtest",
    authors: ["The nobounce developers"],
    description: "Software network device for tests of its abstractions",
    license: "GPL",
    params: {
        overcomplete: bool {
            default: false,
            description: "Complete more bytes than were sent",
        },
        overpad: bool {
            default: false,
            description: "Pad frames to more bytes than there can be",
        },
        loopback: bool {
            default: false,
            description: "Receive what was sent",
        },
        unreadable: bool {
            default: false,
            description: "With loopback: say of every other frame that the CPU can't read it",
        },
    },
}

const MAX_MTU: u32 = 9000;
/// The size of a fragment, and how many of them a ring would take.
const FRAGMENT: u32 = 2048;
const FRAGMENTS: u32 = 64;

/// A TX queue.
struct Transmitter {
    bin: Arc<Bin>,
    loopback: Arc<Loopback>,
    napi: Scheduler<Nic>,
    /// The core shows a page pool as long as it is there, and so whether this is.
    _pool: FragmentPool<Nic>,
}

impl Transmit for Transmitter {
    fn transmit(&mut self, skb: TxSkb, queue: TxQueue<'_>, _more: bool) {
        queue.count_sent(skb.len());
        if module_parameters::overpad.value() {
            // Negative for what takes it as an `int`.
            drop(skb.pad_to(0x9000_0000));
        } else if module_parameters::loopback.value() {
            self.loopback.push(skb);
        } else {
            self.bin.push(Item::Skb(skb));
        }
        self.napi.schedule();
    }
}

#[vtable]
impl TransmitFrames for Transmitter {
    const FRAGMENTS: bool = true;

    fn transmit_frame(&mut self, frame: xdp::Frame, queue: TxQueue<'_>) -> Result<(), xdp::Frame> {
        queue.count_sent(frame.len());
        self.bin.push(Item::Frame(frame));
        Ok(())
    }

    fn flush_frames(&mut self) {
        self.napi.schedule();
    }
}

/// The state of the NAPI.
struct Lane {
    bin: Arc<Bin>,
    loopback: Arc<Loopback>,
    pool: Option<FragmentPool<Nic>>,
    /// With `overcomplete`.
    completion: Option<TxCompletion<Nic>>,
}

impl napi::Poll for Lane {
    type Driver = Nic;
    type Interrupt = ();

    fn complete(&mut self, napi: &Completion<'_, Nic>) -> bool {
        if let Some(completion) = &mut self.completion {
            completion.completed(napi, 1, 1, || 1, 1);
        }
        true
    }

    fn receive(&mut self, napi: &Receive<'_, Nic>) -> Outcome {
        let mut pool = self.pool.as_mut().and_then(|pool| pool.allocator(napi));

        if let Some(fragment) = pool.as_mut().and_then(|pool| pool.alloc()) {
            napi.device().count_received(FRAGMENT);
            self.bin.push(Item::Fragment(fragment));
        }
        if let Some(pool) = &mut pool {
            self.loopback.receive(pool, napi);
        }
        Outcome::Starved(0)
    }
}

/// State that all contexts may read: there is none.
struct Nic;

/// The control path's state.
struct Control {
    bin: Arc<Bin>,
    loopback: Arc<Loopback>,
    napi: Scheduler<Nic>,
    timer: Option<ArcHrTimerHandle<Bin>>,
    hardware: Hardware,
    steering: Steering,
}

/// Starts the TX queue.
fn start_tx(dev: Locked<'_, Nic>, control: &Control) -> Result<TxCompletion<Nic>> {
    let transmitter = Transmitter {
        bin: control.bin.clone(),
        loopback: control.loopback.clone(),
        napi: control.napi.clone(),
        _pool: FragmentPool::new(dev, None, 0, FRAGMENT, FRAGMENTS)?,
    };

    dev.start_tx(0, transmitter).map_err(|(error, _)| error)
}

/// Sees to it that the TX queue cannot be started now.
fn tx_is_busy(dev: Locked<'_, Nic>, control: &Control) -> Result {
    match start_tx(dev, control) {
        Err(error) if error == EBUSY => Ok(()),
        _ => Err(EPROTO),
    }
}

#[vtable]
impl Driver for Nic {
    type Control = Control;
    type Tx = Transmitter;
    type Napi = Lane;

    /// Works once: later the NAPI's guard is out.
    fn open(dev: Locked<'_, Self>, control: &mut Control) -> Result {
        let mut pool = FragmentPool::new(dev, None, 0, FRAGMENT, FRAGMENTS)?;
        let mut napi = dev.napi(0)?.unlisted()?.list();

        pool.attach(&napi)?;
        napi.state().pool = Some(pool);

        let completion = start_tx(dev, control)?;
        drop(dev.stop_tx(0));
        tx_is_busy(dev, control)?;
        drop(completion);
        let completion = start_tx(dev, control)?;
        tx_is_busy(dev, control)?;
        if module_parameters::overcomplete.value() {
            napi.state().completion = Some(completion);
        } else {
            drop(completion);
            tx_is_busy(dev, control)?;
        }
        control.timer = Some(control.bin.clone().start(PERIOD));
        core::mem::forget(napi.enable());
        dev.wake_tx(0);
        dev.device().set_carrier(true);
        Ok(())
    }

    fn set_features(
        _dev: Locked<'_, Self>,
        control: &mut Control,
        features: Features,
    ) -> Result<FeaturesSet> {
        if !features.contains(Features::NTUPLE) {
            control.steering.remove_rules();
        }
        Ok(FeaturesSet::All)
    }

    fn stop(dev: Locked<'_, Self>, control: &mut Control) {
        dev.device().set_carrier(false);

        let Ok(mut pool) = FragmentPool::new(dev, None, 0, FRAGMENT, FRAGMENTS) else {
            return;
        };
        let fragment = pool.allocator(&dev).and_then(|mut pool| pool.alloc());
        // Interrupts are off while this is held.
        let _items = control.bin.items.lock();

        drop(fragment);
    }
}

impl xdp::Metadata for Nic {
    fn hash(&self) -> Option<(u32, HashType)> {
        None
    }

    fn vlan_tag(&self) -> Option<u16> {
        None
    }

    fn timestamp(&self) -> Option<u64> {
        None
    }
}

impl Xdp for Nic {
    type Metadata = Self;

    /// It runs no programs.
    fn set_program(
        _dev: Locked<'_, Self>,
        _control: &mut Control,
        program: Option<Program>,
        _extack: &ExtAck<'_>,
    ) -> Result {
        program.map_or(Ok(()), |_| Err(EOPNOTSUPP))
    }
}

/// The module: the NIC.
struct Test(#[expect(dead_code)] Registration<'static, Nic>);

impl kernel::Module for Test {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let (bin, loopback) = (Bin::new()?, Loopback::new()?);
        let mut nic = Unregistered::new_virtual(Config {
            max_mtu: MAX_MTU,
            fixed_features: Features::SG,
            software_stats: true,
            ..Config::new(RX_QUEUES, 1)
        })?
        .with_xdp()
        .with_link_settings()
        .with_channels()
        .with_rings()
        .with_rss()
        .with_rss_contexts()
        .with_flow_rules()
        .with_coalescing();
        let config = napi::Config {
            rx: 0..RX_QUEUES,
            tx: 0..1,
            irq: None,
        };
        let lane = Lane {
            bin: bin.clone(),
            loopback: loopback.clone(),
            pool: None,
            completion: None,
        };
        let napi = nic.add_napi(config, (), lane)?;
        let control = Control {
            bin,
            loopback,
            napi,
            timer: None,
            hardware: Hardware::new(),
            steering: Steering::new(),
        };

        // SAFETY: The module keeps it, and drops it before it goes.
        Ok(Self(unsafe { nic.register(Nic, control)? }))
    }
}
