// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whether there is time for something in what CI gives a change.

use anyhow::Result;

use crate::kernel;
use crate::project::Project;

/// Why what takes so many `minutes` is skipped with `left` of them, if it is.
pub(crate) fn too_little(minutes: i64, left: i64) -> Option<String> {
    (left < minutes).then(|| {
        format!(
            "they may take {minutes} minutes, of which {} are left",
            left.max(0)
        )
    })
}

/// The same of what has a kernel of its own, the build of which is most of it.
///
/// # Errors
///
/// When there is no kernel where the user says, or a tool is missing.
pub(crate) fn too_little_with_kernel(
    project: &Project,
    minutes: i64,
    left: i64,
) -> Result<Option<String>> {
    Ok(with_kernel(kernel::is_ready(project)?, minutes, left))
}

fn with_kernel(is_ready: bool, minutes: i64, left: i64) -> Option<String> {
    let reason = too_little(minutes, left).filter(|_| !is_ready)?;
    Some(format!("{reason}, and their kernel is not in the cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wants_a_kernel_is_skipped_only_without_kernel_and_time() {
        assert_eq!(with_kernel(true, 45, 90), None);
        assert_eq!(with_kernel(true, 45, 0), None);
        assert_eq!(with_kernel(false, 45, 45), None);
        let late = with_kernel(false, 45, 44).unwrap();
        assert!(late.contains("44 are left"), "{late}");
        let over = with_kernel(false, 45, -3).unwrap();
        assert!(over.contains("0 are left"), "{over}");
    }
}
