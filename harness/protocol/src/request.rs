// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the host can ask. Every request is a struct whose [`Query::Reply`] is its answer; each module
//! has those of one matter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    agent, any_of::any_of, engine, ethtool, flow_rules, job, kernel, link, measure, message,
    netdev, pci, program, rings, rss, timestamp, traffic, xdp,
};

/// A request together with the type of its answer.
pub trait Query: Into<Request> {
    /// What a success carries.
    type Reply: Serialize + DeserializeOwned;
}

any_of! {
    /// Any request, as it goes over the wire.
    pub enum Request: Query::Reply {
        agent {
            Hello -> agent::AgentInfo,
            Resumed -> (),
            Sleep -> (),
            PowerOff -> (),
            Panic -> (),
        }
        kernel {
            ReadFile -> String,
            WriteFile -> (),
            LogLine -> (),
            LoadModule -> (),
            UnloadModule -> (),
            ListModules -> Vec<kernel::Module>,
            FindLeaks -> Option<String>,
            FreeDeferred -> (),
            Inject -> kernel::Injected,
            ListFunctions -> Vec<kernel::Symbol>,
        }
        link {
            ListInterfaces -> Vec<link::Interface>,
            WaitInterface -> link::Interface,
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
            GetLinkStats -> link::LinkStats,
        }
        ethtool {
            GetCoalesce -> ethtool::Coalesce,
            SetCoalesce -> (),
            GetPause -> ethtool::Pause,
            SetPause -> (),
            GetLinkModes -> ethtool::LinkModes,
            SetLinkModes -> (),
            GetStandardStats -> ethtool::StandardStats,
            GetDriverInfo -> ethtool::DriverInfo,
            DumpRegisters -> ethtool::RegisterDump,
            TestSelf -> ethtool::SelfTest,
            Identify -> (),
            GetWakeOnLan -> ethtool::WakeOnLan,
            SetWakeOnLan -> (),
            GetMessageLevel -> u32,
            SetMessageLevel -> (),
            GetTimestamping -> ethtool::Timestamping,
            GetTxTimestampStats -> ethtool::TxTimestampStats,
            GetFeatures -> ethtool::Features,
            SetFeatures -> (),
            GetDriverStats -> BTreeMap<String, u64>,
        }
        rings {
            GetRings -> rings::Rings,
            SetRings -> (),
            GetChannels -> rings::Channels,
            SetChannels -> (),
        }
        rss {
            GetRss -> rss::Rss,
            SetRss -> (),
            CreateRssContext -> u32,
            FlowQueue -> rss::FlowPlace,
        }
        flow_rules {
            ListFlowRules -> flow_rules::FlowRules,
            InsertFlowRule -> u32,
            DeleteFlowRule -> (),
        }
        netdev {
            ListQueues -> Vec<netdev::Queue>,
            GetQueueStats -> Vec<netdev::QueueStats>,
            GetInterfaceQueueStats -> BTreeMap<String, u64>,
            ListPagePools -> Vec<netdev::PagePool>,
            ListStrayPools -> Vec<netdev::PagePool>,
            ListNapis -> Vec<netdev::Napi>,
            SetNapi -> (),
        }
        traffic {
            Ping -> traffic::PingReport,
            SendFrame -> (),
            ExchangeFrames -> Vec<Vec<u8>>,
        }
        timestamp {
            GetHwtstamp -> timestamp::Hwtstamp,
            SetHwtstamp -> timestamp::Hwtstamp,
            TimestampDatagrams -> Vec<u64>,
            TimestampFrames -> Vec<Option<u64>>,
            ReadClock -> timestamp::ClockReading,
            ChangeClock -> (),
        }
        xdp {
            AttachXdp -> (),
            DetachXdp -> (),
            XdpRuns -> u64,
            XdpFeatures -> u64,
        }
        pci {
            ReadRegister -> u32,
            WriteRegister -> (),
            ReadConfig -> u16,
            WriteConfig -> (),
        }
        engine {
            Execute -> engine::Executed,
        }
        measure {
            MarkWindow -> (),
            ReadMarks -> (),
        }
        program {
            MountRoot -> (),
            WaitListening -> Vec<u16>,
        }
        job {
            StartJob -> message::JobId,
            Tell -> (),
            Join -> serde_json::Value,
        }
    }
}
