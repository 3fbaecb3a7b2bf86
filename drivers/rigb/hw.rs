// SPDX-License-Identifier: GPL-2.0

//! The device's registers: operations on the device as a whole.

mod clock;
mod control;
mod filter;
mod five_tuple;
mod link;
mod rate;
mod reset;
mod semaphore;

use doorbell::Doorbell;
use i82576::{
    limits,
    regs::{
        self,
        Reg, //
    },
    rss, //
};
use kernel::{
    device::Core,
    io::Io,
    new_spinlock_irq,
    pci,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use net::stats::SharedCounter;

use crate::doorbells;

pub(crate) use self::link::Advertised;

/// How often a register is polled before the driver gives up, and the delay in between.
const TRIES: u32 = 1000;
const PAUSE: Delta = Delta::from_micros(20);
/// How often in a row a register reads as all ones before the device counts as gone.
const GONE_TRIES: u32 = 10;

/// Prefetch, host and write-back thresholds of the queues, in descriptors.
const RX_THRESHOLDS: u32 = regs::thresholds(8, 8, 1);
const TX_THRESHOLDS: u32 = regs::thresholds(8, 1, 1);

/// What registers read as once the device is gone from the bus.
pub(crate) const GONE: u32 = u32::MAX;

/// A mapped 82576.
#[pin_data(PinnedDrop)]
pub(crate) struct Hw<'bound> {
    bar: pci::Bar<'bound, { regs::BAR_SIZE }>,
    was_reset: Atomic<bool>,
    /// The last reset failed: queues may still run.
    is_stray: Atomic<bool>,
    leaked_rings: SharedCounter,
    /// Of all TX queues, in use or not.
    pub(crate) doorbells: KVec<Arc<Doorbell>>,
    /// What was last written to CTRL and to RCTL.
    #[pin]
    ctrl: SpinLockIrq<u32>,
    #[pin]
    rctl: SpinLockIrq<u32>,
    /// The limits of TX queues, in Mb/s; zero is none.
    #[pin]
    tx_rates: SpinLockIrq<[u32; limits::MAX_TX_QUEUES as usize]>,
}

impl<'bound> Hw<'bound> {
    /// Maps the registers.
    pub(crate) fn new(pdev: &'bound pci::Device<Core<'_>>) -> Result<Arc<Self>> {
        let bar = pdev.iomap_region_sized(0, c"rigb")?;
        let doorbells = doorbells::new(pdev)?;
        // Until a reset all else may be off, but the board's pins must not change.
        let board = (&bar).try_read32(regs::CTRL.offset()).unwrap_or(0) & regs::ctrl::BOARD_MASK;

        Arc::pin_init(
            pin_init!(Self {
                bar,
                doorbells,
                was_reset: Atomic::new(false),
                is_stray: Atomic::new(false),
                leaked_rings: SharedCounter::new(),
                ctrl <- new_spinlock_irq!(board),
                rctl <- new_spinlock_irq!(0),
                tx_rates <- new_spinlock_irq!([0; limits::MAX_TX_QUEUES as usize]),
            }),
            GFP_KERNEL,
        )
    }

    /// Reads a register. Costs a round trip over the bus: not for the packet path.
    pub(crate) fn read(&self, reg: Reg) -> u32 {
        // Registers lie in the BAR, so this does not fail.
        (&self.bar).try_read32(reg.offset()).unwrap_or(GONE)
    }

    /// Writes a register, after all earlier writes to memory, as `writel()` does.
    #[inline]
    pub(crate) fn write(&self, reg: Reg, value: u32) {
        // Registers lie in the BAR, so this does not fail.
        let _ = (&self.bar).try_write32(value, reg.offset());
    }

    /// Changes some bits of a register of which others are the firmware's, or another driver's.
    fn modify(&self, reg: Reg, clear: u32, set: u32) {
        self.write(reg, (self.read(reg) & !clear) | set);
    }

    /// Waits until `done` holds for a register.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`; `ENODEV` if the device is gone: the register keeps reading as all ones. Once is
    /// not enough, because memory that the device reaches is then freed.
    fn wait(&self, reg: Reg, done: impl Fn(u32) -> bool) -> Result {
        let mut gone = 0;

        for _ in 0..TRIES {
            match self.read(reg) {
                GONE if gone == GONE_TRIES => return Err(ENODEV),
                GONE => gone += 1,
                value if done(value) => return Ok(()),
                _ => gone = 0,
            }
            fsleep(PAUSE);
        }
        Err(ETIMEDOUT)
    }

