// SPDX-License-Identifier: GPL-2.0

//! NICs that let other devices ring for their TX queues: an auxiliary device each.

use doorbell::Doorbells;
use kernel::{
    auxiliary,
    device::Core,
    prelude::*,
    sync::{
        global_lock,
        Arc, //
    }, //
};

global_lock! {
    // SAFETY: Initialised by `init`, before a driver is registered.
    unsafe(uninit) static NICS: Mutex<KVec<(u32, Arc<Doorbells>)>> = KVec::new();
}

/// # Safety
///
/// To be called once, when the module is loaded.
pub(crate) unsafe fn init() {
    // SAFETY: As this function requires.
    unsafe { NICS.init() };
}

/// Does something with the doorbells of the NIC whose auxiliary device has this number. Its driver stays bound
/// meanwhile.
///
/// # Errors
///
/// `ENODEV` if there is none, and those of `act`.
pub(crate) fn with<T>(number: u32, act: impl FnOnce(&Arc<Doorbells>) -> Result<T>) -> Result<T> {
    let nics = NICS.lock();
    let nic = nics.iter().find(|(nic, _)| *nic == number);
    let (_, doorbells) = nic.ok_or(ENODEV)?;

    act(doorbells)
}

/// The driver of these auxiliary devices.
pub(crate) struct Nics;

/// A NIC that is bound; its number.
pub(crate) struct Nic(u32);

impl Drop for Nic {
    fn drop(&mut self) {
        let mut nics = NICS.lock();

        if let Some(index) = nics.iter().position(|(number, _)| *number == self.0) {
            let _ = nics.remove(index);
        }
        if nics.is_empty() {
            // Nobody else frees what a static has allocated.
            *nics = KVec::new();
        }
    }
}

kernel::auxiliary_device_table!(
    AUXILIARY_TABLE,
    <Nics as auxiliary::Driver>::IdInfo,
    [(auxiliary::DeviceId::new(c"rigb", doorbell::NAME), ())]
);

impl auxiliary::Driver for Nics {
    type IdInfo = ();
    type Data<'bound> = Nic;
    const ID_TABLE: auxiliary::IdTable<Self::IdInfo> = &AUXILIARY_TABLE;

    fn probe<'bound>(
        dev: &'bound auxiliary::Device<Core<'_>>,
        _info: &'bound Self::IdInfo,
    ) -> impl PinInit<Nic, Error> + 'bound {
        let doorbells = dev.registration_data::<doorbell::Data>()?;

        NICS.lock()
            .push((dev.id(), (*doorbells).clone()), GFP_KERNEL)?;
        Ok(Nic(dev.id()))
    }
}
