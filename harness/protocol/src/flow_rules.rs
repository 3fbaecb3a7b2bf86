// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules that say to which queue packets go (`ethtool -n`, `-N`).

pub use devmem_tcp::ethtool::{FlowAction, FlowRule, FlowRules, FlowType, Masked, RulePlace};
use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// The rules of an interface.
    ListFlowRules {},
    /// Makes a rule; the answer is where it is.
    InsertFlowRule {
        /// Where to put it.
        place: RulePlace,
        /// The rule.
        rule: FlowRule,
    },
    /// Deletes a rule.
    DeleteFlowRule {
        /// Where it is.
        place: u32,
    },
}
