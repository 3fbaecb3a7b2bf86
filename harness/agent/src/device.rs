// SPDX-License-Identifier: MIT OR Apache-2.0

//! What ethtool shows and sets besides rings, channels, RSS and features, in the namespace of the
//! calling thread.

use anyhow::Result;
use devmem::ethtool::{self, Ethtool};
use protocol::ethtool::{
    Coalesce, DriverInfo, LinkModeChange, LinkModes, Pause, RegisterDump, SelfTest, StandardStats,
    Timestamping, WakeOnLan,
};

use crate::rtnetlink::index_of;

/// How interrupts are coalesced.
pub(crate) fn coalesce(interface: &str, queue: Option<u32>) -> Result<Coalesce> {
    let index = index_of(interface)?;
    let now = match queue {
        Some(queue) => ethtool::queue_coalesce(index, queue)?,
        None => Ethtool::new().coalesce(index)?,
    };
    Ok(Coalesce {
        rx_usecs: now.rx_usecs,
        tx_usecs: now.tx_usecs,
        adaptive_rx: now.adaptive_rx,
    })
}

/// Changes how interrupts are coalesced.
pub(crate) fn set_coalesce(interface: &str, queue: Option<u32>, coalesce: Coalesce) -> Result<()> {
    let index = index_of(interface)?;
    let change = ethtool::Coalesce {
        rx_usecs: coalesce.rx_usecs,
        tx_usecs: coalesce.tx_usecs,
        adaptive_rx: coalesce.adaptive_rx,
    };
    match queue {
        Some(queue) => ethtool::set_queue_coalesce(index, queue, change)?,
        None => Ethtool::new().set_coalesce(index, change)?,
    }
    Ok(())
}

/// Pause settings.
pub(crate) fn pause(interface: &str) -> Result<Pause> {
    let pause = Ethtool::new().pause(index_of(interface)?)?;
    Ok(Pause {
        autoneg: pause.autoneg,
        rx: pause.rx,
        tx: pause.tx,
        rx_frames: pause.rx_frames,
        tx_frames: pause.tx_frames,
    })
}

/// Changes pause settings.
pub(crate) fn set_pause(interface: &str, pause: Pause) -> Result<()> {
    let change = ethtool::Pause {
        autoneg: pause.autoneg,
        rx: pause.rx,
        tx: pause.tx,
        ..ethtool::Pause::default()
    };
    Ok(Ethtool::new().set_pause(index_of(interface)?, change)?)
}

/// Speed, duplex and modes of the link.
pub(crate) fn link_modes(interface: &str) -> Result<LinkModes> {
    let link = Ethtool::new().link_modes(index_of(interface)?)?;
    Ok(LinkModes {
        autoneg: link.autoneg,
        speed: link.speed,
        full_duplex: link.full_duplex,
        modes: link.modes,
    })
}

/// Changes the link modes.
pub(crate) fn set_link_modes(interface: &str, change: LinkModeChange) -> Result<()> {
    let change = ethtool::LinkModeChange {
        autoneg: change.autoneg,
        speed: change.speed,
        full_duplex: change.full_duplex,
        advertise: change.advertise,
    };
    Ok(Ethtool::new().set_link_modes(index_of(interface)?, &change)?)
}

/// Standard statistics.
pub(crate) fn standard_stats(interface: &str) -> Result<StandardStats> {
    let stats = Ethtool::new().standard_stats(index_of(interface)?)?;
    Ok(StandardStats {
        counters: stats
            .counters
            .into_iter()
            .map(|(group, id, count)| (group.to_owned(), id, count))
            .collect(),
        rx_sizes: stats.rx_sizes,
        tx_sizes: stats.tx_sizes,
    })
}

/// The driver of an interface.
pub(crate) fn driver_info(interface: &str) -> Result<DriverInfo> {
    let info = ethtool::driver_info(index_of(interface)?)?;
    Ok(DriverInfo {
        driver: info.driver,
        bus_info: info.bus_info,
    })
}

/// A register dump.
pub(crate) fn registers(interface: &str) -> Result<RegisterDump> {
    let (version, words) = ethtool::registers(index_of(interface)?)?;
    Ok(RegisterDump { version, words })
}

/// Runs the device's self-test.
pub(crate) fn self_test(interface: &str, offline: bool) -> Result<SelfTest> {
    let test = ethtool::self_test(index_of(interface)?, offline)?;
    Ok(SelfTest {
        failed: test.failed,
        results: test.results.into_iter().collect(),
    })
}

/// Makes the device blink.
pub(crate) fn identify(interface: &str, seconds: u32) -> Result<()> {
    Ok(ethtool::identify(index_of(interface)?, seconds)?)
}

/// Wake-on-LAN.
pub(crate) fn wake_on_lan(interface: &str) -> Result<WakeOnLan> {
    let (supported, on) = ethtool::wake_on_lan(index_of(interface)?)?;
    Ok(WakeOnLan { supported, on })
}

/// Changes wake-on-LAN.
pub(crate) fn set_wake_on_lan(interface: &str, options: u32) -> Result<()> {
    Ok(ethtool::set_wake_on_lan(index_of(interface)?, options)?)
}

/// The driver's message level.
pub(crate) fn message_level(interface: &str) -> Result<u32> {
    Ok(ethtool::message_level(index_of(interface)?)?)
}

/// Changes the driver's message level.
pub(crate) fn set_message_level(interface: &str, level: u32) -> Result<()> {
    Ok(ethtool::set_message_level(index_of(interface)?, level)?)
}

/// Timestamps.
pub(crate) fn timestamping(interface: &str) -> Result<Timestamping> {
    let (sources, clock) = ethtool::timestamping(index_of(interface)?)?;
    Ok(Timestamping { sources, clock })
}
