// SPDX-License-Identifier: MIT OR Apache-2.0

//! Man pages and completions, of the command line itself.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::{args, exit};

const NAME: &str = "devmem-tcp";

/// Where shells look, below `share` of a prefix.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/devmem-tcp"),
    (Shell::Zsh, "zsh/site-functions/_devmem-tcp"),
    (Shell::Fish, "fish/vendor_completions.d/devmem-tcp.fish"),
];

/// Where to write them.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder: PREFIX/share
    #[arg(value_name = "FOLDER")]
    share: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let mut command = args::Arguments::command();
    let files = COMPLETIONS.map(|(shell, path)| (shell, arguments.share.join(path)));
    let pages = arguments.share.join("man/man1");
    let folders = files.iter().filter_map(|(_, path)| path.parent());
    for folder in folders.chain([pages.as_path()]) {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    for (shell, path) in &files {
        let mut file = File::create(path).with_context(|| format!("write {}", path.display()))?;
        clap_complete::generate(*shell, &mut command, NAME, &mut file);
    }
    clap_mangen::generate_to(command, &pages)
        .with_context(|| format!("write man pages into {}", pages.display()))?;
    Ok(exit::HOLDS)
}
