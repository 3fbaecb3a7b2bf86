// SPDX-License-Identifier: GPL-2.0

//! RX rings: descriptors, the buffers behind them, and the pools that those come from.

use i82576::{
    limits,
    regs::srrctl,
    ring,
    rx as descriptor, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};
use net::{
    descriptors::Descriptors,
    device::Locked,
    napi,
    page_pool::{
        self,
        Fragment,
        Netmem,
        PagePool,
        PageSize, //
    },
    queue,
    skb, //
};

use super::packet::Packet;
use crate::netdev::Adapter;

/// Room for headers in a header buffer, in bytes: Ethernet with VLAN tags, IPv6 with extension
/// headers, TCP with options.
pub(super) const HEADER_SIZE: u32 = 256;

/// A header buffer: room for the skb around the headers.
const HEADER_BUFFER: u32 = skb::HEADROOM + HEADER_SIZE + skb::TAILROOM;

/// What of a page the device may fill when an skb is built around it, in units of 1 KiB.
const WHOLE_KIB: u32 = 3;

const _: () = {
    assert!(HEADER_SIZE % limits::HEADER_BUFFER_UNIT == 0);
    assert!(
        skb::HEADROOM + WHOLE_KIB * limits::PAYLOAD_BUFFER_UNIT + skb::TAILROOM <= PAGE_SIZE as u32
    );
};

/// How a ring is laid out.
#[derive(Copy, Clone)]
pub(crate) struct Layouts {
    /// Descriptors.
    pub(crate) len: ring::Ring,
    /// Headers are split from payload.
    pub(crate) split: bool,
}

/// The buffers behind one descriptor; either may be missing or, after a packet that did not need
/// it, still there.
pub(super) struct Slot {
    pub(super) header: Option<Fragment>,
    pub(super) payload: Option<Netmem>,
}

/// Where buffers come from.
pub(super) struct Pools {
    /// Fragments for headers; only with header split.
    pub(super) headers: Option<PagePool>,
    /// Pages, or the memory provider's.
    pub(super) payloads: PagePool,
    /// The CPU cannot read payloads.
    pub(super) unreadable: bool,
    /// Size of a payload buffer.
    pub(super) page_size: PageSize,
}

impl Pools {
    fn new(
        dev: Locked<'_, Adapter<'_>>,
        parent: &Device<Bound>,
        layouts: Layouts,
        config: &queue::Config,
        queue: u32,
    ) -> Result<Self> {
        let size = u32::from(layouts.len.len());
        // Without split an skb is built around each buffer, for which a page is just right.
        let page_size = if layouts.split {
            config.rx_page_size
        } else {
            PageSize::PAGE
        };
        let payloads = PagePool::new(
            dev,
            parent,
            &page_pool::Config {
                size,
                page_size,
                queue,
                allow_unreadable: layouts.split,
            },
        )?;
        let headers = layouts
            .split
            .then(|| {
                PagePool::new(
                    dev,
                    parent,
                    &page_pool::Config {
                        size: size / (PAGE_SIZE as u32 / HEADER_BUFFER) + 1,
                        page_size: PageSize::PAGE,
                        queue,
                        allow_unreadable: false,
                    },
                )
            })
            .transpose()?;

        Ok(Self {
            headers,
            unreadable: payloads.is_unreadable(),
            payloads,
            page_size,
        })
    }

    pub(super) fn enable_direct_recycling<P: napi::Poll>(&mut self, napi: &napi::Disabled<P>) {
        self.payloads.enable_direct_recycling(napi);
        if let Some(headers) = &mut self.headers {
            headers.enable_direct_recycling(napi);
        }
    }

    pub(super) fn disable_direct_recycling<P: napi::Poll>(&mut self, napi: &napi::Disabled<P>) {
        self.payloads.disable_direct_recycling(napi);
        if let Some(headers) = &mut self.headers {
            headers.disable_direct_recycling(napi);
        }
    }

