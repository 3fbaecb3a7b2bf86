// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is about rigb and the 82576 alone: registers, interrupts, doorbells that others ring, what the
//! driver does when the device or an allocation fails. All other cases run on any NIC that can do what they need.

mod bus_errors;
mod bus_master;
mod coalescing;
mod counters;
mod device;
mod faults;
mod flow_rules;
mod models;
mod power;
mod queue_0;
mod received;
mod recovery;
mod registers;
mod settings;
mod signals;
mod stuck;
mod tx_rate;
mod vectors;
mod vlan;
