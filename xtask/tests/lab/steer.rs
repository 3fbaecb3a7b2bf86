// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool of devmem-tcp steers flows by rules.

use crate::tool::parts;

#[test]
fn flows_are_steered_by_rules_and_the_interface_is_as_it_was_afterwards() {
    let script = r#"
        state() { ethtool -x nic0; ethtool -n nic0; ethtool -g nic0; }
        part() { echo "-- $1 $?"; }
        ethtool -X nic0 default; ethtool -G nic0 tcp-data-split auto
        before=$(state); part before; echo "$before"
        "$0" steer nic0 --queue 1 --port 5201 -- \
            bash -c "$(declare -f state); echo '-- during 0'; state; exit 7"
        part steer
        after=$(state); part after; echo "$after"

        # Two queues, until a signal. The NIC has no RSS contexts.
        "$0" steer nic0 --queue 1 --queue 2 --port 5201 2> /tmp/said &
        until grep -q steering /tmp/said; do kill -0 $! || break; sleep 0.1; done
        part said; cat /tmp/said
        shown=$("$0" show nic0 --json); part shown; echo "$shown"
        kill -INT $!
        wait $!; part interrupted
        after=$(state); part after; echo "$after"

        # The same by `listen`, into a queue that it binds.
        transfer "--queue 1 --validate 7 --format json" "--bytes 4M --validate 7 --format json"
        after=$(state); part after; echo "$after"
    "#;
    let ends = parts(&["--model", "nobounce", "--cpus", "3"], script);
    let [
        before,
        during,
        steered,
        after,
        said,
        shown,
        interrupted,
        later,
        received,
        sent,
        last,
    ] = &ends[..]
    else {
        panic!("{ends:?}");
    };
    assert!(during.text.contains("Dest port: 5201"), "{during:?}");
    assert_eq!(steered.code, 7);

    assert!(
        said.text.contains("queue [1, 2] by flow rules\n"),
        "{said:?}"
    );
    let shown = shown.json();
    let nic = &shown["interfaces"][0];
    let rules = &nic["flow_rules"];
    let by_queue = serde_json::json!({ "1": 1, "2": 1 });
    assert_eq!(rules["rules_by_queue"], by_queue, "{rules}");
    assert_eq!(rules["rules_by_rss_context"], serde_json::json!({}));
    let table = nic["rss"]["entries_by_queue"].as_object().unwrap();
    assert!(table.keys().eq(["0"]), "{nic}");
    assert_eq!(interrupted.code, 0, "{interrupted:?}");

    assert_eq!((received.code, sent.code), (0, 0), "{received:?}{sent:?}");
    let received = received.json();
    assert_eq!(received["ways"]["direct"], 4 << 20, "{received}");
    for state in [after, later, last] {
        assert_eq!(before.text, state.text);
    }
}
