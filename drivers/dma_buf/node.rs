// SPDX-License-Identifier: GPL-2.0

//! The character device of a driver: one per PCI device.
//!
//! `rust/kernel/miscdevice.rs` has one name for all devices of a driver, and `open()` does not know
//! which of them was opened. Here each device has its own name, `<prefix>0`, `<prefix>1` …, and its
//! driver's data; ioctls come while the device is bound, and at no other time. So does access to the
//! [`Portal`] of an open file, which programs map: once the device is unbound it raises `SIGBUS`.
//!
//! C header: `include/linux/miscdevice.h`

use core::marker::PhantomData;

use kernel::{
    container_of,
    device::{
        Bound,
        Device, //
    },
    devres,
    error::{
        from_result,
        to_result,
        VTABLE_DEFAULT_ERROR, //
    },
    module::this_module,
    prelude::*,
    str::CString,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    gate::Gate,
    portal::{
        self,
        Mappings,
        Portal, //
    }, //
};

/// The state of a node, which its open files share. It lives as long as the device is bound.
#[vtable]
pub trait Node: Send + Sync + 'static {
    /// What belongs to an open file. It may outlive the device's being bound.
    type File: Send + Sync + 'static;

    /// A program opens the node.
    ///
    /// # Errors
    ///
    /// Returned to the program.
    fn open(this: ArcBorrow<'_, Self>) -> Result<Self::File>;

    /// Handles an `ioctl()`: `arg` is a number or a user-space address. Unbinding the device waits until
    /// it returns.
    ///
    /// # Errors
    ///
    /// Returned to the program; `ENOTTY` for an unknown command.
    fn ioctl(file: &Self::File, dev: &Device<Bound>, command: u32, arg: usize) -> Result<isize>;

    /// What `mmap()` of the file's first page maps. Called while the device is bound.
    fn portal(_file: &Self::File) -> Portal {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// Creates the node `<prefix><N>` with the lowest free `N` of `numbers`, and `data` for its open
/// files. It exists until `parent` is unbound; then ioctls of files that are still open fail with `ENODEV`,
/// and what they map is taken from them.
///
/// # Errors
///
/// `ENOSPC` if there are too many, `ENOMEM`, and errors of `misc_register()`.
pub fn register<T: Node>(
    parent: &Device<Bound>,
    prefix: &CStr,
    numbers: &'static Numbers,
    data: Arc<T>,
) -> Result {
    let number = numbers.take()?;
    let name = CString::try_from_fmt(fmt!("{}{}", prefix, number.value))?;

    devres::register(
        parent,
        Registration::new(parent, name, number, data),
        GFP_KERNEL,
    )
}

/// A device as open files see it.
///
/// # Invariants
///
/// The device is bound as long as the gate is open or has users.
#[pin_data]
struct Parent {
    dev: ARef<Device>,
    /// For ioctls and faults.
    #[pin]
    gate: Gate,
    #[pin]
    mappings: Mappings,
}

/// An open file.
struct Open<T: Node> {
    file: T::File,
    parent: Arc<Parent>,
}

/// # Invariants
///
/// `misc` is registered, and its name is `name`.
#[pin_data(PinnedDrop)]
struct Registration<T: Node> {
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    data: Arc<T>,
    gate: Arc<Parent>,
    name: CString,
    /// Freed only when the registration is gone.
    number: Number,
}

// SAFETY: A misc device may be registered by one thread and deregistered by another.
unsafe impl<T: Node> Send for Registration<T> {}

impl<T: Node> Registration<T> {
    fn new(
        parent: &Device<Bound>,
        name: CString,
        number: Number,
        data: Arc<T>,
    ) -> impl PinInit<Self, Error> + '_ {
        // The string does not move with its owner.
        let raw_name = name.as_char_ptr();

        try_pin_init!(Self {
            data,
            // INVARIANT: It is bound, and the gate is closed and empty before it is not.
            gate: Arc::pin_init(
                pin_init!(Parent {
                    dev: parent.into(),
                    gate <- Gate::new(),
                    mappings <- Mappings::new(),
                }),
                GFP_KERNEL,
            )?,
            name,
            number,
            // Last, because the node can be opened at once.
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                let misc = bindings::miscdevice {
                    // CAST: A small number.
                    minor: bindings::MISC_DYNAMIC_MINOR as c_int,
                    name: raw_name,
                    fops: Vtable::<T>::build(),
                    // `Device` is transparent.
                    parent: core::ptr::from_ref::<Device<Bound>>(parent).cast_mut().cast(),
                    ..pin_init::zeroed()
                };

                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(misc) };
                // SAFETY: It stays where it is until it is deregistered; so does its name.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
        })
    }
}

#[pinned_drop]
impl<T: Node> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant it is registered. When this returns, no `open` is running.
        unsafe { bindings::misc_deregister(self.misc.get()) };
        let parent = &self.gate;

        parent.gate.close();
        parent.gate.wait();
        // From here on no fault maps anything.
        parent.mappings.zap();
    }
}

