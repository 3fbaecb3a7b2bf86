// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::nic::IDENTITY;

fn read(config: &Config, offset: u64) -> u32 {
    let mut bytes = [0; 4];
    config.read(offset, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn write(config: &mut Config, offset: u64, value: u32) -> Changes {
    config.write(offset, &value.to_le_bytes())
}

/// Capabilities of the list, in order: where each is.
fn capabilities(config: &Config) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    let mut at = u64::from(read(config, 0x34) & 0xff);
    while at != 0 {
        let header = read(config, at);
        found.push((header & 0xff, at));
        at = u64::from(header >> 8 & 0xff);
        assert!(found.len() < 48, "the list has no end");
    }
    found
}

#[test]
fn it_is_an_82576() {
    let config = Config::new(&IDENTITY);
    assert_eq!(read(&config, 0), 0x10c9_8086);
    assert_eq!(read(&config, 8) >> 8, 0x02_0000);
    assert_eq!(read(&config, 0x0c) >> 16 & 0xff, 0, "an endpoint's header");
}

#[test]
fn bars_tell_their_size_and_then_take_an_address() {
    let mut config = Config::new(&IDENTITY);
    for bar in 0..6 {
        write(&mut config, 0x10 + 4 * bar, u32::MAX);
    }
    let sizes = (0..6).map(|bar| read(&config, 0x10 + 4 * bar));
    let (registers, msix) = (!(128 * 1024 - 1), !(16 * 1024 - 1));
    assert_eq!(sizes.collect::<Vec<_>>(), [registers, 0, 0, msix, 0, 0]);
    write(&mut config, 0x10, 0xfe01_2345);
    assert_eq!(read(&config, 0x10), 0xfe00_0000);
}

#[test]
fn registers_are_where_their_bar_says_while_memory_space_is_enabled() {
    let mut config = Config::new(&IDENTITY);
    write(&mut config, 0x10, 0xfe02_0000);
    assert_eq!(config.registers(), None);
    write(&mut config, 4, 2);
    assert_eq!(config.registers(), Some(0xfe02_0000));
    write(&mut config, 0x44, 3);
    assert_eq!(config.registers(), None);
}

#[test]
fn there_is_no_rom() {
    let mut config = Config::new(&IDENTITY);
    write(&mut config, 0x30, u32::MAX);
    assert_eq!(read(&config, 0x30), 0);
}

#[test]
fn capabilities_are_listed() {
    let config = Config::new(&IDENTITY);
    let found = capabilities(&config);
    assert_eq!(found, [(0x01, 0x40), (0x11, 0x70), (0x10, 0xa0)]);
    assert_eq!(read(&config, 0x04) >> 20 & 1, 1, "there is a list");
    // Ten vectors; the table and the pending bits are in the fourth BAR.
    assert_eq!(read(&config, 0x70) >> 16, 9);
    assert_eq!((read(&config, 0x74), read(&config, 0x78)), (3, 0x2003));
    assert_eq!(read(&config, 0xa4) >> 28 & 1, 1, "FLR");
    // Of the extended ones there is advanced error reporting.
    assert_eq!(read(&config, 0x100), 0x0001_0001);
}

#[test]
fn what_is_read_only_stays() {
    let mut config = Config::new(&IDENTITY);
    for offset in (0..SIZE as u64).step_by(4) {
        // Bus master and D0; no FLR.
        write(&mut config, offset, 0xffff_7ffc);
    }
    assert_eq!(read(&config, 0), 0x10c9_8086);
    assert_eq!(capabilities(&config).len(), 3);
    assert_eq!(read(&config, 0xa4), read(&Config::new(&IDENTITY), 0xa4));
}

#[test]
fn a_change_of_bus_master_is_reported() {
    let mut config = Config::new(&IDENTITY);
    assert!(!config.bus_master() && !config.memory());
    let changes = config.write(4, &[0x06, 0]);
    assert_eq!(changes.bus_master, Some(true));
    assert!(config.bus_master() && config.memory());
    assert_eq!(config.write(4, &[0x06]), Changes::default());
    assert_eq!(config.write(4, &[0x02]).bus_master, Some(false));
}

#[test]
fn a_change_of_msix_is_reported() {
    let mut config = Config::new(&IDENTITY);
    assert_eq!(config.write(0x72, &[0x00, 0xc0]).msix, Some(true));
    assert_eq!(config.write(0x73, &[0x80]), Changes::default());
    assert_eq!(config.write(0x73, &[0x00]).msix, Some(false));
}

#[test]
fn in_d3hot_nothing_but_configuration_space_answers_and_the_way_out_resets() {
    let mut config = Config::new(&IDENTITY);
    write(&mut config, 4, 6);
    let changes = write(&mut config, 0x44, 3);
    assert_eq!(changes.power, Some(Power::D3Hot));
    assert_eq!(changes.bus_master, Some(false));
    assert!(!changes.resets() && !config.memory());
    assert_eq!(read(&config, 4) & 0xffff, 6);
    let changes = write(&mut config, 0x44, 0);
    assert!(changes.resets());
    assert_eq!(read(&config, 4) & 0xffff, 0);
}

#[test]
fn what_has_woken_the_device_is_known_until_it_is_cleared_or_the_function_reset() {
    let mut config = Config::new(&IDENTITY);
    write(&mut config, 0x44, 0x103);
    config.wake();
    assert_eq!(read(&config, 0x44), 0x8103);
    write(&mut config, 0x44, 0x100);
    assert_eq!(read(&config, 0x44), 0x8100);
    write(&mut config, 0x44, 0x8100);
    assert_eq!(read(&config, 0x44), 0x100);
    config.wake();
    config.write(0xa8, &[0x10, 0xa8]);
    assert_eq!(read(&config, 0x44), 0);
}

#[test]
fn states_that_there_are_not_are_discarded() {
    let mut config = Config::new(&IDENTITY);
    for state in [1, 2] {
        let changes = write(&mut config, 0x44, 0x100 | state);
        assert_eq!((changes.power, config.power()), (None, Power::D0));
        assert_eq!(read(&config, 0x44), 0x100, "PME is enabled all the same");
    }
    write(&mut config, 0x44, 3);
    write(&mut config, 0x44, 1);
    assert_eq!(config.power(), Power::D3Hot);
}

#[test]
fn a_function_level_reset_leaves_what_concerns_the_link() {
    let mut config = Config::new(&IDENTITY);
    write(&mut config, 4, 6);
    write(&mut config, 0x10, 0xfe00_0000);
    write(&mut config, 0xb0, 0x40);
    let changes = config.write(0xa8, &[0x40, 0xa8]);
    assert!(changes.flr && changes.resets());
    assert_eq!(changes.bus_master, Some(false));
    assert_eq!((read(&config, 4) & 0xffff, read(&config, 0x10)), (0, 0));
    assert_eq!(read(&config, 0xb0) & 0xffff, 0x40);
    // The payload stays, the rest is the default, and the bit reads as 0.
    assert_eq!(read(&config, 0xa8) & 0xffff, 0x2850);
}

#[test]
fn errors_are_cleared_by_writing_1() {
    let mut config = Config::new(&IDENTITY);
    config.layout.bytes[0xaa] = 0x05;
    write(&mut config, 0xa8, 0x0001_0000);
    assert_eq!(read(&config, 0xa8) >> 16, 4);
}

#[test]
fn accesses_beyond_the_end_are_harmless() {
    let mut config = Config::new(&IDENTITY);
    let mut bytes = [0xff; 8];
    config.read(SIZE as u64 - 4, &mut bytes);
    assert_eq!(bytes, [0; 8]);
    for offset in [SIZE as u64 - 2, SIZE as u64, u64::MAX] {
        config.read(offset, &mut bytes);
        assert_eq!(config.write(offset, &[0xff; 8]), Changes::default());
    }
    config.read(0, &mut []);
    config.write(0, &[]);
}
