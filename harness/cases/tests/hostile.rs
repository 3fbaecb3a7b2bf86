// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC that lies: each kind of lie on its own, and plans of several.

use cases::{
    Family, Result,
    hostile::{Device, Outcome, Target, campaign, corpus},
};
use model::lies::{Kind, Lie, Plan};
use protocol::{DevmemSink, Release};

/// After how many occasions a lie is told, and how often.
const OFTEN: [(u32, u32); 3] = [(0, 1), (5, 3), (20, u32::MAX)];
/// Guests of a campaign at once.
const GUESTS: usize = 3;
/// Values that differ in what they change.
const VALUES: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

/// Carries out plans of one kind, and returns those that the driver did not come through by itself.
fn survives(kinds: &[Kind]) -> Result<Vec<(Plan, Outcome)>> {
    let victim = Target::of_case(Device::Nic).boot("hostile-kind")?;
    let mut hard = Vec::new();
    for kind in kinds {
        let mut count = 0;
        for (after, times) in OFTEN {
            for value in VALUES {
                let lie = Lie {
                    kind: *kind,
                    after,
                    times,
                    value,
                };
                let plan = Plan { lies: vec![lie] };
                match victim.attack(&plan) {
                    Ok((outcome, told)) => {
                        count += told.iter().copied().map(u64::from).sum::<u64>();
                        println!("{kind} {after} {times} {value:#x}: {outcome:?}, told {told:?}");
                        if matches!(outcome, Outcome::Restarted | Outcome::Detached) {
                            hard.push((plan, outcome));
                        }
                    }
                    Err(trouble) => panic!(
                        "{plan:?}: {trouble}; logs are in {}",
                        victim.bed().guest.directory().display()
                    ),
                }
            }
        }
        assert_ne!(count, 0, "{kind} was never told");
    }
    let logs = victim.bed().guest.directory().to_owned();
    if let Err(trouble) = victim.rest() {
        panic!("at the end: {trouble}; logs are in {}", logs.display());
    }
    Ok(hard)
}

/// A case for each.
macro_rules! kinds {
    ($($name:ident: $($kind:ident),*;)*) => { $(
        #[test]
        fn $name() -> Result {
            assert_eq!(survives(&[$(Kind::$kind),*])?, []);
            Ok(())
        }
    )* };
}

kinds! {
    lengths_that_are_wrong_do_no_harm: Length, HeaderLength, SplitFlag, EndOfPacket;
    words_about_packets_that_are_wrong_do_no_harm: Status, PacketType, Hash, Vlan, Timestamp;
    packets_that_are_not_split_or_not_there_do_no_harm: Unsplit, Corrupt, NoData, Lost;
    descriptors_out_of_order_do_no_harm: Missing, Late, Premature;
    a_transmitter_that_hangs_or_lies_does_no_harm: Hang, NoReport, StrayReport, Unsent;
    interrupts_that_are_lost_or_come_from_nowhere_do_no_harm: LostInterrupt, SpuriousInterrupt, SpuriousCause;
    queues_and_links_that_misbehave_do_no_harm: Stuck, LinkFlap, Clock;
}

#[test]
fn registers_that_read_as_anything_do_no_harm() -> Result {
    let mut hard = survives(&[Kind::Ones, Kind::Garbage, Kind::LostWrite])?;
    // A device that is gone for long is detached. Nobody learns that the link's interrupt stays masked, or that
    // a ring which has run empty has buffers again, until the interface goes down and up: no more is needed.
    hard.retain(|(plan, outcome)| {
        let mut lies = plan.lies.iter();
        lies.all(|lie| match lie.kind {
            Kind::LostWrite => *outcome != Outcome::Restarted,
            _ => lie.times != u32::MAX,
        })
    });
    assert_eq!(hard, []);
    Ok(())
}

/// Receives in device memory while the NIC lies about every third packet. All bytes must arrive, though wrong
/// ones, some of them as linear ones, and the kernel must not complain of what they are in.
fn arrives_whole(name: &str, mtu: u32, lies: &[(Kind, u64)]) -> Result {
    const BYTES: u64 = 512 << 10;
    let victim = Target::of_case(Device::Nic).boot(name)?;
    let bed = victim.bed();
    bed.set_mtu(bed.peer, mtu)?;
    let lies = (20..320).step_by(3).flat_map(|after| {
        lies.iter().map(move |&(kind, value)| Lie {
            kind,
            after,
            times: 1,
            value,
        })
    });
    victim.lie(&Plan {
        lies: lies.collect(),
    })?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let sink = bed.guest.start(DevmemSink {
        verify: false,
        ..stream.devmem_sink_spec(1, 1 << 20, Release::Immediate)
    })?;
    let source = stream.source(bed, Some(BYTES), &[64 << 10], 0)?;
    let report = sink.join()?;
    source.join()?;
    let told = victim.lie(&Plan::default())?;
    assert_ne!(told.iter().sum::<u32>(), 0);
    assert_eq!(report.bytes, BYTES, "{report:?}");
    assert_ne!(report.linear_bytes, 0, "{report:?}");
    victim
        .rest()
        .unwrap_or_else(|trouble| panic!("at the end: {trouble}"));
    Ok(())
}

#[test]
fn payload_in_a_linear_part_is_not_put_among_fragments_of_device_memory() -> Result {
    // More than an skb of the NAPI's has room for: the buffer itself becomes the skb's head.
    arrives_whole("hostile-head", 1500, &[(Kind::HeaderLength, 250)])
}

#[test]
fn fragments_of_device_memory_are_not_put_behind_payload_in_a_linear_part() -> Result {
    // All of a packet is headers, of the length that its IP header says: GRO adds the next one to it.
    let mtu = 200;
    let whole = u64::from(mtu) + 14;
    let lies = [(Kind::HeaderLength, whole), (Kind::Length, 0)];
    arrives_whole("hostile-whole", mtu, &lies)
}

#[test]
fn memory_that_a_queue_had_is_not_written_once_it_rests_and_a_device_that_tries_fails_the_case()
-> Result {
    let victim = Target::of_case(Device::Nic).boot("hostile-after-stop")?;
    let bed = victim.bed();
    let lie = Lie {
        kind: Kind::AfterStop,
        after: 0,
        times: 1,
        value: 1,
    };
    victim.lie(&Plan { lies: vec![lie] })?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    stream.transfer(bed, 256 << 10, &[64 << 10])?;
    assert_eq!(victim.lie(&Plan { lies: vec![lie] })?, [0]);
    bed.set_interface(bed.local, false)?;
    assert_eq!(victim.lie(&Plan::default())?, [1]);
    let error = victim.rest().expect_err("the model has said something");
    let text = error.to_string();
    assert!(text.contains("violation: NotLent at"), "{text}");
    Ok(())
}

/// Carries out the plans of these seeds.
fn survives_plans(seeds: Vec<u64>) {
    let tally = campaign(Target::of_case(Device::Nic), GUESTS, seeds, |_| ());
    assert!(
        tally.is_whole() && tally.harms() == 0 && tally.lies != 0,
        "{tally:#?}"
    );
}

#[test]
fn plans_of_several_lies_do_no_harm() {
    survives_plans((0..30).collect());
}

#[test]
fn plans_that_once_did_harm_do_none() {
    survives_plans(corpus(Device::Nic));
}
