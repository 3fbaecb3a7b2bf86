// SPDX-License-Identifier: MIT OR Apache-2.0

//! Verdicts about NICs and kernels, without either.

use std::collections::{BTreeMap, BTreeSet};

use devmem_tcp::ethtool::{Channels, Features, Rings, Rss, TcpDataSplit};
use devmem_tcp::interface::Link;

use super::Report;
use super::facts::{Attempt, Attempts, Caller, Facts, Rules, RxQueue};
use super::finding::Way;
use super::verdict::{Kind, Verdict};
use crate::asked::Asked;

fn works() -> Attempt {
    Attempt::Works("it was tried".to_owned())
}

/// rigb with header split on, all TCP on queue 1, asked by root with `--try`, on Linux 7.3.
fn rigb() -> Facts {
    let mut rings = Rings::default();
    rings.tcp_data_split = Some(TcpDataSplit::On);
    (rings.hds_thresh, rings.hds_thresh_max) = (Some(0), Some(0));
    Facts {
        interface: "eth0".to_owned(),
        driver: Asked::Known("rigb".to_owned()),
        release: "7.3.4".to_owned(),
        netdev: Asked::Known(vec!["queue-get", "bind-rx", "bind-tx"]),
        ethtool: Asked::Known(vec!["rings-set", "rss-set"]),
        configuration: None,
        net_devmem: Some(true),
        link: Asked::Known(Link {
            up: true,
            carrier: true,
            mtu: 9000,
            xdp: false,
        }),
        rings: Asked::Known(rings),
        channels: Asked::Known(Channels {
            combined: 4,
            combined_max: 8,
            ..Channels::default()
        }),
        rx_queues: Asked::Known((0..4).map(|id| RxQueue { id, taken: false }).collect()),
        named: None,
        rss: Asked::Known(Rss {
            hash_function: Some(1),
            indirection: vec![1; 128],
            key: Vec::new(),
            hash_fields: BTreeMap::new(),
        }),
        rules: Asked::lacks("no rules"),
        features: features(&["tx-scatter-gather", "tx-checksum-ipv4"], &[]),
        zcrx: Asked::Known(Some(Default::default())),
        udmabuf: Asked::Known(Some(1024)),
        heaps: Vec::new(),
        caller: Caller {
            net_admin: true,
            ipc_lock: true,
            initial_namespace: true,
            memlock: None,
        },
        optmem_max: Some(131_072),
        attempts: Attempts {
            bind_rx: works(),
            page_sizes: Asked::Known(vec![16 << 10]),
            bind_tx: works(),
            zcrx: works(),
            no_device: works(),
        },
    }
}

fn features(active: &[&str], changeable: &[&str]) -> Asked<Features> {
    let set = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    };
    Asked::Known(Features {
        changeable: set(changeable),
        wanted: BTreeSet::new(),
        active: set(active),
    })
}

fn with_rings(change: impl FnOnce(&mut Rings)) -> Facts {
    let mut facts = rigb();
    if let Asked::Known(rings) = &mut facts.rings {
        change(rings);
    }
    facts
}

fn with_table(queues: Vec<u32>) -> Facts {
    let mut facts = rigb();
    if let Asked::Known(rss) = &mut facts.rss {
        rss.indirection = queues;
    }
    facts
}

fn verdict(facts: &Facts, way: Way) -> Verdict {
    let report = Report::of(facts);
    let mut verdicts = report.verdicts.into_iter();
    verdicts
        .find(|verdict| verdict.way == way)
        .expect("each way has one")
}

#[track_caller]
fn assert_after(facts: &Facts, way: Way, commands: &[&str]) {
    let verdict = verdict(facts, way);
    assert_eq!(
        (verdict.verdict, verdict.after),
        (
            Kind::WorksAfter,
            commands.iter().map(|&c| c.to_owned()).collect::<Vec<_>>()
        )
    );
}

#[track_caller]
fn assert_lacks(facts: &Facts, way: Way, what: &[&str]) {
    let verdict = verdict(facts, way);
    let lacks: Vec<_> = verdict.lacks.iter().map(|reason| reason.what).collect();
    assert_eq!((verdict.verdict, &lacks[..]), (Kind::Lacks, what));
}

#[track_caller]
fn assert_unknown(facts: &Facts, way: Way, what: &[&str]) {
    let verdict = verdict(facts, way);
    let unknown: Vec<_> = verdict.unknown.iter().map(|reason| reason.what).collect();
    assert_eq!((verdict.verdict, &unknown[..]), (Kind::Unknown, what));
}

