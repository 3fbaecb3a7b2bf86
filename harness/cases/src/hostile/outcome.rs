// SPDX-License-Identifier: MIT OR Apache-2.0

//! What becomes of a plan.

use std::{fmt, mem::discriminant};

use vm::Error;

use crate::CaseError;

/// How a driver came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was lost.
    Unharmed,
    /// Something was, and then all worked again by itself.
    Recovered,
    /// It worked again once the interface was brought up anew.
    Restarted,
    /// It worked again once the driver was bound anew.
    Detached,
}

/// What must not happen, whatever a device does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// The driver did what it must not do, as the model says.
    Violation(String),
    /// The kernel complained.
    Panic(String),
    /// The guest does not answer, or nothing works any more.
    Hang(String),
    /// Wrong bytes came as good.
    WrongBytes(String),
    /// Memory stays when the interface is down.
    Leak(String),
}

impl Harm {
    /// Whether it is the same kind of harm.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            Self::Violation(text) => ("violation", text),
            Self::Panic(text) => ("panic", text),
            Self::Hang(text) => ("hang", text),
            Self::WrongBytes(text) => ("wrong bytes", text),
            Self::Leak(text) => ("leak", text),
        };
        write!(f, "{what}: {text}")
    }
}

/// Why a plan has no outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The driver's or the kernel's fault.
    Harm(Harm),
    /// The harness's fault, which says nothing of the driver.
    Harness(String),
}

/// What a step of a plan brings.
pub(super) type Step<T = ()> = std::result::Result<T, Trouble>;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Harm(harm) => harm.fmt(f),
            Self::Harness(text) => f.write_str(text),
        }
    }
}

impl From<Harm> for Trouble {
    fn from(harm: Harm) -> Self {
        Self::Harm(harm)
    }
}

impl From<&Error> for Trouble {
    fn from(error: &Error) -> Self {
        let text = error.to_string();
        Self::Harm(match error {
            Error::Violated { .. } => Harm::Violation(text),
            Error::KernelPanic { .. } | Error::KernelComplained { .. } => Harm::Panic(text),
            // The machine was reset, as by a triple fault, of which no kernel can tell.
            Error::QemuEnded { status, .. } if status.success() => Harm::Panic(text),
            Error::Timeout { .. } => Harm::Hang(text),
            _ => return Self::Harness(text),
        })
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<CaseError> for Trouble {
    fn from(error: CaseError) -> Self {
        match error.of_guest() {
            Some(error) => Self::from(error),
            None => Self::Harness(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

    use vm::Logs;

    use super::*;

    fn logs() -> Logs {
        Logs {
            directory: "vm".into(),
            console_tail: String::new(),
            processors: Box::default(),
        }
    }

    fn qemu_ended(status: i32) -> Error {
        Error::QemuEnded {
            during: "Ping".to_owned(),
            status: ExitStatus::from_raw(status),
            output: String::new(),
            logs: logs(),
        }
    }

    #[test]
    fn a_guest_that_is_silent_hangs_and_what_the_harness_lacks_is_no_harm() {
        let silent = || Error::Timeout {
            call: "Ping".to_owned(),
            timeout: Duration::from_secs(300),
            logs: logs(),
        };
        let hangs = |trouble| matches!(trouble, Trouble::Harm(Harm::Hang(_)));
        assert!(hangs(silent().into()));
        assert!(hangs(CaseError::from(silent()).into()));

        let refused = Error::Refused {
            call: "Ping".to_owned(),
            failure: protocol::Failure {
                errno: None,
                message: "no".to_owned(),
            },
            console: "console.log".into(),
        };
        let ended = Error::DevicesEnded {
            output: String::new(),
            log: "devices.log".into(),
        };
        for error in [refused, ended, qemu_ended(6)] {
            let trouble = Trouble::from(CaseError::from(error));
            assert!(matches!(trouble, Trouble::Harness(_)), "{trouble}");
        }
        let other = Trouble::from(CaseError::new("no such queue"));
        assert!(matches!(other, Trouble::Harness(_)));
    }

    #[test]
    fn a_kernel_that_complains_or_resets_the_machine_panics() {
        let complained = Error::KernelComplained {
            findings: Vec::new(),
            console: "console.log".into(),
        };
        for error in [complained, qemu_ended(0)] {
            let trouble = Trouble::from(error);
            assert!(
                matches!(trouble, Trouble::Harm(Harm::Panic(_))),
                "{trouble}"
            );
        }
    }
}
