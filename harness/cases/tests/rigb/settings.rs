// SPDX-License-Identifier: MIT OR Apache-2.0

//! User settings persist, whatever else is changed, and are in the device.

use std::collections::{BTreeMap, BTreeSet};

use cases::{Result, Testbed};
use protocol::{
    ethtool::{
        Coalesce, GetCoalesce, GetFeatures, GetLinkModes, GetMessageLevel, GetPause,
        LinkModeChange, Pause, SetCoalesce, SetLinkModes, SetMessageLevel, SetPause, TestSelf,
    },
    link::SetMac,
    net::Mac,
    rings::{GetRings, TcpDataSplit},
    rss::{Flow, GetRss, HashFields, Indirection, RssChange, SetRss},
    timestamp::{GetHwtstamp, Hwtstamp, SetHwtstamp},
};

const MIB: u64 = 1 << 20;
const CPUS: u32 = 4;

/// An address that the NIC did not have.
const OTHER: Mac = Mac([0x52, 0x54, 0, 0xaa, 0xbb, 7]);

/// A VLAN that the NIC is not on.
const VLAN: u16 = 77;

/// Descriptors of TX rings, different from the default.
const TX_RING: u32 = 256;

/// Timestamps sent frames, and Delay_Req messages (`HWTSTAMP_FILTER_PTP_V2_L2_DELAY_REQ`).
const HWTSTAMP: Hwtstamp = Hwtstamp {
    tx: true,
    rx_filter: 11,
};

/// Registers in the first BAR: the offset of the first, and how many there are.
const REGISTERS: [(&str, u32, u32); 14] = [
    // Flow control bits only.
    ("CTRL", 0, 1),
    ("FCRTL", 0x2160, 1),
    ("FCRTH", 0x2168, 1),
    // All-multicast bit only.
    ("RCTL", RCTL, 1),
    // The register with the bit of `VLAN`.
    ("VFTA", 0x5600 + 4 * (VLAN as u32 / 32), 1),
    ("RAL, RAH", 0x5400, 2),
    ("RETA", 0x5c00, 32),
    ("RSSRK", 0x5c80, 10),
    ("MRQC", 0x5818, 1),
    ("EITR", 0x1680, 2),
    ("TSYNCTXCTL", 0xb614, 1),
    ("TSYNCRXCTL", 0xb620, 1),
    ("TSYNCRXCFG", 0x5f50, 1),
    ("ETQF[3]", 0x5cbc, 1),
];

/// Bits of CTRL: pause frames are honoured, and sent.
const FLOW_CONTROL: u32 = 3 << 27;

/// Offset of the register that says how long a frame may be.
const RLPML: u32 = 0x5004;

/// Offset of RCTL.
const RCTL: u32 = 0x100;

/// Bit of RCTL: multicast promiscuous.
const ALL_MULTICAST: u32 = 1 << 4;

/// The settings that the kernel reports, and the device's registers for them.
#[derive(Debug, PartialEq)]
struct Settings {
    features: BTreeSet<String>,
    modes: BTreeMap<String, bool>,
    pause: Pause,
    level: u32,
    tx_ring: Option<u32>,
    coalesce: Vec<Coalesce>,
    key: Vec<u8>,
    table: Vec<u32>,
    hash_fields: BTreeMap<Flow, HashFields>,
    mac: Mac,
    hwtstamp: Hwtstamp,
    registers: BTreeMap<&'static str, Vec<u32>>,
}

fn settings(bed: &Testbed) -> Result<Settings> {
    let guest = &bed.guest;
    let features = guest.call(GetFeatures::on(bed.local))?;
    let modes = guest.call(GetLinkModes::on(bed.local))?;
    let mut pause = guest.call(GetPause::on(bed.local))?;
    (pause.rx_frames, pause.tx_frames) = (None, None);
    let coalesce = |queue| guest.call(GetCoalesce::on(bed.local, Some(queue)));
    let rss = guest.call(GetRss::on(bed.local))?;
    let mut registers = BTreeMap::new();
    for (name, first, count) in REGISTERS {
        let values = (0..count).map(|n| bed.read_register(bed.local, first + 4 * n));
        let mut values = values.collect::<Result<Vec<_>>>()?;
        match name {
            "CTRL" => values[0] &= FLOW_CONTROL,
            "RCTL" => values[0] &= ALL_MULTICAST,
            _ => {}
        }
        registers.insert(name, values);
    }
    Ok(Settings {
        features: features.active,
        modes: modes.modes,
        pause,
        level: guest.call(GetMessageLevel::on(bed.local))?,
        tx_ring: guest.call(GetRings::on(bed.local))?.tx,
        coalesce: vec![coalesce(0)?, coalesce(1)?],
        key: rss.key,
        table: rss.indirection,
        hash_fields: rss.hash_fields,
        mac: bed.interface(bed.local)?.mac,
        hwtstamp: guest.call(GetHwtstamp::on(bed.local))?,
        registers,
    })
}

