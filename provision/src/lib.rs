// SPDX-License-Identifier: MIT OR Apache-2.0

//! What takes long at first, and is kept in the cache: what is fetched and unpacked, and the kernels that
//! are built of it. The program of the same name begins with that while the commands are still being compiled.

pub mod apt;
pub mod bindgen;
mod built_in;
pub mod cache;
pub mod cmd;
pub mod distribution;
pub mod files;
pub mod hash;
pub mod kernel;
pub mod llvm;
pub mod lock;
pub mod names;
pub mod packages;
pub mod pahole;
pub mod parallel;
pub mod program;
pub mod project;
pub mod space;
pub mod tools;
pub mod ui;
pub mod unpacked;
pub mod version;
