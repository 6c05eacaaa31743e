//! The network without contention, cut into regions: the sender of a message knows its arrival, which is at least a window later.

use std::ops::Range;

use pdes_core::{SimDuration, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::UncontendedNetwork;
use crate::{
    HostId, Message, NetworkModel, NetworkParameters, NetworkRegion, Platform, RegionId, RouteError,
};

/// A machine without contention in regions, and the length of its windows: the shortest time of a message between regions.
#[derive(Debug)]
pub struct UncontendedMachine<'p> {
    platform: &'p Platform,
    parameters: NetworkParameters,
    /// Region of each host.
    homes: Box<[u32]>,
    window: SimDuration,
}

impl<'p> UncontendedMachine<'p> {
    /// Creates an idle machine.
    pub fn new(
        platform: &'p Platform,
        parameters: &NetworkParameters,
        homes: &[u32],
        window: SimDuration,
    ) -> Self {
        Self { platform, parameters: parameters.clone(), homes: homes.into(), window }
    }

    /// Creates the idle regions of these numbers, in their order.
    pub fn make_regions<T: Copy>(
        &self,
        numbers: impl Iterator<Item = u32>,
    ) -> Vec<UncontendedRegion<'_, 'p, T>> {
        let region = |number| UncontendedRegion {
            machine: self,
            id: RegionId::new(number),
            network: UncontendedNetwork::new(self.platform, &self.parameters),
            arrivals: Vec::new(),
            first_arrival: None,
            is_late: false,
            origin: SimTime::ZERO,
        };
        numbers.map(region).collect()
    }
}

/// A region of an [`UncontendedMachine`].
#[derive(Debug)]
pub struct UncontendedRegion<'m, 'p, T> {
    machine: &'m UncontendedMachine<'p>,
    id: RegionId,
    network: UncontendedNetwork<'p, T>,
    /// Arrivals of messages in other regions, which do not know of them yet.
    arrivals: Vec<(u32, ArrivalMessage<T>)>,
    /// The earliest of them.
    first_arrival: Option<SimTime>,
    is_late: bool,
    /// Begin of a window, from which windows are counted.
    origin: SimTime,
}

/// Message between regions: something arrives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub struct ArrivalMessage<T> {
    at: SimTime,
    tag: T,
}

impl<T: Copy> UncontendedRegion<'_, '_, T> {
    /// Returns the begin of the window of an instant.
    fn window_of(&self, at: SimTime) -> SimTime {
        let (origin, window) = (self.origin.as_picos(), self.machine.window.as_picos());
        SimTime::from_picos(origin + at.as_picos().saturating_sub(origin) / window * window)
    }
}

impl<T: Copy + Send> NetworkRegion<T> for UncontendedRegion<'_, '_, T> {
    type Message = ArrivalMessage<T>;
    const MAX_ROUNDS: &'static [u32] = &[1];
    const BEGINS_ANYWHERE: bool = true;

    fn send(&mut self, message: Message<T>, _: &mut Vec<(u32, Self::Message)>) -> Result<(), RouteError> {
        let Message { at, src, dst, tag, .. } = message;
        let arrival = self.network.arrival(&message)?;
        let [src, dst] = [src, dst].map(|host| self.machine.homes[host.index()]);
        let next_window = self.window_of(at).saturating_add(self.machine.window);
        // Both ends are told.
        for region in [Some(src), (dst != src).then_some(dst)].into_iter().flatten() {
            if region == self.id.get() {
                self.schedule(arrival, tag);
            } else {
                self.is_late |= arrival < next_window;
                self.arrivals.push((region, ArrivalMessage { at: arrival, tag }));
                self.first_arrival = Some(self.first_arrival.map_or(arrival, |first| first.min(arrival)));
            }
        }
        Ok(())
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.is_late |= at < self.now();
        self.network.compute(at, host, flops, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.is_late |= at < self.now();
        self.network.schedule(at, tag);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        self.network.next_event()
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        self.network.advance(done);
    }

    fn now(&self) -> SimTime {
        self.network.now()
    }

    fn unfinished(&self) -> Vec<T> {
        self.network.unfinished().chain(self.arrivals.iter().map(|(_, arrival)| arrival.tag)).collect()
    }

    fn next_boundary(&self) -> Option<SimTime> {
        self.first_arrival.map(|at| self.window_of(at))
    }

    fn exchange_round(
        &mut self,
        _: Range<SimTime>,
        _: u32,
        _: u32,
        messages: &mut Vec<(u32, Self::Message)>,
    ) {
        messages.append(&mut self.arrivals);
        self.first_arrival = None;
    }

    fn receive(&mut self, ArrivalMessage { at, tag }: Self::Message) {
        self.network.schedule(at, tag);
    }

    fn begin_span(&mut self, _: SimTime) {}

    fn count_spans_from(&mut self, origin: SimTime) {
        self.origin = origin;
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        let Self { machine, id: _, network, arrivals, first_arrival, is_late, origin } = self;
        network.visit(visitor);
        arrivals.visit(visitor);
        first_arrival.visit(visitor);
        is_late.visit(visitor);
        // After a cut, windows are counted from there.
        visitor.saved(origin);
        if arrivals.iter().any(|&(region, _)| !machine.homes.contains(&region)) {
            visitor.refuse();
        }
    }

    /// Work is late if its message takes less than a window to another region, or for an instant that this region has passed, because a
    /// rank of another region woke its rank without delay.
    fn is_late(&self) -> bool {
        self.is_late
    }
}
