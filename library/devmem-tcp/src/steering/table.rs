// SPDX-License-Identifier: MIT OR Apache-2.0

//! Indirection tables of RSS: taking queues out, and putting them back.

/// The table without `taken`: their entries get the other queues in turn. None if there is no other.
pub(super) fn without(table: &[u32], taken: &[u32]) -> Option<Vec<u32>> {
    let mut others: Vec<u32> = table.to_vec();
    others.sort_unstable();
    others.dedup();
    others.retain(|queue| !taken.contains(queue));
    let mut turn = others.iter().cycle();
    table
        .iter()
        .map(|&queue| {
            if taken.contains(&queue) {
                turn.next().copied()
            } else {
                Some(queue)
            }
        })
        .collect()
}

/// The table that has only `queues`, in turn.
pub(super) fn only(table: &[u32], queues: &[u32]) -> Vec<u32> {
    let turn = queues.iter().cycle();
    table.iter().zip(turn).map(|(_, &queue)| queue).collect()
}

/// Whether the table has all of so many queues in turn, as the kernel makes it (`ethtool_rxfh_indir_default()`).
pub(super) fn spreads_over(table: &[u32], queues: u32) -> bool {
    queues != 0
        && (0..)
            .zip(table)
            .all(|(index, &queue)| queue == index % queues)
}

/// Undoes a change from `before` to `after` in a table that others may have changed since: entries that
/// are as we left them become what they were, the others stay.
pub(super) fn undone(now: &[u32], before: &[u32], after: &[u32]) -> Vec<u32> {
    let changes = before.iter().zip(after);
    now.iter()
        .zip(changes)
        .map(|(&now, (&before, &after))| if now == after { before } else { now })
        .chain(now.iter().skip(before.len()).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_queue_that_is_taken_out_is_nowhere_and_others_keep_their_entries(
            table in proptest::collection::vec(0u32..8, 1..130),
            taken in proptest::collection::vec(0u32..8, 1..4),
        ) {
            match without(&table, &taken) {
                Some(new) => {
                    prop_assert_eq!(new.len(), table.len());
                    for (new, old) in new.iter().zip(&table) {
                        prop_assert!(!taken.contains(new));
                        prop_assert!(taken.contains(old) || new == old);
                    }
                    prop_assert_eq!(undone(&new, &table, &new), table);
                }
                None => prop_assert!(table.iter().all(|queue| taken.contains(queue))),
            }
        }

        #[test]
        fn two_changes_that_are_undone_in_the_order_in_which_they_were_made_leave_the_table_as_it_was(
            table in proptest::collection::vec(0u32..8, 1..130),
            (first, second) in (0u32..8, 0u32..8),
        ) {
            prop_assume!(first != second);
            let Some(a) = without(&table, &[first]) else { return Ok(()) };
            let Some(b) = without(&a, &[second]) else { return Ok(()) };
            // The first one ends while the second holds its queue.
            let held = undone(&b, &table, &a);
            prop_assert!(!held.contains(&second) || table.contains(&second) && !a.contains(&second));
            let end = undone(&held, &a, &b);
            // An entry that both have changed has a queue of before the first one's change.
            for (end, old) in end.iter().zip(&table) {
                prop_assert!(end == old || *old == first);
            }
        }
    }

    #[test]
    fn a_table_of_one_queue_cannot_lose_it() {
        assert_eq!(without(&[0, 0, 0], &[0]), None);
        assert_eq!(only(&[0, 1, 2, 3, 0], &[2, 3]), [2, 3, 2, 3, 2]);
    }

    #[test]
    fn the_kernels_own_table_has_each_queue_in_turn() {
        assert!(spreads_over(&[0, 1, 2, 0, 1, 2, 0, 1], 3));
        for (table, queues) in [(vec![0, 1, 0, 1], 3), (vec![0, 1, 1], 2), (vec![0], 0)] {
            assert!(!spreads_over(&table, queues), "{table:?}, {queues}");
        }
    }
}
