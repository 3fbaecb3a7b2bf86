// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is measured: the table of ways, and the sizes that each is tried with.

use cases::Driver;
use protocol::{Memory, ZcrxMemory};

use crate::kernel::Flavour;

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
    /// Whether the NIC writes payload to its final place, which requires header split.
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
    /// Connections, all on the same queue.
    pub(crate) flows: u32,
    /// Tokens that are returned together; without, those of a read.
    pub(crate) token_batch: Option<u32>,
    /// Bits per second of the wire, if it has a rate.
    pub(crate) wire: Option<u64>,
    /// The kernel that it is measured on.
    pub(crate) kernel: Flavour,
    breadth: Breadth,
}

/// With how many sizes a scenario is measured: see [`Extent::has`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breadth {
    /// Next to what is done today, also in the documentation.
    Main,
    /// Between those.
    Side,
    /// With [`FIRST`] only, wherever.
    Detail,
}

/// Rate of a paced wire in bits per second. The one processor does the work of both ends and of the
/// wire, and has to have time left with ordinary sockets, too.
const WIRE: u64 = 50_000_000;

/// MTU and size of reads and writes that everything is measured with.
pub(crate) const FIRST: (u32, u32) = (9000, 64 << 10);

/// Ordinary memory as a dma-buf, in pages.
const UDMABUF: Way = Way::Devmem(Memory::Udmabuf, 4 << 10);
/// Memory of the accelerator.
pub(crate) const ACCELERATOR: Memory = Memory::Accelerator { device: 0 };
pub(crate) const ACCELERATOR_4K: Way = Way::Devmem(ACCELERATOR, 4 << 10);
pub(crate) const ACCELERATOR_16K: Way = Way::Devmem(ACCELERATOR, 16 << 10);
pub(crate) const ZCRX_4K: Way = Way::Zcrx(ZcrxMemory::DmaBuf(ACCELERATOR), 4 << 10);
pub(crate) const ZCRX_16K: Way = Way::Zcrx(ZcrxMemory::DmaBuf(ACCELERATOR), 16 << 10);
/// A buffer of the program that the NIC writes to.
const ZCRX_USER: Way = Way::Zcrx(ZcrxMemory::User, 4 << 10);
/// As it is done without device memory TCP.
pub(crate) const COPIED: Way = Way::Copied(ACCELERATOR);

use Driver::{Igb, Rigb};
use Way::Ordinary;

