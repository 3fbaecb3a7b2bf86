// SPDX-License-Identifier: MIT OR Apache-2.0

//! Offload features (`features-get`, `features-set`; `ethtool -k`, `-K`).

use std::collections::BTreeSet;

use netlink_bindings::ethtool::{
    HeaderFlags, IterableBitset, IterableString, IterableStringset, Request, Stringset,
};

use super::{Ethtool, command, name_interface};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// `ETH_SS_FEATURES`, the string set that names the bits (include/uapi/linux/ethtool.h).
const SS_FEATURES: u32 = 4;

/// Features of an interface, by the names that the kernel gives them (as in `tx-tcp-segmentation`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Features {
    /// What can be changed; the others are fixed.
    pub changeable: BTreeSet<String>,
    /// What users asked for.
    pub wanted: BTreeSet<String>,
    /// What is on.
    pub active: BTreeSet<String>,
}

impl Features {
    /// Whether the device has a feature: it is on, or can be.
    #[must_use]
    pub fn has(&self, feature: &str) -> bool {
        self.active.contains(feature) || self.changeable.contains(feature)
    }
}

impl Ethtool {
    /// Features of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`], or what the kernel refuses.
    pub fn features(&mut self, interface: Interface) -> Result<Features, RequestError> {
        let names = self.feature_names(interface)?;
        let mut request = Request::new().op_features_get_do();
        request.header_mut().cmd = command::FEATURES_GET;
        // Compact bitsets: spelled out, the answer can be larger than the netlink crate's buffer.
        request
            .encode()
            .nested_header()
            .push_dev_index(interface.index())
            .push_flags(HeaderFlags::CompactBitsets as u32)
            .end_nested();
        let subject = Subject {
            operation: "ethtool features-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            let named = |bitset: std::result::Result<IterableBitset<'_>, _>| match bitset {
                Ok(bitset) => bits(&bitset, &names),
                Err(error) => Err(subject.incomplete(format!("{error:?}"))),
            };
            Ok(Features {
                changeable: named(reply.get_hw())?,
                wanted: named(reply.get_wanted())?,
                active: named(reply.get_active())?,
            })
        })
    }

    /// Turns features on or off, and checks that they took effect.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchFeature`] for a name that the kernel does not know, and
    /// [`RequestError::FeatureLacking`] for one that the device does not have, on or off: then nothing is
    /// changed. [`RequestError::FeatureUnchanged`] for the first that did not take effect,
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`.
    pub fn set_features(
        &mut self,
        interface: Interface,
        changes: &[(&str, bool)],
    ) -> Result<(), RequestError> {
        let names = self.feature_names(interface)?;
        let known = |feature: &str| names.iter().any(|name| name == feature);
        if let Some(&(feature, _)) = changes.iter().find(|(feature, _)| !known(feature)) {
            return Err(RequestError::NoSuchFeature {
                feature: feature.to_owned(),
            });
        }
        // The kernel ignores these, and "off" would look obeyed.
        let features = self.features(interface)?;
        if let Some(&(feature, _)) = changes.iter().find(|(name, _)| !features.has(name)) {
            return Err(RequestError::FeatureLacking {
                interface: interface.label(),
                feature: feature.to_owned(),
            });
        }

        let mut request = Request::new().op_features_set_do();
        request.header_mut().cmd = command::FEATURES_SET;
        let header = request
            .encode()
            .nested_header()
            .push_dev_index(interface.index());
        let mut bits = header
            .push_flags(HeaderFlags::OmitReply as u32)
            .end_nested()
            .nested_wanted()
            .nested_bits();
        for &(name, on) in changes {
            let bit = bits.nested_bit().push_name_bytes(name.as_bytes());
            bits = if on { bit.push_value(()) } else { bit }.end_nested();
        }
        drop(bits);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool features-set",
                interface,
            },
            &request,
        )?;

        let active = self.features(interface)?.active;
        match changes
            .iter()
            .find(|&&(name, on)| active.contains(name) != on)
        {
            None => Ok(()),
            Some(&(name, wanted)) => Err(RequestError::FeatureUnchanged {
                interface: interface.label(),
                feature: name.to_owned(),
                wanted,
            }),
        }
    }

    /// Names of the feature bits, by bit number.
    fn feature_names(&mut self, interface: Interface) -> Result<Vec<String>, RequestError> {
        let mut request = Request::new().op_strset_get_do();
        name_interface(request.encode().nested_header(), interface)
            .nested_stringsets()
            .nested_stringset()
            .push_id(SS_FEATURES)
            .end_nested()
            .end_nested();
        let subject = Subject {
            operation: "ethtool strset-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            let sets = reply
                .get_stringsets()
                .map_err(|error| subject.incomplete(error))?;
            let mut names = Vec::new();
            for string in sets.get_stringset().flat_map(|set| strings(&set)) {
                let index = string
                    .get_index()
                    .map_err(|error| subject.incomplete(error))?
                    as usize;
                let name = string
                    .get_value()
                    .map_err(|error| subject.incomplete(error))?;
                if names.len() <= index {
                    names.resize(index + 1, String::new());
                }
                names[index] = name.to_string_lossy().into_owned();
            }
            Ok(names)
        })
    }
}

/// The strings of a string set.
fn strings<'a>(set: &IterableStringset<'a>) -> Vec<IterableString<'a>> {
    // Not `get_strings`: the generated getters of repeated attributes end at the first other one.
    let strings = set.clone().find_map(|attribute| match attribute {
        Ok(Stringset::Strings(strings)) => Some(strings),
        _ => None,
    });
    strings
        .map(|strings| strings.get_string().collect())
        .unwrap_or_default()
}

/// Names of the bits that are set in a compact bitset: u32 words in host order, bit 0 first.
fn bits(bitset: &IterableBitset<'_>, names: &[String]) -> Result<BTreeSet<String>, RequestError> {
    const SUBJECT: Subject = Subject {
        operation: "ethtool features-get",
        interface: Interface::NONE,
    };
    let words = bitset
        .get_value()
        .map_err(|error| SUBJECT.incomplete(error))?;
    let is_set = |bit: usize| {
        words.chunks_exact(4).nth(bit / 32).is_some_and(|word| {
            u32::from_ne_bytes([word[0], word[1], word[2], word[3]]) & (1 << (bit % 32)) != 0
        })
    };
    // Gaps in the numbering have no name.
    Ok(names
        .iter()
        .enumerate()
        .filter(|(bit, name)| is_set(*bit) && !name.is_empty())
        .map(|(_, name)| name.clone())
        .collect())
}

#[cfg(test)]
mod tests {
    use netlink_bindings::ethtool::{Bitset, PushBitset};

    use super::*;

    #[test]
    fn a_device_has_what_is_on_or_can_be_changed() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let features = Features {
            changeable: set(&["off-for-now"]),
            wanted: set(&["only-wanted"]),
            active: set(&["fixed-on"]),
        };
        for (name, has) in [
            ("off-for-now", true),
            ("fixed-on", true),
            ("only-wanted", false),
            ("fixed-off", false),
        ] {
            assert_eq!(features.has(name), has, "{name}");
        }
    }

    #[test]
    fn bits_of_every_word_get_their_names() {
        let mut names: Vec<String> = (0..40).map(|bit| format!("feature-{bit}")).collect();
        names[3].clear();
        let words = [0b1001u32, 1 << 7].map(u32::to_ne_bytes).concat();
        let mut attributes = Vec::new();
        PushBitset::new(&mut attributes)
            .push_nomask(())
            .push_size(40)
            .push_value(&words);
        let set = bits(&Bitset::new(&attributes), &names).expect("a compact bitset");
        let expected = ["feature-0", "feature-39"].map(str::to_owned);
        assert_eq!(set, BTreeSet::from(expected));
    }
}
