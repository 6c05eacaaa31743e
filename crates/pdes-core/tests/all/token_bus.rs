//! A resource that is none of ours: a bus in segments on which stations send one after the other, with requests and notices of its own.
//!
//! Threads, members of a cluster, checkpoints, and the skipping of what recurs follow from the traits.

use std::collections::VecDeque;

use pdes_core::{
    Cluster, Counter, Ending, EventQueue, Fault, LpId, Observation, Outbox, Pause, Process, Progress, Region,
    RegionBlocks, RegionIndex, RegionalEngine, RegionalRun, SimDuration, SimTime, State, StateVisitor,
    SubmittedWork, Turn, Wake, load_state, save_state,
};
use serde::{Deserialize, Serialize};

/// Time from one segment to another: the lookahead \[ps\].
const BRIDGE: u64 = 1_000;
const STATIONS: u32 = 12;
const SEGMENTS: u32 = 4;
const ROUNDS: u64 = 200;

/// A frame for a station, which occupies the bus for a time \[ps\].
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Frame {
    from: LpId,
    to: LpId,
    picos: u64,
}

/// What the bus tells a station.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
enum Notice {
    Sent(SimTime),
    Received(SimTime),
}

fn segment(station: LpId) -> RegionIndex {
    station.get() * SEGMENTS / STATIONS
}

fn picos(picos: u64) -> SimDuration {
    SimDuration::from_picos(picos)
}

/// A segment of the bus: frames of its stations, and those that come over the bridge, take their turns as they come.
#[derive(State)]
#[state(in_place)]
struct Segment {
    #[state(skip = "context")]
    index: RegionIndex,
    waiting: VecDeque<Frame>,
    /// The frame on the bus, and its end.
    on_bus: Option<(SimTime, Frame)>,
    /// Frames that have left the bridge.
    coming: EventQueue<Frame>,
    #[state(skip = "empty between two spans")]
    leaving: Vec<(RegionIndex, (SimTime, Frame))>,
    now: SimTime,
    frames: Counter,
}

impl Segment {
    fn new(index: RegionIndex) -> Self {
        Self {
            index,
            waiting: VecDeque::new(),
            on_bus: None,
            coming: EventQueue::default(),
            leaving: Vec::new(),
            now: SimTime::ZERO,
            frames: Counter(0),
        }
    }

    fn start(&mut self, now: SimTime) {
        if self.on_bus.is_none()
            && let Some(frame) = self.waiting.pop_front()
        {
            self.on_bus = Some((now + picos(frame.picos), frame));
            self.frames.0 += 1;
        }
    }
}

impl Region<Station> for Segment {
    type Message = (SimTime, Frame);
    const MAX_ROUNDS: &'static [u32] = &[1];

    fn submit(&mut self, SubmittedWork { at, request, .. }: SubmittedWork<Frame>) {
        self.waiting.push_back(request);
        self.start(at);
    }

    fn next_event_time(&mut self) -> Option<SimTime> {
        self.on_bus.map(|(end, _)| end).into_iter().chain(self.coming.next()).min()
    }

    fn advance(&mut self, outbox: &mut Outbox<Notice, Frame>) -> Result<(), (LpId, Fault<()>)> {
        let Some(now) = self.next_event_time() else { return Ok(()) };
        self.now = now;
        if let Some((_, frame)) = self.on_bus.take_if(|(end, _)| *end == now) {
            if segment(frame.from) == self.index {
                outbox.send(frame.from, Notice::Sent(now));
            }
            match segment(frame.to) {
                home if home == self.index => outbox.send(frame.to, Notice::Received(now)),
                other => self.leaving.push((other, (now + picos(BRIDGE), frame))),
            }
        }
        while let Some(frame) = self.coming.pop_due(now) {
            self.waiting.push_back(frame);
        }
        self.start(now);
        Ok(())
    }

    fn take_messages(&mut self, messages: &mut Vec<(RegionIndex, Self::Message)>) {
        messages.append(&mut self.leaving);
    }

    fn receive(&mut self, (at, frame): Self::Message) {
        self.coming.add(at, frame);
    }
}

/// A station: in each round it thinks, sends a frame to the next one, and waits until its own is sent and one has come.
#[derive(State)]
#[state(in_place)]
struct Station {
    #[state(skip = "context")]
    me: LpId,
    clock: SimTime,
    is_waiting: bool,
    sent: VecDeque<SimTime>,
    received: VecDeque<SimTime>,
    rounds: Counter,
    /// The last station has stopped at the begin of this round.
    has_stopped: bool,
}

impl Station {
    fn new(me: LpId) -> Self {
        let (sent, received) = (VecDeque::new(), VecDeque::new());
        let (clock, rounds) = (SimTime::ZERO, Counter(0));
        Self { me, clock, is_waiting: false, sent, received, rounds, has_stopped: false }
    }
}

impl Process for Station {
    type Token = Notice;
    type WorkRequest = Frame;
    type Error = ();

