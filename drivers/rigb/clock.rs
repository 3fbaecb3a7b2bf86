// SPDX-License-Identifier: GPL-2.0

//! The device's clock, and the timestamps that it takes.
//!
//! An RX timestamp is in its register before the frame is in memory, and NAPI reads it. A TX
//! timestamp comes some time after the frame was posted to the device, which has no interrupt for
//! it: the clock's worker looks for it. There is one register for each direction, so that one frame
//! at a time can wait for its timestamp; others are sent without.

use i82576::{
    clock::{
        self,
        Clock as Counter, //
    },
    stamping::{
        Messages,
        Stamping, //
    },
};
use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLockIrq, //
    },
    time::{
        Delta,
        Instant,
        Monotonic,
        Msecs, //
    }, //
};
use net::{
    hwtstamp::{
        self,
        AwaitingTimestamp,
        RxFilter,
        TxTimestampStats,
        TxType, //
    },
    ptp::{
        self,
        SystemTime, //
    },
    skb::TxSkb,
    stats::SharedCounter,
};

use crate::hw::Hw;

/// How often the worker looks after the clock.
const PERIOD: Msecs = 2000;

/// The clock counts from another moment after this time.
const ADVANCE: Delta = Delta::from_secs(1);

/// How often it looks for a TX timestamp.
const SOON: Msecs = 1;

/// An RX timestamp that NAPI has not read for so long is of a frame that was dropped: longer than a
/// busy processor lets NAPI wait.
const LEFT: Delta = Delta::from_secs(5);

/// It gives up after this time. A frame can wait behind pause frames.
const PATIENCE: Delta = Delta::from_secs(15);

/// The sent frames that can get timestamps, besides none.
pub(crate) const TX_TYPES: &[TxType] = &[TxType::On];

/// The received messages that can get timestamps, besides none.
pub(crate) const RX_FILTERS: &[RxFilter] = &[
    RxFilter::PTP_V2_L2_SYNC,
    RxFilter::PTP_V2_L2_DELAY_REQ,
    RxFilter::PTP_V2_L2_EVENT,
];

/// The timestamps that the device takes for what a user asks for.
///
/// # Errors
///
/// `ERANGE` if it cannot.
pub(crate) fn stamping(wanted: hwtstamp::Timestamping) -> Result<Stamping> {
    let rx = match wanted.rx {
        RxFilter::NONE => Messages::None,
        RxFilter::PTP_V2_L2_SYNC => Messages::Sync,
        RxFilter::PTP_V2_L2_DELAY_REQ => Messages::DelayReq,
        RxFilter::PTP_V2_L2_EVENT => Messages::Event,
        _ => return Err(ERANGE),
    };
    let tx = match wanted.tx {
        TxType::Off => false,
        TxType::On => true,
        TxType::OneStepSync | TxType::OneStepP2p => return Err(ERANGE),
    };

    Ok(Stamping { tx, rx })
}

/// The timestamps that the device takes, as a user sees them.
pub(crate) fn shown(stamping: &Stamping) -> hwtstamp::Timestamping {
    hwtstamp::Timestamping {
        tx: if stamping.tx { TxType::On } else { TxType::Off },
        rx: match stamping.rx {
            Messages::None => RxFilter::NONE,
            Messages::Sync => RxFilter::PTP_V2_L2_SYNC,
            Messages::DelayReq => RxFilter::PTP_V2_L2_DELAY_REQ,
            Messages::Event => RxFilter::PTP_V2_L2_EVENT,
        },
    }
}

/// What counts the device's time.
struct Time {
    counter: Counter,
    /// When it was last set.
    since: Instant<Monotonic>,
}

/// A frame that is being sent.
struct Waiting {
    frame: AwaitingTimestamp,
    /// Its TX queue.
    queue: u16,
    since: Instant<Monotonic>,
}

/// The clock.
#[pin_data]
pub(crate) struct Clock<'bound> {
    hw: Arc<Hw<'bound>>,
    #[pin]
    time: SpinLockIrq<Time>,
    /// The frame that waits for its timestamp.
    #[pin]
    waiting: SpinLockIrq<Option<Waiting>>,
    /// Frames get timestamps when they are sent.
    tx: Atomic<bool>,
    /// Since when the worker has seen an RX timestamp that was not read. It is read with the lock
    /// held.
    #[pin]
    rx_left: SpinLockIrq<Option<Instant<Monotonic>>>,
    delivered: SharedCounter,
    lost: SharedCounter,
    busy: SharedCounter,
}

/// A clock that the system knows.
pub(crate) type Registration<'bound> = ptp::Registration<'bound, Clock<'bound>>;