/// Changes every setting.
fn set_all(bed: &Testbed) -> Result {
    let guest = &bed.guest;
    bed.set_features(
        bed.local,
        &[("rx-checksum", false), ("tx-tcp6-segmentation", false)],
    )?;
    let modes = ["Autoneg", "TP", "100baseT/Full", "1000baseT/Full"];
    guest.call(SetLinkModes::on(
        bed.local,
        LinkModeChange {
            autoneg: Some(true),
            advertise: Some(modes.map(str::to_owned).into()),
            ..LinkModeChange::default()
        },
    ))?;
    // QEMU's model turns flow control on when the negotiation ends.
    bed.wait_carrier_of(bed.local, true)?;
    guest.call(SetPause::on(
        bed.local,
        Pause {
            autoneg: Some(false),
            rx: Some(true),
            tx: Some(true),
            ..Pause::default()
        },
    ))?;
    guest.call(SetMessageLevel::on(bed.local, 4))?;
    bed.set_transmit_ring(bed.local, TX_RING)?;
    bed.add_vlan(VLAN)?;
    bed.receive_all_multicast(bed.local)?;
    for (queue, rx_usecs) in [(0, 30), (1, 70)] {
        guest.call(SetCoalesce::on(
            bed.local,
            Some(queue),
            Coalesce {
                rx_usecs: Some(rx_usecs),
                adaptive_rx: Some(false),
                ..Coalesce::default()
            },
        ))?;
    }
    guest.call(SetRss::on(
        bed.local,
        RssChange {
            // Only pairs that are never removed.
            indirection: Some(Indirection::Queues(
                (0..128).map(|entry| u32::from(entry % 3 == 0)).collect(),
            )),
            key: Some((0..40).collect()),
            ..RssChange::default()
        },
    ))?;
    guest.call(SetRss::on(
        bed.local,
        RssChange {
            hash_fields: Some((Flow::Udp4, HashFields::ADDRESSES)),
            ..RssChange::default()
        },
    ))?;
    guest.call(SetHwtstamp::on(bed.local, HWTSTAMP))?;
    guest.call(SetMac::on(bed.local, OTHER))?;
    // The kernel updates the driver in a work item.
    bed.wait_until(ALL_MULTICAST.into(), || {
        Ok((bed.read_register(bed.local, RCTL)? & ALL_MULTICAST).into())
    })?;
    Ok(())
}

#[test]
fn what_users_set_stays_in_the_device_whatever_else_they_change() -> Result {
    let bed = Testbed::options()
        .cpus(CPUS)
        .needs_kernel(["PTP_1588_CLOCK", "VLAN_8021Q"])
        .boot("settings")?;
    let at_first = settings(&bed)?;
    set_all(&bed)?;
    let set = settings(&bed)?;
    assert_ne!(set.features, at_first.features);
    assert_ne!(set.modes, at_first.modes);
    assert_ne!(set.pause, at_first.pause);
    assert_ne!(set.coalesce, at_first.coalesce);
    assert_ne!(set.hash_fields, at_first.hash_fields);
    assert_eq!((set.level, set.mac), (4, OTHER));
    assert_eq!((set.hwtstamp, set.tx_ring), (HWTSTAMP, Some(TX_RING)));
    for (name, values) in &set.registers {
        assert_ne!(values, &at_first.registers[name], "{name}");
    }

    let longest = || bed.read_register(bed.local, RLPML);
    for change in [
        "down and up",
        "MTU",
        "rings",
        "fewer channels",
        "more channels",
        "header split on and off",
        "self-test",
        "sleep",
    ] {
        match change {
            "down and up" => bed.down_and_up(bed.local)?,
            "sleep" => bed.sleep_and_wake()?,
            "MTU" => {
                let before = longest()?;
                bed.set_mtu(bed.local, 9000)?;
                assert_eq!(longest()?, before + 7500, "RLPML");
            }
            "rings" => bed.set_receive_ring(bed.local, 256)?,
            "fewer channels" => bed.set_channels(bed.local, 2)?,
            "more channels" => bed.set_channels(bed.local, CPUS)?,
            "header split on and off" => {
                bed.set_header_split(bed.local, TcpDataSplit::On)?;
                bed.set_header_split(bed.local, TcpDataSplit::Off)?;
            }
            "self-test" => {
                bed.guest.call(TestSelf::on(bed.local, true))?;
            }
            _ => unreachable!("all are above"),
        }
        bed.wait_carrier(true)?;
        assert_eq!(settings(&bed)?, set, "{change}");
    }
    bed.transfer_over_both(bed.peer, bed.local, MIB)?;
    bed.finish()
}
