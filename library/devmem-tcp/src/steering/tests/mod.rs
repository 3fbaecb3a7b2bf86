// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans on a NIC that fails when it is told to.

mod fake;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use self::fake::*;
use super::*;
use crate::ethtool::TcpDataSplit;

fn plan() -> Plan {
    Plan::new(Interface::from_index(u32::MAX))
        .queue(3)
        .queue(1)
        .tcp_port(5201)
}

#[test]
fn flows_reach_the_queues_and_nothing_else_does_until_it_is_undone() {
    let state = Rc::new(RefCell::new(State::new()));
    let two_ports = plan().tcp_port(5202);
    let (mut steps, steered, bound) = carry_out(&two_ports, Fake::new(&state, 0), |_| {
        Ok(Bound::new(&state, 3))
    })
    .expect("it works");
    assert_eq!(steered, Steered::Rules);
    let set_up = state.borrow().clone();
    assert_eq!((set_up.split, set_up.hds_thresh), (TcpDataSplit::On, 0));
    assert_eq!(set_up.table, [0, 0, 2, 2, 0, 0, 2, 2]);
    let to: Vec<_> = set_up
        .rules
        .values()
        .map(|rule| (rule.flow, rule.action))
        .collect();
    let expected = [
        (FlowType::Tcp4, FlowAction::Queue(3)),
        (FlowType::Tcp6, FlowAction::Queue(3)),
        (FlowType::Tcp4, FlowAction::Queue(1)),
        (FlowType::Tcp6, FlowAction::Queue(1)),
    ];
    assert_eq!(to, expected);
    drop(bound);
    assert!(steps.undo().is_empty());
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn where_the_nic_has_rss_contexts_one_spreads_the_flows_of_each_rule_over_the_queues() {
    let state = Rc::new(RefCell::new(State::new()));
    let fake = Fake {
        with_contexts: true,
        ..Fake::new(&state, 0)
    };
    let (mut steps, steered, ()) = carry_out(&plan(), fake.clone(), |_| Ok(())).expect("it works");
    assert_eq!(steered, Steered::Context(1));
    let set_up = state.borrow().clone();
    assert_eq!(set_up.table, [0, 0, 2, 2, 0, 0, 2, 2]);
    assert_eq!(set_up.contexts, [[3, 1, 3, 1, 3, 1, 3, 1]]);
    let to: Vec<_> = set_up.rules.values().map(|rule| rule.action).collect();
    assert_eq!(to, [FlowAction::RssContext(1); 2]);
    assert!(steps.undo().is_empty());
    assert_eq!(*state.borrow(), State::new());

    let one = Plan::new(Interface::from_index(u32::MAX))
        .queue(3)
        .tcp_port(5201);
    let (_steps, steered, ()) = carry_out(&one, fake, |_| Ok(())).expect("it works");
    assert_eq!(steered, Steered::Rules, "one queue needs none");
    assert_eq!(state.borrow().contexts, [[0; 0]; 0]);
}

#[test]
fn whatever_change_is_refused_those_before_it_are_undone() {
    // Split, table, context, rules on, two rules.
    for refused in 1..=6 {
        let state = Rc::new(RefCell::new(State::new()));
        let fake = Fake {
            with_contexts: true,
            ..Fake::new(&state, refused)
        };
        let error = carry_out(&plan(), fake, |_| Ok(Bound::new(&state, 3)));
        let error = error.err().expect("it was refused");
        assert_eq!(error.errno(), Some(libc::EBUSY), "change {refused}");
        assert_eq!(
            *state.borrow(),
            State::new(),
            "after change {refused} was refused"
        );
    }
}

#[test]
fn a_queue_that_somebody_else_has_is_an_error_before_anything_is_taken_from_them() {
    let state = Rc::new(RefCell::new(State::new()));
    let table = state.borrow().table.clone();
    let error = carry_out(
        &plan(),
        Fake::new(&state, 0),
        |_| -> Result<(), BindError> {
            assert_eq!(state.borrow().table, table);
            Err(BindError::QueueAlreadyBound {
                interface: "fake".to_owned(),
                queues: vec![3],
                refusal: Refusal::from_errno(libc::EEXIST),
            })
        },
    );
    assert!(matches!(
        error,
        Err(SteeringError::Bind(BindError::QueueAlreadyBound { .. }))
    ));
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn a_queue_that_is_to_be_bound_later_is_refused_as_well_if_somebody_has_it() {
    let state = Rc::new(RefCell::new(State::new()));
    (state.borrow_mut().split, state.borrow_mut().hds_thresh) = (TcpDataSplit::On, 0);
    let _theirs = (Bound::new(&state, 2), Bound::new(&state, 1));
    let before = state.borrow().clone();
    let error = carry_out(&plan(), Fake::new(&state, 0), |nic| plan().unbound(nic)).err();
    assert!(
        matches!(
            &error,
            Some(SteeringError::Bind(BindError::QueueAlreadyBound { queues, .. })) if queues == &[1]
        ),
        "{error:?}"
    );
    assert_eq!(*state.borrow(), before);
}

#[test]
fn a_queue_that_does_not_exist_is_named_before_anything_is_steered_to_it() {
    let state = Rc::new(RefCell::new(State::new()));
    let plan = plan().queue(4);
    let error = carry_out(&plan, Fake::new(&state, 0), |nic| plan.unbound(nic)).err();
    assert!(
        matches!(
            error,
            Some(SteeringError::Bind(BindError::NoSuchQueue { queue: 4, .. }))
        ),
        "{error:?}"
    );
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn a_panic_undoes_everything() {
    let state = Rc::new(RefCell::new(State::new()));
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _steered = carry_out(&plan(), Fake::new(&state, 0), |_| Ok(())).expect("it works");
        assert_ne!(*state.borrow(), State::new());
        std::panic::resume_unwind(Box::new("as it is wanted"));
    }));
    assert!(unwound.is_err());
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn an_undo_that_is_refused_is_reported_and_the_others_are_made() {
    let state = Rc::new(RefCell::new(State::new()));
    // Five changes; the seventh is the undo of the first rule.
    let (mut steps, _, ()) =
        carry_out(&plan(), Fake::new(&state, 7), |_| Ok(())).expect("it works");
    assert_eq!(steps.undo().len(), 1);
    let left = state.borrow().clone();
    assert_eq!(left.rules.len(), 1);
    let rules = BTreeMap::new();
    assert_eq!(State { rules, ..left }, State::new());
}

#[test]
fn headers_stay_split_while_somebody_else_has_a_binding_which_is_reported() {
    let state = Rc::new(RefCell::new(State::new()));
    let (mut steps, _, ()) =
        carry_out(&plan(), Fake::new(&state, 0), |_| Ok(())).expect("it works");
    let other = Bound::new(&state, 2);
    let left = steps.undo();
    let [error @ SteeringError::SplitInUse { queues, .. }] = &left[..] else {
        panic!("{left:?}");
    };
    assert_eq!(queues, &[2]);
    let said = error.to_string();
    assert!(
        said.ends_with("tcp-data-split auto hds-thresh 256"),
        "{said}"
    );
    assert_eq!(state.borrow().split, TcpDataSplit::On);
    drop(other);
}

#[test]
fn flow_rules_stay_on_while_somebody_else_has_some_which_is_reported() {
    let state = Rc::new(RefCell::new(State::new()));
    let (mut steps, _, ()) =
        carry_out(&plan(), Fake::new(&state, 0), |_| Ok(())).expect("it works");
    let theirs = FlowRule::all(FlowType::Udp4, 2);
    state.borrow_mut().rules.insert(100, theirs);
    let left = steps.undo();
    let [error @ SteeringError::RulesInUse { rules: 1, .. }] = &left[..] else {
        panic!("{left:?}");
    };
    assert!(error.to_string().ends_with("ntuple off"), "{error}");
    let expected = State {
        rules: [(100, theirs)].into(),
        rules_on: true,
        ..State::new()
    };
    assert_eq!(*state.borrow(), expected);
}

#[test]
fn a_queue_that_comes_back_in_the_background_is_waited_for_before_anything_is_undone() {
    for returns in [true, false] {
        let state = Rc::new(RefCell::new(State::new()));
        let fake = Fake {
            returns,
            ..Fake::new(&state, 0)
        };
        let (mut steps, _, ()) =
            carry_out(&plan(), fake, |nic| plan().unbound(nic)).expect("nobody has it");
        state.borrow_mut().bound.push(3);
        let left = steps.undo();
        if returns {
            assert!(left.is_empty(), "{left:?}");
            assert_eq!(*state.borrow(), State::new());
        } else {
            assert!(
                matches!(&left[..], [SteeringError::SplitInUse { queues, .. }] if queues == &[3])
            );
            assert!(state.borrow().rules.is_empty());
        }
    }
}

#[test]
fn without_flow_rules_the_error_says_so_and_everything_can_be_let_in() {
    let state = Rc::new(RefCell::new(State::new()));
    let fake = Fake {
        without_rules: true,
        ..Fake::new(&state, 0)
    };
    let error = carry_out(&plan(), fake.clone(), |_| Ok(())).err();
    assert!(matches!(error, Some(SteeringError::NoFlowRules { .. })));
    assert_eq!(*state.borrow(), State::new());
    let all = Plan::new(Interface::from_index(u32::MAX))
        .queue(2)
        .everything();
    let steered = carry_out(&all, fake, |_| Ok(())).expect("it takes no rules");
    assert_eq!(state.borrow().table, [2; 8]);
    drop(steered);
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn where_the_driver_chooses_no_place_rules_of_others_keep_theirs() {
    let state = Rc::new(RefCell::new(State::new()));
    let theirs = [
        (0, FlowRule::all(FlowType::Udp4, 2)),
        (2, FlowRule::all(FlowType::Udp6, 2)),
    ];
    (state.borrow_mut().rules, state.borrow_mut().rules_on) = (theirs.into(), true);
    let before = state.borrow().clone();
    let with_places = |places| Fake {
        places: Some(places),
        ..Fake::new(&state, 0)
    };
    let (mut steps, _, ()) = carry_out(&plan(), with_places(4), |_| Ok(())).expect("there is room");
    let places: Vec<_> = state.borrow().rules.keys().copied().collect();
    assert_eq!(places, [0, 1, 2, 3]);
    assert!(steps.undo().is_empty());
    assert_eq!(*state.borrow(), before);

    let error = carry_out(&plan(), with_places(3), |_| Ok(())).err();
    let full = matches!(
        error,
        Some(SteeringError::Request(RequestError::NoFreePlace {
            places: 3,
            ..
        }))
    );
    assert!(full, "{error:?}");
    assert_eq!(*state.borrow(), before);
}

#[test]
fn a_plan_that_leaves_no_queue_or_steers_nothing_is_refused() {
    let state = Rc::new(RefCell::new(State::new()));
    let greedy = (0..4).fold(plan(), Plan::queue);
    let error = carry_out(&greedy, Fake::new(&state, 0), |_| Ok(())).err();
    assert!(matches!(error, Some(SteeringError::NoQueueLeft { .. })));
    let idle = Plan::new(Interface::from_index(u32::MAX)).queue(1);
    let error = carry_out(&idle, Fake::new(&state, 0), |_| Ok(())).err();
    assert!(matches!(error, Some(SteeringError::NoFlow { .. })));
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn a_listener_has_rules_for_the_versions_of_ip_that_it_listens_on() {
    for (at, expected) in [
        ("192.0.2.1:80", &[FlowType::Tcp4][..]),
        ("0.0.0.0:80", &[FlowType::Tcp4]),
        ("[2001:db8::1]:80", &[FlowType::Tcp6]),
        ("[::]:80", &[FlowType::Tcp4, FlowType::Tcp6]),
        ("[::ffff:192.0.2.1]:80", &[FlowType::Tcp4]),
    ] {
        let plan = Plan::new(Interface::from_index(1)).tcp_listener(at.parse().expect(at));
        let flows: Vec<_> = plan.flows.iter().flatten().map(|rule| rule.flow).collect();
        assert_eq!(flows, expected, "{at}");
    }
}

#[test]
fn a_connections_rule_is_of_what_its_peer_sends() {
    for (local, peer, flow) in [
        ("192.0.2.1:40000", "192.0.2.2:5201", FlowType::Tcp4),
        ("[2001:db8::1]:40000", "[2001:db8::2]:5201", FlowType::Tcp6),
        // As a socket of IPv6 has them.
        (
            "[::ffff:192.0.2.1]:40000",
            "[::ffff:192.0.2.2]:5201",
            FlowType::Tcp4,
        ),
    ] {
        let [local, peer] = [local, peer].map(|at| at.parse::<SocketAddr>().expect(at));
        let plan = Plan::new(Interface::from_index(1)).tcp_connection(local, peer);
        let [[rule]] = plan.flows.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] else {
            panic!("{plan:?}");
        };
        assert_eq!(rule.flow, flow);
        let value = |of: Option<crate::ethtool::Masked<std::net::IpAddr>>| of.map(|it| it.value);
        assert_eq!(value(rule.source), Some(peer.ip().to_canonical()));
        assert_eq!(value(rule.destination), Some(local.ip().to_canonical()));
        let ports = [rule.source_port, rule.destination_port].map(|it| it.map(|it| it.value));
        assert_eq!(ports, [Some(5201), Some(40000)]);
    }
}
