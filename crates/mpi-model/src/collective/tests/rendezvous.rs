//! Interpreter of schedules in which every send of data is synchronous.

use std::collections::BTreeMap;

use pdes_core::SimDuration;

use crate::collective::{Answer, Schedule, Step, Steps as _};

/// State of a member at the end of its schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinalState {
    /// Set of members, as bits, whose data it has: a message carries all that its sender had when it was posted.
    pub(super) known: u64,
    /// Bytes received.
    pub(super) received: u64,
}

/// The messages and the receives between two members, in the order in which they were posted.
#[derive(Debug, Default)]
struct Channel {
    /// Size, and the set that the sender had.
    sends: Vec<(u64, u64)>,
    receives: Vec<u64>,
}

/// Kind of a message; each kind matches separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Data,
    Announcement,
    Put,
    Numbers,
}

/// One side of the `index`-th message of a channel.
#[derive(Clone, Copy, Debug)]
struct Request {
    channel: (u32, u32, Kind),
    index: usize,
    receives: bool,
}

struct Runner<'a> {
    rank: u32,
    steps: Schedule<'a>,
    end: FinalState,
    /// Requests of the operation that no `WaitAll` or `WaitEach` has completed.
    open: Vec<Request>,
    awaited: Vec<Request>,
    answer: Answer,
    done: bool,
}

type Channels = BTreeMap<(u32, u32, Kind), Channel>;

/// Runs the schedules of all members.
pub(super) fn run(schedules: Vec<Schedule<'_>>) -> Result<Vec<FinalState>, String> {
    let mut channels = Channels::new();
    let runner = |(rank, steps)| Runner {
        rank,
        steps,
        end: FinalState { known: 1 << rank, received: 0 },
        open: Vec::new(),
        awaited: Vec::new(),
        answer: Answer::Nothing,
        done: false,
    };
    let mut runners: Vec<Runner<'_>> = (0..).zip(schedules).map(runner).collect();
    // A member may poll all others in vain several times before it continues.
    let max_polls = 8 * runners.len();
    let mut polls = 0;
    loop {
        let moves = runners.iter_mut().map(|runner| runner.run(&mut channels)).max();
        polls = if moves == Some(Progress::PollFailed) { polls + 1 } else { 0 };
        if moves == Some(Progress::Blocked) || polls > max_polls {
            break;
        }
    }
    if let Some(stuck) = runners.iter().find(|runner| !runner.done) {
        return Err(format!("rank {} waits for ever for {:?}", stuck.rank, stuck.awaited));
    }
    for ((from, to, kind), channel) in &channels {
        let sizes: Vec<u64> = channel.sends.iter().map(|&(bytes, _)| bytes).collect();
        // The receiver does not know the encoded numbers in advance.
        let equal = if *kind == Kind::Numbers {
            sizes.len() == channel.receives.len()
        } else {
            sizes == channel.receives
        };
        if !equal {
            return Err(format!(
                "{from} sends {to} {sizes:?} ({kind:?}), {to} receives {:?}",
                channel.receives
            ));
        }
    }
    Ok(runners.iter().map(|runner| runner.end).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Blocked,
    PollFailed,
    Advanced,
}

impl Runner<'_> {
    /// Runs as far as possible, or until a poll has found nothing.
    fn run(&mut self, channels: &mut Channels) -> Progress {
        let mut moved = Progress::Blocked;
        while !self.done {
            let meets = |request: &Request| {
                let channel = &channels[&request.channel];
                channel.sends.len().min(channel.receives.len()) > request.index
            };
            if !self.awaited.iter().all(meets) {
                break;
            }
            for request in std::mem::take(&mut self.awaited).into_iter().filter(|request| request.receives) {
                let (bytes, known) = channels[&request.channel].sends[request.index];
                if request.channel.2 == Kind::Numbers {
                    self.answer = Answer::Numbers([(bytes >> 32) as u32, bytes as u32]);
                    continue;
                }
                self.end.known |= known;
                self.end.received += bytes;
            }
            match self.steps.next_step(std::mem::take(&mut self.answer)) {
                Some(step) => self.begin(step, channels),
                None => self.done = true,
            }
            if self.answer == Answer::Found(false) {
                return moved.max(Progress::PollFailed);
            }
            moved = Progress::Advanced;
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
            Step::SendToken { to, .. } => {
                self.send(to.get(), 0, channels);
            }
            Step::RecvToken { from } => self.awaited = vec![self.receive(from.get(), 0, channels)],
            Step::UncontendedTransfers { .. } => {}
            // A request that is waited for twice is counted twice, which changes nothing but `received`; no schedule does
            // so.
            Step::Wait { request } => {
                let place = request as usize;
                self.awaited = vec![self.open[place]];
                self.open[place].receives = false;
            }
            Step::WaitAll | Step::WaitEach => self.awaited = std::mem::take(&mut self.open),
            Step::Compute { flops } => assert!(flops > 0.0),
            Step::Unmeasured { .. } => panic!("nothing is measured"),
            Step::Access { .. } => panic!("no file is accessed"),
            Step::Switches { .. } => panic!("the members have no switches"),
            Step::Complete { .. } | Step::OneSided { .. } => panic!("no window is accessed"),
            Step::Sleep { duration } => assert!(duration > SimDuration::ZERO),
            Step::SendAnnouncement { to } => {
                self.send_as(Kind::Announcement, to.get(), 1, channels);
            }
            Step::PollAnnouncement { from } => {
                let channel = channels.get(&(from.get(), self.rank, Kind::Announcement));
                let found = channel.is_some_and(|channel| channel.sends.len() > channel.receives.len());
                self.answer = Answer::Found(found);
            }
            Step::RecvAnnouncement { from } => {
                self.awaited = vec![self.receive_as(Kind::Announcement, from.get(), 1, channels)];
            }
            Step::DiscardAnnouncement { from } => {
                self.receive_as(Kind::Announcement, from.get(), 1, channels);
            }
            Step::SendOutOfBand { to, numbers: [one, other] } => {
                self.send_as(Kind::Numbers, to.get(), u64::from(one) << 32 | u64::from(other), channels);
            }
            Step::RecvOutOfBand { from } => {
                let request = self.receive_as(Kind::Numbers, from.get(), 0, channels);
                self.awaited = vec![request];
            }
            Step::Put { to, bytes } => {
                self.send_as(Kind::Put, to.get(), bytes.get(), channels);
            }
            Step::ExpectPut { from, bytes } => {
                let request = self.receive_as(Kind::Put, from.get(), bytes.get(), channels);
                self.open.push(request);
            }
        }
    }

    fn send(&self, to: u32, bytes: u64, channels: &mut Channels) -> Request {
        self.send_as(Kind::Data, to, bytes, channels)
    }

    fn send_as(&self, kind: Kind, to: u32, bytes: u64, channels: &mut Channels) -> Request {
        let channel = (self.rank, to, kind);
        let sends = &mut channels.entry(channel).or_default().sends;
        sends.push((bytes, self.end.known));
        Request { channel, index: sends.len() - 1, receives: false }
    }

    fn receive(&self, from: u32, bytes: u64, channels: &mut Channels) -> Request {
        self.receive_as(Kind::Data, from, bytes, channels)
    }

    fn receive_as(&self, kind: Kind, from: u32, bytes: u64, channels: &mut Channels) -> Request {
        let channel = (from, self.rank, kind);
        let receives = &mut channels.entry(channel).or_default().receives;
        receives.push(bytes);
        Request { channel, index: receives.len() - 1, receives: true }
    }
}
