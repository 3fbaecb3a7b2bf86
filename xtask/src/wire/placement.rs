// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where device memory has the pieces of a stream: which of them need no gather.

use anyhow::{Context, Result, ensure};
use cases::{ACCELERATOR, Driver, Family, Testbed};
use protocol::{Command, Event, Release, memory::Span, rings::TcpDataSplit};
use vm::{Images, Link};

use super::figures::Placement;
use super::stream::boot;
use crate::bench::figures::rounded;
use crate::bench::measure::QUEUE;
use crate::failure::of_case as error;

/// Bytes of a stream.
const BYTES: u64 = 8 << 20;
/// Room for all of them in packets of MTU 1500, each in a buffer of 16 KiB. The next stream's may come
/// before it is free.
const DMABUF: u64 = 112 << 20;
/// Bytes of a run that is worth a descriptor of its own.
const LONG: u64 = 64 << 10;

/// Receives streams over a link, with their tokens kept and returned, and looks where they are.
///
/// # Errors
///
/// When the guest fails, or the stream does not arrive.
pub(crate) fn measure(
    images: &Images,
    mtu: u32,
    buffer: u32,
    link: Link,
) -> Result<[Placement; 2]> {
    let bed = boot(images, "wire-placement", Driver::RigbModel, mtu, Some(link))?;
    bed.set_header_split(bed.local, TcpDataSplit::On)
        .map_err(error)?;
    let one = |recycled: bool| -> Result<Placement> {
        let spans = receive(&bed, buffer, recycled)?;
        let [in_order, contiguous] = [Some(u64::from(buffer)), None].map(|b| look(&spans, b));
        Ok(Placement {
            mtu,
            buffer,
            loss_ppm: link.loss_ppm,
            reorder_ppm: link.reorder_ppm,
            recycled,
            bytes: BYTES,
            pairs: rounded(in_order.pairs),
            in_runs: rounded(in_order.in_runs),
            contiguous: rounded(contiguous.in_runs),
        })
    };
    let both = [one(false)?, one(true)?];
    bed.finish().map_err(error)?;
    Ok(both)
}

/// The pieces of a stream, in its order.
fn receive(bed: &Testbed, buffer: u32, recycled: bool) -> Result<Vec<Span>> {
    let mut stream = bed.stream(bed.peer, bed.local, Family::V4);
    stream.memory = ACCELERATOR;
    stream.rx_page_size = Some(buffer);
    let release = match recycled {
        true => Release::Immediate,
        false => Release::OnRequest,
    };
    let mut spec = stream.devmem_sink_spec(QUEUE, DMABUF, release);
    (spec.verify, spec.report) = (false, true);
    let mut sink = bed.guest.start(spec)?;
    let source = stream.source(bed, Some(BYTES), &[256 << 10], 0);
    let source = source.map_err(error)?;
    let mut spans = Vec::new();
    let mut bytes = 0;
    while bytes < BYTES {
        let event = sink.next_event(bed.guest.call_timeout())?;
        match event.context("the stream ended early")? {
            Event::Fragments { fragments, .. } => {
                bytes += fragments
                    .iter()
                    .map(|span| u64::from(span.len))
                    .sum::<u64>();
                spans.extend(fragments);
            }
            Event::Linear { .. } => anyhow::bail!("payload is not in device memory"),
            _ => {}
        }
    }
    if !recycled {
        sink.tell(Command::ReleaseAll)?;
    }
    let (sink, source) = (sink.join()?, source.join()?);
    ensure!(
        sink.bytes == BYTES && sink.error.is_none() && source.delivered,
        "not everything arrived: {sink:?}, {source:?}"
    );
    Ok(spans)
}

/// Shares of pairs and bytes.
#[derive(Debug, PartialEq)]
struct Shares {
    pairs: f64,
    in_runs: f64,
}

/// Of successive pieces, the share that continues the one before; and the share of the bytes in runs of
/// them that are long. With a buffer's size, the beginning of the next one continues, too.
fn look(spans: &[Span], buffer: Option<u64>) -> Shares {
    let continues = |pair: &[Span]| {
        let (end, next) = (pair[0].offset + u64::from(pair[0].len), pair[1].offset);
        next == end || buffer.is_some_and(|buffer| next == end.next_multiple_of(buffer))
    };
    let (mut pairs, mut long, mut all) = (0u64, 0u64, 0u64);
    let runs = spans.chunk_by(|one, next| continues(&[*one, *next]));
    for run in runs {
        let bytes = run.iter().map(|span| u64::from(span.len)).sum::<u64>();
        pairs += run.len() as u64 - 1;
        all += bytes;
        if bytes >= LONG {
            long += bytes;
        }
    }
    Shares {
        pairs: pairs as f64 / (spans.len().max(2) - 1) as f64,
        in_runs: long as f64 / all.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(pieces: &[(u64, u32)]) -> Vec<Span> {
        pieces.iter().copied().map(Span::from).collect()
    }

    #[test]
    fn runs_continue_right_behind_or_with_the_next_buffer() {
        // Two full buffers, one that is not, the next, and one that is far away.
        let spans = spans(&[
            (0, 32768),
            (32768, 32768),
            (65536, 100),
            (98304, 32768),
            (0, 1),
        ]);
        let all = f64::from(3 * 32768 + 101);
        let close = look(&spans, None);
        assert_eq!(close.pairs, 0.5);
        assert_eq!(close.in_runs, f64::from(65536 + 100) / all);
        let ordered = look(&spans, Some(32768));
        assert_eq!(ordered.pairs, 0.75);
        assert_eq!(ordered.in_runs, f64::from(3 * 32768 + 100) / all);
    }

    #[test]
    fn short_runs_need_a_gather() {
        let shares = look(&spans(&[(0, 4096), (4096, 4096)]), None);
        assert_eq!((shares.pairs, shares.in_runs), (1.0, 0.0));
        assert_eq!(look(&[], None).in_runs, 0.0);
    }
}
