// SPDX-License-Identifier: MIT OR Apache-2.0

//! When received packets are written back: by RXDCTL.WTHRESH and SWFLSH, or after a while (82576 datasheet, chapter
//! "Receive Descriptor Write-Back").

use super::*;

/// How many descriptors are done.
fn done(port: &Port) -> usize {
    let is_done = |n: &u64| rx::is_done(port.get(RX_RING + n * 16 + 8));
    (0..8).take_while(is_done).count()
}

#[test]
fn packets_are_written_back_when_they_are_as_many_as_the_threshold_or_wait_or_are_flushed() {
    let port = &mut Port::new();
    let control = rxdctl::ENABLE | regs::thresholds(8, 8, 4);
    port.write(regs::rxdctl(1), control);
    port.post(8);
    let receive = |port: &mut Port| port.nic.receive(&segment(&[7; 100]), &mut port.host);
    for _ in 0..3 {
        receive(port);
        port.later(0);
        assert_eq!((done(port), port.host.interrupts.len()), (0, 0));
    }
    receive(port);
    port.later(0);
    assert_eq!((done(port), port.host.interrupts.len()), (4, 1));

    receive(port);
    port.later(49_999);
    assert_eq!(done(port), 4);
    port.later(1);
    assert_eq!(done(port), 5);

    receive(port);
    port.write(regs::rxdctl(1), control | rxdctl::SWFLSH);
    port.later(0);
    assert_eq!(done(port), 6);
    assert_eq!(port.read(regs::rxdctl(1)), control, "it clears itself");
}
