// SPDX-License-Identifier: GPL-2.0

//! What users see and set through ethtool, one file for each concept.

mod channels;
pub(crate) mod coalesce;
mod rings;
mod rss;
mod statistics;
