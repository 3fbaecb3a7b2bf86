// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the host can ask. Every request is a struct whose [`Query::Reply`] is its answer.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Command, Failure, Job, JobId, Ns,
    ethtool::{
        Coalesce, DriverInfo, DumpRegisters, GetCoalesce, GetDriverInfo, GetLinkModes,
        GetMessageLevel, GetPause, GetStandardStats, GetTimestamping, GetWakeOnLan, Identify,
        LinkModes, Pause, RegisterDump, SelfTest, SetCoalesce, SetLinkModes, SetMessageLevel,
        SetPause, SetWakeOnLan, StandardStats, TestSelf, Timestamping, WakeOnLan,
    },
    net::{
        Channels, DataSplit, Features, FlowKind, HashFields, Interface, LinkStats, Mac, Module,
        Napi, PagePool, Prefix, Queue, QueueStats, Rings, Rss, Threading,
    },
    program::MountRoot,
    xdp::{AttachXdp, DetachXdp, ExchangeFrames, XdpFeatures, XdpRuns},
};

/// A request together with the type of its answer.
pub trait Query: Into<Request> {
    /// What a success carries.
    type Reply: Serialize + DeserializeOwned;
}

/// Defines [`Request`] with one variant for each struct, and what each is answered with.
macro_rules! requests {
    ($($name:ident -> $reply:ty,)*) => {
        /// Any request, as it goes over the wire.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        pub enum Request {
            $(
                #[doc = concat!("See [`", stringify!($name), "`].")]
                $name($name),
            )*
        }

        impl Request {
            /// The request's name, for logs and errors.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }
        }

        $(
            impl From<$name> for Request {
                fn from(request: $name) -> Self {
                    Self::$name(request)
                }
            }

            impl Query for $name {
                type Reply = $reply;
            }
        )*
    };
}

requests! {
    Hello -> AgentInfo,
    PowerOff -> (),
    Panic -> (),
    ReadFile -> String,
    WriteFile -> (),
    LogLine -> (),
    LoadModule -> (),
    UnloadModule -> (),
    ListModules -> Vec<Module>,
    ListInterfaces -> Vec<Interface>,
    WaitInterface -> Interface,
    WaitCarrier -> (),
    SetUp -> (),
    SetMtu -> (),
    SetMac -> (),
    SetReceiveMode -> (),
    AddFilter -> (),
    RemoveFilter -> (),
    AddVlan -> (),
    RemoveInterface -> (),
    MoveInterface -> (),
    AddAddress -> (),
    RemoveAddress -> (),
    AddNeighbour -> (),
    GetLinkStats -> LinkStats,
    GetRings -> Rings,
    SetRings -> (),
    GetRss -> Rss,
    SetRss -> (),
    SetHashFields -> (),
    SetInputTransformation -> (),
    FlowQueue -> FlowPlace,
    GetChannels -> Channels,
    SetChannels -> (),
    GetCoalesce -> Coalesce,
    SetCoalesce -> (),
    GetPause -> Pause,
    SetPause -> (),
    GetLinkModes -> LinkModes,
    SetLinkModes -> (),
    GetStandardStats -> StandardStats,
    GetDriverInfo -> DriverInfo,
    DumpRegisters -> RegisterDump,
    TestSelf -> SelfTest,
    Identify -> (),
    GetWakeOnLan -> WakeOnLan,
    SetWakeOnLan -> (),
    GetMessageLevel -> u32,
    SetMessageLevel -> (),
    GetTimestamping -> Timestamping,
    GetFeatures -> Features,
    SetFeatures -> (),
    GetDriverStats -> BTreeMap<String, u64>,
    ListQueues -> Vec<Queue>,
    GetQueueStats -> Vec<QueueStats>,
    GetInterfaceQueueStats -> BTreeMap<String, u64>,
    ListPagePools -> Vec<PagePool>,
    ListStrayPools -> Vec<PagePool>,
    ListNapis -> Vec<Napi>,
    SetNapi -> (),
    Ping -> PingReport,
    SendFrame -> (),
    ReadRegister -> u32,
    WriteRegister -> (),
    ExchangeFrames -> Vec<Vec<u8>>,
    AttachXdp -> (),
    DetachXdp -> (),
    XdpRuns -> u64,
    XdpFeatures -> u64,
    WriteConfig -> (),
    MarkWindow -> (),
    ReadMarks -> (),
    FindLeaks -> Option<String>,
    FreeDeferred -> (),
    Inject -> Injected,
    ListModuleSymbols -> Vec<Symbol>,
    MountRoot -> (),
    StartJob -> JobId,
    Tell -> (),
    Join -> serde_json::Value,
}

