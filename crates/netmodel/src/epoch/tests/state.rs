//! States are saved, recur, and what lies between can be repeated; with one clock, and region by region.

use std::cmp::Reverse;

use pdes_core::{Bytes, Observation, State, StateVisitor, load_state, save_state};

use super::exchange::{RandomChange, SHAPES, platform, random_changes, resource_changes};
use super::*;
use crate::Message;

const HOSTS: u32 = 16;
/// Length of an epoch [ps].
const EPOCH: u64 = 1_000_000;
/// Length of a period: all that happens in one has ended before it is over.
const PERIOD: u64 = 1500 * EPOCH;

/// Work in a period: when [ps], where, to which host (a computation if it is the same one), how much.
type Work = (u64, u32, u32, u64);

fn work() -> impl Strategy<Value = Vec<Work>> {
    let at = prop_oneof![Just(0_u64), (0..20_u64).prop_map(|epoch| epoch * EPOCH), 0..20 * EPOCH];
    let one = (at, 0..HOSTS, 0..HOSTS, prop_oneof![1..2000_u64, 1..60_000_u64]);
    proptest::collection::vec(one, 1..30)
}

/// A machine in epochs, with the instants at which work ends.
trait Machine {
    fn submit(&mut self, begin: u64, work: &[Work]);
    /// Runs up to an instant; returns what ends until then, and when after the last such instant.
    fn run(&mut self, end: u64) -> Vec<(u64, Vec<u32>)>;
    fn watch(&mut self, now: u64, period: u64, repetitions: u64);
    fn repeat_loads(&mut self, now: u64);
    /// Returns statistics and loads of links.
    fn totals(&mut self, end: u64) -> (Vec<u64>, LinkLoads);
}

fn picos(picos: u64) -> SimTime {
    SimTime::from_picos(picos)
}

fn message(at: SimTime, src: u32, dst: u32, size: u64, tag: u32) -> Message<u32> {
    Message::new(at, HostId::new(src), HostId::new(dst), Bytes::new(size), tag)
}

/// One clock for all regions.
struct Whole<'p> {
    network: EpochNetwork<'p, u32>,
    ran_until: u64,
}

impl State for Whole<'_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.network.visit(visitor);
        visitor.saved(&mut self.ran_until);
    }
}

impl Machine for Whole<'_> {
    fn submit(&mut self, begin: u64, work: &[Work]) {
        for (tag, &(at, src, dst, amount)) in (0..).zip(work) {
            let at = picos(begin + at);
            match src == dst {
                true if tag % 2 == 0 => self.network.schedule(at, tag),
                true => self.network.compute(at, HostId::new(src), amount as f64, tag),
                false => self.network.send(message(at, src, dst, amount, tag)).unwrap(),
            }
        }
    }

    fn run(&mut self, end: u64) -> Vec<(u64, Vec<u32>)> {
        let mut ended = Vec::new();
        while let Some(at) = self.network.next_event().filter(|&at| at < picos(end)) {
            let mut done = Vec::new();
            self.network.advance(&mut done);
            ended.push((at.as_picos() - self.ran_until, done));
        }
        ended.retain(|(_, done)| !done.is_empty());
        self.ran_until = end;
        ended
    }

    fn watch(&mut self, now: u64, period: u64, repetitions: u64) {
        self.network.watch_period(picos(now), SimDuration::from_picos(period), repetitions);
    }

    fn repeat_loads(&mut self, now: u64) {
        self.network.repeat_loads(picos(now));
    }

    fn totals(&mut self, end: u64) -> (Vec<u64>, LinkLoads) {
        let EpochCounts { boundaries, rounds, messages, solves, evaluations } = self.network.counts();
        let counts = vec![boundaries, rounds, messages, solves, evaluations];
        (counts, self.network.link_loads(picos(end)).expect("loads are recorded"))
    }
}

/// Regions that exchange messages at boundaries only.
struct Parts<'g, 'p> {
    machine: &'g EpochMachine<'p>,
    regions: Vec<EpochRegion<'g, 'p, u32>>,
    ran_until: u64,
}

impl State for Parts<'_, '_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.regions.iter_mut().for_each(|region| region.visit(visitor));
        visitor.saved(&mut self.ran_until);
    }
}

impl Parts<'_, '_> {
    fn deliver(&mut self, messages: Vec<(u32, RegionMessage<u32>)>) -> Vec<u32> {
        let mut receivers: Vec<u32> = messages.iter().map(|(to, _)| *to).collect();
        messages.into_iter().for_each(|(to, message)| self.regions[to as usize].receive(message));
        receivers.sort_unstable();
        receivers.dedup();
        receivers
    }

