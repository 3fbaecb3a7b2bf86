// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool of devmem-tcp on a NIC.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::checkout::program;
use crate::{Ends, MODELS, assert_says, exec, stderr, stdout};

/// A NAPI for each pair of queues with an interrupt of its own, polled in softirqs; and what queue 1 received is
/// no less than a report says.
fn assert_napis_and_statistics_are_of_the_queues(nic: &Value, received: &Value) {
    let list = |what: &str| nic[what].as_array().unwrap_or_else(|| panic!("{nic}"));
    let unique = |what: &str, of: &str| -> BTreeSet<u64> {
        let values = list(what).iter().map(|it| it[of].as_u64());
        values
            .collect::<Option<_>>()
            .unwrap_or_else(|| panic!("{nic}"))
    };
    let napis = list("napis");
    assert!(!napis.is_empty(), "{nic}");
    assert_eq!(unique("napis", "id"), unique("queues", "napi_id"), "{nic}");
    assert_eq!(unique("napis", "irq").len(), napis.len(), "{nic}");
    for napi in napis {
        assert_eq!(napi["polls_in"], "softirq", "{nic}");
    }
    let statistics = list("statistics").iter();
    let mut of_queue = statistics.filter(|it| it["kind"] == "rx" && it["id"] == 1);
    let counters = &of_queue.next().expect("the queue is counted")["counters"];
    let (packets, bytes) = (&counters["rx-packets"], &counters["rx-bytes"]);
    assert!(packets.as_u64() > Some(0), "{nic}");
    assert!(counters["rx-hw-drops"].is_u64(), "{nic}");
    let split = nic["split_counters"]["rx_split"].as_u64();
    assert!(split > Some(0) && split <= packets.as_u64(), "{nic}");
    assert!(bytes.as_u64() > received["bytes"].as_u64(), "{nic}");
}

/// The tool, which is built with its own tests.
pub(crate) fn tool() -> PathBuf {
    program("devmem-tcp")
}

/// What scripts of these tests are made of.
const FUNCTIONS: &str = r#"
    # A listener in the background, which listens.
    listen() {
        : > /tmp/errors
        "$0" listen "$@" > /tmp/received 2>> /tmp/errors &
        until grep -q listening /tmp/errors; do
            kill -0 $! 2> /dev/null || break
            sleep 0.1
        done
    }
    # One end and the other, with these options; prints exit codes and what they print.
    transfer() {
        listen $NOBOUNCE_ADDRESS:5201 $1
        ip netns exec $NOBOUNCE_PEER_NETNS "$0" connect $NOBOUNCE_ADDRESS:5201 $2 \
            > /tmp/sent 2>> /tmp/errors
        sent=$?
        wait $!
        echo "-- listen $?"
        cat /tmp/received
        echo "-- connect $sent"
        cat /tmp/sent
        cat /tmp/errors >&2
    }
"#;

/// What one end of a transfer, or another program, printed, and its exit code.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl End {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a script in the lab. What it prints is in parts, each after a line `-- NAME CODE`.
#[track_caller]
pub(crate) fn parts(options: &[&str], script: &str) -> Vec<End> {
    let script = format!("{FUNCTIONS}\n{script}");
    let program = [
        "bash".into(),
        "-c".into(),
        script.into(),
        tool().into_os_string(),
    ];
    let output = exec(&[options, &["--timeout", "1200"]].concat(), &program).ended(0);
    let text = stdout(&output);
    let parts = text.split("-- ").skip(1).map(|part| {
        let (head, text) = part.split_once('\n').unwrap_or((part, ""));
        let code = head
            .split(' ')
            .next_back()
            .and_then(|code| code.parse().ok());
        End {
            code: code.unwrap_or_else(|| panic!("{head}: {}", stderr(&output))),
            text: text.to_owned(),
        }
    });
    parts.collect()
}

/// A transfer that works: both reports.
#[track_caller]
pub(crate) fn reports(ends: &[End]) -> [Value; 2] {
    let [listen, connect] = ends else {
        panic!("{ends:?}");
    };
    assert_eq!((listen.code, connect.code), (0, 0), "{ends:?}");
    [listen.json(), connect.json()]
}

