//! Timelines: states, waits and messages of ranks.

use std::sync::Mutex;

use mpi_model::{ActionKind, Event, EventSink, Excerpt, RankProcess, Recording, Replay, WaitState};
use pdes_core::{Bytes, Ending, Engine, Rank, SimDuration, SimTime};
use trace_mmap::CommId;

use crate::runs::{Simple, program, reenact};

#[derive(Debug, Default)]
struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn record(&self, events: &[Event]) {
        self.0.lock().unwrap().extend_from_slice(events);
    }
}

fn ns(time: u64) -> SimTime {
    SimTime::from_picos(1000 * time)
}

/// Returns the events of a replay, sorted by their text, and the time of each rank by kind of action.
fn record(ranks: &[&str], excerpt: &Excerpt, engine: &Engine) -> (Vec<Event>, Vec<Vec<SimDuration>>) {
    let trace = trace_tools::from_text(&program(ranks)).unwrap();
    let (events, parameters) = (Events::default(), reenact());
    let recording = Some(Recording { excerpt, sink: &events });
    let world = Replay::new(&trace, &Simple, &parameters).with_breakdowns(true).with_recording(recording);
    let run = engine.run(world.processes().unwrap());
    assert!(matches!(run.ending, Ending::Completed));
    let times = |rank: &RankProcess<'_, Simple>| {
        ActionKind::ALL.into_iter().map(|kind| rank.statistics().time(kind)).collect()
    };
    let times = run.processes.iter().map(times).collect();
    drop(run);
    let mut events = events.0.into_inner().unwrap();
    events.sort_by_key(|event| format!("{event:?}"));
    (events, times)
}

fn recorded(ranks: &[&str], excerpt: &Excerpt) -> Vec<Event> {
    record(ranks, excerpt, &Engine::new(1)).0
}

fn state(rank: u32, kind: ActionKind, begin: u64, end: u64) -> Event {
    Event::State { rank: Rank::new(rank), kind, site: None, begin: ns(begin), end: ns(end) }
}

fn message(from: u32, to: u32, sent: u64, arrived: u64, bytes: u64) -> Event {
    Event::Message {
        from: Rank::new(from),
        to: Rank::new(to),
        sent: ns(sent),
        arrived: ns(arrived),
        bytes: Bytes::new(bytes),
        tag: 7,
        communicator: CommId::WORLD,
        operation: None,
    }
}

const LATE: [&str; 2] = ["compute 5000; send 1 7 984; finalize", "compute 1000; recv 0 7 984; finalize"];

/// The message takes 2000 ns from its send, for which the receive waits 4000.
#[test]
fn states_waits_and_messages_are_recorded() {
    use ActionKind::{Compute, Finalize, Recv, Send};
    let late = Event::Wait {
        rank: Rank::new(1),
        kind: Recv,
        state: WaitState::LateSender,
        site: None,
        begin: ns(1000),
        end: ns(5000),
    };
    let mut expected = vec![
        state(0, Compute, 0, 5000),
        state(0, Send, 5000, 5000),
        state(0, Finalize, 5000, 5000),
        state(1, Compute, 0, 1000),
        state(1, Recv, 1000, 7000),
        state(1, Finalize, 7000, 7000),
        late,
        message(0, 1, 5000, 7000, 984),
    ];
    expected.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(recorded(&LATE, &Excerpt::default()), expected);
}

#[test]
fn an_excerpt_has_its_window_and_its_ranks() {
    use ActionKind::{Compute, Recv};
    let window = Excerpt { window: ns(2000)..ns(5000), ..Excerpt::default() };
    let late = Event::Wait {
        rank: Rank::new(1),
        kind: Recv,
        state: WaitState::LateSender,
        site: None,
        begin: ns(2000),
        end: ns(5000),
    };
    let found = recorded(&LATE, &window);
    assert_eq!(found, [state(0, Compute, 2000, 5000), state(1, Recv, 2000, 5000), late]);
    let of_message = Excerpt { window: ns(6000)..ns(6001), ..Excerpt::default() };
    let found = recorded(&LATE, &of_message);
    assert_eq!(found, [message(0, 1, 5000, 7000, 984), state(1, Recv, 6000, 6001)]);
    for rank in [0, 1] {
        let found = recorded(&LATE, &Excerpt { ranks: rank..rank + 1, ..Excerpt::default() });
        assert!(found.contains(&message(0, 1, 5000, 7000, 984)), "one end is inside");
        let is_other =
            |event: &Event| matches!(event, Event::State { rank: other, .. } if other.get() != rank);
        assert_eq!(
            (found.len(), found.iter().filter(|event| is_other(event)).count()),
            (4 + rank as usize, 0)
        );
    }
    assert_eq!(recorded(&LATE, &Excerpt { ranks: 2..9, ..Excerpt::default() }), []);
}

#[test]
fn messages_of_operations_are_recorded_where_they_are_asked_for() {
    let ranks = ["bcast 100 0 6; bcast 200 0 6", "bcast 100 0 6; bcast 200 0 6"];
    let messages = |operations| {
        let found = recorded(&ranks, &Excerpt { operations, ..Excerpt::default() });
        let messages = found.into_iter().filter_map(|event| match event {
            Event::Message { bytes, tag, operation, .. } => Some((bytes.get(), tag, operation)),
            _ => None,
        });
        messages.collect::<Vec<_>>()
    };
    let bcast = Some(ActionKind::Bcast);
    assert_eq!(messages(true), [(100, 1, bcast), (200, 2, bcast)]);
    assert_eq!(messages(false), []);
}

/// The events do not depend on the schedule, and the states of a rank cover all its time.
#[test]
fn states_follow_each_other_without_gaps() {
    let one = "irecv 1 0 99984 req=1; ibarrier req=2; compute 700; send 1 0 99984; wait req=1; wait req=2; \
               allreduce 10 100 6; recv -555 3 50; barrier";
    let other = "irecv 0 0 99984 req=1; ibarrier req=2; compute 100; sendRecv 99984 0 50 2 6 6; wait req=1; wait req=2; \
                 allreduce 10 100 6; send 0 3 50; barrier";
    let third = "ibarrier req=2; send 1 0 50; compute 3000; wait req=2; allreduce 10 100 6; barrier";
    let programs = [one, other, third];
    let excerpt = Excerpt { operations: true, ..Excerpt::default() };
    let (events, times) = record(&programs, &excerpt, &Engine::new(1));
    for (rank, times) in times.iter().enumerate() {
        let mut states: Vec<(SimTime, SimTime, ActionKind)> = events
            .iter()
            .filter_map(|event| match *event {
                Event::State { rank: of, kind, begin, end, .. } if of.index() == rank => {
                    Some((begin, end, kind))
                }
                _ => None,
            })
            .collect();
        states.sort();
        assert_eq!(states[0].0, SimTime::ZERO);
        assert!(states.windows(2).all(|pair| pair[0].1 == pair[1].0), "{states:?}");
        for (kind, &time) in ActionKind::ALL.into_iter().zip(times) {
            let of_kind = states.iter().filter(|state| state.2 == kind).map(|state| state.1 - state.0);
            assert_eq!(of_kind.sum::<SimDuration>(), time, "{kind:?} of rank {rank}");
        }
    }
    for threads in [1, 2, 3] {
        for seed in 1..4 {
            let found = record(&programs, &excerpt, &Engine::new(threads).batch(1).jitter(seed));
            assert_eq!(found.0, events, "{threads} threads, seed {seed}");
        }
    }
}
