// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver's logic and the model against each other: what one puts into descriptors, the other takes out,
//! and no byte beside the buffers changes.

use i82576::{
    contexts::Contexts,
    limits::{HEADER_BUFFER_UNIT, MIN_FRAME, MIN_TX_FRAME, PAYLOAD_BUFFER_UNIT},
    offload::{Headers, Offload, Pieces, Segmentation},
    regs::{self, Reg, ctrl, mdic, phy, rctl, rxdctl, srrctl, tctl, txdctl},
    ring::{Ring, Window},
    rx::{self, Layout, WriteBack},
    tx::{self, IpVersion, L4},
};
use model::nic::Nic;

use crate::{
    bus::{BASE, Bus, UNTOUCHED},
    input::Input,
};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const LEN: u16 = 64;
const RX_RING: u64 = BASE;
const TX_RING: u64 = RX_RING + 16 * LEN as u64;
const TX_BUFFER: u64 = TX_RING + 16 * LEN as u64;
const TX_BUFFER_LEN: u64 = 0x1000;
const RX_BUFFERS: u64 = TX_BUFFER + TX_BUFFER_LEN;
/// Buffers: descriptor `n` has the `n`-th, modulo that.
const BUFFERS: u16 = 16;
/// Between buffers.
const GUARD: u64 = 32;

struct Port {
    nic: Nic,
    bus: Bus,
    window: Window,
    /// Bytes of the buffers.
    header: u64,
    payload: u64,
    split: bool,
    contexts: Contexts,
    tx_tail: u16,
}

/// Receives and sends a few frames.
pub fn traffic(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Some(ring) = Ring::new(LEN) else {
        panic!("{LEN} is no ring");
    };
    let (units, kib) = (input.within(1..=15), input.within(1..=2));
    let header = u64::from(units * HEADER_BUFFER_UNIT);
    let payload = u64::from(kib * PAYLOAD_BUFFER_UNIT);
    let stride = header + payload + 2 * GUARD;
    let memory = RX_BUFFERS - BASE + stride * u64::from(BUFFERS);
    let mut port = Port {
        nic: Nic::new(MAC),
        bus: Bus::new(memory as usize),
        window: Window::new(ring),
        header,
        payload,
        split: input.any::<u8>() < 0xc0,
        contexts: Contexts::new(),
        tx_tail: 0,
    };
    port.set_up(srrctl::encode(kib, units, port.kind(), true));
    for _ in 0..4 {
        port.post(input.within(0..=BUFFERS));
        if input.any() {
            port.receive(&mut input);
        } else {
            port.send(&mut input);
        }
        let violations = port.nic.violations();
        assert!(violations.is_empty(), "{}", violations[0]);
    }
    for nth in 0..BUFFERS {
        let (payload, header) = port.buffers(nth);
        for guard in [payload + port.payload, header + port.header] {
            let bytes = port.bus.at(guard, GUARD as usize).unwrap_or_default();
            assert!(
                bytes.iter().all(|byte| *byte == UNTOUCHED),
                "behind buffer {nth}"
            );
        }
    }
}

impl Port {
    fn kind(&self) -> srrctl::DescType {
        match self.split {
            true => srrctl::DescType::HeaderSplit,
            false => srrctl::DescType::OneBuffer,
        }
    }

    fn write(&mut self, reg: Reg, value: u32) {
        self.nic.write(reg.0, value, &mut self.bus);
    }

    fn set_up(&mut self, control: u32) {
        self.write(regs::CTRL, ctrl::SLU);
        self.write(regs::MDIC, mdic::write(phy::CONTROL, phy::CR_AUTONEG));
        self.nic.elapse(1_000_000_000, &mut self.bus);
        self.write(regs::RCTL, rctl::EN | rctl::LPE | rctl::SECRC);
        self.write(regs::TCTL, tctl::EN | tctl::PSP);
        self.write(regs::rdbal(0), RX_RING as u32);
        self.write(regs::rdlen(0), u32::from(LEN) * 16);
        self.write(regs::srrctl(0), control);
        self.write(regs::psrtype(0), regs::psrtype::TCP);
        self.write(regs::rxdctl(0), rxdctl::ENABLE | regs::thresholds(8, 1, 1));
        self.write(regs::tdbal(0), TX_RING as u32);
        self.write(regs::tdlen(0), u32::from(LEN) * 16);
        self.write(regs::txdctl(0), txdctl::ENABLE);
    }

    /// The addresses of a descriptor's buffers.
    fn buffers(&self, index: u16) -> (u64, u64) {
        let stride = self.header + self.payload + 2 * GUARD;
        let payload = RX_BUFFERS + u64::from(index % BUFFERS) * stride;
        (payload, payload + self.payload + GUARD)
    }

    /// Has so many descriptors be posted, at least.
    fn post(&mut self, count: u16) {
        let wanted = count.saturating_sub(self.window.posted());
        let run = self.window.to_post(wanted);
        for index in run.start..run.start + run.count {
            let (payload, header) = self.buffers(index);
            let raw = rx::rx_read(payload, header);
            self.bus.put(RX_RING + u64::from(index) * 16, raw);
        }
        self.window.post(run.count);
        self.write(regs::rdt(0), self.window.tail().into());
    }

