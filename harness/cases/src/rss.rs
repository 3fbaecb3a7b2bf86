// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive side scaling: what is hashed, and which queue a flow reaches.

use protocol::{
    netdev::QueueKind,
    rss::{Flow, FlowQueue, GetRss, HashFields, Rss, RssChange, SetRss},
};

use crate::{CaseError, Datagrams, Family, Result, Station, Testbed};

/// Datagrams of one flow in [`Testbed::udp_places`]; far fewer other packets arrive meanwhile.
const DATAGRAMS: u64 = 200;

impl Testbed {
    /// How an interface spreads flows.
    pub fn rss(&self, station: Station) -> Result<Rss> {
        Ok(self.guest.call(GetRss::on(station))?)
    }

    /// Changes how an interface spreads flows.
    pub fn set_rss(
        &self,
        station: Station,
        change: RssChange,
    ) -> std::result::Result<(), vm::Error> {
        self.guest.call(SetRss::on(station, change))
    }

    /// What is hashed of a kind of flow.
    pub fn hash_fields(&self, station: Station, flow: Flow) -> Result<HashFields> {
        let fields = self.rss(station)?.hash_fields.get(&flow).copied();
        fields.ok_or_else(|| {
            CaseError::new(format!("the driver doesn't say what it hashes of {flow:?}"))
        })
    }

    /// Has this be hashed of a kind of flow.
    pub fn set_hash_fields(
        &self,
        station: Station,
        flow: Flow,
        fields: HashFields,
    ) -> std::result::Result<(), vm::Error> {
        self.set_rss(
            station,
            RssChange {
                hash_fields: Some((flow, fields)),
                ..RssChange::default()
            },
        )
    }

    /// Sends some UDP flows to the NIC under test; returns on which queue key and table say that each
    /// should be received if ports are hashed, and on which it was.
    pub fn udp_places(&self, family: Family) -> Result<Vec<(u32, u32)>> {
        let packets = || self.queue_stats(self.local, QueueKind::Rx, "rx-packets");
        let mut places = Vec::new();
        for _ in 0..5 {
            let source = self.peer.socket(family, self.port());
            let flow = Datagrams {
                bind: Some(source),
                pause_us: 50,
                ..self.datagrams(self.peer, self.local, family, 100)
            };
            let place = FlowQueue::on(self.local, source, flow.listen());
            let wanted = self.guest.call(place)?;
            let sink = flow.sink(self)?;
            let before = packets()?;
            let sent = flow.source(self, Some(DATAGRAMS))?.join()?.sent;
            assert_eq!(sent, DATAGRAMS);
            let sum = before.iter().sum::<u64>() + DATAGRAMS;
            self.wait_until(sum, || Ok(packets()?.iter().sum()))?;
            let after = packets()?;
            sink.stop()?;
            let reached: Vec<_> = (0u32..)
                .zip(before.iter().zip(&after))
                .filter(|(_, (before, after))| *after - *before >= DATAGRAMS - 20)
                .map(|(queue, _)| queue)
                .collect();
            assert_eq!(reached.len(), 1, "{before:?} then {after:?}");
            places.push((wanted.queue, reached[0]));
        }
        Ok(places)
    }
}
