//! The state of the flow model, on which its future depends to the last bit.
//!
//! It is invariant under a shift in time: instants are integers, and only their differences become floating-point numbers.

use pdes_core::{SimTime, State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ActiveFlow, FlowNetwork, ScheduledEvent};
use crate::{NetworkObserver, Resource};

/// The solver, the progress of flows, scheduled events and computations, and then what these are about, where it is used: numbers of
/// flows and of pending items are reused. Routes, and links of the solver, have fixed numbers from their first use on.
impl<T, O> State for FlowNetwork<'_, T, O>
where
    T: Copy + State + Serialize + DeserializeOwned,
    O: NetworkObserver,
{
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            factors: _,
            precision: _,
            routes,
            choices,
            sharing,
            progress,
            active,
            begun,
            pending,
            events,
            cpus,
            now,
            upcoming,
            due: _,
            volumes,
            lookahead: _,
        } = self;
        *upcoming = None;
        routes.visit(sharing, visitor);
        if visitor.is_loading() && !visitor.is_refused() {
            for change in routes.past_changes() {
                if let Resource::Speed(host) = change.resource {
                    cpus.set_speed(SimTime::ZERO, host.get(), change.value, |_| {});
                }
            }
        }
        choices.visit(visitor);
        sharing.visit(visitor);
        progress.visit(visitor);
        events.visit(visitor);
        cpus.visit(visitor);
        visitor.saved(active);
        visitor.saved(begun);
        visitor.context(volumes.observer.is_observing());
        visitor.saved(volumes);
        // Work for the present instant begins at once, or later by an event; an instant before has no effect.
        visitor.time_from(visitor.now(), now);
        if visitor.saves_whole(pending) {
            return;
        }
        for flow in sharing.flows_in_order() {
            let ActiveFlow { message, route: _, begun: number } = active[flow.index()];
            visitor.compare(&(*begun - number));
            progress.visit_flow(flow, visitor);
            pending.visit_item(message, true, visitor);
        }
        let scheduled = events.in_order().map(|event| match *event {
            ScheduledEvent::Begin(id) | ScheduledEvent::StartFlow(id) => id,
        });
        scheduled.chain(cpus.running()).for_each(|id| pending.visit_item(id, false, visitor));
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::{Bytes, Observation, SimDuration, SimTime, load_state, save_state};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        ForeignState, HostId, HostLoads, LinkId, Message, NetworkModel, NetworkParameters, Platform, Preset,
        Resource, ResourceChange,
    };

    const HOSTS: u32 = 6;

    /// A number, and the instant of submission.
    type Tag = (u32, SimTime);

    /// A platform with fewer hosts.
    const SMALL: &str = "[topology]\nkind = \"cluster\"\nhosts = 2\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n";

    fn platform() -> Platform {
        let text = "[topology]\nkind = \"torus\"\ndims = [3, 2]\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\nloopback = { bandwidth = \"2GBps\", latency = \"100ns\" }\n";
        Platform::from_toml(text, "torus.toml").unwrap()
    }

    fn state(network: &mut FlowNetwork<'_, Tag>) -> Observation {
        Observation::of(network.now, network)
    }

    /// Ends all work that ends within some events; returns what ended, and when.
    fn advance(network: &mut FlowNetwork<'_, Tag>, events: usize) -> Vec<(SimTime, Vec<Tag>)> {
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

    fn start(network: &mut FlowNetwork<'_, Tag>, work: &[(u32, u32, u64)]) {
        for (tag, &(from, to, amount)) in (0..).zip(work) {
            let (from, to, now) = (HostId::new(from), HostId::new(to), network.now());
            match tag % 4 {
                3 => network.compute(now, from, amount as f64, (tag, now)),
                _ => network.send(Message::new(now, from, to, Bytes::new(amount), (tag, now))).unwrap(),
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
            let same = state(&mut first);
            prop_assert!(same.equals(&state(&mut later)));
            let (before, time) = (first.now, SimDuration::from_picos(123_456_789));
            same.repetition(&same, 1).unwrap().repeat(time, &mut first);
            first.next_event();
            prop_assert!(same.equals(&state(&mut first)));
            let shift = |now: SimTime, events: Vec<(SimTime, Vec<Tag>)>| -> Vec<_> {
                let tags = |done: Vec<Tag>| done.into_iter().map(|(tag, sent)| (tag, now - sent)).collect();
                events.into_iter().map(|(at, done)| (at - now, tags(done))).collect::<Vec<(_, Vec<_>)>>()
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
            let before = state(&mut network);
            let picosecond = SimDuration::from_picos(1);
            let changes = match part {
                0 => network.sharing.change_a_level(),
                1 => network.sharing.change_a_limit(),
                2 => network.sharing.change_the_order_of_members(),
                3 => network.progress.change_a_finish(),
                4 => {
                    before.repetition(&before, 1).unwrap().repeat(picosecond, &mut network.events);
                    network.events.next().is_some()
                }
                5 => {
                    before.repetition(&before, 1).unwrap().repeat(picosecond, &mut network.cpus);
                    network.cpus.running().next().is_some()
                }
                6 => {
                    network.pending.change_tags(|(tag, _)| *tag += 1);
                    network.pending.items().next().is_some()
                }
                7 => network.sharing.change_patience(),
                _ => {
                    network.now += picosecond;
                    let is_idle = network.pending.items().next().is_none();
                    prop_assert_eq!(state(&mut network).equals(&before), is_idle);
                    return Ok(());
                }
            };
            prop_assert_eq!(!state(&mut network).equals(&before), changes, "part {}", part);
        }

        /// A network that was saved and loaded has the same state, the same future and the same loads of links. One on another platform,
        /// or that records no loads, refuses the state; damage is refused, or makes another state.
        #[test]
        fn a_loaded_network_has_the_same_future(
            work in work(),
            events in 0_usize..30,
            is_smpi: bool,
            damage in (any::<prop::sample::Index>(), 1_u8..),
        ) {
            let mut platform = platform();
            let change = |micros: u64, resource, value| ResourceChange {
                at: SimTime::from_picos(micros * 1_000_000),
                resource,
                value,
            };
            let [speed, bandwidth] = [Resource::Speed(HostId::new(3)), Resource::Bandwidth(LinkId::new(0))];
            let changes = [change(20, speed, 5e8), change(50, bandwidth, 0.0), change(90, bandwidth, 2e9)];
            platform.set_changes(changes).unwrap();
            let parameters = NetworkParameters::preset(if is_smpi { Preset::Smpi } else { Preset::Raw });
            let mut network = FlowNetwork::new(&platform, &parameters).with_link_loads().with_host_loads();
            start(&mut network, &work);
            advance(&mut network, events);
            let bytes = save_state(&mut network).unwrap();
            let idle = || FlowNetwork::<Tag>::new(&platform, &parameters).with_link_loads().with_host_loads();
            let small = Platform::from_toml(SMALL, "small.toml").unwrap();
            let mut foreign = [
                FlowNetwork::<Tag>::new(&platform, &parameters),
                FlowNetwork::new(&small, &parameters).with_link_loads(),
            ];
            for network in &mut foreign {
                prop_assert_eq!(load_state(network, &bytes), Err(ForeignState));
            }
            let mut damaged = bytes.clone();
            damaged[damage.0.index(bytes.len())] ^= damage.1;
            let mut other = idle();
            if load_state(&mut other, &damaged).is_ok() {
                save_state(&mut other).unwrap();
            }
            let mut loaded = idle();
            prop_assert_eq!(load_state(&mut loaded, &bytes), Ok(()));
            prop_assert_eq!(save_state(&mut loaded).unwrap(), bytes.clone());
            prop_assert!(state(&mut loaded).equals(&state(&mut network)));
            prop_assert_eq!(advance(&mut loaded, usize::MAX), advance(&mut network, usize::MAX));
            let end = network.now;
            prop_assert_eq!(loaded.link_loads(end), network.link_loads(end));
            let hosts = [&loaded, &network].map(|network| HostLoads::new(end, network.host_totals()));
            prop_assert_eq!(&hosts[0], &hosts[1]);
        }
    }
}
