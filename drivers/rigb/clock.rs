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
    timestamping::{
        Messages,
        Timestamping, //
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

/// How often the worker runs while no frame waits for a TX timestamp.
const PERIOD: Msecs = 2000;

/// How long the clock counts from the same moment.
const ADVANCE: Delta = Delta::from_secs(1);

/// How often it polls for a TX timestamp.
const TX_POLL: Msecs = 1;

/// An RX timestamp that NAPI has not read for this long belongs to a frame that was dropped. A busy
/// CPU doesn't delay NAPI as long.
const RX_TIMEOUT: Delta = Delta::from_secs(5);

/// A TX timestamp is lost after this time. Flow control may hold a frame back.
const TX_TIMEOUT: Delta = Delta::from_secs(15);

/// The sent frames that can get timestamps, besides none.
pub(crate) const TX_TYPES: &[TxType] = &[TxType::On];

/// The received messages that can get timestamps, besides none.
pub(crate) const RX_FILTERS: &[RxFilter] = &[
    RxFilter::PTP_V2_L2_SYNC,
    RxFilter::PTP_V2_L2_DELAY_REQ,
    RxFilter::PTP_V2_L2_EVENT,
];

/// The device's settings for the timestamps that a user asks for.
///
/// # Errors
///
/// `ERANGE` if the device doesn't support them.
pub(crate) fn timestamping(wanted: hwtstamp::Timestamping) -> Result<Timestamping> {
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

    Ok(Timestamping { tx, rx })
}

/// The device's settings, as the user sees them.
pub(crate) fn user_timestamping(timestamping: &Timestamping) -> hwtstamp::Timestamping {
    hwtstamp::Timestamping {
        tx: if timestamping.tx {
            TxType::On
        } else {
            TxType::Off
        },
        rx: match timestamping.rx {
            Messages::None => RxFilter::NONE,
            Messages::Sync => RxFilter::PTP_V2_L2_SYNC,
            Messages::DelayReq => RxFilter::PTP_V2_L2_DELAY_REQ,
            Messages::Event => RxFilter::PTP_V2_L2_EVENT,
        },
    }
}

/// Converts the device's time.
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
    /// When the worker first saw an RX timestamp that NAPI has not read. The lock also protects
    /// reading it.
    #[pin]
    rx_left: SpinLockIrq<Option<Instant<Monotonic>>>,
    delivered: SharedCounter,
    lost: SharedCounter,
    busy: SharedCounter,
}

/// A registered clock.
pub(crate) type Registration<'bound> = ptp::Registration<'bound, Clock<'bound>>;

impl<'bound> Clock<'bound> {
    /// A clock that is set to the system's time.
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

    /// Resumes the clock if the device has been reset, and takes these timestamps from now on.
    pub(crate) fn start(&self, timestamping: &Timestamping) {
        let mut time = self.time.lock();

        if self.hw.system_time().is_none() {
            time.change(&self.hw, Counter::advance);
            self.hw.start_system_time();
            time.change(&self.hw, |counter, now| counter.restart(now, 0));
        }
        drop(time);
        self.set_timestamping(timestamping);
    }

    /// Takes these timestamps from now on.
    pub(crate) fn set_timestamping(&self, timestamping: &Timestamping) {
        self.hw.set_timestamping(timestamping);
        self.tx.store(timestamping.tx, Relaxed);
    }

    /// Has a frame wait for its TX timestamp. Returns whether it does: then
    /// [`Registration::schedule`] must be called.
    pub(crate) fn await_timestamp(&self, frame: &mut TxSkb, queue: u16) -> bool {
        if !self.tx.load(Relaxed) {
            return false;
        }
        let mut waiting = self.waiting.lock();

        if waiting.is_some() {
            self.busy.add(1);
            return false;
        }
        // A timestamp that came after its timeout.
        self.hw.take_tx_timestamp();
        *waiting = Some(Waiting {
            frame: frame.await_timestamp(),
            queue,
            since: Instant::now(),
        });
        true
    }

    /// Gives up on a timestamp of TX queue `queue`, whose posted frames are not sent.
    pub(crate) fn forget(&self, queue: u16) {
        let mut waiting = self.waiting.lock();

        if waiting.as_ref().is_some_and(|frame| frame.queue == queue) {
            let frame = waiting.take();

            drop(waiting);
            drop(frame);
            self.lost.add(1);
        }
    }

    /// The timestamp of a received frame whose descriptor says that it has one, in nanoseconds.
    pub(crate) fn rx_timestamp(&self) -> Option<u64> {
        let mut left = self.rx_left.lock();
        let system = self.hw.take_rx_timestamp();

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

    /// Delivers the TX timestamp if it is there. Returns whether a frame still waits for it.
    fn poll_tx_timestamp(&self) -> bool {
        let mut waiting = self.waiting.lock();
        let Some(Waiting { since, .. }) = &*waiting else {
            return false;
        };
        let timestamp = self.hw.take_tx_timestamp();

        if timestamp.is_none() && since.elapsed() < TX_TIMEOUT {
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

    /// Discards an RX timestamp whose frame was dropped: the device would take no other.
    fn discard_stale_rx_timestamp(&self) {
        let mut left = self.rx_left.lock();

        *left = match *left {
            _ if !self.hw.has_rx_timestamp() => None,
            // NAPI may be late.
            Some(since) if since.elapsed() > RX_TIMEOUT => {
                self.hw.take_rx_timestamp();
                None
            }
            Some(since) => Some(since),
            None => Some(Instant::now()),
        };
    }
}

impl Time {
    /// The system time that the counter is based on. While the device's is stopped, after a reset or
    /// when the device is gone, the kernel's clock stands in for it, as though the device's had just
    /// restarted.
    fn system(&mut self, hw: &Hw<'_>) -> u64 {
        hw.system_time().unwrap_or_else(|| {
            // The monotonic clock does not go back.
            let elapsed = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(0);

            self.counter.restart(0, elapsed);
            self.since = Instant::now();
            0
        })
    }

    /// Changes the counter, given the current system time, from which it counts on.
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

        // Each advance rounds to a nanosecond.
        if time.since.elapsed() > ADVANCE {
            time.change(&self.hw, Counter::advance);
        }
        drop(time);
        self.discard_stale_rx_timestamp();
        if self.poll_tx_timestamp() {
            TX_POLL
        } else {
            PERIOD
        }
    }
}