/// Who is there? Also sent unasked as [`crate::Message::Ready`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {}

/// Answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// [`crate::VERSION`] of the agent.
    pub version: u32,
    /// `uname -r`.
    pub kernel_release: String,
    /// The kernel's command line.
    pub command_line: String,
    /// Processors that are online.
    pub cpus: usize,
    /// Memory that the kernel found, in bytes.
    pub memory: u64,
    /// Size of a page, in bytes.
    pub page_size: usize,
}

/// Turns the guest off, after the reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PowerOff {}

/// Makes the agent panic: for the tests of what the host does then. There is no reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Panic {
    /// The panic's message.
    pub message: String,
}

/// Reads a text file, for instance from sysfs, procfs or debugfs.
///
/// Fails with the errno of the file system, and without one above 1 MiB.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadFile {
    /// Namespace that files below `/proc/sys/net` and `/proc/thread-self/net` speak of.
    pub ns: Ns,
    /// Absolute path.
    pub path: String,
}

/// Writes a text into an existing file with one `write`, as `echo` does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteFile {
    /// Namespace that files below `/proc/sys/net` speak of.
    pub ns: Ns,
    /// Absolute path.
    pub path: String,
    /// What to write.
    pub contents: String,
}

/// Writes a line into the kernel's log, so that the console shows what a test was doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLine {
    /// The line.
    pub text: String,
}

/// Kernel memory that nothing refers to any more, as kmemleak reports it: empty when there is
/// none, and nothing from a kernel without kmemleak. It takes seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindLeaks {}

/// Makes every processor free the skbs that others left to it (`skb_attempt_defer_free()`): an idle
/// one does so when it next receives something, whenever that is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FreeDeferred {}

/// Does a request while the kernel fails one allocation of it (`fail-nth` in the kernel's
/// Documentation/fault-injection). Which allocations are counted is set in debugfs.
///
/// Fails when the kernel has no fault injection, and not when the request does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inject {
    /// Which of them, from 1.
    pub nth: u32,
    /// What to do. It must be for the local namespace.
    pub request: Box<Request>,
}

/// Answer to [`Inject`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Injected {
    /// An allocation failed; otherwise there were fewer.
    pub fired: bool,
    /// The answer to the request.
    pub reply: Result<serde_json::Value, Failure>,
}

/// Loads `/lib/modules/<name>.ko`; its dependencies must be loaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadModule {
    /// File name without `.ko`.
    pub name: String,
    /// Module parameters, `key=value` separated by spaces.
    pub parameters: String,
}

/// Unloads a module. EWOULDBLOCK when it has references.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnloadModule {
    /// The module's name; `-` and `_` are the same.
    pub name: String,
}

/// All loaded modules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListModules {}

/// All interfaces of a namespace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListInterfaces {
    /// Which namespace.
    pub ns: Ns,
}

/// Waits until an interface with this Ethernet address exists in `ns`.
///
/// Fails with ETIMEDOUT.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitInterface {
    /// Which namespace.
    pub ns: Ns,
    /// Address of the NIC.
    pub mac: Mac,
    /// How long, in milliseconds.
    pub timeout_ms: u64,
}

/// Waits until an interface has a carrier, or has none.
///
/// Fails with ETIMEDOUT, or ENODEV when there is no such interface.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitCarrier {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// What to wait for.
    pub carrier: bool,
    /// How long, in milliseconds.
    pub timeout_ms: u64,
}

/// Brings an interface up or down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetUp {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Up or down.
    pub up: bool,
}

/// Changes the MTU.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetMtu {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Largest packet without the Ethernet header, in bytes.
    pub mtu: u32,
}

/// Changes the Ethernet address.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetMac {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// The new address.
    pub mac: Mac,
}

/// Makes an interface receive what is not for it. `None` leaves a mode as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetReceiveMode {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// All frames.
    pub promiscuous: Option<bool>,
    /// All multicast frames.
    pub all_multicast: Option<bool>,
}

