// SPDX-License-Identifier: MIT OR Apache-2.0

//! The drivers of the NICs, of the accelerator and of its engine.

use protocol::kernel::{LoadModule, UnloadModule};

use super::Testbed;
use crate::Result;

/// The accelerator's driver.
const ACCELERATOR_DRIVER: &str = "ivshmem_mem";
/// Its engine's.
pub(crate) const ENGINE_DRIVER: &str = "copy_engine";

impl Testbed {
    /// Loads the driver, and what it needs before it.
    pub fn load_modules(&self) -> Result {
        for name in &self.nic.load {
            self.guest.call(LoadModule {
                name: name.clone(),
                parameters: String::new(),
            })?;
        }
        Ok(())
    }

    /// Loads the driver, and waits for the interfaces that it registers.
    pub fn load_driver(&self) -> Result {
        self.load_modules()?;
        for station in self.here(self.stations()) {
            self.take_in(station)?;
        }
        Ok(())
    }

    /// Unloads the driver, and what was loaded for it.
    pub fn unload_driver(&self) -> Result {
        for name in self.nic.load.iter().rev() {
            self.guest.call(UnloadModule::new(name))?;
        }
        Ok(())
    }

    /// Loads the accelerator's driver.
    pub fn load_accelerator(&self) -> Result {
        Ok(self.guest.call(LoadModule {
            name: ACCELERATOR_DRIVER.to_owned(),
            parameters: String::new(),
        })?)
    }

    /// Unloads the accelerator's driver.
    pub fn unload_accelerator(&self) -> std::result::Result<(), vm::Error> {
        self.guest.call(UnloadModule::new(ACCELERATOR_DRIVER))
    }

    /// Loads the engine's driver.
    pub fn load_engine(&self) -> Result {
        Ok(self.guest.call(LoadModule {
            name: ENGINE_DRIVER.to_owned(),
            parameters: String::new(),
        })?)
    }
}
