//! An interpreter of schedules in which every send waits for its receive.

use std::collections::BTreeMap;

use crate::collective::{Schedule, Step};

/// What a member has at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The members of which it knows, as bits: a message tells all that its sender knew when it was posted.
    pub(super) known: u64,
    /// The bytes that it received.
    pub(super) received: u64,
}

/// The messages and the receives between two members, in the order in which they were posted.
#[derive(Debug, Default)]
struct Channel {
    /// Size, and what the sender knew.
    sends: Vec<(u64, u64)>,
    receives: Vec<u64>,
}

/// One side of the `index`-th message of a channel.
#[derive(Clone, Copy, Debug)]
struct Request {
    channel: (u32, u32),
    index: usize,
    receives: bool,
}

struct Runner<'a> {
    rank: u32,
    steps: Schedule<'a>,
    end: End,
    /// Requests of the operation that no `WaitAll` or `WaitEach` has completed.
    open: Vec<Request>,
    awaited: Vec<Request>,
    done: bool,
}

type Channels = BTreeMap<(u32, u32), Channel>;

/// Runs the schedules of all members.
pub(super) fn run(schedules: Vec<Schedule<'_>>) -> Result<Vec<End>, String> {
    let mut channels = Channels::new();
    let runner = |(rank, steps)| Runner {
        rank,
        steps,
        end: End { known: 1 << rank, received: 0 },
        open: Vec::new(),
        awaited: Vec::new(),
        done: false,
    };
    let mut runners: Vec<Runner<'_>> = (0..).zip(schedules).map(runner).collect();
    while runners.iter_mut().fold(false, |moved, runner| runner.run(&mut channels) | moved) {}
    if let Some(stuck) = runners.iter().find(|runner| !runner.done) {
        return Err(format!("rank {} waits for ever for {:?}", stuck.rank, stuck.awaited));
    }
    for ((from, to), channel) in &channels {
        let sizes: Vec<u64> = channel.sends.iter().map(|&(bytes, _)| bytes).collect();
        if sizes != channel.receives {
            return Err(format!("{from} sends {to} {sizes:?}, {to} receives {:?}", channel.receives));
        }
    }
    Ok(runners.iter().map(|runner| runner.end).collect())
}

impl Runner<'_> {
    /// Runs as far as possible; returns whether that is any step.
    fn run(&mut self, channels: &mut Channels) -> bool {
        let mut moved = false;
        while !self.done {
            let meets = |request: &Request| {
                let channel = &channels[&request.channel];
                channel.sends.len().min(channel.receives.len()) > request.index
            };
            if !self.awaited.iter().all(meets) {
                break;
            }
            moved = true;
            for request in std::mem::take(&mut self.awaited).into_iter().filter(|request| request.receives) {
                let (bytes, known) = channels[&request.channel].sends[request.index];
                self.end.known |= known;
                self.end.received += bytes;
            }
            match self.steps.next() {
                Some(step) => self.begin(step, channels),
                None => self.done = true,
            }
        }
        moved
    }

    fn begin(&mut self, step: Step, channels: &mut Channels) {
        match step {
            Step::Send { to, bytes } => self.awaited = vec![self.send(to.get(), bytes.get(), channels)],
            Step::Recv { from, bytes } => {
                self.awaited = vec![self.receive(from.get(), bytes.get(), channels)]
            }
            Step::Isend { to, bytes } => {
                let request = self.send(to.get(), bytes.get(), channels);
                self.open.push(request);
            }
            Step::Irecv { from, bytes } => {
                let request = self.receive(from.get(), bytes.get(), channels);
                self.open.push(request);
            }
            Step::SendRecv { to, send_bytes, from, recv_bytes } => {
                let sent = self.send(to.get(), send_bytes.get(), channels);
                self.awaited = vec![sent, self.receive(from.get(), recv_bytes.get(), channels)];
            }
            Step::Tell { to, .. } => {
                self.send(to.get(), 0, channels);
            }
            Step::Hear { from } => self.awaited = vec![self.receive(from.get(), 0, channels)],
            Step::Pass { .. } => {}
            // A request that is waited for twice is told twice, which changes nothing but `received`; none is.
            Step::Wait { request } => {
                let place = request as usize;
                self.awaited = vec![self.open[place]];
                self.open[place].receives = false;
            }
            Step::WaitAll | Step::WaitEach => self.awaited = std::mem::take(&mut self.open),
            Step::Compute { flops } => assert!(flops > 0.0),
        }
    }

    fn send(&self, to: u32, bytes: u64, channels: &mut Channels) -> Request {
        let channel = (self.rank, to);
        let sends = &mut channels.entry(channel).or_default().sends;
        sends.push((bytes, self.end.known));
        Request { channel, index: sends.len() - 1, receives: false }
    }

    fn receive(&self, from: u32, bytes: u64, channels: &mut Channels) -> Request {
        let channel = (from, self.rank);
        let receives = &mut channels.entry(channel).or_default().receives;
        receives.push(bytes);
        Request { channel, index: receives.len() - 1, receives: true }
    }
}
