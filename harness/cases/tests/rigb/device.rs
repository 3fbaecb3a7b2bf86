// SPDX-License-Identifier: MIT OR Apache-2.0

//! The user's view of the device and its link: link modes, flow control, registers, self-tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

use cases::{Ability, Family, Result, Testbed, assert_refused};
use libc::{EBUSY, EINVAL, EOPNOTSUPP};
use protocol::{
    Memory,
    ethtool::{
        DumpRegisters, GetDriverInfo, GetFeatures, GetLinkModes, GetMessageLevel, GetPause,
        GetTimestamping, GetWakeOnLan, Identify, LinkModeChange, LinkModes, Pause, SelfTest,
        SetLinkModes, SetMessageLevel, SetPause, SetWakeOnLan, TestSelf,
    },
    kernel::UnloadModule,
    pci::{ReadRegister, WriteRegister},
    timestamp::{TimestampDatagrams, TimestampSource},
};

const MIB: u64 = 1 << 20;

/// Registers, by their offset in the first BAR.
const CTRL: u32 = 0;
const STATUS: u32 = 8;
const LEDCTL: u32 = 0xe00;
const SWSM: u32 = 0x5b50;

/// Bit of STATUS: the link is up.
const LINK_UP: u32 = 1 << 1;

fn register(bed: &Testbed, offset: u32) -> Result<u32> {
    bed.read_register(bed.local, offset)
}

fn link_modes(bed: &Testbed) -> Result<LinkModes> {
    Ok(bed.guest.call(GetLinkModes::on(bed.local))?)
}

fn set_link(bed: &Testbed, change: LinkModeChange) -> Option<i32> {
    let set = bed.guest.call(SetLinkModes::on(bed.local, change));
    set.err().map(|error| error.errno().unwrap_or(0))
}

fn advertise(modes: &[&str]) -> LinkModeChange {
    LinkModeChange {
        autoneg: Some(true),
        advertise: Some(modes.iter().map(|&mode| mode.to_owned()).collect()),
        ..LinkModeChange::default()
    }
}

