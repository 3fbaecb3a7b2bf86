// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What users ask of five-tuple filters: what becomes of it, what is refused, and where it goes.

use i82576::five_tuple::{
    Action, Addresses, Filter, Masked, Place, Protocol, Refusal, Rule, Table,
};
use proptest::prelude::*;

/// `value` with the bits of `mask` compared.
fn all<T>(value: T, mask: T) -> Masked<T> {
    Masked { value, mask }
}

/// A rule that the device can have.
fn rule() -> Rule {
    Rule {
        protocol: Protocol::Tcp,
        addresses: Addresses::V4 {
            source: all([192, 0, 2, 2], [0xff; 4]),
            destination: all([9, 9, 9, 9], [0; 4]),
        },
        source_port: all(9, 0),
        destination_port: all(5201, 0xffff),
        tos: false,
        mac: false,
        vlan: false,
        user_data: false,
        action: Action::Queue(3),
    }
}

#[test]
fn a_rule_becomes_the_filter_that_it_says() {
    assert_eq!(
        Filter::try_from(&rule()),
        Ok(Filter {
            protocol: Protocol::Tcp,
            source: Some([192, 0, 2, 2]),
            destination: None,
            source_port: None,
            destination_port: Some(5201),
            queue: 3,
        })
    );
}

#[test]
fn a_rule_for_ipv6_without_addresses_is_the_filter_of_its_ports() {
    let rule = Rule {
        addresses: Addresses::V6 { compared: false },
        ..rule()
    };
    let filter = Filter::try_from(&rule).unwrap();
    assert_eq!((filter.source, filter.destination), (None, None));
    assert_eq!(filter.destination_port, Some(5201));
    let mut table = Table::EMPTY;
    let place = table.insert(Place::Last, filter).unwrap();
    table.set_ipv6(place, true);
    assert!(table.is_ipv6(7) && !table.is_ipv6(6) && !table.is_ipv6(8));
    table.set_ipv6(place, false);
    assert!(!table.is_ipv6(7));
}

#[test]
fn what_the_device_cannot_do_is_refused_for_its_own_reason() {
    let addresses = |source, destination| Addresses::V4 {
        source: all([192, 0, 2, 2], source),
        destination: all([192, 0, 2, 1], destination),
    };
    type Change<'a> = &'a dyn Fn(&mut Rule);
    let cases: [(Change<'_>, Refusal); 16] = [
        (
            &|rule| rule.addresses = Addresses::V6 { compared: true },
            Refusal::Ipv6,
        ),
        (
            &|rule| rule.addresses = addresses([0xff, 0xff, 0xff, 0], [0; 4]),
            Refusal::PartOfAddress,
        ),
        (
            &|rule| rule.addresses = addresses([0; 4], [0xff, 0xff, 0xff, 0xfe]),
            Refusal::PartOfAddress,
        ),
        (&|rule| rule.source_port.mask = 0xff00, Refusal::PartOfPort),
        (&|rule| rule.destination_port.mask = 1, Refusal::PartOfPort),
        (&|rule| rule.tos = true, Refusal::Tos),
        (&|rule| rule.mac = true, Refusal::Mac),
        (&|rule| rule.vlan = true, Refusal::Vlan),
        (&|rule| rule.user_data = true, Refusal::UserData),
        (&|rule| rule.action = Action::Drop, Refusal::Drop),
        (
            &|rule| rule.action = Action::VirtualFunction,
            Refusal::VirtualFunction,
        ),
        (
            &|rule| rule.action = Action::RssContext,
            Refusal::RssContext,
        ),
        (
            &|rule| rule.action = Action::Queue(16),
            Refusal::NoSuchQueue,
        ),
        (
            &|rule| rule.action = Action::Queue(u32::MAX),
            Refusal::NoSuchQueue,
        ),
        // A user-defined value is refused before what becomes of the packet.
        (
            &|rule| {
                rule.user_data = true;
                rule.action = Action::Drop;
            },
            Refusal::UserData,
        ),
        (
            &|rule| {
                rule.addresses = Addresses::V6 { compared: true };
                rule.tos = true;
            },
            Refusal::Ipv6,
        ),
    ];
    for (change, refusal) in cases {
        let mut rule = rule();
        change(&mut rule);
        assert_eq!(Filter::try_from(&rule), Err(refusal), "{rule:?}");
        assert!(!refusal.reason().is_empty());
    }
}

#[test]
fn places_are_given_replaced_and_found_free() {
    let filter = Filter::try_from(&rule()).unwrap();
    let other = Filter { queue: 1, ..filter };
    let mut table = Table::EMPTY;
    assert_eq!(table.insert(Place::At(3), filter), Ok(3));
    assert_eq!(table.insert(Place::At(3), other), Ok(3), "replaced");
    assert_eq!(table.get(3), Some(&other));
    assert_eq!(table.insert(Place::First, filter), Ok(0));
    assert_eq!(table.insert(Place::Last, filter), Ok(7));
    for place in [8, 9, u32::MAX] {
        let before = table.clone();
        assert_eq!(
            table.insert(Place::At(place), filter),
            Err(Refusal::NoSuchPlace)
        );
        assert_eq!((table.remove(place), table.get(place)), (None, None));
        assert_eq!(table, before);
    }

    let free = [1, 2, 4, 5, 6];
    for place in free {
        assert_eq!(table.insert(Place::First, filter), Ok(place));
    }
    for full in [Place::First, Place::Last] {
        assert_eq!(table.insert(full, filter), Err(Refusal::Full));
    }
    assert_eq!(table.remove(5), Some(filter));
    assert_eq!(table.remove(5), None, "it is gone");
    assert_eq!(table.insert(Place::Last, other), Ok(5));
}

proptest! {
    #[test]
    fn a_value_that_is_not_compared_does_not_matter(
        compared: [bool; 4],
        source: [u8; 4],
        destination: [u8; 4],
        source_port: u16,
        destination_port: u16,
        queue in 0u8..16,
    ) {
        let address = |value, compared| all(value, if compared { [0xff; 4] } else { [0; 4] });
        let port = |value, compared| all(value, if compared { 0xffff } else { 0 });
        let rule = Rule {
            addresses: Addresses::V4 {
                source: address(source, compared[0]),
                destination: address(destination, compared[1]),
            },
            source_port: port(source_port, compared[2]),
            destination_port: port(destination_port, compared[3]),
            action: Action::Queue(queue.into()),
            ..rule()
        };
        prop_assert_eq!(
            Filter::try_from(&rule),
            Ok(Filter {
                protocol: Protocol::Tcp,
                source: compared[0].then_some(source),
                destination: compared[1].then_some(destination),
                source_port: compared[2].then_some(source_port),
                destination_port: compared[3].then_some(destination_port),
                queue,
            })
        );
    }
}
