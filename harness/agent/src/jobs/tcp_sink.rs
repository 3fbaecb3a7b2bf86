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
use crate::{failure, netns};

/// Size of the receive buffer, in bytes.
const BUFFER: usize = 256 << 10;

pub(super) fn set_up(id: JobId, spec: TcpSink) -> Result<Ready> {
    let listener = Arc::new(netns::within(spec.ns, || tcp::listen(spec.listen, None))?);
    let switch = Switch::new("TcpSink");
    switch.watch(&listener);
    let control = Arc::clone(&switch);
    Ok(Ready::new::<TcpSink>(control, move || {
        run(id, &spec, listener, &switch)
    }))
}

fn run(id: JobId, spec: &TcpSink, listener: Arc<TcpListener>, switch: &Switch) -> SinkReport {
    let mut report = SinkReport {
        bytes: 0,
        mismatch: None,
        end_of_stream: false,
        error: None,
        elapsed_ns: 0,
    };
    let stream = match tcp::accept(listener, switch, id) {
        Ok(Some(stream)) => stream,
        Ok(None) => return report,
        Err(error) => {
            report.error = Some(error);
            return report;
        }
    };

    let mut checker = Checker::new(spec.seed);
    let mut meter = Meter::new(id);
    let received = receive::copied(&stream, BUFFER, |piece| {
        checker.check(report.bytes, piece);
        report.bytes += piece.len() as u64;
        meter.passed(report.bytes);
        Ok(())
    });
    if !switch.stopped() {
        report.end_of_stream = received.is_ok();
        report.error = received.err().map(|error| failure::from_error(&error));
    }
    report.mismatch = checker.mismatch();
    report.elapsed_ns = meter.elapsed_ns();
    report
}
