//! Parts of a network, which are moved to another one.

use pdes_core::{Bytes, SimTime};
use rustc_hash::FxHashMap;

use super::pending::{MessageOrder, Work};
use super::{ActiveFlow, FlowNetwork, PICOS, ScheduledEvent, later};
use crate::link_load::LinkTotals;
use crate::maxmin::{FlowIndex, Relocation};
use crate::{HostId, LinkId, Message, NetworkModel, NetworkObserver, ObservedLink, RouteError};

impl<T: Copy, O: NetworkObserver> FlowNetwork<'_, T, O> {
    /// Returns the number of a route.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn route(&mut self, src: HostId, dst: HostId) -> Result<u32, RouteError> {
        self.routes.find(src, dst, &mut self.sharing)
    }

    /// Returns the links that flows on a route use.
    pub(super) fn links_of(&self, route: u32) -> impl Iterator<Item = LinkId> + '_ {
        self.routes.usages(route).iter().map(|usage| LinkId::new(self.sharing.number(usage.link)))
    }

    /// Tells of every flow the tag of its message, the link that limits its rate unless something else does, and the load of each link
    /// that it uses [B/s], since the last [`next_event`](NetworkModel::next_event). Takes time proportional to the messages that flow and
    /// their links.
    pub fn shares(&self, mut tell: impl FnMut(T, Option<LinkId>, &mut dyn Iterator<Item = (LinkId, f64)>)) {
        let id = |link| LinkId::new(self.sharing.number(link));
        for flow in self.sharing.flows_in_order() {
            let super::ActiveFlow { message, route, .. } = self.active[flow.index()];
            let rate = self.sharing.level(flow) / self.sharing.penalty(flow);
            let usages = self.routes.usages(route).iter();
            let mut loads = usages.map(|usage| (id(usage.link), usage.weight * rate));
            tell(self.pending.tag(message), self.sharing.bottleneck(flow).map(id), &mut loads);
        }
    }

    /// Returns the end of the latency phase of a message that is sent at an instant.
    pub(super) fn flow_begin(&self, route: u32, at: SimTime, size: Bytes) -> SimTime {
        self.after_latency(self.routes.latency(route, at), at, size)
    }

    /// Returns the end of the latency phase of a message on a route of this latency \[s\].
    #[inline]
    pub(super) fn after_latency(&self, latency: f64, at: SimTime, size: Bytes) -> SimTime {
        later(at, latency * self.factors.of(size).latency * PICOS)
    }

    /// Schedules the begin of a flow, whose latency phase another network has simulated.
    pub(super) fn schedule_flow(&mut self, begin: SimTime, message: Message<T>) {
        let route = self.route(message.src, message.dst).expect("the sender has found the route");
        let work = Work::Message { route, size: message.size, order: MessageOrder::of(&message) };
        let id = self.pending.add(work, message.tag);
        self.events.add(begin, ScheduledEvent::StartFlow(id));
        self.upcoming = None;
    }

    /// Returns the number of flows that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns the number of flows under way.
    pub(super) fn flow_count(&self) -> usize {
        self.sharing.flow_count()
    }

    /// Advances until an instant; reports what arrives before, and on which routes.
    pub(super) fn advance_until(&mut self, end: SimTime, mut arrives: impl FnMut(SimTime, T, Option<u32>)) {
        while let Some(at) = self.next_event().filter(|&at| at < end) {
            self.complete_next(|tag, route| arrives(at, tag, route));
        }
    }

    /// Returns the routes of all messages that have not arrived.
    pub(super) fn routes_in_use(&self) -> impl Iterator<Item = u32> {
        self.pending.items().filter_map(|(_, pending)| match pending.work {
            Work::Message { route, .. } => Some(route),
            Work::Compute { .. } | Work::Timer => None,
        })
    }

    /// Returns the totals of links up to an instant, as far as they were recorded.
    pub fn link_totals(&self, end: SimTime) -> Option<impl Iterator<Item = LinkTotals<'_>>> {
        let links = self.routes.links().map(|(link, index)| ObservedLink { link, slot: index.get() });
        self.volumes.observer.link_totals(self.routes.platform(), links, end)
    }

    /// Moves a link with flows, and all links and flows connected with it, to another network at an instant after the last event
    /// of both; returns the links. Neither network has changed since its [next event](NetworkModel::next_event) was computed, but for
    /// [scheduled](Self::schedule_flow) flows.
    pub(super) fn move_component(&mut self, now: SimTime, link: LinkId, to: &mut Self) -> Vec<LinkId> {
        let link = self.routes.index_of(link).expect("the link is in use");
        let component = self.sharing.component(link);
        let mut flows = component.flows.clone();
        // Flows between two hosts arrive in the order in which they began.
        flows.sort_unstable_by_key(|flow| self.active[flow.index()].begun);
        let mut messages = Vec::with_capacity(flows.len());
        for flow in flows {
            let ActiveFlow { message, route, .. } = self.active[flow.index()];
            let (src, dst) = self.routes.ends(route);
            let Work::Message { size, order, .. } = self.pending.work(message) else {
                unreachable!("only messages flow")
            };
            let route = to.route(src, dst).expect("the other network has the same routes");
            let message =
                to.pending.add(Work::Message { route, size, order }, self.pending.complete(message));
            to.begun += 1;
            messages.push((flow, ActiveFlow { message, route, begun: to.begun }));
        }
        let mut relocation = Relocation::default();
        let mut moved = Vec::with_capacity(component.links.len());
        for &link in &component.links {
            let number = LinkId::new(self.sharing.number(link));
            let there = to.routes.index_of(number).expect("the link is on a route of a flow");
            relocation.links.insert(link, there);
            moved.push(number);
        }
        to.pass_changes_before(now);
        self.advance_observer(now);
        to.advance_observer(now);
        self.sharing.move_component(&component, &mut to.sharing, &mut relocation);
        self.progress.move_component(&component, &mut to.progress, &relocation);
        let routes: FxHashMap<FlowIndex, u32> =
            messages.iter().map(|&(flow, ActiveFlow { route, .. })| (flow, route)).collect();
        let moved_parts = (&component, &relocation);
        self.volumes.move_component(now, moved_parts, &mut to.volumes, &self.sharing, |flow| routes[&flow]);
        for (flow, active) in messages {
            let place = relocation.flows[&flow].index();
            if to.active.len() <= place {
                to.active.resize(place + 1, active);
            }
            to.active[place] = active;
        }
        (self.upcoming, to.upcoming) = (None, None);
        moved
    }

    /// Tells the observer what links carry up to an instant until which no event comes.
    #[inline]
    pub(super) fn advance_observer(&mut self, now: SimTime) {
        let left = |flow, at| self.progress.left(at, flow);
        self.volumes.advance(now, (&self.routes, &self.sharing), left);
    }
}
