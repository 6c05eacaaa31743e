//! Regions that advance window by window find the arrivals of the whole network.

use pdes_core::{Bytes, LpId, Observation, load_state, save_state};
use proptest::prelude::*;

use super::*;
use crate::{NetworkModel, Preset, Resource, ResourceChange};

const PLATFORMS: [&str; 3] = [
    "kind = \"torus\"\ndims = [8, 4, 4]",
    "kind = \"fat_tree\"\nlevels = [{ children = 16, parents = 1 }, { children = 8, parents = 4 }]",
    "kind = \"dragonfly\"\ngroups = 4\nchassis = 2\nblades = 4\nnodes = 4",
];

fn platform(text: &str) -> Platform {
    let text = format!(
        "[topology]\n{text}\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\nloopback = {{ bandwidth = \"2GBps\", latency = \"100ns\" }}\n"
    );
    Platform::from_toml(&text, "test.toml").unwrap()
}

/// All arrivals, sorted, and the loads of links.
type Found = (Vec<(SimTime, usize)>, Option<LinkLoads>);

fn whole(platform: &Platform, parameters: &NetworkParameters, messages: &[Message<usize>]) -> Found {
    let mut network = FlowNetwork::new(platform, parameters).with_link_loads();
    messages.iter().for_each(|&message| network.send(message).unwrap());
    let (mut arrivals, mut done) = (Vec::new(), Vec::new());
    while network.next_event().is_some() {
        network.advance(&mut done);
        arrivals.extend(done.drain(..).map(|tag| (network.now(), tag)));
    }
    arrivals.sort_unstable();
    // Not until the last change.
    let end = arrivals.last().map_or(SimTime::ZERO, |&(at, _)| at);
    (arrivals, network.link_loads(end))
}

/// Loads the states of regions into those of another machine.
fn load<'g, 'p>(
    machine: &'g WindowMachine<'p, usize>,
    regions: &mut [WindowRegion<'g, 'p, usize>],
    now: SimTime,
) -> Vec<WindowRegion<'g, 'p, usize>> {
    let mut loaded = machine.make_regions();
    for (region, loaded) in regions.iter_mut().zip(&mut loaded) {
        load_state(loaded, &save_state(region).unwrap()).unwrap();
        assert!(Observation::of(now, loaded).equals(&Observation::of(now, region)));
    }
    loaded
}

