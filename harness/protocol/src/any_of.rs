// SPDX-License-Identifier: MIT OR Apache-2.0

//! An enum of messages, each of which has a type that answers it.

/// Defines an enum with one variant for each struct of these modules, and implements the trait for
/// each, with the type that answers it.
macro_rules! any_of {
    (
        $(#[$doc:meta])*
        pub enum $any:ident: $trait:ident::$answer:ident {
            $($module:ident { $($name:ident -> $type:ty,)* })*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        pub enum $any {
            $($(
                #[doc = concat!("See [`", stringify!($module), "::", stringify!($name), "`].")]
                $name($module::$name),
            )*)*
        }

        impl $any {
            /// Its name, for logs and errors.
            pub const fn name(&self) -> &'static str {
                match self {
                    $($(Self::$name(_) => stringify!($name),)*)*
                }
            }
        }

        $($(
            impl From<$module::$name> for $any {
                fn from(one: $module::$name) -> Self {
                    Self::$name(one)
                }
            }

            impl $trait for $module::$name {
                type $answer = $type;
            }
        )*)*
    };
}

pub(crate) use any_of;