    /// Returns whether the link is up.
    pub(crate) fn link_is_up(&self) -> bool {
        let status = self.read(regs::STATUS);

        status != GONE && status & regs::status::LU != 0
    }

    /// Programs hash key, indirection table, and what is hashed.
    pub(crate) fn set_rss(
        &self,
        key: &rss::Key,
        table: &rss::IndirectionTable,
        fields: rss::HashFields,
    ) {
        for (n, value) in (0..).zip(key.registers()) {
            self.write(regs::rssrk(n), value);
        }
        for (n, value) in (0..).zip(table.registers()) {
            self.write(regs::reta(n), value);
        }
        // The hash takes the place of the raw checksum in the descriptor.
        self.write(
            regs::RXCSUM,
            regs::rxcsum::PCSD | regs::rxcsum::IPOFL | regs::rxcsum::TUOFL,
        );
        self.write(regs::MRQC, fields.mrqc());
    }

    /// Drops frames that are longer than `len` bytes, without FCS.
    pub(crate) fn set_max_frame(&self, len: u32) {
        self.write(
            regs::RLPML,
            (len + limits::FRAME_CHECK).min(limits::MAX_FRAME),
        );
    }

    /// Routes each queue pair to the vector of its number and the link to the one after them, and
    /// unmasks all.
    pub(crate) fn enable_interrupts(&self, pairs: u32) {
        let all = (1u32 << (pairs + 1)) - 1;

        self.write(
            regs::GPIE,
            regs::gpie::MSIX_MODE | regs::gpie::PBA | regs::gpie::EIAME | regs::gpie::NSICR,
        );
        for n in 0..regs::IVARS {
            let mut value = 0;

            // CAST: There are at most 16 pairs.
            for pair in (n..pairs as u16).step_by(regs::IVARS.into()) {
                let entry = regs::ivar_entry(pair as u8);

                for (_, shift) in [regs::ivar_rx(pair), regs::ivar_tx(pair)] {
                    value = regs::ivar_replace(value, shift, entry);
                }
            }
            self.write(regs::ivar(n), value);
        }
        self.write(
            regs::IVAR_MISC,
            // CAST: There are at most 16 pairs.
            u32::from(regs::ivar_entry(pairs as u8)) << regs::ivar_misc::OTHER_SHIFT,
        );

        // A vector's cause clears itself, and the vector masks itself until NAPI completes.
        self.write(regs::EIAC, all);
        self.write(regs::EIAM, all);
        self.write(regs::EIMS, all);
        self.write(regs::IMS, regs::icr::LSC);
    }

    /// Unmasks the link's interrupt, whose vector is this one: should it have come meanwhile, it does now.
    pub(crate) fn unmask_link(&self, vector: usize) {
        // CAST: There are at most 16 pairs before it.
        self.unmask(vector as u32);
        self.write(regs::IMS, regs::icr::LSC);
    }

    /// Raises the link's interrupt, as if the link had changed.
    pub(crate) fn trigger_link(&self) {
        self.write(regs::ICS, regs::icr::LSC);
    }

    /// Sets the minimum interval between a vector's interrupts, in microseconds.
    pub(crate) fn set_interval(&self, vector: u16, us: u32) {
        self.write(
            regs::eitr(vector),
            regs::eitr::interval(us) | regs::eitr::CNT_IGNR,
        );
    }

    /// Masks all interrupts.
    pub(crate) fn disable_interrupts(&self) {
        self.write(regs::IMC, u32::MAX);
        self.write(regs::EIMC, u32::MAX);
        self.write(regs::EIAC, 0);
        self.write(regs::EIAM, 0);
        // Post the writes.
        self.read(regs::STATUS);
    }

    /// Raises the interrupt of a vector.
    pub(crate) fn trigger(&self, vector: u32) {
        self.write(regs::EICS, 1 << vector);
    }

    /// Raises the interrupts of all vectors below this one.
    pub(crate) fn trigger_all(&self, vector: u32) {
        self.write(regs::EICS, (1 << vector) - 1);
    }

    /// Unmasks one vector.
    #[inline]
    pub(crate) fn unmask(&self, vector: u32) {
        self.write(regs::EIMS, 1 << vector);
    }

