// SPDX-License-Identifier: MIT OR Apache-2.0

//! `run`: from whatever is there to a guest that has booted.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use vm::Machine;

use crate::cache::CacheLock;
use crate::guest;
use crate::project::Project;
use crate::ui::Step;

/// What `--json` writes.
#[derive(Serialize)]
struct Report {
    kernel_release: String,
    qemu_version: String,
    accelerator: &'static str,
    boot_seconds: f64,
    logs: PathBuf,
}

/// Prepares the guest, boots it and turns it off again.
///
/// # Errors
///
/// Those of the preparation and of the guest; also any complaint in its kernel's log.
pub(crate) fn run(project: &Project, lock: CacheLock, json: Option<&Path>) -> Result<()> {
    let images = guest::prepare(project)?;
    // A guest only reads what is in the cache.
    drop(lock);
    let qemu_version = images.qemu.version.clone();
    let step = Step::begin("boot", "starting QEMU");
    let guest = Machine::new(images, "run").boot()?;
    let report = Report {
        kernel_release: guest.info().kernel_release.clone(),
        qemu_version,
        accelerator: guest.accelerator(),
        boot_seconds: guest.boot_time().as_secs_f64(),
        logs: guest.directory().to_path_buf(),
    };
    step.done(&format!(
        "Linux {} on QEMU {} ({})",
        report.kernel_release, report.qemu_version, report.accelerator
    ));
    let step = Step::begin("power off", "turning the guest off");
    guest.finish()?;
    step.done(&format!("no complaints; logs: {}", report.logs.display()));
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}
