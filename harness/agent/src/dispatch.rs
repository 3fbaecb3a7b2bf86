// SPDX-License-Identifier: MIT OR Apache-2.0

//! Dispatches requests to the functions that do the work.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use devmem_tcp::{
    RequestError,
    ethtool::{self, ChannelChange, Ethtool},
    interface::Interface,
    netdev::Netdev,
};
use protocol::{Ns, Query, Request, agent::AgentInfo, net::OnInterface};
use serde_json::Value;

use crate::{
    clock, deferred, engine, failure, faults, files, flow_queue, interfaces, jobs::Jobs, leaks,
    listening, modules, netdev, netns, packet, ping, random, registers, root, rtnetlink, sleep,
    timestamp,
};

/// Information about this agent.
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

/// Answers a request with what `work` returns: the type that the protocol promises for it.
fn answer<Q: Query>(request: Q, work: impl FnOnce(Q) -> Result<Q::Reply>) -> Result<Value> {
    serde_json::to_value(work(request)?).context("encoding the reply")
}

/// The same for work within a network namespace.
fn answer_in<Q: Query + Send>(
    ns: Ns,
    request: Q,
    work: impl FnOnce(Q) -> Result<Q::Reply> + Send,
) -> Result<Value> {
    netns::within(ns, || answer(request, work))
}

/// The same for what devmem-tcp knows of an interface.
fn answer_on<Q: Query + OnInterface + Send>(
    request: Q,
    work: impl FnOnce(Q, Interface) -> Result<Q::Reply, RequestError> + Send,
) -> Result<Value> {
    answer_in(request.ns(), request, |request| {
        let interface = Interface::by_name(request.interface())?;
        Ok(work(request, interface)?)
    })
}

