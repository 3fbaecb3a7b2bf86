// SPDX-License-Identifier: MIT OR Apache-2.0

//! QEMU's model, in a machine without firmware: what that would do is done here.

use std::{io, os::unix::net::UnixDatagram, process::Command};

use i82576::regs::Reg;
use tempfile::TempDir;
use vm::QemuCommand;

use crate::{Error, MAC, Result, Subject, place, qtest::Qtest};

/// The ports through which configuration space is reached.
const CONFIG_ADDRESS: u16 = 0xcf8;
const CONFIG_DATA: u16 = 0xcfc;
/// Where the device is on the first bus.
const SLOT: u32 = 4;
/// Offsets in configuration space.
const COMMAND: u32 = 0x04;
const BAR0: u32 = 0x10;
const BAR3: u32 = 0x1c;
const MSIX: u32 = 0x70;
/// COMMAND: memory space, and bus master.
const MEMORY_AND_MASTER: u32 = 1 << 1 | 1 << 2;
/// MSI-X is on, in the dword that begins with the capability's header.
const MSIX_ENABLE: u32 = 1 << 31;
/// Where its registers and the table of its vectors are put.
const REGISTERS: u64 = 0xe000_0000;
const TABLE: u64 = 0xe010_0000;
/// Bytes of a vector's entry.
const ENTRY: u64 = 16;
/// Vectors that the device has.
const VECTORS: u16 = 10;
/// No frame is longer.
const LONGEST: usize = 0x1_0000;

/// QEMU's model.
#[derive(Debug)]
pub struct Igb {
    qtest: Qtest,
    wire: UnixDatagram,
    _sockets: TempDir,
}

impl Igb {
    /// Starts a machine with one.
    ///
    /// # Errors
    ///
    /// When QEMU does not start or ends.
    pub fn start(qemu: &QemuCommand) -> Result<Self> {
        let sockets = tempfile::tempdir().map_err(Error::Start)?;
        let [local, remote, control] =
            ["nic", "peer", "qtest"].map(|name| sockets.path().join(name));
        let wire = UnixDatagram::bind(&remote).map_err(Error::Wire)?;
        let mac = MAC.map(|byte| format!("{byte:02x}")).join(":");
        let (program, first) = qemu.argv.split_first().ok_or_else(|| {
            Error::Start(io::Error::new(io::ErrorKind::NotFound, "no QEMU is named"))
        })?;
        let mut command = Command::new(program);
        command
            .args(first)
            .envs(&qemu.env)
            .args(["-machine", "q35", "-m", "64", "-display", "none"])
            .args(["-nodefaults", "-monitor", "none", "-netdev"])
            .arg(format!(
                "dgram,id=wire,local.type=unix,local.path={},remote.type=unix,remote.path={}",
                local.display(),
                remote.display()
            ))
            .arg("-device")
            .arg(format!("igb,netdev=wire,mac={mac},addr={SLOT:#x}"));
        let qtest = Qtest::start(command, &control)?;
        let mut this = Self {
            qtest,
            wire,
            _sockets: sockets,
        };
        // It has its sockets once it answers.
        this.qtest.turn()?;
        this.wire.connect(&local).map_err(Error::Wire)?;
        this.wire.set_nonblocking(true).map_err(Error::Wire)?;
        this.enumerate()?;
        Ok(this)
    }

    /// Maps the device and lets it write its messages to memory, where they can be seen.
    fn enumerate(&mut self) -> Result<()> {
        // CAST: Both are below 4 GiB.
        self.configure(BAR0, REGISTERS as u32)?;
        self.configure(BAR3, TABLE as u32)?;
        self.configure(COMMAND, MEMORY_AND_MASTER)?;
        let capability = self.select(MSIX)?;
        self.configure(MSIX, capability | MSIX_ENABLE)?;
        for vector in 0..VECTORS {
            let entry = TABLE + u64::from(vector) * ENTRY;
            let message = place::message(vector);
            for (at, value) in [(0, message as u32), (4, 0), (8, vector.into()), (12, 0)] {
                self.qtest.write(entry + at, value)?;
            }
        }
        Ok(())
    }

    /// Reads a dword of configuration space.
    fn select(&mut self, offset: u32) -> Result<u32> {
        let address = 1 << 31 | SLOT << 11 | offset;
        self.qtest.write_port(CONFIG_ADDRESS, address)?;
        self.qtest.read_port(CONFIG_DATA)
    }

    /// Writes a dword of configuration space.
    fn configure(&mut self, offset: u32, value: u32) -> Result<()> {
        self.select(offset)?;
        self.qtest.write_port(CONFIG_DATA, value)
    }
}

impl Subject for Igb {
    fn name(&self) -> &'static str {
        "QEMU's"
    }

    fn read(&mut self, reg: Reg) -> Result<u32> {
        self.qtest.read(REGISTERS + u64::from(reg.0))
    }

    fn write(&mut self, reg: Reg, value: u32) -> Result<()> {
        self.qtest.write(REGISTERS + u64::from(reg.0), value)
    }

    fn read_memory(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        self.qtest.read_memory(address, bytes)
    }

    fn write_memory(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.qtest.write_memory(address, bytes)
    }

    fn fill(&mut self, value: u8) -> Result<()> {
        self.qtest.fill(place::START, place::BYTES, value)
    }

    fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.wire.send(frame).map_err(Error::Wire)?;
        self.qtest.turn()
    }

    fn take(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut frames = Vec::new();
        let mut buffer = vec![0; LONGEST];
        loop {
            // The socket holds a few frames: QEMU puts more there when some were taken.
            self.qtest.turn()?;
            let before = frames.len();
            loop {
                match self.wire.recv(&mut buffer) {
                    Ok(bytes) => frames.push(buffer[..bytes].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(Error::Wire(error)),
                }
            }
            if frames.len() == before {
                return Ok(frames);
            }
        }
    }

    fn elapse(&mut self, nanoseconds: u64) -> Result<()> {
        self.qtest.step(nanoseconds)
    }
}
