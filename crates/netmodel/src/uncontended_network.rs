//! A network without contention that is simulated event by event, for machines of which other parts need the order of time.

mod region;

use rustc_hash::FxHashMap;

use pdes_core::{SimDuration, SimTime, State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::flow::event_queue::EventQueue;
use crate::{
    Capabilities, ContentionFree, HostId, Message, NetworkModel, NetworkParameters, PathCost, Platform,
    RouteError,
};
pub use region::{ArrivalMessage, UncontendedMachine, UncontendedRegion};

/// The contention-free model as a network: each message takes the time of [`ContentionFree`], each computation has a core for itself.
#[derive(Debug)]
pub struct UncontendedNetwork<'a, T> {
    platform: &'a Platform,
    model: ContentionFree,
    /// Costs of the routes that messages have taken.
    costs: FxHashMap<(HostId, HostId), PathCost>,
    ends: EventQueue<T>,
    now: SimTime,
}

impl<'a, T> UncontendedNetwork<'a, T> {
    /// Creates an idle network.
    pub fn new(platform: &'a Platform, parameters: &NetworkParameters) -> Self {
        Self {
            platform,
            model: ContentionFree::new(parameters),
            costs: FxHashMap::default(),
            ends: EventQueue::default(),
            now: SimTime::ZERO,
        }
    }
}

impl<T> UncontendedNetwork<'_, T> {
    /// Returns the instant at which a message arrives.
    fn arrival(&mut self, &Message { at, src, dst, size, .. }: &Message<T>) -> Result<SimTime, RouteError> {
        let cost = match self.costs.get(&(src, dst)) {
            Some(cost) => *cost,
            None => {
                let cost = self.model.path_cost(self.platform, src, dst)?;
                self.costs.insert((src, dst), cost);
                cost
            }
        };
        Ok(end(at, self.model.try_duration(cost, size)))
    }
}

/// Returns the end of work that takes a time; the end of simulated time if that is beyond it.
fn end(at: SimTime, duration: Option<SimDuration>) -> SimTime {
    duration.and_then(|duration| at.checked_add(duration)).unwrap_or(SimTime::MAX)
}

impl<T: Copy> NetworkModel<T> for UncontendedNetwork<'_, T> {
    const CAPABILITIES: Capabilities =
        Capabilities { checkpoint: true, fast_forward: true, ..Capabilities::NONE };

    fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let arrival = self.arrival(&message)?;
        self.ends.add(arrival, message.tag);
        Ok(())
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        // As ranks without contention compute.
        let picos_per_flop = 1e12 / self.platform.host(host).speed;
        self.ends.add(end(at, SimDuration::try_from_picos_f64(flops * picos_per_flop)), tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.ends.add(at, tag);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        self.ends.next()
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.ends.next() else { return };
        self.now = now;
        let after = now.saturating_add(SimDuration::from_picos(1));
        while let Some((_, tag)) = self.ends.pop_before(after) {
            done.push(tag);
        }
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.ends.iter().copied()
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        let Self { platform: _, model: _, costs: _, ends, now } = self;
        ends.visit(visitor);
        if !visitor.is_observing() {
            now.visit(visitor);
        }
    }
}
