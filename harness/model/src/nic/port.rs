// SPDX-License-Identifier: MIT OR Apache-2.0

//! The port as a whole: reset, link, time.

use std::collections::VecDeque;

use i82576::{
    limits::{MAX_FRAME, MAX_RX_QUEUES, MAX_TX_QUEUES},
    regs::{
        self, CTRL, EECD, EEMNGCTL, RXPBS, TIPG, TXPBS, ctrl, eecd, eemngctl, icr, rah, rctl,
        rxdctl, status, tipg, txdctl, wufc,
    },
};

use super::{
    Accesses, Kind, Lies, Nic, Plan, Violation, What,
    clock::Clock,
    interrupts::Interrupts,
    lent::{Lent, Memory, Of},
    nvm::Nvm,
    phy,
    phy::Phy,
    registers::Registers,
    violation::Record,
    wake,
};
use crate::Host;

/// The EtherTypes of tags, outer and inner, after a reset.
const TAGS: u32 = 0x8100_8100;
/// The sizes of the packet buffers after a reset, in KiB.
const RX_BUFFER: u32 = 64;
const TX_BUFFER: u32 = 40;
/// When a queue that is stuck has come to rest.
const NEVER: u64 = u64::MAX;

impl Nic {
    /// A port with this Ethernet address, as it is when power comes.
    #[must_use]
    pub fn new(mac: [u8; 6]) -> Self {
        let mut this = Self {
            registers: Registers::default(),
            nvm: Nvm::new(mac),
            phy: Phy::new(),
            had_link: false,
            clock: Clock::default(),
            interrupts: Interrupts::default(),
            rx: Default::default(),
            tx: Default::default(),
            rx_rests: [None; MAX_RX_QUEUES as usize],
            tx_rests: [None; MAX_TX_QUEUES as usize],
            lent: Lent::default(),
            rates: Default::default(),
            write_back: None,
            paused: None,
            silence: None,
            waiting: VecDeque::new(),
            now: 0,
            asleep: false,
            wakes: false,
            accesses: Accesses::default(),
            record: Record::default(),
            lies: Lies::default(),
            replug: None,
        };
        this.reset_port();
        this
    }

    /// Resets everything, as the bus does.
    pub fn reset(&mut self) {
        self.phy.reset();
        self.reset_port();
    }

    /// Resets the port, all but the PHY (82576 datasheet, chapter "Software Reset").
    pub(super) fn reset_port(&mut self) {
        let kept = wake::kept(&self.registers);
        self.registers = Registers::default();
        self.clock = Clock::default();
        self.interrupts = Interrupts::default();
        self.rx = Default::default();
        self.tx = Default::default();
        self.rx_rests = [None; MAX_RX_QUEUES as usize];
        self.tx_rests = [None; MAX_TX_QUEUES as usize];
        self.lent = Lent::default();
        self.rates = Default::default();
        self.write_back = None;
        self.paused = None;
        self.silence = None;
        self.had_link = false;
        self.waiting.clear();
        let (low, high) = rah::encode(self.nvm.mac());
        for (reg, value) in [
            (CTRL, ctrl::FD),
            (EECD, eecd::PRES | eecd::AUTO_RD),
            (EEMNGCTL, eemngctl::CFG_DONE0 | eemngctl::CFG_DONE1),
            (regs::VET, TAGS),
            (regs::RLPML, MAX_FRAME),
            (RXPBS, RX_BUFFER),
            (TXPBS, TX_BUFFER),
            (TIPG, tipg::DEFAULT),
            (regs::ral(0), low),
            (regs::rah(0), high),
        ]
        .into_iter()
        .chain(kept)
        {
            self.registers.set(reg, value);
        }
    }

    /// Does what is due at a time, in nanoseconds since any moment, which must not go backwards; call it
    /// before any of the others, and after them. Returns when to call it again at the latest.
    pub fn elapse(&mut self, now: u64, host: &mut dyn Host) -> Option<u64> {
        self.now = self.now.max(now);
        self.settle(host);
        let rests = self.rx_rests.iter().chain(&self.tx_rests);
        let times = rests.copied().flatten();
        let times = times.chain(self.phy.deadline()).chain(self.write_back);
        let times = times.chain(self.paused).chain(self.replug);
        let times = times.chain(self.silence).chain(self.rates.deadline());
        let times = times.chain(self.interrupts.deadline(&self.registers));
        times.min()
    }

    /// Lies from now on as a plan says. Returns how often it told each lie of the plan before.
    pub fn lie(&mut self, plan: &Plan) -> Vec<u32> {
        self.lies.begin(plan)
    }

    /// How often it has told each lie of the plan so far.
    #[must_use]
    pub fn told(&self) -> Vec<u32> {
        self.lies.told()
    }