    /// Gives `slot` the buffers that it lacks, and returns its descriptor; `None` if memory is
    /// short. What is there stays.
    #[inline]
    fn fill(&mut self, slot: &mut Slot) -> Option<descriptor::Raw> {
        if slot.payload.is_none() {
            slot.payload = self.payloads.alloc();
        }
        let payload = slot.payload.as_ref()?.dma_address();

        let Some(headers) = &mut self.headers else {
            return Some(descriptor::rx_read(payload + u64::from(skb::HEADROOM), 0));
        };
        if slot.header.is_none() {
            slot.header = headers.alloc_fragment(HEADER_BUFFER);
        }
        let header = slot.header.as_ref()?.dma_address();

        Some(descriptor::rx_read(
            payload,
            header + u64::from(skb::HEADROOM),
        ))
    }
}

/// A ring with its buffers and pools that the device does not know.
///
/// Buffers go before the pools that they came from.
///
/// # Invariants
///
/// - `slots` has one slot for each descriptor.
/// - The descriptors from `next_to_clean` up to `next_to_use` have all buffers that they need.
pub(crate) struct Ring {
    pub(super) packet: Packet,
    pub(super) slots: KVVec<Slot>,
    pub(super) pools: Pools,
    pub(super) descriptors: Descriptors,
    pub(super) len: ring::Ring,
    pub(super) next_to_use: u16,
    pub(super) next_to_clean: u16,
    pub(super) index: u16,
}

impl Ring {
    /// Allocates the ring of RX queue `index`, which is configured as `config` says, and fills it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the queue's memory provider says.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'_>>,
        parent: &Device<Bound>,
        layouts: Layouts,
        config: &queue::Config,
        index: u16,
    ) -> Result<Self> {
        let len = layouts.len;
        let mut slots = KVVec::with_capacity(usize::from(len.len()), GFP_KERNEL)?;

        for _ in 0..len.len() {
            let slot = Slot {
                header: None,
                payload: None,
            };
            slots.push(slot, GFP_KERNEL)?;
        }

        let mut ring = Self {
            packet: Packet::Between,
            slots,
            pools: Pools::new(dev, parent, layouts, config, u32::from(index))?,
            descriptors: Descriptors::new(parent, u32::from(len.len()))?,
            len,
            next_to_use: 0,
            next_to_clean: 0,
            index,
        };
        // A provider may still have its memory in the ring that this one replaces; the rest comes
        // when NAPI runs.
        if ring.fill() == 0 && !ring.pools.unreadable {
            return Err(ENOMEM);
        }
        Ok(ring)
    }

    /// The queue's SRRCTL.
    pub(super) fn srrctl(&self) -> u32 {
        // With DROP_EN a queue without buffers does not hold up the others.
        if self.pools.headers.is_some() {
            srrctl::encode(
                self.pools.page_size.bytes() / limits::PAYLOAD_BUFFER_UNIT,
                HEADER_SIZE / limits::HEADER_BUFFER_UNIT,
                srrctl::DescType::HeaderSplit,
                true,
            )
        } else {
            srrctl::encode(WHOLE_KIB, 0, srrctl::DescType::OneBuffer, true)
        }
    }

    /// Makes a stopped ring start over: what the device had filled is given to it again.
    pub(super) fn rewind(&mut self) {
        self.packet = Packet::Between;
        self.next_to_use = 0;
        self.next_to_clean = 0;
        self.fill();
    }

    /// Gives buffers to all descriptors that the driver has; returns how many were given.
    pub(super) fn fill(&mut self) -> u16 {
        let mut filled = 0;

        for _ in 0..self.unposted() {
            let Some(slot) = self.slots.get_mut(usize::from(self.next_to_use)) else {
                break;
            };
            let Some(raw) = self.pools.fill(slot) else {
                break;
            };

            self.descriptors.write(u32::from(self.next_to_use), raw);
            self.next_to_use = self.len.next(self.next_to_use);
            filled += 1;
        }
        filled
    }

    /// Descriptors that the device has.
    pub(super) fn posted(&self) -> u16 {
        self.len.used(self.next_to_use, self.next_to_clean)
    }

    /// Descriptors that the device could have and has not.
    pub(super) fn unposted(&self) -> u16 {
        self.len.unused(self.next_to_use, self.next_to_clean)
    }
}
