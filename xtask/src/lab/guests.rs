// SPDX-License-Identifier: MIT OR Apache-2.0

//! The lab's guests: what they are made of, and how they boot.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use cases::{CaseError, Testbed};
use protocol::Ns;
use protocol::flow_rules::{FlowRule, FlowType, InsertFlowRule, RulePlace};
use protocol::link::SetUp;
use protocol::program::{MountRoot, RootSource, Share};
use vm::{Cables, Export, Guest, Images, Machine, Topology};

use super::gdb;
use super::running::Running;
use super::setup::{ACCELERATOR, HOST, PEER, QUEUE, ROOT, Setup, WIRES};
use crate::failure;
use crate::model::Model;

/// More than the longest frame with what TCP segmentation leaves to the NIC.
const WHOLE_FRAMES: u32 = 1 << 18;

/// What programs have device memory of: the accelerator's, and of the kernel's two exporters of ordinary memory.
const DEVICE_MEMORY: [&str; 3] = [ACCELERATOR, "/dev/udmabuf", "/dev/dma_heap/system"];

/// What the guest has of its own.
const OWN: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// The lab's guest, or both of them.
pub(super) struct Lab {
    /// The one with the NIC.
    pub(super) bed: Testbed,
    /// The peer's, where it has one of its own.
    pub(super) peer: Option<Testbed>,
}

impl Lab {
    /// Boots what the user wants.
    pub(super) fn boot(setup: &Setup, images: &Images, running: &Running) -> Result<Self> {
        if setup.iommu && images.lacks(["VIRTIO_IOMMU"])?.is_some() {
            bail!("--iommu takes a kernel with CONFIG_VIRTIO_IOMMU");
        }
        let mut options = options(setup)?;
        if setup.counted {
            options = options.counted();
        }
        if setup.gdb {
            options = gdb::attach(options, images, running, &setup.symbols)?;
        }
        let options = options.header_split();
        if setup.guests == 1 {
            let bed = boot(options, setup, images, "lab")?;
            return Ok(Self { bed, peer: None });
        }
        let [near, far] = Cables::lay(WIRES).context("laying cables")?;
        let mut peers = self::options(setup)?.cables(far);
        if setup.gdb {
            peers = gdb::wait(peers);
        }
        thread::scope(|scope| {
            let peer = scope.spawn(|| boot(peers, setup, images, "lab-peer"));
            let bed = boot(options.cables(near), setup, images, "lab");
            let peer = peer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(Self {
                bed: bed?,
                peer: Some(peer?),
            })
        })
    }

    /// The guest that a namespace is in.
    pub(super) fn guest(&self, ns: Ns) -> &Guest {
        match (&self.peer, ns) {
            (Some(peer), Ns::Peer) => &peer.guest,
            _ => &self.bed.guest,
        }
    }

    /// Ends the guests.
    pub(super) fn finish(self) -> Result<()> {
        let beds = [Some(self.bed), self.peer];
        // Each has something to say.
        let ended = beds.map(|bed| bed.map_or(Ok(()), |bed| bed.finish()));
        ended
            .into_iter()
            .try_for_each(|ended| ended.map_err(failure::of_case))
    }
}

/// What each guest of the lab has.
fn options(setup: &Setup) -> Result<cases::Options> {
    let mut options = Testbed::options()
        .driver(setup.model.driver())
        .cpus(setup.cpus)
        .mtu(9000)
        .control_wire();
    // An address of a peer behind a switch is none that an IOMMU knows.
    options = if setup.iommu {
        options.iommu().accelerator(Topology::RootComplex)
    } else {
        options.accelerator(Topology::Switch)
    };
    let own = shares(setup)?.into_iter().map(|(share, path)| Export {
        tag: share.tag,
        path,
        writable: true,
    });
    let host = Export {
        tag: HOST.to_owned(),
        path: PathBuf::from("/"),
        writable: false,
    };
    options = options.machine(|machine| {
        let machine = machine
            .memory_mib(setup.memory)
            // No tunnel, bond or dummy interfaces by default.
            .kernel_parameter("fb_tunnels=none bonding.max_bonds=0 dummy.numdummies=0")
            .export(host);
        own.fold(machine, Machine::export)
    });
    if setup.bare {
        options = options.bare();
    }
    if setup.pcap.is_some() {
        options = options.machine(|machine| machine.snap_length(WHOLE_FRAMES));
    }
    if !setup.port.is_empty() && setup.model != Model::Nobounce {
        bail!("--port takes a NIC with flow rules: --model nobounce");
    }
    if let Some(link) = setup.link {
        if setup.model != Model::Nobounce {
            bail!("--link takes our model of the NIC: --model nobounce");
        }
        options = options.link(link);
    }
    Ok(options)
}