impl<'bound> Clock<'bound> {
    /// A clock that stands at the system's time.
    pub(crate) fn new(hw: Arc<Hw<'bound>>) -> impl PinInit<Self, Error> + use<'bound> {
        hw.start_system_time();
        let counter = Counter::new(hw.system_time().unwrap_or(0), ptp::system_time());

        try_pin_init!(Self {
            hw,
            time <- new_spinlock_irq!(Time {
                counter,
                since: Instant::now(),
            }),
            waiting <- new_spinlock_irq!(None),
            tx: Atomic::new(false),
            rx_left <- new_spinlock_irq!(None),
            delivered: SharedCounter::new(),
            lost: SharedCounter::new(),
            busy: SharedCounter::new(),
        }? Error)
    }

    /// Goes on after a reset of the device, if there was one, and takes these timestamps from now on.
    pub(crate) fn start(&self, stamping: &Stamping) {
        let mut time = self.time.lock();

        if self.hw.system_time().is_none() {
            time.change(&self.hw, Counter::advance);
            self.hw.start_system_time();
            time.change(&self.hw, |counter, now| counter.restart(now, 0));
        }
        drop(time);
        self.set_stamping(stamping);
    }

    /// Takes these timestamps from now on.
    pub(crate) fn set_stamping(&self, stamping: &Stamping) {
        self.hw.set_stamping(stamping);
        self.tx.store(stamping.tx, Relaxed);
    }

    /// Has a frame wait for its TX timestamp. Returns whether it does: if so
    /// [`Registration::schedule`] has to be called.
    pub(crate) fn await_stamp(&self, frame: &mut TxSkb, queue: u16) -> bool {
        if !self.tx.load(Relaxed) {
            return false;
        }
        let mut waiting = self.waiting.lock();

        if waiting.is_some() {
            self.busy.add(1);
            return false;
        }
        // One that came too late.
        self.hw.take_tx_stamp();
        *waiting = Some(Waiting {
            frame: frame.await_timestamp(),
            queue,
            since: Instant::now(),
        });
        true
    }

    /// Waits for no timestamp of TX queue `queue` any more: what was posted is not sent.
    pub(crate) fn forget(&self, queue: u16) {
        let mut waiting = self.waiting.lock();

        if waiting.as_ref().is_some_and(|frame| frame.queue == queue) {
            let frame = waiting.take();

            drop(waiting);
            drop(frame);
            self.lost.add(1);
        }
    }

    /// The RX timestamp of the frame of which the device reports that it has one, in nanoseconds.
    pub(crate) fn rx_stamp(&self) -> Option<u64> {
        let mut left = self.rx_left.lock();
        let system = self.hw.take_rx_stamp();

        *left = None;
        drop(left);
        let system = system?;
        Some(self.time.lock().counter.at(system))
    }

    /// TX timestamp statistics.
    pub(crate) fn tx_stats(&self) -> TxTimestampStats {
        TxTimestampStats {
            delivered: self.delivered.get(),
            lost: self.lost.get(),
            busy: self.busy.get(),
        }
    }

    /// Looks for the timestamp of the frame that waits. Returns whether it still does.
    fn look(&self) -> bool {
        let mut waiting = self.waiting.lock();
        let Some(Waiting { since, .. }) = &*waiting else {
            return false;
        };
        let timestamp = self.hw.take_tx_stamp();

        if timestamp.is_none() && since.elapsed() < PATIENCE {
            return true;
        }
        let done = waiting.take();

        drop(waiting);
        if let (Some(system), Some(Waiting { frame, .. })) = (timestamp, done) {
            self.delivered.add(1);
            frame.deliver(self.time.lock().counter.at(system));
        } else {
            self.lost.add(1);
        }
        false
    }

    /// Discards an RX timestamp whose frame was dropped: no other would come.
    fn look_after_receive(&self) {
        let mut left = self.rx_left.lock();

        *left = match *left {
            _ if !self.hw.has_rx_stamp() => None,
            // NAPI may be late.
            Some(since) if since.elapsed() > LEFT => {
                self.hw.take_rx_stamp();
                None
            }
            Some(since) => Some(since),
            None => Some(Instant::now()),
        };
    }
}

impl Time {
    /// The system time by which the counter counts. While the device's does not go, after a reset or
    /// when it is gone, the kernel's does, as though the device's had just begun anew.
    fn system(&mut self, hw: &Hw<'_>) -> u64 {
        hw.system_time().unwrap_or_else(|| {
            // It does not go back.
            let elapsed = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(0);

            self.counter.restart(0, elapsed);
            self.since = Instant::now();
            0
        })
    }

    /// Changes the counter, which counts from now on, given the system time.
    fn change(&mut self, hw: &Hw<'_>, change: impl FnOnce(&mut Counter, u64)) {
        let now = self.system(hw);

        change(&mut self.counter, now);
        self.since = Instant::now();
    }
}

impl ptp::Clock for Clock<'_> {
    const NAME: &'static CStr = c"rigb";
    const MAX_ADJUSTMENT: i32 = clock::MAX_ADJUSTMENT;

    fn time(&self, mut system: SystemTime<'_>) -> u64 {
        let mut time = self.time.lock();
        let now = system.around(|| time.system(&self.hw));

        time.counter.at(now)
    }

    fn set(&self, new: u64) {
        self.time
            .lock()
            .change(&self.hw, |counter, now| counter.set(now, new));
    }

    fn shift(&self, nanoseconds: i64) {
        self.time.lock().counter.shift(nanoseconds);
    }

    fn set_rate(&self, scaled_ppm: i64) {
        self.time
            .lock()
            .change(&self.hw, |counter, now| counter.set_rate(now, scaled_ppm));
    }

    fn work(&self) -> Msecs {
        let mut time = self.time.lock();

        // Each time loses a part of a nanosecond.
        if time.since.elapsed() > ADVANCE {
            time.change(&self.hw, Counter::advance);
        }
        drop(time);
        self.look_after_receive();
        if self.look() {
            SOON
        } else {
            PERIOD
        }
    }
}
