// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC that lies: each kind of lie on its own, and plans of several.

use cases::{
    Family, Result,
    hostile::{Device, Outcome, Target, campaign, corpus},
};
use model::lies::{Kind, Lie, Plan};
use protocol::{DevmemSink, Release, devmem::DevmemSinkReport, link::LinkStats};

/// After how many occasions a lie is told, and how often.
const OFTEN: [(u32, u32); 3] = [(0, 1), (5, 3), (20, u32::MAX)];
/// The same of reads: where nothing but a queue is restarted there are four.
const OFTEN_READ: [(u32, u32); 3] = [(0, 1), (2, 3), (3, u32::MAX)];
/// Guests of a campaign at once.
const GUESTS: usize = 3;
/// Of 30 plans, how many may need the interface to be brought up or the driver to be bound anew: those whose registers
/// read as anything while that matters.
const MOST_HELP: usize = 2;
/// Values that differ in what they change.
const VALUES: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

/// A plan for each of `kinds`, as often as there are occasions and values.
fn one_by_one(kinds: &[Kind], often: [(u32, u32); 3]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for &kind in kinds {
        for (after, times) in often {
            for value in VALUES {
                let lie = Lie {
                    after,
                    times,
                    ..Lie::once(kind, value)
                };
                plans.push(Plan { lies: vec![lie] });
            }
        }
    }
    plans
}

