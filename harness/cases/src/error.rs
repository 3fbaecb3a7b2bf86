// SPDX-License-Identifier: MIT OR Apache-2.0

//! How a case fails.

use std::{
    any::Any,
    error::Error,
    fmt::{self, Debug, Display},
};

use crate::unfinished::Counted;

/// Result of a case.
pub type Result<T = ()> = std::result::Result<T, CaseError>;

/// Any error, shown with its causes: a person reads what the test runner prints.
pub struct CaseError {
    text: String,
    of_guest: Option<Box<vm::Error>>,
    _counted: Counted,
}

impl CaseError {
    /// A failure with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            text: message.into(),
            of_guest: None,
            _counted: Counted::new(),
        }
    }

    /// What befell the guest, if it was that.
    #[must_use]
    pub fn of_guest(&self) -> Option<&vm::Error> {
        self.of_guest.as_deref()
    }
}

/// An error that may be a refusal by the guest's kernel.
pub trait Refusal {
    /// The errno of a refusal. `None` for any other failure, such as a timeout.
    fn errno(&self) -> Option<i32>;
}

impl Refusal for CaseError {
    fn errno(&self) -> Option<i32> {
        self.of_guest().and_then(vm::Error::errno)
    }
}

impl Refusal for vm::Error {
    fn errno(&self) -> Option<i32> {
        self.errno()
    }
}

/// Asserts that the guest's kernel refused something with `errno`, and that nothing else went
/// wrong.
///
/// # Panics
///
/// If it succeeded, or failed in another way.
#[track_caller]
pub fn assert_refused<T, E: Refusal + Debug>(
    result: std::result::Result<T, E>,
    errno: i32,
    what: &str,
) {
    match result {
        Ok(_) => panic!("{what}: expected errno {errno}, but it was done"),
        Err(error) if error.errno() == Some(errno) => {}
        Err(error) => panic!("{what}: expected errno {errno}, but it failed with {error:?}"),
    }
}

/// Asserts that the guest's kernel refused something with `errno`, and that the error says these
/// words.
///
/// # Panics
///
/// If it succeeded, or failed in another way, or says nothing of it.
#[track_caller]
pub fn assert_refused_saying<T, E: Refusal + Debug + Display>(
    result: std::result::Result<T, E>,
    errno: i32,
    words: &str,
) {
    match result {
        Err(error) if error.errno() == Some(errno) => {
            assert_fails_saying(Err::<T, _>(error), words);
        }
        other => assert_refused(other, errno, words),
    }
}

/// Asserts that something failed, with an error that says these words.
///
/// # Panics
///
/// If it succeeded, or says nothing of it.
#[track_caller]
pub fn assert_fails_saying<T, E: Display>(result: std::result::Result<T, E>, words: &str) {
    match result {
        Ok(_) => panic!("expected: {words}; but it succeeded"),
        Err(error) => assert!(
            error.to_string().contains(words),
            "expected: {words}; but it says: {error}"
        ),
    }
}

impl<E: Error + 'static> From<E> for CaseError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        let error: Box<dyn Any> = Box::new(error);
        Self {
            text,
            of_guest: error.downcast().ok(),
            _counted: Counted::new(),
        }
    }
}

impl fmt::Debug for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(errno: Option<i32>) -> vm::Error {
        vm::Error::Refused {
            call: "SetMtu".to_owned(),
            failure: protocol::Failure {
                errno,
                message: "no".to_owned(),
            },
            console: "console.log".into(),
        }
    }

    #[test]
    fn an_error_keeps_the_errno_that_the_guest_refused_with() {
        assert_refused(Err::<(), _>(refused(Some(22))), 22, "as it came");
        assert_refused(
            Err::<(), _>(CaseError::from(refused(Some(22)))),
            22,
            "as a case's",
        );
    }

    #[test]
    #[should_panic(expected = "expected errno 22")]
    fn another_errno_is_not_the_one_that_was_promised() {
        assert_refused(Err::<(), _>(refused(Some(16))), 22, "a request");
    }

    #[test]
    #[should_panic(expected = "expected errno 22")]
    fn an_error_without_an_errno_is_no_refusal() {
        assert_refused(
            Err::<(), _>(CaseError::new("it timed out")),
            22,
            "a request",
        );
    }

    #[test]
    #[should_panic(expected = "but it was done")]
    fn what_was_done_was_not_refused() {
        assert_refused(Ok::<_, CaseError>(()), 22, "a request");
    }
}
