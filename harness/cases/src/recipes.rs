// SPDX-License-Identifier: MIT OR Apache-2.0

//! Guests as most cases want them.

use vm::Topology;

use crate::{Ability, Options, Result, Testbed};

impl Testbed {
    /// Two processors, MTU 1500, header split off.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    /// A guest for device memory: MTU 9000, header split on, all TCP steered to queue 1.
    pub fn devmem(name: &str) -> Result<Self> {
        Self::devmem_options().boot_steered(name)
    }

    /// As [`Testbed::devmem`], for an io_uring that receives.
    pub fn zcrx(name: &str) -> Result<Self> {
        Self::zcrx_options().boot_steered(name)
    }

    /// What [`Testbed::zcrx`] boots.
    #[must_use]
    pub fn zcrx_options() -> Options {
        Self::devmem_options().needs([Ability::Zcrx])
    }

    /// What [`Testbed::devmem`] boots.
    #[must_use]
    pub fn devmem_options() -> Options {
        let needs = [Ability::DevmemRx, Ability::Rss];
        Self::options().mtu(9000).header_split().needs(needs)
    }

    /// As [`Testbed::devmem`], with an accelerator.
    pub fn accelerator(topology: Topology, name: &str) -> Result<Self> {
        let options = Self::devmem_options().accelerator(topology);
        options.boot_steered(name)
    }

    /// As [`Testbed::accelerator`] behind a switch, with an engine and its driver.
    pub fn engine(name: &str) -> Result<Self> {
        let bed = Self::engine_options().boot_steered(name)?;
        bed.load_engine()?;
        Ok(bed)
    }

    /// What [`Testbed::engine`] boots.
    #[must_use]
    pub fn engine_options() -> Options {
        let options = Self::devmem_options().accelerator(Topology::Switch);
        options.engine()
    }
}
