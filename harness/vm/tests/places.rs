// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where in the machine the NICs are.

mod common;

use common::images;
use serde_json::{Value, json};
use vm::{Machine, NicBus};

/// The numbers of the buses that lead to a device.
fn path(buses: &Value, name: &str) -> Option<Vec<u64>> {
    let devices = buses["devices"].as_array()?;
    devices.iter().find_map(|device| {
        let bus = device["bus"].as_u64()?;
        if device["qdev_id"] == name {
            return Some(vec![bus]);
        }
        let behind = path(&device["pci_bridge"], name)?;
        Some([vec![bus], behind].concat())
    })
}

#[test]
fn a_nic_is_on_a_port_on_the_root_bus_or_on_a_conventional_bus() {
    for (bus, bridges) in [(NicBus::Root, 0), (NicBus::Port, 1), (NicBus::Pci, 2)] {
        let machine = Machine::new().nic("virtio-net-pci").nic_bus(bus);
        let guest = machine.boot(&images(), "places").unwrap();
        let buses = guest.monitor("query-pci", json!({})).unwrap();
        for name in ["nic0-1", "nic0-2"] {
            let path = path(&buses[0], name).unwrap_or_default();
            assert_eq!(path.len(), bridges + 1, "{bus:?}: {path:?} in {buses}");
        }
        guest.finish().unwrap();
    }
}
