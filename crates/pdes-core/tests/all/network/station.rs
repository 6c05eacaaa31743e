//! A process that runs a short program: it computes, sends, receives, asks, and pauses for conditional events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use pdes_core::{Fault, LpId, Outbox, Pause, Process, SimDuration, SimTime, Turn, Wake};
use serde::{Deserialize, Serialize};

/// One operation of a program; times are in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Lets this much time pass.
    Compute(u64),
    /// Sends a token that arrives this much later.
    Send { to: u32, latency: u64 },
    /// Waits for a token of this process.
    Receive { from: u32 },
    /// Waits for the token of any process that arrives first; of several at once, that of the lowest process.
    ReceiveAny,
    /// Sends a question, which the receiver answers in `deliver`, in any state.
    Ask { to: u32, latency: u64 },
    /// Waits for the answer of this process.
    Answer { from: u32 },
    /// Sends a token that makes the receiver fail at the token's arrival.
    Poison { to: u32, latency: u64 },
    /// Waits for the conditional event that lies this much later, and counts the tokens sent before it that nobody
    /// has received yet.
    Commit { after: u64 },
    /// Fails.
    Fail,
    /// Panics.
    Panic,
}

/// Operations that are run `laps` times.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) ops: Vec<Op>,
    pub(crate) laps: u64,
}

/// The kind of a token's lane: tokens of one sender are ordered within a lane only, because answers are sent at any moment
/// between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Data,
    Answer,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    Data,
    Question,
    Answer,
    Poison,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Token {
    from: u32,
    kind: Kind,
    stamp: Stamp,
}

/// The send time and the arrival time of a token, and its sender's digest at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    sent: SimTime,
    arrives: SimTime,
    digest: u64,
}

/// The reason for which a station fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Programmed,
    PoisonedBy(u32),
}

/// The conditional events in the order in which they were granted.
pub(crate) type Log = Arc<Mutex<Vec<(SimTime, LpId)>>>;

type Queues = BTreeMap<(u32, Lane), VecDeque<Stamp>>;

/// The state of a station that must be the same under every schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) clock: SimTime,
    /// Digest of all that the station received, in order.
    pub(crate) digest: u64,
    pub(crate) steps: u64,
    /// Number of unread tokens at each conditional event.
    pub(crate) censuses: Vec<usize>,
    unread: Queues,
    phase: usize,
    lap: u64,
    op: usize,
}

impl State {
    /// Returns the number of tokens that arrived and were not received.
    pub(crate) fn unread(&self) -> usize {
        self.unread.values().map(VecDeque::len).sum()
    }
}

/// A process that runs a program.
pub(crate) struct Station {
    pub(crate) state: State,
    /// Maximum number of tokens that waited to be received.
    pub(crate) peak: usize,
    me: u32,
    program: Vec<Phase>,
    awaited: Option<(u32, Lane)>,
    awaits_any: bool,
    log: Log,
}

impl Station {
    pub(crate) fn new(me: u32, program: Vec<Phase>, log: Log) -> Self {
        Self { state: State::default(), peak: 0, me, program, awaited: None, awaits_any: false, log }
    }

    fn op(&mut self) -> Option<Op> {
        loop {
            let phase = self.program.get(self.state.phase)?;
            if self.state.lap == phase.laps || phase.ops.is_empty() {
                (self.state.phase, self.state.lap) = (self.state.phase + 1, 0);
            } else {
                return Some(phase.ops[self.state.op]);
            }
        }
    }

    fn advance(&mut self) {
        self.state.op += 1;
        if self.state.op == self.program[self.state.phase].ops.len() {
            (self.state.op, self.state.lap) = (0, self.state.lap + 1);
        }
    }

    /// Executes one operation, or returns the reason for which it must wait.
    fn step(
        &mut self,
        op: Op,
        turn: &mut Turn,
        outbox: &mut Outbox<Token>,
    ) -> Result<Option<Pause>, Fault<Failure>> {
        match op {
            Op::Compute(picos) => self.state.clock += SimDuration::from_picos(picos),
            Op::Send { to, latency } => self.send(to, Kind::Data, latency, outbox),
            Op::Ask { to, latency } => self.send(to, Kind::Question, latency, outbox),
            Op::Poison { to, latency } => self.send(to, Kind::Poison, latency, outbox),
            Op::Receive { from } => return Ok(self.receive((from, Lane::Data))),
            Op::ReceiveAny => return Ok(self.receive_any(turn)),
            Op::Answer { from } => return Ok(self.receive((from, Lane::Answer))),
            Op::Commit { after } => return Ok(self.commit(after, turn)),
            Op::Fail => return Err(Fault { at: self.state.clock, order: 0, error: Failure::Programmed }),
            Op::Panic => panic!("station {} panics", self.me),
        }
        Ok(None)
    }

