// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans on a NIC that fails when it is told to.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::error::Refusal;
use crate::ethtool::{Rings, TcpDataSplit};

/// What can be changed of the NIC.
#[derive(Debug, Clone, PartialEq)]
struct State {
    split: TcpDataSplit,
    hds_thresh: u32,
    table: Vec<u32>,
    rules_on: bool,
    rules: Vec<FlowRule>,
    /// The tables of RSS contexts.
    contexts: Vec<Vec<u32>>,
    bound: bool,
}

impl State {
    fn new() -> Self {
        Self {
            split: TcpDataSplit::Auto,
            hds_thresh: 256,
            table: vec![0, 1, 2, 3, 0, 1, 2, 3],
            rules_on: false,
            rules: Vec::new(),
            contexts: Vec::new(),
            bound: false,
        }
    }
}

/// A NIC that refuses the change with this number, and works otherwise.
#[derive(Clone)]
struct Fake {
    state: Rc<RefCell<State>>,
    changes: usize,
    refused: usize,
    without_rules: bool,
    with_contexts: bool,
}

impl Fake {
    fn new(state: &Rc<RefCell<State>>, refused: usize) -> Self {
        Self {
            state: Rc::clone(state),
            changes: 0,
            refused,
            without_rules: false,
            with_contexts: false,
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut State)) -> Result<(), RequestError> {
        self.changes += 1;
        if self.changes == self.refused {
            return Err(RequestError::Refused {
                interface: "fake".to_owned(),
                operation: "a change",
                refusal: Refusal::from_errno(libc::EBUSY),
            });
        }
        change(&mut self.state.borrow_mut());
        Ok(())
    }
}

fn unsupported(operation: &'static str) -> RequestError {
    RequestError::Unsupported {
        interface: "fake".to_owned(),
        operation,
        refusal: Refusal::from_errno(libc::EOPNOTSUPP),
    }
}

impl Nic for Fake {
    fn rings(&mut self) -> Result<Rings, RequestError> {
        let state = self.state.borrow();
        Ok(Rings {
            tcp_data_split: Some(state.split),
            hds_thresh: Some(state.hds_thresh),
            ..Rings::default()
        })
    }

    fn set_split(
        &mut self,
        split: TcpDataSplit,
        hds_thresh: Option<u32>,
    ) -> Result<(), RequestError> {
        self.change(|state| {
            assert!(
                !state.bound || split == TcpDataSplit::On,
                "a queue is bound"
            );
            state.split = split;
            state.hds_thresh = hds_thresh.unwrap_or(state.hds_thresh);
        })
    }

    fn table(&mut self) -> Result<Vec<u32>, RequestError> {
        Ok(self.state.borrow().table.clone())
    }

    fn set_table(&mut self, table: Vec<u32>) -> Result<(), RequestError> {
        self.change(|state| state.table = table)
    }

    fn create_context(&mut self, table: Vec<u32>) -> Result<u32, RequestError> {
        if !self.with_contexts {
            return Err(unsupported("a context"));
        }
        self.change(|state| state.contexts.push(table))?;
        Ok(self.state.borrow().contexts.len() as u32)
    }

    fn delete_context(&mut self, context: u32) -> Result<(), RequestError> {
        self.change(|state| {
            let used = FlowAction::RssContext(context);
            assert!(state.rules.iter().all(|rule| rule.action != used), "EBUSY");
            state.contexts.remove(context as usize - 1);
        })
    }

    fn rules_are_off(&mut self) -> Result<bool, RequestError> {
        Ok(!self.state.borrow().rules_on)
    }

    fn turn_rules(&mut self, on: bool) -> Result<(), RequestError> {
        self.change(|state| state.rules_on = on)
    }

    fn insert(&mut self, rule: &FlowRule) -> Result<u32, RequestError> {
        if self.without_rules {
            return Err(unsupported("a flow rule"));
        }
        self.change(|state| state.rules.push(*rule))?;
        Ok(self.state.borrow().rules.len() as u32 - 1)
    }

    fn delete(&mut self, place: u32) -> Result<(), RequestError> {
        self.change(|state| {
            state.rules.remove(place as usize);
        })
    }

    fn is_bound(&mut self) -> bool {
        self.state.borrow().bound
    }
}

/// A binding to the NIC.
struct Bound(Rc<RefCell<State>>);

impl Bound {
    fn new(state: &Rc<RefCell<State>>) -> Self {
        assert_eq!(state.borrow().split, TcpDataSplit::On, "before it is bound");
        state.borrow_mut().bound = true;
        Self(Rc::clone(state))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.0.borrow_mut().bound = false;
    }
}

