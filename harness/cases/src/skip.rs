// SPDX-License-Identifier: MIT OR Apache-2.0

//! Skips a case: nextest has no way for a test to say at run time that it is skipped.

use std::{env, fs::OpenOptions, io::Write, path::Path, process};

use crate::{CaseError, Result};

/// Environment variable with the file that says which cases were skipped, a line for each: its name,
/// a tab, the reason.
pub const SKIPPED_ENV: &str = "NOBOUNCE_SKIPPED";

/// Ends this process, which under nextest is the case's own, as if the case had passed; the file
/// says that it has not.
///
/// # Errors
///
/// When there is no such file, as the skip would go unnoticed.
pub(crate) fn skip(reason: &str) -> Result<()> {
    let (Some(path), Ok(name)) = (env::var_os(SKIPPED_ENV), env::var("NEXTEST_TEST_NAME")) else {
        return Err(CaseError::new(format!(
            "{reason}: `nobounce test --nic`, `--kernel`, and a run on a kernel that you built skip \
             such a case"
        )));
    };
    let binary = env::var("NEXTEST_BINARY_ID").unwrap_or_default();
    // One write, as other cases append, too.
    let line = format!("{binary} {name}\t{reason}\n");
    let path = Path::new(&path);
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| CaseError::new(format!("can't write {}: {error}", path.display())))?;
    println!("skipped: {reason}");
    process::exit(0)
}
