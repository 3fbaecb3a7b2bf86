// SPDX-License-Identifier: MIT OR Apache-2.0

//! The user's terminal.

use std::io::{IsTerminal, stdin, stdout};

use anyhow::{Context, Result};
use protocol::program::WindowSize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal that hands every key on as it is. Dropping it makes it as it was.
pub(super) struct Raw {
    before: Termios,
}

/// Whether a program should have a terminal: where the user has one, for input and output.
pub(super) fn wanted() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Its size now.
pub(super) fn size() -> Result<WindowSize> {
    let size = tcgetwinsize(stdout()).context("finding the size of the terminal")?;
    Ok(WindowSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

impl Raw {
    pub(super) fn enter() -> Result<Self> {
        let before = tcgetattr(stdin()).context("finding the settings of the terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw).context("setting the terminal")?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // The user can do no more than we can.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
    }
}
