// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends a TCP stream.

use std::{io::Write, net::TcpStream, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use protocol::{JobId, Payload, TcpSource, tcp::SourceReport};

use super::{job::Ready, report::Meter, switch::Switch, tcp};

pub(super) fn set_up(id: JobId, spec: TcpSource) -> Result<Ready> {
    ensure!(
        !spec.chunks.is_empty() && !spec.chunks.contains(&0),
        "chunks must name at least one size and no 0, but is {:?}",
        spec.chunks
    );
    let stream = tcp::connect(spec.ns, spec.bind, spec.connect)?;
    if spec.hop_by_hop != 0 {
        tcp::set_hop_by_hop(&stream, spec.hop_by_hop)?;
    }
    let switch = Switch::watching("TcpSource", &stream);
    Ok(Ready::new::<TcpSource, _>(switch, move |switch| {
        run(id, &spec, &stream, switch)
    }))
}

fn run(id: JobId, spec: &TcpSource, stream: &TcpStream, switch: &Switch) -> SourceReport {
    let mut report = SourceReport::default();
    let payload = Payload::new(spec.seed);
    let total = spec.bytes.unwrap_or(u64::MAX);
    let largest = spec.chunks.iter().max().copied().unwrap_or_default();
    let mut buffer = vec![0; largest as usize];
    let mut meter = Meter::new(id);
    meter.start();

    let mut result = Ok(());
    for &chunk in spec.chunks.iter().cycle() {
        if report.bytes == total || switch.finishing() {
            break;
        }
        let length = u64::from(chunk).min(total - report.bytes) as usize;
        let chunk = &mut buffer[..length];
        payload.fill(report.bytes, chunk);
        result = send(stream, chunk, &mut report.bytes).context("sending");
        if result.is_err() {
            break;
        }
        meter.passed(report.bytes);
        if spec.pause_us != 0 {
            thread::sleep(Duration::from_micros(spec.pause_us));
        }
    }

    let delivered = result.and_then(|()| tcp::deliver(stream, switch));
    report.delivered = matches!(delivered, Ok(true));
    report.error = switch.failure(delivered);
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
