// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

const PAGE: u64 = 4096;

fn memory(pages: u64) -> File {
    let fd = memfd_create("dma", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, pages * PAGE).unwrap();
    fd.into()
}

/// A map with so many pages at an address, and the file behind.
fn mapped(address: u64, pages: u64, flags: DmaMapFlags) -> (DmaMap, File) {
    let (mut map, file) = (DmaMap::default(), memory(pages));
    let again = file.try_clone().unwrap();
    map.map(address, pages * PAGE, Some(again), 0, flags)
        .unwrap();
    (map, file)
}

#[test]
fn what_is_written_is_in_the_file_and_what_is_in_the_file_is_read() {
    let (map, file) = mapped(0x8000, 2, DmaMapFlags::READ_WRITE);
    map.write(0x8123, b"payload").unwrap();
    let mut bytes = [0; 7];
    file.read_exact_at(&mut bytes, 0x123).unwrap();
    assert_eq!(&bytes, b"payload");
    file.write_all_at(b"another", 0x1000).unwrap();
    map.read(0x9000, &mut bytes).unwrap();
    assert_eq!(&bytes, b"another");
}

#[test]
fn a_region_begins_at_its_offset_in_the_file() {
    let (mut map, file) = (DmaMap::default(), memory(2));
    file.write_all_at(b"second", PAGE).unwrap();
    map.map(0, PAGE, Some(file), PAGE, DmaMapFlags::READ)
        .unwrap();
    let mut bytes = [0; 6];
    map.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"second");
}

#[test]
fn an_access_spans_adjacent_regions_and_no_gap() {
    let (mut map, low) = mapped(0, 1, DmaMapFlags::READ_WRITE);
    let high = memory(1);
    let again = high.try_clone().unwrap();
    map.map(PAGE, PAGE, Some(again), 0, DmaMapFlags::READ_WRITE)
        .unwrap();
    map.write(PAGE - 2, b"abcd").unwrap();
    let mut bytes = [0; 2];
    low.read_exact_at(&mut bytes, PAGE - 2).unwrap();
    assert_eq!(&bytes, b"ab");
    high.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"cd");

    assert_eq!(map.write(2 * PAGE - 2, b"abcd"), Err(Fault::Unanswered));
    high.read_exact_at(&mut bytes, PAGE - 2).unwrap();
    assert_eq!(bytes, [0; 2], "half an access was made");
}

#[test]
fn what_is_not_mapped_can_not_be_accessed() {
    let (map, _) = mapped(PAGE, 1, DmaMapFlags::READ_WRITE);
    for address in [0, PAGE - 1, 2 * PAGE, 2 * PAGE - 7, u64::MAX, u64::MAX - 3] {
        assert_eq!(
            map.read(address, &mut [0; 8]),
            Err(Fault::Unanswered),
            "{address:#x}"
        );
        assert_eq!(
            map.write(address, &[0; 8]),
            Err(Fault::Unanswered),
            "{address:#x}"
        );
    }
    assert_eq!(map.write(0, &[]), Ok(()));
}

#[test]
fn rights_are_kept_to() {
    let (map, _) = mapped(0, 1, DmaMapFlags::READ);
    assert_eq!(map.read(0, &mut [0; 4]), Ok(()));
    assert_eq!(map.write(0, &[0; 4]), Err(Fault::Unanswered));
    let (map, _) = mapped(0, 1, DmaMapFlags::WRITE);
    assert_eq!(map.read(0, &mut [0; 4]), Err(Fault::Unanswered));
    assert_eq!(map.write(0, &[0; 4]), Ok(()));
}

#[test]
fn a_region_without_a_descriptor_can_not_be_accessed() {
    let mut map = DmaMap::default();
    map.map(0, PAGE, None, 0, DmaMapFlags::READ_WRITE).unwrap();
    assert_eq!(map.read(0, &mut [0; 4]), Err(Fault::Unanswered));
    assert_eq!(map.unmap(0, PAGE), 1);
}

#[test]
fn what_was_unmapped_is_gone_and_may_come_again() {
    let (mut map, file) = mapped(PAGE, 1, DmaMapFlags::READ_WRITE);
    assert_eq!(map.unmap(PAGE, PAGE), 1);
    assert_eq!(map.read(PAGE, &mut [0; 4]), Err(Fault::Unanswered));
    map.map(PAGE, PAGE, Some(file), 0, DmaMapFlags::READ_WRITE)
        .unwrap();
    assert_eq!(map.read(PAGE, &mut [0; 4]), Ok(()));
    map.unmap_all();
    assert_eq!(map.read(PAGE, &mut [0; 4]), Err(Fault::Unanswered));
}

#[test]
fn what_was_never_mapped_is_unmapped_without_a_word() {
    let (mut map, _) = mapped(PAGE, 1, DmaMapFlags::READ_WRITE);
    assert_eq!(map.unmap(0, PAGE), 0);
    assert_eq!(map.unmap(2 * PAGE, u64::MAX), 0);
    assert_eq!(map.unmap(PAGE, 0), 0);
    assert_eq!(map.unmap(0, u64::MAX), 1);
}

#[test]
fn a_region_of_which_a_part_is_unmapped_is_gone() {
    let (mut map, _) = mapped(0, 4, DmaMapFlags::READ_WRITE);
    assert_eq!(map.unmap(PAGE, PAGE), 1);
    assert_eq!(map.read(0, &mut [0; 4]), Err(Fault::Unanswered));
}

#[test]
fn what_is_no_region_is_refused() {
    let (mut map, _) = mapped(PAGE, 2, DmaMapFlags::READ_WRITE);
    let mut refused = |address, size| {
        let file = Some(memory(1));
        let result = map.map(address, size, file, 0, DmaMapFlags::READ_WRITE);
        result.unwrap_err().to_string()
    };
    assert!(refused(0, 0).contains("no region"));
    assert!(refused(u64::MAX, 2).contains("no region"));
    for address in [0, PAGE, 2 * PAGE] {
        assert!(refused(address, 2 * PAGE).contains("overlap"));
    }
    assert!(refused(8 * PAGE, 2 * PAGE).contains("not all in their file"));
    let (file, none) = (memory(1), File::open("/dev/null").unwrap());
    for (file, offset) in [(file, 1), (none, 0)] {
        let result = map.map(0, 4, Some(file), offset, DmaMapFlags::READ);
        assert!(result.unwrap_err().to_string().contains("can't be mapped"));
    }
}
