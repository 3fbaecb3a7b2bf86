// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where NICs and accelerator are in the PCI hierarchy, which decides whether they reach each
//! other's memory.

use serde::Deserialize;
use serde_json::Value;

use crate::qemu::Arguments;

/// The accelerator in QEMU.
pub(crate) const ACCELERATOR: &str = "accelerator";

/// The BAR that the accelerator's memory is behind (QEMU, docs/specs/ivshmem-spec.rst).
const MEMORY_BAR: u64 = 2;

/// How the devices of a machine are connected.
///
/// The kernel lets a device reach another one's memory when they are behind one switch, or when it
/// knows that the root complex passes such traffic on (drivers/pci/p2pdma.c). It knows that of a
/// few host bridges, which QEMU's is not, and of all processors of AMD since Zen, family 23.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Topology {
    /// Each behind a root port of its own, on a root complex of which the kernel knows nothing: it
    /// refuses peer-to-peer. Under KVM the processor is the host's and may be one that the kernel
    /// knows.
    #[default]
    RootPorts,
    /// Each behind a root port of its own, on a root complex that passes peer-to-peer traffic.
    /// Under KVM it takes a processor of AMD.
    RootComplex,
    /// All behind one switch.
    Switch,
}

impl Topology {
    /// QEMU's CPU model.
    pub(crate) fn cpu(self) -> &'static str {
        match self {
            // The emulated processor calls itself AuthenticAMD.
            Self::RootComplex => "max,family=23",
            Self::RootPorts | Self::Switch => "max",
        }
    }
}

/// What the NICs are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NicBus {
    /// Each on a PCI Express port of its own, where it can be unplugged.
    #[default]
    Port,
    /// On the root bus, as integrated endpoints.
    Root,
    /// Each on a conventional PCI bus of its own.
    Pci,
}

/// Gives each device a port of its own.
pub(crate) struct Ports {
    topology: Topology,
    count: u8,
}

impl Ports {
    /// Adds what the ports are connected to.
    pub(crate) fn new(topology: Topology, arguments: &mut Arguments) -> Self {
        if topology == Topology::Switch {
            arguments.device("pcie-root-port,id=root,chassis=0,slot=0");
            arguments.device("x3130-upstream,id=switch,bus=root");
        }
        Self { topology, count: 0 }
    }

    /// Adds a port; returns the name of the bus behind it.
    pub(crate) fn add(&mut self, arguments: &mut Arguments) -> String {
        let port = format!("port{}", self.count);
        self.count += 1;
        let number = self.count;
        let kind = match self.topology {
            Topology::RootPorts | Topology::RootComplex => "pcie-root-port",
            Topology::Switch => "xio3130-downstream,bus=switch",
        };
        arguments.device(format!("{kind},id={port},chassis={number},slot={number}"));
        port
    }

    /// Adds a port for a NIC, and what is between them; returns the name of the bus that the NIC is on.
    pub(crate) fn add_for_nic(&mut self, bus: NicBus, arguments: &mut Arguments) -> String {
        // Also where the NIC isn't behind it, so that ports have the same names.
        let port = self.add(arguments);
        match bus {
            NicBus::Port => port,
            NicBus::Root => "pcie.0".to_owned(),
            NicBus::Pci => {
                let bridge = format!("pci-{port}");
                arguments.device(format!("pcie-pci-bridge,id={bridge},bus={port}"));
                bridge
            }
        }
    }
}

/// Where the accelerator's memory is in the guest's address space, from the answer to `query-pci`.
/// None when there is no accelerator, or its memory is switched off.
pub(crate) fn accelerator_address(buses: &Value) -> Option<u64> {
    let devices = |bus: &Value| bus["devices"].as_array().cloned().unwrap_or_default();
    let mut found = buses.as_array()?.iter().flat_map(devices);
    found.find_map(|device| {
        if device["qdev_id"] == ACCELERATOR {
            let mut regions = device["regions"].as_array()?.iter();
            let memory = regions.find(|region| region["bar"] == MEMORY_BAR)?;
            // A BAR that is switched off is said to be at -1.
            return memory["address"].as_u64().filter(|&at| at != u64::MAX);
        }
        accelerator_address(&Value::Array(vec![device["pci_bridge"].clone()]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What QEMU answers, cut to what matters: the accelerator is behind a switch.
    fn buses(address: Value) -> Value {
        let accelerator = json!({ "qdev_id": "accelerator", "regions": [
            { "bar": 0, "type": "memory", "address": 0x1000, "size": 256 },
            { "bar": 2, "type": "memory", "address": address, "size": 0x400_0000 },
        ]});
        let bridge = |inner: Value| json!({ "qdev_id": "", "regions": [], "pci_bridge": { "bus": {}, "devices": [inner] } });
        let nic = json!({ "qdev_id": "nic0-1", "regions": [] });
        json!([{ "bus": 0, "devices": [nic, bridge(bridge(bridge(accelerator)))] }])
    }

    #[test]
    fn the_accelerators_memory_is_found_behind_bridges() {
        let address = 0x38_0000_0000_u64;
        assert_eq!(accelerator_address(&buses(address.into())), Some(address));
    }

    #[test]
    fn a_bar_that_is_switched_off_has_no_address() {
        assert_eq!(accelerator_address(&buses(json!(-1))), None);
        assert_eq!(accelerator_address(&buses(u64::MAX.into())), None);
        assert_eq!(
            accelerator_address(&json!([{ "bus": 0, "devices": [] }])),
            None
        );
    }

    #[test]
    fn a_nic_is_behind_its_port_on_the_root_bus_or_behind_a_bridge() {
        for (bus, name, bridges) in [
            (NicBus::Port, "port0", 0),
            (NicBus::Root, "pcie.0", 0),
            (NicBus::Pci, "pci-port0", 1),
        ] {
            let mut arguments = Arguments::default();
            let mut ports = Ports::new(Topology::RootPorts, &mut arguments);
            assert_eq!(ports.add_for_nic(bus, &mut arguments), name);
            let text = arguments.text();
            let found = text.matches("pcie-pci-bridge,id=pci-port0,bus=port0");
            assert_eq!(found.count(), bridges, "{text}");
            assert_eq!(ports.add(&mut arguments), "port1");
        }
    }

    #[test]
    fn behind_a_switch_every_port_is_one_of_the_switch() {
        let mut arguments = Arguments::default();
        let mut ports = Ports::new(Topology::Switch, &mut arguments);
        let buses = [ports.add(&mut arguments), ports.add(&mut arguments)];
        assert_ne!(buses[0], buses[1]);
        let text = arguments.text();
        assert_eq!(text.matches("pcie-root-port").count(), 1, "{text}");
        assert_eq!(
            text.matches("xio3130-downstream,bus=switch").count(),
            2,
            "{text}"
        );
    }
}
