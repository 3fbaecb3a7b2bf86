// SPDX-License-Identifier: GPL-2.0

//! The allocator against a model that keeps one `bool` a page.

use page_ranges::{words_for, PageRanges};
use proptest::prelude::*;

fn region(pages: usize) -> PageRanges<Vec<u64>> {
    PageRanges::new(vec![0; words_for(pages)], pages).expect("words_for() words are enough")
}

#[test]
fn too_few_words_make_no_region() {
    assert!(PageRanges::new(vec![0; 1], 64).is_some());
    assert!(PageRanges::new(vec![0; 1], 65).is_none());
}

#[test]
fn words_that_were_used_before_are_free_at_first() {
    let mut region = PageRanges::new(vec![u64::MAX; 2], 128).expect("2 words are enough");
    assert_eq!(region.free(), 128);
    assert_eq!(region.take(128, 1), Some(0));
}

#[test]
fn the_whole_region_is_one_range() {
    for pages in [1, 63, 64, 65, 1000] {
        let mut region = region(pages);
        assert_eq!(region.take(pages + 1, 1), None);
        assert_eq!(region.take(pages, 1), Some(0));
        assert_eq!(region.free(), 0);
        assert_eq!(region.take(1, 1), None);
        region.release(0, pages);
        assert_eq!(region.take(pages, 1), Some(0));
    }
}

#[test]
fn nothing_and_no_alignment_are_refused() {
    let mut region = region(64);
    assert_eq!(region.take(0, 1), None);
    assert_eq!(region.take(1, 0), None);
    assert_eq!(region.take(usize::MAX, 1), None);
    assert_eq!(region.free(), 64);
}

#[test]
fn an_alignment_beyond_the_region_leaves_its_begin() {
    let mut region = region(64);
    assert_eq!(region.take(1, 1 << 40), Some(0));
    assert_eq!(region.take(1, 1 << 40), None);
    assert_eq!(region.take(1, usize::MAX), None);
}

#[test]
fn a_hole_is_used_before_what_lies_behind_it() {
    let mut region = region(256);
    let ranges: Vec<_> = (0..4).map(|_| region.take(64, 1)).collect();
    assert_eq!(ranges, [Some(0), Some(64), Some(128), Some(192)]);
    region.release(64, 64);
    region.release(192, 64);
    assert_eq!(region.take(64, 1), Some(64));
    assert_eq!(region.free(), 64);
}

#[test]
fn free_pages_that_are_apart_are_no_range() {
    let mut region = region(192);
    assert_eq!(region.take(192, 1), Some(0));
    region.release(0, 64);
    region.release(128, 64);
    assert_eq!(region.free(), 128);
    assert_eq!(region.take(65, 1), None);
}

#[test]
fn releasing_twice_or_beyond_the_end_changes_nothing() {
    let mut region = region(100);
    assert_eq!(region.take(10, 1), Some(0));
    region.release(0, 10);
    region.release(0, 10);
    region.release(90, usize::MAX);
    assert_eq!(region.free(), 100);
    assert_eq!(region.take(100, 1), Some(0));
}

#[test]
fn only_what_was_taken_counts_as_released() {
    let mut region = region(100);
    assert_eq!(region.take(80, 1), Some(0));
    region.release(10, 10);
    region.release(30, 10);
    assert_eq!(region.free(), 40);
    region.release(0, 50);
    assert_eq!(region.free(), 70);
    region.release(0, 100);
    assert_eq!(region.free(), 100);
}

#[derive(Debug, Clone)]
enum Step {
    Take { count: usize, align: usize },
    Release { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1usize..100, 0u32..7).prop_map(|(count, order)| Step::Take {
            count,
            align: 1 << order
        }),
        any::<usize>().prop_map(|which| Step::Release { which }),
    ]
}

proptest! {
    #[test]
    fn it_does_what_a_search_page_by_page_does(
        pages in 1usize..400,
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut region = region(pages);
        let mut taken = vec![false; pages];
        let mut ranges = Vec::new();
        for step in steps {
            match step {
                Step::Take { count, align } => {
                    let expected = (0..pages).step_by(align).find(|first| {
                        taken.get(*first..first + count).is_some_and(|r| r.iter().all(|t| !t))
                    });
                    prop_assert_eq!(region.take(count, align), expected);
                    if let Some(first) = expected {
                        taken[first..first + count].fill(true);
                        ranges.push((first, count));
                    }
                }
                Step::Release { which } if !ranges.is_empty() => {
                    let (first, count) = ranges.swap_remove(which % ranges.len());
                    region.release(first, count);
                    taken[first..first + count].fill(false);
                }
                Step::Release { .. } => {}
            }
            prop_assert_eq!(region.free(), taken.iter().filter(|t| !**t).count());
        }
    }
}
