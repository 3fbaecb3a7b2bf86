// SPDX-License-Identifier: MIT OR Apache-2.0

//! The changes of an interface, each with what undoes it.

use super::nic::Nic;
use super::table;
use crate::error::{RequestError, SteeringError};
use crate::ethtool::{FlowRule, RulePlace, TcpDataSplit};
use crate::interface::Interface;

/// How often to look whether a queue has its memory back.
const LOOKS: usize = 200;

/// A change that was made.
#[derive(Debug)]
enum Step {
    Split {
        before: TcpDataSplit,
        hds_thresh: Option<u32>,
    },
    Table {
        before: Vec<u32>,
        after: Vec<u32>,
    },
    Context(u32),
    RulesOn,
    Rule {
        place: u32,
    },
}

/// What was changed, in order. Dropping undoes it.
#[derive(Debug)]
pub(super) struct Steps<N: Nic> {
    interface: Interface,
    nic: N,
    made: Vec<Step>,
    /// The queues that are bound, or will be, by whom the steps are for.
    own: Vec<u32>,
    /// The places of rules that could not be deleted.
    left: Vec<u32>,
}

impl<N: Nic> Steps<N> {
    pub(super) fn new(interface: Interface, nic: N) -> Self {
        Self {
            interface,
            nic,
            made: Vec::new(),
            own: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Has the undoing wait until these queues have no memory provider.
    pub(super) fn own(&mut self, queues: &[u32]) {
        self.own = queues.to_vec();
    }

    pub(super) fn nic(&mut self) -> &mut N {
        &mut self.nic
    }

    /// Splits headers of all packets.
    pub(super) fn split(&mut self) -> Result<(), RequestError> {
        let now = self.nic.rings()?;
        // Auto will not do: it must be on explicitly (net/core/netdev_rx_queue.c).
        let split = now.tcp_data_split == Some(TcpDataSplit::On);
        if split && now.hds_thresh.unwrap_or(0) == 0 {
            return Ok(());
        }
        self.nic
            .set_split(TcpDataSplit::On, now.hds_thresh.map(|_| 0))?;
        self.made.push(Step::Split {
            before: now.tcp_data_split.unwrap_or(TcpDataSplit::Auto),
            hds_thresh: now.hds_thresh,
        });
        Ok(())
    }

    /// Sets the indirection table; without a new one, says so.
    pub(super) fn distribute(
        &mut self,
        change: impl FnOnce(&[u32]) -> Option<Vec<u32>>,
    ) -> Result<bool, RequestError> {
        let before = self.nic.table()?;
        let Some(after) = change(&before) else {
            return Ok(false);
        };
        if after != before {
            self.nic.set_table(after.clone())?;
            self.made.push(Step::Table { before, after });
        }
        Ok(true)
    }

    /// Makes an RSS context that spreads flows over queues; none if the device has no contexts.
    pub(super) fn context(&mut self, queues: &[u32]) -> Result<Option<u32>, RequestError> {
        let table = table::only(&self.nic.table()?, queues);
        match self.nic.create_context(table) {
            Ok(context) => {
                self.made.push(Step::Context(context));
                Ok(Some(context))
            }
            Err(RequestError::Unsupported { .. } | RequestError::KernelTooOld { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has a flow reach what the rule says.
    pub(super) fn rule(&mut self, rule: &FlowRule) -> Result<(), RequestError> {
        if self.nic.rules_are_off()? {
            self.nic.turn_rules(true)?;
            self.made.push(Step::RulesOn);
        }
        let mut inserted = self.nic.insert(RulePlace::Any, rule);
        if let Err(RequestError::Refused {
            interface, refusal, ..
        }) = &inserted
        {
            let rules = self.nic.rules()?;
            if !rules.chooses {
                // At a place that is taken it would replace what is there.
                let free = rules
                    .free_place()
                    .ok_or_else(|| RequestError::NoFreePlace {
                        interface: interface.clone(),
                        places: rules.places,
                        refusal: refusal.clone(),
                    })?;
                inserted = self.nic.insert(RulePlace::At(free), rule);
            }
        }
        let place = inserted?;
        self.made.push(Step::Rule { place });
        Ok(())
    }

    /// Undoes what was changed, the last first; returns what could not be.
    pub(super) fn undo(&mut self) -> Vec<SteeringError> {
        let mut failed = Vec::new();
        if !self.made.is_empty() {
            self.wait_for_own();
        }
        while let Some(step) = self.made.pop() {
            failed.extend(self.undo_step(step).err());
        }
        failed
    }

    /// Waits, not for ever, until own queues are free: an io_uring returns its queue in the background. Others'
    /// flows must not reach it before.
    fn wait_for_own(&mut self) {
        for _ in 0..LOOKS {
            if !self.nic.bound().iter().any(|it| self.own.contains(it)) {
                break;
            }
            self.nic.pause();
        }
    }

    fn undo_step(&mut self, step: Step) -> Result<(), SteeringError> {
        match step {
            Step::Split { before, hds_thresh } => {
                let queues = self.nic.bound();
                if !queues.is_empty() {
                    return Err(SteeringError::SplitInUse {
                        interface: self.interface.label(),
                        queues,
                        before,
                        hds_thresh,
                    });
                }
                self.nic.set_split(before, hds_thresh)
            }
            Step::Table { before, after } => {
                let now = self.nic.table()?;
                let undone = table::undone(&now, &before, &after);
                self.nic.set_table(undone)
            }
            Step::Context(context) => self.nic.delete_context(context),
            Step::RulesOn => {
                // Some drivers remove all rules then.
                let rules = self.nic.rules()?;
                let places = rules.rules.iter().map(|(place, _)| place);
                let places = places.chain(&rules.others);
                let rules = places.filter(|place| !self.left.contains(place)).count();
                if rules > 0 {
                    return Err(SteeringError::RulesInUse {
                        interface: self.interface.label(),
                        rules,
                    });
                }
                self.nic.turn_rules(false)
            }
            Step::Rule { place } => {
                let deleted = self.nic.delete(place);
                deleted.inspect_err(|_| self.left.push(place))
            }
        }
        .map_err(Into::into)
    }
}

impl<N: Nic> Drop for Steps<N> {
    fn drop(&mut self) {
        for error in self.undo() {
            eprintln!("devmem-tcp: can't undo a change of an interface: {error}");
        }
    }
}