    fn settle(&mut self, host: &mut dyn Host) {
        if self.replug.take_if(|time| *time <= self.now).is_some() {
            self.phy.plug(true, self.now);
        }
        if self.phy.elapse(self.now) {
            self.follow_link(host);
        }
        if self.write_back.is_some_and(|time| time <= self.now) {
            self.write_back_all(host);
        }
        for queue in 0..MAX_RX_QUEUES {
            let rests = &mut self.rx_rests[usize::from(queue)];
            if rests.take_if(|time| *time <= self.now).is_some() {
                if self.lies.tells(Kind::Stuck) {
                    *rests = Some(NEVER);
                    continue;
                }
                self.write_back(queue, host);
                let control = regs::rxdctl(queue);
                self.registers.modify(control, rxdctl::ENABLE, 0);
                self.give_back(Of::Receive(queue), host);
            }
        }
        for queue in 0..MAX_TX_QUEUES {
            let rests = &mut self.tx_rests[usize::from(queue)];
            if rests.take_if(|time| *time <= self.now).is_some() {
                if self.lies.tells(Kind::Stuck) {
                    *rests = Some(NEVER);
                    continue;
                }
                let control = regs::txdctl(queue);
                self.registers.modify(control, txdctl::ENABLE, 0);
                self.give_back(Of::Transmit(queue), host);
            }
        }
        if self.paused.take_if(|time| *time <= self.now).is_some() {
            self.transmit_all(host);
        }
        while let Some(queue) = self.rates.take_due(self.now) {
            self.transmit(queue, host);
        }
        if self.silence.is_some_and(|time| time <= self.now) {
            self.control_flow(host);
        }
        self.send_interrupts(host);
    }

    /// A queue has come to rest.
    fn give_back(&mut self, of: Of, host: &mut dyn Host) {
        self.lent.give_back(of);
        let lie = self.lies.tell(Kind::AfterStop);
        if let Some(address) = lie.and_then(|value| self.lent.returned(of, value)) {
            let lent = &mut self.lent;
            if let Err(fault) = (Memory { host, lent }).write(address, &[0; 16]) {
                self.violated(fault.into(), of);
            }
        }
    }

    /// Sends the messages that are due.
    pub(super) fn send_interrupts(&mut self, host: &mut dyn Host) {
        let (registers, lies) = (&mut self.registers, &mut self.lies);
        self.interrupts.send(registers, self.now, lies, host);
    }

    /// Plugs the cable in, or out.
    pub fn plug(&mut self, cable: bool, host: &mut dyn Host) {
        if self.phy.plug(cable, self.now) {
            self.follow_link(host);
        }
        self.settle(host);
    }

    /// Records a violation by a queue, unless it is due to its driver having been told, falsely, that it rests.
    pub(super) fn violated(&mut self, what: What, of: Of) {
        let by_state = matches!(what, What::NotLent | What::Moved);
        if !by_state || !self.lent.misled.has(of) {
            self.record.violated(what, of);
        }
    }

    /// What the driver did that it must not do, since this was last asked.
    pub fn violations(&mut self) -> Vec<Violation> {
        self.record.take()
    }

    /// Whether frames can pass.
    pub(super) fn link_is_up(&self) -> bool {
        self.phy.link().is_some() && self.registers.has(CTRL, ctrl::SLU)
    }

    /// Whether what is sent comes back: from the MAC, or from the PHY, as the self-test of Linux's `igb` has it.
    pub(super) fn loops_back(&self) -> bool {
        self.registers.get(regs::RCTL) & rctl::LBM_MASK == rctl::LBM_MAC || self.phy.loops_back()
    }

    /// Whether the device may access memory.
    pub(super) fn is_master(&self) -> bool {
        !self.registers.has(CTRL, ctrl::GIO_MASTER_DISABLE)
    }

    /// Reports the link to the driver, if it has changed. What was to be sent meanwhile is.
    pub(super) fn follow_link(&mut self, host: &mut dyn Host) {
        if self.had_link != self.link_is_up() {
            self.had_link = !self.had_link;
            Interrupts::raise(&mut self.registers, icr::LSC);
            self.wake(wufc::LNKC);
            if self.had_link {
                self.transmit_all(host);
            }
        }
    }

    /// How long a byte takes on the wire, in nanoseconds.
    pub(super) fn per_byte(&self) -> u64 {
        match status::speed(self.status()) {
            1000 => 8,
            100 => 80,
            _ => 800,
        }
    }

    pub(super) fn status(&self) -> u32 {
        let mut value = status::PF_RST_DONE;
        if self.is_master() {
            value |= status::GIO_MASTER_ENABLE;
        }
        if self.paused.is_some() {
            value |= status::TXOFF;
        }
        if self.link_is_up() {
            value |= status::LU | status::FD;
        }
        let forced = self.registers.has(CTRL, ctrl::FRCSPD);
        value
            | match (forced, self.phy.link()) {
                (true, _) => (self.registers.get(CTRL) & ctrl::SPEED_MASK) >> 8 << 6,
                (false, Some(phy::Speed::M1000)) => status::SPEED_1000,
                (false, Some(phy::Speed::M100)) => status::SPEED_100,
                (false, _) => 0,
            }
    }
}
