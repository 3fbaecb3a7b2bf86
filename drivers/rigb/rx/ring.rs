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
    prelude::*, //
};
use net::{
    descriptors::{
        Descriptor,
        Descriptors, //
    },
    device::Locked,
    fragment::{
        Fragment,
        FragmentAllocator,
        FragmentPool, //
    },
    napi::Disabled,
    page_pool::{
        self,
        Allocator,
        Netmem,
        PagePool,
        PageSize, //
    },
    queue,
    skb,
    xdp::{
        self,
        Program, //
    }, //
};

use super::{
    packet::Packet,
    xdp::Xdp, //
};
use crate::netdev::Adapter;

/// Room for headers in a header buffer, in bytes: Ethernet with VLAN tags, IPv6 with extension
/// headers, TCP with options.
pub(super) const HEADER_SIZE: u32 = 256;

const _: () = assert!(HEADER_SIZE % limits::HEADER_BUFFER_UNIT == 0);

/// How a ring is laid out.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Descriptors.
    pub(crate) len: ring::Ring,
    /// What the device may fill of a head buffer, in bytes.
    pub(super) head: u32,
    /// Headers are split from payload.
    split: bool,
    /// XDP programs may run.
    xdp: bool,
}

impl Layout {
    /// `mtu` is the longest packet, in bytes.
    pub(crate) fn new(len: ring::Ring, mtu: u32, split: bool, xdp: bool) -> Self {
        let head = if split {
            HEADER_SIZE
        } else {
            limits::frame_len(mtu).next_multiple_of(limits::PAYLOAD_BUFFER_UNIT)
        };

        Self {
            len,
            head,
            split,
            xdp,
        }
    }

    /// What a head buffer has before what the device fills, in bytes.
    fn headroom(&self) -> u32 {
        if self.xdp {
            xdp::HEADROOM
        } else {
            skb::HEADROOM
        }
    }

    /// A head buffer: what the device fills, and room for the skb around it.
    fn head_buffer(&self) -> u32 {
        let size = self.headroom() + self.head + skb::TAILROOM;

        if self.split && self.xdp {
            // The core takes each fragment of an XDP frame for as large as the buffer before it
            // (`__xdp_build_skb_from_frame()`).
            size.max(PageSize::PAGE.bytes())
        } else {
            size
        }
    }
}

/// The buffers behind one descriptor; either may be missing or, after a packet that did not need
/// it, still there.
pub(super) struct Slot {
    pub(super) head: Option<Fragment>,
    pub(super) payload: Option<Netmem>,
}

/// Where payload that is split from its headers goes.
pub(super) struct Payloads<'bound> {
    /// Pages, or the memory provider's.
    pub(super) pool: PagePool<Adapter<'bound>>,
    /// The CPU cannot read them.
    pub(super) unreadable: bool,
    /// The size of each.
    pub(super) size: PageSize,
}

/// Where buffers come from.
pub(super) struct Pools<'bound> {
    /// What skbs are built around: buffers for headers, or for whole packets.
    pub(super) heads: FragmentPool<Adapter<'bound>>,
    /// What each of them has before what the device fills, in bytes.
    pub(super) headroom: u32,
    /// Only with header split.
    pub(super) payloads: Option<Payloads<'bound>>,
    /// Only where the layout has room for what programs do.
    pub(super) xdp: Option<Xdp>,
}

impl<'bound> Pools<'bound> {
    fn new(
        dev: Locked<'_, Adapter<'bound>>,
        parent: &Device<Bound>,
        layout: Layout,
        config: &queue::Config,
        queue: u32,
        program: Option<&Program>,
    ) -> Result<Self> {
        let size = u32::from(layout.len.len());
        let payloads = layout
            .split
            .then(|| {
                let pool = PagePool::new(
                    dev,
                    Some(parent),
                    &page_pool::Config {
                        size,
                        page_size: config.rx_page_size,
                        queue,
                        allow_unreadable: true,
                    },
                )?;

                Ok::<_, Error>(Payloads {
                    unreadable: pool.is_unreadable(),
                    pool,
                    size: config.rx_page_size,
                })
            })
            .transpose()?;

        let heads = FragmentPool::new(dev, Some(parent), queue, layout.head_buffer(), size)?;

        let xdp = layout
            .xdp
            .then(|| Xdp::new(dev, queue, &heads, program))
            .transpose()?;

        Ok(Self {
            heads,
            headroom: layout.headroom(),
            payloads,
            xdp,
        })
    }

    /// The CPU cannot read payloads.
    #[inline]
    pub(super) fn unreadable(&self) -> bool {
        self.payloads
            .as_ref()
            .is_some_and(|payloads| payloads.unreadable)
    }

    /// Makes the polls of `napi` what takes memory from the pools.
    ///
    /// # Errors
    ///
    /// `EBUSY` if that is another NAPI's polls already.
    pub(super) fn attach(&mut self, napi: &Disabled<'_, Adapter<'bound>>) -> Result {
        self.heads.attach(napi)?;
        match &mut self.payloads {
            Some(payloads) => payloads.pool.attach(napi),
            None => Ok(()),
        }
    }

    pub(super) fn detach(&mut self, napi: &Disabled<'_, Adapter<'bound>>) {
        self.heads.detach(napi);
        if let Some(payloads) = &mut self.payloads {
            payloads.pool.detach(napi);
        }
    }

