// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kernel configurations: what a fragment asked for and Kconfig left out, and
//! what a user's own kernel lacks.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use super::wanted::Use;

/// The options that are set in a `.config` or a fragment; values as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config(BTreeMap<String, String>);

impl Config {
    /// Reads a `.config`.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        Ok(Self::parse(&fs::read_to_string(path)?))
    }

    /// Reads `CONFIG_X=value` lines and `# CONFIG_X is not set` (as `n`).
    pub(super) fn parse(text: &str) -> Self {
        let mut options = BTreeMap::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line
                .strip_prefix("# CONFIG_")
                .and_then(|l| l.strip_suffix(" is not set"))
            {
                options.insert(name.to_owned(), "n".to_owned());
            } else if let Some((name, value)) =
                line.strip_prefix("CONFIG_").and_then(|l| l.split_once('='))
            {
                options.insert(name.to_owned(), value.to_owned());
            }
        }
        Self(options)
    }

    /// The value of an option, named without `CONFIG_`; `n` where it isn't set.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("n", String::as_str)
    }

    /// The lines of this fragment that `result` doesn't have, in order of name.
    pub(super) fn lost_in(&self, result: &Self) -> Vec<String> {
        self.0
            .iter()
            .filter(|(name, value)| result.get(name) != value.as_str())
            .map(|(name, value)| format!("CONFIG_{name}={value} (became {})", result.get(name)))
            .collect()
    }

    /// What a kernel lacks for the use it is wanted for: one line per option,
    /// with what selects it where it can't be chosen itself.
    pub(super) fn lacks(&self, wanted: Use) -> Vec<String> {
        NEEDED
            .iter()
            .filter(|need| need.wanted <= wanted)
            .filter(|need| self.get(need.name) != "y")
            .map(|need| format!("CONFIG_{}=y: {}", need.name, need.why))
            .collect()
    }
}

/// An option that must be built in: `m` isn't enough for what is needed before any module is loaded.
struct Need {
    /// The least that needs it.
    wanted: Use,
    name: &'static str,
    why: &'static str,
}

const fn module(name: &'static str, why: &'static str) -> Need {
    let wanted = Use::Module;
    Need { wanted, name, why }
}

const fn guest(name: &'static str, why: &'static str) -> Need {
    let wanted = Use::Guest;
    Need { wanted, name, why }
}

const fn programs(name: &'static str, why: &'static str) -> Need {
    let wanted = Use::Programs;
    Need { wanted, name, why }
}

const NEEDED: &[Need] = &[
    module(
        "RUST",
        "the driver is Rust; Kconfig hides it when rustc or bindgen don't suit (`make \
         rustavailable` says why), with MODVERSIONS but no GENDWARFKSYMS, with RANDSTRUCT, with \
         KASAN under gcc, and with DEBUG_INFO_BTF and an old pahole",
    ),
    module("MODULES", "the driver is a module"),
    module("PCI_MSI", "the driver uses MSI-X"),
    module("INET", "devmem TCP"),
    module(
        "PAGE_POOL",
        "no prompt: select it through a driver that uses page pools, such as VIRTIO_NET",
    ),
    module(
        "NET_DEVMEM",
        "no prompt: on when DMA_SHARED_BUFFER and PAGE_POOL are; UDMABUF or \
         DMABUF_HEAPS select the first, VIRTIO_NET the last",
    ),
    guest("UDMABUF", "the guest's dma-bufs; needs MEMFD_CREATE"),
    guest("IPV6", "half of the cases"),
    guest("PACKET", "cases send and see frames"),
    guest("MODULE_UNLOAD", "cases unload the driver"),
    guest("NET_NS", "the peer lives in its own network namespace"),
    guest("ETHTOOL_NETLINK", "header split and RSS are set through it"),
    guest("BLK_DEV_INITRD", "the guest is an initramfs"),
    guest("BINFMT_ELF", "the guest's PID 1"),
    guest("DEVTMPFS", "the guest's /dev"),
    guest("TMPFS", "the guest's root and its /tmp"),
    guest("DEBUG_FS", "cases look into it"),
    guest("PROC_FS", "the guest's /proc"),
    guest("SYSFS", "the guest's /sys"),
    guest("SERIAL_8250_CONSOLE", "the kernel's log"),
    guest("VIRTIO_PCI", "the control channel"),
    guest("VIRTIO_CONSOLE", "the control channel"),
    guest("PCIEPORTBUS", "each NIC sits behind a root port"),
    programs("NET_9P_VIRTIO", "this machine's files are seen over 9p"),
    programs("9P_FS", "this machine's files are seen over 9p"),
    programs("OVERLAY_FS", "what a program changes goes to memory"),
];

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "CONFIG_RUST=y\nCONFIG_MODULES=y\nCONFIG_PCI_MSI=y\nCONFIG_INET=y\n\
                        CONFIG_PAGE_POOL=y\nCONFIG_NET_DEVMEM=y\n";

    #[test]
    fn options_are_read_as_kconfig_writes_them() {
        let config = Config::parse(
            "# a comment\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"a=b\"\nCONFIG_D=0x10\n",
        );
        assert_eq!(config.get("A"), "y");
        assert_eq!(config.get("B"), "n");
        assert_eq!(config.get("C"), "\"a=b\"");
        assert_eq!(config.get("D"), "0x10");
        assert_eq!(config.get("NOT_THERE"), "n");
    }

    #[test]
    fn a_fragment_line_that_kconfig_dropped_is_named_with_what_it_became() {
        let fragment = Config::parse("CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=y\n");
        let result = Config::parse("CONFIG_A=y\nCONFIG_B=y\n");
        assert_eq!(
            fragment.lost_in(&result),
            ["CONFIG_B=m (became y)", "CONFIG_D=y (became n)"]
        );
    }

    #[test]
    fn a_kernel_without_rust_or_devmem_is_told_which_option_and_what_selects_it() {
        assert!(Config::parse(GOOD).lacks(Use::Module).is_empty());
        let without = GOOD
            .replace("CONFIG_NET_DEVMEM=y\n", "")
            .replace("RUST=y", "RUST=n");
        let lacks = Config::parse(&without).lacks(Use::Module);
        assert_eq!(lacks.len(), 2, "{lacks:?}");
        assert!(lacks[0].starts_with("CONFIG_RUST=y: "), "{lacks:?}");
        assert!(
            lacks[1].contains("CONFIG_NET_DEVMEM") && lacks[1].contains("UDMABUF"),
            "{lacks:?}"
        );
    }

    #[test]
    fn a_guest_needs_more_than_a_module_and_some_of_it_built_in() {
        let config = Config::parse(&format!("{GOOD}CONFIG_VIRTIO_CONSOLE=m\n"));
        let lacks = config.lacks(Use::Guest);
        for name in ["VIRTIO_CONSOLE", "UDMABUF", "BLK_DEV_INITRD"] {
            assert!(
                lacks.iter().any(|l| l.contains(name)),
                "{name} not in {lacks:?}"
            );
        }
        let more = config.lacks(Use::Programs);
        assert!(more.starts_with(&lacks), "{more:?}");
        assert!(more.iter().any(|l| l.contains("OVERLAY_FS")), "{more:?}");
        assert!(!lacks.iter().any(|l| l.contains("OVERLAY_FS")), "{lacks:?}");
    }
}
