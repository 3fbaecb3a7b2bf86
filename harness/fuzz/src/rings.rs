// SPDX-License-Identifier: MIT OR Apache-2.0

//! A receive ring whose device sets DD wherever it likes.

use i82576::{
    limits::{RING_MAX, RING_MIN, RING_MULTIPLE},
    ring::{Ring, Window},
};

use crate::input::Input;

/// Posts and cleans, as the driver does, and checks whose each descriptor is.
pub fn rings(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let eighths = RING_MIN / RING_MULTIPLE..=RING_MAX / RING_MULTIPLE;
    let len = match input.any() {
        // Small ones wrap often.
        0u8..=200 => RING_MIN,
        _ => input.within(eighths) * RING_MULTIPLE,
    };
    let Some(ring) = Ring::new(len) else {
        panic!("{len} is no ring");
    };
    let mut window = Window::new(ring);
    let mut done = vec![false; len.into()];
    let mut is_devices = vec![false; len.into()];
    let (mut posted, mut cleaned) = (0u64, 0u64);
    while !input.is_empty() {
        match input.within(0..=5u8) {
            0 => {
                let (start, count) = (input.within(0..=len - 1), input.any::<u8>());
                for nth in 0..count.into() {
                    done[usize::from(ring.advance(start, nth))] = true;
                }
            }
            1 | 2 => {
                // Memory may be short.
                let mut left = input.any::<u8>().into();
                while left != 0 {
                    let run = window.to_post(left);
                    for index in run.range() {
                        assert!(!is_devices[index], "{index} is given twice");
                        is_devices[index] = true;
                        done[index] = false;
                    }
                    window.post(run.count);
                    posted += u64::from(run.count);
                    left -= run.count;
                    if run.count == 0 {
                        assert_eq!(window.unposted(), 0);
                        break;
                    }
                }
            }
            3 | 4 => {
                let run = window.to_clean(input.any());
                let count = run.range().take_while(|index| done[*index]).count() as u16;
                for index in run.range().take(count.into()) {
                    assert!(is_devices[index], "{index} is not the device's");
                    is_devices[index] = false;
                }
                window.clean(count);
                cleaned += u64::from(count);
            }
            _ => {
                window.rewind();
                is_devices.fill(false);
                (posted, cleaned) = (0, 0);
            }
        }
        let outstanding = posted - cleaned;
        assert_eq!(u64::from(window.posted()), outstanding);
        assert_eq!(
            u64::from(window.unposted()),
            u64::from(len) - 1 - outstanding
        );
        assert_eq!(u64::from(window.tail()), posted % u64::from(len));
        assert_eq!(u64::from(window.oldest()), cleaned % u64::from(len));
    }
    // Whatever somebody takes for an index, what comes of it is one.
    let (index, count) = (input.any(), input.any());
    assert!(ring.after(index, count) < len && ring.next(index) < len);
    assert!(ring.advance(index, count) < len && ring.unused(index, count) < len);
}
