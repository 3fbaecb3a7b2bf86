// SPDX-License-Identifier: MIT OR Apache-2.0

//! The lab: programs that aren't ours, in a guest with the host's files and our NICs.

mod counted;
mod enter;
mod environment;
mod exec;
mod gdb;
mod memory_check;
mod running;
mod script;
mod side;
mod streams;
mod terminal;
mod trace;
mod trace_dat;
mod visitors;

use std::env;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use cases::Testbed;
use protocol::Ns;
use protocol::program::{MountRoot, RootSource, Share, User};
use vm::{Cables, Export, Guest, Images, Topology};

pub(crate) use self::enter::{Options as EnterOptions, enter};
pub(crate) use self::exec::{Options, ShellOptions, exec, shell};
use self::running::Running;
pub(crate) use self::running::print_list;
pub(crate) use self::side::FAILED;
use crate::guest;
use crate::kernel::KernelArgs;
use crate::project::Project;
use crate::ui;

/// Where the host's file system is mounted in the guest.
const ROOT: &str = "/lab";
/// The name of the peer's namespace.
const PEER: &str = "peer";
/// The mount tag of the host's file system.
const HOST: &str = "host";
/// The RX queue that all TCP is steered to.
const QUEUE: u32 = 1;
/// The wire of the NIC, and the one for control.
const WIRES: u8 = 2;

/// A guest, and what its programs are given of the host.
#[derive(clap::Args)]
pub(crate) struct Setup {
    /// Processors of the guest, and so queue pairs of its NICs
    #[arg(long, value_name = "N", default_value_t = 2)]
    cpus: u32,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: u64,
    /// Keep what is changed in this folder of the host; may be given again
    #[arg(long, value_name = "DIR")]
    rw: Vec<PathBuf>,
    /// Leave the NICs without a driver, and everything else as the kernel made it
    #[arg(long)]
    bare: bool,
    /// With 2, the peer is in a machine of its own, at the other end of the same
    /// wire, in a namespace of the same name
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "bare",
          value_parser = clap::value_parser!(u8).range(1..=2))]
    guests: u8,
    /// Count what the processor does, in windows that the program marks
    /// (nobounce.h, or the crate `marker`), or else in its whole run. The guest
    /// has one processor then, which does the peer's work, too
    #[arg(long)]
    counted: bool,
    /// Copy what crossed the wire to this file, for wireshark or tcpdump
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Record this event of the kernel's, such as `napi:*`, beside the logs, for
    /// trace-cmd and perfetto; may be given again
    #[arg(long, value_name = "EVENT")]
    trace: Vec<String>,
    /// Wait for a debugger of the guest's kernel
    #[arg(long)]
    gdb: bool,
    /// What `ls` and `enter` call this guest
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Run programs as the user that you are, not as root
    #[arg(long)]
    user: bool,
}

/// What the lab's guest boots from: what [`kselftest::ENV`] names, or else what is made now.
///
/// # Errors
///
/// Those of the preparation.
pub(crate) fn images(kernel: KernelArgs) -> Result<Images> {
    ui::quieten();
    if let Some(manifest) = env::var_os(kselftest::ENV) {
        return Ok(Images::load(Path::new(&manifest))?);
    }
    let project = Project::open(KernelArgs {
        lab: !kernel.debug,
        ..kernel
    })?;
    // Only while something is made: the guest only reads what is in the cache.
    let _lock = project.cache.lock()?;
    guest::prepare_lab(&project)
}

/// The lab's guest, or both of them.
struct Lab {
    /// The one with the NIC.
    bed: Testbed,
    /// The peer's, where it has one of its own.
    peer: Option<Testbed>,
}

impl Lab {
    /// Boots what the user wants.
    fn boot(setup: &Setup, images: Images, running: &Running) -> Result<Self> {
        let mut options = options(setup)?;
        if setup.gdb {
            options = gdb::attach(options, &images, running)?;
        }
        let options = options.header_split();
        if setup.guests == 1 {
            let bed = boot(options, setup, images, "lab")?;
            return Ok(Self { bed, peer: None });
        }
        let [near, far] = Cables::lay(WIRES).context("laying cables")?;
        let peers = self::options(setup)?.cables(far);
        thread::scope(|scope| {
            let theirs = images.clone();
            let peer = scope.spawn(|| boot(peers, setup, theirs, "lab-peer"));
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
    fn guest(&self, ns: Ns) -> &Guest {
        match (&self.peer, ns) {
            (Some(peer), Ns::Peer) => &peer.guest,
            _ => &self.bed.guest,
        }
    }

    /// Ends the guests.
    fn finish(self) -> Result<()> {
        let beds = [Some(self.bed), self.peer];
        // Each has something to say.
        let ended = beds.map(|bed| bed.map_or(Ok(()), |bed| bed.finish().map(drop)));
        ended
            .into_iter()
            .try_for_each(|ended| ended.map_err(crate::error))
    }
}

/// What each guest of the lab has.
fn options(setup: &Setup) -> Result<cases::Options> {
    let mut options = Testbed::options()
        .cpus(setup.cpus)
        .memory_mib(setup.memory)
        .mtu(9000)
        .control_wire()
        // No interfaces that nobody asked for.
        .kernel_parameter("fb_tunnels=none bonding.max_bonds=0 dummy.numdummies=0")
        .accelerator(Topology::Switch)
        .export(Export {
            tag: HOST.to_owned(),
            path: PathBuf::from("/"),
            writable: false,
        });
    for (share, path) in shares(setup)? {
        options = options.export(Export {
            tag: share.tag,
            path,
            writable: true,
        });
    }
    if setup.bare {
        options = options.bare();
    }
    if setup.counted {
        options = options.counted();
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
fn boot(options: cases::Options, setup: &Setup, images: Images, name: &str) -> Result<Testbed> {
    let bed = options.boot_images(images, name).map_err(crate::error)?;
    if !setup.bare && bed.has(bed.local) {
        bed.steer(bed.local, &[QUEUE]).map_err(crate::error)?;
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

/// Whom programs run as: root, or the user who has asked.
fn user(wanted: bool) -> Result<Option<User>> {
    if !wanted {
        return Ok(None);
    }
    let groups = rustix::process::getgroups().context("finding your groups")?;
    Ok(Some(User {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        groups: groups.iter().map(|group| group.as_raw()).collect(),
    }))
}
