// SPDX-License-Identifier: MIT OR Apache-2.0

//! Interrupt coalescing: set for all queues or for one, adaptive, and kept across other changes.

use cases::{Family, Result, Testbed};
use libc::EINVAL;
use protocol::{
    ethtool::{Coalesce, GetCoalesce, SetCoalesce},
    rings::TcpDataSplit,
};

const MIB: u64 = 1 << 20;
const CPUS: u32 = 3;

fn get(bed: &Testbed, queue: Option<u32>) -> Result<(u32, bool)> {
    let now = bed.guest.call(GetCoalesce::on(bed.local, queue))?;
    assert_eq!(
        now.tx_usecs.unwrap_or(0),
        0,
        "queue pairs have one interrupt"
    );
    Ok((
        now.rx_usecs.expect("the driver says it"),
        now.adaptive_rx.expect("the driver says it"),
    ))
}

fn set(bed: &Testbed, queue: Option<u32>, coalesce: Coalesce) -> Option<i32> {
    let set = bed.guest.call(SetCoalesce::on(bed.local, queue, coalesce));
    set.err().map(|error| error.errno().unwrap_or(0))
}

fn usecs(rx_usecs: u32) -> Coalesce {
    Coalesce {
        rx_usecs: Some(rx_usecs),
        ..Coalesce::default()
    }
}

fn adaptive(on: bool) -> Coalesce {
    Coalesce {
        adaptive_rx: Some(on),
        ..Coalesce::default()
    }
}

/// The interval in microseconds that the device uses: EITR, read behind the driver's back.
fn interval(bed: &Testbed, vector: u32) -> Result<u32> {
    const EITR: u32 = 0x1680;
    let value = bed.read_register(bed.local, EITR + 4 * vector)?;
    Ok(value >> 2 & 0x1fff)
}

fn assert_intervals(bed: &Testbed, wanted: [u32; CPUS as usize]) -> Result {
    for (vector, wanted) in (0..).zip(wanted) {
        assert_eq!(interval(bed, vector)?, wanted, "vector {vector}");
    }
    Ok(())
}

/// The intervals of DIM's profiles, in microseconds (lib/dim/net_dim.c).
const PROFILES: [u32; 5] = [1, 8, 64, 128, 256];

/// Asserts that DIM's last decision about queue pair 1 is still in the device after a change. Now
/// and then it makes a new decision at that very moment.
fn assert_dim_goes_on(bed: &Testbed, what: &str, change: impl Fn(u32) -> Result) -> Result {
    let mut seen = Vec::new();
    for attempt in 0..5 {
        let before = interval(bed, 1)?;
        change(attempt)?;
        let after = interval(bed, 1)?;
        if before == after && PROFILES.contains(&after) {
            return Ok(());
        }
        seen.push((before, after));
    }
    panic!("{what}: intervals before and after: {seen:?}");
}

/// Has queue pair 1 receive until DIM has decided something about its interrupts.
fn wait_for_dim(bed: &Testbed) -> Result {
    let before = interval(bed, 1)?;
    // It decides after at least 64 interrupts.
    for _ in 0..100 {
        bed.stream(bed.peer, bed.local, Family::V4)
            .reaching(bed, 1)?
            .transfer(bed, 2 * MIB, &[64 << 10])?;
        let now = interval(bed, 1)?;
        if now != before {
            assert!(PROFILES.contains(&now), "{now} us");
            return Ok(());
        }
    }
    panic!("the interval stayed at {before} us");
}

