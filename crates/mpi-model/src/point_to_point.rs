//! Point-to-point messages of a rank.

use std::collections::BTreeMap;

use pdes_core::{Bytes, Rank};

use crate::error::ReplayErrorKind;
use crate::machine::{Machine, UncontendedTransfer};
use crate::matching::{Port, Ports, QueuedItems};
use crate::observer::Network;

/// Ports of a rank, and the routes of its messages.
pub(crate) struct PointToPoint<'t, M: Machine> {
    machine: &'t M,
    me: Rank,
    pub(crate) ports: Ports<M::Route>,
    /// Routes to other ranks, looked up by operations in closed form and for critical paths.
    routes: BTreeMap<Rank, M::Route>,
}

impl<'t, M: Machine> PointToPoint<'t, M> {
    /// Creates the ports of the incoming channels of a rank.
    ///
    /// # Errors
    /// A peer has no route to the rank.
    pub(crate) fn new(
        machine: &'t M,
        me: Rank,
        peers: impl ExactSizeIterator<Item = Rank>,
    ) -> Result<Self, ReplayErrorKind<M::Error>> {
        let mut ports = Vec::with_capacity(peers.len());
        for peer in peers {
            ports.push(Port::new(peer, Some(route(machine, peer, me)?)));
        }
        Ok(Self { machine, me, ports: Ports::new(ports), routes: BTreeMap::new() })
    }

    /// Restores queued items into empty queues; returns whether they fit the ports.
    pub(crate) fn restore(&mut self, queued: &QueuedItems) -> Result<bool, ReplayErrorKind<M::Error>> {
        let (machine, me) = (self.machine, self.me);
        self.ports.restore(queued, |peer| route(machine, peer, me))
    }

    /// Returns the route of a port, looked up on first use.
    pub(crate) fn route_of_port(&mut self, port: usize) -> Result<M::Route, ReplayErrorKind<M::Error>> {
        let Port { peer, route: known, .. } = *self.ports.get(port);
        if let Some(route) = known {
            return Ok(route);
        }
        let route = route(self.machine, peer, self.me)?;
        self.ports.get_mut(port).route = Some(route);
        Ok(route)
    }

    /// Returns the route to a rank, looked up on first use.
    pub(crate) fn route_to(&mut self, to: Rank) -> Result<M::Route, ReplayErrorKind<M::Error>> {
        if let Some(route) = self.routes.get(&to) {
            return Ok(*route);
        }
        let route = route(self.machine, self.me, to)?;
        self.routes.insert(to, route);
        Ok(route)
    }
}

impl<M: Machine> Network for PointToPoint<'_, M> {
    fn uncontended_from(&mut self, port: usize, bytes: Bytes) -> UncontendedTransfer {
        let route = self.ports.get(port).route;
        route.map_or(UncontendedTransfer::default(), |route| self.machine.uncontended(route, bytes))
    }

    fn uncontended_to(&mut self, to: Rank, bytes: Bytes) -> UncontendedTransfer {
        let route = self.route_to(to);
        route.map_or(UncontendedTransfer::default(), |route| self.machine.uncontended(route, bytes))
    }
}

fn route<M: Machine>(machine: &M, from: Rank, to: Rank) -> Result<M::Route, ReplayErrorKind<M::Error>> {
    machine.route(from, to).map_err(|source| ReplayErrorKind::NoRoute { from, to, source })
}
