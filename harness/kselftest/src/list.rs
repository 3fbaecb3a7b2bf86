// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tests.

use cases::Driver;

use crate::{Error, Result};

/// A test program of the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    /// Its name, without `.py` or `.sh`.
    pub name: &'static str,
    /// Where it is, from the folder of all selftests.
    pub(crate) folder: &'static str,
    /// What it is written for.
    pub(crate) language: Language,
    /// The drivers that have to pass it.
    required: &'static [Driver],
    /// Sub-cases that measure time, of which an emulated processor takes more: nobody has to pass them.
    timed: &'static [&'static str],
    /// Processors, and so queue pairs that the NIC can have.
    pub(crate) cpus: u32,
    /// Whether it is told of IPv4 addresses alone: it steers by address, and filters of the 82576 compare
    /// addresses of IPv4 only.
    pub(crate) ipv4: bool,
    /// How many queue pairs the NIC under test has in use, where it matters.
    pub(crate) channels: Option<u32>,
    /// Whether the peer's NIC splits headers from payload if it can, so that it takes no page for a packet
    /// that has none.
    pub(crate) peer_splits: bool,
    /// The first and the last port that it draws from, as `ip_local_port_range` has them, if not the
    /// kernel's own.
    pub(crate) ports: Option<&'static str>,
}

/// What runs a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Bash,
}

impl Language {
    /// Interpreter in the root file system, and how names of files end.
    pub(crate) fn interpreter(self) -> (&'static str, &'static str) {
        match self {
            Self::Python => ("/usr/bin/python3", ".py"),
            Self::Bash => ("/usr/bin/bash", ".sh"),
        }
    }
}

impl Test {
    /// Whether a sub-case has to pass with the driver that reports call so.
    pub(crate) fn is_required(&self, case: &str, driver: &str) -> bool {
        !self.timed.contains(&case) && self.required.iter().any(|one| one.name() == driver)
    }
}

const NET: &str = "drivers/net";
const HW: &str = "drivers/net/hw";

/// Several tests want more than two queues.
const CPUS: u32 = 4;

const fn required(folder: &'static str, name: &'static str) -> Test {
    Test {
        name,
        folder,
        language: Language::Python,
        required: &[Driver::Rigb],
        timed: &[],
        cpus: CPUS,
        ipv4: false,
        channels: None,
        peer_splits: false,
        ports: None,
    }
}

const fn more(folder: &'static str, name: &'static str) -> Test {
    Test {
        required: &[],
        ..required(folder, name)
    }
}

/// What the 82576 can do, and QEMU's model of it can't.
const fn on_our_model(folder: &'static str, name: &'static str) -> Test {
    Test {
        required: &[Driver::RigbModel],
        ..required(folder, name)
    }
}

/// What the driver in C has to pass on our model as on QEMU's.
const fn in_c_too(folder: &'static str, name: &'static str) -> Test {
    Test {
        required: &[Driver::Rigb, Driver::IgbModel],
        ..required(folder, name)
    }
}

const fn script(folder: &'static str, name: &'static str) -> Test {
    Test {
        language: Language::Bash,
        ..more(folder, name)
    }
}

