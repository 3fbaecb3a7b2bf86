// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which model of the 82576 a guest's NICs are, where it isn't said by a description.

use std::path::PathBuf;

use anyhow::{Result, bail};
use cases::{Driver, Nic};
use clap::ValueEnum;
use serde::Deserialize;

use crate::project::Project;

/// A model of the 82576.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Model {
    /// QEMU's igb
    #[default]
    Qemu,
    /// Ours, which has filters, links that lose frames, and more
    Nobounce,
}

impl Model {
    /// rigb on it.
    pub(crate) fn driver(self) -> Driver {
        match self {
            Self::Qemu => Driver::Rigb,
            Self::Nobounce => Driver::RigbModel,
        }
    }

    /// The description of rigb on it.
    pub(crate) fn file(self, project: &Project) -> PathBuf {
        let name = format!("{}.toml", self.driver().name());
        project.root.join("harness/nics").join(name)
    }

    /// Whether a description is of a NIC that this may be said of.
    ///
    /// # Errors
    ///
    /// When it is of another.
    pub(crate) fn check(self, nic: &Nic) -> Result<()> {
        let wants = match self {
            Self::Qemu => "a device of QEMU's",
            Self::Nobounce => "`device = \"nobounce\"`",
        };
        let Some(device) = &nic.device else {
            bail!(
                "{} has no device, and --model wants {wants}: leave --model out",
                nic.name
            );
        };
        if (device == vm::OUR_NIC) != (self == Self::Nobounce) {
            bail!(
                "{} has `device = {device:?}`, and --model wants {wants}: leave --model out, or --nic",
                nic.name
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_said_of_its_own_nics_alone() {
        let error = |model: Model, driver: Driver| {
            let checked = model.check(&driver.nic());
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(error(Model::Qemu, Driver::Igb), None);
        for model in [Model::Qemu, Model::Nobounce] {
            assert_eq!(error(model, model.driver()), None);
        }
        for (model, driver, says) in [
            (Model::Nobounce, Driver::Igb, "igb has `device = \"igb\"`"),
            (Model::Qemu, Driver::RigbModel, "\"nobounce\""),
            (Model::Qemu, Driver::Rwire, "rwire has no device"),
        ] {
            let text = error(model, driver).expect("it is another's");
            assert!(text.contains(says), "{text}");
        }
    }
}