    /// What fills slots, where `context` may take memory from the pools.
    #[inline]
    fn filler(&mut self, context: &impl page_pool::Context) -> Option<Filler<'_>> {
        Some(Filler {
            heads: self.heads.allocator(context)?,
            headroom: self.headroom,
            payloads: match &mut self.payloads {
                Some(payloads) => Some(payloads.pool.allocator(context)?),
                None => None,
            },
        })
    }
}

/// Fills slots from the pools of a ring.
struct Filler<'a> {
    heads: FragmentAllocator<'a>,
    headroom: u32,
    payloads: Option<Allocator<'a>>,
}

impl Filler<'_> {
    /// Posts `slots` with the buffers that they lack, as `descriptors`, and returns how many: fewer if
    /// memory is short.
    // noinline: the loop keeps the registers.
    #[inline(never)]
    fn post<'d>(
        &mut self,
        slots: &mut [Slot],
        descriptors: impl Iterator<Item = Descriptor<'d>>,
    ) -> u16 {
        let mut posted = 0;

        for (slot, descriptor) in slots.iter_mut().zip(descriptors) {
            let Some(raw) = self.fill(slot) else {
                break;
            };
            descriptor.write(raw);
            posted += 1;
        }
        posted
    }

    /// Gives `slot` the buffers that it lacks, and returns its descriptor; `None` if memory is
    /// short. What is there stays.
    #[inline]
    fn fill(&mut self, slot: &mut Slot) -> Option<descriptor::Raw> {
        if slot.head.is_none() {
            slot.head = self.heads.alloc();
        }
        let head = slot.head.as_ref()?.dma_address() + u64::from(self.headroom);

        let Some(payloads) = &mut self.payloads else {
            return Some(descriptor::rx_read(head, 0));
        };
        if slot.payload.is_none() {
            slot.payload = payloads.alloc();
        }
        let payload = slot.payload.as_ref()?.dma_address();

        Some(descriptor::rx_read(payload, head))
    }
}

/// A ring with its buffers and pools that the device does not know.
///
/// Buffers go before the pools that they came from.
///
/// # Invariants
///
/// - `slots` has one slot for each descriptor.
/// - The descriptors that are posted have all buffers that they need.
pub(crate) struct Ring<'bound> {
    pub(super) packet: Packet,
    pub(super) slots: KVVec<Slot>,
    pub(super) pools: Pools<'bound>,
    pub(super) descriptors: Descriptors,
    layout: Layout,
    pub(super) window: ring::Window,
    pub(super) index: u16,
}

impl<'bound> Ring<'bound> {
    /// Allocates the ring of RX queue `index`, which is configured as `config` says, and fills it.
    /// `program` runs if the layout has room for it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the queue's memory provider says.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'bound>>,
        parent: &Device<Bound>,
        layout: Layout,
        config: &queue::Config,
        index: u16,
        program: Option<&Program>,
    ) -> Result<Self> {
        let len = layout.len;
        let mut slots = KVVec::with_capacity(usize::from(len.len()), GFP_KERNEL)?;

        for _ in 0..len.len() {
            let slot = Slot {
                head: None,
                payload: None,
            };
            slots.push(slot, GFP_KERNEL)?;
        }

        let mut ring = Self {
            packet: Packet::Between,
            slots,
            pools: Pools::new(dev, parent, layout, config, u32::from(index), program)?,
            descriptors: Descriptors::new(parent, u32::from(len.len()))?,
            layout,
            window: ring::Window::new(len),
            index,
        };
        // A provider may still have its memory in the ring that this one replaces; the rest comes
        // when NAPI runs.
        if ring.fill(&dev) == 0 && !ring.pools.unreadable() {
            return Err(ENOMEM);
        }
        Ok(ring)
    }

    /// The queue's SRRCTL.
    pub(super) fn srrctl(&self) -> u32 {
        // With DROP_EN a queue without buffers does not hold up the others.
        match &self.pools.payloads {
            Some(payloads) => srrctl::encode(
                payloads.size.bytes() / limits::PAYLOAD_BUFFER_UNIT,
                self.layout.head / limits::HEADER_BUFFER_UNIT,
                srrctl::DescType::HeaderSplit,
                true,
            ),
            None => srrctl::encode(
                self.layout.head / limits::PAYLOAD_BUFFER_UNIT,
                0,
                srrctl::DescType::OneBuffer,
                true,
            ),
        }
    }

    /// Makes a stopped ring start over: what the device had filled is posted again.
    pub(super) fn rewind(&mut self, context: &impl page_pool::Context) {
        self.packet = Packet::Between;
        if let Some(xdp) = &self.pools.xdp {
            xdp.forget();
        }
        self.window.rewind();
        self.fill(context);
    }

    /// Posts buffers for all descriptors that the driver has. Returns how many.
    pub(super) fn fill(&mut self, context: &impl page_pool::Context) -> u16 {
        let wanted = self.window.unposted();
        let Some(mut filler) = self.pools.filler(context) else {
            return 0;
        };
        let mut filled = 0;

        // Up to the end of the ring, and on from its start.
        while filled < wanted {
            let run = self.window.to_post(wanted - filled);
            let Some(slots) = self.slots.get_mut(run.range()) else {
                break;
            };
            let descriptors = self.descriptors.run(run.start.into(), run.count.into());
            let posted = filler.post(slots, descriptors);

            filled += posted;
            self.window.post(posted);
            if posted < run.count {
                break;
            }
        }
        filled
    }
}