    /// Reads and clears the causes of the link's vector.
    pub(crate) fn link_causes(&self) -> u32 {
        self.read(regs::ICR)
    }

    /// Frames that RX queue `queue` had no buffer for since the last call.
    pub(crate) fn take_rx_drops(&self, queue: u32) -> u64 {
        // CAST: There are at most 16 queues. The counter has 12 bits and clears on read.
        let drops = self.read(regs::rqdpc(queue as u16));

        if drops == GONE {
            0
        } else {
            u64::from(drops & 0xfff)
        }
    }

    /// Points RX queue `queue` at a ring and enables it.
    ///
    /// The tail may be written on return: before that the device ignores it.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`: the queue did not start, and is disabled again.
    pub(crate) fn enable_rx(&self, queue: u16, ring: u64, bytes: u32, srrctl: u32) -> Result {
        self.write(regs::rxdctl(queue), 0);
        self.write(regs::rdbal(queue), ring as u32);
        self.write(regs::rdbah(queue), (ring >> 32) as u32);
        self.write(regs::rdlen(queue), bytes);
        self.write(regs::srrctl(queue), srrctl);
        self.write(regs::psrtype(queue), regs::psrtype::TCP);
        self.write(regs::rdh(queue), 0);
        self.write(regs::rdt(queue), 0);
        self.write(regs::rxdctl(queue), RX_THRESHOLDS | regs::rxdctl::ENABLE);
        self.wait(regs::rxdctl(queue), |value| {
            value & regs::rxdctl::ENABLE != 0
        })
        .inspect_err(|_| self.write(regs::rxdctl(queue), 0))
    }

    /// Disables RX queue `queue` and waits until the device does no DMA for it.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`: it may still do DMA.
    pub(crate) fn disable_rx(&self, queue: u16) -> Result {
        self.quiesce(regs::rxdctl(queue), RX_THRESHOLDS, regs::rxdctl::ENABLE)
    }

    /// Enables an RX queue again that was not disabled in time.
    pub(crate) fn resume_rx(&self, queue: u16) {
        self.write(regs::rxdctl(queue), RX_THRESHOLDS | regs::rxdctl::ENABLE);
    }

    /// Points TX queue `queue` at a ring and enables it.
    ///
    /// # Errors
    ///
    /// As for [`Self::enable_rx`].
    pub(crate) fn enable_tx(&self, queue: u16, ring: u64, bytes: u32) -> Result {
        self.write(regs::txdctl(queue), 0);
        self.write(regs::tdbal(queue), ring as u32);
        self.write(regs::tdbah(queue), (ring >> 32) as u32);
        self.write(regs::tdlen(queue), bytes);
        self.write(regs::tdh(queue), 0);
        self.write(regs::tdt(queue), 0);
        self.write(regs::txdctl(queue), TX_THRESHOLDS | regs::txdctl::ENABLE);
        self.wait(regs::txdctl(queue), |value| {
            value & regs::txdctl::ENABLE != 0
        })
        .inspect_err(|_| self.write(regs::txdctl(queue), 0))
    }

    /// Waits until the tail of TX queue `queue` is one that another device has written; not for long, as
    /// it may not have.
    pub(crate) fn await_tail(&self, queue: u16, tail: u32) {
        let _ = self.wait(regs::tdt(queue), |value| value == tail);
    }

    /// Disables TX queue `queue` and waits until the device does no DMA for it.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`: it may still do DMA.
    pub(crate) fn disable_tx(&self, queue: u16) -> Result {
        self.quiesce(regs::txdctl(queue), TX_THRESHOLDS, regs::txdctl::ENABLE)
    }

    /// ENABLE reads as 0 when the queue's last access is done; a device that is gone does none.
    fn quiesce(&self, reg: Reg, thresholds: u32, enable: u32) -> Result {
        self.write(reg, thresholds);
        match self.wait(reg, |value| value & enable == 0) {
            Err(error) if error == ENODEV => Ok(()),
            result => result,
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Hw<'_> {
    fn drop(self: Pin<&mut Self>) {
        self.disable_interrupts();
        // Bus mastering stays on when the driver is gone; after a reset the device doesn't use it.
        self.modify(regs::CTRL_EXT, regs::ctrl_ext::DRV_LOAD, 0);
        self.begin_reset();
    }
}
