// SPDX-License-Identifier: MIT OR Apache-2.0

//! A case that ends well must have ended its guest, which checks the kernel's log.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Errors of cases that exist in this process. nextest gives each case its own.
static ERRORS: AtomicUsize = AtomicUsize::new(0);

/// Part of each error, to count them: an error that a case has handled is dropped.
pub(crate) struct Counted(());

impl Counted {
    pub(crate) fn new() -> Self {
        ERRORS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ERRORS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Part of a testbed that must be finished. Dropping it panics if no error explains that.
#[derive(Debug)]
pub(crate) struct Unfinished(());

impl Unfinished {
    pub(crate) fn new() -> Self {
        Self(())
    }

    pub(crate) fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !thread::panicking() && ERRORS.load(Ordering::Relaxed) == 0 {
            panic!("the case forgot Testbed::finish(): did the kernel complain?");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::{CaseError, Result};

    /// The message of a case's panic.
    fn panics(case: fn() -> Result) -> Option<String> {
        let payload = catch_unwind(case).err()?;
        Some((*payload.downcast_ref::<&str>()?).to_owned())
    }

    #[test]
    fn a_case_that_ends_well_without_having_finished_panics_and_one_that_fails_says_why() {
        let forgets = || {
            let _bed = Unfinished::new();
            Ok(())
        };
        let message = panics(forgets).unwrap();
        assert!(message.contains("finish()"), "{message}");

        let forgets_after_a_refusal = || {
            let _bed = Unfinished::new();
            let refused: Result = Err(CaseError::new("EBUSY"));
            assert!(refused.is_err());
            Ok(())
        };
        assert!(panics(forgets_after_a_refusal).is_some());

        let finishes = || {
            Unfinished::new().finish();
            Ok(())
        };
        assert_eq!(panics(finishes), None);

        let fails = || -> Result {
            let _bed = Unfinished::new();
            Err(CaseError::new("it is broken"))
        };
        let error = catch_unwind(fails).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "it is broken");

        let asserts = || {
            let _bed = Unfinished::new();
            panic!("not equal");
        };
        assert_eq!(panics(asserts).as_deref(), Some("not equal"));
    }
}