    fn exchange(&mut self, boundary: SimTime) {
        let span = boundary..boundary.saturating_add(self.machine.epoch());
        for (exchange, &most) in (0..).zip(EpochRegion::<'_, '_, u32>::MAX_ROUNDS) {
            let mut called: Vec<u32> = (0..self.regions.len() as u32).collect();
            for round in 0..most {
                let mut messages = Vec::new();
                for &region in &called {
                    let region = &mut self.regions[region as usize];
                    region.exchange_round(span.clone(), exchange, round);
                    region.take_messages(&mut messages);
                }
                called = self.deliver(messages);
                if called.is_empty() {
                    break;
                }
            }
        }
        self.regions.iter_mut().for_each(|region| region.begin_span(span.clone()));
    }
}

impl Machine for Parts<'_, '_> {
    fn submit(&mut self, begin: u64, work: &[Work]) {
        let mut messages = Vec::new();
        for (tag, &(at, src, dst, amount)) in (0..).zip(work) {
            let at = picos(begin + at);
            let home = self.machine.regions().of_host(HostId::new(src)).index();
            match src == dst {
                true if tag % 2 == 0 => self.regions[home].schedule(at, tag),
                true => self.regions[home].compute(at, HostId::new(src), amount as f64, tag),
                // From another region, sometimes.
                false => {
                    let from = if tag % 3 == 0 { 0 } else { home };
                    self.regions[from].send(message(at, src, dst, amount, tag)).unwrap();
                    self.regions[from].take_messages(&mut messages);
                }
            }
        }
        self.deliver(messages);
    }

    fn run(&mut self, end: u64) -> Vec<(u64, Vec<u32>)> {
        let (begin, mut ended) = (self.ran_until, Vec::new());
        while self.ran_until < end {
            // A machine is cut before the exchange of a boundary.
            let boundary = picos(self.ran_until);
            if self.regions.iter().any(|region| region.next_boundary().is_some_and(|at| at <= boundary)) {
                self.exchange(boundary);
            }
            self.ran_until = end.min(self.ran_until + EPOCH);
            for region in &mut self.regions {
                while region.next_event().is_some_and(|at| at < picos(self.ran_until)) {
                    let mut done = Vec::new();
                    region.advance(&mut done);
                    ended.push((region.now().as_picos() - begin, done));
                }
            }
        }
        ended.retain(|(_, done)| !done.is_empty());
        ended
    }

    fn watch(&mut self, now: u64, period: u64, repetitions: u64) {
        let period = SimDuration::from_picos(period);
        self.regions.iter_mut().for_each(|region| region.watch_period(picos(now), period, repetitions));
    }

    fn repeat_loads(&mut self, now: u64) {
        self.regions.iter_mut().for_each(|region| region.repeat_loads(picos(now)));
    }

    fn totals(&mut self, end: u64) -> (Vec<u64>, LinkLoads) {
        let counts = self.regions.iter().map(EpochRegion::solve_counts);
        let counts = counts.flat_map(|(solves, evaluations)| [solves, evaluations]).collect();
        (counts, self.machine.link_loads(self.regions.iter_mut(), picos(end)))
    }
}

fn assert_loads(one: &LinkLoads, other: &LinkLoads) {
    assert_eq!((one.bin, one.links.len()), (other.bin, other.links.len()));
    for (one, other) in one.links.iter().zip(&other.links) {
        assert_eq!((one.link, one.bytes, one.saturated), (other.link, other.bytes, other.saturated));
        let pairs = one.series.iter().zip(&other.series);
        assert!(pairs.clone().all(|(one, other)| (one - other).abs() < 1e-9), "{one:?}, {other:?}");
        assert_eq!(one.series.len(), other.series.len());
    }
}

