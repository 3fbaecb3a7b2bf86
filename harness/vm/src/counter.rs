// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the guest's processor did within a window, as the counter in QEMU (qemu/plugin) saw it.

use std::{collections::BTreeMap, fs, ops::AddAssign, path::PathBuf};

use protocol::{measure::ReadMarks, memory::PhysicalRange};
use serde::Deserialize;

use crate::{Error, Guest, Result};

/// Guest-physical addresses to be watched under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Ranges with the same label are counted together: letters, digits, `-` and blanks.
    pub label: String,
    /// First address.
    pub start: u64,
    /// Bytes, not 0.
    pub len: u64,
}

impl Watch {
    /// Watches a dma-buf, by the ranges that [`protocol::Event::DmaBuf`] tells.
    #[must_use]
    pub fn dmabuf(label: &str, ranges: &[PhysicalRange]) -> Vec<Self> {
        let watch = |range: &PhysicalRange| Self {
            label: label.to_owned(),
            start: range.address,
            len: range.len,
        };
        ranges.iter().map(watch).collect()
    }
}

/// Loads and stores of the processor, not those of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Accesses {
    /// Loads.
    pub loads: u64,
    /// Bytes that they loaded.
    pub loaded: u64,
    /// Stores.
    pub stores: u64,
    /// Bytes that they stored.
    pub stored: u64,
}

impl AddAssign for Accesses {
    fn add_assign(&mut self, other: Self) {
        self.loads += other.loads;
        self.loaded += other.loaded;
        self.stores += other.stores;
        self.stored += other.stored;
    }
}

/// What was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Instructions, without those with a rep prefix.
    pub instructions: u64,
    /// Iterations of instructions with a rep prefix.
    pub reps: u64,
    /// Memory that they accessed.
    pub accesses: Accesses,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.reps += other.reps;
        self.accesses += other.accesses;
    }
}

/// A run of instructions without a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "[u64; 8]")]
pub struct Block {
    /// Guest-virtual address of its first instruction.
    pub address: u64,
    /// How often it was started.
    pub entries: u64,
    /// What it did.
    pub counts: Counts,
}

impl From<[u64; 8]> for Block {
    fn from(block: [u64; 8]) -> Self {
        let [
            address,
            entries,
            instructions,
            reps,
            loads,
            loaded,
            stores,
            stored,
        ] = block;
        Self {
            address,
            entries,
            counts: Counts {
                instructions,
                reps,
                accesses: Accesses {
                    loads,
                    loaded,
                    stores,
                    stored,
                },
            },
        }
    }
}

/// What was counted between two markers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Window {
    /// What went wrong with the counting.
    error: Option<String>,
    /// Accesses by label of [`Watch`].
    pub ranges: BTreeMap<String, Accesses>,
    /// All blocks that were executed, in no order.
    pub blocks: Vec<Block>,
}

impl Window {
    /// What all blocks did together.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for block in &self.blocks {
            total += block.counts;
        }
        total
    }
}

impl Guest {
    /// Sets what is watched from the start of the next window on; nothing else is then.
    ///
    /// # Errors
    ///
    /// [`Error::Counter`] when the counter cannot be configured.
    pub fn watch(&self, watches: &[Watch]) -> Result<()> {
        let mut text = String::new();
        for Watch { label, start, len } in watches {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ' ';
            if label.is_empty() || label.len() > 31 || !label.chars().all(plain) || *len == 0 {
                return Err(self.counter_failed(format!("{label:?} at {start:#x} + {len:#x}")));
            }
            text.push_str(&format!("{start:x} {len:x} {label}\n"));
        }
        let path = self.directory().join("ranges");
        let new = path.with_extension("new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| self.counter_failed(format!("writing {}: {error}", path.display())))
    }

    /// From now on a window lies between the execution of one address and that of another, as often
    /// as both are executed; with `None` there are no such windows any more. Code that was executed
    /// before the first call is not seen.
    ///
    /// # Errors
    ///
    /// [`Error::Counter`] when the counter cannot be configured, and those of [`Guest::call`].
    pub fn windows_between(&self, addresses: Option<(u64, u64)>) -> Result<()> {
        let text = addresses.map_or_else(String::new, |(start, end)| {
            format!("{start:x} 1\n{end:x} 2\n")
        });
        let path = self.directory().join("marks");
        fs::write(&path, text)
            .map_err(|error| self.counter_failed(format!("writing {}: {error}", path.display())))?;
        self.call(ReadMarks {})
    }

    /// Reads window `number`, counted from 0, of a [`crate::Machine::counted`] machine. The guest
    /// must have passed the window's end.
    ///
    /// # Errors
    ///
    /// [`Error::Counter`] when there is no such window, or the counter failed.
    pub fn window(&self, number: u32) -> Result<Window> {
        let path = self.window_path(number);
        let failed = |what: String| self.counter_failed(format!("{}: {what}", path.display()));
        let text = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        let window: Window =
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        match &window.error {
            None => Ok(window),
            Some(error) => Err(failed(error.clone())),
        }
    }

    /// How many windows there are.
    #[must_use]
    pub fn windows(&self) -> u32 {
        let mut numbers = 0..u32::MAX;
        let missing = numbers.find(|number| !self.window_path(*number).exists());
        missing.unwrap_or(u32::MAX)
    }

    fn window_path(&self, number: u32) -> PathBuf {
        self.directory().join(format!("window-{number}.json"))
    }

    fn counter_failed(&self, message: String) -> Error {
        Error::Counter {
            message,
            logs: self.logs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_as_the_counter_writes_it() {
        let text = r#"{"error":null,
"ranges":{"dma-buf":{"loads":1,"loaded":8,"stores":2,"stored":32}},
"blocks":[
[18446744071578845184,10,50,0,20,160,10,80],
[4096,1,2,512,512,4096,512,4096]]}"#;
        let window: Window = serde_json::from_str(text).unwrap();
        assert_eq!(window.ranges["dma-buf"].stored, 32);
        assert_eq!(window.blocks[0].address, 0xffff_ffff_8100_0000);
        assert_eq!(window.blocks[0].entries, 10);
        let total = window.total();
        assert_eq!((total.instructions, total.reps), (52, 512));
        assert_eq!(total.accesses.loaded, 4256);
        assert_eq!(total.accesses.stored, 4176);
    }
}
