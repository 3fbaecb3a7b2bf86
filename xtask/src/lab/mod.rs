// SPDX-License-Identifier: MIT OR Apache-2.0

//! The lab: programs that aren't ours, in a guest with the host's files and our NICs.

mod counted;
mod enter;
mod environment;
mod exec;
mod gdb;
mod guests;
mod memory_check;
mod running;
mod script;
mod setup;
mod side;
mod streams;
mod terminal;
mod trace;
mod trace_dat;
mod visitors;

use std::env;
use std::path::Path;

use anyhow::{Result, bail};
use vm::Images;

pub(crate) use self::enter::{Options as EnterOptions, enter};
pub(crate) use self::exec::{Options, ShellOptions, exec, shell};
pub(crate) use self::running::print_list;
pub(crate) use self::side::FAILED;
use crate::devices;
use crate::guest;
use crate::kernel::KernelArgs;
use crate::model::Model;
use crate::program;
use crate::project::Project;
use crate::ui;

/// What the lab's guest boots from: what [`kselftest::ENV`] names, or else what is made now.
///
/// # Errors
///
/// Those of the preparation.
pub(crate) fn images(kernel: KernelArgs, model: Model) -> Result<Images> {
    ui::quieten();
    if let Some(manifest) = env::var_os(kselftest::ENV) {
        let manifest = Path::new(&manifest);
        let images = Images::load(manifest)?;
        if model == Model::Nobounce && images.devices.is_none() {
            bail!(
                "{}={} was made without our model of the NIC: run `{} guest` again, or unset it",
                kselftest::ENV,
                manifest.display(),
                program::name()
            );
        }
        return Ok(images);
    }
    let project = Project::open(kernel)?;
    // Only while something is made: the guest only reads what is in the cache.
    let _lock = project.lock()?;
    let mut images = guest::prepare_lab(&project)?;
    if model == Model::Nobounce {
        images.devices = Some(devices::build(&project)?);
    }
    Ok(images)
}
