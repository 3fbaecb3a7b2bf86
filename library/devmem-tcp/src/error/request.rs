// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of asking the kernel about interfaces, and of changing them (netlink, ioctls).

use std::io;

use super::{Refusal, SystemCall};

/// Why the kernel has not done, or not answered, what was asked of an interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No interface has this index or name in this network namespace.
    #[error("{interface} does not exist in this network namespace; see: ip link ({refusal})")]
    NoSuchInterface {
        /// Name or index that was asked for.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The caller lacks a capability.
    #[error(
        "{operation}: not permitted; run it as root or with {capability} in the network \
         namespace's user namespace ({refusal})"
    )]
    NotPrivileged {
        /// What was tried.
        operation: &'static str,
        /// The capability that it takes.
        capability: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The generic netlink family or the operation does not exist in the running kernel.
    #[error("the running kernel has no {missing}; it requires {requirement} ({refusal})")]
    KernelTooOld {
        /// The family or operation, as in `netdev bind-rx`.
        missing: String,
        /// The kernel that has it.
        requirement: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The driver does not offer an operation.
    #[error(
        "{interface}: its driver or this kernel's configuration does not offer {operation} \
         ({refusal})"
    )]
    Unsupported {
        /// Name and index of the interface.
        interface: String,
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The kernel has no feature of this name.
    #[error("there is no feature {feature}; see the names: ethtool -k <interface>")]
    NoSuchFeature {
        /// The name that was asked for.
        feature: String,
    },
    /// The device lacks a feature that the kernel knows.
    #[error("{interface} has no feature {feature}; see what it has: ethtool -k <interface>")]
    FeatureLacking {
        /// Name and index of the interface.
        interface: String,
        /// Name of the feature, as in `ethtool -k`.
        feature: String,
    },
    /// A feature did not change to the requested value.
    #[error("{interface}: feature {feature} stays {}; the device fixes it or another feature \
     requires it: ethtool -k <interface>", if *.wanted { "off" } else { "on" })]
    FeatureUnchanged {
        /// Name and index of the interface.
        interface: String,
        /// Name of the feature, as in `ethtool -k`.
        feature: String,
        /// The requested value.
        wanted: bool,
    },
    /// All places for flow rules are taken.
    #[error(
        "{interface}: none of its {places} places for flow rules is free; delete a rule: ethtool -N \
         <interface> delete <place> ({refusal})"
    )]
    NoFreePlace {
        /// Name and index of the interface.
        interface: String,
        /// How many there are.
        places: u32,
        /// The kernel's answer where it was to choose one.
        refusal: Refusal,
    },
    /// The kernel refused a request for a reason that has no variant of its own.
    #[error("{interface}: {operation} was refused: {refusal}")]
    Refused {
        /// Name and index of the interface.
        interface: String,
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// An answer is incomplete.
    #[error("{operation}: the kernel's answer is incomplete: {what}")]
    BadAnswer {
        /// What was tried.
        operation: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A system call failed.
    #[error(transparent)]
    SystemCall(#[from] SystemCall),
}

impl RequestError {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NoSuchInterface { refusal, .. }
            | Self::NotPrivileged { refusal, .. }
            | Self::KernelTooOld { refusal, .. }
            | Self::Unsupported { refusal, .. }
            | Self::NoFreePlace { refusal, .. }
            | Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// The errno behind the error, positive, if the kernel gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::SystemCall(error) => error.errno(),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }

    pub(crate) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        SystemCall::new(operation, source).into()
    }
}
