// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is measured: the table of ways, and the sizes that each is tried with.

use cases::Driver;
use protocol::{Memory, ZcrxMemory};

/// How payload gets to and from where it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Ordinary sockets, to a buffer of the program.
    Ordinary,
    /// Ordinary sockets, and a copy between buffer and device memory.
    Copied(Memory),
    /// Device memory sockets; a receiver has buffers of this many bytes.
    Devmem(Memory, u32),
    /// io_uring zero-copy receive, into buffers of this many bytes.
    Zcrx(ZcrxMemory, u32),
}

impl Way {
    /// Whether the NIC puts payload where it shall be, for which header and payload are split.
    pub(crate) fn places_payload(self) -> bool {
        matches!(self, Self::Devmem(..) | Self::Zcrx(..))
    }

    /// Where the payload ends or starts, when that is a dma-buf.
    pub(crate) fn memory(self) -> Option<Memory> {
        match self {
            Self::Ordinary | Self::Zcrx(ZcrxMemory::User, _) => None,
            Self::Copied(memory)
            | Self::Devmem(memory, _)
            | Self::Zcrx(ZcrxMemory::DmaBuf(memory), _) => Some(memory),
        }
    }
}

/// A driver, and a way at each end of the stream. One processor does both ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    /// Its name in tables and figures.
    pub(crate) name: &'static str,
    pub(crate) driver: Driver,
    /// How the sender sends.
    pub(crate) tx: Way,
    /// How the receiver receives.
    pub(crate) rx: Way,
}

/// Ordinary memory as a dma-buf, in pages.
const UDMABUF: Way = Way::Devmem(Memory::Udmabuf, 4 << 10);
/// Memory of the accelerator.
const ACCELERATOR: Memory = Memory::Accelerator { device: 0 };
const ACCELERATOR_4K: Way = Way::Devmem(ACCELERATOR, 4 << 10);
const ACCELERATOR_16K: Way = Way::Devmem(ACCELERATOR, 16 << 10);
const ZCRX_4K: Way = Way::Zcrx(ZcrxMemory::DmaBuf(ACCELERATOR), 4 << 10);
const ZCRX_16K: Way = Way::Zcrx(ZcrxMemory::DmaBuf(ACCELERATOR), 16 << 10);
/// A buffer of the program that the NIC writes to.
const ZCRX_USER: Way = Way::Zcrx(ZcrxMemory::User, 4 << 10);
/// As it is done without device memory TCP.
const COPIED: Way = Way::Copied(ACCELERATOR);

use Driver::{Igb, Rigb};
use Way::Ordinary;

/// All scenarios, the ones that others are compared with first. A row more is a line more.
#[rustfmt::skip]
pub(crate) const SCENARIOS: &[Scenario] = &[
    // name, driver, how it is sent, how it is received
    scenario("igb", Igb, Ordinary, Ordinary),
    scenario("igb + copy", Igb, COPIED, COPIED),
    scenario("rigb", Rigb, Ordinary, Ordinary),
    scenario("rigb devmem RX, udmabuf", Rigb, Ordinary, UDMABUF),
    scenario("rigb devmem TX, udmabuf", Rigb, UDMABUF, Ordinary),
    scenario("rigb devmem, udmabuf", Rigb, UDMABUF, UDMABUF),
    scenario("rigb devmem, accelerator", Rigb, ACCELERATOR_4K, ACCELERATOR_4K),
    scenario("rigb devmem, accelerator, 16K", Rigb, ACCELERATOR_16K, ACCELERATOR_16K),
    scenario("rigb zcrx RX, user", Rigb, Ordinary, ZCRX_USER),
    scenario("rigb zcrx + devmem TX, accelerator, 4K", Rigb, ACCELERATOR_4K, ZCRX_4K),
    scenario("rigb zcrx + devmem TX, accelerator, 16K", Rigb, ACCELERATOR_16K, ZCRX_16K),
];

const fn scenario(name: &'static str, driver: Driver, tx: Way, rx: Way) -> Scenario {
    Scenario {
        name,
        driver,
        tx,
        rx,
    }
}

/// One measurement: a scenario with sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) scenario: Scenario,
    /// MTU of the wire.
    pub(crate) mtu: u32,
    /// Bytes of each read and write.
    pub(crate) io: u32,
}

impl Row {
    /// `rigb devmem, MTU 9000, 64K`.
    pub(crate) fn name(&self) -> String {
        format!(
            "{}, MTU {}, {}",
            self.scenario.name,
            self.mtu,
            size(self.io)
        )
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What is compared in CI.
    Quick,
    /// What the documentation shows.
    Usual,
    /// All message sizes.
    Full,
}

/// The rows of an extent, in the order of the table.
pub(crate) fn rows(extent: Extent) -> Vec<Row> {
    let (mtus, ios): (&[u32], &[u32]) = match extent {
        Extent::Quick => (&[9000], &[64 << 10]),
        Extent::Usual => (&[1500, 4096, 9000], &[64 << 10, 1 << 20]),
        Extent::Full => (
            &[1500, 4096, 9000],
            &[
                4 << 10,
                16 << 10,
                64 << 10,
                256 << 10,
                1 << 20,
                4 << 20,
                16 << 20,
            ],
        ),
    };
    let mut rows = Vec::new();
    for &mtu in mtus {
        for &io in ios {
            rows.extend(SCENARIOS.iter().map(|&scenario| Row { scenario, mtu, io }));
        }
    }
    rows
}

/// `64K`, `1M`.
pub(crate) fn size(bytes: u32) -> String {
    if bytes >= 1 << 20 {
        format!("{}M", bytes >> 20)
    } else {
        format!("{}K", bytes >> 10)
    }
}