#[test]
fn the_link_is_negotiated_and_what_is_offered_is_the_users_choice() -> Result {
    let bed = Testbed::options().boot("device-link")?;
    let all = |offered: &[&str]| -> BTreeMap<String, bool> {
        let modes = [
            "10baseT/Half",
            "10baseT/Full",
            "100baseT/Half",
            "100baseT/Full",
            "1000baseT/Full",
        ];
        let fixed = [("Autoneg", true), ("TP", true)].map(|(name, on)| (name.to_owned(), on));
        let modes = modes.map(|mode| (mode.to_owned(), offered.contains(&mode)));
        modes.into_iter().chain(fixed).collect()
    };
    let everything = [
        "10baseT/Half",
        "10baseT/Full",
        "100baseT/Half",
        "100baseT/Full",
        "1000baseT/Full",
    ];
    let link = link_modes(&bed)?;
    assert_eq!(link.autoneg, Some(true));
    assert_eq!((link.speed, link.full_duplex), (Some(1000), Some(true)));
    assert_eq!(link.modes, all(&everything));

    // QEMU's link stays at 1000 Mb/s, but the PHY still shows the advertised modes.
    for offered in [
        &["100baseT/Full", "10baseT/Half"][..],
        &["1000baseT/Full"],
        &everything,
    ] {
        let with_fixed: Vec<_> = offered.iter().copied().chain(["Autoneg", "TP"]).collect();
        assert_eq!(set_link(&bed, advertise(&with_fixed)), None);
        assert_eq!(link_modes(&bed)?.modes, all(offered));
        bed.wait_carrier(true)?;
    }
    let before = link_modes(&bed)?;
    for (wrong, errno) in [
        (advertise(&["Autoneg", "TP"]), EINVAL),
        (advertise(&["Autoneg", "TP", "10000baseT/Full"]), EINVAL),
        (
            LinkModeChange {
                autoneg: Some(false),
                speed: Some(100),
                full_duplex: Some(true),
                ..LinkModeChange::default()
            },
            EOPNOTSUPP,
        ),
    ] {
        assert_eq!(set_link(&bed, wrong.clone()), Some(errno), "{wrong:?}");
    }
    assert_eq!(link_modes(&bed)?.modes, before.modes);

    bed.set_link(bed.local, false)?;
    bed.wait_carrier_of(bed.local, false)?;
    let link = link_modes(&bed)?;
    assert_eq!((link.speed, link.full_duplex), (None, None));
    bed.set_link(bed.local, true)?;
    bed.wait_carrier_of(bed.local, true)?;

    // Flow control is as the user set it, even after down and up.
    let pause = || bed.guest.call(GetPause::on(bed.local));
    let set_pause = |pause| {
        let set = bed.guest.call(SetPause::on(bed.local, pause));
        set.err().map(|error| error.errno().unwrap_or(0))
    };
    let flow = |rx, tx| Pause {
        autoneg: Some(false),
        rx: Some(rx),
        tx: Some(tx),
        rx_frames: Some(0),
        tx_frames: Some(0),
    };
    assert_eq!(pause()?, flow(false, false));
    for (rx, tx) in [(true, false), (true, true), (false, true)] {
        assert_eq!(set_pause(flow(rx, tx)), None);
        assert_eq!(pause()?, flow(rx, tx));
        let ctrl = register(&bed, CTRL)?;
        assert_eq!((ctrl & 1 << 27 != 0, ctrl & 1 << 28 != 0), (rx, tx));
    }
    let negotiated = Pause {
        autoneg: Some(true),
        ..Pause::default()
    };
    assert_eq!(set_pause(negotiated), Some(EOPNOTSUPP));
    bed.down_and_up(bed.local)?;
    bed.wait_carrier(true)?;
    assert_eq!(pause()?, flow(false, true));
    assert_eq!(register(&bed, CTRL)? >> 27 & 3, 2);
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn the_phy_is_left_alone_while_the_firmware_has_it() -> Result {
    /// Software/firmware synchronization of shared resources (82576 datasheet, 4.7): port 0's PHY
    /// is in use by software, or by the firmware.
    const SW_FW_SYNC: u32 = 0x5b5c;
    const PHY: u32 = 1 << 1;
    const FIRMWARE_PHY: u32 = PHY << 16;
    /// The last access to the PHY.
    const MDIC: u32 = 0x20;

    let bed = Testbed::options().boot("device-phy")?;
    let modes = link_modes(&bed)?.modes;
    assert_eq!(register(&bed, SW_FW_SYNC)? & PHY, 0, "it is released");

    let set = |offset, value| {
        bed.guest.call(WriteRegister::new(
            bed.pci_device(bed.local).expect("it is a PCI device"),
            offset,
            value,
        ))
    };
    set(SW_FW_SYNC, FIRMWARE_PHY)?;
    let before = register(&bed, MDIC)?;
    let refused = link_modes(&bed);
    assert_refused(refused, EBUSY, "the PHY is the firmware's");
    assert_eq!(register(&bed, MDIC)?, before, "it is not accessed");
    set(SW_FW_SYNC, 0)?;
    assert_eq!(link_modes(&bed)?.modes, modes);
    bed.finish()
}

fn test(bed: &Testbed, offline: bool) -> Result<SelfTest> {
    Ok(bed.guest.call(TestSelf::on(bed.local, offline))?)
}

#[test]
fn the_device_tests_itself_and_goes_on() -> Result {
    let bed = Testbed::devmem("device-test")?;
    for offline in [false, true] {
        let found = test(&bed, offline)?;
        assert_eq!(found.results.len(), 4, "{found:?}");
        assert!(
            found.results.values().all(|&result| result == 0),
            "{found:?}"
        );
        assert!(!found.failed);
    }

    // A bound queue stays bound across the test.
    bed.wait_carrier(true)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut tests = 0;
    let received = stream.receive_devmem(&bed, 1, 4 * MIB, 4 * MIB, |_| {
        if tests == 0 {
            let found = test(&bed, true).expect("the test runs");
            assert!(!found.failed, "{found:?}");
        }
        tests += 1;
    })?;
    assert_eq!(received.verified, 4 * MIB);
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
    assert!(!test(&bed, true)?.failed);
    bound.stop()?;

    // The test finds faults: here, that there is no link.
    bed.set_link(bed.local, false)?;
    bed.wait_carrier_of(bed.local, false)?;
    let found = test(&bed, false)?;
    assert!(found.failed, "{found:?}");
    assert_eq!(found.results["Link test (online)"], 1);
    // QEMU's MAC loopback needs a link, too.
    let needs_link = !bed.can(Ability::LoopbackWithoutLink)?;
    let found = test(&bed, true)?;
    assert_eq!(
        found.results["Loopback test (offline)"],
        u64::from(needs_link),
        "{found:?}"
    );
    assert_eq!(found.results["Register test (offline)"], 0, "{found:?}");
    bed.set_link(bed.local, true)?;
    bed.wait_carrier_of(bed.local, true)?;

    // The test also runs while the interface is down, which stays down even if the link comes up.
    bed.set_interface(bed.local, false)?;
    for up in [false, true] {
        bed.set_link(bed.local, up)?;
        let link = || Ok(u64::from((register(&bed, STATUS)? & LINK_UP != 0) == up));
        bed.wait_until(1, link)?;
    }
    let found = test(&bed, true)?;
    let own = bed.interface(bed.local)?;
    assert!(!own.carrier, "{own:?}");
    for name in ["Register test (offline)", "Interrupt test (offline)"] {
        assert_eq!(found.results[name], 0, "{found:?}");
    }
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    bed.transfer(bed.peer, bed.local, Family::V6, MIB)?;
    bed.finish()
}

#[test]
fn an_interface_that_comes_up_with_its_link_says_that_it_is_up() -> Result {
    let bed = Testbed::options().boot("device-operstate")?;
    let device = bed.pci_device(bed.local)?;
    bed.guest.call(UnloadModule::new(bed.driver()))?;
    bed.load_driver()?;
    bed.wait_until(1, || {
        let status = bed.guest.call(ReadRegister::new(&device, STATUS))?;
        Ok(u64::from(status & LINK_UP != 0))
    })?;
    bed.set_up()?;
    let operstate = format!("/sys/class/net/{}/operstate", bed.local.interface);
    let state = || bed.read_file(&operstate);
    bed.wait_until(1, || Ok(u64::from(state()?.trim() == "up")))?;
    bed.finish()
}

#[test]
fn the_device_shows_what_it_is_and_offers_nothing_that_it_has_not() -> Result {
    let bed = Testbed::options()
        .needs_kernel(["PTP_1588_CLOCK"])
        .boot("device-shows")?;
    let info = bed.guest.call(GetDriverInfo::on(bed.local))?;
    assert_eq!(
        (info.driver.as_str(), info.bus_info),
        ("rigb", bed.pci_device(bed.local)?)
    );

    // The dump starts with CTRL and STATUS; the registers of RX queue 0 include its length.
    let dump = bed.guest.call(DumpRegisters::on(bed.local))?;
    assert_eq!((dump.version, dump.words.len()), (2, 39 + 16 * 15));
    assert_eq!(dump.words[0], register(&bed, CTRL)?);
    assert_eq!(dump.words[1], register(&bed, STATUS)?);
    assert_eq!(dump.words[39 + 3], 1024 * 16, "RDLEN");
    // Reading SWSM takes the semaphore, so a dump must not: the other port would wait for it.
    assert_eq!(register(&bed, SWSM)? & 1, 0, "SWSM.SMBI was free");

    // The LED blinks, and afterwards is as it was.
    let before = register(&bed, LEDCTL)?;
    let seen = thread::scope(|scope| -> Result<BTreeSet<u32>> {
        let blinking = scope.spawn(|| bed.guest.call(Identify::on(bed.local, 2)));
        let mut seen = BTreeSet::new();
        while !blinking.is_finished() {
            seen.insert(register(&bed, LEDCTL)?);
        }
        blinking.join().expect("it does not panic")?;
        Ok(seen)
    })?;
    assert!(seen.len() > 1, "it did not blink: {seen:x?}");
    assert_eq!(register(&bed, LEDCTL)?, before);

    let level = || bed.guest.call(GetMessageLevel::on(bed.local));
    bed.show_whole_log()?;
    // NETIF_MSG_LINK, or nothing.
    for wanted in [4, 0] {
        bed.guest.call(SetMessageLevel::on(bed.local, wanted))?;
        assert_eq!(level()?, wanted);
        for up in [false, true] {
            bed.set_link(bed.local, up)?;
            bed.wait_carrier_of(bed.local, up)?;
        }
        for message in ["link is down", "link is up"] {
            bed.wait_logged(message, 1)?;
            let console = bed.guest.console_text();
            assert_eq!(
                console.matches(message).count(),
                1,
                "said at level 4 and not at level 0: {}",
                bed.guest.console().display()
            );
        }
    }

    // The driver takes software timestamps, too; those of the device have cases of their own.
    // There is no wake-on-LAN.
    for family in Family::BOTH {
        let timestamps = bed.guest.call(TimestampDatagrams {
            ns: bed.local.ns,
            to: bed.peer.socket(family, bed.port()),
            count: 1,
            size: 64,
            by: TimestampSource::Software,
            timeout_ms: 60_000,
        })?;
        assert_eq!(timestamps.len(), 1, "timestamps over {family:?}");
    }
    let timestamps = bed.guest.call(GetTimestamping::on(bed.local))?;
    // All SOF_TIMESTAMPING_* flags of hardware and software, except SYS_HARDWARE, which no driver
    // has.
    assert_eq!(timestamps.sources, 0x7f & !(1 << 5));
    assert!(timestamps.clock.is_some());
    let wol = bed.guest.call(GetWakeOnLan::on(bed.local))?;
    assert_eq!((wol.supported, wol.on), (0, 0));
    let refused = bed.guest.call(SetWakeOnLan::on(bed.local, 1 << 5));
    assert_refused(refused, EOPNOTSUPP, "wake-on-LAN");

    // QEMU's model has no filters, which the driver finds by reading them back.
    let features = bed.guest.call(GetFeatures::on(bed.local))?;
    let ntuple = "rx-ntuple-filter".to_owned();
    let filters = bed.can(Ability::Ntuple)?;
    for offered in [features.active, features.changeable] {
        assert_eq!(offered.contains(&ntuple), filters);
    }
    bed.finish()
}