/// Carries out plans in one guest, and returns those that the driver did not come through by itself.
fn survives(plans: Vec<Plan>) -> Result<Vec<(Plan, Outcome)>> {
    let victim = Target::of_case(Device::Nic).boot("hostile-kind")?;
    let lies = |plan: &Plan| plan.lies.iter().map(|lie| lie.kind).collect::<Vec<_>>();
    let mut never_told: Vec<_> = plans.iter().flat_map(lies).collect();
    let mut hard = Vec::new();
    for plan in plans {
        match victim.attack(&plan) {
            Ok((outcome, told)) => {
                println!("{plan:?}: {outcome:?}, told {told:?}");
                for (lie, told) in plan.lies.iter().zip(told) {
                    never_told.retain(|&kind| told == 0 || kind != lie.kind);
                }
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
    assert_eq!(never_told, []);
    let logs = victim.bed().guest.directory().to_owned();
    if let Err(trouble) = victim.rest() {
        panic!("at the end: {trouble}; logs are in {}", logs.display());
    }
    Ok(hard)
}

/// A case for each.
macro_rules! kinds {
    ($($name:ident: $($kind:ident),*;)*) => {
        /// What these cases tell.
        const TOLD: &[Kind] = &[$($(Kind::$kind),*),*];
        $(
            #[test]
            fn $name() -> Result {
                assert_eq!(survives(one_by_one(&[$(Kind::$kind),*], OFTEN))?, []);
                Ok(())
            }
        )*
    };
}

kinds! {
    lengths_that_are_wrong_do_no_harm: Length, HeaderLength, SplitFlag, EndOfPacket;
    words_about_packets_that_are_wrong_do_no_harm: Status, PacketType, Hash, Vlan, Timestamp;
    packets_that_are_not_split_or_not_there_do_no_harm: Unsplit, Corrupt, NoData, Lost, Queue;
    descriptors_out_of_order_do_no_harm: Missing, Late, Premature, Repeated;
    a_transmitter_that_hangs_or_lies_does_no_harm: Hang, NoReport, StrayReport, Unsent;
    interrupts_that_are_lost_or_come_from_nowhere_do_no_harm: LostInterrupt, SpuriousInterrupt, SpuriousCause;
    queues_and_links_that_misbehave_do_no_harm: Stuck, LinkFlap, Clock;
    writes_that_are_lost_do_no_harm: LostWrite;
}

/// Lies after which a driver may need help.
const HARD: [Kind; 2] = [Kind::Ones, Kind::Garbage];

// Each kind that seeds make has a case.
const _: () = {
    let mut at = 0;
    while at < Kind::ALL.len() {
        assert!(has(TOLD, Kind::ALL[at]) || has(&HARD, Kind::ALL[at]));
        at += 1;
    }
};

const fn has(kinds: &[Kind], kind: Kind) -> bool {
    let mut at = 0;
    while at < kinds.len() && kinds[at] as u8 != kind as u8 {
        at += 1;
    }
    at < kinds.len()
}

#[test]
fn registers_that_read_as_anything_do_no_harm() -> Result {
    let mut hard = survives(one_by_one(&HARD, OFTEN_READ))?;
    // A device that is gone for long is detached.
    hard.retain(|(plan, _)| plan.lies.iter().all(|lie| lie.times != u32::MAX));
    assert_eq!(hard, []);
    Ok(())
}

#[test]
fn what_a_register_reads_as_once_is_not_written_to_it_for_good() -> Result {
    const READS: u32 = 16;
    // With the first value the interface goes down and up, with the second one all-multicast goes on and off.
    let values = [0x0123_4560_89ab_cdef, 0x0123_4564_89ab_cdef];
    let plan = |after, value| Plan {
        lies: vec![Lie {
            after,
            ..Lie::once(Kind::Garbage, value)
        }],
    };
    let plans = values.map(|value| (0..READS).map(move |after| plan(after, value)));
    assert_eq!(survives(plans.into_iter().flatten().collect())?, []);
    Ok(())
}

#[test]
fn a_link_that_goes_down_and_up_while_an_access_fails_does_not_stay_down() -> Result {
    const ACCESSES: u32 = 12;
    let plan = |kind, after| Plan {
        lies: vec![
            Lie::once(Kind::LinkFlap, VALUES[0]),
            Lie {
                after,
                ..Lie::once(kind, VALUES[0])
            },
        ],
    };
    let kinds = [Kind::Ones, Kind::Garbage, Kind::LostWrite];
    let plans = kinds.map(|kind| (0..ACCESSES).map(move |after| plan(kind, after)));
    assert_eq!(survives(plans.into_iter().flatten().collect())?, []);
    Ok(())
}

#[test]
fn a_queue_that_reads_as_ones_while_it_is_restarted_does_no_harm() -> Result {
    let ones = |after, times| Lie {
        after,
        times,
        ..Lie::once(Kind::Ones, VALUES[0])
    };
    // It never comes to rest, and one read of those that wait for that is of ones.
    let once = (0..4).map(|after| vec![Lie::once(Kind::Stuck, VALUES[0]), ones(after, 1)]);
    // So long that it counts as gone, and does not start; not with the memory of before, either.
    let long = (0..4).map(|after| vec![ones(after, 40)]);
    let plans = once.chain(long).map(|lies| Plan { lies }).collect();
    assert_eq!(survives(plans)?, []);
    Ok(())
}

/// Receives in device memory while the NIC lies about each so many packets. All bytes must arrive, and the kernel must
/// not complain of what they are in. Returns how many lies were told, and how many packets were dropped, too.
fn receive(
    name: &str,
    mtu: u32,
    (each, lies): (usize, &[(Kind, u64)]),
    verify: bool,
) -> Result<(DevmemSinkReport, u64, u64)> {
    // More packets than there are lies, and memory for all of them: TCP holds a buffer for each packet behind a lost one,
    // and the retransmission needs a buffer, too.
    let bytes = 400 * u64::from(mtu);
    const MEMORY: u64 = 4 << 20;
    let victim = Target::of_case(Device::Nic).boot(name)?;
    let bed = victim.bed();
    bed.set_mtu(bed.peer, mtu)?;
    let plan = (20..320).step_by(each).flat_map(|after| {
        lies.iter().map(move |&(kind, value)| Lie {
            after,
            ..Lie::once(kind, value)
        })
    });
    let plan = Plan {
        lies: plan.collect(),
    };
    victim.lie(&plan)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let sink = bed.guest.start(DevmemSink {
        verify,
        ..stream.devmem_sink_spec(1, MEMORY, Release::Immediate)
    })?;
    let source = stream.source(bed, Some(bytes), &[64 << 10], 0)?;
    let report = sink.join()?;
    source.join()?;
    let told = victim.lie(&Plan::default())?;
    for (kind, _) in lies {
        let mut of_kind = plan.lies.iter().zip(&told);
        let is_told = of_kind.any(|(lie, &told)| lie.kind == *kind && told > 0);
        assert!(is_told, "{kind} was never told");
    }
    let told = told.into_iter().map(u64::from).sum();
    let LinkStats {
        rx_errors,
        rx_dropped,
        ..
    } = bed.link_stats(bed.local)?;
    assert_eq!(report.bytes, bytes, "{report:?}");
    victim
        .rest()
        .unwrap_or_else(|trouble| panic!("at the end: {trouble}"));
    Ok((report, told, rx_errors + rx_dropped))
}

/// What arrives is wrong, and some of it is linear.
fn arrives_whole(name: &str, mtu: u32, lies: &[(Kind, u64)]) -> Result {
    let (report, ..) = receive(name, mtu, (3, lies), false)?;
    assert_ne!(report.linear_bytes, 0, "{report:?}");
    Ok(())
}

/// The driver sees that what is said can't be: what arrives is right, and the rest is dropped.
fn arrives_right(name: &str, kind: Kind, value: u64) -> Result {
    let (report, told, dropped) = receive(name, 1500, (60, &[(kind, value)]), true)?;
    assert_eq!((report.mismatch, report.linear_bytes), (None, 0));
    assert!(dropped >= told, "{dropped} of {told}");
    Ok(())
}

#[test]
fn a_packet_longer_than_its_buffer_is_dropped() -> Result {
    // That is 0xffff bytes.
    arrives_right("hostile-long", Kind::Length, 2)
}

#[test]
fn a_packet_with_headers_longer_than_their_buffer_is_dropped() -> Result {
    // There is room behind what the device may fill, and in it is what was there before.
    arrives_right("hostile-long-head", Kind::HeaderLength, 300)
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
fn pieces_that_were_never_received_are_not_taken_for_payload() -> Result {
    // As long as a buffer: it goes on in the next one.
    const PAGE: u64 = 4096;
    let lies = [
        (Kind::Premature, 1),
        (Kind::EndOfPacket, 0),
        (Kind::Length, PAGE << 8 | 3),
    ];
    let (report, _, dropped) = receive("hostile-made-up", 9000, (9, &lies), true)?;
    assert_eq!(report.mismatch, None);
    assert_ne!(dropped, 0);
    Ok(())
}

#[test]
fn headers_of_one_packet_and_payload_of_another_are_not_taken_for_a_packet() -> Result {
    // A descriptor without payload goes on in the next one, of which the device has verified all.
    let lies = [(Kind::Length, 0), (Kind::EndOfPacket, 0)];
    let (report, told, dropped) = receive("hostile-swapped", 1500, (9, &lies), true)?;
    assert_eq!(report.mismatch, None);
    assert!(dropped >= told / 2, "{dropped} of {told}");
    Ok(())
}

#[test]
fn memory_that_a_queue_had_is_not_written_once_it_rests_and_a_device_that_tries_fails_the_case()
-> Result {
    let victim = Target::of_case(Device::Nic).boot("hostile-after-stop")?;
    let bed = victim.bed();
    let lie = Lie::once(Kind::AfterStop, 1);
    victim.lie(&Plan { lies: vec![lie] })?;
    bed.transfer(bed.peer, bed.local, Family::V4, 256 << 10)?;
    assert_eq!(victim.lie(&Plan { lies: vec![lie] })?, [0]);
    bed.set_interface(bed.local, false)?;
    assert_eq!(victim.lie(&Plan::default())?, [1]);
    let error = victim.rest().expect_err("the model has said something");
    let text = error.to_string();
    assert!(text.contains("violation: NotLent at"), "{text}");
    Ok(())
}

/// Carries out the plans of these seeds. Returns those that the driver did not come through by itself.
fn survives_plans(seeds: Vec<u64>) -> Vec<u64> {
    let tally = campaign(Target::of_case(Device::Nic), GUESTS, seeds, |_| ());
    assert!(
        tally.is_whole() && tally.harms() == 0 && tally.lies != 0,
        "{tally:#?}"
    );
    tally.not_recovered
}

#[test]
fn plans_of_several_lies_do_no_harm_and_few_need_help() {
    let needed_help = survives_plans((0..30).collect());
    assert!(needed_help.len() <= MOST_HELP, "{needed_help:?}");
}

#[test]
fn plans_that_once_did_harm_do_none() {
    survives_plans(corpus(Device::Nic));
}
