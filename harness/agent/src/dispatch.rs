// SPDX-License-Identifier: MIT OR Apache-2.0

//! From requests to the functions that do the work.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use protocol::{
    Query, Request,
    request::{self, AgentInfo},
    xdp,
};
use serde_json::Value;

use crate::{
    deferred, device, ethtool, failure, faults, files, interfaces, jobs::Jobs, leaks, marker,
    modules, netdev, netns, packet, ping, registers, root, rtnetlink,
};

/// Who this is.
pub(crate) fn hello() -> Result<AgentInfo> {
    let memory = files::read("/proc/meminfo")?
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .map_or(0, |kib: u64| kib * 1024);
    Ok(AgentInfo {
        version: protocol::VERSION,
        kernel_release: files::read("/proc/sys/kernel/osrelease")?
            .trim_end()
            .to_owned(),
        command_line: files::read("/proc/cmdline")?.trim_end().to_owned(),
        cpus: std::thread::available_parallelism()?.get(),
        memory,
        page_size: rustix::param::page_size(),
    })
}

/// Ties a reply to the type that the protocol promises for the request.
fn reply<Q: Query>(reply: Q::Reply) -> Result<Value> {
    serde_json::to_value(reply).context("encoding the reply")
}

/// Does what a request asks for.
pub(crate) fn execute(request: Request, jobs: &Jobs) -> Result<Value> {
    use Request as R;
    let milliseconds = Duration::from_millis;
    match request {
        R::Hello(_) => reply::<request::Hello>(hello()?),
        R::PowerOff(_) => bail!("PowerOff is handled where calls are read"),
        R::Panic(r) => panic!("{}", r.message),
        R::ReadFile(r) => reply::<request::ReadFile>(netns::within(r.ns, || files::read(&r.path))?),
        R::WriteFile(r) => {
            reply::<request::WriteFile>(netns::within(r.ns, || files::write(&r.path, &r.contents))?)
        }
        R::LogLine(r) => {
            files::log_line(&r.text);
            reply::<request::LogLine>(())
        }
        R::LoadModule(r) => reply::<request::LoadModule>(modules::load(&r.name, &r.parameters)?),
        R::UnloadModule(r) => reply::<request::UnloadModule>(modules::unload(&r.name)?),
        R::ListModules(_) => reply::<request::ListModules>(modules::list()?),
        R::ListInterfaces(r) => {
            reply::<request::ListInterfaces>(netns::within(r.ns, rtnetlink::list)?)
        }
        R::WaitInterface(r) => reply::<request::WaitInterface>(interfaces::wait_for_interface(
            r.ns,
            r.mac,
            milliseconds(r.timeout_ms),
        )?),
        R::WaitCarrier(r) => reply::<request::WaitCarrier>(interfaces::wait_for_carrier(
            r.ns,
            &r.interface,
            r.carrier,
            milliseconds(r.timeout_ms),
        )?),
        R::SetUp(r) => reply::<request::SetUp>(netns::within(r.ns, || {
            rtnetlink::set_up(&r.interface, r.up)
        })?),
        R::SetMtu(r) => reply::<request::SetMtu>(netns::within(r.ns, || {
            rtnetlink::set_mtu(&r.interface, r.mtu)
        })?),
        R::SetMac(r) => reply::<request::SetMac>(netns::within(r.ns, || {
            rtnetlink::set_mac(&r.interface, r.mac)
        })?),
        R::SetReceiveMode(r) => reply::<request::SetReceiveMode>(netns::within(r.ns, || {
            rtnetlink::set_receive_mode(&r.interface, r.promiscuous, r.all_multicast)
        })?),
        R::AddFilter(r) => reply::<request::AddFilter>(netns::within(r.ns, || {
            rtnetlink::add_filter(&r.interface, r.mac)
        })?),
        R::RemoveFilter(r) => reply::<request::RemoveFilter>(netns::within(r.ns, || {
            rtnetlink::remove_filter(&r.interface, r.mac)
        })?),
        R::AddVlan(r) => reply::<request::AddVlan>(netns::within(r.ns, || {
            rtnetlink::add_vlan(&r.interface, &r.name, r.id)
        })?),
        R::RemoveInterface(r) => reply::<request::RemoveInterface>(netns::within(r.ns, || {
            rtnetlink::remove(&r.interface)
        })?),
        R::MoveInterface(r) => reply::<request::MoveInterface>(netns::within(r.from, || {
            rtnetlink::move_to(&r.interface, r.to, r.rename.as_deref())
        })?),
        R::AddAddress(r) => reply::<request::AddAddress>(netns::within(r.ns, || {
            rtnetlink::add_address(&r.interface, r.prefix)
        })?),
        R::RemoveAddress(r) => reply::<request::RemoveAddress>(netns::within(r.ns, || {
            rtnetlink::remove_address(&r.interface, r.prefix)
        })?),
        R::AddNeighbour(r) => reply::<request::AddNeighbour>(netns::within(r.ns, || {
            rtnetlink::add_neighbour(&r.interface, r.address, r.mac)
        })?),
        R::GetLinkStats(r) => {
            reply::<request::GetLinkStats>(netns::within(r.ns, || rtnetlink::stats(&r.interface))?)
        }
        R::GetRings(r) => {
            reply::<request::GetRings>(netns::within(r.ns, || ethtool::rings(&r.interface))?)
        }
        R::SetRings(r) => {
            reply::<request::SetRings>(netns::within(r.ns, || ethtool::set_rings(&r))?)
        }
        R::GetRss(r) => {
            reply::<request::GetRss>(netns::within(r.ns, || ethtool::rss(&r.interface))?)
        }
        R::SetRss(r) => reply::<request::SetRss>(netns::within(r.ns, || ethtool::set_rss(&r))?),
        R::SetHashFields(r) => {
            reply::<request::SetHashFields>(netns::within(r.ns, || ethtool::set_hash_fields(&r))?)
        }
        R::SetInputTransformation(r) => {
            reply::<request::SetInputTransformation>(netns::within(r.ns, || {
                ethtool::set_input_transformation(&r.interface, r.transformation)
            })?)
        }
        R::FlowQueue(r) => {
            reply::<request::FlowQueue>(netns::within(r.ns, || ethtool::flow_queue(&r))?)
        }
        R::GetChannels(r) => {
            reply::<request::GetChannels>(netns::within(r.ns, || ethtool::channels(&r.interface))?)
        }
        R::SetChannels(r) => reply::<request::SetChannels>(netns::within(r.ns, || {
            ethtool::set_channels(&r.interface, r.combined)
        })?),
        R::GetCoalesce(r) => reply::<protocol::ethtool::GetCoalesce>(netns::within(r.ns, || {
            device::coalesce(&r.interface, r.queue)
        })?),
        R::SetCoalesce(r) => reply::<protocol::ethtool::SetCoalesce>(netns::within(r.ns, || {
            device::set_coalesce(&r.interface, r.queue, r.coalesce)
        })?),
        R::GetPause(r) => reply::<protocol::ethtool::GetPause>(netns::within(r.ns, || {
            device::pause(&r.interface)
        })?),
        R::SetPause(r) => reply::<protocol::ethtool::SetPause>(netns::within(r.ns, || {
            device::set_pause(&r.interface, r.pause)
        })?),
        R::GetLinkModes(r) => {
            reply::<protocol::ethtool::GetLinkModes>(netns::within(r.ns, || {
                device::link_modes(&r.interface)
            })?)
        }
        R::SetLinkModes(r) => {
            reply::<protocol::ethtool::SetLinkModes>(netns::within(r.ns, || {
                device::set_link_modes(&r.interface, r.change)
            })?)
        }
        R::GetStandardStats(r) => {
            reply::<protocol::ethtool::GetStandardStats>(netns::within(r.ns, || {
                device::standard_stats(&r.interface)
            })?)
        }
        R::GetDriverInfo(r) => {
            reply::<protocol::ethtool::GetDriverInfo>(netns::within(r.ns, || {
                device::driver_info(&r.interface)
            })?)
        }
        R::DumpRegisters(r) => {
            reply::<protocol::ethtool::DumpRegisters>(netns::within(r.ns, || {
                device::registers(&r.interface)
            })?)
        }
        R::TestSelf(r) => reply::<protocol::ethtool::TestSelf>(netns::within(r.ns, || {
            device::self_test(&r.interface, r.offline)
        })?),
        R::Identify(r) => reply::<protocol::ethtool::Identify>(netns::within(r.ns, || {
            device::identify(&r.interface, r.seconds)
        })?),
        R::GetWakeOnLan(r) => {
            reply::<protocol::ethtool::GetWakeOnLan>(netns::within(r.ns, || {
                device::wake_on_lan(&r.interface)
            })?)
        }
        R::SetWakeOnLan(r) => {
            reply::<protocol::ethtool::SetWakeOnLan>(netns::within(r.ns, || {
                device::set_wake_on_lan(&r.interface, r.options)
            })?)
        }
        R::GetMessageLevel(r) => {
            reply::<protocol::ethtool::GetMessageLevel>(netns::within(r.ns, || {
                device::message_level(&r.interface)
            })?)
        }
        R::SetMessageLevel(r) => {
            reply::<protocol::ethtool::SetMessageLevel>(netns::within(r.ns, || {
                device::set_message_level(&r.interface, r.level)
            })?)
        }
        R::GetTimestamping(r) => {
            reply::<protocol::ethtool::GetTimestamping>(netns::within(r.ns, || {
                device::timestamping(&r.interface)
            })?)
        }
        R::GetFeatures(r) => {
            reply::<request::GetFeatures>(netns::within(r.ns, || ethtool::features(&r.interface))?)
        }
        R::SetFeatures(r) => reply::<request::SetFeatures>(netns::within(r.ns, || {
            ethtool::set_features(&r.interface, &r.features)
        })?),
        R::GetDriverStats(r) => reply::<request::GetDriverStats>(netns::within(r.ns, || {
            ethtool::driver_stats(&r.interface)
        })?),
        R::ListQueues(r) => {
            reply::<request::ListQueues>(netns::within(r.ns, || netdev::queues(&r.interface))?)
        }
        R::GetQueueStats(r) => reply::<request::GetQueueStats>(netns::within(r.ns, || {
            netdev::queue_stats(&r.interface)
        })?),
        R::GetInterfaceQueueStats(r) => {
            reply::<request::GetInterfaceQueueStats>(netns::within(r.ns, || {
                netdev::interface_queue_stats(&r.interface)
            })?)
        }
        R::ListStrayPools(r) => {
            reply::<request::ListStrayPools>(netns::within(r.ns, netdev::stray_pools)?)
        }
        R::ListPagePools(r) => reply::<request::ListPagePools>(netns::within(r.ns, || {
            netdev::page_pools(&r.interface)
        })?),
        R::ListNapis(r) => {
            reply::<request::ListNapis>(netns::within(r.ns, || netdev::napis(&r.interface))?)
        }
        R::SetNapi(r) => reply::<request::SetNapi>(netns::within(r.ns, || netdev::set_napi(&r))?),
        R::Ping(r) => reply::<request::Ping>(netns::within(r.ns, || {
            ping::ping(r.to, r.count, r.size, milliseconds(r.timeout_ms))
        })?),
        R::SendFrame(r) => reply::<request::SendFrame>(netns::within(r.ns, || {
            packet::send(&r.interface, &r.frame)
        })?),
        R::ReadRegister(r) => reply::<request::ReadRegister>(registers::read(&r.device, r.offset)?),
        R::WriteRegister(r) => {
            reply::<request::WriteRegister>(registers::write(&r.device, r.offset, r.value)?)
        }
        R::ExchangeFrames(r) => reply::<xdp::ExchangeFrames>(packet::exchange(&r)?),
        R::AttachXdp(r) => reply::<xdp::AttachXdp>(crate::xdp::attach(&r)?),
        R::DetachXdp(r) => reply::<xdp::DetachXdp>(netns::within(r.ns, || {
            rtnetlink::set_xdp(&r.interface, None)
        })?),
        R::XdpRuns(r) => reply::<xdp::XdpRuns>(crate::xdp::runs(r.ns, &r.interface)?),
        R::XdpFeatures(r) => {
            reply::<xdp::XdpFeatures>(netns::within(r.ns, || netdev::xdp_features(&r.interface))?)
        }
        R::WriteConfig(r) => {
            reply::<request::WriteConfig>(registers::write_config(&r.device, r.offset, r.value)?)
        }
        R::MarkWindow(r) => {
            marker::mark(r.edge);
            reply::<request::MarkWindow>(())
        }
        R::ReadMarks(_) => {
            marker::read_marks();
            reply::<request::ReadMarks>(())
        }
        R::Inject(r) => reply::<request::Inject>(faults::inject(r.nth, || {
            execute(*r.request, jobs).map_err(|error| failure::from_error(&error))
        })?),
        R::FreeDeferred(_) => {
            rtnetlink::set_up("lo", true)?;
            deferred::free()?;
            reply::<request::FreeDeferred>(())
        }
        R::FindLeaks(_) => reply::<request::FindLeaks>(leaks::find()?),
        R::ListModuleSymbols(_) => reply::<request::ListModuleSymbols>(modules::symbols()?),
        R::MountRoot(r) => reply::<protocol::program::MountRoot>(root::set_up(&r)?),
        R::StartJob(r) => reply::<request::StartJob>(jobs.start(r.job, r.process)?),
        R::Tell(r) => reply::<request::Tell>(jobs.tell(r.job, &r.command)?),
        R::Join(r) => reply::<request::Join>(jobs.join(r.job)?),
    }
}
