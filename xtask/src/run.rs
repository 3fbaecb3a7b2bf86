// SPDX-License-Identifier: MIT OR Apache-2.0

//! `run`: from whatever is there to the demonstration and its report.

use std::path::Path;

use anyhow::Result;
use provision::files;

use crate::model::Model;
use crate::project::{Locked, Project};
use crate::{demo, devices, guest};

/// Prepares the guest, boots it and runs the demonstration.
///
/// # Errors
///
/// Those of the preparation, and when the demonstration does not hold.
pub(crate) fn run(
    project: &Project,
    lock: Locked,
    json: Option<&Path>,
    model: Model,
) -> Result<()> {
    let mut images = guest::prepare(project)?;
    if model == Model::Nobounce {
        images.devices = Some(devices::build(project)?);
    }
    // A guest only reads what is in the cache.
    drop(lock);

    let report = demo::run(images, model)?;
    if let Some(path) = json {
        files::write_json(path, &report)?;
    }
    println!("\n{report}");
    Ok(())
}
