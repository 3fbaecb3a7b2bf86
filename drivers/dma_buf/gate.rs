// SPDX-License-Identifier: GPL-2.0

//! Holds off the teardown of something until its last user is gone.

use kernel::{
    prelude::*,
    static_lock_class,
    sync::Mutex,
    types::Opaque, //
};

use crate::bindings;

/// Lockdep tells classes by the addresses of their names, and a literal has one wherever [`Gate::new`] is
/// inlined.
static NAME: &CStr = c"Gate";

struct State {
    open: bool,
    users: usize,
}

/// Lets users in until it is closed, and closing waits for the last of them.
#[pin_data]
pub(crate) struct Gate {
    #[pin]
    state: Mutex<State>,
    /// Completed when there are no users left and there can't be new ones.
    #[pin]
    empty: Opaque<bindings::completion>,
}

// SAFETY: A completion may be used from any thread.
unsafe impl Send for Gate {}
// SAFETY: A completion has its own lock.
unsafe impl Sync for Gate {}

impl Gate {
    /// A gate that is open.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- Mutex::new(State { open: true, users: 0 }, NAME, static_lock_class!()),
            empty <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes and stays where it is.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Becomes a user; each calls [`leave`](Self::leave) once.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the gate is closed.
    pub(crate) fn enter(&self) -> Result {
        let mut state = self.state.lock();

        if !state.open {
            return Err(ENODEV);
        }
        state.users += 1;
        Ok(())
    }

    /// Undoes [`enter`](Self::enter).
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();

        state.users -= 1;
        if state.users == 0 && !state.open {
            // SAFETY: `new` has initialised it.
            unsafe { bindings::complete_all(self.empty.get()) };
        }
    }

    /// Refuses new users, and returns how many are left.
    pub(crate) fn close(&self) -> usize {
        let mut state = self.state.lock();

        state.open = false;
        if state.users == 0 {
            // SAFETY: `new` has initialised it.
            unsafe { bindings::complete_all(self.empty.get()) };
        }
        state.users
    }

    /// Waits for the last user, after [`close`](Self::close).
    ///
    /// That depends on programs and may take forever: the task counts as idle, not as hung, and the wait
    /// is not interruptible.
    pub(crate) fn wait(&self) {
        // SAFETY: `new` has initialised it. The result is of interrupted waits.
        unsafe { bindings::wait_for_completion_state(self.empty.get(), bindings::TASK_IDLE) };
    }
}
