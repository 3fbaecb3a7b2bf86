// SPDX-License-Identifier: MIT OR Apache-2.0

//! The pictures of where the bytes went. They are at most 100 columns wide.

use std::fmt::{Formatter, Result};

use indicatif::HumanBytes;

use super::compare::{Compared, Way};
use super::report::{Direction, Report};

/// Both transfers, between the peer and the memories of this end.
pub(super) fn transfers(f: &mut Formatter<'_>, report: &Report) -> Result {
    let payload = |direction: &Direction| HumanBytes(direction.bytes).to_string();
    let headers = |direction: &Direction| {
        let frames: u64 = direction.bytes_by_queue.iter().sum();
        HumanBytes(frames.saturating_sub(direction.bytes)).to_string()
    };
    let (rx, tx) = (&report.rx, &report.tx);
    let (rx_payload, rx_headers) = (payload(rx), headers(rx));
    let (tx_payload, tx_headers) = (payload(tx), headers(tx));
    let memory = report.memory;
    let queue = rx.queue;
    writeln!(
        f,
        "  peer0 (rigb)                        nic0 (82576, rigb)
  namespace peer                      TCP on queue {queue}, header split on
 +---------------+                   +---------------------+
 | host memory   | ===== wire =====> | headers {rx_headers:>11} | --> host RAM, read by TCP
 | 192.0.2.2     |                   | payload {rx_payload:>11} | ==> {memory}, written by the NIC
 |               |                   +---------------------+
 |               |                   | headers {tx_headers:>11} | <-- host RAM, written by TCP
 |               | <==== wire ====== | payload {tx_payload:>11} | <== {memory}, read by the NIC
 +---------------+                   +---------------------+
"
    )
}

/// One transfer in two ways, side by side: what the host found in both memories, and what the
/// processor did in the accelerator's.
pub(super) fn compared(f: &mut Formatter<'_>, compared: &Compared) -> Result {
    let Compared { devmem, copy, .. } = compared;
    let bytes = |count: u64| HumanBytes(count).to_string();
    let touched = |way: &Way| bytes(way.loaded + way.stored);
    let (d_ram, c_ram) = (bytes(devmem.in_ram), bytes(copy.in_ram));
    let (d_acc, c_acc) = (bytes(devmem.in_accelerator), bytes(copy.in_accelerator));
    let (d_cpu, c_cpu) = (touched(devmem), touched(copy));
    let total = bytes(compared.bytes);
    writeln!(
        f,
        "  The same transfer in two ways: {total} into the accelerator, every load and store counted.

  device memory TCP                              TCP and a copy
 +-----+           +----------------------+     +-----+           +----------------------+
 |     |  headers  | host RAM             |     |     |  headers  | host RAM             |
 |     | --------> |   payload {d_ram:>10} |     |     | ========> |   payload {c_ram:>10} |
 |     |           +----------------------+     |     |  payload  +----------------------+
 | NIC |                                        | NIC |                     ||
 |     |           CPU touches {d_cpu:>10}       |     |           CPU touches {c_cpu:>10}
 |     |                                        |     |                     vv
 |     |  payload  +----------------------+     |     |           +----------------------+
 |     | ========> | accelerator          |     |     |           | accelerator          |
 |     |           |   payload {d_acc:>10} |     |     |           |   payload {c_acc:>10} |
 +-----+           +----------------------+     +-----+           +----------------------+
  In host RAM: what the host found of the payload there, when all of it had arrived.
  CPU touches: bytes that the processor loaded from and stored in the accelerator's memory;
  what it does with payload in host RAM comes on top.
"
    )
}