    fn send(&mut self, to: u32, kind: Kind, latency: u64, outbox: &mut Outbox<Token>) {
        let sent = self.state.clock;
        let arrives = sent + SimDuration::from_picos(latency);
        let stamp = Stamp { sent, arrives, digest: self.state.digest };
        outbox.send(LpId::new(to), Token { from: self.me, kind, stamp });
    }

    fn receive(&mut self, lane: (u32, Lane)) -> Option<Pause> {
        let Some(stamp) = self.state.unread.get_mut(&lane).and_then(VecDeque::pop_front) else {
            self.awaited = Some(lane);
            return Some(Pause::Blocked);
        };
        self.awaited = None;
        self.state.clock = self.state.clock.max(stamp.arrives);
        let mixed = self.state.digest ^ stamp.digest.rotate_left(lane.0) ^ stamp.arrives.as_picos();
        self.state.digest = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        None
    }

    /// Returns the arrival time and the sender of the earliest known token for a receive from any process.
    fn first_of_any(&self) -> Option<(SimTime, u32)> {
        let data = self.state.unread.iter().filter(|((_, lane), _)| *lane == Lane::Data);
        let first = |(&(from, _), queue): (_, &VecDeque<Stamp>)| Some((queue.front()?.arrives, from));
        data.filter_map(first).min()
    }

    fn receive_any(&mut self, turn: &mut Turn) -> Option<Pause> {
        let first = self.first_of_any();
        if std::mem::take(&mut turn.granted) {
            self.awaits_any = false;
            let (_, from) = first.expect("an event is granted where there is a token");
            return self.receive((from, Lane::Data));
        }
        self.awaits_any = true;
        Some(first.map_or(Pause::Blocked, |(at, _)| Pause::Conditional(at.max(self.state.clock))))
    }

    fn commit(&mut self, after: u64, turn: &mut Turn) -> Option<Pause> {
        let at = self.state.clock + SimDuration::from_picos(after);
        if !std::mem::take(&mut turn.granted) {
            return Some(Pause::Conditional(at));
        }
        let unread = self.state.unread.values().flatten();
        let census = unread.filter(|stamp| stamp.sent < at).count();
        self.state.censuses.push(census);
        self.state.clock = at;
        self.log.lock().unwrap().push((at, LpId::new(self.me)));
        None
    }
}

impl Process for Station {
    type Token = Token;
    type WorkRequest = std::convert::Infallible;
    type Error = Failure;

    fn deliver(&mut self, token: Token, outbox: &mut Outbox<Token>) -> Result<Wake, Fault<Failure>> {
        let Token { from, kind, stamp } = token;
        let lane = match kind {
            Kind::Data => Lane::Data,
            Kind::Answer => Lane::Answer,
            Kind::Question => {
                let answer = Token { from: self.me, kind: Kind::Answer, stamp };
                outbox.send(LpId::new(from), answer);
                return Ok(Wake::No);
            }
            Kind::Poison => {
                return Err(Fault {
                    at: stamp.arrives,
                    order: u64::from(from),
                    error: Failure::PoisonedBy(from),
                });
            }
        };
        self.state.unread.entry((from, lane)).or_default().push_back(stamp);
        self.peak = self.peak.max(self.state.unread());
        if self.awaits_any {
            let first = self.first_of_any();
            return Ok(first.map_or(Wake::No, |(at, _)| Wake::Conditional(at.max(self.state.clock))));
        }
        Ok(if self.awaited == Some((from, lane)) { Wake::Ready } else { Wake::No })
    }

    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<Token>) -> Result<Pause, Fault<Failure>> {
        loop {
            let Some(op) = self.op() else { return Ok(Pause::Finished) };
            if self.state.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::OutOfSteps);
            }
            if let Some(pause) = self.step(op, turn, outbox)? {
                return Ok(pause);
            }
            turn.steps -= 1;
            self.state.steps += 1;
            self.advance();
        }
    }

    fn clock(&self) -> SimTime {
        self.state.clock
    }
}