/// Does what the engine does, on one thread; regions are called in ascending or descending order. At a boundary the regions of a second
/// machine continue: in the window if `later` is zero, as after an interruption, else that much later, as after a cut.
fn in_windows(
    [mut machine, other]: [&WindowMachine<'_, usize>; 2],
    messages: &[Message<usize>],
    is_reversed: bool,
    (pause, later): (usize, SimDuration),
) -> Found {
    let (mut boundaries, mut shift) = (0, SimTime::ZERO);
    let mut regions = machine.make_regions();
    let count = regions.len();
    // Those whose sender and receiver live in two regions are submitted by the latter.
    messages.iter().for_each(|&message| regions[machine.home(message.dst) as usize].send(message).unwrap());
    let order = |round: u32| -> Vec<usize> {
        if is_reversed ^ (round == 1) { (0..count).rev().collect() } else { (0..count).collect() }
    };
    let (mut arrivals, mut done) = (Vec::new(), Vec::new());
    loop {
        let event = regions.iter_mut().filter_map(|region| region.next_event()).min();
        let boundary = regions.iter().filter_map(|region| region.next_boundary()).min();
        let is_boundary = boundary.is_some_and(|boundary| event.is_none_or(|event| boundary <= event));
        match (event, boundary) {
            (None, None) => break,
            (_, Some(boundary)) if is_boundary => {
                boundaries += 1;
                if boundaries == pause && later > SimDuration::ZERO {
                    (machine, regions) = (other, load(other, &mut regions, boundary));
                    shift += later;
                    for region in &mut regions {
                        let now = Observation::of(boundary, region);
                        region.watch_period(boundary, later, 0);
                        region.repeat_loads(boundary);
                        now.repetition(&now, 1).unwrap().repeat(later, region);
                        assert!(Observation::of(boundary + later, region).equals(&now));
                    }
                    continue;
                }
                let window = boundary..boundary.saturating_add(machine.window());
                for (exchange, &rounds) in (0..).zip(<WindowRegion<'_, '_, usize>>::MAX_ROUNDS) {
                    let mut called: Vec<bool> = vec![true; count];
                    for round in 0..rounds {
                        let mut messages = Vec::new();
                        for region in order(round) {
                            if called[region] {
                                regions[region].exchange_round(window.clone(), exchange, round);
                                regions[region].take_messages(&mut messages);
                            }
                        }
                        called = vec![false; count];
                        if messages.is_empty() {
                            break;
                        }
                        for (to, message) in messages {
                            called[to as usize] = true;
                            regions[to as usize].receive(message);
                        }
                    }
                }
                regions.iter_mut().for_each(|region| region.begin_span(window.clone()));
                if boundaries == pause {
                    (machine, regions) = (other, load(other, &mut regions, boundary));
                }
            }
            _ => {
                for (index, region) in (0..).zip(&mut regions) {
                    if region.next_event() == event {
                        region.advance(&mut done);
                        let now = region.now();
                        let is_own = |&tag: &usize| machine.home(messages[tag].dst) == index;
                        arrivals.extend(
                            done.drain(..).filter(is_own).map(|tag| (SimTime::ZERO + (now - shift), tag)),
                        );
                    }
                }
            }
        }
    }
    arrivals.sort_unstable();
    let end = arrivals.last().map_or(SimTime::ZERO, |&(at, _)| at);
    (arrivals, machine.link_loads(regions.iter(), end))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the number of regions, and the order in which they run, also if they are saved and loaded.
    #[test]
    fn windows_find_the_arrivals_of_the_whole_network(
        shape in 0..PLATFORMS.len(),
        is_smpi: bool,
        regions in 1_u32..7,
        is_reversed: bool,
        (pause, later) in (1_usize..40, 0_u64..3),
        work in prop::collection::vec((0_u32..128, 0_u32..128, 0_u64..20_000, 1_u64..60_000), 1..120),
        changes in prop::collection::vec((0_u64..60_000, any::<prop::sample::Index>(), 0_u32..5, any::<bool>()), 0..30),
    ) {
        let mut platform = platform(PLATFORMS[shape]);
        let links = platform.links().len();
        let changes = changes.into_iter().map(|(at, link, value, is_latency)| {
            let (link, value) = (LinkId::new(link.index(links) as u32), f64::from(value));
            let (resource, value) = match is_latency {
                true => (Resource::Latency(link), 1e-6 + value * 1e-7),
                false => (Resource::Bandwidth(link), value * 4e8),
            };
            // Work and changes coincide, sometimes.
            ResourceChange { at: SimTime::from_picos(at / 500 * 500_000), resource, value }
        });
        let last = (0..links as u32).map(|link| ResourceChange {
            at: SimTime::from_picos(60_000_000),
            resource: Resource::Bandwidth(LinkId::new(link)),
            value: 1e9,
        });
        // What is shifted in time does not meet the changes of its time.
        platform.set_changes(changes.chain(last).filter(|_| later == 0)).unwrap();
        let mut parameters = NetworkParameters::preset(if is_smpi { Preset::Smpi } else { Preset::Raw });
        (parameters.precision_s, parameters.solve_scope) = (0.0, crate::maxmin::Scope::Complete);
        let messages: Vec<_> = (0..).zip(work).map(|(tag, (src, dst, at, size))| Message {
            // Many are sent at one time.
            at: SimTime::from_picos(at / 500 * 500_000),
            order: tag as u64 % 3,
            submitter: LpId::new(dst),
            origin: HostId::new(src),
            src: HostId::new(src),
            dst: HostId::new(dst),
            size: Bytes::new(size),
            tag,
        }).collect();
        let window = window(&platform, &parameters).unwrap();
        let homes: Vec<u32> = (0..128).map(|host| host * regions / 128).collect();
        let machines = [(); 2].map(|()| WindowMachine::new(&platform, &parameters, window, (&homes, regions), true));
        let later = window.checked_mul(later).unwrap();
        let (arrivals, loads) = in_windows(machines.each_ref(), &messages, is_reversed, (pause, later));
        let (expected, expected_loads) = whole(&platform, &parameters, &messages);
        prop_assert_eq!(arrivals, expected);
        prop_assert!(loads == expected_loads || later > SimDuration::ZERO);
    }
}
