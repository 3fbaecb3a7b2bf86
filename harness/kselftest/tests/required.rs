// SPDX-License-Identifier: MIT OR Apache-2.0

//! The selftests that `rigb` is required to pass, each in a guest of its own, and on our model of its NIC
//! those that want what QEMU's does not have: what passed when
//! `Documentation/selftests.json` was written has to pass.

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

fn passes(driver: Driver, name: &str) -> Result {
    let test = kselftest::named(name)?;
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

/// A case for each test, `kselftests::<name>`.
macro_rules! cases {
    ($($name:ident)*) => {
        mod kselftests {
            $(
                #[test]
                fn $name() -> cases::Result {
                    super::passes(cases::Driver::Rigb, stringify!($name))
                }
            )*
        }

        #[test]
        fn every_required_test_is_a_case() -> Result {
            let required: Vec<_> = kselftest::choose(&[], false)?;
            let names: Vec<_> = required.iter().map(|test| test.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            Ok(())
        }
    };
}

cases! {
    ping hds queues stats ring_reconfig napi_id napi_threaded irq csum tso gro rss_api rss_drv
    rss_input_xfrm toeplitz pp_alloc_fail xdp xdp_metadata xsk_reconfig nic_timestamp
}

/// A case for each test on our model, `model::<name>`.
macro_rules! on_model {
    ($($case:ident: $name:literal),* $(,)?) => {
        mod model {
            $(
                #[test]
                fn $case() -> cases::Result {
                    super::passes(cases::Driver::RigbModel, $name)
                }
            )*
        }
    };
}

on_model! {
    devmem: "devmem",
    iou_zcrx: "iou-zcrx",
    nk_devmem: "nk_devmem",
    nk_qlease: "nk_qlease",
    ntuple: "ntuple",
    userns_devmem: "userns_devmem",
    uso: "uso",
}
