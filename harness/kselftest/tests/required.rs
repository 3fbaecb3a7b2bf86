// SPDX-License-Identifier: MIT OR Apache-2.0

//! The selftests that `rigb` is required to pass, each in a guest of its own; on our model of its NIC
//! those that want what QEMU's does not have, and, as it is to be an 82576 for any driver, some with the
//! kernel's `igb`. What passed when `Documentation/selftests.json` was written has to pass.

use std::collections::HashSet;
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

/// Cases that the kernel's `igb` passes on QEMU's model and not on ours, for what is its own. It counts in its rings, and
/// frees them with their counters when their number changes: on ours frames were sent before that.
const FAILS_ON_OURS: &[(&str, &str)] = &[("stats", "procfs_downup_hammer")];

#[test]
fn what_the_driver_in_c_passes_on_qemus_model_it_passes_on_ours() -> Result {
    let committed = kselftest::read(&committed())?;
    let passed = |driver: Driver| {
        let name = driver.name();
        let passed = committed
            .iter()
            .filter(move |it| it.driver == name && it.result == kselftest::Verdict::Pass);
        passed.map(|it| (it.test.as_str(), it.case.as_str()))
    };
    let ours: HashSet<_> = passed(Driver::IgbModel).collect();
    let theirs = passed(Driver::Igb).filter(|case| !ours.contains(case));
    assert_eq!(theirs.collect::<Vec<_>>(), FAILS_ON_OURS);
    Ok(())
}
