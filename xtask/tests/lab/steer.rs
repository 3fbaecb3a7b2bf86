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

        # Two queues, until a signal. The NIC has no RSS contexts: each port goes to one.
        "$0" steer nic0 --queue 1 --queue 2 --port 5201 --port 5202 2> /tmp/said &
        until grep -q steering /tmp/said; do kill -0 $! || break; sleep 0.1; done
        part said; cat /tmp/said
        shown=$("$0" show nic0 --json); part shown; echo "$shown"
        claimed=$("$0" steer nic0 --queue 2 --port 5203 -- true 2>&1); part claimed; echo "$claimed"
        kill -INT $!
        wait $!; part interrupted
        after=$(state); part after; echo "$after"

        # What is to end it ends its command first.
        "$0" steer nic0 --queue 1 --port 5201 -- sleep 1000 2> /tmp/said &
        until grep -q steering /tmp/said; do kill -0 $! || break; sleep 0.1; done
        kill -TERM $!
        wait $!; part terminated
        after=$(state); part after; echo "$after"

        # The same by `listen`, into a queue that it binds.
        transfer "--queue 1 --validate 7 --format json" "--bytes 4M --validate 7 --format json"
        after=$(state); part after; echo "$after"

        # And by io_uring, whose queue comes back in the background.
        transfer "--mode zcrx --queue 1 --validate 7 --format json" \
            "--mode ordinary --memory ram --bytes 4M --validate 7 --format json"
        after=$(state); part after; echo "$after"

        # Whose queue nobody else may have meanwhile.
        ethtool -G nic0 tcp-data-split on
        listen $NOBOUNCE_ADDRESS:5201 --mode zcrx --queue 1 --steer none
        bound=$("$0" steer nic0 --queue 1 --port 5203 -- true 2>&1); part bound; echo "$bound"
        kill -INT $!; wait $!; part ended

        # If the table were one that a user has set, this would be refused.
        fewer=$(ethtool -L nic0 combined 1 2>&1); part fewer; echo "$fewer"
    "#;
    let ends = parts(&["--model", "nobounce", "--cpus", "3"], script);
    let [
        before,
        during,
        steered,
        after,
        said,
        shown,
        claimed,
        interrupted,
        later,
        terminated,
        unsteered,
        received,
        sent,
        after_devmem,
        by_io_uring,
        _,
        after_io_uring,
        bound,
        _,
        fewer,
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
    let by_queue = serde_json::json!({ "1": 2, "2": 2 });
    assert_eq!(rules["rules_by_queue"], by_queue, "{rules}");
    assert_eq!(rules["rules_by_rss_context"], serde_json::json!({}));
    let table = nic["rss"]["entries_by_queue"].as_object().unwrap();
    assert!(table.keys().eq(["0"]), "{nic}");
    assert_eq!(interrupted.code, 0, "{interrupted:?}");
    assert_eq!(terminated.code, 128 + 15, "{terminated:?}");

    assert_eq!((received.code, sent.code), (0, 0), "{received:?}{sent:?}");
    let received = received.json();
    assert_eq!(received["ways"]["direct"], 4 << 20, "{received}");
    assert_eq!(claimed.code, 1);
    assert!(
        claimed.text.contains("somebody else steers to RX queue 2"),
        "{claimed:?}"
    );
    assert_eq!(by_io_uring.code, 0, "{by_io_uring:?}");
    assert_eq!(fewer.code, 0, "{fewer:?}");
    assert_eq!(bound.code, 1);
    assert!(
        bound.text.contains("RX queue [1] already belongs"),
        "{bound:?}"
    );
    for state in [after, later, unsteered, after_devmem, after_io_uring] {
        assert_eq!(before.text, state.text);
    }
}

#[test]
fn where_the_nic_has_no_rules_that_is_said_and_everything_can_be_let_in() {
    let script = r#"
        state() { ethtool -x nic0; ethtool -g nic0; ethtool -k nic0; }
        part() { echo "-- $1 $?"; }
        ethtool -X nic0 default; ethtool -G nic0 tcp-data-split auto
        before=$(state); part before; echo "$before"
        refused=$("$0" listen $NOBOUNCE_ADDRESS:5201 --queue 1 2>&1); part refused; echo "$refused"
        after=$(state); part after; echo "$after"
        transfer "--queue 1 --steer everything --validate 7 --format json" \
            "--mode ordinary --memory ram --bytes 4M --validate 7 --format json"
        after=$(state); part after; echo "$after"
    "#;
    let ends = parts(&["--model", "qemu"], script);
    let [before, refused, unchanged, received, sent, after] = &ends[..] else {
        panic!("{ends:?}");
    };
    assert_eq!(refused.code, 1);
    assert!(refused.text.contains("no flow rules"), "{refused:?}");
    assert_eq!((received.code, sent.code), (0, 0), "{received:?}{sent:?}");
    let received = received.json();
    assert_eq!(received["ways"]["direct"], 4 << 20, "{received}");
    for state in [unchanged, after] {
        assert_eq!(before.text, state.text);
    }
}
