//! The states of ranks in a run, and the messages between them, along its critical path.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mpi_model::{ActionKind, CriticalPath, Event, EventSink};
use netmodel::LinkId;
use pdes_core::{Rank, SimTime};
use replay::Simulation;
use trace_mmap::LocationId;

use super::{SeenEvent, Step};

/// The states of each rank, in their order.
pub(super) type States = BTreeMap<Rank, Vec<SeenEvent>>;

/// A state of a rank as it is recorded.
#[derive(Clone, Copy, Debug)]
struct State {
    kind: ActionKind,
    site: Option<LocationId>,
    begin: SimTime,
    end: SimTime,
}

/// Time of a message: its send, and its arrival.
type Flight = (SimTime, SimTime);

/// Events of a run.
#[derive(Debug, Default)]
struct Events {
    states: BTreeMap<Rank, Vec<State>>,
    /// Messages by sender and receiver.
    messages: BTreeMap<(Rank, Rank), Vec<Flight>>,
}

/// Records the states of all ranks, and all messages.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    events: Mutex<Events>,
}

impl EventSink for Recorder {
    fn record(&self, events: &[Event]) {
        let mut recorded = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            match *event {
                Event::State { rank, kind, site, begin, end } => {
                    recorded.states.entry(rank).or_default().push(State { kind, site, begin, end });
                }
                Event::Message { from, to, sent, arrived, .. } => {
                    recorded.messages.entry((from, to)).or_default().push((sent, arrived));
                }
                Event::Wait { .. } => {}
            }
        }
    }

    fn begin_anew(&self) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = Events::default();
    }
}

/// A run with all that its ranks did.
pub(super) struct RecordedRun {
    pub(super) states: States,
    messages: BTreeMap<(Rank, Rank), Vec<Flight>>,
    simulation: Simulation,
}

/// The end of a critical path, as a sample.
pub(super) struct Chain {
    pub(super) steps: Vec<Step>,
    /// Times by call site \[ps\].
    pub(super) sites: BTreeMap<String, u64>,
    /// Number of steps by link.
    pub(super) links: BTreeMap<String, u64>,
}

impl RecordedRun {
    pub(super) fn new(recorder: &Recorder, simulation: Simulation) -> Self {
        let mut events = recorder.events.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = |rank: Rank, &State { kind, site, begin, end }: &State| SeenEvent {
            action: kind.name(),
            site: site.map(|site| simulation.trace().rank(rank).location(site).to_owned()),
            begin_ps: begin.as_picos(),
            end_ps: end.as_picos(),
        };
        let of_rank = |(rank, states): (&Rank, &Vec<State>)| {
            (*rank, states.iter().map(|state| seen(*rank, state)).collect())
        };
        let states = events.states.iter().map(of_rank).collect();
        // Sinks get the messages of a pair in any order.
        events
            .messages
            .values_mut()
            .for_each(|flights| flights.sort_unstable_by_key(|(sent, arrived)| (*arrived, *sent)));
        let messages = std::mem::take(&mut events.messages);
        drop(events);
        Self { states, messages, simulation }
    }

    /// Returns the critical path from an instant on.
    pub(super) fn chain(&self, path: &CriticalPath, from: SimTime) -> Chain {
        let mut chain = Chain { steps: Vec::new(), sites: BTreeMap::new(), links: BTreeMap::new() };
        let segments = path.segments();
        let before = std::iter::once(None).chain(segments.iter().map(Some));
        for (segment, before) in segments.iter().zip(before).filter(|(segment, _)| segment.to > from) {
            let span = [segment.from.max(from).as_picos(), segment.to.as_picos()];
            let mut longest: Option<(u64, &SeenEvent)> = None;
            let mut left = span[1] - span[0];
            for state in self.states_within(segment.rank, span) {
                let time = state.end_ps.min(span[1]) - state.begin_ps.max(span[0]);
                *chain.sites.entry(state.site.clone().unwrap_or_default()).or_default() += time;
                left -= time;
                if longest.is_none_or(|(known, _)| time > known) {
                    longest = Some((time, state));
                }
            }
            if left > 0 {
                *chain.sites.entry(String::new()).or_default() += left;
            }
            let link = before.and_then(|before| {
                let message = self.message(before.rank, segment.rank, before.from..segment.to)?;
                self.narrowest_link(message)
            });
            link.iter().for_each(|link| *chain.links.entry(link.clone()).or_default() += 1);
            chain.steps.push(Step {
                rank: segment.rank.get(),
                from_ps: segment.from.as_picos(),
                to_ps: segment.to.as_picos(),
                action: longest.map(|(_, state)| state.action),
                site: longest.and_then(|(_, state)| state.site.clone()),
                link,
            });
        }
        chain
    }

    /// Returns the states of a rank in which a span \[ps\] lies.
    fn states_within(&self, rank: Rank, [begin, end]: [u64; 2]) -> impl Iterator<Item = &SeenEvent> {
        let states = self.states.get(&rank).map_or(&[][..], Vec::as_slice);
        let first = states.partition_point(|state| state.end_ps <= begin);
        states[first..].iter().take_while(move |state| state.begin_ps < end)
    }

    /// Returns sender and receiver of the message by which a path goes from one rank to another within a time: it mostly arrives at the
    /// second one, or has left it late for a sender that waits.
    fn message(&self, from: Rank, to: Rank, time: std::ops::Range<SimTime>) -> Option<(Rank, Rank)> {
        [(from, to), (to, from)].into_iter().find(|pair| {
            let flights = self.messages.get(pair).map_or(&[][..], Vec::as_slice);
            flights
                .iter()
                .any(|&(sent, arrived)| sent < time.end && arrived >= time.start && arrived <= time.end)
        })
    }

    fn narrowest_link(&self, (from, to): (Rank, Rank)) -> Option<String> {
        let (platform, placement) = (self.simulation.platform(), self.simulation.placement());
        let mut links: Vec<LinkId> = Vec::new();
        platform.route(placement.host(from), placement.host(to), &mut links).ok()?;
        let bandwidth = |link: &LinkId| platform.link(*link).bandwidth;
        let narrowest = links.iter().min_by(|one, other| bandwidth(one).total_cmp(&bandwidth(other)));
        narrowest.map(|link| platform.link(*link).name.clone())
    }
}
