// SPDX-License-Identifier: GPL-2.0

// The driver that the snippets beside this file are about; each includes it. A snippet does with
// `net` what must not compile: `//~` says what the compiler has to find, and nothing else. With
// `--cfg fixed` the same does what is right, and has to compile. `make check` builds both.

use kernel::prelude::*;
use net::{
    device::Locked,
    driver::Driver,
    napi::{
        Completion,
        Outcome,
        Poll,
        Receive, //
    },
    skb::TxSkb,
    tx::{
        Transmit,
        TxQueue, //
    },
};

module! {
    type: Module,
    name: "snippet",
    authors: ["The nobounce developers"],
    description: "What must not compile",
    license: "GPL",
}

pub struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

/// A driver.
pub struct Nic;

/// Its TX queues.
pub struct Tx;

impl Transmit for Tx {
    fn transmit(&mut self, _skb: TxSkb, _queue: TxQueue<'_>, _more: bool) {}
}

/// Its NAPIs.
pub struct Queue;

impl Poll for Queue {
    type Driver = Nic;
    type Interrupt = ();

    fn complete(&mut self, _napi: &Completion<'_, Nic>) -> bool {
        true
    }

    fn receive(&mut self, _napi: &Receive<'_, Nic>) -> Outcome {
        Outcome::Done(0)
    }
}

#[vtable]
impl Driver for Nic {
    type Control = ();
    type Tx = Tx;
    type Napi = Queue;

    fn open(_dev: Locked<'_, Self>, _control: &mut ()) -> Result {
        Ok(())
    }

    fn stop(_dev: Locked<'_, Self>, _control: &mut ()) {}
}
