// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC that lies, and what the driver makes of it. Our model of the 82576 lies by plans; see
//! `Documentation/reliability.md`.

mod attack;
mod campaign;
mod corpus;
mod narrow;
mod outcome;
mod tally;

pub use self::{
    campaign::campaign,
    corpus::corpus,
    outcome::{Harm, Outcome, Trouble},
    tally::{Failure, Tally},
};
