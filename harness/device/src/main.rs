// SPDX-License-Identifier: MIT OR Apache-2.0

//! Serves NICs, and engines of accelerators, to QEMU. It prints `ready` when QEMU can connect, and ends when its standard input does, or
//! with status 101 when any of its threads panics.

mod arguments;

use std::{
    io::{self, IsTerminal, Read, Write},
    panic,
    path::PathBuf,
    process,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use device::{
    Device, Port, control,
    pcap::Capture,
    peers,
    server::{self, Socket},
    wire,
};
use model::{engine::Engine, nic::Nic};
use tracing::Level;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use self::arguments::{Arguments, Captured, DeviceArgument, Place};

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    log(arguments.verbose);
    end_on_panic();
    let mut served = Served::default();
    for DeviceArgument { mac, place } in arguments.devices {
        served.add(Box::new(Nic::new(mac)), place)?;
    }
    let nics = served.ports.clone();
    for place in arguments.engines {
        served.add(Box::new(Engine::default()), place)?;
    }
    peers::introduce(&served.ports);
    let port = |index: usize| match nics.get(index) {
        Some(port) => Ok(port),
        None => bail!("there is no device {index}: they are counted from 0"),
    };
    for argument in arguments.wires {
        let [one, other] = argument.ends;
        let capture = capture(argument.captured.as_ref())?;
        wire::connect([port(one)?, port(other)?], &argument.link, capture)
            .with_context(|| format!("no wire between the devices {one} and {other}"))?;
    }
    for argument in arguments.cables {
        let capture = capture(argument.captured.as_ref())?;
        let socket = arguments::take(argument.fd)?.into();
        let (port, link) = (port(argument.device)?, &argument.link);
        wire::connect_socket(port, socket, link, argument.half, capture)
            .with_context(|| format!("no cable to device {}", argument.device))?;
    }
    for (port, (server, name)) in served.ports.iter().zip(served.servers.drain(..)) {
        server::serve(Arc::clone(port), server, name)?;
    }
    if let Some(fd) = arguments.control {
        control::serve(arguments::take(fd)?.into(), served.ports.clone())?;
    }
    let mut output = io::stdout();
    writeln!(output, "ready")?;
    output.flush()?;
    wait_for_end(io::stdin())?;
    Ok(())
}

fn capture(argument: Option<&Captured>) -> Result<Option<Capture>> {
    let create = |captured: &Captured| {
        let Captured { path, snap_length } = captured;
        Capture::create(path, *snap_length).with_context(|| format!("can't write {path:?}"))
    };
    argument.map(create).transpose()
}

/// Reads to the end.
fn wait_for_end(mut input: impl Read) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn log(verbose: u8) {
    let level = match verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    tracing_subscriber::registry()
        .with(
            tracing_subscriber::fmt::layer()
                .with_ansi(io::stderr().is_terminal())
                .with_writer(io::stderr),
        )
        .with(Targets::new().with_default(level))
        .init();
}

/// A device without its thread would leave its guest hanging. Without the program the guest reads ones, and
/// its parent sees that it has exited.
fn end_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        report(info);
        process::exit(101);
    }));
}

/// All devices, and the sockets to be removed at the end: the threads that serve them never return.
#[derive(Default)]
struct Served {
    ports: Vec<Arc<Port>>,
    servers: Vec<(vfio_user::Server, String)>,
    sockets: Vec<PathBuf>,
}

impl Served {
    fn add(&mut self, device: Box<dyn Device>, place: Place) -> Result<()> {
        let name = place.name();
        let socket = match &place {
            Place::Path(path) => Socket::Path(path.clone()),
            Place::Fd(fd) => Socket::Listening(arguments::take(*fd)?),
        };
        let server = server::listen(socket, device.identity());
        let server = server.with_context(|| format!("can't listen at {name}"))?;
        if let Place::Path(path) = place {
            self.sockets.push(path);
        }
        self.ports.push(Port::new(device)?);
        self.servers.push((server, name));
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        for path in &self.sockets {
            // It may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}
