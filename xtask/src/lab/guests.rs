// SPDX-License-Identifier: MIT OR Apache-2.0

//! The lab's guests: what they are made of, and how they boot.

use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, bail};
use cases::Testbed;
use protocol::Ns;
use protocol::link::SetUp;
use protocol::program::{MountRoot, RootSource, Share};
use vm::{Cables, Export, Guest, Images, Machine, Topology};

use super::gdb;
use super::running::Running;
use super::setup::{HOST, PEER, QUEUE, ROOT, Setup, WIRES};
use crate::failure;
use crate::model::Model;

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
            options = gdb::attach(options, images, running)?;
        }
        let options = options.header_split();
        if setup.guests == 1 {
            let bed = boot(options, setup, images, "lab")?;
            return Ok(Self { bed, peer: None });
        }
        let [near, far] = Cables::lay(WIRES).context("laying cables")?;
        let peers = self::options(setup)?.cables(far);
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
        let ended = beds.map(|bed| bed.map_or(Ok(()), |bed| bed.finish().map(drop)));
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
        let share = Share {
            tag: format!("rw{index}"),
            path: path.to_string_lossy().into_owned(),
        };
        shares.push((share, path));
    }
    Ok(shares)
}

/// Boots a guest and makes the host's files its programs'.
fn boot(options: cases::Options, setup: &Setup, images: &Images, name: &str) -> Result<Testbed> {
    let bed = options
        .boot_images(images, name)
        .map_err(failure::of_case)?;
    if !setup.bare && bed.has(bed.local) {
        bed.steer(bed.local, &[QUEUE]).map_err(failure::of_case)?;
    }
    if !setup.bare {
        for ns in [Ns::Local, Ns::Peer] {
            let interface = "lo".to_owned();
            let up = true;
            bed.guest.call(SetUp { ns, interface, up })?;
        }
    }
    let shares = shares(setup)?.into_iter().map(|(share, _)| share);
    bed.guest.call(MountRoot {
        source: RootSource::Host {
            tag: HOST.to_owned(),
            shares: shares.collect(),
        },
        directory: ROOT.to_owned(),
        peer: PEER.to_owned(),
    })?;
    Ok(bed)
}
