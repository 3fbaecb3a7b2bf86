// SPDX-License-Identifier: MIT OR Apache-2.0

//! A device with all that it shares with QEMU, behind one lock.

use std::{
    fmt, io,
    sync::{Arc, Mutex, OnceLock},
};

use model::{
    Fault, Host,
    nic::{Accesses, Plan},
};
use tracing::{debug, info};

use crate::{
    Device, Identity,
    alarm::{self, Alarm},
    config::{Config, PENDING_BITS, Power},
    dma::DmaMap,
    interrupts::Interrupts,
    lock,
    peers::{Peers, Place},
    registers,
    transit::Arrival,
    wire::{End, WireError},
};

/// A device in its slot.
pub struct Port {
    slot: Mutex<Slot>,
    alarm: Arc<Alarm>,
    wire: OnceLock<Arc<End>>,
    peers: Peers,
    place: Place,
    identity: &'static Identity,
}

/// Where what the device sends goes.
#[derive(Clone, Copy)]
struct Ways<'a> {
    wire: Option<&'a End>,
    peers: &'a Peers,
}

/// What the lock is for.
pub(crate) struct Slot {
    device: Box<dyn Device>,
    config: Config,
    pub(crate) dma: DmaMap,
    pub(crate) interrupts: Interrupts,
}

/// What the device sees of its slot: it reaches memory, sends interrupts as long as it is a bus master, and
/// frames as long as it has power.
struct Bus<'a> {
    config: &'a Config,
    dma: &'a DmaMap,
    interrupts: &'a mut Interrupts,
    ways: Ways<'a>,
}

impl Port {
    /// Puts a device into a slot, and starts the thread that tells it the time.
    ///
    /// # Errors
    ///
    /// When there is no thread.
    pub fn new(device: Box<dyn Device>) -> io::Result<Arc<Self>> {
        let identity = device.identity();
        let slot = Slot {
            device,
            config: Config::new(identity),
            dma: DmaMap::default(),
            interrupts: Interrupts::new(identity.vectors),
        };
        let port = Arc::new(Self {
            slot: Mutex::new(slot),
            alarm: Arc::default(),
            wire: OnceLock::new(),
            peers: Peers::default(),
            place: Place::new(identity.registers_size),
            identity,
        });
        Arc::clone(&port.alarm).start(Arc::downgrade(&port))?;
        Ok(port)
    }

    /// What the device is on the bus.
    #[must_use]
    pub fn identity(&self) -> &'static Identity {
        self.identity
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Where its registers are.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Plugs the end of a wire in.
    pub(crate) fn plug(&self, end: Arc<End>) -> Result<(), WireError> {
        self.wire.set(end).map_err(|_| WireError::Taken)
    }

    /// Has the device do what is due.
    pub(crate) fn elapse(&self) {
        self.with(|_, _| ());
    }

    /// Frames come, all at once. They may wake a device that sleeps.
    pub(crate) fn receive(&self, arrivals: &[Arrival]) {
        self.with(|slot, ways| {
            let power = slot.config.power();
            let (device, mut bus) = slot.parts(ways);
            for Arrival { frame, damaged } in arrivals {
                match (power, damaged) {
                    (Power::D0, false) => device.receive(frame, &mut bus),
                    (Power::D0, true) => device.receive_damaged(frame, &mut bus),
                    (Power::D3Hot, false) => device.receive_asleep(frame),
                    (Power::D3Hot, true) => {}
                }
            }
        });
    }

    /// Makes the device lie from now on. Returns how often it told each lie of the plan before.
    pub fn lie(&self, plan: &Plan) -> Vec<u32> {
        self.with(|slot, _| slot.device.lie(plan))
    }

    /// How often the device has told each lie of the plan so far.
    pub fn told(&self) -> Vec<u32> {
        self.with_slot(|slot| slot.device.told())
    }

    /// How often the device's registers were accessed since this was last asked.
    pub fn accesses(&self) -> Accesses {
        self.with_slot(|slot| slot.device.accesses())
    }

    /// Plugs the device's cable in, or out.
    pub fn set_cable(&self, cable: bool) {
        self.with(|slot, wire| {
            let (device, mut bus) = slot.parts(wire);
            device.set_cable(cable, &mut bus);
        });
    }

    /// Reads registers. All bits are ones where the device doesn't answer.
    pub(crate) fn read_registers(&self, offset: u64, data: &mut [u8]) {
        self.with(|slot, ways| {
            if !slot.config.memory() {
                return data.fill(0xff);
            }
            let (device, mut bus) = slot.parts(ways);
            registers::read(self.identity.registers_size, offset, data, |register| {
                device.read_register(register, &mut bus)
            });
        });
    }

    /// Writes registers.
    pub(crate) fn write_registers(&self, offset: u64, data: &[u8]) {
        self.write_by(offset, data, |device, register, value, bus| {
            device.write_register(register, value, bus);
        });
    }

    /// Has another device write them.
    pub(crate) fn write_registers_by_peer(&self, offset: u64, data: &[u8]) {
        self.write_by(offset, data, |device, register, value, bus| {
            device.write_register_by_peer(register, value, bus);
        });
    }

