// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the tool of devmem-tcp says of a NIC.

use serde_json::Value;

use crate::tool::tool;
use crate::{Ends, MODELS, exec, stdout};

/// Runs a script in the lab on a model, with the tool as `$0`; returns the JSON values that it prints.
fn run(model: &str, script: &str) -> Vec<Value> {
    let tool = tool().into_os_string();
    let script = ["sh".into(), "-c".into(), script.into(), tool];
    let output = exec(&["--model", model], &script).ended(0);
    serde_json::Deserializer::from_str(&stdout(&output))
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// The verdict on a way.
fn verdict<'a>(report: &'a Value, way: &str) -> &'a Value {
    let verdicts = report["verdicts"].as_array().unwrap();
    verdicts.iter().find(|v| v["way"] == way).unwrap()
}

#[test]
fn check_finds_what_works_on_a_nic_and_without_one_and_returns_the_queue_that_it_tried() {
    for model in MODELS {
        check_on(model);
    }
}

fn check_on(model: &str) {
    // All TCP comes to queue 1, of two; then to queue 0.
    let values = run(
        model,
        "\"$0\" check $NOBOUNCE_NIC --json; all=rx,tx,zcrx,nodev,ordinary; \
         \"$0\" check $NOBOUNCE_NIC --try=1 --for $all --json || exit; \
         ethtool -X $NOBOUNCE_NIC equal 1 && \
         \"$0\" check $NOBOUNCE_NIC --try --for $all --json || exit; \
         \"$0\" show $NOBOUNCE_NIC --json; \
         ip link add veth0 type veth peer name veth1 && ip link set veth0 up && ip link set veth1 up; \
         for other in lo veth0; do \
             \"$0\" check $other --try --for nodev,ordinary --json || exit; \
             \"$0\" check $other --for rx > /dev/null; test $? = 1 || exit; \
         done",
    );
    let [looked, named, tried, shown, lo, veth] = &values[..] else {
        panic!("{values:?}");
    };
    let rx = verdict(looked, "rx");
    assert_eq!(rx["verdict"], "unknown", "{looked}");
    assert_eq!(rx["unknown"][0]["what"], "queue management");
    assert_eq!(rx["after"][0], "ethtool -X nic0 equal 1");
    for way in ["tx", "nodev", "ordinary"] {
        assert_eq!(verdict(looked, way)["verdict"], "works", "{looked}");
    }
    for way in ["rx", "zcrx"] {
        assert_eq!(verdict(named, way)["verdict"], "works", "{named}");
    }
    let of = |what: &str| {
        let findings = tried["findings"].as_array().unwrap();
        findings.iter().find(|f| f["what"] == what).unwrap()
    };
    assert_eq!(of("header split")["found"], "on");
    assert_eq!(of("queue management")["state"], "good");

    for without in [lo, veth] {
        let rx = verdict(without, "rx");
        assert_eq!(rx["verdict"], "lacks", "{without}");
        let lacks = rx["lacks"].as_array().unwrap();
        assert!(lacks.iter().any(|l| l["what"] == "header split"), "{rx}");
    }

    let nic = &shown["interfaces"][0];
    assert_eq!(nic["driver"]["name"], "rigb");
    assert_eq!(nic["header_split"]["tcp_data_split"], "on");
    assert_eq!(nic["split_counters"]["rx_split"], 0);
    assert!(nic["rss"]["entries_by_queue"]["0"].is_u64(), "{nic}");
    let queues = nic["queues"].as_array().unwrap();
    assert!(queues.len() > 2, "{nic}");
    for queue in queues {
        assert_eq!(queue["memory"]["provider"], "host", "{nic}");
    }
}
