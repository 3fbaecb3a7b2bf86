// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which filter is at which place.

use super::{
    Filter,
    Refusal,
    Registers, //
};
use crate::limits::FIVE_TUPLE_FILTERS;

/// Where to put a filter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// There, in place of what is there.
    At(u32),
    /// At the first place that is free.
    First,
    /// At the last place that is free.
    Last,
}

/// The filters. Of those that match the same packet, the first one counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    filters: [Option<Filter>; FIVE_TUPLE_FILTERS as usize],
    /// The places of rules that users made for IPv6, a bit each: the device doesn't know.
    ipv6: u8,
}

impl Table {
    /// No filters.
    pub const EMPTY: Self = Self {
        filters: [None; FIVE_TUPLE_FILTERS as usize],
        ipv6: 0,
    };

    /// The filter at place `n`.
    pub fn get(&self, n: u32) -> Option<&Filter> {
        self.filters.get(n as usize)?.as_ref()
    }

    /// Stores a filter at `place`, and returns its index.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchPlace`], and [`Refusal::Full`] unless the place is given; nothing is
    /// changed.
    pub fn insert(&mut self, place: Place, filter: Filter) -> Result<u16, Refusal> {
        let slots = &mut self.filters;
        let index = match place {
            Place::At(index) => index as usize,
            Place::First => slots
                .iter()
                .position(Option::is_none)
                .ok_or(Refusal::Full)?,
            Place::Last => slots
                .iter()
                .rposition(Option::is_none)
                .ok_or(Refusal::Full)?,
        };
        *slots.get_mut(index).ok_or(Refusal::NoSuchPlace)? = Some(filter);
        // CAST: There are 8 places.
        Ok(index as u16)
    }

    /// Whether the user made the rule at place `n` for IPv6.
    pub const fn is_ipv6(&self, n: u32) -> bool {
        n < 8 && self.ipv6 >> n & 1 != 0
    }

    /// Notes whether the user made the rule at place `n` for IPv6.
    pub const fn set_ipv6(&mut self, n: u16, ipv6: bool) {
        let bit = 1 << (n & 7);
        self.ipv6 = self.ipv6 & !bit | if ipv6 { bit } else { 0 };
    }

    /// Takes the filter at place `n` out, if there is one.
    pub fn remove(&mut self, n: u32) -> Option<Filter> {
        self.filters.get_mut(n as usize)?.take()
    }

    /// The values of the registers at place `n`.
    pub fn registers(&self, n: u16) -> Registers {
        self.get(n.into())
            .map_or(Registers::OFF, |filter| filter.registers(n))
    }
}