#[test]
fn each_mode_moves_all_bytes_its_own_way_whatever_their_number_and_the_sizes_of_pieces() {
    // Both ends have the same accelerator, of 64 MiB.
    const ACCELERATOR: &str = "--memory accelerator:0 --size 16M";
    const QUEUE: &str = "--queue 1 --steer none";
    const RAM: &str = "--mode ordinary --memory ram";
    let modes = [
        (
            format!("{QUEUE} {ACCELERATOR}"),
            ACCELERATOR.to_owned(),
            "direct",
            "direct",
        ),
        (
            format!("{QUEUE} {ACCELERATOR} --rx-page-size 16K"),
            format!("{ACCELERATOR} --write 1001"),
            "direct",
            "direct",
        ),
        (
            format!("{QUEUE} --mode zcrx"),
            format!("{RAM} --write 1M"),
            "direct",
            "ordinary",
        ),
        (
            "--mode zcrx-nodev --memory ram".to_owned(),
            RAM.to_owned(),
            "copied",
            "ordinary",
        ),
        (RAM.to_owned(), RAM.to_owned(), "ordinary", "ordinary"),
        (
            format!("--mode ordinary {ACCELERATOR}"),
            format!("--mode ordinary {ACCELERATOR}"),
            "ordinary",
            "ordinary",
        ),
    ];
    let transfer = |(listen, connect, ..): &(String, String, _, _)| {
        let common = "--validate 7 --flows 3 --format json";
        format!("transfer '{common} {listen}' '{common} {connect} --bytes 4000001'\n")
    };
    let script = modes.iter().map(transfer).collect::<String>();
    for model in MODELS {
        let ends = parts(&["--model", model], &script);
        assert_eq!(ends.len(), 2 * modes.len(), "{model}: {ends:?}");
        for ((listen, _, received_by, sent_by), ends) in modes.iter().zip(ends.chunks(2)) {
            let [received, sent] = reports(ends);
            assert_eq!(received["valid"], true, "{model}, {listen}: {received}");
            for (report, way) in [(received, received_by), (sent, sent_by)] {
                let about = format!("{model}, {listen}: {report}");
                assert_eq!(report["bytes"], 4_000_001, "{about}");
                assert_eq!(report["ways"][way], 4_000_001, "{about}");
                assert_eq!(report["flows"], 3, "{about}");
            }
        }
    }
}

#[test]
fn payload_passes_a_veth_in_the_modes_that_need_no_nic() {
    let script = r#"
        ip link add near type veth peer name far netns $NOBOUNCE_PEER_NETNS
        ip address add 198.51.100.1/24 dev near
        ip link set near up
        ip -n $NOBOUNCE_PEER_NETNS address add 198.51.100.2/24 dev far
        ip -n $NOBOUNCE_PEER_NETNS link set far up
        NOBOUNCE_ADDRESS=198.51.100.1
        common="--memory ram --validate 7 --format json"
        for mode in ordinary zcrx-nodev; do
            transfer "--mode $mode $common" "--mode ordinary $common --bytes 3M"
        done
    "#;
    let ends = parts(&[], script);
    assert_eq!(ends.len(), 4, "{ends:?}");
    for (ends, way) in ends.chunks(2).zip(["ordinary", "copied"]) {
        let [received, _] = reports(ends);
        assert_eq!(received["valid"], true, "{received}");
        assert_eq!(received["ways"][way], 3 << 20, "{received}");
    }
}

#[test]
fn payload_that_comes_to_another_queue_is_counted_as_what_lost_the_fast_path() {
    // All TCP comes to queue 1. The kernel can't copy into a dma-buf.
    let script = r#"
        own="--queue 2 --steer none --validate 7 --format json"
        for mode in "devmem" "zcrx --memory ram"; do
            transfer "$own --mode $mode" "--bytes 3M --validate 7 --format json"
        done
    "#;
    let ends = parts(&["--cpus", "3"], script);
    for (ends, way) in ends.chunks(2).zip(["unsteered", "copied"]) {
        let [received, _] = reports(ends);
        assert_eq!(received["valid"], true, "{received}");
        assert_eq!(received["ways"][way], 3 << 20, "{received}");
        assert_eq!(received["ways"]["direct"], 0, "{received}");
    }
}

