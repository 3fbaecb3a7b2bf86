// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two models of the 82576, QEMU's and ours, on one wire.

use std::thread;

use cases::{Driver, Family, Result, Testbed};
use vm::Cables;

const MIB: u64 = 1 << 20;

#[test]
fn a_wire_connects_our_model_and_qemus() -> Result {
    let [near, far] = Cables::lay(1)?;
    let boot = |cables, driver, name| {
        let options = Testbed::options().cables(cables);
        options.driver(driver).boot(name)
    };
    let (near, far) = thread::scope(|scope| {
        let far = scope.spawn(|| boot(far, Driver::Rigb, "models-qemu"));
        let near = boot(near, Driver::RigbModel, "models-ours");
        (near, far.join().expect("it does not panic"))
    });
    let (near, far) = (near?, far?);
    for [(from, sender), (to, receiver)] in [
        [(&near, near.local), (&far, far.peer)],
        [(&far, far.peer), (&near, near.local)],
    ] {
        for family in Family::BOTH {
            let stream = from.stream(sender, receiver, family);
            stream.transfer_between([from, to], 2 * MIB, &[64 << 10])?;
        }
    }
    near.finish()?;
    far.finish()?;
    Ok(())
}
