// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames as they are, past the whole stack (packet(7)).

use anyhow::{Context, Result, ensure};
use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};

use crate::rtnetlink::index_of;

/// Sends one frame, which starts with its Ethernet header and lacks the frame check sequence.
pub(crate) fn send(interface: &str, frame: &[u8]) -> Result<()> {
    let to = link(index_of(interface)?)?;
    // Without a protocol the socket receives nothing.
    let socket =
        Socket::new(Domain::PACKET, Type::RAW, None).context("creating a packet socket")?;
    let sent = socket
        .send_to(frame, &to)
        .with_context(|| format!("sending a frame through {interface}"))?;
    ensure!(
        sent == frame.len(),
        "{interface} took {sent} of {} bytes",
        frame.len()
    );
    Ok(())
}

/// The address that stands for an interface. What a raw frame says of its receiver is in the frame.
fn link(index: u32) -> Result<SockAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is one of the structures that a `sockaddr_storage` has room for.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_ifindex = index.try_into().context("an interface's index")?;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: The storage holds an address of that family and length, all of it initialised.
    Ok(unsafe { SockAddr::new(storage, length) })
}
