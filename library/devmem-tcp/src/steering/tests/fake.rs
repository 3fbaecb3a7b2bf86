// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC that fails when it is told to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::*;
use crate::error::Refusal;
use crate::ethtool::{FlowRules, Rings, RulePlace, TcpDataSplit};

/// What can be changed of the NIC.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) split: TcpDataSplit,
    pub(super) hds_thresh: u32,
    pub(super) table: Vec<u32>,
    pub(super) rules_on: bool,
    /// By place.
    pub(super) rules: BTreeMap<u32, FlowRule>,
    /// The tables of RSS contexts.
    pub(super) contexts: Vec<Vec<u32>>,
    pub(super) bound: Vec<u32>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            split: TcpDataSplit::Auto,
            hds_thresh: 256,
            table: vec![0, 1, 2, 3, 0, 1, 2, 3],
            rules_on: false,
            rules: BTreeMap::new(),
            contexts: Vec::new(),
            bound: Vec::new(),
        }
    }
}

/// A NIC that refuses the change with this number, and works otherwise.
#[derive(Clone)]
pub(super) struct Fake {
    pub(super) state: Rc<RefCell<State>>,
    pub(super) changes: usize,
    pub(super) refused: usize,
    pub(super) without_rules: bool,
    pub(super) with_contexts: bool,
    /// How many places there are, where the driver chooses none.
    pub(super) places: Option<u32>,
    /// Queues come back while somebody waits.
    pub(super) returns: bool,
}

impl Fake {
    pub(super) fn new(state: &Rc<RefCell<State>>, refused: usize) -> Self {
        Self {
            state: Rc::clone(state),
            changes: 0,
            refused,
            without_rules: false,
            with_contexts: false,
            places: None,
            returns: false,
        }
    }

    pub(super) fn change(&mut self, change: impl FnOnce(&mut State)) -> Result<(), RequestError> {
        self.changes += 1;
        if self.changes == self.refused {
            return Err(refused(libc::EBUSY));
        }
        change(&mut self.state.borrow_mut());
        Ok(())
    }
}

pub(super) fn refused(errno: i32) -> RequestError {
    RequestError::Refused {
        interface: "fake".to_owned(),
        operation: "a change",
        refusal: Refusal::from_errno(errno),
    }
}

pub(super) fn unsupported(operation: &'static str) -> RequestError {
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
                state.bound.is_empty() || split == TcpDataSplit::On,
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
            assert!(
                state.rules.values().all(|rule| rule.action != used),
                "EBUSY"
            );
            state.contexts.remove(context as usize - 1);
        })
    }

    fn rules_are_off(&mut self) -> Result<bool, RequestError> {
        Ok(!self.state.borrow().rules_on)
    }

    fn turn_rules(&mut self, on: bool) -> Result<(), RequestError> {
        self.change(|state| state.rules_on = on)
    }

    fn rules(&mut self) -> Result<FlowRules, RequestError> {
        let state = self.state.borrow();
        Ok(FlowRules {
            places: self.places.unwrap_or(8),
            chooses: self.places.is_none(),
            rules: state.rules.iter().map(|(at, rule)| (*at, *rule)).collect(),
            others: Vec::new(),
        })
    }

    fn insert(&mut self, place: RulePlace, rule: &FlowRule) -> Result<u32, RequestError> {
        if self.without_rules {
            return Err(unsupported("a flow rule"));
        }
        let place = match (place, self.places) {
            (RulePlace::At(place), _) => place,
            (_, Some(_)) => return Err(refused(libc::ENOSPC)),
            (_, None) => self.state.borrow().rules.len() as u32,
        };
        self.change(|state| {
            state.rules.insert(place, *rule);
        })?;
        Ok(place)
    }

    fn delete(&mut self, place: u32) -> Result<(), RequestError> {
        self.change(|state| {
            state.rules.remove(&place);
        })
    }

    fn rx_queues(&mut self) -> u32 {
        4
    }

    fn bound(&mut self) -> Vec<u32> {
        self.state.borrow().bound.clone()
    }

    fn pause(&mut self) {
        let mut state = self.state.borrow_mut();
        assert!(!state.rules.is_empty(), "undone before the queue was free");
        if self.returns {
            state.bound.clear();
        }
    }
}

/// A binding of a queue of the NIC.
pub(super) struct Bound(Rc<RefCell<State>>, u32);

impl Bound {
    pub(super) fn new(state: &Rc<RefCell<State>>, queue: u32) -> Self {
        assert_eq!(state.borrow().split, TcpDataSplit::On, "before it is bound");
        state.borrow_mut().bound.push(queue);
        Self(Rc::clone(state), queue)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.0.borrow_mut().bound.retain(|queue| *queue != self.1);
    }
}