#[test]
fn a_nic_that_is_set_up_and_was_tried_works_both_ways() {
    let facts = rigb();
    for way in [Way::Rx, Way::Tx, Way::Zcrx, Way::Ordinary] {
        assert_eq!(verdict(&facts, way).verdict, Kind::Works, "{way}");
    }
    // This kernel's zcrx says nothing of NODEV.
    assert_lacks(&facts, Way::Nodev, &["ZCRX_REG_NODEV"]);
    assert_eq!(facts.free_queue(), Some(3));
}

#[test]
fn without_a_try_queue_management_is_unknown_and_the_rest_is_known() {
    let mut facts = with_rings(|rings| rings.tcp_data_split = Some(TcpDataSplit::Off));
    facts.attempts.bind_rx = Attempt::Unknown("--try shows it".to_owned());
    assert_unknown(&facts, Way::Rx, &["queue management"]);
    assert_eq!(
        verdict(&facts, Way::Rx).to_string(),
        "unknown: queue management; and it takes: ethtool -G eth0 tcp-data-split on"
    );
    assert_eq!(verdict(&facts, Way::Tx).verdict, Kind::Works);
}

#[test]
fn the_loopback_lacks_what_receiving_takes_and_ordinary_sockets_work() {
    let mut facts = rigb();
    facts.driver = Asked::lacks("no driver");
    facts.rings = Asked::lacks("no rings");
    facts.channels = Asked::lacks("no channels");
    facts.rx_queues = Asked::Known(vec![RxQueue {
        id: 0,
        taken: false,
    }]);
    facts.rss = Asked::lacks("no RSS");
    facts.attempts.bind_rx = Attempt::Lacks("no queue management".to_owned());
    facts.attempts.bind_tx = Attempt::Lacks("no netmem".to_owned());
    let missing = [
        "header split",
        "queue management",
        "RX queues",
        "flow rules",
    ];
    assert_lacks(&facts, Way::Rx, &missing);
    assert_lacks(&facts, Way::Tx, &["netmem TX"]);
    assert_eq!(verdict(&facts, Way::Ordinary).verdict, Kind::Works);
}

#[test]
fn an_old_kernel_is_named_with_the_one_that_it_takes() {
    let mut facts = rigb();
    let attempt = Attempt::Lacks("no bind-rx".to_owned());
    facts.netdev = Asked::Known(vec!["queue-get"]);
    facts.zcrx = Asked::Known(None);
    facts.attempts.bind_rx = attempt.clone();
    facts.attempts.bind_tx = attempt;
    assert_lacks(&facts, Way::Tx, &["bind-tx", "netmem TX"]);
    assert_lacks(&facts, Way::Nodev, &["zcrx"]);
    let lacks = &verdict(&facts, Way::Rx).lacks[0];
    assert_eq!(
        (lacks.what, &*lacks.why),
        ("bind-rx", "it takes Linux 6.12 or newer")
    );

    // Before Linux 6.7 there was no such family.
    facts.netdev = Asked::lacks("the running kernel has no netdev");
    assert_eq!(
        verdict(&facts, Way::Rx).lacks[0].why,
        "the running kernel has no netdev"
    );
}

#[test]
fn header_split_is_on_or_can_be_or_is_lacking() {
    let split = |split, thresh| {
        with_rings(|rings| {
            rings.tcp_data_split = split;
            rings.hds_thresh = thresh;
        })
    };
    let on = "ethtool -G eth0 tcp-data-split on";
    assert_after(&split(Some(TcpDataSplit::Off), None), Way::Rx, &[on]);
    assert_after(&split(None, Some(0)), Way::Zcrx, &[on]);
    let thresh = "ethtool -G eth0 hds-thresh 0";
    assert_after(&split(None, Some(256)), Way::Rx, &[on, thresh]);
    assert_lacks(&split(None, None), Way::Rx, &["header split"]);
}

#[test]
fn a_refusal_for_header_split_shows_that_the_driver_manages_queues() {
    let mut facts = with_rings(|rings| rings.tcp_data_split = Some(TcpDataSplit::Off));
    facts.attempts.bind_rx = Attempt::NotNow("header split is off".to_owned());
    assert_after(&facts, Way::Rx, &["ethtool -G eth0 tcp-data-split on"]);
}

#[test]
fn an_xdp_program_is_to_be_detached() {
    let mut facts = rigb();
    if let Asked::Known(link) = &mut facts.link {
        link.xdp = true;
    }
    for way in [Way::Rx, Way::Zcrx] {
        assert_after(&facts, way, &["ip link set eth0 xdp off"]);
    }
    assert_eq!(verdict(&facts, Way::Tx).verdict, Kind::Works);
}

