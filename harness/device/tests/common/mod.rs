// SPDX-License-Identifier: MIT OR Apache-2.0

//! A device that is served to a client in place of QEMU, with a page of memory at address 0.

#![allow(dead_code, reason = "each test file needs a part")]

pub(crate) mod dummy;

use std::{
    fs::File,
    io::Read,
    os::{fd::AsRawFd, unix::fs::FileExt},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use device::{
    Device, Port,
    server::{self, Socket},
};
use dummy::Dummy;
use rustix::{
    event::{EventfdFlags, eventfd},
    fs::{MemfdFlags, ftruncate, memfd_create},
};
use tempfile::TempDir;
use vfio_user::Client;

pub(crate) const PAGE: u32 = 4096;
const REGISTERS: u32 = 0;
const MSIX_BAR: u32 = 3;
const CONFIG: u32 = 7;
const MSIX: u32 = 2;
/// Descriptors, or their absence, as triggers.
const EVENTS: u32 = 0x24;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Board {
    pub(crate) client: Client,
    pub(crate) port: Arc<Port>,
    memory: File,
    dir: TempDir,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self::of(Dummy::new([0x52, 0x54, 0, 0, 0, 1]))
    }

    pub(crate) fn of(device: impl Device + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device");
        let port = Port::new(Box::new(device)).unwrap();
        let server = server::listen(Socket::Path(path.clone()), port.identity()).unwrap();
        server::serve(Arc::clone(&port), server, "test".to_owned()).unwrap();
        let memory = File::from(memfd_create("memory", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&memory, PAGE.into()).unwrap();
        let client = Client::new(&path).unwrap();
        let mut this = Self {
            client,
            port,
            memory,
            dir,
        };
        this.map();
        this
    }

    pub(crate) fn map(&mut self) {
        let fd = self.memory.as_raw_fd();
        self.client.dma_map(0, 0, PAGE.into(), fd).unwrap();
    }

    /// Goes, and comes again without memory.
    pub(crate) fn reconnect(&mut self) {
        self.client.shutdown().unwrap();
        self.client = Client::new(&self.dir.path().join("device")).unwrap();
    }

    pub(crate) fn config(&mut self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.client.region_read(CONFIG, offset, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    pub(crate) fn set_config(&mut self, offset: u64, value: u32) {
        let bytes = value.to_le_bytes();
        self.client.region_write(CONFIG, offset, &bytes).unwrap();
    }

    /// Enables memory space and bus master.
    pub(crate) fn enable(&mut self) {
        self.set_config(4, 6);
    }

    pub(crate) fn register(&mut self, offset: u32) -> u32 {
        let mut bytes = [0; 4];
        let offset = offset.into();
        self.client
            .region_read(REGISTERS, offset, &mut bytes)
            .unwrap();
        u32::from_le_bytes(bytes)
    }

    pub(crate) fn set_register(&mut self, offset: u32, value: u32) {
        let bytes = value.to_le_bytes();
        self.client
            .region_write(REGISTERS, offset.into(), &bytes)
            .unwrap();
    }

    /// The pending bits.
    pub(crate) fn pending(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let at = 0x2000;
        self.client.region_read(MSIX_BAR, at, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Waits until a register has a value.
    pub(crate) fn until(&mut self, offset: u32, value: u32) {
        let start = Instant::now();
        while self.register(offset) != value {
            assert!(start.elapsed() < PATIENCE, "{}", self.register(offset));
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn copy(&mut self, from: u32, to: u32, len: u32) {
        self.set_register(dummy::SOURCE, from);
        self.set_register(dummy::DESTINATION, to);
        self.set_register(dummy::LENGTH, len);
        self.set_register(dummy::COMMAND, dummy::COPY);
    }

    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.write_memory(0, frame);
        self.set_register(dummy::SOURCE, 0);
        self.set_register(dummy::LENGTH, frame.len() as u32);
        self.set_register(dummy::COMMAND, dummy::SEND);
    }

    pub(crate) fn write_memory(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, offset).unwrap();
    }

    pub(crate) fn read_memory(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    /// A new event for a vector.
    pub(crate) fn event(&mut self, vector: u32) -> File {
        let event = File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        let fds = [event.as_raw_fd()];
        self.client.set_irqs(MSIX, EVENTS, vector, 1, &fds).unwrap();
        event
    }

    /// Takes the events of all vectors back, as QEMU does.
    pub(crate) fn take_events(&mut self) {
        self.client.set_irqs(MSIX, EVENTS, 0, 10, &[]).unwrap();
    }
}

/// How often an event has been signalled since this was last asked.
pub(crate) fn signals(mut event: &File) -> u64 {
    let mut bytes = [0; 8];
    event
        .read(&mut bytes)
        .map_or(0, |_| u64::from_ne_bytes(bytes))
}

/// Waits until it has been signalled.
pub(crate) fn wait(event: &File) -> u64 {
    let start = Instant::now();
    loop {
        match signals(event) {
            0 if start.elapsed() < PATIENCE => thread::sleep(Duration::from_micros(100)),
            count => return count,
        }
    }
}
