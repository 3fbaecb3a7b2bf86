// SPDX-License-Identifier: MIT OR Apache-2.0

//! What executes a guest.

use std::{
    env,
    fs::{self, File},
};

use crate::{Error, Result};

/// Environment variable that overrides [`crate::Machine::hypervisor`]: `kvm` or `tcg`.
const HYPERVISOR_ENV: &str = "NOBOUNCE_ACCEL";

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hypervisor {
    /// KVM where it works, else TCG.
    Auto,
    /// KVM or nothing.
    Kvm,
    /// Emulation, with a thread for each processor.
    Tcg,
}

impl Hypervisor {
    /// QEMU's options, tried in this order.
    pub(crate) fn options(self) -> &'static [&'static str] {
        const TCG: &str = "tcg,thread=multi";
        match self {
            Self::Kvm => &["kvm"],
            Self::Tcg => &[TCG],
            // QEMU falls back by itself when KVM does not start.
            Self::Auto if kvm_works() => &["kvm", TCG],
            Self::Auto => &[TCG],
        }
    }

    pub(crate) fn from_env() -> Result<Option<Self>> {
        match env::var(HYPERVISOR_ENV).as_deref() {
            Err(env::VarError::NotPresent) | Ok("") => Ok(None),
            Ok("kvm") => Ok(Some(Self::Kvm)),
            Ok("tcg") => Ok(Some(Self::Tcg)),
            other => Err(Error::BadMachine(format!(
                "{HYPERVISOR_ENV} is {other:?}, it must be \"kvm\" or \"tcg\" or not set"
            ))),
        }
    }
}

/// Whether KVM can be trusted with a guest.
///
/// The device alone says little: some virtual machines offer one without the processor's
/// extensions behind it, on which a guest starts and hangs.
pub fn kvm_works() -> bool {
    let device = File::options().read(true).write(true).open("/dev/kvm");
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    device.is_ok() && has_virtualization(&processor)
}

/// Looks for Intel's or AMD's extension among the flags of /proc/cpuinfo.
fn has_virtualization(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| {
        line.split_whitespace()
            .any(|flag| flag == "vmx" || flag == "svm")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_takes_a_processor_with_the_extensions() {
        assert!(has_virtualization("flags\t\t: fpu vme vmx sse\n"));
        assert!(has_virtualization("flags\t\t: fpu svm\n"));
        assert!(!has_virtualization(
            "flags\t\t: fpu hypervisor\nvmx flags\t: vnmi\n"
        ));
    }
}
