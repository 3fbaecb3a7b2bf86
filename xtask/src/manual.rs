// SPDX-License-Identifier: MIT OR Apache-2.0

//! Man pages and completions, of the command line itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use fs_err as fs;

use crate::program;

/// Where shells look, below `share` of a prefix.
const COMPLETIONS: &[(Shell, &str)] = &[
    (Shell::Bash, "bash-completion/completions/nobounce"),
    (Shell::Zsh, "zsh/site-functions/_nobounce"),
    (Shell::Fish, "fish/vendor_completions.d/nobounce.fish"),
];

/// Writes them into a `share` folder.
///
/// # Errors
///
/// When something can't be written there.
pub(crate) fn write(share: &Path, command: Command) -> Result<()> {
    // As it is called where it is installed, whoever runs it now.
    let mut command = command
        .name(program::INSTALLED)
        .bin_name(program::INSTALLED);
    for (shell, path) in COMPLETIONS {
        let path = share.join(path);
        fs::create_dir_all(path.parent().unwrap_or(share))?;
        let mut file = fs::File::create(&path)?;
        clap_complete::generate(*shell, &mut command, program::INSTALLED, &mut file);
    }
    let pages = share.join("man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(command, &pages)
        .with_context(|| format!("can't write man pages into {}", pages.display()))
}

/// Where to write them.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder: PREFIX/share
    #[arg(value_name = "FOLDER")]
    pub(crate) share: PathBuf,
}