#[test]
fn one_queue_is_too_few_unless_there_can_be_more() {
    let mut facts = with_table(vec![0; 128]);
    facts.rx_queues = Asked::Known(vec![RxQueue {
        id: 0,
        taken: false,
    }]);
    assert_after(&facts, Way::Rx, &["ethtool -L eth0 combined 8"]);
    facts.channels = Asked::lacks("no channels");
    assert_lacks(&facts, Way::Rx, &["RX queues"]);
}

#[test]
fn a_queue_is_free_if_neither_table_nor_rule_nor_provider_has_it() {
    let equal = with_table((0..4).cycle().take(128).collect());
    assert_eq!(equal.free_queue(), None);
    assert_after(&equal, Way::Rx, &["ethtool -X eth0 equal 3"]);
    let named = Facts {
        named: Some(1),
        ..equal
    };
    assert_eq!(verdict(&named, Way::Rx).verdict, Kind::Works);

    let mut facts = with_table(vec![0, 1]);
    facts.rules = Asked::Known(Rules {
        places: 8,
        queues: vec![3],
        others: 0,
    });
    assert_eq!(facts.free_queue(), Some(2));
    if let Asked::Known(queues) = &mut facts.rx_queues {
        queues[2].taken = true;
    }
    assert_eq!(facts.free_queue(), None);
    // Nor where rules lead that the library can't read.
    facts = with_table(vec![0, 1]);
    facts.rules = Asked::Known(Rules {
        places: 8,
        queues: Vec::new(),
        others: 1,
    });
    assert_eq!(facts.free_queue(), None);
    assert_unknown(&facts, Way::Rx, &["queue without flows"]);
    // Where nobody knows where flows go, no queue is free.
    facts.rss = Asked::lacks("no RSS");
    assert_eq!(facts.free_queue(), None);
}

#[test]
fn an_interface_that_is_down_is_to_be_set_up_first() {
    let mut facts = rigb();
    if let Asked::Known(link) = &mut facts.link {
        (link.up, link.carrier) = (false, false);
    }
    // The kernel lists the queues of running interfaces only.
    facts.rx_queues = Asked::Known(Vec::new());
    facts.attempts.bind_rx = Attempt::Unknown("no queue".to_owned());
    let verdict = verdict(&facts, Way::Rx);
    assert_eq!(verdict.after, ["ip link set eth0 up"]);
}

#[test]
fn flows_are_steered_by_rules_or_by_the_table() {
    let mut facts = with_table(Vec::new());
    assert_lacks(&facts, Way::Rx, &["flow rules"]);
    facts.rss = Asked::unknown("it failed");
    assert_unknown(&facts, Way::Rx, &["flow rules", "queue without flows"]);
    facts.features = features(&[], &["rx-ntuple-filter"]);
    let after = verdict(&facts, Way::Rx).after;
    assert!(
        after.contains(&"ethtool -K eth0 ntuple on".to_owned()),
        "{after:?}"
    );
}

#[test]
fn without_privilege_it_is_sudo_that_is_lacking_and_not_the_nic() {
    let mut facts = rigb();
    facts.caller.net_admin = false;
    assert_after(&facts, Way::Rx, &["sudo, for CAP_NET_ADMIN"]);
    assert_eq!(verdict(&facts, Way::Tx).verdict, Kind::Works);
}

#[test]
fn sending_takes_scatter_gather_and_checksums() {
    let mut facts = rigb();
    facts.features = features(&["tx-checksum-ipv4"], &["tx-scatter-gather"]);
    assert_after(&facts, Way::Tx, &["ethtool -K eth0 tx on sg on"]);
    facts.features = features(&["tx-checksum-ipv4"], &[]);
    assert_lacks(&facts, Way::Tx, &["sg, TX checksums"]);
}

#[test]
fn only_the_ways_that_were_asked_for_must_hold() {
    let report = Report::of(&rigb());
    assert!(report.holds(&[]));
    assert!(report.holds(&[Way::Rx, Way::Tx]));
    assert!(!report.holds(&[Way::Rx, Way::Nodev]));
}

/// What a shell finds, or has itself.
const COMMANDS: [&str; 11] = [
    "cat",
    "devmem-tcp",
    "ethtool",
    "genl",
    "grep",
    "ip",
    "ls",
    "sysctl",
    "ulimit",
    "uname",
    "zgrep",
];

#[test]
fn each_finding_is_shown_by_a_command_and_lines_fit_a_terminal() {
    for facts in [rigb(), with_table(Vec::new())] {
        let report = Report::of(&facts);
        for finding in &report.findings {
            let command = finding.shown_by.split(' ').next().unwrap_or_default();
            assert!(COMMANDS.contains(&command), "{}", finding.shown_by);
        }
        let text = report.text();
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}