    /// Receives a frame, and finds its bytes again.
    fn receive(&mut self, input: &mut Input<'_>) {
        let len = input.of(&[60, 61, 66, 300, 1514, 5000]) + input.within(0..=700);
        let frame = tcp(len, input);
        let takes = (len as u64).div_ceil(self.payload) + 1;
        let must_fit = u64::from(self.window.posted()) >= takes;
        self.nic.receive(&frame, &mut self.bus);
        let mut found = Vec::new();
        let mut ended = false;
        while !ended {
            let run = self.window.to_clean(1);
            let raw = self.bus.get(RX_RING + u64::from(run.start) * 16);
            let Some([lo, hi]) = raw.filter(|raw| run.count != 0 && rx::is_done(raw[1])) else {
                assert!(found.is_empty() && !must_fit, "no end: {}", found.len());
                return;
            };
            self.window.clean(run.count);
            let descriptor = WriteBack::from_raw(lo, hi);
            let len = u64::from(descriptor.packet_len());
            assert!(
                len <= self.payload,
                "{len} bytes in a buffer of {}",
                self.payload
            );
            let (payload, header) = self.buffers(run.start);
            if let (true, Layout::Split { header: bytes, .. }) =
                (found.is_empty(), descriptor.layout())
            {
                assert!(
                    self.split && u64::from(bytes) <= self.header,
                    "{descriptor:?}"
                );
                let bytes = self.bus.at(header, bytes.into()).unwrap_or_default();
                found.extend_from_slice(bytes);
            }
            found.extend_from_slice(self.bus.at(payload, len as usize).unwrap_or_default());
            ended = descriptor.end_of_packet();
        }
        assert!(found == frame, "{len} bytes became {}", found.len());
    }

    /// Sends a frame, as it is or segmented, and sees what leaves.
    fn send(&mut self, input: &mut Input<'_>) {
        let len = input.within(MIN_TX_FRAME as usize..=1500);
        let frame = tcp(len, input);
        let headers = Headers {
            network: 14,
            transport: 34,
            l4_len: 4 * u32::from(frame.get(46).map_or(5, |word| word >> 4)),
            ip: IpVersion::V4,
            l4: L4::Tcp,
        };
        let segmentation = Segmentation {
            mss: input.within(8..=1460),
            segments: 1,
        };
        // The longest headers have 94 bytes.
        let segments = input.any() && len > 94;
        let offload = match segments {
            true => Offload::new(&headers, Some(segmentation)),
            false => Some(Offload::NONE),
        };
        let Some((offload, paylen)) = offload.and_then(|o| Some((o, o.paylen(len as u32)?))) else {
            panic!("{headers:?} can't be segmented");
        };
        if let Some(place) = self.bus.at(TX_BUFFER, len) {
            place.copy_from_slice(&frame);
        }
        if let Some(raw) = offload
            .context()
            .and_then(|context| self.contexts.set(context))
        {
            self.put(raw);
        }
        // In two parts, as if from two pages.
        let cut = input.within(1..=len as u32 - 1);
        let parts = [
            (TX_BUFFER, cut),
            (TX_BUFFER + u64::from(cut), len as u32 - cut),
        ];
        let pieces = parts.into_iter().flat_map(|(at, len)| Pieces::new(at, len));
        let mut last = None;
        for piece in pieces {
            let raw = offload.data(piece, paylen, false).encode();
            last = Some((self.tx_tail, raw));
            self.put(raw);
        }
        let Some((index, raw)) = last else { return };
        let at = TX_RING + u64::from(index) * 16;
        self.bus.put(at, tx::ended(raw));
        self.bus.frames.clear();
        self.write(regs::tdt(0), self.tx_tail.into());
        let raw = self.bus.get(at);
        assert!(
            raw.is_some_and(|raw| tx::is_done(raw[1])),
            "it is not reported"
        );

        let header = if segments { headers.len() as usize } else { 0 };
        let mut left = &frame[header..];
        for sent in &self.bus.frames {
            let most = if segments {
                segmentation.mss.into()
            } else {
                len
            };
            let (piece, rest) = left.split_at(most.min(left.len()));
            assert_eq!(sent.len(), (header + piece.len()).max(MIN_FRAME as usize));
            assert!(sent[header..].starts_with(piece), "other bytes are sent");
            left = rest;
        }
        assert!(left.is_empty(), "{} bytes are not sent", left.len());
    }

    fn put(&mut self, raw: tx::Raw) {
        self.bus.put(TX_RING + u64::from(self.tx_tail) * 16, raw);
        self.tx_tail = (self.tx_tail + 1) % LEN;
    }
}

/// A segment for the port, of so many bytes.
fn tcp(len: usize, input: &mut Input<'_>) -> Vec<u8> {
    let options = input.within(0..=10u8);
    let mut frame = input.bytes(len);
    let words = (5 + options).min((len.saturating_sub(34) / 4) as u8);
    for (at, bytes) in [
        (0, &MAC[..]),
        (12, &[8, 0, 0x45, 0]),
        (16, &((len as u16).saturating_sub(14)).to_be_bytes()),
        (20, &[0x40, 0, 64, 6]),
        (46, &[words.max(5) << 4, 0x10]),
    ] {
        if let Some(place) = frame.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    frame
}
