// SPDX-License-Identifier: MIT OR Apache-2.0

//! Has the engine of an accelerator do something.

use std::time::Duration;

use anyhow::{Context, Result};
use gather::{CONTROL_BYTES, Command, Fragment, Operation, Window, WorkQueue};
use protocol::{
    bytes::Bytes,
    engine::{self, Execute, Executed, Outcome, Step},
};

use crate::jobs::memory;

pub(crate) fn execute(request: &Execute) -> Result<Executed> {
    let allocate = |bytes: usize| memory::allocate(request.memory, bytes as u64);
    let open = || Ok(WorkQueue::open(request.engine, allocate(CONTROL_BYTES)?)?);
    let _others: Vec<_> = (0..request.besides)
        .map(|_| open())
        .collect::<Result<_>>()?;
    let mut queue = open()?;
    let mut pieces = Vec::new();
    for Bytes(content) in &request.pieces {
        let piece = allocate(content.len().next_multiple_of(rustix::param::page_size()))?;
        piece.write_at(0, content)?;
        let Window(window) = queue.import(&piece)?;
        pieces.push((piece, window));
    }
    let window = |piece: u8| {
        let known = pieces.get(usize::from(piece));
        // Not one that is open: the ring's is the first.
        Window(known.map_or(piece.saturating_add(1), |(_, window)| *window))
    };
    let (mut outcomes, mut failure) = (Vec::new(), None);
    for step in &request.steps {
        let command = Command {
            operation: operation(step.operation),
            source: window(step.source),
            destination: window(step.destination),
            value: step.value,
            signal: false,
        };
        match carry_out(&mut queue, &command, step, request) {
            Ok(outcome) => outcomes.push(outcome),
            // What it has written all the same is looked at.
            Err(error) => {
                failure = Some(format!("{error:#}"));
                break;
            }
        }
    }
    let read = |((piece, _), Bytes(content)): (&(devmem_tcp::memory::Memory, u8), &Bytes)| {
        let mut bytes = vec![0; content.len()];
        piece.read_at(0, &mut bytes)?;
        Ok(Bytes(bytes))
    };
    let pieces = pieces.iter().zip(&request.pieces).map(read);
    Ok(Executed {
        outcomes,
        failure,
        pieces: pieces.collect::<Result<_>>()?,
    })
}

fn carry_out(
    queue: &mut WorkQueue,
    command: &Command,
    step: &Step,
    request: &Execute,
) -> Result<Outcome> {
    let timeout = Duration::from_millis(request.timeout_ms);
    let mark = |edge: fn()| {
        if request.marked {
            edge();
        }
    };
    let fragments = step.fragments.iter();
    let fragments: Vec<_> = fragments
        .map(|&(source, len, destination)| Fragment {
            source,
            len,
            destination,
        })
        .collect();
    mark(marker::start);
    let submitted = queue.submit(command, &fragments);
    mark(marker::end);
    submitted?;
    mark(marker::start);
    let waited = queue.wait(timeout);
    mark(marker::end);
    let completion = match waited {
        Ok(completions) => completions.first().copied(),
        Err(gather::Error::Failed { completion }) => completion,
        Err(error) => return Err(error.into()),
    };
    let completion = completion.context("the engine has not completed the step")?;
    Ok(Outcome {
        status: status(completion.status),
        fragments: completion.fragments,
        bytes: completion.bytes,
    })
}

fn operation(operation: engine::Operation) -> Operation {
    match operation {
        engine::Operation::Copy => Operation::Copy,
        engine::Operation::Fill => Operation::Fill,
        engine::Operation::Compare => Operation::Compare,
        engine::Operation::SumF32 => Operation::SumF32,
        engine::Operation::SumBf16 => Operation::SumBf16,
    }
}

fn status(status: gather::Status) -> engine::Status {
    match status {
        gather::Status::Done => engine::Status::Done,
        gather::Status::Different => engine::Status::Different,
        gather::Status::Malformed => engine::Status::Malformed,
        gather::Status::Outside => engine::Status::Outside,
        gather::Status::Fault => engine::Status::Fault,
    }
}