/// Cuts a machine in each period, until its state has recurred; lets it repeat, and simulates the same.
fn check_repetitions<M: Machine + State>(make: impl Fn() -> M, work: &[Work], middle: u64, times: u64) {
    let (mut machine, cut) = (make(), |period: u64| period * PERIOD + middle);
    let go_on = |machine: &mut M, now: &mut u64, periods: u64| -> Vec<_> {
        let ended = (0..periods).map(|_| {
            *now += 1;
            machine.submit(*now * PERIOD, work);
            machine.run(cut(*now))
        });
        ended.collect()
    };
    machine.submit(0, work);
    machine.run(cut(0));
    let (mut now, mut known) = (0, vec![Observation::of(picos(cut(0)), &mut machine)]);
    let length = loop {
        go_on(&mut machine, &mut now, 1);
        let state = Observation::of(picos(cut(now)), &mut machine);
        if let Some(before) = known.iter().rposition(|before| before.equals(&state)) {
            break now - before as u64;
        }
        known.push(state);
        assert!(now < 8, "the state recurs");
    };
    let before = Observation::of(picos(cut(now)), &mut machine);
    machine.watch(cut(now), length * PERIOD, times);
    go_on(&mut machine, &mut now, length);
    let state = Observation::of(picos(cut(now)), &mut machine);
    assert!(state.equals(&before));

    let (mut repeated, mut later) = (make(), now + times * length);
    load_state(&mut repeated, &save_state(&mut machine).unwrap()).unwrap();
    std::mem::swap(&mut repeated, &mut machine);
    let mut simulated = machine;
    repeated.repeat_loads(cut(now));
    let time = SimDuration::from_picos(times * length * PERIOD);
    state.repetition(&before, times).unwrap().repeat(time, &mut repeated);
    go_on(&mut simulated, &mut now, times * length);
    let same = Observation::of(picos(cut(later)), &mut repeated);
    assert!(same.equals(&state));
    assert!(Observation::of(picos(cut(now)), &mut simulated).equals(&same));
    simulated.run(cut(now));
    repeated.run(cut(later));
    assert_eq!(go_on(&mut repeated, &mut later, 2), go_on(&mut simulated, &mut now, 2));
    let ((counts, loads), (expected, expected_loads)) =
        (repeated.totals(cut(now)), simulated.totals(cut(now)));
    assert_eq!(counts, expected);
    assert_loads(&loads, &expected_loads);
}

/// A byte at a place of a state.
type Forged = (prop::sample::Index, u8);

fn check_loaded<M: Machine + State>(make: impl Fn() -> M, work: &[Work], middle: u64, forged: &[Forged]) {
    let [mut saved, mut loaded] = [make(), make()];
    saved.submit(0, work);
    saved.run(middle);
    let bytes = save_state(&mut saved).unwrap();
    load_state(&mut loaded, &bytes).unwrap();
    assert!(load_state(&mut make(), &bytes[..bytes.len() - 1]).is_err());
    assert_eq!(save_state(&mut loaded).unwrap(), bytes);
    for (place, byte) in forged {
        let mut bytes = bytes.clone();
        let place = place.index(bytes.len());
        bytes[place] = *byte;
        // Taken or refused, and no panic.
        let _ = load_state(&mut make(), &bytes);
    }
    assert_eq!(loaded.run(middle + EPOCH), saved.run(middle + EPOCH));
    let now = picos(middle + EPOCH);
    assert!(Observation::of(now, &mut loaded).equals(&Observation::of(now, &mut saved)));
    assert_eq!(loaded.run(PERIOD), saved.run(PERIOD));
    assert_eq!(loaded.totals(PERIOD), saved.totals(PERIOD));
}

/// The instant of a cut in the midst of a period: a boundary, or not.
fn cuts() -> impl Strategy<Value = u64> {
    prop_oneof![(1..60_u64).prop_map(|epoch| epoch * EPOCH), 1..60 * EPOCH]
}

fn with_machine(
    shape: usize,
    regions: u32,
    changes: &[RandomChange],
    check: impl FnOnce(&dyn Fn() -> Whole<'static>, &EpochMachine<'static>),
) {
    let mut platform = platform(SHAPES[shape]);
    platform.set_changes(resource_changes(&platform, changes)).unwrap();
    let platform: &'static Platform = Box::leak(Box::new(platform));
    let parameters = NetworkParameters::preset(Preset::Raw);
    let regions = || Regions::with_count(platform, regions);
    let epoch = SimDuration::from_picos(EPOCH);
    let make = || {
        let network = EpochNetwork::new(platform, &parameters, regions(), epoch).unwrap();
        Whole { network: network.with_link_loads(), ran_until: 0 }
    };
    let machine = EpochMachine::new(platform, &parameters, regions(), epoch).unwrap();
    check(&make, &machine.with_link_loads(true));
}

