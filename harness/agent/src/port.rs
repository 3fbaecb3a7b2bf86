// SPDX-License-Identifier: MIT OR Apache-2.0

//! The virtio-serial port that leads to the host.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use protocol::PORT_NAME;
use rustix::event::{PollFd, PollFlags, poll};

use crate::files;

const PORTS: &str = "/sys/class/virtio-ports";
const DRIVER: &str = "/sys/bus/virtio/drivers/virtio_console";

/// Opens the port, and waits until it is connected to the host: before that, it reads as EOF.
pub(crate) fn open() -> Result<File> {
    let path = Path::new("/dev").join(find()?);
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    wait(|| is_connected(&port).then_some(())).context("the host is not connected")?;
    Ok(port)
}

fn is_connected(port: &File) -> bool {
    let mut fds = [PollFd::new(port, PollFlags::OUT)];
    // It reports POLLHUP at once if it is not connected.
    poll(&mut fds, None).is_ok() && fds[0].revents().contains(PollFlags::OUT)
}

/// Unbinds the port's device from its driver; returns the device's name.
pub(crate) fn unbind() -> Result<String> {
    let link = Path::new(PORTS).join(find()?).join("device");
    let device =
        fs::canonicalize(&link).with_context(|| format!("following {}", link.display()))?;
    let name = device.file_name().context("the port has no device")?;
    let name = name.to_string_lossy().into_owned();
    files::write(&format!("{DRIVER}/unbind"), &name)?;
    Ok(name)
}

/// Binds the device to the driver again.
pub(crate) fn bind(device: &str) -> Result<()> {
    files::write(&format!("{DRIVER}/bind"), device)
}

/// Finds the port by its name. The driver's probe may still be running.
fn find() -> Result<OsString> {
    wait(|| {
        let ports = fs::read_dir(PORTS).ok()?.flatten();
        ports.map(|port| port.file_name()).find(|port| {
            let name = fs::read_to_string(Path::new(PORTS).join(port).join("name"));
            name.unwrap_or_default().trim_end() == PORT_NAME
                && Path::new("/dev").join(port).exists()
        })
    })
    .with_context(|| format!("no virtio-serial port is named {PORT_NAME} (in {PORTS})"))
}

/// Polls for a few seconds.
fn wait<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..500 {
        if let Some(found) = look() {
            return Some(found);
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}
