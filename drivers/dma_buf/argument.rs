// SPDX-License-Identifier: GPL-2.0

//! The structs that ioctls of a node take and return.

use kernel::{
    prelude::*,
    uaccess::UserPtr, //
};

/// A struct of a driver's header for programs, defined by [`ioctl_arguments!`](crate::ioctl_arguments).
pub trait Argument: Sized {
    /// Reads it from a program's memory.
    ///
    /// # Errors
    ///
    /// `EFAULT` if the program cannot read there.
    fn read(from: UserPtr) -> Result<Self>;

    /// Writes it to a program's memory.
    ///
    /// # Errors
    ///
    /// `EFAULT` if the program cannot write there.
    fn write(&self, to: UserPtr) -> Result;
}

/// Defines structs laid out as C has them, whose fields are numbers without padding in between.
#[macro_export]
macro_rules! ioctl_arguments {
    ($($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        // Fields are read and written one after the other.
        const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);

        impl $crate::argument::Argument for $name {
            fn read(from: ::kernel::uaccess::UserPtr) -> ::kernel::error::Result<Self> {
                let mut reader =
                    ::kernel::uaccess::UserSlice::new(from, size_of::<Self>()).reader();

                Ok(Self { $($field: reader.read()?,)* })
            }

            fn write(&self, to: ::kernel::uaccess::UserPtr) -> ::kernel::error::Result {
                let mut writer =
                    ::kernel::uaccess::UserSlice::new(to, size_of::<Self>()).writer();

                $(writer.write(&self.$field)?;)*
                Ok(())
            }
        }
    )*};
}
