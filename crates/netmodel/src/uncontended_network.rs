//! A network without contention that is simulated event by event, for machines of which other parts need the order of time: whole, or in
//! regions, because the sender of a message knows its arrival, which is at least a window later in another region.

use rustc_hash::FxHashMap;

use pdes_core::{EventQueue, SimDuration, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{
    ContentionFree, HostId, Message, NetworkModel, NetworkParameters, Platform, RouteError, UncontendedRoute,
};

/// The contention-free model as a network: each message takes the time of [`ContentionFree`], each computation has a core for itself.
#[derive(Debug)]
pub struct UncontendedNetwork<'a, T> {
    platform: &'a Platform,
    model: ContentionFree,
    /// The routes that messages have taken.
    routes: FxHashMap<(HostId, HostId), UncontendedRoute>,
    ends: EventQueue<T>,
    now: SimTime,
    /// The region, unless it is the whole machine.
    part: Option<Part<'a>>,
    /// Arrivals of messages in other regions, which do not know of them yet.
    arrivals: Vec<(u32, ArrivalMessage<T>)>,
    is_late: bool,
}

/// A region of a machine.
#[derive(Debug)]
struct Part<'a> {
    index: u32,
    /// Region of each host.
    homes: &'a [u32],
    /// Length of windows, at most the shortest time of a message between regions.
    window: SimDuration,
}

/// Message between regions: something arrives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ArrivalMessage<T> {
    at: SimTime,
    tag: T,
}

impl<'a, T> UncontendedNetwork<'a, T> {
    /// Creates an idle network.
    pub fn new(platform: &'a Platform, parameters: &NetworkParameters) -> Self {
        Self {
            platform,
            model: ContentionFree::new(parameters),
            routes: FxHashMap::default(),
            ends: EventQueue::default(),
            now: SimTime::ZERO,
            part: None,
            arrivals: Vec::new(),
            is_late: false,
        }
    }

    /// Makes the idle network that of region `index`. `homes` has the region of each host; messages between regions take a `window` at
    /// least.
    pub fn of_region(self, index: u32, homes: &'a [u32], window: SimDuration) -> Self {
        Self { part: Some(Part { index, homes, window }), ..self }
    }

    /// Returns the instant at which a message arrives.
    fn arrival(&mut self, &Message { at, src, dst, size, .. }: &Message<T>) -> Result<SimTime, RouteError> {
        let route = match self.routes.get(&(src, dst)) {
            Some(route) => *route,
            None => {
                let route = self.model.route(self.platform, src, dst)?;
                self.routes.insert((src, dst), route);
                route
            }
        };
        Ok(end(at, self.model.transfer(self.platform, route, size, at)))
    }
}

/// Returns the end of work that takes a time; the end of simulated time if that is beyond it.
fn end(at: SimTime, duration: Option<SimDuration>) -> SimTime {
    duration.and_then(|duration| at.checked_add(duration)).unwrap_or(SimTime::MAX)
}

impl<T: Copy + Send + Serialize + DeserializeOwned> NetworkModel<T> for UncontendedNetwork<'_, T> {
    type Message = ArrivalMessage<T>;
    const BEGINS_ANYWHERE: bool = true;

    fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let Message { at: sent, src, dst, tag, .. } = message;
        let at = self.arrival(&message)?;
        let Some(Part { index, homes, window }) = self.part else {
            self.ends.add(at, tag);
            return Ok(());
        };
        let [src, dst] = [src, dst].map(|host| homes[host.index()]);
        // Both ends are told.
        for region in [Some(src), (dst != src).then_some(dst)].into_iter().flatten() {
            if region == index {
                self.schedule(at, tag);
            } else {
                self.is_late |= at < sent.saturating_add(window);
                self.arrivals.push((region, ArrivalMessage { at, tag }));
            }
        }
        Ok(())
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.is_late |= at < self.now;
        self.ends.add(end(at, self.platform.compute_time(host, flops, at)), tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.is_late |= at < self.now;
        self.ends.add(at, tag);
    }

    fn abandon(&mut self, at: SimTime, is_dropped: impl Fn(T) -> bool) {
        self.now = at;
        self.ends.retain(|tag| !is_dropped(*tag));
    }

    fn next_event(&mut self) -> Option<SimTime> {
        self.ends.next()
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.ends.next() else { return };
        self.now = now;
        done.extend(std::iter::from_fn(|| self.ends.pop_due(now)));
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.ends.iter().copied().chain(self.arrivals.iter().map(|(_, arrival)| arrival.tag))
    }

    fn take_messages(&mut self, messages: &mut Vec<(u32, ArrivalMessage<T>)>) {
        messages.append(&mut self.arrivals);
    }

    fn receive(&mut self, ArrivalMessage { at, tag }: ArrivalMessage<T>) {
        self.ends.add(at, tag);
    }

    /// Work is late if its message takes less than a window to another region, or for an instant that this region has passed, because a
    /// rank of another region woke its rank without delay.
    fn is_late(&self) -> bool {
        self.is_late
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        let Self { platform, model: _, routes: _, ends, now, part: _, arrivals: _, is_late } = self;
        ends.visit(visitor);
        platform.changes().compare_next(visitor);
        if !visitor.is_observing() {
            now.visit(visitor);
        }
        is_late.visit(visitor);
    }
}