    fn deliver(&mut self, notice: Notice, _: &mut Outbox<Notice, Frame>) -> Result<Wake, Fault<()>> {
        match notice {
            Notice::Sent(at) => self.sent.push_back(at),
            Notice::Received(at) => self.received.push_back(at),
        }
        Ok(Wake::Ready)
    }

    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<Notice, Frame>) -> Result<Pause, Fault<()>> {
        while self.rounds.0 < ROUNDS {
            if self.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if !self.is_waiting {
                if self.me.get() == STATIONS - 1 && !self.has_stopped {
                    self.has_stopped = true;
                    return Ok(Pause::AtCheckpoint);
                }
                self.clock += picos(500 * (1 + u64::from(self.me.get()) % 3));
                let to = LpId::new((self.me.get() + 1) % STATIONS);
                outbox.submit(self.clock, 0, Frame { from: self.me, to, picos: 250 });
                self.is_waiting = true;
            }
            if self.sent.is_empty() || self.received.is_empty() {
                return Ok(Pause::Blocked);
            }
            let notices = self.sent.pop_front().into_iter().chain(self.received.pop_front());
            self.clock = notices.fold(self.clock, SimTime::max);
            (self.is_waiting, self.has_stopped) = (false, false);
            self.rounds.0 += 1;
        }
        Ok(Pause::Finished)
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

/// The whole state between two cuts.
struct Bus {
    stations: Vec<Station>,
    segments: Vec<Segment>,
}

impl State for Bus {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { stations, segments } = self;
        stations.iter_mut().for_each(|station| station.visit(visitor));
        segments.iter_mut().for_each(|segment| segment.visit(visitor));
    }
}

impl Bus {
    fn new() -> Self {
        let stations = (0..STATIONS).map(|number| Station::new(LpId::new(number))).collect();
        Self { stations, segments: (0..SEGMENTS).map(Segment::new).collect() }
    }

    /// Runs to the next cut, or to the end; returns the instant of the cut.
    fn run(&mut self, workers: usize, from: Option<SimTime>) -> Option<SimTime> {
        let engine = RegionalEngine::new(workers).jitter(7);
        let engine = from.map_or(engine.clone(), |cut| engine.continuing_from(cut));
        let homes: Vec<RegionIndex> = (0..STATIONS).map(|number| segment(LpId::new(number))).collect();
        let Self { stations, segments } = std::mem::replace(self, Self::new());
        let done = engine.run(picos(BRIDGE), stations, &homes, segments, &Progress::new(workers));
        let RegionalRun { run, regions, cut, .. } = done.unwrap();
        assert!(matches!(run.ending, Ending::Completed | Ending::StoppedAtCheckpoint), "{:?}", run.ending);
        *self = Self { stations: run.processes, segments: regions };
        cut
    }

    /// Returns the clocks of all stations, and the frames of all segments.
    fn results(&self) -> (Vec<SimTime>, Vec<u64>) {
        let clocks = self.stations.iter().map(|station| station.clock).collect();
        (clocks, self.segments.iter().map(|segment| segment.frames.0).collect())
    }
}

/// Returns the results of a run in one go from cut to cut.
fn whole(workers: usize) -> (Vec<SimTime>, Vec<u64>) {
    let (mut bus, mut cut) = (Bus::new(), None);
    loop {
        cut = bus.run(workers, cut);
        if cut.is_none() {
            return bus.results();
        }
    }
}

#[test]
fn threads_and_members_have_one_result() {
    let expected = whole(1);
    assert_eq!(expected.1.iter().sum::<u64>(), ROUNDS * u64::from(STATIONS + SEGMENTS));
    assert_eq!([2, 3].map(whole), [expected.clone(), expected.clone()]);
    let homes: Vec<RegionIndex> = (0..STATIONS).map(|number| segment(LpId::new(number))).collect();
    for members in [2, 3] {
        let parts = Cluster::in_memory(members, |mut cluster| {
            let blocks = RegionBlocks::new(homes.clone(), SEGMENTS, cluster.members());
            let me = cluster.member();
            let mut stations: Vec<Station> = blocks.lps(me).map(Station::new).collect();
            let mut segments: Vec<Segment> = blocks.regions(me).map(Segment::new).collect();
            let mut engine = RegionalEngine::new(2);
            loop {
                let (span, progress) = (picos(BRIDGE), Progress::new(2));
                let done = engine.run_distributed(&mut cluster, span, stations, &blocks, segments, &progress);
                let RegionalRun { run, regions, cut, .. } = done.unwrap().unwrap();
                (stations, segments) = (run.processes, regions);
                let Some(cut) = cut else { return Bus { stations, segments }.results() };
                engine = engine.continuing_from(cut);
            }
        });
        let parts = parts.into_iter().map(|part| part.expect("no member panics"));
        let (clocks, frames): (Vec<_>, Vec<_>) = parts.unzip();
        assert_eq!((clocks.concat(), frames.concat()), expected, "{members} members");
    }
}

#[test]
fn a_run_resumes_from_a_checkpoint() {
    let expected = whole(1);
    let (mut bus, mut cut) = (Bus::new(), None);
    for _ in 0..ROUNDS / 3 {
        cut = bus.run(2, cut);
        let bytes = save_state(&mut bus).expect("all of it can be saved");
        bus = Bus::new();
        load_state(&mut bus, &bytes).unwrap();
    }
    while cut.is_some() {
        cut = bus.run(3, cut);
    }
    assert_eq!(bus.results(), expected);
}

#[test]
fn what_recurs_is_skipped() {
    let expected = whole(1);
    let (mut bus, mut cut, mut known) = (Bus::new(), None, Vec::<(SimTime, u64, Observation)>::new());
    let mut skipped = 0;
    loop {
        cut = bus.run(2, cut);
        let Some(now) = &mut cut else { break };
        let observation = Observation::of(*now, &mut bus);
        let rounds = bus.stations[0].rounds.0;
        if skipped == 0
            && let Some((before, earlier, equal)) =
                known.iter().find(|(.., known)| known.equals(&observation))
        {
            let times = (ROUNDS - rounds) / (rounds - earlier) - 1;
            let time = (*now - *before).checked_mul(times).unwrap();
            observation.repetition(equal, times).unwrap().repeat(time, &mut bus);
            *now += time;
            skipped = times * (rounds - earlier);
        }
        known.push((*now, bus.stations[0].rounds.0, observation));
    }
    assert!(skipped > ROUNDS / 2, "{skipped} rounds are skipped");
    assert_eq!(bus.results(), expected);
}