/// All scenarios, the ones that others are compared with first. A row more is a line more.
#[rustfmt::skip]
pub(crate) const SCENARIOS: &[Scenario] = &[
    // name, driver, how it is sent, how it is received
    scenario("igb", Igb, Ordinary, Ordinary).main(),
    scenario("igb + copy", Igb, COPIED, COPIED).main(),
    scenario("rigb", Rigb, Ordinary, Ordinary).main(),
    scenario("rigb devmem RX, udmabuf", Rigb, Ordinary, UDMABUF),
    scenario("rigb devmem TX, udmabuf", Rigb, UDMABUF, Ordinary),
    scenario("rigb devmem, udmabuf", Rigb, UDMABUF, UDMABUF),
    scenario("rigb devmem, accelerator", Rigb, ACCELERATOR_4K, ACCELERATOR_4K),
    scenario("rigb devmem, accelerator, 16K", Rigb, ACCELERATOR_16K, ACCELERATOR_16K).main(),
    scenario("rigb zcrx RX, user", Rigb, Ordinary, ZCRX_USER),
    scenario("rigb zcrx + devmem TX, accelerator, 4K", Rigb, ACCELERATOR_4K, ZCRX_4K),
    scenario("rigb zcrx + devmem TX, accelerator, 16K", Rigb, ACCELERATOR_16K, ZCRX_16K).main(),

    scenario("igb, clang", Igb, Ordinary, Ordinary).clang(),
    scenario("rigb, clang", Rigb, Ordinary, Ordinary).clang(),

    scenario("igb, 2 flows", Igb, Ordinary, Ordinary).flows(2),
    scenario("igb, 4 flows", Igb, Ordinary, Ordinary).flows(4),
    scenario("rigb, 2 flows", Rigb, Ordinary, Ordinary).flows(2),
    scenario("rigb, 4 flows", Rigb, Ordinary, Ordinary).flows(4),
    scenario("rigb devmem, accelerator, 16K, 2 flows", Rigb, ACCELERATOR_16K, ACCELERATOR_16K).flows(2),
    scenario("rigb devmem, accelerator, 16K, 4 flows", Rigb, ACCELERATOR_16K, ACCELERATOR_16K).flows(4),
    scenario("rigb zcrx + devmem TX, accelerator, 16K, 2 flows", Rigb, ACCELERATOR_16K, ZCRX_16K).flows(2),
    scenario("rigb zcrx + devmem TX, accelerator, 16K, 4 flows", Rigb, ACCELERATOR_16K, ZCRX_16K).flows(4),

    scenario("rigb devmem RX, udmabuf, tokens by 1", Rigb, Ordinary, UDMABUF).tokens(1),
    scenario("rigb devmem RX, udmabuf, tokens by 16", Rigb, Ordinary, UDMABUF).tokens(16),
    scenario("rigb devmem RX, udmabuf, tokens by 128", Rigb, Ordinary, UDMABUF).tokens(128),
    scenario("rigb devmem RX, udmabuf, tokens by 512", Rigb, Ordinary, UDMABUF).tokens(512),

    scenario("igb, paced wire", Igb, Ordinary, Ordinary).paced(),
    scenario("rigb, paced wire", Rigb, Ordinary, Ordinary).paced(),
    scenario("rigb devmem, accelerator, 16K, paced wire", Rigb, ACCELERATOR_16K, ACCELERATOR_16K).paced(),
    scenario("rigb zcrx + devmem TX, accelerator, 16K, paced wire", Rigb, ACCELERATOR_16K, ZCRX_16K).paced(),
];

const fn scenario(name: &'static str, driver: Driver, tx: Way, rx: Way) -> Scenario {
    Scenario {
        name,
        driver,
        tx,
        rx,
        flows: 1,
        token_batch: None,
        wire: None,
        kernel: Flavour::Lean,
        breadth: Breadth::Side,
    }
}

impl Scenario {
    /// Whether it belongs next to all others: one that only differs in its tokens does not.
    pub(crate) fn is_way(&self) -> bool {
        self.token_batch.is_none() && self.wire.is_none()
    }

    /// Whether it has one flow, whose tokens go back with each read.
    pub(crate) fn is_plain(&self) -> bool {
        self.flows == 1 && self.is_way()
    }

    /// Whether payload goes the same way with the same driver.
    pub(crate) fn goes_as(&self, other: &Self) -> bool {
        (self.driver, self.tx, self.rx) == (other.driver, other.tx, other.rx)
    }

    const fn main(mut self) -> Self {
        self.breadth = Breadth::Main;
        self
    }

    const fn clang(mut self) -> Self {
        self.kernel = Flavour::Clang;
        self.main()
    }

    const fn flows(mut self, flows: u32) -> Self {
        self.flows = flows;
        self.breadth = Breadth::Detail;
        self
    }

    const fn paced(mut self) -> Self {
        self.wire = Some(WIRE);
        self.breadth = Breadth::Detail;
        self
    }

    const fn tokens(mut self, batch: u32) -> Self {
        self.token_batch = Some(batch);
        self.breadth = Breadth::Detail;
        self
    }
}

/// One transfer: a scenario with sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) scenario: Scenario,
    /// MTU of the wire.
    pub(crate) mtu: u32,
    /// Bytes of each read and write.
    pub(crate) io: u32,
}