    fn write_by(
        &self,
        offset: u64,
        data: &[u8],
        write: impl Fn(&mut dyn Device, u32, u32, &mut Bus<'_>),
    ) {
        self.with(|slot, ways| {
            if !slot.config.memory() {
                return debug!(offset, "a write that the device does not answer");
            }
            let (device, mut bus) = slot.parts(ways);
            let dropped = registers::write(
                self.identity.registers_size,
                offset,
                data,
                |register, value| {
                    write(device, register, value, &mut bus);
                },
            );
            if dropped {
                debug!(offset, bytes = data.len(), "a write is no register's");
            }
        });
    }

    /// Reads the BAR of the MSI-X table, which QEMU has, and of the pending bits. The rest is 0.
    pub(crate) fn read_msix(&self, offset: u64, data: &mut [u8]) {
        let pending = self.with_slot(|slot| slot.interrupts.pending());
        for (at, byte) in data.iter_mut().enumerate() {
            let index = offset.checked_add(at as u64);
            let index = index.and_then(|at| at.checked_sub(PENDING_BITS.into()));
            let index = index.and_then(|index| usize::try_from(index).ok());
            let bits = index.and_then(|index| pending.to_le_bytes().get(index).copied());
            *byte = bits.unwrap_or(0);
        }
    }

    /// Reads configuration space.
    pub(crate) fn read_config(&self, offset: u64, data: &mut [u8]) {
        lock(&self.slot).config.read(offset, data);
    }

    /// Writes configuration space, and does what follows.
    pub(crate) fn write_config(&self, offset: u64, data: &[u8]) {
        self.with(|slot, _| {
            let changes = slot.config.write(offset, data);
            if changes.resets() {
                info!(?changes, "the device is reset");
                slot.device.reset();
            }
            if let Some(power) = changes.power {
                slot.device.set_asleep(power == Power::D3Hot);
            }
            if changes.msix == Some(false) {
                slot.interrupts.forget();
            }
        });
    }

    /// Resets the device as its bus does. Memory stays mapped.
    pub(crate) fn reset(&self) {
        self.with(|slot, _| slot.reset());
    }

    /// QEMU is gone, and with it all memory and events.
    pub(crate) fn disconnect(&self) {
        self.with(|slot, _| {
            slot.reset();
            slot.dma.unmap_all();
            slot.interrupts = Interrupts::new(self.identity.vectors);
        });
    }

    /// Does something with the slot that does not concern the device.
    pub(crate) fn with_slot<T>(&self, act: impl FnOnce(&mut Slot) -> T) -> T {
        act(&mut lock(&self.slot))
    }

    /// Does something with the device: before, what is due by now; after, the alarm is set to its next
    /// deadline and what it has sent is delivered.
    fn with<T>(&self, act: impl FnOnce(&mut Slot, Ways<'_>) -> T) -> T {
        let wire = self.wire.get().map(Arc::as_ref);
        let peers = &self.peers;
        let ways = Ways { wire, peers };
        let mut slot = lock(&self.slot);
        let now = alarm::now();
        slot.elapse(now, ways);
        let result = act(&mut slot, ways);
        self.alarm.set(slot.elapse(now, ways));
        if slot.device.take_wake() {
            slot.config.wake();
        }
        self.place.set(slot.config.registers());
        drop(slot);
        peers.deliver();
        if let Some(wire) = wire {
            wire.deliver();
        }
        result
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.alarm.end();
        if let Some(wire) = self.wire.get() {
            wire.end();
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Port").finish_non_exhaustive()
    }
}

impl Slot {
    fn parts<'a>(&'a mut self, ways: Ways<'a>) -> (&'a mut dyn Device, Bus<'a>) {
        let bus = Bus {
            config: &self.config,
            dma: &self.dma,
            interrupts: &mut self.interrupts,
            ways,
        };
        (self.device.as_mut(), bus)
    }

    fn elapse(&mut self, now: u64, ways: Ways<'_>) -> Option<u64> {
        let (device, mut bus) = self.parts(ways);
        device.elapse(now, &mut bus)
    }

    fn reset(&mut self) {
        self.device.reset();
        self.device.set_asleep(false);
        self.config.reset();
        self.interrupts.forget();
    }
}

impl Host for Bus<'_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        if !self.config.bus_master() {
            return Err(Fault::NoMaster);
        }
        self.dma.read(address, bytes).inspect_err(|_| {
            debug!(address, bytes = bytes.len(), "nothing answers a read");
        })
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        if !self.config.bus_master() {
            return Err(Fault::NoMaster);
        }
        let written = self.dma.write(address, bytes);
        let written = written.or_else(|_| self.ways.peers.write(address, bytes));
        written.inspect_err(|_| {
            debug!(address, bytes = bytes.len(), "nothing answers a write");
        })
    }

    /// A message is a write to memory: without bus master there is none. It is not remembered, because
    /// a driver that takes bus master away expects nothing more.
    fn interrupt(&mut self, vector: u16) {
        if self.config.bus_master() && self.config.msix() {
            self.interrupts.send(vector);
        }
    }

    fn send(&mut self, frame: Vec<u8>) {
        if let Some(wire) = self.ways.wire.filter(|_| self.config.power() == Power::D0) {
            wire.send(frame);
        }
    }
}
