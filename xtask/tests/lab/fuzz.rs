// SPDX-License-Identifier: MIT OR Apache-2.0

//! A short campaign by the command.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::checkout::nobounce;
use crate::{Ends, assert_says, stdout};

#[test]
fn a_campaign_says_as_text_and_as_json_what_became_of_its_plans() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("figures.json");
    let output = Command::new(nobounce())
        .args(["fuzz", "--plans", "2", "--seed", "7", "--json"])
        .arg(&file)
        .ended(0);
    assert_says(&stdout(&output), &["2  plans\n"]);
    let figures: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let number = |name: &str| {
        let number = figures[name].as_u64();
        number.unwrap_or_else(|| panic!("no {name}: {figures}"))
    };
    assert_eq!((number("seed"), number("plans")), (7, 2), "{figures}");
    for none in ["violations", "panics", "hangs", "wrong_bytes", "leaks"] {
        assert_eq!(number(none), 0, "{none}: {figures}");
    }
    let outcomes = ["unharmed", "recovered", "restarted", "detached"].map(number);
    assert_eq!(outcomes.iter().sum::<u64>(), 2, "{figures}");
}
