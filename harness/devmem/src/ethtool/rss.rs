// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive side scaling: which queue a flow reaches (`rss-get`, `rss-set`; `ethtool -x`, `-X`).

use netlink_bindings::ethtool::{IterableRss, Request};

use super::{Ethtool, command, name_interface};
use crate::error::Result;
use crate::netlink::Subject;

/// RSS of an interface's default context. What the driver does not report is absent or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rss {
    /// The hash function, one bit of `ETH_RSS_HASH_*` (1 is Toeplitz).
    pub hash_function: Option<u32>,
    /// For each value of the hash's low bits, the RX queue.
    pub indirection: Vec<u32>,
    /// The hash key.
    pub key: Vec<u8>,
}

/// A new indirection table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Indirection {
    /// These queues; the kernel repeats them until the device's table is full, which must be a
    /// multiple of their number.
    Queues(Vec<u32>),
    /// All RX queues in turn, as after boot.
    Default,
}

/// What to change about RSS; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RssChange {
    /// The indirection table.
    pub indirection: Option<Indirection>,
    /// The hash key, of the length that [`Rss::key`] has.
    pub key: Option<Vec<u8>>,
}

impl Ethtool {
    /// RSS of an interface.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Unsupported`] if the driver has none, [`crate::Error::NoSuchInterface`].
    pub fn rss(&mut self, ifindex: u32) -> Result<Rss> {
        let mut request = Request::new().op_rss_get_do();
        request.header_mut().cmd = command::RSS_GET;
        name_interface(request.encode().nested_header(), ifindex);
        let subject = Subject {
            operation: "ethtool rss-get",
            ifindex,
        };
        self.netlink
            .one(subject, &request, |reply| rss(subject, &reply))
    }

    /// Changes RSS of an interface (Linux 6.17 or newer).
    ///
    /// # Errors
    ///
    /// [`crate::Error::NotPrivileged`] without `CAP_NET_ADMIN`, [`crate::Error::Refused`] for a
    /// queue that does not exist or a table or key of the wrong length,
    /// [`crate::Error::KernelTooOld`].
    pub fn set_rss(&mut self, ifindex: u32, change: &RssChange) -> Result<()> {
        let mut request = Request::new().op_rss_set_do();
        request.header_mut().cmd = command::RSS_SET;
        let mut attributes = name_interface(request.encode().nested_header(), ifindex);
        if let Some(indirection) = &change.indirection {
            attributes = attributes.push_indir(&table(indirection));
        }
        if let Some(key) = &change.key {
            attributes = attributes.push_hkey(key);
        }
        drop(attributes);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool rss-set",
                ifindex,
            },
            &request,
        )
    }
}

/// The table as the kernel takes it: u32 in host order; an empty one resets.
fn table(indirection: &Indirection) -> Vec<u8> {
    match indirection {
        Indirection::Queues(queues) => queues
            .iter()
            .flat_map(|queue| queue.to_ne_bytes())
            .collect(),
        Indirection::Default => Vec::new(),
    }
}

fn rss(subject: Subject, reply: &IterableRss<'_>) -> Result<Rss> {
    let table = reply.get_indir().unwrap_or_default();
    let entries = table.chunks_exact(4);
    if !entries.remainder().is_empty() {
        return Err(subject.incomplete(format!("an indirection table of {} bytes", table.len())));
    }
    Ok(Rss {
        hash_function: reply.get_hfunc().ok(),
        indirection: entries
            .map(|entry| u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]))
            .collect(),
        key: reply.get_hkey().unwrap_or_default().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use netlink_bindings::ethtool::{PushRss, Rss as RssAttributes};

    use super::*;

    const SUBJECT: Subject = Subject {
        operation: "ethtool rss-get",
        ifindex: 1,
    };

    #[test]
    fn a_table_that_was_encoded_decodes_to_the_same_queues() {
        let queues = vec![0, 3, 1, 70_000];
        let mut attributes = Vec::new();
        PushRss::new(&mut attributes)
            .push_indir(&table(&Indirection::Queues(queues.clone())))
            .push_hkey(&[1, 2, 3]);
        let decoded = rss(SUBJECT, &RssAttributes::new(&attributes)).expect("whole entries");
        assert_eq!(
            decoded,
            Rss {
                hash_function: None,
                indirection: queues,
                key: vec![1, 2, 3]
            }
        );
    }

    #[test]
    fn a_table_that_is_cut_is_an_error_and_not_a_shorter_table() {
        let mut attributes = Vec::new();
        PushRss::new(&mut attributes).push_indir(&[0; 7]);
        assert!(rss(SUBJECT, &RssAttributes::new(&attributes)).is_err());
    }
}