/// Does what a request asks for.
pub(crate) fn execute(request: Request, jobs: &Jobs) -> Result<Value> {
    use Request as R;
    let milliseconds = Duration::from_millis;
    match request {
        R::Hello(r) => answer(r, |_| hello()),
        R::Resumed(r) => answer(r, |r| random::reseed(r.random).and(clock::set(r.time))),
        R::Sleep(r) => answer(r, |_| sleep::sleep()),
        R::PowerOff(_) => bail!("PowerOff is handled where calls are read"),
        R::Panic(r) => panic!("{}", r.message),
        R::ReadFile(r) => answer_in(r.ns, r, |r| files::read(&r.path)),
        R::WriteFile(r) => answer_in(r.ns, r, |r| files::write(&r.path, &r.contents)),
        R::LogLine(r) => answer(r, |r| {
            files::log_line(&r.text);
            Ok(())
        }),
        R::LoadModule(r) => answer(r, |r| modules::load(&r.name, &r.parameters)),
        R::UnloadModule(r) => answer(r, |r| modules::unload(&r.name)),
        R::ListModules(r) => answer(r, |_| modules::list()),
        R::ListInterfaces(r) => answer_in(r.ns, r, |_| rtnetlink::list()),
        R::WaitInterface(r) => answer(r, |r| {
            interfaces::wait_for_interface(r.ns, r.mac, milliseconds(r.timeout_ms))
        }),
        R::WaitCarrier(r) => answer(r, |r| {
            interfaces::wait_for_carrier(r.ns, &r.interface, r.carrier, milliseconds(r.timeout_ms))
        }),
        R::SetUp(r) => answer_in(r.ns, r, |r| rtnetlink::set_up(&r.interface, r.up)),
        R::SetMtu(r) => answer_in(r.ns, r, |r| rtnetlink::set_mtu(&r.interface, r.mtu)),
        R::SetMac(r) => answer_in(r.ns, r, |r| rtnetlink::set_mac(&r.interface, r.mac)),
        R::SetReceiveMode(r) => answer_in(r.ns, r, |r| {
            rtnetlink::set_receive_mode(&r.interface, r.promiscuous, r.all_multicast)
        }),
        R::AddFilter(r) => answer_in(r.ns, r, |r| rtnetlink::add_filter(&r.interface, r.mac)),
        R::RemoveFilter(r) => answer_in(r.ns, r, |r| rtnetlink::remove_filter(&r.interface, r.mac)),
        R::AddVlan(r) => answer_in(r.ns, r, |r| {
            rtnetlink::add_vlan(&r.interface, &r.name, r.id)
        }),
        R::RemoveInterface(r) => answer_in(r.ns, r, |r| rtnetlink::remove(&r.interface)),
        R::MoveInterface(r) => answer_in(r.from, r, |r| {
            rtnetlink::move_to(&r.interface, r.to, r.rename.as_deref())
        }),
        R::AddAddress(r) => answer_in(r.ns, r, |r| rtnetlink::add_address(&r.interface, r.prefix)),
        R::RemoveAddress(r) => answer_in(r.ns, r, |r| {
            rtnetlink::remove_address(&r.interface, r.prefix)
        }),
        R::AddNeighbour(r) => answer_in(r.ns, r, |r| {
            rtnetlink::add_neighbour(&r.interface, r.address, r.mac)
        }),
        R::GetLinkStats(r) => answer_in(r.ns, r, |r| rtnetlink::stats(&r.interface)),
        R::GetRings(r) => answer_on(r, |_, index| Ethtool::new().rings(index)),
        R::SetRings(r) => answer_on(r, |r, index| Ethtool::new().set_rings(index, r.change)),
        R::GetRss(r) => answer_on(r, |_, index| Ethtool::new().rss(index)),
        R::CreateRssContext(r) => answer_on(r, |r, index| {
            Ethtool::new().create_rss_context(index, &r.indirection)
        }),
        R::SetRss(r) => answer_on(r, |r, index| Ethtool::new().set_rss(index, &r.change)),
        R::FlowQueue(r) => answer_in(r.ns, r, |r| flow_queue::find(&r)),
        R::ListFlowRules(r) => answer_on(r, |_, index| ethtool::flow_rules(index)),
        R::InsertFlowRule(r) => answer_on(r, |r, index| {
            ethtool::insert_flow_rule(index, r.place, &r.rule)
        }),
        R::DeleteFlowRule(r) => answer_on(r, |r, index| ethtool::delete_flow_rule(index, r.place)),
        R::GetChannels(r) => answer_on(r, |_, index| Ethtool::new().channels(index)),
        R::SetChannels(r) => answer_on(r, |r, index| {
            let change = ChannelChange {
                combined: Some(r.combined),
                ..ChannelChange::default()
            };
            Ethtool::new().set_channels(index, change)
        }),
        R::GetCoalesce(r) => answer_on(r, |r, index| match r.queue {
            Some(queue) => ethtool::queue_coalesce(index, queue),
            None => Ethtool::new().coalesce(index),
        }),
        R::SetCoalesce(r) => answer_on(r, |r, index| match r.queue {
            Some(queue) => ethtool::set_queue_coalesce(index, queue, r.coalesce),
            None => Ethtool::new().set_coalesce(index, r.coalesce),
        }),
        R::GetPause(r) => answer_on(r, |_, index| Ethtool::new().pause(index)),
        R::SetPause(r) => answer_on(r, |r, index| Ethtool::new().set_pause(index, r.pause)),
        R::GetLinkModes(r) => answer_on(r, |_, index| Ethtool::new().link_modes(index)),
        R::SetLinkModes(r) => answer_on(r, |r, index| {
            Ethtool::new().set_link_modes(index, &r.change)
        }),
        R::GetStandardStats(r) => answer_on(r, |_, index| Ethtool::new().standard_stats(index)),
        R::GetDriverInfo(r) => answer_on(r, |_, index| ethtool::driver_info(index)),
        R::DumpRegisters(r) => answer_on(r, |_, index| ethtool::registers(index)),
        R::TestSelf(r) => answer_on(r, |r, index| ethtool::self_test(index, r.offline)),
        R::Identify(r) => answer_on(r, |r, index| ethtool::identify(index, r.seconds)),
        R::GetWakeOnLan(r) => answer_on(r, |_, index| ethtool::wake_on_lan(index)),
        R::SetWakeOnLan(r) => answer_on(r, |r, index| ethtool::set_wake_on_lan(index, r.options)),
        R::GetMessageLevel(r) => answer_on(r, |_, index| ethtool::message_level(index)),
        R::SetMessageLevel(r) => {
            answer_on(r, |r, index| ethtool::set_message_level(index, r.level))
        }
        R::GetTimestamping(r) => answer_on(r, |_, index| ethtool::timestamping(index)),
        R::GetTxTimestampStats(r) => {
            answer_on(r, |_, index| Ethtool::new().tx_timestamp_stats(index))
        }
        R::GetFeatures(r) => answer_on(r, |_, index| Ethtool::new().features(index)),
        R::SetFeatures(r) => answer_on(r, |r, index| {
            let changes: Vec<_> = r.features.iter().map(|(name, on)| (&**name, *on)).collect();
            Ethtool::new().set_features(index, &changes)
        }),
        R::GetDriverStats(r) => answer_on(r, |_, index| {
            Ok(ethtool::driver_stats(index)?.into_iter().collect())
        }),
        R::ListQueues(r) => answer_on(r, |_, index| Netdev::new().queues(index)),
        R::GetQueueStats(r) => answer_on(r, |_, index| Netdev::new().queue_stats(index)),
        R::GetInterfaceQueueStats(r) => {
            answer_in(r.ns, r, |r| netdev::interface_queue_stats(&r.interface))
        }
        R::ListStrayPools(r) => answer_in(r.ns, r, |_| netdev::stray_pools()),
        R::ListPagePools(r) => answer_on(r, |_, index| Netdev::new().page_pools(index)),
        R::ListNapis(r) => answer_on(r, |_, index| Netdev::new().napis(index)),
        R::SetNapi(r) => answer_in(r.ns, r, |r| Ok(Netdev::new().set_napi(r.id, r.change)?)),
        R::Ping(r) => answer_in(r.ns, r, |r| {
            ping::ping(r.to, r.count, r.size, milliseconds(r.timeout_ms))
        }),
        R::SendFrame(r) => answer_in(r.ns, r, |r| packet::send(&r.interface, &r.frame)),
        R::GetHwtstamp(r) => answer_in(r.ns, r, |r| timestamp::hwtstamp(&r.interface)),
        R::SetHwtstamp(r) => answer_in(r.ns, r, |r| {
            timestamp::set_hwtstamp(&r.interface, r.hwtstamp)
        }),
        R::TimestampDatagrams(r) => answer_in(r.ns, r, |r| timestamp::send(&r)),
        R::TimestampFrames(r) => answer(r, |r| timestamp::exchange(&r)),
        R::ReadClock(r) => answer(r, |r| clock::read(r.clock)),
        R::ChangeClock(r) => answer(r, |r| clock::change(r.clock, r.change)),
        R::ReadRegister(r) => answer(r, |r| registers::read(&r.device, r.offset)),
        R::WriteRegister(r) => answer(r, |r| registers::write(&r.device, r.offset, r.value)),
        R::ExchangeFrames(r) => answer(r, |r| packet::exchange(&r)),
        R::AttachXdp(r) => answer(r, |r| crate::xdp::attach(&r)),
        R::DetachXdp(r) => answer_in(r.ns, r, |r| rtnetlink::set_xdp(&r.interface, None)),
        R::XdpRuns(r) => answer(r, |r| crate::xdp::runs(r.ns, &r.interface)),
        R::XdpFeatures(r) => answer_in(r.ns, r, |r| netdev::xdp_features(&r.interface)),
        R::ReadConfig(r) => answer(r, |r| registers::read_config(&r.device, r.offset)),
        R::WriteConfig(r) => answer(r, |r| registers::write_config(&r.device, r.offset, r.value)),
        R::Execute(r) => answer(r, |r| engine::execute(&r)),
        R::MarkWindow(r) => answer(r, |r| {
            match r.edge {
                protocol::measure::Edge::Start => marker::start(),
                protocol::measure::Edge::End => marker::end(),
            }
            Ok(())
        }),
        R::ReadMarks(r) => answer(r, |_| {
            marker::read_marks();
            Ok(())
        }),
        R::Inject(r) => answer(r, |r| {
            faults::inject(r.nth, || {
                execute(*r.request, jobs).map_err(|error| failure::from_error(&error))
            })
        }),
        R::FreeDeferred(r) => answer(r, |_| {
            rtnetlink::set_up("lo", true)?;
            deferred::free()
        }),
        R::FindLeaks(r) => answer(r, |_| leaks::find()),
        R::ListFunctions(r) => answer(r, |r| modules::functions(&r)),
        R::MountRoot(r) => answer(r, |r| root::set_up(&r)),
        R::WaitListening(r) => answer(r, |r| listening::wait(&r)),
        R::StartJob(r) => answer(r, |r| jobs.start(r.job, r.process)),
        R::Tell(r) => answer(r, |r| jobs.tell(r.job, &r.command)),
        R::Join(r) => answer(r, |r| jobs.join(r.job)),
    }
}
