// SPDX-License-Identifier: MIT OR Apache-2.0

//! A guest with a device that lies.

use std::fmt;

use model::lies::{Lie, Plan};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vm::{Error, Images, OUR_NIC};

use super::{
    engine, nic,
    outcome::{Outcome, Step, Trouble},
};
use crate::{Driver, Nic, Refusal, Result, Testbed, skip};

/// What lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Our model of the 82576.
    Nic,
    /// An accelerator's engine.
    Engine,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Device {
    /// The plan of a seed: always the same.
    #[must_use]
    pub fn plan(self, seed: u64) -> Plan {
        match self {
            Self::Nic => Plan::from_seed(seed),
            Self::Engine => Plan::of_engine(seed),
        }
    }

    /// Whether a lie that was told so often can make wrong bytes look right to any driver.
    fn is_believed(self, lie: &Lie, told: u32) -> bool {
        match self {
            Self::Nic => nic::is_believed(lie, told),
            Self::Engine => engine::is_believed(lie, told),
        }
    }

    /// Makes it lie as a plan says, if there is one. Returns how often it told each lie until now.
    fn lie(self, bed: &Testbed, plan: Option<&Value>) -> std::result::Result<Vec<u32>, Error> {
        match self {
            Self::Nic => bed.guest.lie(bed.local.wire, bed.local.end, plan),
            Self::Engine => bed.guest.lie_engine(plan),
        }
    }
}

/// Which device lies, and of what the guests are made that have it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// What lies.
    pub device: Device,
    /// A program's images, with [`Driver::RigbModel`]'s NICs; without, those that the environment names.
    pub images: Option<&'a Images>,
}

impl Target<'_> {
    /// One for a case.
    #[must_use]
    pub fn of_case(device: Device) -> Self {
        let images = None;
        Self { device, images }
    }

    /// Boots a guest, with a name for its logs.
    ///
    /// # Errors
    ///
    /// Those of booting.
    pub fn boot(&self, name: &str) -> Result<Victim> {
        let device = self.device;
        let options = match device {
            Device::Nic => Testbed::devmem_options(),
            Device::Engine => Testbed::engine_options(),
        };
        let bed = match self.images {
            Some(images) => options.driver(Driver::RigbModel).boot_images(images, name),
            None => {
                if device == Device::Nic && Nic::from_env()?.device.as_deref() != Some(OUR_NIC) {
                    skip::skip("the NIC is none of ours, so that it tells no lies")?;
                }
                options.boot(name)
            }
        }?;
        match device {
            Device::Nic => nic::prepare(&bed)?,
            Device::Engine => engine::prepare(&bed)?,
        }
        Ok(Victim { device, bed })
    }
}

/// A guest with a device that lies.
#[derive(Debug)]
pub struct Victim {
    device: Device,
    bed: Testbed,
}

impl Victim {
    /// What the guest is made of.
    #[must_use]
    pub fn bed(&self) -> &Testbed {
        &self.bed
    }

    /// Makes the device lie as a plan says. Returns how often it told each lie of the last one.
    ///
    /// # Errors
    ///
    /// Those of [`vm::Guest::lie`].
    pub fn lie(&self, plan: &Plan) -> Result<Vec<u32>> {
        Ok(self.device.lie(&self.bed, Some(&json!(plan)))?)
    }

    /// Carries out a plan. Returns what became of it, and how often each lie was told.
    ///
    /// # Errors
    ///
    /// What must not happen, whatever a device does, and failures of the harness. The guest may be lost.
    pub fn attack(&self, plan: &Plan) -> Step<(Outcome, Vec<u32>)> {
        let lies = Lies {
            bed: &self.bed,
            device: self.device,
            plan,
        };
        let result = match self.device {
            Device::Nic => nic::attack(&lies),
            Device::Engine => engine::attack(&lies),
        };
        // What the kernel or the model says is the cause of anything else.
        match self.check() {
            Err(harm @ Trouble::Harm(_)) => Err(harm),
            checked => result.and_then(|outcome| checked.map(|()| outcome)),
        }
    }

    /// Looks for complaints of the kernel's and of the model's.
    fn check(&self) -> Step {
        self.bed.guest.check_log()?;
        self.bed.guest.check_nics()?;
        Ok(())
    }

    /// Ends a guest after plans, and looks for what they left behind: memory that is not returned, a
    /// driver that can't be unloaded, and what each case's end looks for.
    ///
    /// # Errors
    ///
    /// As for [`Self::attack`].
    pub fn rest(self) -> Step {
        let rested = match self.device {
            Device::Nic => nic::let_go(&self.bed),
            Device::Engine => engine::let_go(&self.bed),
        };
        if let Err(trouble) = rested.and_then(|()| self.check()) {
            self.abandon();
            return Err(trouble);
        }
        Ok(self.bed.finish()?)
    }

    /// Ends a guest without a look at it.
    pub(super) fn abandon(self) {
        self.bed.abandon();
    }
}

/// A plan that a guest's device carries out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lies<'a> {
    pub(super) bed: &'a Testbed,
    pub(super) plan: &'a Plan,
    device: Device,
}

impl Lies<'_> {
    /// Begins to lie.
    pub(super) fn begin(&self) -> Step {
        self.device.lie(self.bed, Some(&json!(self.plan)))?;
        Ok(())
    }

    /// Tells the truth from now on. Returns how often each lie was told.
    pub(super) fn end(&self) -> Step<Vec<u32>> {
        Ok(self.device.lie(self.bed, Some(&json!(Plan::default())))?)
    }

    /// Whether a lie was told so far that makes wrong bytes the device's own fault.
    pub(super) fn excuse(&self) -> Step<bool> {
        let told = self.device.lie(self.bed, None)?;
        let mut lies = self.plan.lies.iter().zip(told);
        Ok(lies.any(|(lie, told)| self.device.is_believed(lie, told)))
    }
}

/// What was granted; nothing if the guest's kernel has refused it.
pub(super) fn granted<T, E>(result: std::result::Result<T, E>) -> Step<Option<T>>
where
    E: Refusal + Into<Trouble>,
{
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.errno().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
