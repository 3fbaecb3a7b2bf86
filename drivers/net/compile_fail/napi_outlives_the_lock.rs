// SPDX-License-Identifier: GPL-2.0

//! A NAPI is the device's: what the control path has of it ends with the lock.
//~ error[E0621]: explicit lifetime required in the type of `dev`

include!("nic.rs");

/// What a driver may keep.
#[derive(Default)]
pub struct Kept<'a> {
    napi: Option<net::napi::Enabled<'a, Nic>>,
}

/// What the control path does.
pub fn open<'a>(dev: Locked<'_, Nic>, kept: &mut Kept<'a>) -> Result {
    let napi = dev.napi(0)?.enabled()?;

    #[cfg(not(fixed))]
    {
        kept.napi = Some(napi);
    }
    #[cfg(fixed)]
    {
        napi.schedule();
        kept.napi = None;
    }
    Ok(())
}
