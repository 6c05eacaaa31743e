//! The state of the flow model, on which its future depends to the last bit.
//!
//! It is invariant under a shift in time: instants are integers, and only their differences become floating-point numbers.

use pdes_core::StateWriter;

use super::pending::{PendingId, Work};
use super::{ActiveFlow, FlowNetwork, ScheduledEvent};

impl<T: Copy> FlowNetwork<'_, T> {
    /// Writes flows with the solver, then their progress, scheduled events and computations. Numbers of flows and of pending items
    /// are left out: they are reused. Routes, and links of the solver, have fixed numbers from their first use on.
    pub(super) fn write_all(&self, state: &mut StateWriter, mut write_tag: impl FnMut(T, &mut StateWriter)) {
        // Work for the present instant begins at once, or later by an event; an instant before has no effect.
        state.value(&(self.now == state.now()));
        let mut write_item = |id: PendingId, state: &mut StateWriter| {
            match self.pending.work(id) {
                Work::Message { route, size, .. } => state.value(&(0_u8, route, size)),
                Work::Compute { host, flops } => {
                    state.value(&(1_u8, host));
                    state.float(flops);
                }
                Work::Timer => state.value(&2_u8),
            }
            write_tag(self.pending.tag(id), state);
        };
        self.sharing.write_state(state, |flow, state| {
            let ActiveFlow { message, begun, .. } = self.active[flow.index()];
            write_item(message, state);
            state.number(self.begun - begun);
            self.progress.write_flow(flow, state);
        });
        self.progress.write_state(state);
        state.value(&self.events.len());
        for (at, event) in self.events.in_order() {
            state.time(at);
            let (starts_flow, id) = match *event {
                ScheduledEvent::Begin(id) => (false, id),
                ScheduledEvent::StartFlow(id) => (true, id),
            };
            state.value(&starts_flow);
            if let Work::Message { order, .. } = self.pending.work(id) {
                order.write_state(state);
            }
            write_item(id, state);
        }
        self.cpus.write_state(state, &mut write_item);
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::{Bytes, SimDuration, SimTime};
    use proptest::prelude::*;

    use super::*;
    use crate::{HostId, Message, NetworkModel, NetworkParameters, Platform, Preset};

    const HOSTS: u32 = 6;

    fn platform() -> Platform {
        let text = "[topology]\nkind = \"torus\"\ndims = [3, 2]\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\nloopback = { bandwidth = \"2GBps\", latency = \"100ns\" }\n";
        Platform::from_toml(text, "torus.toml").unwrap()
    }

    fn state(network: &FlowNetwork<'_, u32>) -> Vec<u8> {
        let mut state = StateWriter::at(network.now);
        network.write_all(&mut state, |tag, state| state.value(&tag));
        state.into_bytes()
    }

    /// Ends all work that ends within some events; returns what ended, and when.
    fn advance(network: &mut FlowNetwork<'_, u32>, events: usize) -> Vec<(SimTime, Vec<u32>)> {
        let next = |_| {
            let at = network.next_event()?;
            let mut done = Vec::new();
            network.advance(&mut done);
            Some((at, done))
        };
        let ended = (0..events).map_while(next).collect();
        network.next_event();
        ended
    }

    fn start(network: &mut FlowNetwork<'_, u32>, work: &[(u32, u32, u64)]) {
        for (tag, &(from, to, amount)) in (0..).zip(work) {
            let (from, to, now) = (HostId::new(from), HostId::new(to), network.now());
            match tag % 4 {
                3 => network.compute(now, from, amount as f64, tag),
                _ => network.send(Message::new(now, from, to, Bytes::new(amount), tag)).unwrap(),
            }
        }
        network.next_event();
    }

    fn work() -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
        prop::collection::vec((0..HOSTS, 0..HOSTS, 1_u64..200_000), 1..40)
    }

    proptest! {
        /// A network that is shifted in time has the same state, and does the same, later. So does one whose flows and pending items
        /// have other numbers, because others came before.
        #[test]
        fn the_same_state_has_the_same_future(work in work(), others in work(), events in 0_usize..30, is_smpi: bool) {
            let platform = platform();
            let parameters = NetworkParameters::preset(if is_smpi { Preset::Smpi } else { Preset::Raw });
            let [mut first, mut later] = [(); 2].map(|()| FlowNetwork::new(&platform, &parameters));
            // All routes and links are known from the same work.
            for network in [&mut first, &mut later] {
                start(network, &work);
                start(network, &others);
                advance(network, usize::MAX);
            }
            start(&mut later, &others);
            advance(&mut later, usize::MAX);
            for network in [&mut first, &mut later] {
                // Numbers of vacant places differ by now.
                start(network, &work);
                advance(network, events);
            }
            prop_assert_eq!(state(&first), state(&later));
            let (before, time) = (first.now, SimDuration::from_picos(123_456_789));
            let same = state(&first);
            first.repeat_period(before, time, |_| {});
            first.next_event();
            prop_assert_eq!(state(&first), same);
            let shift = |now: SimTime, events: Vec<(SimTime, Vec<u32>)>| -> Vec<_> {
                events.into_iter().map(|(at, done)| (at - now, done)).collect()
            };
            let (at, other) = (first.now, later.now);
            prop_assert_eq!(at - before, time);
            prop_assert_eq!(
                shift(at, advance(&mut first, usize::MAX)),
                shift(other, advance(&mut later, usize::MAX))
            );
        }

        /// Whatever is changed in a network with flows under way changes the state.
        #[test]
        fn every_part_is_in_the_state(work in work(), events in 0_usize..12, part in 0_usize..9) {
            let platform = platform();
            let mut network = FlowNetwork::new(&platform, &NetworkParameters::preset(Preset::Raw));
            start(&mut network, &work);
            advance(&mut network, events);
            let before = state(&network);
            let picosecond = SimDuration::from_picos(1);
            let changes = match part {
                0 => network.sharing.change_a_level(),
                1 => network.sharing.change_a_limit(),
                2 => network.sharing.change_the_order_of_members(),
                3 => network.progress.change_a_finish(),
                4 => {
                    network.events.shift_time(picosecond);
                    network.events.len() > 0
                }
                5 => {
                    network.cpus.shift_time(picosecond);
                    network.cpus.running().next().is_some()
                }
                6 => {
                    network.pending.for_each_tag(|tag| *tag += 1);
                    network.pending.tags().next().is_some()
                }
                7 => network.sharing.change_patience(),
                _ => {
                    network.now += picosecond;
                    let is_idle = network.pending.tags().next().is_none();
                    let mut later = StateWriter::at(network.now);
                    network.write_all(&mut later, |tag, state| state.value(&tag));
                    prop_assert_eq!(later.into_bytes() == before, is_idle);
                    return Ok(());
                }
            };
            prop_assert_eq!(state(&network) != before, changes, "part {}", part);
        }
    }
}
