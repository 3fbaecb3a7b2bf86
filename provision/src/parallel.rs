// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two steps at the same time.

use std::panic::resume_unwind;
use std::thread;

use anyhow::Result;

/// Does both, the second in a thread of its own, and waits for both.
///
/// # Errors
///
/// The first's error, else the second's.
pub fn both<A, B: Send>(
    first: impl FnOnce() -> Result<A>,
    second: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(second);
        (first(), second.join())
    });
    Ok((first?, second.unwrap_or_else(|panic| resume_unwind(panic))?))
}

/// Has what this thread does from now on, and the programs that it runs, give way to all else.
pub fn give_way() {
    // At worst it takes longer.
    let _ = rustix::process::nice(10);
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::sync::mpsc;

    #[test]
    fn what_gives_way_is_one_thread_and_what_it_runs() {
        let niceness = || crate::cmd::Cmd::new("nice").output();
        let ((), text) = both(
            || Ok(()),
            || {
                give_way();
                niceness()
            },
        )
        .unwrap();
        let lower: i32 = text.trim().parse().unwrap();
        let here: i32 = niceness().unwrap().trim().parse().unwrap();
        assert!(lower > here || here >= 19, "{lower} and {here}");
    }

    #[test]
    fn both_are_done_at_the_same_time_and_the_first_error_is_reported() {
        let (to_first, from_second) = mpsc::channel();
        let (to_second, from_first) = mpsc::channel();
        let said = both(
            || {
                to_second.send(1)?;
                Ok(from_second.recv()?)
            },
            move || {
                to_first.send(2)?;
                Ok(from_first.recv()?)
            },
        );
        assert_eq!(said.unwrap(), (2, 1));
        let error = both::<(), ()>(|| bail!("first"), || bail!("second")).unwrap_err();
        assert_eq!(error.to_string(), "first");
        let error = both::<(), ()>(|| Ok(()), || bail!("second")).unwrap_err();
        assert_eq!(error.to_string(), "second");
    }
}