#[test]
fn interrupts_are_coalesced_as_the_user_says() -> Result {
    let bed = Testbed::options().cpus(CPUS).boot("coalescing")?;
    for queue in [None, Some(0), Some(CPUS - 1)] {
        assert_eq!(get(&bed, queue)?, (400, false), "at first, {queue:?}");
    }

    assert_intervals(&bed, [400; 3])?;
    for all in [0, 1, 8191] {
        assert_eq!(set(&bed, None, usecs(all)), None);
        assert_eq!(get(&bed, Some(1))?, (all, false));
        assert_intervals(&bed, [all; 3])?;
        bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    }

    // One queue is set independently; invalid settings are refused and change nothing.
    assert_eq!(set(&bed, Some(1), usecs(100)), None);
    assert_eq!(get(&bed, Some(1))?, (100, false));
    assert_eq!(get(&bed, Some(2))?, (8191, false));
    assert_intervals(&bed, [8191, 100, 8191])?;
    for (queue, coalesce) in [
        (None, usecs(8192)),
        (Some(1), usecs(10_000)),
        (Some(CPUS), usecs(10)),
        (
            None,
            Coalesce {
                tx_usecs: Some(10),
                ..Coalesce::default()
            },
        ),
    ] {
        let errno = set(&bed, queue, coalesce);
        assert_eq!(errno, Some(EINVAL), "{queue:?} {coalesce:?}");
    }
    assert_eq!(get(&bed, Some(1))?, (100, false));
    assert_intervals(&bed, [8191, 100, 8191])?;

    // Down and up, another MTU, other rings, other channels: the setting stays.
    bed.set_interface(bed.local, false)?;
    assert_eq!(get(&bed, Some(1))?, (100, false));
    assert_eq!(set(&bed, Some(2), usecs(50)), None);
    bed.set_interface(bed.local, true)?;
    bed.set_mtu(bed.local, 9000)?;
    bed.set_receive_ring(bed.local, 512)?;
    bed.set_header_split(bed.local, TcpDataSplit::On)?;
    for combined in [1, CPUS] {
        bed.set_channels(bed.local, combined)?;
    }
    bed.wait_carrier(true)?;
    let all = [(8191, false), (100, false), (50, false)];
    for (queue, wanted) in (0..).zip(all) {
        assert_eq!(get(&bed, Some(queue))?, wanted, "queue {queue}");
    }
    assert_intervals(&bed, [8191, 100, 50])?;
    bed.finish()
}

#[test]
fn intervals_adapt_where_the_user_wants_it_and_only_there() -> Result {
    let bed = Testbed::options().cpus(CPUS).boot("coalescing-adaptive")?;
    assert_eq!(set(&bed, None, usecs(8191)), None);
    assert_eq!(set(&bed, Some(1), adaptive(true)), None);
    assert_eq!(get(&bed, Some(1))?, (8191, true));
    assert_eq!(get(&bed, Some(0))?, (8191, false));
    wait_for_dim(&bed)?;
    assert_eq!(interval(&bed, 0)?, 8191);
    assert_eq!(interval(&bed, 2)?, 8191);

    // DIM carries on from where it was across other changes, and ends when turned off.
    assert_dim_goes_on(&bed, "after a change of rings", |attempt| {
        bed.set_receive_ring(bed.local, 512 + 64 * attempt)
    })?;
    assert_dim_goes_on(&bed, "after down and up", |_| bed.down_and_up(bed.local))?;
    bed.wait_carrier(true)?;
    assert_eq!(get(&bed, Some(1))?, (8191, true));
    wait_for_dim(&bed)?;
    // Not for all queues: the core compares with the first one, and would see no change.
    assert_eq!(set(&bed, Some(1), adaptive(false)), None);
    for _ in 0..4 {
        bed.transfer(bed.peer, bed.local, Family::V6, 2 * MIB)?;
        assert_intervals(&bed, [8191; 3])?;
    }

    // It also applies to queues that are not in use when it is set.
    bed.set_interface(bed.local, false)?;
    assert_eq!(set(&bed, None, adaptive(true)), None);
    bed.set_interface(bed.local, true)?;
    assert_intervals(&bed, [8191; 3])?;
    bed.wait_carrier(true)?;
    wait_for_dim(&bed)?;

    // Unload the driver while DIM may be about to decide.
    bed.transfer(bed.peer, bed.local, Family::V4, 4 * MIB)?;
    bed.guest
        .call(protocol::kernel::UnloadModule::new(bed.driver()))?;
    bed.finish()
}