/// Folders of the host that programs may change.
fn shares(setup: &Setup) -> Result<Vec<(Share, PathBuf)>> {
    let mut shares = Vec::new();
    for (index, folder) in setup.rw.iter().enumerate() {
        let path = folder
            .canonicalize()
            .with_context(|| format!("--rw {}", folder.display()))?;
        if !path.is_dir() {
            bail!("--rw {}: it is no folder", folder.display());
        }
        if path == Path::new("/") {
            bail!("--rw /: name the folders that are to be kept");
        }
        let share = Share {
            tag: format!("rw{index}"),
            path: in_guest(&path).context("--rw")?,
        };
        shares.push((share, path));
    }
    Ok(shares)
}

/// The user's working directory, in which a program runs in the guest, too.
///
/// # Errors
///
/// When it was removed, and those of [`in_guest`].
pub(super) fn working_directory() -> Result<String> {
    let folder = std::env::current_dir().context("finding the working directory")?;
    in_guest(&folder).context("the working directory")
}

/// What a folder is called in the guest.
///
/// # Errors
///
/// For what is the guest's own, which has nothing of the host's there, and a name that can't be passed on.
fn in_guest(path: &Path) -> Result<String> {
    if let Some(own) = OWN.iter().find(|own| path.starts_with(own)) {
        bail!(
            "{} is not in the guest, which has a {own} of its own: take a folder elsewhere",
            path.display()
        );
    }
    match path.to_str() {
        Some(name) => Ok(name.to_owned()),
        None => {
            bail!(
                "{path:?} is not valid UTF-8, and can't be passed to the guest: take a folder elsewhere"
            )
        }
    }
}

/// Boots a guest and makes the host's files its programs'.
fn boot(options: cases::Options, setup: &Setup, images: &Images, name: &str) -> Result<Testbed> {
    let ports = format!("{:?}", setup.port);
    let bed = options
        .boot_prepared(images, name, &ports, |bed| prepare(bed, setup))
        .map_err(failure::of_case)?;
    let shares = shares(setup)?.into_iter().map(|(share, _)| share);
    bed.guest.call(MountRoot {
        source: RootSource::Host {
            tag: HOST.to_owned(),
            shares: shares.collect(),
        },
        directory: ROOT.to_owned(),
        peer: PEER.to_owned(),
        for_users: DEVICE_MEMORY.map(str::to_owned).into(),
    })?;
    Ok(bed)
}

/// Does what no testbed has, and each guest of the lab.
fn prepare(bed: &Testbed, setup: &Setup) -> cases::Result {
    if setup.bare {
        return Ok(());
    }
    if bed.has(bed.local) {
        steer(bed, setup)?;
    }
    for ns in [Ns::Local, Ns::Peer] {
        let interface = "lo".to_owned();
        let up = true;
        bed.guest.call(SetUp::on((ns, interface), up))?;
    }
    Ok(())
}

/// Has TCP that the user wants come to the queue that may be bound.
fn steer(bed: &Testbed, setup: &Setup) -> cases::Result {
    if setup.port.is_empty() {
        return bed.steer(bed.local, &[QUEUE]);
    }
    let others: Vec<u32> = (0..setup.cpus).filter(|&queue| queue != QUEUE).collect();
    bed.steer(bed.local, &others)?;
    for &port in &setup.port {
        for flow in [FlowType::Tcp4, FlowType::Tcp6] {
            bed.guest
                .call(InsertFlowRule::on(
                    bed.local,
                    RulePlace::Any,
                    FlowRule {
                        destination_port: Some((port, u16::MAX).into()),
                        ..FlowRule::all(flow, QUEUE)
                    },
                ))
                .map_err(|error| CaseError::new(format!("--port {port}: {error}")))?;
        }
    }
    Ok(())
}
