// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kernel and driver counters, and waiting for them.

use std::{
    thread,
    time::{Duration, Instant},
};

use model::nic::Accesses;
use protocol::{
    Ns,
    ethtool::GetDriverStats,
    kernel::{FreeDeferred, ReadFile},
    link::{GetLinkStats, LinkStats},
    netdev::{GetQueueStats, ListPagePools, PagePool, QueueKind},
    pci::ReadRegister,
};

use crate::{CaseError, Result, Station, Testbed, testbed::PATIENCE_MS};

impl Testbed {
    /// rtnl statistics.
    pub fn link_stats(&self, station: Station) -> Result<LinkStats> {
        Ok(self.guest.call(GetLinkStats::on(station))?)
    }

    /// How often the registers of a NIC, which must be one of ours, were accessed since this was last
    /// asked.
    pub fn accesses(&self, station: Station) -> Result<Accesses> {
        let accesses = self.guest.accesses(station.wire, station.end)?;
        Ok(serde_json::from_value(accesses)?)
    }

    /// Packets that the NIC under test passed up the stack, and that its peer sent.
    fn packets(&self) -> Result<[u64; 2]> {
        Ok([
            self.link_stats(self.local)?.rx_packets,
            self.link_stats(self.peer)?.tx_packets,
        ])
    }

    /// The same, once no packet is in flight: the counts have been stable for a second.
    pub fn packets_when_quiet(&self) -> Result<[u64; 2]> {
        const LOOKS: u32 = 5;

        let mut last = self.packets()?;
        let mut same = 0;
        while same < LOOKS {
            thread::sleep(Duration::from_millis(200));
            let now = self.packets()?;
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        Ok(last)
    }

    /// Waits until every packet that the peer sent since [`Self::packets_when_quiet`] was passed up
    /// the stack. Fails if one is lost.
    pub fn wait_all_came(&self, [came, went]: [u64; 2]) -> Result {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let [now_came, now_went] = self.packets()?;
            let (came, went) = (now_came - came, now_went - went);
            if came == went {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(crate::CaseError::new(format!(
                    "{went} packets were sent, but {came} came; logs are in {}",
                    self.guest.directory().display()
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Datagrams that sockets of a namespace have read, over IPv4 and IPv6.
    pub fn datagrams_read(&self, ns: Ns) -> Result<u64> {
        const IPV6: &str = "Udp6InDatagrams";
        let text = self
            .guest
            .call(ReadFile::new(ns, "/proc/thread-self/net/snmp6"))?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(IPV6));
        let ipv6 = lines.next().and_then(|value| value.trim().parse().ok());
        let ipv6: u64 = ipv6.ok_or_else(|| CaseError::new(format!("no {IPV6} in {text}")))?;
        Ok(self.counter(ns, "Udp", "InDatagrams")? + ipv6)
    }

    /// One of the driver's own statistics.
    pub fn statistic(&self, station: Station, name: &str) -> Result<u64> {
        let all = self.guest.call(GetDriverStats::on(station))?;
        let called = self.nic.counter(name).unwrap_or(name);
        all.get(called)
            .copied()
            .ok_or_else(|| crate::CaseError::new(format!("no statistic {name} in {all:?}")))
    }

    /// A register of a NIC, by its offset in the first BAR: read behind the driver's back.
    pub fn read_register(&self, station: Station, offset: u32) -> Result<u32> {
        let device = self.pci_device(station)?;
        Ok(self.guest.call(ReadRegister::new(device, offset))?)
    }

    /// A register of a NIC, by the name that its description gives it.
    pub fn register(&self, station: Station, name: &str) -> Result<u32> {
        let offset = self.nic.register(name);
        let offset = offset.ok_or_else(|| CaseError::new(format!("no register {name}")))?;
        self.read_register(station, offset)
    }

    /// A statistic of each queue of a kind, in the order of the queues.
    pub fn queue_stats(&self, station: Station, kind: QueueKind, name: &str) -> Result<Vec<u64>> {
        let all = self.guest.call(GetQueueStats::on(station))?;
        Ok(all
            .iter()
            .filter(|stats| stats.queue.is_some_and(|(of, _)| of == kind))
            .map(|stats| stats.get(name).unwrap_or(0))
            .collect())
    }

    /// A stack counter (RFC 4293 and others), as the namespace's `/proc/net/snmp` names it:
    /// `("Tcp", "InCsumErrors")`.
    pub fn counter(&self, ns: Ns, group: &str, name: &str) -> Result<u64> {
        let text = self
            .guest
            .call(ReadFile::new(ns, "/proc/thread-self/net/snmp"))?;
        protocol::snmp::value(&text, group, name)
            .ok_or_else(|| crate::CaseError::new(format!("no counter {group} {name} in {text}")))
    }

    /// Polls a number until it is at least `wanted`, and returns it. Fails on a timeout.
    pub fn wait_until(&self, wanted: u64, mut look: impl FnMut() -> Result<u64>) -> Result<u64> {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let now = look()?;
            if now >= wanted {
                return Ok(now);
            }
            if Instant::now() > deadline {
                return Err(crate::CaseError::new(format!(
                    "waited for {wanted}, but it stays {now}; logs are in {}",
                    self.guest.directory().display()
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the console shows a text that many times: it lags behind the guest.
    pub fn wait_logged(&self, text: &str, times: u64) -> Result {
        let count = || self.guest.console_text().matches(text).count() as u64;
        self.wait_until(times, || Ok(count())).map(drop)
    }

    /// Page pools of an interface.
    pub fn page_pools(&self, station: Station) -> Result<Vec<PagePool>> {
        Ok(self.guest.call(ListPagePools::on(station))?)
    }

    /// Waits until the driver, the stack and users have returned every net_iov to its page pool;
    /// returns how many are still outstanding on a timeout.
    ///
    /// The kernel checks only once a second whether a destroyed pool has everything back.
    pub fn net_iovs_left(&self, station: Station) -> Result<u64> {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let out = self.net_iovs_outstanding(station)?;
            if out == 0 || Instant::now() > deadline {
                return Ok(out);
            }
            self.guest.call(FreeDeferred {})?;
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until an interface that is down has no page pools left: a pool stays as long as one of
    /// its pages is outstanding. Fails if one stays.
    pub fn wait_pools_gone(&self, station: Station) -> Result {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let pools = self.page_pools(station)?;
            if pools.is_empty() {
                return Ok(());
            }
            self.guest.call(FreeDeferred {})?;
            if Instant::now() > deadline {
                return Err(crate::CaseError::new(format!(
                    "{} is down, but page pools miss pages: {pools:?}",
                    station.interface
                )));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// net_iovs that are outstanding: the driver, the stack or a user holds them.
    pub fn net_iovs_outstanding(&self, station: Station) -> Result<u64> {
        Ok(self
            .page_pools(station)?
            .iter()
            .filter(|pool| pool.dmabuf.is_some() || pool.io_uring)
            .filter_map(|pool| pool.inflight)
            .sum())
    }
}
