// SPDX-License-Identifier: GPL-2.0

//! Drops what it is given in hard interrupt.

use kernel::{
    impl_has_hr_timer,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        SpinLockIrq, //
    },
    time::{
        hrtimer::{
            HrTimer,
            HrTimerCallback,
            HrTimerCallbackContext,
            HrTimerRestart,
            RelativeMode, //
        },
        Delta,
        Monotonic, //
    }, //
};
use net::{
    fragment::Fragment,
    skb::TxSkb,
    xdp, //
};

/// How much waits for the hard interrupt, at most.
const WAITING: usize = 256;
/// The time between two hard interrupts.
pub(crate) const PERIOD: Delta = Delta::from_millis(1);

/// What is dropped in hard interrupt.
pub(crate) enum Item {
    Skb(#[expect(dead_code)] TxSkb),
    Frame(#[expect(dead_code)] xdp::Frame),
    Fragment(#[expect(dead_code)] Fragment),
}

/// A list, and the timer whose function drops what is on it.
#[pin_data]
pub(crate) struct Bin {
    #[pin]
    timer: HrTimer<Self>,
    #[pin]
    pub(crate) items: SpinLockIrq<KVec<Item>>,
}

impl Bin {
    pub(crate) fn new() -> Result<Arc<Self>> {
        let items = KVec::with_capacity(WAITING, GFP_KERNEL)?;

        Arc::pin_init(
            pin_init!(Self {
                timer <- HrTimer::new(),
                items <- new_spinlock_irq!(items),
            }),
            GFP_KERNEL,
        )
    }

    /// Puts `item` on the list. Drops it at once if the list is full.
    pub(crate) fn push(&self, item: Item) {
        let result = self.items.lock().push_within_capacity(item);

        drop(result);
    }
}

impl HrTimerCallback for Bin {
    type Pointer<'a> = Arc<Self>;

    fn run(
        this: ArcBorrow<'_, Self>,
        mut context: HrTimerCallbackContext<'_, Self>,
    ) -> HrTimerRestart {
        for _ in 0..WAITING {
            let Some(item) = this.items.lock().pop() else {
                break;
            };
            drop(item);
        }
        context.forward_now(PERIOD);
        HrTimerRestart::Restart
    }
}

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Bin {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}