#[test]
fn time_round_trips_wrong_bytes_and_a_queue_that_is_taken_are_reported_as_documented() {
    let script = r#"
        own="--queue 1 --steer none"
        transfer "$own --format json" "--duration 1 --flows 1 --format json"
        for format in json csv; do
            transfer "$own --rpc 4K/100" "--rpc 4K/100 --bytes 400K --format $format"
        done
        for own in "$own" "$own --mode zcrx" "--mode ordinary --memory ram"; do
            transfer "$own --validate 8 --format json" "--validate 7 --bytes 100K"
        done
        listen $NOBOUNCE_ADDRESS:5201 --queue 1 --steer none
        first=$!
        for mode in devmem zcrx; do
            text=$("$0" listen $NOBOUNCE_ADDRESS:5202 --mode $mode --queue 1 --steer none 2>&1)
            echo "-- second $?"
            echo "$text"
        done
        shown=$("$0" show $NOBOUNCE_NIC --json)
        echo "-- show $?"
        echo "$shown"
        kill -INT $first
        wait $first
        echo "-- first $?"
    "#;
    let ends = parts(&[], script);
    let (transfers, rest) = ends.split_at(ends.len() - 4);
    let [timed, json, csv, wrong @ ..] = &transfers.chunks(2).collect::<Vec<_>>()[..] else {
        panic!("{ends:?}");
    };

    let [received, sent] = reports(timed);
    assert!(received["bytes"].as_u64() > Some(0) && received["bytes"] == sent["bytes"]);

    let report = json[1].json();
    let latency = &report["latency"];
    assert_eq!(latency["count"], 100, "{report}");
    let quantiles = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
    let times = quantiles.map(|name| latency[name].as_u64().unwrap());
    assert!(times[0] > 0 && times.is_sorted(), "{latency}");
    let [names, values] = csv[1].text.lines().collect::<Vec<_>>()[..] else {
        panic!("{csv:?}");
    };
    let fields: Vec<_> = names.split(',').zip(values.split(',')).collect();
    assert_eq!(names.split(',').count(), values.split(',').count());
    let of = |name: &str| fields.iter().find(|(it, _)| *it == name).unwrap().1;
    assert_eq!((of("latency.count"), of("bytes")), ("100", "409600"));
    let times = quantiles.map(|name| of(&format!("latency.{name}")).parse::<u64>().unwrap());
    assert!(times[0] > 0 && times.is_sorted(), "{values}");

    assert_eq!(wrong.len(), 3);
    for ends in wrong {
        assert_eq!(ends[0].code, 1, "{ends:?}");
        let report = ends[0].json();
        assert_eq!(report["valid"], false, "{report}");
        let found = report["mismatch"].as_str().unwrap();
        assert_says(found, &["byte 0 of the stream"]);
    }

    let [devmem, zcrx, shown, first] = rest else {
        panic!("{rest:?}");
    };
    for second in [devmem, zcrx] {
        assert_eq!(second.code, 1, "{second:?}");
        let named = "RX queue [1] already belongs to a memory provider";
        assert!(second.text.contains(named), "{second:?}");
    }
    let shown = shown.json();
    let queues = shown["interfaces"][0]["queues"].as_array().unwrap();
    let is_bound = |it: &&Value| it["memory"]["provider"] == "dma_buf";
    let bound: Vec<_> = queues.iter().filter(is_bound).collect();
    assert_eq!(bound.len(), 1, "{shown}");
    assert_eq!(
        (&bound[0]["kind"], &bound[0]["id"]),
        (&"rx".into(), &1.into())
    );
    // Its ring is full of buffers, each a page of the memory, and no traffic is there that would hold more.
    let pools = shown["interfaces"][0]["page_pools"].as_array().unwrap();
    let pools: Vec<_> = pools.iter().filter(is_bound).collect();
    assert_eq!(pools.len(), 1, "{shown}");
    let outstanding = pools[0]["outstanding"].as_u64().unwrap();
    let bytes = pools[0]["outstanding_bytes"].as_u64().unwrap();
    assert!(outstanding > 0 && bytes == 4096 * outstanding, "{shown}");
    assert_napis_and_statistics_are_of_the_queues(&shown["interfaces"][0], &received);
    assert_eq!(first.code, 0, "{first:?}");
}

#[test]
fn the_processor_time_of_a_report_is_within_that_of_the_process() {
    let script = r#"
        listen $NOBOUNCE_ADDRESS:5201 --queue 1 --steer none
        TIMEFORMAT='%U %S'
        {
            time ip netns exec $NOBOUNCE_PEER_NETNS "$0" connect $NOBOUNCE_ADDRESS:5201 \
                --bytes 32M --format json > /tmp/sent 2>> /tmp/errors
        } 2> /tmp/times
        wait $!
        echo "-- listen $?"
        echo "-- connect 0"
        cat /tmp/sent
        echo "-- times 0"
        cat /tmp/times
    "#;
    let ends = parts(&[], script);
    let [listen, connect, times] = &ends[..] else {
        panic!("{ends:?}");
    };
    assert_eq!(listen.code, 0, "{ends:?}");
    let sum = |times: Vec<f64>| times.iter().sum::<f64>();
    let report = connect.json();
    let reported = ["cpu_user_seconds", "cpu_system_seconds"];
    let reported = sum(reported.map(|name| report[name].as_f64().unwrap()).to_vec());
    let took = sum(times
        .text
        .split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect());
    // The shell's is rounded, and has what the process took to end, too: on a busy machine more than all before.
    assert!(reported > 0.0 && reported < took + 0.01, "{ends:?}");
}
