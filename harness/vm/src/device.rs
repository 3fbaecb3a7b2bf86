// SPDX-License-Identifier: MIT OR Apache-2.0

//! Our own devices: a process that serves models of them to QEMU, over vfio-user.

use std::{
    env,
    fs::{self, DirBuilder, File},
    io::{self, BufRead, BufReader, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            fs::DirBuilderExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    Cables, End, Error, Images, Machine, Result, Wire, lock::lock, process::Process, qemu::escape,
    run_dir::RunDir,
};

/// What [`Machine::nic`] calls them.
pub const OUR_NIC: &str = "nobounce";
/// The engine in QEMU.
const ENGINE: &str = "engine";
/// How long the process may take for an answer, to us or to QEMU, which else gives the guest ones for it: it takes it no
/// time, but may have to wait for a processor.
const PATIENCE: Duration = Duration::from_secs(300);
/// How a line begins that says what a driver did (harness/device/src/nic.rs).
const VIOLATION: &str = "violation: ";

/// The process, and where it listens.
#[derive(Debug)]
pub(crate) struct Devices {
    process: Process,
    sockets: Sockets,
    log: PathBuf,
    control: Mutex<BufReader<UnixStream>>,
    /// The NICs, in the order in which they are counted.
    nics: Vec<String>,
    /// It ends when this is closed.
    _lasts: UnixStream,
}

/// Sockets, in a folder whose name is short enough for QEMU. They are removed with this.
#[derive(Debug)]
struct Sockets(PathBuf);

impl Sockets {
    fn create() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder =
                env::temp_dir().join(format!("nobounce-devices-{}-{count}", process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                // Of a process that was killed, and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(folder)),
            }
        }
    }

    /// Of a device, by its name in QEMU.
    fn of(&self, device: &str) -> PathBuf {
        self.0.join(device)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        // At worst, empty sockets stay behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Devices {
    /// Whether the machine's NICs are ours.
    pub(crate) fn have_nics(machine: &Machine) -> bool {
        machine.nic == OUR_NIC
    }

    /// Whether any of its devices are.
    pub(crate) fn wanted(machine: &Machine) -> bool {
        Self::have_nics(machine) || machine.engine
    }

    /// Starts the process, with a NIC at each end of each wire that is the machine's and an engine, where they are to
    /// be ours.
    pub(crate) fn start(machine: &Machine, images: &Images, run: &RunDir) -> Result<Self> {
        let have_nics = Self::have_nics(machine);
        let program = images.devices.as_ref().ok_or_else(|| {
            Error::BadMachine("the manifest names no program with models of devices".to_owned())
        })?;
        let unwritable = Error::unwritable(run.path());
        let sockets = Sockets::create().map_err(&unwritable)?;
        let mut command = Command::new(program);
        let (control, far) = UnixStream::pair().map_err(&unwritable)?;
        control
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| control.set_write_timeout(Some(PATIENCE)))
            .map_err(&unwritable)?;
        command.arg("--control").arg(far.as_raw_fd().to_string());
        let mut inherited = vec![OwnedFd::from(far)];
        let cables = machine.cables.as_ref().filter(|_| have_nics);
        let cables = cables.map(Cables::share);
        let cables = cables.transpose().map_err(&unwritable)?.unwrap_or_default();
        let cable_fds: Vec<_> = cables.iter().map(AsRawFd::as_raw_fd).collect();
        inherited.extend(cables);
        let mut listen = |device: &str| {
            let listener = UnixListener::bind(sockets.of(device)).map_err(&unwritable)?;
            let fd = listener.as_raw_fd();
            inherited.push(OwnedFd::from(listener));
            Result::Ok(fd)
        };
        let mut nics = Vec::new();
        for wire in machine.wires().filter(|_| have_nics) {
            let first = nics.len();
            for end in machine.ends() {
                let (fd, mac) = (listen(&wire.nic(end))?, wire.mac(end));
                command.arg("--device").arg(format!("mac={mac},fd={fd}"));
                nics.push(wire.nic(end));
            }
            let (pcap, snap) = (run.file(&wire.pcap()), machine.snap_length);
            let mut options = format!("pcap={},snap={snap}", escape(&pcap.to_string_lossy()));
            if let Some(link) = machine.link {
                options.push_str(&format!(",{link}"));
            }
            match (&machine.cables, cable_fds.get(usize::from(wire.0))) {
                (Some(cables), Some(fd)) => {
                    let end = cables.end().index();
                    let text = format!("device={first},fd={fd},end={end},{options}");
                    command.arg("--cable").arg(text);
                }
                _ => {
                    let text = format!("ends={first}-{},{options}", first + 1);
                    command.arg("--wire").arg(text);
                }
            }
        }
        if machine.engine {
            let fd = listen(ENGINE)?;
            command.arg("--engine").arg(format!("fd={fd}"));
        }
        let log = run.file("devices.log");
        let output = File::create(&log).map_err(&unwritable)?;
        let (lasts, input) = UnixStream::pair().map_err(&unwritable)?;
        command.stdin(Stdio::from(OwnedFd::from(input)));
        let process = Process::spawn(command, inherited, output).map_err(|error| {
            Error::BadMachine(format!("can't run {}: {error}", program.display()))
        })?;
        Ok(Self {
            process,
            sockets,
            log,
            control: Mutex::new(BufReader::new(control)),
            nics,
            _lasts: lasts,
        })
    }

    /// QEMU's device for a NIC, on this bus.
    pub(crate) fn nic(&self, wire: Wire, end: End, bus: &str, rom: Option<&Path>) -> String {
        self.device(&wire.nic(end), bus, rom)
    }

    /// QEMU's device for the engine, on this bus.
    pub(crate) fn engine(&self, bus: &str) -> String {
        self.device(ENGINE, bus, None)
    }

    fn device(&self, id: &str, bus: &str, rom: Option<&Path>) -> String {
        let mut device = json!({
            "driver": "vfio-user-pci",
            "id": id,
            "bus": bus,
            "socket": { "type": "unix", "path": self.sockets.of(id) },
            "x-msg-timeout": PATIENCE.as_millis(),
        });
        match rom {
            Some(image) => device["romfile"] = json!(image),
            None => device["rombar"] = json!(0),
        }
        device.to_string()
    }

    /// Keeps the process from running for so long.
    pub(crate) fn stall(&self, time: Duration) {
        self.process.stall(time);
    }

    /// Makes a NIC lie as a plan says, if there is one. Returns how often it told each lie until now.
    ///
    /// # Errors
    ///
    /// [`Error::DevicesEnded`], and [`Error::BadMachine`] for a plan that it does not understand.
    pub(crate) fn lie(&self, wire: Wire, end: End, plan: Option<&Value>) -> Result<Vec<u32>> {
        let nic = wire.nic(end);
        self.order(self.number(&nic)?, &nic, "plan", &json!(plan), "told")
    }

    /// The same for the engine, which comes after the NICs.
    pub(crate) fn lie_engine(&self, plan: Option<&Value>) -> Result<Vec<u32>> {
        self.order(self.nics.len(), ENGINE, "plan", &json!(plan), "told")
    }

    /// Plugs a NIC's cable in, or out.
    ///
    /// # Errors
    ///
    /// [`Error::DevicesEnded`].
    pub(crate) fn set_cable(&self, wire: Wire, end: End, cable: bool) -> Result<()> {
        let nic = wire.nic(end);
        let (order, argument) = ("cable", cable.into());
        self.order::<bool>(self.number(&nic)?, &nic, order, &argument, order)
            .map(drop)
    }

    /// How often a NIC's registers were accessed since this was last asked.
    ///
    /// # Errors
    ///
    /// [`Error::DevicesEnded`].
    pub(crate) fn accesses(&self, wire: Wire, end: End) -> Result<Value> {
        let nic = wire.nic(end);
        let order = "accesses";
        self.order(self.number(&nic)?, &nic, order, &Value::Null, order)
    }

    fn number(&self, nic: &str) -> Result<usize> {
        let number = self.nics.iter().position(|other| *other == nic);
        number.ok_or_else(|| Error::BadMachine("the NICs are QEMU's".to_owned()))
    }

    /// Has something done to a device. Returns what the answer says.
    fn order<T: DeserializeOwned>(
        &self,
        device: usize,
        name: &str,
        order: &str,
        argument: &Value,
        says: &str,
    ) -> Result<T> {
        let ask = || {
            let mut control = lock(&self.control);
            let request = json!({ "device": device, order: argument });
            writeln!(control.get_mut(), "{request}")?;
            let mut line = String::new();
            control.read_line(&mut line)?;
            io::Result::Ok(line)
        };
        let answer = match ask() {
            Ok(answer) if !answer.is_empty() => answer,
            Err(error) if is_timeout(&error) => {
                // An answer that is late would be taken for the next request's.
                self.process.kill();
                return Err(Error::DevicesEnded {
                    output: format!("it was killed, as it did not answer for {PATIENCE:?}"),
                    log: self.log.clone(),
                });
            }
            _ => return Err(self.ended()),
        };
        serde_json::from_str(&answer)
            .ok()
            .and_then(|answer: Value| serde_json::from_value(answer.get(says)?.clone()).ok())
            .ok_or_else(|| {
                Error::BadMachine(format!("{name} refuses its {order}: {}", answer.trim()))
            })
    }

    fn ended(&self) -> Error {
        Error::DevicesEnded {
            output: fs::read_to_string(&self.log).unwrap_or_default(),
            log: self.log.clone(),
        }
    }

    /// Looks whether it runs, and whether a driver did what it must not do.
    ///
    /// # Errors
    ///
    /// [`Error::DevicesEnded`], [`Error::Violated`].
    pub(crate) fn check(&self) -> Result<()> {
        let output = fs::read_to_string(&self.log).unwrap_or_default();
        let log = self.log.clone();
        if self.process.wait(Duration::ZERO).is_some() {
            return Err(self.ended());
        }
        let lines = output.lines().filter(|line| line.contains(VIOLATION));
        let violations: Vec<_> = lines.map(str::to_owned).collect();
        match violations.is_empty() {
            true => Ok(()),
            false => Err(Error::Violated { violations, log }),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
