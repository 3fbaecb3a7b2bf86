// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends a TCP stream.

use std::{io::Write, net::TcpStream, sync::Arc, thread, time::Duration};

use anyhow::{Result, ensure};
use protocol::{JobId, Payload, TcpSource, tcp::SourceReport};

use super::{job::Ready, report::Meter, switch::Switch, tcp};
use crate::{failure, netns};

pub(super) fn set_up(id: JobId, spec: TcpSource) -> Result<Ready> {
    ensure!(
        !spec.chunks.is_empty() && !spec.chunks.contains(&0),
        "chunks must name at least one size and no 0, but is {:?}",
        spec.chunks
    );
    let stream = netns::within(spec.ns, || tcp::connect(spec.bind, spec.connect))?;
    if spec.hop_by_hop != 0 {
        tcp::set_hop_by_hop(&stream, spec.hop_by_hop)?;
    }
    let stream = Arc::new(stream);
    let switch = Switch::new("TcpSource");
    switch.watch(&stream);
    let control = Arc::clone(&switch);
    Ok(Ready::new::<TcpSource>(control, move || {
        run(id, &spec, &stream, &switch)
    }))
}

fn run(id: JobId, spec: &TcpSource, stream: &TcpStream, switch: &Switch) -> SourceReport {
    let mut report = SourceReport {
        bytes: 0,
        delivered: false,
        retransmits: 0,
        error: None,
        elapsed_ns: 0,
    };
    let payload = Payload::new(spec.seed);
    let total = spec.bytes.unwrap_or(u64::MAX);
    let largest = spec.chunks.iter().max().copied().unwrap_or_default();
    let mut buffer = vec![0; largest as usize];
    let mut meter = Meter::new(id);
    meter.start();

    for &chunk in spec.chunks.iter().cycle() {
        if report.bytes == total || switch.finishing() {
            break;
        }
        let length = u64::from(chunk).min(total - report.bytes) as usize;
        let chunk = &mut buffer[..length];
        payload.fill(report.bytes, chunk);
        if let Err(error) = send(stream, chunk, &mut report.bytes) {
            if !switch.stopped() {
                report.error = Some(failure::from_io("sending", &error));
            }
            break;
        }
        meter.passed(report.bytes);
        if spec.pause_us != 0 {
            thread::sleep(Duration::from_micros(spec.pause_us));
        }
    }

    if report.error.is_none() && !switch.stopped() {
        match tcp::deliver(stream, switch) {
            Ok(delivered) => report.delivered = delivered,
            Err(error) => report.error = Some(error),
        }
    }
    meter.end();
    report.elapsed_ns = meter.elapsed_ns();
    report.retransmits = tcp::retransmits(stream);
    report
}

/// Writes all of `chunk`, counting what the socket accepted.
fn send(mut stream: &TcpStream, mut chunk: &[u8], sent: &mut u64) -> std::io::Result<()> {
    while !chunk.is_empty() {
        let length = stream.write(chunk)?;
        *sent += length as u64;
        chunk = &chunk[length..];
    }
    Ok(())
}
