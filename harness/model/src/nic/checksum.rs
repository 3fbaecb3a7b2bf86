// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checksums: that of the Internet (RFC 1071), and SCTP's (RFC 9260, 6.8 and appendix A).

use i82576::tx::L4;

/// The sum of words, of which the last may be half. Such sums can be added before they are folded.
///
/// All payload goes through here, so words are added by twos and in the order of the processor's bytes:
/// what comes out has its bytes in that order, too (RFC 1071, section 2).
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(4);
    let mut last = [0; 4];
    last[..pairs.remainder().len()].copy_from_slice(pairs.remainder());
    let pair = |bytes| u64::from(u32::from_ne_bytes(bytes));
    let whole: u64 = pairs
        .map(|bytes| pair(bytes.try_into().unwrap_or_default()))
        .sum();
    u16::from_be(fold(whole + pair(last))).into()
}

/// A sum in ones' complement.
pub(crate) fn fold(sum: u64) -> u16 {
    // Adding 2^16 is adding 1 in ones' complement, so only zero of all numbers becomes zero.
    match sum % 0xffff {
        0 if sum != 0 => 0xffff,
        // CAST: It is below 2^16.
        rest => rest as u16,
    }
}

/// Puts a protocol's checksum of `bytes` into them. What the field holds is added up, too, but for SCTP.
/// `None` if it lies beyond the end.
pub(crate) fn fill(bytes: &mut [u8], protocol: L4, at: usize) -> Option<()> {
    if protocol == L4::Sctp {
        bytes.get_mut(at..at + 4)?.fill(0);
        let crc = crc32c(bytes.iter()).to_le_bytes();
        bytes.get_mut(at..at + 4)?.copy_from_slice(&crc);
        return Some(());
    }
    bytes.get(at..at + 2)?;
    let checksum = match (!fold(sum(bytes)), protocol) {
        // Zero says that there is none.
        (0, L4::Udp) => 0xffff,
        (checksum, _) => checksum,
    };
    bytes
        .get_mut(at..at + 2)?
        .copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// CRC32c, by its reflected polynomial.
pub(crate) fn crc32c<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            let carry = crc & 1 != 0;
            crc >>= 1;
            if carry {
                crc ^= POLYNOMIAL;
            }
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn a_sum_is_that_of_words_wherever_they_lie(bytes in vec(any::<u8>(), 0..100), start in 0usize..8) {
            let bytes = bytes.get(start..).unwrap_or_default();
            let words = bytes.chunks(2).map(|word| {
                u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0))
            });
            prop_assert_eq!(fold(sum(bytes)), fold(words.sum()));
        }
    }

    #[test]
    fn known_values_come_out() {
        // RFC 1071, section 3.
        assert_eq!(fold(sum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
        assert_eq!(sum(&[1]), 0x100);
        assert_eq!((fold(0), fold(0xffff), fold(0x1_fffe)), (0, 0xffff, 0xffff));
        assert_eq!(fold(0x1_0000), 1);
        assert_eq!(crc32c(b"123456789".iter()), 0xe306_9283);
    }

    #[test]
    fn a_field_beyond_the_end_is_not_written() {
        assert_eq!(fill(&mut [0; 17], L4::Tcp, 16), None);
        assert_eq!(fill(&mut [0; 11], L4::Sctp, 8), None);
    }
}
