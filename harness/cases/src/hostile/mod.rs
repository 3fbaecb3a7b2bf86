// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC or an engine that lies, and what its driver makes of it. Our models lie by plans; see
//! `Documentation/reliability.md`.

mod campaign;
mod corpus;
mod engine;
mod narrow;
mod nic;
mod outcome;
mod tally;
mod victim;

pub use self::{
    campaign::campaign,
    corpus::{corpus, corpus_line},
    outcome::{Harm, Outcome, Trouble},
    tally::{Failure, Tally},
    victim::{Device, Target, Victim},
};
