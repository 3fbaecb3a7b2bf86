// SPDX-License-Identifier: MIT OR Apache-2.0

//! The selftests that `rigb` is required to pass, each in a guest of its own; on our model of its NIC
//! those that want what QEMU's does not have, and, as it is to be an 82576 for any driver, some with the
//! kernel's `igb`. What passed when `Documentation/selftests.json` was written has to pass.

use std::env;
use std::path::{Path, PathBuf};

use cases::{CaseError, Driver, Result};
use kselftest::ENV;
use vm::Images;

/// The committed results, of the checkout that this runs in.
fn committed() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    Path::new(&package).join("../../Documentation/selftests.json")
}

fn passes(driver: Driver, case: &str) -> Result {
    let required = kselftest::choose(&[], false, driver)?;
    let Some(&test) = required.iter().find(|test| is_called(test, case)) else {
        let name = driver.name();
        return Err(CaseError::new(format!("{case} is not required of {name}")));
    };
    let manifest = env::var_os(ENV).ok_or_else(|| {
        CaseError::new(format!(
            "{ENV} names no guest: run `cargo xtask test kselftest`"
        ))
    })?;
    let images = Images::load(Path::new(&manifest))?;
    let report = kselftest::run(&images, driver, test, &mut |line| println!("{line}"));
    if let Some(logs) = report.logs {
        println!("logs: {}", logs.display());
    }
    Ok(kselftest::compare(
        &kselftest::read(&committed())?,
        &report.outcomes,
    )?)
}

/// Fails unless the cases are those that are required of a driver. Without results
/// from before there is nothing that a test could lose.
fn are_all(driver: Driver, cases: &[&str]) -> Result {
    let required = kselftest::choose(&[], false, driver)?;
    let called = required
        .iter()
        .zip(cases)
        .all(|(test, case)| is_called(test, case));
    assert!(
        called && required.len() == cases.len(),
        "required: {required:?}, cases: {cases:?}"
    );
    let committed = kselftest::read(&committed())?;
    for test in required {
        let of_it = |outcome: &kselftest::Outcome| {
            (outcome.test.as_str(), outcome.driver.as_str()) == (test.name, driver.name())
        };
        let (name, driver) = (test.name, driver.name());
        assert!(
            committed.iter().any(of_it),
            "no results of {name} with {driver}"
        );
    }
    Ok(())
}

/// Whether a case is that of a test, by whose name it can be called.
fn is_called(test: &kselftest::Test, case: &str) -> bool {
    test.name.replace('-', "_") == case
}

/// A case for each test that is required of a driver, `<module>::<name>`.
macro_rules! required {
    ($module:ident: $driver:expr, $($case:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $case() -> cases::Result {
                    super::passes($driver, stringify!($case))
                }
            )*

            #[test]
            fn every_required_test_is_a_case_and_has_committed_results() -> cases::Result {
                super::are_all($driver, &[$(stringify!($case)),*])
            }
        }
    };
}

required! {
    kselftests: cases::Driver::Rigb,
    ping hds queues stats ring_reconfig napi_id napi_threaded irq csum tso gro rss_api rss_drv
    rss_input_xfrm toeplitz pp_alloc_fail xdp xdp_metadata xsk_reconfig nic_timestamp
}

required! {
    model: cases::Driver::RigbModel,
    uso rss_ctx ntuple devmem iou_zcrx nk_devmem nk_qlease userns_devmem
}

required! {
    c_on_model: cases::Driver::IgbModel,
    ping queues ring_reconfig irq csum nic_timestamp uso
}

/// Tests that the kernel's `igb` passes on QEMU's model, of which there are no results with it on ours: those of
/// `c_on_model` were chosen for what a driver asks of the device, and all of them take long. A test that is run there
/// is taken out here.
const NOT_ON_OURS: &[&str] = &[
    "gro",
    "macsec",
    "napi_id",
    "napi_threaded",
    "nk_netns",
    "psp",
    "rss_api",
    "rss_ctx",
    "rss_drv",
    "so_txtime",
    "stats",
    "toeplitz",
    "xdp",
    "xsk_reconfig",
];

#[test]
fn what_the_driver_in_c_passes_on_qemus_model_it_passes_on_ours() -> Result {
    let committed = kselftest::read(&committed())?;
    let of = |driver: Driver| {
        let name = driver.name();
        committed
            .iter()
            .filter(move |outcome| outcome.driver == name)
    };
    let passed = of(Driver::Igb).filter(|it| it.result == kselftest::Verdict::Pass);
    let mut lacking = Vec::new();
    for theirs in passed {
        let (test, case) = (&theirs.test, &theirs.case);
        let ours = of(Driver::IgbModel).find(|it| (&it.test, &it.case) == (test, case));
        match ours {
            Some(ours) => {
                let passes = ours.result == kselftest::Verdict::Pass;
                assert!(passes, "{test}.{case}: {}", ours.reason);
            }
            None => lacking.push(test.as_str()),
        }
    }
    lacking.sort_unstable();
    lacking.dedup();
    assert_eq!(lacking, NOT_ON_OURS, "tests without results on our model");
    Ok(())
}
