// SPDX-License-Identifier: MIT OR Apache-2.0

//! Binds that must be refused, each with its errno; and changes refused while a queue is bound.

use cases::{Ability, Family, Result, Testbed, assert_refused};
use libc::{EEXIST, EINVAL};
use protocol::{Memory, rings::TcpDataSplit};

const MIB: u64 = 1 << 20;

#[test]
fn a_bind_is_refused_while_header_split_is_off() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .boot("bind-no-split")?;
    let refused = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB);
    assert_refused(refused, EINVAL, "a bind without header split");
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn a_bind_to_a_queue_that_does_not_exist_is_refused() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .boot("bind-no-queue")?;
    // Two processors make two queues. The netdev family checks the index itself, before it calls
    // the driver's queue operations (net/core/netdev-genl.c).
    let refused = bed.bind(bed.local, 2, Memory::Udmabuf, 4 * MIB);
    assert_refused(refused, EINVAL, "a bind to queue 2");
    bed.finish()
}

#[test]
fn a_second_bind_to_a_bound_queue_is_refused() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .boot("bind-twice")?;
    let bind = || bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB);
    let first = bind()?;
    assert_refused(bind(), EEXIST, "a second bind");
    first.stop()?;
    bind()?.stop()?;
    bed.finish()
}

#[test]
fn header_split_stays_on_while_a_queue_is_bound() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .boot("bound-split-off")?;
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
    let error = bed.set_header_split(bed.local, TcpDataSplit::Off);
    // ethnl_set_rings() in net/ethtool/rings.c, before the driver is asked.
    assert_refused(error, EINVAL, "header split off under a binding");
    bound.stop()?;
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    bed.finish()
}