fn plan() -> Plan {
    Plan::new(Interface::from_index(u32::MAX))
        .queue(3)
        .queue(1)
        .tcp_port(5201)
}

#[test]
fn flows_reach_the_queues_and_nothing_else_does_until_it_is_undone() {
    let state = Rc::new(RefCell::new(State::new()));
    let (mut steps, steered, bound) =
        carry_out(&plan(), Fake::new(&state, 0), || Ok(Bound::new(&state))).expect("it works");
    assert_eq!(steered, Steered::Rules);
    let set_up = state.borrow().clone();
    assert_eq!((set_up.split, set_up.hds_thresh), (TcpDataSplit::On, 0));
    assert_eq!(set_up.table, [0, 0, 2, 2, 0, 0, 2, 2]);
    let to: Vec<_> = set_up
        .rules
        .iter()
        .map(|rule| (rule.flow, rule.action))
        .collect();
    let expected = [
        (FlowType::Tcp4, FlowAction::Queue(3)),
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
    let (mut steps, steered, ()) = carry_out(&plan(), fake.clone(), || Ok(())).expect("it works");
    assert_eq!(steered, Steered::Context(1));
    let set_up = state.borrow().clone();
    assert_eq!(set_up.table, [0, 0, 2, 2, 0, 0, 2, 2]);
    assert_eq!(set_up.contexts, [[3, 1, 3, 1, 3, 1, 3, 1]]);
    let to: Vec<_> = set_up.rules.iter().map(|rule| rule.action).collect();
    assert_eq!(to, [FlowAction::RssContext(1); 2]);
    assert!(steps.undo().is_empty());
    assert_eq!(*state.borrow(), State::new());

    let one = Plan::new(Interface::from_index(u32::MAX))
        .queue(3)
        .tcp_port(5201);
    let (_steps, steered, ()) = carry_out(&one, fake, || Ok(())).expect("it works");
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
        let error = carry_out(&plan(), fake, || Ok(Bound::new(&state)));
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
        || -> Result<(), BindError> {
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
fn a_panic_undoes_everything() {
    let state = Rc::new(RefCell::new(State::new()));
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _steered = carry_out(&plan(), Fake::new(&state, 0), || Ok(())).expect("it works");
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
    let (mut steps, _, ()) = carry_out(&plan(), Fake::new(&state, 7), || Ok(())).expect("it works");
    assert_eq!(steps.undo().len(), 1);
    let left = state.borrow().clone();
    assert_eq!(left.rules.len(), 1);
    assert_eq!(
        State {
            rules: Vec::new(),
            ..left
        },
        State::new()
    );
}

#[test]
fn headers_stay_split_while_somebody_else_has_a_binding() {
    let state = Rc::new(RefCell::new(State::new()));
    let (mut steps, _, ()) = carry_out(&plan(), Fake::new(&state, 0), || Ok(())).expect("it works");
    let other = Bound::new(&state);
    assert!(steps.undo().is_empty());
    assert_eq!(state.borrow().split, TcpDataSplit::On);
    drop(other);
}

#[test]
fn without_flow_rules_the_error_says_so_and_everything_can_be_let_in() {
    let state = Rc::new(RefCell::new(State::new()));
    let fake = Fake {
        without_rules: true,
        ..Fake::new(&state, 0)
    };
    let error = carry_out(&plan(), fake.clone(), || Ok(())).err();
    assert!(matches!(error, Some(SteeringError::NoFlowRules { .. })));
    assert_eq!(*state.borrow(), State::new());
    let all = Plan::new(Interface::from_index(u32::MAX))
        .queue(2)
        .everything();
    let steered = carry_out(&all, fake, || Ok(())).expect("it takes no rules");
    assert_eq!(state.borrow().table, [2; 8]);
    drop(steered);
    assert_eq!(*state.borrow(), State::new());
}

#[test]
fn a_plan_that_leaves_no_queue_or_steers_nothing_is_refused() {
    let state = Rc::new(RefCell::new(State::new()));
    let greedy = (0..4).fold(plan(), Plan::queue);
    let error = carry_out(&greedy, Fake::new(&state, 0), || Ok(())).err();
    assert!(matches!(error, Some(SteeringError::NoQueueLeft { .. })));
    let idle = Plan::new(Interface::from_index(u32::MAX)).queue(1);
    let error = carry_out(&idle, Fake::new(&state, 0), || Ok(())).err();
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
    ] {
        let plan = Plan::new(Interface::from_index(1)).tcp_listener(at.parse().expect(at));
        let flows: Vec<_> = plan.flows.iter().map(|rule| rule.flow).collect();
        assert_eq!(flows, expected, "{at}");
    }
}
