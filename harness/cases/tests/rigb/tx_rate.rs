// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rate limits of TX queues. QEMU's model has none, and takes no notice of their registers.

use std::{fs, path::Path, time::Duration};

use cases::{Ability, Family, Result, Testbed};
use protocol::kernel::WriteFile;
use vm::Wire;

const MIB: u64 = 1 << 20;
/// In Mb/s: MIB takes 420 ms.
const RATE: u64 = 20;
/// Of two processors.
const QUEUES: u32 = 2;
/// The source of frames of the NIC under test (`vm::Wire::mac`).
const LOCAL: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];

/// What the NIC under test has sent since the capture had so many bytes: in how long, and how many bytes.
fn sent(capture: &Path, from: usize) -> Result<(Duration, u64)> {
    let bytes = fs::read(capture)?;
    let mut rest = bytes.get(from..).unwrap_or_default();
    let (mut times, mut sum) = (Vec::new(), 0);
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let field = |n: usize| u32::from_ne_bytes(header[4 * n..4 * n + 4].try_into().expect("4"));
        let (frame, next) = behind.split_at(field(2) as usize);
        if frame[6..12] == LOCAL {
            times.push(Duration::new(field(0).into(), field(1) * 1000));
            sum += u64::from(field(3));
        }
        rest = next;
    }
    let took = times.last().zip(times.first());
    Ok((
        took.map_or(Duration::ZERO, |(last, first)| *last - *first),
        sum,
    ))
}

#[test]
fn a_queue_sends_no_faster_than_its_limit_which_outlives_a_reset_of_the_device() -> Result {
    let bed = Testbed::options()
        .needs([Ability::TxMaxRate])
        .needs_kernel(["SUSPEND"])
        .boot("tx-rate")?;
    // The kernel chooses the queue by the flow.
    let limit = |rate: u64| -> Result {
        for queue in 0..QUEUES {
            let name = bed.local.name();
            bed.guest.call(WriteFile {
                ns: bed.local.ns,
                path: format!("/sys/class/net/{name}/queues/tx-{queue}/tx_maxrate"),
                contents: rate.to_string(),
            })?;
        }
        Ok(())
    };
    let capture = bed.guest.pcap(Wire(0));
    let send = || -> Result<(Duration, u64)> {
        let before = fs::metadata(&capture)?.len();
        let stream = bed.stream(bed.local, bed.peer, Family::V4);
        stream.transfer(&bed, MIB, &[64 << 10])?;
        sent(&capture, usize::try_from(before)?)
    };
    // A tenth for when frames were captured: the wire has no clock of its own.
    let takes_its_time = |(took, bytes): (Duration, u64)| {
        assert!(bytes > MIB, "{bytes}");
        let least = Duration::from_micros(bytes * 8 / RATE) * 9 / 10;
        assert!(took > least, "{bytes} in {took:?}, not {least:?}");
    };
    limit(RATE)?;
    takes_its_time(send()?);
    bed.sleep_and_wake()?;
    bed.wait_carrier(true)?;
    takes_its_time(send()?);

    limit(0)?;
    let (took, _) = send()?;
    println!("without a limit: {took:?}");
    bed.finish()?;
    Ok(())
}
