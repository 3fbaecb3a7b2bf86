// SPDX-License-Identifier: MIT OR Apache-2.0

//! The commands of library/devmem-tcp/OWN-NIC.md, in the order of the page, with our NIC as the reader's eth0.

use crate::tool::parts;

const PAGE: &str = include_str!("../../../library/devmem-tcp/OWN-NIC.md");
/// What the page sends, and what is sent here.
const SENT: (&str, &str) = ("1G", "16M");

/// Those of the page's commands that are in lines of text, and start so.
fn inline(start: &str) -> Vec<&'static str> {
    // Blocks are between three of them, so that spans are those with odd numbers there, too.
    let lines = PAGE.lines().filter(|line| !line.starts_with("```"));
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.filter(|span| span.starts_with(start)).collect()
}

/// The page's blocks.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```")
        .skip(1)
        .step_by(2)
        .map(str::trim)
        .collect()
}

#[test]
fn each_command_of_the_page_works_and_the_receiver_says_what_the_page_says() {
    let blocks = blocks();
    let [check, queues, listen, connect, said] = blocks[..] else {
        panic!("{blocks:?}");
    };
    let listen = listen.strip_prefix("devmem-tcp listen ").unwrap();
    let connect = connect.strip_prefix("devmem-tcp connect ").unwrap();
    let connect = connect.replace(SENT.0, SENT.1);
    let mut script = format!(
        r#"
        ip link property add dev nic0 altname eth0 || exit
        mkdir /tmp/bin; ln -s "$0" /tmp/bin/devmem-tcp; PATH=/tmp/bin:$PATH
        {{ {check}; }}; echo "-- check $?"
        {{ {queues}; }} || exit
        # As the page has it, but for the address, which `transfer` says.
        transfer_of_the_page() {{ transfer "${{1#192.0.2.1:5201}}" "${{2#192.0.2.1:5201}}"; }}
        transfer_of_the_page '{listen}' '{connect}'
        "#,
    );
    let shown = ["devmem-tcp check", "devmem-tcp show", "ethtool -"]
        .map(inline)
        .concat();
    let shown: Vec<_> = shown.into_iter().filter(|it| it.contains("eth0")).collect();
    assert_eq!(shown.len(), 5, "{shown:?}");
    for command in &shown {
        // One of them goes on for ever.
        script += &format!(
            "timeout 5 {command} > /tmp/shown 2>&1\necho \"-- shown $?\"\ncat /tmp/shown\n"
        );
    }
    let options = [
        ("--memory heap:system", "--queue 3", "--memory heap:system"),
        (
            "--mode zcrx",
            "--queue 3 --mode zcrx",
            "--mode ordinary --memory ram",
        ),
        (
            "--mode zcrx-nodev --memory ram",
            "--mode zcrx-nodev --memory ram",
            "--mode ordinary --memory ram",
        ),
        ("--rpc 4K", "--queue 3 --rpc 4K", "--rpc 4K"),
        ("--flows 16", "--queue 3 --flows 16", "--flows 16"),
        ("--queue 2 --queue 3", "--queue 2 --queue 3", ""),
        ("--steer everything", "--queue 3 --steer everything", ""),
    ];
    for (span, listen, connect) in options {
        assert!(
            PAGE.replace('\n', " ").contains(span),
            "{span} is not on the page"
        );
        script +=
            &format!("transfer '{listen} --validate 7' '{connect} --validate 7 --bytes 2M'\n");
    }

    let ends = parts(&["--model", "nobounce", "--cpus", "4"], &script);
    let (first, rest) = ends.split_at(3);
    assert!(first.iter().all(|end| end.code == 0), "{first:?}");
    let mut lines = first[1].text.lines();
    for expected in said.replace("1073741824", &(16 << 20).to_string()).lines() {
        // Figures are left out there.
        let line = lines.find(|line| {
            let mut rest = *line;
            expected
                .split("...")
                .all(|part| match rest.split_once(part) {
                    Some((_, behind)) => {
                        rest = behind;
                        true
                    }
                    None => false,
                })
        });
        assert!(line.is_some(), "{expected}: {}", first[1].text);
    }
    let (shown, transfers) = rest.split_at(shown.len());
    for end in shown {
        let expected = [0, 124];
        assert!(expected.contains(&end.code), "{end:?}");
    }
    assert_eq!(transfers.len(), 2 * options.len());
    for (ends, (option, ..)) in transfers.chunks(2).zip(options) {
        assert_eq!((ends[0].code, ends[1].code), (0, 0), "{option}: {ends:?}");
        let valid = "all bytes are those of the seed";
        assert!(ends[0].text.contains(valid), "{option}: {ends:?}");
    }
}
