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
pub struct Table([Option<Filter>; FIVE_TUPLE_FILTERS as usize]);

impl Table {
    /// No filters.
    pub const EMPTY: Self = Self([None; FIVE_TUPLE_FILTERS as usize]);

    /// The filter at place `n`.
    pub fn get(&self, n: u32) -> Option<&Filter> {
        self.0.get(n as usize)?.as_ref()
    }

    /// Stores a filter at `place`, and returns its index.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchPlace`], and [`Refusal::Full`] unless the place is given; nothing is
    /// changed.
    pub fn insert(&mut self, place: Place, filter: Filter) -> Result<u16, Refusal> {
        let slots = &mut self.0;
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

    /// Takes the filter at place `n` out, if there is one.
    pub fn remove(&mut self, n: u32) -> Option<Filter> {
        self.0.get_mut(n as usize)?.take()
    }

    /// The values of the registers at place `n`.
    pub fn registers(&self, n: u16) -> Registers {
        self.get(n.into())
            .map_or(Registers::OFF, |filter| filter.registers(n))
    }
}
