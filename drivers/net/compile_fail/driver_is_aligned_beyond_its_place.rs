// SPDX-License-Identifier: GPL-2.0

//! The core aligns what is behind a net device to a cache line, and no further.
//~ error[E0080]: evaluation panicked: assertion failed

#[cfg(not(fixed))]
mod aligned {
    #[repr(align(4096))]
    pub struct Aligned;
}
#[cfg(fixed)]
mod aligned {
    pub struct Aligned;
}

include!("nic.rs");

/// Another driver.
pub struct Large(aligned::Aligned);

/// Its NAPIs.
pub struct LargeQueue;

impl Poll for LargeQueue {
    type Driver = Large;
    type Interrupt = ();

    fn complete(&mut self, _napi: &Completion<'_, Large>) -> bool {
        true
    }

    fn receive(&mut self, _napi: &Receive<'_, Large>) -> Outcome {
        Outcome::Done(0)
    }
}

#[vtable]
impl Driver for Large {
    type Control = ();
    type Tx = Tx;
    type Napi = LargeQueue;

    fn open(_dev: Locked<'_, Self>, _control: &mut ()) -> Result {
        Ok(())
    }

    fn stop(_dev: Locked<'_, Self>, _control: &mut ()) {}
}

/// What probe does.
pub fn probe() -> Result {
    let config = net::registration::Config::new(1, 1);

    net::registration::Unregistered::<Large>::new_virtual(config).map(|_| ())
}
