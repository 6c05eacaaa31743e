use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::*;
use crate::State;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, State)]
struct Sums {
    rounds: Counter,
    name: String,
    #[state(saved = "a cache")]
    cache: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State)]
enum Event {
    Timer(SimTime),
    Message { at: SimTime, size: Bytes },
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Loads(BTreeMap<u32, u64>);

impl Total for Loads {
    fn repeated(&self, before: &Self, times: u64) -> Option<Self> {
        let repeated = self.0.iter().map(|(&link, &now)| {
            let growth = now.checked_sub(before.0.get(&link).copied().unwrap_or(0))?;
            Some((link, growth.checked_mul(times)?.checked_add(now)?))
        });
        repeated.collect::<Option<_>>().map(Self)
    }
}

/// A machine with a context.
#[derive(Debug, State)]
#[state(in_place)]
struct Machine<'a> {
    #[state(skip = "the context")]
    name: &'a str,
    events: BinaryHeap<Reverse<Event>>,
    sums: Sums,
    last: Option<Event>,
    rate: f64,
    #[state(plain)]
    mode: Option<(u8, u8)>,
    loads: TotalLoads,
    message: Number,
}

#[derive(Debug)]
struct TotalLoads(Loads);

impl State for TotalLoads {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.total(&mut self.0);
    }
}

#[derive(Debug)]
struct Number(u32);

impl State for Number {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.number_on((0, 0), &mut self.0);
    }
}

fn at(picos: u64) -> SimTime {
    SimTime::from_picos(picos)
}

/// A machine as it is `rounds` rounds after the beginning, each of 100 ps.
fn machine(rounds: u64) -> Machine<'static> {
    let now = 100 * rounds;
    let events = [
        Event::Message { at: at(now + 9), size: Bytes::new(7) },
        Event::Timer(at(now + 30)),
        Event::Timer(at(now + 2)),
    ];
    Machine {
        name: "here",
        events: events.into_iter().map(Reverse).collect(),
        sums: Sums { rounds: Counter(3 * rounds), name: "loop".to_owned(), cache: 5 },
        last: Some(Event::Timer(at(now + 4))),
        rate: 0.1,
        mode: Some((1, 2)),
        loads: TotalLoads(Loads(BTreeMap::from([(4, 10 * rounds)]))),
        message: Number(8 + rounds as u32),
    }
}

fn events(machine: &Machine<'_>) -> Vec<Reverse<Event>> {
    machine.events.clone().into_sorted_vec()
}

#[test]
fn a_state_is_what_was_saved() {
    let bytes = save_state(&mut machine(2)).unwrap();
    let mut loaded = Machine { name: "there", mode: None, last: None, ..machine(0) };
    load_state(&mut loaded, &bytes).unwrap();
    let saved = machine(2);
    assert_eq!(events(&loaded), events(&saved));
    assert_eq!((&loaded.sums, loaded.last, loaded.mode), (&saved.sums, saved.last, saved.mode));
    assert_eq!((loaded.name, loaded.rate, loaded.message.0), ("there", 0.1, 10));
    assert_eq!(loaded.loads.0, saved.loads.0);
    let before = Observation::of(at(200), &mut machine(2));
    assert!(Observation::of(at(200), &mut loaded).equals(&before));
    for len in 0..bytes.len() {
        assert_eq!(load_state(&mut machine(0), &bytes[..len]), Err(ForeignState), "{len} bytes");
    }
    assert_eq!(load_state(&mut machine(0), &[&*bytes, &[0]].concat()), Err(ForeignState));
}

#[test]
fn repeating_is_what_happens_again() {
    let [before, now] = [1, 2].map(|round| Observation::of(at(100 * round), &mut machine(round)));
    assert!(now.equals(&before));
    let mut repeated = machine(2);
    let repetition = now.repetition(&before, 5).unwrap();
    repetition.repeat(SimDuration::from_picos(500), &mut repeated);
    let expected = machine(7);
    assert_eq!(events(&repeated), events(&expected));
    assert_eq!((&repeated.sums, repeated.last), (&expected.sums, expected.last));
    assert_eq!(repeated.loads.0, expected.loads.0);
    // Only differences of numbers on a base matter: they stay.
    assert_eq!(repeated.message.0, 10);
    assert!(Observation::of(at(700), &mut repeated).equals(&now));
    assert!(now.repetition(&before, u64::MAX / 2).is_none());
}

#[test]
fn every_part_makes_a_difference_but_caches_and_sums() {
    let before = Observation::of(at(100), &mut machine(1));
    let equals = |change: &dyn Fn(&mut Machine<'_>)| {
        let mut changed = machine(1);
        change(&mut changed);
        Observation::of(at(100), &mut changed).equals(&before)
    };
    assert!(equals(&|machine| machine.sums.cache = 6));
    assert!(equals(&|machine| machine.sums.rounds = Counter(7)));
    assert!(equals(&|machine| machine.message.0 = 70));
    assert!(!equals(&|machine| machine.sums.name = String::new()));
    assert!(!equals(&|machine| machine.last = Some(Event::Nothing)));
    assert!(!equals(&|machine| machine.last = Some(Event::Timer(at(105)))));
    assert!(!equals(&|machine| machine.rate = 0.1_f64.next_up()));
    assert!(!equals(&|machine| machine.mode = None));
    assert!(!equals(&|machine| machine.events.clear()));
}

#[test]
fn an_instant_before_the_horizon_makes_no_difference() {
    let observe = |picos: u64| {
        let mut visitor = StateVisitor::observing(at(100));
        visitor.time_from(at(90), &mut at(picos));
        visitor.into_observation().unwrap()
    };
    assert!(observe(5).equals(&observe(89)));
    assert!(!observe(90).equals(&observe(89)));
    assert!(!observe(90).equals(&observe(91)));
}

#[test]
fn a_refused_state_is_neither_saved_nor_loaded_nor_observed() {
    struct Failing;
    impl State for Failing {
        fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
            visitor.refuse();
        }
    }
    assert_eq!(save_state(&mut Failing), None);
    assert_eq!(load_state(&mut Failing, &[]), Err(ForeignState));
    let mut visitor = StateVisitor::observing(SimTime::ZERO);
    Failing.visit(&mut visitor);
    assert!(visitor.into_observation().is_none());
}
