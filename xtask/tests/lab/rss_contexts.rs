// SPDX-License-Identifier: MIT OR Apache-2.0

//! RSS contexts, which the 82576 does not have, on `rtest`: a software NIC that receives nothing and
//! only stores its configuration.

use std::env;
use std::path::{Path, PathBuf};

use serde_json::json;
use vm::Images;

use crate::tool::parts;

/// Its module.
fn rtest() -> PathBuf {
    let manifest = env::var_os(kselftest::ENV).expect("the lab's guest");
    let images = Images::load(Path::new(&manifest)).unwrap();
    let mut modules = images.modules.into_iter();
    modules.find(|path| path.ends_with("rtest.ko")).unwrap()
}

/// Has the NIC be `test0`.
fn with_rtest(script: &str) -> String {
    format!(
        r#"
        part() {{ echo "-- $1 $?"; }}
        insmod {} && ip link set eth0 name test0; part loaded
        {script}
        rmmod rtest; part unloaded
        "#,
        rtest().display()
    )
}

#[test]
fn flows_are_steered_to_several_queues_by_an_rss_context_which_is_gone_afterwards() {
    let script = with_rtest(
        r#"
        state() { ethtool -x test0; ethtool -x test0 context 1 2>&1; ethtool -n test0; ethtool -g test0; }
        ethtool -X test0 default
        before=$(state); part before; echo "$before"
        "$0" steer test0 --queue 1 --queue 2 --port 5201 2> /tmp/said &
        until grep -q steering /tmp/said; do kill -0 $! || break; sleep 0.1; done
        part said; cat /tmp/said
        table=$(ethtool -x test0 context 1); part table; echo "$table"
        rules=$(ethtool -n test0); part rules; echo "$rules"
        shown=$("$0" show test0 --json); part shown; echo "$shown"
        busy=$(ethtool -X test0 context 1 delete 2>&1); part busy; echo "$busy"
        kill -INT $!
        wait $!; part interrupted
        after=$(state); part after; echo "$after"
        "#,
    );
    let ends = parts(&[], &script);
    let [
        loaded,
        before,
        said,
        table,
        rules,
        shown,
        busy,
        interrupted,
        after,
        unloaded,
    ] = &ends[..]
    else {
        panic!("{ends:?}");
    };
    assert_eq!((loaded.code, interrupted.code, unloaded.code), (0, 0, 0));
    assert!(
        said.text
            .contains("queue [1, 2] by flow rules to RSS context 1\n"),
        "{said:?}"
    );
    assert_eq!(entries(&table.text), [1, 2, 1, 2, 1, 2], "{table:?}");
    assert_eq!(
        rules.text.matches("RSS Context ID: 1").count(),
        2,
        "{rules:?}"
    );
    assert_eq!(
        rules.text.matches("Dest port: 5201").count(),
        2,
        "{rules:?}"
    );
    let shown = shown.json();
    let nic = &shown["interfaces"][0];
    let by_context = json!({ "1": 2 });
    assert_eq!(
        nic["flow_rules"]["rules_by_rss_context"], by_context,
        "{nic}"
    );
    assert_eq!(nic["rss"]["entries_by_queue"], json!({ "0": 6 }), "{nic}");
    assert!(busy.code != 0 && busy.text.contains("busy"), "{busy:?}");
    assert_eq!(before.text, after.text);
}

#[test]
fn contexts_are_made_changed_and_removed_as_a_user_wants() {
    let script = with_rtest(
        r#"
        of() { ethtool -x test0 context $1; }
        try() { said=$("$@" 2>&1); part "$1"; echo "$said"; }
        try ethtool -X test0 context new
        try of 1
        try ethtool -X test0 context new start 1 equal 1
        try of 2
        try ethtool -X test0 context new
        try ethtool -X test0 context 1 equal 2
        try of 1
        try ethtool -X test0 context 1 hkey $(printf '5a:%.0s' {1..51})5a
        try ethtool -X test0 context 1 delete
        try of 1
        try ethtool -N test0 flow-type tcp4 dst-port 1 context 1
        try ethtool -N test0 flow-type tcp4 dst-port 1 context 2
        # It goes while there is a context with a rule.
        "#,
    );
    let ends = parts(&[], &script);
    let [
        loaded,
        all,
        of_all,
        one,
        of_one,
        too_many,
        changed,
        of_changed,
        key,
        deleted,
        of_deleted,
        to_none,
        to_one,
        unloaded,
    ] = &ends[..]
    else {
        panic!("{ends:?}");
    };
    for end in [loaded, all, one, changed, deleted, unloaded] {
        assert_eq!(end.code, 0, "{ends:?}");
    }
    for end in [too_many, key, of_deleted] {
        assert_ne!(end.code, 0, "{ends:?}");
    }
    // ethtool succeeds in any case.
    assert!(to_none.text.contains("Cannot insert"), "{to_none:?}");
    assert!(to_one.text.contains("Added rule"), "{to_one:?}");
    for (end, table) in [
        (of_all, [0, 1, 2, 0, 1, 2]),
        (of_one, [1; 6]),
        (of_changed, [0, 1, 0, 1, 0, 1]),
    ] {
        assert_eq!(entries(&end.text), table, "{end:?}");
    }
}

/// The queues of the indirection table that ethtool prints, in lines such as `    0:      1     2`.
fn entries(text: &str) -> Vec<u32> {
    let lines = text.lines().filter_map(|line| {
        let (place, queues) = line.split_once(':')?;
        place.trim().parse::<u32>().ok().map(|_| queues)
    });
    let queues = lines.flat_map(str::split_whitespace);
    queues.filter_map(|queue| queue.parse().ok()).collect()
}
