// SPDX-License-Identifier: MIT OR Apache-2.0

//! Looking at a device: who drives it, its registers, its tests (`ethtool -i`, `-d`, `-t`, `-p`,
//! `-T`, and what else is a number). Most of it is in no netlink family.

use std::collections::BTreeMap;

use super::ioctl::{Device, text};
use crate::bytes::{i32_at, u32_at, u64_at};
use crate::error::RequestError;
use crate::interface::Interface;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GREGS: u32 = 0x04;
const ETHTOOL_GWOL: u32 = 0x05;
const ETHTOOL_SWOL: u32 = 0x06;
const ETHTOOL_GMSGLVL: u32 = 0x07;
const ETHTOOL_SMSGLVL: u32 = 0x08;
const ETHTOOL_TEST: u32 = 0x1a;
const ETHTOOL_PHYS_ID: u32 = 0x1c;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;

/// The string set of self-tests.
const ETH_SS_TEST: u32 = 0;
const ETH_TEST_FL_OFFLINE: u32 = 1;
const ETH_TEST_FL_FAILED: u32 = 2;

/// Bytes of a text in `struct ethtool_drvinfo`.
const TEXT: usize = 32;

/// Who drives an interface (`struct ethtool_drvinfo`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DriverInfo {
    /// The driver's name.
    pub driver: String,
    /// Where the device is.
    pub bus_info: String,
    /// Bytes of a register dump.
    pub register_dump: u32,
}

/// Who drives an interface.
///
/// # Errors
///
/// [`RequestError::NoSuchInterface`].
pub fn driver_info(interface: Interface) -> Result<DriverInfo, RequestError> {
    let device = Device::new(interface, "driver information")?;
    let info = device.call(&[ETHTOOL_GDRVINFO], 196)?;
    let field = |index: usize| text(&info[4 + index * TEXT..][..TEXT]);
    Ok(DriverInfo {
        driver: field(0),
        bus_info: field(3),
        register_dump: u32_at(&info, 192).unwrap_or(0),
    })
}

/// A register dump.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RegisterDump {
    /// What the driver says of the layout.
    pub version: u32,
    /// The registers.
    pub words: Vec<u32>,
}

/// A register dump.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none.
pub fn registers(interface: Interface) -> Result<RegisterDump, RequestError> {
    let device = Device::new(interface, "register dump")?;
    let len = driver_info(interface)?.register_dump;
    let dump = device.call(&[ETHTOOL_GREGS, 0, len], len as usize)?;
    let words = (0..len as usize / 4).filter_map(|word| u32_at(&dump, 12 + word * 4));
    Ok(RegisterDump {
        version: u32_at(&dump, 4).unwrap_or(0),
        words: words.collect(),
    })
}

/// What a self-test found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SelfTest {
    /// Something is wrong.
    pub failed: bool,
    /// Each test's name and result: 0 is good.
    pub results: BTreeMap<String, u64>,
}

/// Has a device test itself; `offline` interrupts traffic.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none.
pub fn self_test(interface: Interface, offline: bool) -> Result<SelfTest, RequestError> {
    let device = Device::new(interface, "self-test")?;
    let count = device.count(ETH_SS_TEST)?;
    let names = device.strings(ETH_SS_TEST, count)?.unwrap_or_default();
    let len = u32::try_from(count).map_err(|_| device.refused(libc::EOVERFLOW))?;
    let flags = if offline { ETH_TEST_FL_OFFLINE } else { 0 };
    let test = device.call(&[ETHTOOL_TEST, flags, 0, len], count * 8)?;
    Ok(SelfTest {
        failed: u32_at(&test, 4).unwrap_or(0) & ETH_TEST_FL_FAILED != 0,
        results: names
            .into_iter()
            .enumerate()
            .map(|(index, name)| (name, u64_at(&test, 16 + index * 8).unwrap_or(u64::MAX)))
            .collect(),
    })
}

/// Makes a device show itself, by a light that blinks, for some seconds; returns after them.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver cannot.
pub fn identify(interface: Interface, seconds: u32) -> Result<(), RequestError> {
    let device = Device::new(interface, "identification")?;
    device.call(&[ETHTOOL_PHYS_ID, seconds], 0).map(drop)
}

/// Wake-on-LAN: `WAKE_*`, as sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WakeOnLan {
    /// What the device can.
    pub supported: u32,
    /// What is on.
    pub on: u32,
}

/// Wake-on-LAN: what is supported, and what is on.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver does not say.
pub fn wake_on_lan(interface: Interface) -> Result<WakeOnLan, RequestError> {
    let wol = Device::new(interface, "wake-on-LAN")?.call(&[ETHTOOL_GWOL, 0, 0], 8)?;
    Ok(WakeOnLan {
        supported: u32_at(&wol, 4).unwrap_or(0),
        on: u32_at(&wol, 8).unwrap_or(0),
    })
}

/// Turns on these `WAKE_*`, and no others.
///
/// # Errors
///
/// [`RequestError::Unsupported`], [`RequestError::Refused`] for what the device cannot do.
pub fn set_wake_on_lan(interface: Interface, options: u32) -> Result<(), RequestError> {
    let device = Device::new(interface, "wake-on-LAN")?;
    device.call(&[ETHTOOL_SWOL, 0, options], 8).map(drop)
}

/// The driver's message level, `NETIF_MSG_*`.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none.
pub fn message_level(interface: Interface) -> Result<u32, RequestError> {
    let level = Device::new(interface, "message level")?.call(&[ETHTOOL_GMSGLVL], 4)?;
    Ok(u32_at(&level, 4).unwrap_or(0))
}

/// Sets the driver's message level.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none.
pub fn set_message_level(interface: Interface, level: u32) -> Result<(), RequestError> {
    let device = Device::new(interface, "message level")?;
    device.call(&[ETHTOOL_SMSGLVL, level], 0).map(drop)
}

/// What takes timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamping {
    /// `SOF_TIMESTAMPING_*`, as a set.
    pub sources: u32,
    /// The device's clock, if it has one.
    pub clock: Option<u32>,
}

/// What takes timestamps.
///
/// # Errors
///
/// [`RequestError::NoSuchInterface`].
pub fn timestamping(interface: Interface) -> Result<Timestamping, RequestError> {
    let info = Device::new(interface, "timestamps")?.call(&[ETHTOOL_GET_TS_INFO], 40)?;
    let clock = i32_at(&info, 8).and_then(|clock| u32::try_from(clock).ok());
    Ok(Timestamping {
        sources: u32_at(&info, 4).unwrap_or(0),
        clock,
    })
}