fn parts<'g, 'p>(machine: &'g EpochMachine<'p>) -> Parts<'g, 'p> {
    let regions = machine.make_regions(0..machine.regions().count());
    Parts { machine, regions, ran_until: 0 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_loaded_state_has_the_same_future(
        shape in 0..SHAPES.len(),
        regions in 1_u32..5,
        work in work(),
        middle in cuts(),
        forged in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 20),
        changes in random_changes(),
    ) {
        with_machine(shape, regions, &changes, |make, machine| {
            check_loaded(make, &work, middle, &forged);
            check_loaded(|| parts(machine), &work, middle.next_multiple_of(EPOCH), &forged);
        });
    }

    #[test]
    fn repetitions_are_what_happens_again(
        shape in 0..SHAPES.len(),
        regions in 1_u32..5,
        work in work(),
        middle in cuts(),
        times in 1_u64..4,
    ) {
        with_machine(shape, regions, &[], |make, machine| {
            check_repetitions(make, &work, middle, times);
            check_repetitions(|| parts(machine), &work, middle.next_multiple_of(EPOCH), times);
        });
    }

    /// Networks with other histories, in which flows and events have other numbers, come to the same state.
    #[test]
    fn the_same_state_has_the_same_future(shape in 0..SHAPES.len(), work in work(), others in work(), middle in cuts()) {
        with_machine(shape, 3, &[], |make, _| {
            let [mut first, mut later] = [make(), make()];
            for (machine, periods) in [(&mut first, 1_u64), (&mut later, 3)] {
                // All routes are known from the same work.
                machine.submit(0, &work);
                machine.submit(0, &others);
                machine.run(PERIOD);
                for period in 1..periods {
                    machine.submit(period * PERIOD, &others);
                    machine.run((period + 1) * PERIOD);
                }
                machine.submit(periods * PERIOD, &work);
                machine.run(periods * PERIOD + middle);
            }
            let [one, other] = [(&mut first, 1), (&mut later, 3)].map(|(machine, periods)| {
                let state = Observation::of(picos(periods * PERIOD + middle), machine);
                (state, machine.run((periods + 1) * PERIOD))
            });
            assert!(one.0.equals(&other.0));
            assert_eq!(one.1, other.1);
        });
    }

    /// Whatever is changed in a machine with flows under way changes its state.
    #[test]
    fn every_part_is_in_the_state(shape in 0..SHAPES.len(), work in work(), middle in cuts(), part in 0..12) {
        with_machine(shape, 3, &[], |make, _| {
            let mut machine = make();
            machine.submit(0, &work);
            machine.run(middle);
            let before = Observation::of(picos(middle), &mut machine);
            let region = machine.network.regions.iter_mut().max_by_key(|region| region.transfers.len()).unwrap();
            let RegionState { transfers, solver, cross_region_states, messages_sent, event_store, unannounced, .. } =
                region;
            let busy = solver.links.iter_mut().max_by_key(|link| (link.level != UNLIMITED, link.weights)).unwrap();
            // An observed region has no flows that have ended.
            let transfer = transfers.first_mut();
            let changes = match part {
                0 => transfer.map(|transfer| transfer.left += 1).is_some(),
                1 => transfer.map(|transfer| transfer.tag += 1).is_some(),
                2 => transfer.map(|transfer| transfer.since += SimDuration::from_picos(1)).is_some(),
                3 => {
                    let begun = transfer.filter(|transfer| transfer.rate > 0);
                    begun.map(|transfer| transfer.end += SimDuration::from_picos(1)).is_some()
                }
                4 => transfer.map(|transfer| transfer.is_reported ^= true).is_some(),
                5 => solver.flows.first_mut().map(|flow| flow.rate += 1).is_some(),
                6 => {
                    busy.load += 1;
                    true
                }
                7 => {
                    busy.reserve += 1;
                    true
                }
                8 => {
                    busy.level = busy.level.wrapping_sub(1);
                    true
                }
                9 => {
                    let announced = (0..).zip(transfers).find(|(_, transfer)| transfer.is_announced);
                    announced.map(|(flow, _): (usize, _)| cross_region_states[flow].offer += 1).is_some()
                }
                10 => {
                    // Only differences between numbers of messages matter, and only while there are several.
                    let sources = transfers.iter().map(|transfer| transfer.key.src);
                    let slot = messages_sent.iter_mut().find(|(host, _)| sources.clone().any(|src| src == *host));
                    slot.map(|(_, sent)| *sent += 1).is_some()
                }
                _ => {
                    let announcement = unannounced.peek().map(|&Reverse((_, slot))| event_store.take(slot));
                    let changed = announcement.map(|event| match event {
                        event_store::RegionEvent::Announce(route, spec) => {
                            event_store.add(event_store::RegionEvent::Announce(route, MessageSpec { tag: spec.tag + 1, ..spec }))
                        }
                        _ => unreachable!("an announcement is unannounced"),
                    });
                    changed.is_some()
                }
            };
            let after = Observation::of(picos(middle), &mut machine);
            assert_eq!(!after.equals(&before), changes, "part {part}");
        });
    }
}
