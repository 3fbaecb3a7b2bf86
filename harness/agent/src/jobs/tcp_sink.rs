// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream and checks it.

use std::{net::TcpListener, sync::Arc};

use anyhow::Result;
use protocol::{JobId, TcpSink, tcp::SinkReport};

use super::{
    job::Ready,
    receive,
    report::{Checker, Meter},
    switch::Switch,
    tcp,
};

/// Size of the receive buffer, in bytes.
const BUFFER: usize = 256 << 10;

pub(super) fn set_up(id: JobId, spec: TcpSink) -> Result<Ready> {
    let listener = tcp::listen(spec.ns, spec.listen, None)?;
    let switch = Switch::watching("TcpSink", &listener);
    Ok(Ready::new::<TcpSink, _>(switch, move |switch| {
        run(id, &spec, listener, switch)
    }))
}

fn run(id: JobId, spec: &TcpSink, listener: Arc<TcpListener>, switch: &Switch) -> SinkReport {
    let mut report = SinkReport::default();
    let mut checker = Checker::new(spec.seed);
    let mut meter = Meter::new(id);
    let received = tcp::accept(listener, switch, id).and_then(|stream| {
        receive::copied(&stream, BUFFER, |piece| {
            checker.check(report.bytes, piece);
            report.bytes += piece.len() as u64;
            meter.passed(report.bytes);
            Ok(())
        })
    });
    report.end_of_stream = received.is_ok() && !switch.stopped();
    report.error = switch.failure(received);
    report.mismatch = checker.mismatch();
    report.elapsed_ns = meter.elapsed_ns();
    report
}
