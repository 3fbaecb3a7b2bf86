// SPDX-License-Identifier: GPL-2.0

//! A queue pair's NAPI in the state that it is in.

use net::{
    device::Locked,
    napi, //
};

use super::Adapter;
use crate::vector::QueuePair;

/// A queue pair's NAPI.
pub(crate) enum Pair<'bound> {
    /// The pair is not in use.
    Unlisted(napi::Unlisted<QueuePair<'bound>>),
    /// Its RX queue is being restarted.
    Disabled(napi::Disabled<QueuePair<'bound>>),
    Enabled(napi::Enabled<QueuePair<'bound>>),
    /// Taken out, to be changed from one to the other.
    Taken,
}

impl<'bound> Pair<'bound> {
    /// Takes the NAPI out if it is not listed.
    pub(super) fn take_unlisted(&mut self) -> Option<napi::Unlisted<QueuePair<'bound>>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Unlisted(napi) => Some(napi),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Takes the NAPI out if it is disabled.
    pub(crate) fn take_disabled(&mut self) -> Option<napi::Disabled<QueuePair<'bound>>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Disabled(napi) => Some(napi),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Changes what belongs to the NAPI, which is disabled for that time.
    pub(crate) fn change_state(
        &mut self,
        dev: Locked<'_, Adapter<'bound>>,
        change: impl FnOnce(&mut QueuePair<'bound>),
    ) {
        match self {
            Self::Unlisted(napi) => change(napi.state()),
            Self::Disabled(napi) => change(napi.state()),
            Self::Enabled(_) | Self::Taken => {
                if let Some(napi) = self.take_enabled() {
                    let mut napi = napi.disable(dev);

                    change(napi.state());
                    *self = Self::resume(napi, dev);
                }
            }
        }
    }

    /// Enables a NAPI and polls once: completions and packets may have come while it was disabled.
    pub(crate) fn resume(
        napi: napi::Disabled<QueuePair<'bound>>,
        dev: Locked<'_, Adapter<'bound>>,
    ) -> Self {
        let napi = napi.enable(dev);

        napi.schedule();
        Self::Enabled(napi)
    }

    /// Takes the NAPI out if it is enabled.
    pub(crate) fn take_enabled(&mut self) -> Option<napi::Enabled<QueuePair<'bound>>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Enabled(napi) => Some(napi),
            other => {
                *self = other;
                None
            }
        }
    }
}
