// SPDX-License-Identifier: MIT OR Apache-2.0

//! The interface that a command is about.

use clap::Args;
use devmem_tcp::RequestError;
use devmem_tcp::interface::Interface;

/// The interface that a command is about.
#[derive(Debug, Args)]
pub(crate) struct About {
    /// Name, index or address of the interface
    #[arg(value_name = "INTERFACE")]
    text: String,
}

impl About {
    /// Looks it up.
    pub(crate) fn find(&self) -> Result<Interface, RequestError> {
        self.text.parse()
    }
}