/// Adds an Ethernet address, unicast or multicast, to those that an interface receives, as
/// `bridge fdb add ... self` does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AddFilter {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// The address.
    pub mac: Mac,
}

/// Removes an address that [`AddFilter`] added.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveFilter {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// The address.
    pub mac: Mac,
}

/// Makes a VLAN interface on another one. It is down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AddVlan {
    /// Which namespace.
    pub ns: Ns,
    /// The interface that it is on.
    pub interface: String,
    /// Its own name.
    pub name: String,
    /// VLAN identifier, 0 to 4094.
    pub id: u16,
}

/// Moves an interface into a namespace, optionally under a new name, or renames it where it is.
///
/// An interface that moves loses its addresses and goes down; one that is renamed must be down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MoveInterface {
    /// Where it is.
    pub from: Ns,
    /// Interface name.
    pub interface: String,
    /// Where it goes.
    pub to: Ns,
    /// Its name there.
    pub rename: Option<String>,
}

/// Adds an address. IPv6 addresses are usable at once: duplicate detection is off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AddAddress {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Address and prefix length.
    pub prefix: Prefix,
}

/// Removes an address.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveAddress {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Address and prefix length.
    pub prefix: Prefix,
}

/// Adds a permanent neighbour, so that nothing has to be resolved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AddNeighbour {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// The neighbour's address.
    pub address: IpAddr,
    /// The neighbour's Ethernet address.
    pub mac: Mac,
}

/// Defines requests that name nothing but an interface.
macro_rules! interface_requests {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Serialize, Deserialize)]
            pub struct $name {
                /// Which namespace.
                pub ns: Ns,
                /// Interface name.
                pub interface: String,
            }
        )*
    };
}

interface_requests! {
    /// Removes an interface that was made.
    RemoveInterface,
    /// rtnl statistics, `ip -s link`.
    GetLinkStats,
    /// Ring parameters, `ethtool -g`.
    GetRings,
    /// Key and indirection table, `ethtool -x`.
    GetRss,
    /// Channel counts, `ethtool -l`.
    GetChannels,
    /// Device features, `ethtool -k`.
    GetFeatures,
    /// The driver's own statistics by name, `ethtool -S`.
    GetDriverStats,
    /// Queues, from the netdev family. Empty while the interface is down.
    ListQueues,
    /// Statistics by queue. EOPNOTSUPP when the driver has none.
    GetQueueStats,
    /// Sums of those statistics over all queues, as the kernel and the driver keep them: also of
    /// queues that are not in use any more.
    GetInterfaceQueueStats,
    /// Page pools of an interface, also destroyed ones that wait for pages.
    ListPagePools,
    /// NAPIs of an interface.
    ListNapis,
}

/// Changes a NAPI, napi-set of the netdev family. `None` leaves a parameter as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetNapi {
    /// Which namespace.
    pub ns: Ns,
    /// Its number.
    pub id: u32,
    /// Where it polls.
    pub threading: Option<Threading>,
    /// Empty polls before interrupts are enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// GRO flush timeout in nanoseconds.
    pub gro_flush_timeout: Option<u32>,
}

/// Page pools of a namespace whose interface is gone, and that wait for pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListStrayPools {
    /// Namespace that the interface was in.
    pub ns: Ns,
}

/// Changes ring parameters, `ethtool -G`. `None` leaves a parameter as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetRings {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Receive descriptors.
    pub rx: Option<u32>,
    /// Transmit descriptors.
    pub tx: Option<u32>,
    /// Header split.
    pub data_split: Option<DataSplit>,
    /// Packets up to this many bytes are not split.
    pub hds_thresh: Option<u32>,
}

/// Changes the indirection table or the key, `ethtool -X`. `None` leaves it as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetRss {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// A queue for each entry; its length must be the device's.
    pub table: Option<Vec<u32>>,
    /// Hash key; its length must be the device's.
    pub key: Option<Vec<u8>>,
}

/// Changes what of a kind of flow is hashed, `ethtool -N <interface> rx-flow-hash`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetHashFields {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Which flows.
    pub flow: FlowKind,
    /// What of them.
    pub fields: HashFields,
}

