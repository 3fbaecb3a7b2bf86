// SPDX-License-Identifier: GPL-2.0

//! The device's registers: filters that send packets to a queue.

use i82576::{
    five_tuple::{
        self,
        Table, //
    },
    limits, //
};

use super::Hw;

impl Hw<'_> {
    /// Probes whether the device has five-tuple filters, by their registers: QEMU's model has none.
    /// Must only be called while nothing is received; on return all filters are off.
    pub(crate) fn has_five_tuples(&self) -> bool {
        five_tuple::exist(|reg, value| self.write(reg, value), |reg| self.read(reg))
    }

    /// Sets the filter at place `n`.
    pub(crate) fn set_five_tuple(&self, table: &Table, n: u16) {
        for (reg, value) in table.registers(n).writes(n) {
            self.write(reg, value);
        }
    }

    /// Sets all filters.
    pub(crate) fn set_five_tuples(&self, table: &Table) {
        for n in 0..limits::FIVE_TUPLE_FILTERS {
            self.set_five_tuple(table, n);
        }
    }
}
