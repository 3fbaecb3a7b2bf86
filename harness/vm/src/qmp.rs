// SPDX-License-Identifier: MIT OR Apache-2.0

//! QEMU's monitor (QMP): the few commands that a guest needs.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Error, Result};

/// The monitor answers at once unless QEMU hangs.
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Speaks first, as the protocol wants it.
    pub(crate) fn connect(socket: UnixStream) -> Result<Self> {
        let failed = |error: std::io::Error| failed("connect", error);
        socket.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
        socket.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
        let mut monitor = Self {
            reader: BufReader::new(socket),
        };
        // The greeting.
        monitor.read("connect")?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Executes a command and returns its value. Events in between are skipped.
    pub(crate) fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string() + "\n";
        let mut socket = self.reader.get_ref();
        socket
            .write_all(line.as_bytes())
            .map_err(|error| failed(command, error))?;
        loop {
            let mut answer = self.read(command)?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(failed(
                    command,
                    error["desc"].as_str().unwrap_or("unknown error"),
                ));
            }
        }
    }

    /// The registers of all processors, as QEMU prints them.
    pub(crate) fn registers(&mut self) -> Result<String> {
        self.human("info registers -a")
    }

    /// The 32 bits at a guest-physical address.
    pub(crate) fn read_physical(&mut self, address: u64) -> Result<u32> {
        let command = format!("xp /1wx {address:#x}");
        let text = self.human(&command)?;
        word(&text).ok_or_else(|| failed(&command, text))
    }

    /// Executes a command of the monitor for humans (HMP), and returns what it prints.
    fn human(&mut self, command: &str) -> Result<String> {
        let command = json!({ "command-line": command });
        let text = self.execute("human-monitor-command", command)?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    fn read(&mut self, command: &str) -> Result<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err(failed(command, "QEMU closed its monitor")),
            Ok(_) => serde_json::from_str(&line).map_err(|error| failed(command, error)),
            Err(error) => Err(failed(command, error)),
        }
    }
}

/// The word in what `xp` prints: `00000000febc0100: 0x04008002`.
fn word(text: &str) -> Option<u32> {
    let (_, word) = text.trim().split_once(": 0x")?;
    u32::from_str_radix(word, 16).ok()
}

fn failed(command: &str, message: impl ToString) -> Error {
    Error::Monitor {
        command: command.to_owned(),
        message: message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A monitor that answers every command with these lines.
    fn monitor(answers: &'static [&'static str]) -> Result<Monitor> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            let mut socket = theirs;
            writeln!(socket, "{}", json!({ "QMP": {} })).unwrap();
            lines.next();
            writeln!(socket, "{}", json!({ "return": {} })).unwrap();
            while let Some(Ok(_)) = lines.next() {
                for answer in answers {
                    writeln!(socket, "{answer}").unwrap();
                }
            }
        });
        Monitor::connect(ours)
    }

    #[test]
    fn an_event_before_the_answer_is_skipped() {
        let mut monitor =
            monitor(&[r#"{"event":"RESUME"}"#, r#"{"return":{"enabled":true}}"#]).unwrap();
        let value = monitor.execute("query-kvm", json!({})).unwrap();
        assert_eq!(value["enabled"], true);
    }

    #[test]
    fn a_physical_word_is_what_xp_prints_behind_its_address() {
        assert_eq!(word("00000000febc0100: 0x04008002\r\n"), Some(0x0400_8002));
        assert_eq!(word("Cannot access memory\r\n"), None);
    }

    #[test]
    fn an_error_names_the_command_and_what_qemu_said() {
        let mut monitor =
            monitor(&[r#"{"error":{"class":"GenericError","desc":"no such net"}}"#]).unwrap();
        let error = monitor
            .execute("set_link", json!({}))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("set_link") && error.contains("no such net"),
            "{error}"
        );
    }
}
