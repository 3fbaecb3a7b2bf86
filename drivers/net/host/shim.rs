// SPDX-License-Identifier: GPL-2.0

//! As much of the kernel crate as `spsc` takes, made of the atomics of the crate that this is a module of.

/// The kernel's prelude.
pub mod prelude {
    /// What allocations may do.
    #[derive(Copy, Clone, Debug)]
    pub struct Flags;

    /// They may sleep.
    pub const GFP_KERNEL: Flags = Flags;

    /// An errno.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub struct Error(i32);

    /// Invalid argument.
    pub const EINVAL: Error = Error(-22);

    /// A result with an errno.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    /// A vector whose allocations fail with an error.
    #[derive(Debug)]
    pub struct KVVec<T>(Vec<T>);

    impl<T> KVVec<T> {
        /// An empty one with room.
        ///
        /// # Errors
        ///
        /// None here.
        pub fn with_capacity(capacity: usize, _: Flags) -> Result<Self> {
            Ok(Self(Vec::with_capacity(capacity)))
        }

        /// Appends a value.
        ///
        /// # Errors
        ///
        /// None here.
        pub fn push(&mut self, value: T, _: Flags) -> Result {
            self.0.push(value);
            Ok(())
        }
    }

    impl<T> core::ops::Deref for KVVec<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            &self.0
        }
    }
}

/// The kernel's module of the same name.
pub mod sync {
    use super::prelude::{Flags, Result};
    use crate::primitives;

    /// A reference that is counted.
    pub struct Arc<T>(primitives::Arc<T>);

    impl<T> Arc<T> {
        /// Counts references to a value.
        ///
        /// # Errors
        ///
        /// None here.
        pub fn new(value: T, _: Flags) -> Result<Self> {
            Ok(Self(primitives::Arc::new(value)))
        }
    }

    impl<T> Clone for Arc<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    impl<T> core::ops::Deref for Arc<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    /// The kernel's module of the same name.
    pub mod atomic {
        use crate::primitives::{AtomicU32, Ordering};

        /// How an access is ordered with others.
        pub trait Order {
            /// The same in the standard library.
            const ORDER: Ordering;
        }

        macro_rules! orders {
            ($($(#[$doc:meta])* $name:ident,)*) => {$(
                $(#[$doc])*
                #[derive(Debug)]
                pub struct $name;

                impl Order for $name {
                    const ORDER: Ordering = Ordering::$name;
                }
            )*};
        }

        orders! {
            /// Not at all.
            Relaxed,
            /// Before all that follow.
            Acquire,
            /// After all that came before.
            Release,
        }

        /// An integer that several threads access.
        pub struct Atomic<T>(AtomicU32, core::marker::PhantomData<T>);

        impl Atomic<u32> {
            /// One of this value.
            pub fn new(value: u32) -> Self {
                Self(AtomicU32::new(value), core::marker::PhantomData)
            }

            /// Reads it.
            pub fn load<O: Order>(&self, _: O) -> u32 {
                self.0.load(O::ORDER)
            }

            /// Writes it.
            pub fn store<O: Order>(&self, value: u32, _: O) {
                self.0.store(value, O::ORDER);
            }
        }
    }
}
