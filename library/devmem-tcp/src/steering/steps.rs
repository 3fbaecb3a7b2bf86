// SPDX-License-Identifier: MIT OR Apache-2.0

//! The changes of an interface, each with what undoes it.

use super::nic::Nic;
use super::table;
use crate::error::RequestError;
use crate::ethtool::{FlowRule, TcpDataSplit};

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
    nic: N,
    made: Vec<Step>,
}

impl<N: Nic> Steps<N> {
    pub(super) fn new(nic: N) -> Self {
        Self {
            nic,
            made: Vec::new(),
        }
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
        let place = self.nic.insert(rule)?;
        self.made.push(Step::Rule { place });
        Ok(())
    }

    /// Undoes what was changed, the last first; returns what could not be.
    pub(super) fn undo(&mut self) -> Vec<RequestError> {
        let mut failed = Vec::new();
        while let Some(step) = self.made.pop() {
            failed.extend(self.undo_step(step).err());
        }
        failed
    }

    fn undo_step(&mut self, step: Step) -> Result<(), RequestError> {
        match step {
            // Others need it still; it is theirs to undo then.
            Step::Split { .. } if self.nic.is_bound() => Ok(()),
            Step::Split { before, hds_thresh } => self.nic.set_split(before, hds_thresh),
            Step::Table { before, after } => {
                let now = self.nic.table()?;
                let undone = table::undone(&now, &before, &after);
                self.nic.set_table(undone)
            }
            Step::Context(context) => self.nic.delete_context(context),
            Step::RulesOn => self.nic.turn_rules(false),
            Step::Rule { place } => self.nic.delete(place),
        }
    }
}

impl<N: Nic> Drop for Steps<N> {
    fn drop(&mut self) {
        for error in self.undo() {
            eprintln!("devmem-tcp: can't undo a change of an interface: {error}");
        }
    }
}
