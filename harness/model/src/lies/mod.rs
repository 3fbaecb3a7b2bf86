// SPDX-License-Identifier: MIT OR Apache-2.0

//! A device that lies: fault injection on its side of the bus. It lies about what it did, but never accesses memory
//! that the driver has not given it, as no driver could do anything about it without an IOMMU. (`AfterStop` tries to.)

mod misled;
mod plan;

pub(crate) use self::misled::Misled;
pub use self::plan::{Kind, Lie, Plan};

/// The plan that is carried out.
#[derive(Debug, Default)]
pub(crate) struct Lies(Vec<Progress>);

#[derive(Debug)]
struct Progress {
    lie: Lie,
    /// On how many occasions it was looked at, and on how many it was told.
    seen: u32,
    told: u32,
}

impl Lies {
    /// Begins another plan. Returns how often each lie of the last was told.
    pub(crate) fn begin(&mut self, plan: &Plan) -> Vec<u32> {
        let progress = plan.lies.iter().map(|lie| Progress {
            lie: *lie,
            seen: 0,
            told: 0,
        });
        let told = self.told();
        self.0 = progress.collect();
        told
    }

    /// How often each lie was told so far.
    pub(crate) fn told(&self) -> Vec<u32> {
        self.0.iter().map(|progress| progress.told).collect()
    }

    /// On an occasion of this kind: what is to be said, if a lie is due.
    pub(crate) fn tell(&mut self, kind: Kind) -> Option<u64> {
        let of_kind = self.0.iter_mut().filter(|lie| lie.lie.kind == kind);
        let mut said = None;
        for Progress { lie, seen, told } in of_kind {
            *seen = seen.saturating_add(1);
            if *seen > lie.after && *told < lie.times {
                let value = lie.value_after(*told);
                *told += 1;
                said.get_or_insert(value);
            }
        }
        said
    }

    /// Whether a lie of this kind is due.
    pub(crate) fn tells(&mut self, kind: Kind) -> bool {
        self.tell(kind).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lie_is_told_after_so_many_occasions_and_so_often() {
        let lie = Lie {
            after: 2,
            times: 2,
            ..Lie::once(Kind::Hash, 5)
        };
        let mut lies = Lies::default();
        assert_eq!(lies.begin(&Plan { lies: vec![lie] }), []);
        let mut told = || lies.tell(Kind::Hash);
        let all: Vec<_> = (0..6).map(|_| told()).collect();
        assert_eq!(all, [None, None, Some(5), Some(10), None, None]);
        assert_eq!(lies.tell(Kind::Length), None);
        assert_eq!(lies.told(), [2]);
        assert_eq!(lies.begin(&Plan::default()), [2]);
    }
}