const TESTS: &[Test] = &[
    in_c_too(NET, "ping"),
    required(NET, "hds"),
    in_c_too(NET, "queues"),
    required(NET, "stats"),
    in_c_too(NET, "ring_reconfig"),
    required(NET, "napi_id"),
    required(NET, "napi_threaded"),
    in_c_too(HW, "irq"),
    in_c_too(HW, "csum"),
    required(HW, "tso"),
    // It wants eight queues.
    Test {
        cpus: 8,
        ..required(NET, "gro")
    },
    required(HW, "rss_api"),
    required(HW, "rss_drv"),
    required(HW, "rss_input_xfrm"),
    // It wants processors that no receive queue interrupts.
    Test {
        channels: Some(2),
        ..required(HW, "toeplitz")
    },
    // Every 511th allocation of a page fails, whichever NIC's it is, and the test expects that of the NIC
    // under test.
    Test {
        peer_splits: true,
        ..required(HW, "pp_alloc_fail")
    },
    required(NET, "xdp"),
    required(HW, "xdp_metadata"),
    required(HW, "xsk_reconfig"),
    in_c_too(HW, "nic_timestamp"),
    script(HW, "ethtool_rmon"),
    script(HW, "ethtool_std_stats"),
    Test {
        required: &[Driver::RigbModel, Driver::IgbModel],
        ..on_our_model(HW, "uso")
    },
    more(HW, "gro_hw"),
    more(HW, "rss_flow_label"),
    Test {
        timed: &["test_hitless_key_update"],
        ..on_our_model(HW, "rss_ctx")
    },
    on_our_model(HW, "ntuple"),
    // It draws 21 ports: of so few it draws some again.
    Test {
        ipv4: true,
        ports: Some("40000 40011"),
        ..on_our_model(HW, "devmem")
    },
    on_our_model(HW, "iou-zcrx"),
    on_our_model(HW, "nk_devmem"),
    more(HW, "nk_netns"),
    on_our_model(HW, "nk_qlease"),
    on_our_model(HW, "userns_devmem"),
    more(HW, "ipsec_vxlan"),
    more(NET, "so_txtime"),
    more(NET, "shaper"),
    more(NET, "macsec"),
    more(NET, "psp"),
    more(NET, "netpoll_basic"),
];

/// The test with this name, which may be that of its file, too.
///
/// # Errors
///
/// [`Error::UnknownTest`].
pub fn named(name: &str) -> Result<Test> {
    let plain = name.rsplit('/').next().unwrap_or(name);
    let plain = [Language::Python, Language::Bash]
        .iter()
        .find_map(|language| plain.strip_suffix(language.interpreter().1))
        .unwrap_or(plain);
    let found = TESTS.iter().find(|test| test.name == plain);
    found.copied().ok_or_else(|| Error::UnknownTest {
        name: name.to_owned(),
        known: TESTS.iter().map(|test| test.name).collect(),
    })
}

/// The tests with these names; without any, those that are required of a driver, or all.
///
/// # Errors
///
/// [`Error::UnknownTest`].
pub fn choose(names: &[String], all: bool, driver: Driver) -> Result<Vec<Test>> {
    if names.is_empty() {
        let wanted = |test: &&Test| all || test.required.contains(&driver);
        return Ok(TESTS.iter().filter(wanted).copied().collect());
    }
    names.iter().map(|name| named(name)).collect()
}

/// The place of a test among all, for tables.
pub fn place(name: &str) -> usize {
    let found = TESTS.iter().position(|test| test.name == name);
    found.unwrap_or(TESTS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_chosen_by_name_or_file_name() {
        let chosen = choose(
            &["irq", "drivers/net/ping.py", "ethtool_rmon.sh"].map(str::to_owned),
            false,
            Driver::Rigb,
        )
        .unwrap();
        let names: Vec<_> = chosen.iter().map(|test| test.name).collect();
        assert_eq!(names, ["irq", "ping", "ethtool_rmon"]);
        let error = choose(&["pong".to_owned()], false, Driver::Rigb)
            .unwrap_err()
            .to_string();
        assert!(error.contains("pong") && error.contains("ping"), "{error}");
    }

    #[test]
    fn without_names_those_run_that_are_required_of_the_driver() {
        let names = |all, driver| -> Vec<_> {
            let chosen = choose(&[], all, driver).unwrap();
            chosen.iter().map(|test| test.name).collect()
        };
        assert!(names(false, Driver::Rigb).contains(&"ping"));
        assert!(!names(false, Driver::Rigb).contains(&"devmem"));
        assert!(!names(false, Driver::RigbModel).contains(&"ping"));
        assert!(names(false, Driver::RigbModel).contains(&"devmem"));
        assert_eq!(names(true, Driver::Rigb), names(true, Driver::Igb));
    }
}
