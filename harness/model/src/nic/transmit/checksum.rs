// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checksums: that of the Internet (RFC 1071), and SCTP's (RFC 9260, appendix A).

use i82576::tx::L4;

/// CRC32c's polynomial, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The sum of words in ones' complement, whose last may be half.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| match *word {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum: u32 = 0;
    for word in words {
        sum += word;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Adds a number to a sum in ones' complement.
pub(super) fn add(sum: u16, number: u16) -> u16 {
    let (sum, carries) = sum.overflowing_add(number);
    sum + u16::from(carries)
}

/// Puts a protocol's checksum of `bytes` into them. What the field holds is added up, too, but for SCTP.
/// `None` if it lies beyond the end.
pub(super) fn fill(bytes: &mut [u8], protocol: L4, at: usize) -> Option<()> {
    if protocol == L4::Sctp {
        bytes.get_mut(at..at + 4)?.fill(0);
        let crc = crc32c(bytes).to_le_bytes();
        bytes.get_mut(at..at + 4)?.copy_from_slice(&crc);
        return Some(());
    }
    bytes.get(at..at + 2)?;
    let checksum = match (!sum(bytes), protocol) {
        // Zero says that there is none.
        (0, L4::Udp) => 0xffff,
        (checksum, _) => checksum,
    };
    bytes
        .get_mut(at..at + 2)?
        .copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { POLYNOMIAL } else { 0 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_come_out() {
        // RFC 1071, section 3.
        assert_eq!(sum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[1]), 0x100);
        assert_eq!(add(0xffff, 1), 1);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_field_beyond_the_end_is_not_written() {
        assert_eq!(fill(&mut [0; 17], L4::Tcp, 16), None);
        assert_eq!(fill(&mut [0; 11], L4::Sctp, 8), None);
    }
}
