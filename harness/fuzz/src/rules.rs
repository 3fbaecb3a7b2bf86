// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which queue a packet goes to: five-tuple filters and RSS, as users may want them.

use i82576::{
    five_tuple::{Action, Addresses, Filter, Masked, Place, Protocol, Registers, Rule, Table},
    limits::FIVE_TUPLE_FILTERS,
    rss::{self, Flow, HashFields, Hashed, IndirectionTable, Key},
};

use crate::input::Input;

/// Converts rules to filters and registers and back, and hashes.
pub fn rules(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    rule(&mut input);
    registers(&mut input);
    table(&mut input);
    hash(&mut input);
}

fn masked<T: Copy>(input: &mut Input<'_>, masks: &[T], value: T) -> Masked<T> {
    let mask = input.of(masks);
    Masked { value, mask }
}

fn rule(input: &mut Input<'_>) {
    let addresses = [[0; 4], [0xff; 4], [0xff, 0xff, 0xff, 0]];
    let ports = [0, u16::MAX, 0xff00];
    let flags = input.any::<u8>();
    let seldom = |bit: u32| flags == 1 << bit;
    let rule = Rule {
        protocol: input.of(&[Protocol::Tcp, Protocol::Udp, Protocol::Sctp]),
        addresses: match input.any::<u8>() {
            0..=30 => Addresses::V6 {
                compared: seldom(0),
            },
            _ => {
                let (source, destination) = (input.any(), input.any());
                Addresses::V4 {
                    source: masked(input, &addresses, source),
                    destination: masked(input, &addresses, destination),
                }
            }
        },
        source_port: {
            let port = input.any();
            masked(input, &ports, port)
        },
        destination_port: {
            let port = input.any();
            masked(input, &ports, port)
        },
        tos: seldom(1),
        mac: seldom(2),
        vlan: seldom(3),
        user_data: seldom(4),
        action: match input.any::<u8>() {
            0 => Action::Drop,
            1 => Action::VirtualFunction,
            _ => Action::Queue(input.within(0..=20)),
        },
    };
    let Ok(filter) = Filter::try_from(&rule) else {
        return;
    };
    assert!(filter.queue < 16 && !(rule.tos || rule.mac || rule.vlan || rule.user_data));
    let place = input.within(0..=FIVE_TUPLE_FILTERS - 1);
    let registers = filter.registers(place);
    assert_eq!(registers.filter(), Some(filter), "{registers:x?}");
}

/// Registers of any values are a filter that means the same, or none.
fn registers(input: &mut Input<'_>) {
    let registers = Registers {
        ftqf: input.any::<u32>() & input.of(&[u32::MAX, 0xf000_81ff])
            | input.of(&[0, 1 << 8 | 1 << 15]),
        saqf: input.any(),
        daqf: input.any(),
        spqf: input.any(),
        imir: input.any(),
        imirext: input.of(&[Registers::OFF.imirext, 0]),
    };
    if let Some(filter) = registers.filter() {
        assert!(filter.queue < 16);
        assert_eq!(filter.registers(0).filter(), Some(filter));
    }
}

fn table(input: &mut Input<'_>) {
    let mut table = Table::EMPTY;
    let mut expected = [None; FIVE_TUPLE_FILTERS as usize];
    for queue in 0..10 {
        let filter = Filter {
            protocol: Protocol::Tcp,
            source: None,
            destination: None,
            source_port: None,
            destination_port: Some(input.any()),
            queue,
        };
        let place = match input.within(0..=3u8) {
            0 => Place::At(input.within(0..=9)),
            1 => Place::First,
            2 => Place::Last,
            _ => {
                let place = input.within(0..=9);
                let old = expected.get_mut(place as usize).and_then(Option::take);
                assert_eq!(table.remove(place), old);
                continue;
            }
        };
        if let Ok(at) = table.insert(place, filter) {
            expected[usize::from(at)] = Some(filter);
        }
        for n in 0..12 {
            let filter = expected.get(n as usize).and_then(Option::as_ref);
            assert_eq!(table.get(n), filter);
        }
    }
}

fn hash(input: &mut Input<'_>) {
    let key: [u8; rss::KEY_SIZE] = input
        .any::<[u8; 20]>()
        .repeat(2)
        .try_into()
        .unwrap_or([0; 40]);
    let bytes = input.bytes(36);
    let len = input.of(&[8, 12, 32, 36]);
    let hash = rss::toeplitz(&Key::new(key), &bytes[..len]);
    assert_eq!(hash, toeplitz(&key, &bytes[..len]));
    let mut table = IndirectionTable::spread(input.any());
    let (entry, queue) = (input.within(0..=140), input.within(0..=20));
    let is_set = table.set(entry, queue);
    assert_eq!(is_set, entry < 128 && queue < 16);
    assert!(table.queue(hash) < 16);
    assert_eq!(Some(table.queue(hash)), table.get((hash % 128) as usize));

    let flow = input.of(&[Flow::Tcp4, Flow::Tcp6, Flow::Udp4, Flow::Udp6, Flow::Other]);
    let hashed = input.of(&[
        Hashed::Nothing,
        Hashed::Addresses,
        Hashed::AddressesAndPorts,
    ]);
    if let Some(fields) = input
        .of(&[HashFields::ALL, HashFields::TCP])
        .with(flow, hashed)
    {
        assert_eq!(fields.of(flow), hashed);
    }
}

/// The hash by its definition, bit by bit.
fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let bit = |bytes: &[u8], at: usize| u32::from(bytes[at / 8] >> (7 - at % 8) & 1);
    let window = |at| (at..at + 32).fold(0, |word, at| word << 1 | bit(key, at));
    let set = (0..input.len() * 8).filter(|at| bit(input, *at) != 0);
    set.fold(0, |hash, at| hash ^ window(at))
}
