// SPDX-License-Identifier: GPL-2.0

//! What users see and set through ethtool, one file for each concept.

mod channels;
pub(crate) mod coalesce;
mod diagnostics;
mod flow_rules;
mod link;
mod rings;
mod rss;
mod self_test;
mod standard;
mod statistics;