impl Transfer {
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

/// The row of restarts.
pub(crate) const RESTART: &str = "rigb restart";

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Row {
    /// Payload goes from one end to the other.
    Transfer(Transfer),
    /// A queue is restarted.
    Restart,
}

impl Row {
    /// As `--only` looks for it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Transfer(transfer) => transfer.name(),
            Self::Restart => RESTART.to_owned(),
        }
    }

    /// Whether repeats tell more than one measurement: a paced wire leaves nothing to chance, and
    /// restarts are many anyway. Both take long.
    pub(crate) fn repeats(&self) -> bool {
        match self {
            Self::Transfer(transfer) => transfer.scenario.wire.is_none(),
            Self::Restart => false,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What is compared in CI.
    Quick,
    /// What the documentation shows.
    Document,
    /// What `make bench` measures.
    Usual,
    /// All, with all sizes.
    Full,
}

impl Extent {
    /// Whether a scenario of this breadth is measured with these sizes.
    fn has(self, breadth: Breadth, mtu: u32, io: u32) -> bool {
        let first = (mtu, io) == FIRST;
        match (self, breadth) {
            (Self::Quick, Breadth::Detail) => false,
            (Self::Quick, _) | (_, Breadth::Detail) | (Self::Document, Breadth::Side) => first,
            (Self::Document, Breadth::Main) => {
                USUAL.contains(&io) && (mtu != 4096 || io == FIRST.1)
            }
            (Self::Usual, Breadth::Side) => USUAL.contains(&io),
            (Self::Usual, Breadth::Main) => USUAL.contains(&io) || mtu == FIRST.0,
            (Self::Full, _) => true,
        }
    }
}

const MTUS: [u32; 3] = [1500, 4096, 9000];
/// Sizes of reads and writes: 4 KiB to 16 MiB.
const IOS: [u32; 7] = [
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];
/// Those of them that tables are for.
const USUAL: [u32; 2] = [64 << 10, 1 << 20];

/// The rows of an extent that are measured on a kernel, in the order of the table.
pub(crate) fn rows(extent: Extent, kernel: Flavour) -> Vec<Row> {
    let scenarios: Vec<_> = SCENARIOS.iter().filter(|s| s.kernel == kernel).collect();
    let mut rows = Vec::new();
    for mtu in MTUS {
        for io in IOS {
            let scenarios = scenarios.iter().filter(|s| extent.has(s.breadth, mtu, io));
            rows.extend(scenarios.map(|&&scenario| Row::Transfer(Transfer { scenario, mtu, io })));
        }
    }
    if extent != Extent::Quick && kernel == Flavour::Lean {
        rows.push(Row::Restart);
    }
    rows
}

/// The kernel that a row is measured on, by its scenario's name.
pub(crate) fn kernel_of(row: &str) -> Flavour {
    let found = SCENARIOS.iter().find(|scenario| scenario.name == row);
    found.map_or(Flavour::Lean, |scenario| scenario.kernel)
}

/// `64K`, `1M`.
pub(crate) fn size(bytes: u32) -> String {
    if bytes >= 1 << 20 {
        format!("{}M", bytes >> 20)
    } else {
        format!("{}K", bytes >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_scenario_and_not_every_size() {
        for scenario in SCENARIOS {
            let rows = rows(Extent::Document, scenario.kernel);
            let (mtu, io) = FIRST;
            let scenario = *scenario;
            let name = Transfer { scenario, mtu, io }.name();
            assert!(rows.iter().any(|row| row.name() == name), "{name}");
        }
        let rows = rows(Extent::Document, Flavour::Lean);
        // Three repeats of ten seconds each.
        assert!(rows.len() <= 50, "{} rows take long", rows.len());
    }

    #[test]
    fn a_usual_run_has_every_mtu_message_size_and_number_of_flows() {
        let rows: Vec<_> = rows(Extent::Usual, Flavour::Lean)
            .iter()
            .map(Row::name)
            .collect();
        for name in [
            "igb, MTU 9000, 4K",
            "igb + copy, MTU 9000, 16M",
            "rigb devmem, accelerator, 16K, MTU 9000, 256K",
            "rigb devmem, udmabuf, MTU 4096, 1M",
            "rigb zcrx RX, user, MTU 1500, 64K",
            "rigb, 2 flows, MTU 9000, 64K",
            "rigb devmem, accelerator, 16K, 4 flows, MTU 9000, 64K",
        ] {
            assert!(rows.iter().any(|row| row == name), "{name}");
        }
        assert!(rows.len() <= 120, "{} rows take long", rows.len());
    }
}
