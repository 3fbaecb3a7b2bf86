// SPDX-License-Identifier: MIT OR Apache-2.0

//! SHA-256 of what a cached thing was made from, and of what it consists of.

use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use fs_err::File;
use sha2::{Digest, Sha256};

/// The hash of several texts, in hex; moving text from one part to the next changes it.
pub fn of_parts(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// The hash of a file's contents, in hex.
///
/// # Errors
///
/// When the file can't be read.
pub fn of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..n]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha256() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(
            of_file(&file).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_key_changes_with_each_part_and_with_where_a_part_ends() {
        let key = of_parts(&["7.3.4", "CONFIG_A=y", "rustc 1.95.0"]);
        assert_ne!(key, of_parts(&["7.3.5", "CONFIG_A=y", "rustc 1.95.0"]));
        assert_ne!(key, of_parts(&["7.3.4", "CONFIG_A=n", "rustc 1.95.0"]));
        assert_ne!(of_parts(&["ab", "c"]), of_parts(&["a", "bc"]));
        assert_eq!(key, of_parts(&["7.3.4", "CONFIG_A=y", "rustc 1.95.0"]));
    }
}
