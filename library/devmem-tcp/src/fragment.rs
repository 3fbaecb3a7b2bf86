// SPDX-License-Identifier: MIT OR Apache-2.0

//! A fragment: what an application holds of device memory until it recycles it.

use std::ops::Deref;

use crate::extent::Extent;

/// A piece of the stream that lies in device memory. The application holds it until it recycles it.
/// Recycling takes it by value: it happens only once, and its memory can't be read through it afterwards.
///
/// A fragment that is dropped instead is only recycled when the connection closes.
///
/// ```compile_fail,E0382
/// # fn twice(mut receiver: devmem_tcp::rx::Receiver<std::net::TcpStream>, fragment: devmem_tcp::rx::Fragment) {
/// receiver.recycle([fragment]);
/// println!("{}", fragment.len());
/// # }
/// ```
///
/// ```
/// # fn once(mut receiver: devmem_tcp::rx::Receiver<std::net::TcpStream>, fragment: devmem_tcp::rx::Fragment) {
/// println!("{}", fragment.len());
/// receiver.recycle([fragment]);
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the NIC lacks the memory until the fragment is recycled"]
pub struct Fragment {
    extent: Extent,
    token: u32,
    dmabuf_id: u32,
    /// Tokens are numbered per socket.
    socket: u64,
}

/// A fragment as numbers, to hand it to another process that shares the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawFragment {
    /// Where it starts in the dma-buf, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
    /// The kernel's name for it, valid on the socket that it came from.
    pub token: u32,
    /// The binding that it belongs to ([`crate::netdev::RxBinding::id`]).
    pub dmabuf_id: u32,
    /// The socket that it came from, by its cookie (`SO_COOKIE`, socket(7)), which is the same in all processes.
    pub socket: u64,
}

impl Fragment {
    /// The binding that it belongs to ([`crate::netdev::RxBinding::id`]).
    #[must_use]
    pub fn dmabuf_id(&self) -> u32 {
        self.dmabuf_id
    }

    /// The kernel's name for it, if it came from the socket of this cookie.
    pub(crate) fn token_of(&self, socket: u64) -> Option<u32> {
        (self.socket == socket).then_some(self.token)
    }

    /// Gives up the fragment for its numbers, from which [`Fragment::from_raw`] makes it again.
    #[must_use]
    pub fn into_raw(self) -> RawFragment {
        RawFragment {
            offset: self.extent.offset(),
            len: self.extent.len(),
            token: self.token,
            dmabuf_id: self.dmabuf_id,
            socket: self.socket,
        }
    }

    /// Makes a fragment from its numbers. Make only one from each result of [`Fragment::into_raw`]: the
    /// kernel recycles a token once, and reports how many it recycled.
    pub fn from_raw(raw: RawFragment) -> Self {
        Self {
            extent: Extent::new(raw.offset, raw.len),
            token: raw.token,
            dmabuf_id: raw.dmabuf_id,
            socket: raw.socket,
        }
    }
}

impl Deref for Fragment {
    type Target = Extent;

    fn deref(&self) -> &Extent {
        &self.extent
    }
}
