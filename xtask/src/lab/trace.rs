// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest's ftrace: which events to record, and the files that come of it.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result, bail};
use cases::Testbed;
use fs_err as fs;

use super::script;
use super::trace_dat::{self, Recording};

/// Of a processor. When it is full, the oldest events are lost.
const BUFFER_KIB: &str = "8192";

/// Arguments: the buffer's size, and the events.
const BEGIN: &str = r#"
    cd /sys/kernel/tracing || exit
    echo 0 > tracing_on
    echo "$1" > buffer_size_kb
    shift
    for event; do
        (echo "$event" >> set_event) 2> /dev/null || {
            echo "the guest's kernel has no event $event" >&2
            exit 1
        }
    done
    echo 1 > tracing_on
"#;

/// Prints files, each with a line in front: its size and what it is.
const END: &str = r#"
    cd /sys/kernel/tracing || exit
    echo 0 > tracing_on
    copy=$(mktemp)
    put() {
        cat > "$copy"
        echo "$(wc -c < "$copy") $1"
        cat "$copy"
    }
    put text < trace
    put header_page < events/header_page
    put header_event < events/header_event
    for format in events/ftrace/*/format; do
        put ftrace < "$format"
    done
    sort -u set_event | while IFS=: read -r system event; do
        put "event $system" < "events/$system/$event/format"
    done
    grep -i ' t ' /proc/kallsyms | put symbols
    put formats < printk_formats
    put commands < saved_cmdlines
    for cpu in per_cpu/cpu*; do
        sed -n 's/^overrun: //p' "$cpu/stats" | put lost
    done
    for cpu in $(ls -v per_cpu); do
        dd if="per_cpu/$cpu/trace_pipe_raw" bs=4096 iflag=nonblock 2> /dev/null | put pages
    done
    rm "$copy"
"#;

/// Starts to record `events`, as the kernel's `set_event` takes them: `system:event`, `system:*`.
pub(super) fn begin(bed: &Testbed, events: &[String]) -> Result<()> {
    let mut arguments = vec![BUFFER_KIB];
    arguments.extend(events.iter().map(String::as_str));
    script::run(bed, BEGIN, &arguments)
        .map(drop)
        .context("--trace")
}

/// Writes what was recorded beside the logs, and says where.
pub(super) fn end(bed: &Testbed) -> Result<()> {
    let printed = script::run(bed, END, &[]).context("--trace")?;
    let (recording, text, lost) = read(&printed)?;
    let folder = bed.guest.directory();
    let (binary, readable) = (folder.join("trace.dat"), folder.join("trace.txt"));
    let written = || format!("can't write {}", binary.display());
    let file = File::create(&binary).with_context(written)?;
    trace_dat::write(&mut BufWriter::new(file), &recording).with_context(written)?;
    fs::write(&readable, text)?;
    eprintln!(
        "trace: {} (trace-cmd, kernelshark), {} (perfetto), {lost} events lost",
        binary.display(),
        readable.display()
    );
    Ok(())
}

/// Takes apart what the script printed: the recording, the kernel's own text of it, and how many
/// events were lost.
fn read(printed: &[u8]) -> Result<(Recording<'_>, &[u8], u64)> {
    let (mut recording, mut text, mut lost) = (Recording::default(), &[][..], 0);
    let mut rest = printed;
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let (size, what) = line.split_once(' ').context("a line has no size")?;
        let size: usize = size.parse().with_context(|| line.clone())?;
        let behind = &rest[end + 1..];
        let Some((part, behind)) = behind.split_at_checked(size) else {
            bail!("`{line}` is cut");
        };
        rest = behind;
        match what {
            "text" => text = part,
            "header_page" => recording.header_page = part,
            "header_event" => recording.header_event = part,
            "ftrace" => recording.ftrace.push(part),
            "symbols" => recording.symbols = part,
            "formats" => recording.formats = part,
            "commands" => recording.commands = part,
            "pages" => recording.processors.push(part),
            "lost" => {
                let number = String::from_utf8_lossy(part);
                lost += number.trim().parse::<u64>().unwrap_or(0);
            }
            _ => {
                let system = what.strip_prefix("event ").context("an unknown part")?;
                let events = recording.events.entry(system.to_owned()).or_default();
                events.push(part);
            }
        }
    }
    Ok((recording, text, lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_prints_is_taken_apart() {
        let printed = b"5 text\n# \n\0\n2 event net\nab2 event net\ncd2 lost\n7\n2 lost\n1\n3 pages\nabc0 pages\n";
        let (recording, text, lost) = read(printed).unwrap();
        assert_eq!((text, lost), (&b"# \n\0\n"[..], 8));
        assert_eq!(recording.events["net"], [b"ab", b"cd"]);
        assert_eq!(recording.processors, [&b"abc"[..], b""]);
    }

    #[test]
    fn what_is_cut_or_unknown_is_an_error() {
        for printed in ["5 text\n1234", "x text\n", "text\n", "0 nonsense\n"] {
            assert!(read(printed.as_bytes()).is_err(), "{printed}");
        }
    }
}
