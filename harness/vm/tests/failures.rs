// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a guest that goes wrong is called.

mod common;

use std::time::Duration;

use common::{boot, images};
use protocol::{
    Ns,
    agent::{Hello, Panic},
    kernel::{LogLine, WriteFile},
};
use vm::{Error, Guest, Machine};

#[test]
fn a_complaint_of_the_kernel_fails_the_run_unless_it_was_expected() {
    let complain = |guest: &Guest| {
        let text = "WARNING: this is only a test".to_owned();
        guest.call(LogLine { text }).unwrap();
    };
    let guest = boot("complaint");
    complain(&guest);
    let error = guest.finish().unwrap_err();
    assert!(matches!(error, Error::KernelComplained { .. }), "{error}");
    assert!(error.to_string().contains("only a test"), "{error}");

    let guest = boot("complaint");
    guest.expect_log(&["only a test"]);
    complain(&guest);
    assert_eq!(guest.finish().unwrap().allowed.len(), 1);

    let guest = boot("complaint");
    guest.expect_log(&["something that never comes"]);
    let error = guest.finish().unwrap_err();
    assert!(matches!(error, Error::LogLineMissing { .. }), "{error}");
}

#[test]
fn a_kernel_panic_is_called_one() {
    let guest = boot("panic");
    let path = "/proc/sysrq-trigger".to_owned();
    let crash = WriteFile::new(Ns::Local, path, "c");
    let error = guest.call(crash).unwrap_err();
    assert!(matches!(error, Error::KernelPanic { .. }), "{error}");
    assert!(error.to_string().contains("sysrq"), "{error}");
}

#[test]
fn a_panic_of_the_agent_is_called_one_and_leaves_a_line_in_the_log() {
    let guest = boot("agent-panic");
    let message = "on request".to_owned();
    let error = guest.call(Panic { message }).unwrap_err();
    assert!(matches!(error, Error::AgentPanicked { .. }), "{error}");
    assert!(error.to_string().contains("on request"), "{error}");
    let log = guest.console_text();
    assert!(log.contains("agent panicked"), "{log}");
}

#[test]
fn a_qemu_that_does_not_start_is_quoted() {
    let machine = Machine::new().qemu_argument("-no-such-option");
    let error = machine.boot(&images(), "bad-argument").unwrap_err();
    assert!(matches!(error, Error::QemuEnded { .. }), "{error}");
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

#[test]
fn a_guest_that_does_not_answer_is_a_timeout_that_names_the_call_and_keeps_the_registers() {
    let guest = boot("silence");
    guest.monitor("stop", serde_json::json!({})).unwrap();
    let error = guest
        .call_within(Hello {}, Duration::from_secs(1))
        .unwrap_err();
    let Error::Timeout { logs, .. } = &error else {
        panic!("{error}");
    };
    assert!(error.to_string().contains("Hello"), "{error}");
    let registers = std::fs::read_to_string(logs.directory.join("registers.log")).unwrap();
    assert_eq!(registers.matches("RIP=").count(), 2, "{registers}");
    assert!(error.to_string().contains("\nRIP="), "{error}");
}

#[test]
fn nics_of_ours_want_their_program_and_its_end_is_called_one() {
    let machine = Machine::new().nic(vm::OUR_NIC);
    let images = vm::Images {
        devices: None,
        ..images()
    };
    let error = machine.boot(&images, "no-devices").unwrap_err();
    assert!(error.to_string().contains("models of devices"), "{error}");
    // One that ends at once: QEMU has nobody to connect to.
    let images = vm::Images {
        devices: Some("/bin/true".into()),
        ..images
    };
    let error = machine.boot(&images, "devices-end").unwrap_err();
    assert!(matches!(error, Error::QemuEnded { .. }), "{error}");
    assert!(error.to_string().contains("vfio-user"), "{error}");
}