/// Changes the transformation of what is hashed, `ethtool -X <interface> xfrm`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetInputTransformation {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// `RXH_XFRM_*`, as a set: 1 is symmetric-xor, 2 is symmetric-or-xor.
    pub transformation: u32,
}

/// Where a flow would be received: the Toeplitz hash over its addresses and ports with the
/// interface's key, looked up in its indirection table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlowQueue {
    /// Which namespace.
    pub ns: Ns,
    /// Interface that receives.
    pub interface: String,
    /// Sender of the received packets.
    pub source: SocketAddr,
    /// Receiver of the packets; of the same family.
    pub destination: SocketAddr,
}

/// Answer to [`FlowQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPlace {
    /// Toeplitz hash.
    pub hash: u32,
    /// Index into the indirection table.
    pub entry: u32,
    /// What the table says there.
    pub queue: u32,
}

/// Changes the number of queue pairs, `ethtool -L combined`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetChannels {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Queue pairs.
    pub combined: u32,
}

/// Turns features on and off, `ethtool -K`. Fails without an errno when the device did not follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetFeatures {
    /// Which namespace.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Wanted state by kernel name, for instance `tx-tcp-segmentation`.
    pub features: BTreeMap<String, bool>,
}

/// Sends ICMP or ICMPv6 echo requests one after the other and checks the replies' payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ping {
    /// Namespace that sends.
    pub ns: Ns,
    /// Who shall answer; a link-local address cannot be used.
    pub to: IpAddr,
    /// How many.
    pub count: u32,
    /// Bytes after the ICMP header.
    pub size: u32,
    /// How long to wait for each reply, in milliseconds.
    pub timeout_ms: u64,
}

/// Answer to [`Ping`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// Requests sent.
    pub sent: u32,
    /// Replies with the right payload.
    pub received: u32,
    /// Replies whose payload was not the request's.
    pub corrupt: u32,
    /// Requests that were not answered in time or could not be sent.
    pub lost: u32,
    /// What the first request that could not be sent met.
    pub error: Option<crate::Failure>,
}

/// Sends a frame as it is, past the whole stack: also one that is wrong.
///
/// When this returns, the driver has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SendFrame {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface that sends.
    pub interface: String,
    /// From the Ethernet header on, without padding and frame check sequence.
    pub frame: Vec<u8>,
}

/// Reads a register in the first BAR of a PCI device, past its driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadRegister {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where in the BAR, in bytes; a multiple of 4.
    pub offset: u32,
}

/// Writes a register in the first BAR of a PCI device, past its driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteRegister {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where in the BAR, in bytes; a multiple of 4.
    pub offset: u32,
    /// What to write.
    pub value: u32,
}

/// Writes a word in the configuration space of a PCI device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteConfig {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where, in bytes.
    pub offset: u16,
    /// What to write.
    pub value: u16,
}

/// Executes a marker instruction, for the counter in QEMU: starts or ends a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MarkWindow {
    /// Which end of the window.
    pub edge: Edge,
}

/// The ends of a window of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// Counters start at 0.
    Start,
    /// Counters are written to a file on the host.
    End,
}

/// Has the counter in QEMU read which addresses it shall take for markers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadMarks {}

/// The functions of all loaded modules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListModuleSymbols {}

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// Where it starts.
    pub address: u64,
    /// Its name, mangled as its language does.
    pub name: String,
    /// The module that it belongs to.
    pub module: String,
}

/// Sets a job up and starts it.
///
/// The reply comes when the job is ready: a sink listens, a source is connected, a binding is
/// bound. A setup that fails is this request's failure, with the kernel's errno, and there is no
/// job then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartJob {
    /// What to run.
    pub job: Job,
    /// Run it in a process of its own, which [`Command::Kill`] ends. It sees the local namespace
    /// only. When it is killed, joining fails.
    #[serde(default)]
    pub process: bool,
}

/// Tells a job something. Fails when the job does not understand it or is unknown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tell {
    /// Which job.
    pub job: JobId,
    /// What to do.
    pub command: Command,
}

/// Waits for the job's end; the reply is [`crate::JobSpec::Outcome`] as JSON.
///
/// A job is joined once; its resources (sockets, bindings, dma-bufs) are gone then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Join {
    /// Which job.
    pub job: JobId,
}
