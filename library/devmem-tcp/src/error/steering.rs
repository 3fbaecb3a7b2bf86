// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of steering flows to bound queues.

use super::{BindError, Refusal, RequestError};
use crate::ethtool::TcpDataSplit;

/// Why flows do not reach a bound queue. What was changed before is undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SteeringError {
    /// Nothing else would be received any more.
    #[error(
        "{interface}: without {taken:?} there is no RX queue left for other traffic; have more queues \
         (ethtool -L <interface> combined N), or let everything reach these"
    )]
    NoQueueLeft {
        /// Name and index of the interface.
        interface: String,
        /// The queues that were to be taken out.
        taken: Vec<u32>,
    },
    /// There is neither a flow to steer nor everything.
    #[error("{interface}: say which flows are to reach the queue, or let all reach it")]
    NoFlow {
        /// Name and index of the interface.
        interface: String,
    },
    /// The device does not filter flows.
    #[error(
        "{interface}: its driver has no flow rules (ethtool -n <interface>); you may let all hashed traffic \
         reach the queue instead, other connections included ({refusal})"
    )]
    NoFlowRules {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// Another plan, of this process or another one, steers to the queue.
    #[error(
        "{interface}: somebody else steers to RX queue {queue}; end them, or take another queue"
    )]
    QueueClaimed {
        /// Name and index of the interface.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// Headers can't be left unsplit again, as others need them split. Nobody undoes it for us.
    #[error(
        "{interface}: headers stay split, which the memory provider of RX queue {queues:?} needs; once \
         it is gone: ethtool -G <interface> tcp-data-split {}{}",
        .before.as_ethtool(),
        .hds_thresh.map(|bytes| format!(" hds-thresh {bytes}")).unwrap_or_default()
    )]
    SplitInUse {
        /// Name and index of the interface.
        interface: String,
        /// The queues that have a memory provider.
        queues: Vec<u32>,
        /// How headers were split before.
        before: TcpDataSplit,
        /// The threshold before, if there is one.
        hds_thresh: Option<u32>,
    },
    /// Flow rules can't be turned off again, as others have some. Nothing will turn them off later.
    #[error(
        "{interface}: flow rules stay on, as others have {rules}; once these are gone: ethtool -K \
         <interface> ntuple off"
    )]
    RulesInUse {
        /// Name and index of the interface.
        interface: String,
        /// How many there are.
        rules: usize,
    },
    /// The memory cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The interface cannot be changed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl SteeringError {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NoFlowRules { refusal, .. } => Some(refusal),
            Self::Bind(error) => error.refusal(),
            Self::Request(error) => error.refusal(),
            Self::NoQueueLeft { .. }
            | Self::NoFlow { .. }
            | Self::QueueClaimed { .. }
            | Self::SplitInUse { .. }
            | Self::RulesInUse { .. } => None,
        }
    }

    /// The errno behind the error, positive, if the kernel gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Bind(error) => error.errno(),
            Self::Request(error) => error.errno(),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }
}
