// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest sleeps and wakes up.

use std::thread;

use protocol::agent::Sleep;
use serde_json::json;

use crate::{CaseError, Result, Testbed};

impl Testbed {
    /// Suspends the guest to RAM, and wakes it up once it sleeps. Make no other requests of it
    /// meanwhile.
    pub fn sleep_and_wake(&self) -> Result {
        thread::scope(|scope| {
            let call = scope.spawn(|| self.guest.call(Sleep {}));
            let slept = self.wait_until(1, || {
                // The suspend may be refused.
                Ok((call.is_finished() || self.status()? == "suspended").into())
            });
            if slept.is_ok() && !call.is_finished() {
                self.guest.monitor("system_wakeup", json!({}))?;
            }
            let called = call.join();
            called.map_err(|_| CaseError::new("the call panicked"))??;
            slept.map(drop)
        })
    }

    /// The machine's `RunState`, as QEMU reports it.
    fn status(&self) -> Result<String> {
        let status = self.guest.monitor("query-status", json!({}))?;
        Ok(status["status"].as_str().unwrap_or_default().to_owned())
    }
}
