// SPDX-License-Identifier: MIT OR Apache-2.0

//! An interface that is set up, and what is left of that.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use devmem_tcp::ethtool::{Ethtool, Indirection, RingChange, RssChange, TcpDataSplit, flow_rules};
use devmem_tcp::netdev::{Netdev, QueueKind};
use devmem_tcp::steering::Plan;
use devmem_tcp::udmabuf::Udmabuf;

use crate::{Lab, MIB};

#[test]
#[ignore = "needs the lab"]
fn a_panic_leaves_the_interface_as_it_was() {
    let Lab {
        interface, queue, ..
    } = Lab::find();
    let spread = |over| {
        let change = RssChange {
            indirection: Some(over),
            ..RssChange::default()
        };
        let set = Ethtool::new().set_rss(interface, &change);
        set.expect("the table");
    };
    let split = |split| {
        let change = RingChange {
            tcp_data_split: Some(split),
            ..RingChange::default()
        };
        let set = Ethtool::new().set_rings(interface, change);
        set.expect("header split");
    };
    let state = || {
        let mut ethtool = Ethtool::new();
        let rings = ethtool.rings(interface).expect("rings");
        let table = ethtool.rss(interface).expect("the table").indirection;
        let rules = flow_rules(interface).map(|rules| (rules.rules, rules.others));
        let queues = Netdev::new().queues(interface).expect("queues");
        let queues = queues.iter().filter(|queue| queue.kind == QueueKind::Rx);
        let bound: Vec<_> = queues.map(|queue| queue.dmabuf).collect();
        let features = ethtool.features(interface).expect("features").active;
        (rings, table, rules.ok(), bound, features)
    };
    // As a NIC is before anybody has changed it.
    split(TcpDataSplit::Off);
    spread(Indirection::Default);
    let before = state();
    let plan = Plan::new(interface).queue(queue);
    let plan = match flow_rules(interface) {
        Ok(rules) if rules.places > 0 => plan.tcp_port(5201),
        _ => plan.everything(),
    };
    let memory = Udmabuf::new().create(16 * MIB).expect("memory");
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _steering = plan.apply(&memory).expect("it works");
        let during = state();
        assert!(during.3[queue as usize].is_some(), "{during:?}");
        assert_ne!((&during.1, &during.2), (&before.1, &before.2));
        resume_unwind(Box::new("as it is wanted"));
    }));
    let why = unwound.expect_err("it panics");
    assert_eq!(why.downcast_ref(), Some(&"as it is wanted"));
    assert_eq!(state(), before);
    spread(Indirection::Queues(vec![queue]));
    split(TcpDataSplit::On);
}