/// The file operations of nodes with a `T`.
struct Vtable<T>(PhantomData<T>);

impl<T: Node> Vtable<T> {
    const OPS: bindings::file_operations = bindings::file_operations {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        open: Some(Self::open),
        release: Some(Self::release),
        unlocked_ioctl: Some(Self::ioctl),
        mmap: if T::HAS_PORTAL {
            Some(Self::mmap)
        } else {
            None
        },
        // Arguments are laid out the same for 32 and 64 bits.
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: bindings::compat_ptr_ioctl,
        ..pin_init::zeroed()
    };

    const AREA_OPS: bindings::vm_operations_struct = bindings::vm_operations_struct {
        fault: Some(Self::fault),
        ..pin_init::zeroed()
    };

    const fn build() -> &'static bindings::file_operations {
        &Self::OPS
    }

    const fn build_area() -> &'static bindings::vm_operations_struct {
        &Self::AREA_OPS
    }

    /// # Safety
    ///
    /// Only the core of misc devices may call it, as `open` of a node with a `T`.
    unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: The core has put the misc device there, and holds the lock that keeps it.
        let misc: *mut Opaque<bindings::miscdevice> = unsafe { (*file).private_data }.cast();
        // SAFETY: Misc devices of these operations are in a `Registration<T>`, whose other fields were
        // there before the misc device.
        let registration = unsafe { &*container_of!(misc, Registration<T>, misc) };

        from_result(|| {
            let open = Open::<T> {
                file: T::open(registration.data.as_arc_borrow())?,
                parent: registration.gate.clone(),
            };
            let open = KBox::new(open, GFP_KERNEL)?;
            // SAFETY: The file is open from now on, and `release` removes it.
            unsafe { open.parent.mappings.add(file)? };
            // SAFETY: From now on it is ours.
            unsafe { (*file).private_data = KBox::into_raw(open).cast() };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the VFS may call it, as `release` of a file that `open` was for.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: `open` has put it there, and this is the last call.
        let open = unsafe { KBox::<Open<T>>::from_raw((*file).private_data.cast()) };

        // SAFETY: `open` has added it.
        unsafe { open.parent.mappings.remove(file) };
        0
    }

    /// # Safety
    ///
    /// Only the VFS may call it, as `mmap` of a file that `open` was for.
    unsafe extern "C" fn mmap(
        _file: *mut bindings::file,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: The VFS calls with an area that is being set up.
        from_result(|| unsafe { portal::set_up(vma, Self::build_area()) }.map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the core may call it, as `fault` of an area that `mmap` has set up.
    unsafe extern "C" fn fault(vmf: *mut bindings::vm_fault) -> bindings::vm_fault_t {
        // SAFETY: The area is of a file that `open` was for, which is open as long as there is the area.
        let open = unsafe {
            let file = (*(*vmf).__bindgen_anon_1.vma).vm_file;
            &*(*file).private_data.cast::<Open<T>>()
        };

        if open.parent.gate.enter().is_err() {
            return bindings::vm_fault_reason_VM_FAULT_SIGBUS;
        }
        // SAFETY: The device is bound until we leave the gate.
        let result = unsafe { T::portal(&open.file).map(vmf) };

        open.parent.gate.leave();
        result
    }

    /// # Safety
    ///
    /// Only the VFS may call it, as `unlocked_ioctl` of a file that `open` was for.
    unsafe extern "C" fn ioctl(file: *mut bindings::file, command: c_uint, arg: c_ulong) -> c_long {
        // SAFETY: `open` has put it there, and `release` has not come yet.
        let open = unsafe { &*(*file).private_data.cast::<Open<T>>() };

        // `isize` and `long` are the same.
        from_result(|| {
            open.parent.gate.enter()?;
            // SAFETY: By the type invariant it is bound until we leave the gate. A bound device and any
            // other are the same type.
            let dev = unsafe { &*core::ptr::from_ref::<Device>(&open.parent.dev).cast() };
            let result = T::ioctl(&open.file, dev, command, arg);

            open.parent.gate.leave();
            result
        })
    }
}

/// The node numbers in use: a driver has one `static` of it for each prefix.
///
/// One bit per number: there are up to 64.
pub struct Numbers(Atomic<u64>);

impl Numbers {
    /// All free.
    pub const fn new() -> Self {
        Self(Atomic::new(0))
    }

    fn take(&'static self) -> Result<Number> {
        let mut used = self.0.load(Relaxed);

        loop {
            let value = used.trailing_ones();
            if value == u64::BITS {
                return Err(ENOSPC);
            }
            match self.0.cmpxchg(used, used | 1 << value, Full) {
                Ok(_) => return Ok(Number { value, of: self }),
                Err(now) => used = now,
            }
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::new()
    }
}

/// A number that is in use.
struct Number {
    value: u32,
    of: &'static Numbers,
}

impl Drop for Number {
    fn drop(&mut self) {
        // The bit is set, and only we clear it.
        self.of.0.fetch_sub(1_u64 << self.value, Full);
    }
}
