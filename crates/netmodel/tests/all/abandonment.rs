//! Work that is abandoned, by hand and beside work that never was.

use netmodel::{
    FlowNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset, UncontendedNetwork,
};
use pdes_core::{Bytes, SimTime};
use proptest::prelude::*;

fn micros(at: u64) -> SimTime {
    SimTime::from_picos(at * 1_000_000)
}

fn platform() -> Platform {
    let text = "[topology]\nkind = \"cluster\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1MBps\"\nlatency = \"0s\"\n";
    Platform::from_toml(text, "cluster.toml").unwrap()
}

/// When [us], between which hosts, or on one, how much.
type Work = (u64, u32, u32, u64);

fn submit(network: &mut impl NetworkModel<usize>, tag: usize, (at, src, dst, amount): Work) {
    let [from, to] = [src, dst].map(HostId::new);
    match src == dst {
        true => network.compute(micros(at), from, amount as f64 * 1e3, tag),
        false => network.send(Message::new(micros(at), from, to, Bytes::new(amount), tag)).unwrap(),
    }
}

/// Completes all that ends before an instant.
fn advance_until(network: &mut impl NetworkModel<usize>, end: SimTime) -> Vec<(SimTime, usize)> {
    let (mut ends, mut done) = (Vec::new(), Vec::new());
    while network.next_event().is_some_and(|at| at < end) {
        network.advance(&mut done);
        ends.extend(done.drain(..).map(|tag| (network.now(), tag)));
    }
    ends
}

/// Two messages of 1 MB share a link, and two computations of 1 s a core, until one of each is dropped after a second.
#[test]
fn what_is_left_gets_all_at_once() {
    let (platform, parameters) = (platform(), NetworkParameters::preset(Preset::Raw));
    let mut network = FlowNetwork::new(&platform, &parameters);
    let work = [(0, 0, 2, 1_000_000), (0, 1, 2, 1_000_000), (0, 3, 3, 1_000_000), (0, 3, 3, 1_000_000)];
    work.into_iter().enumerate().for_each(|(tag, work)| submit(&mut network, tag, work));
    assert!(advance_until(&mut network, micros(1_000_000)).is_empty());
    network.abandon(micros(1_000_000), |tag| tag % 2 == 0);
    assert_eq!(network.unfinished().collect::<Vec<_>>(), [1, 3]);
    let mut ends = advance_until(&mut network, SimTime::MAX);
    ends.sort();
    assert_eq!(ends, [(micros(1_500_000), 1), (micros(1_500_000), 3)]);
}

proptest! {
    /// Work that is dropped before it begins changes nothing; all other work is completed once.
    #[test]
    fn what_never_begins_leaves_no_trace(
        work in prop::collection::vec((0_u64..300, 0_u32..4, 0_u32..4, 1_u64..2000), 1..40),
        at in 0_u64..300,
        contends in any::<bool>(),
    ) {
        let (platform, parameters) = (platform(), NetworkParameters::preset(Preset::Raw));
        let is_dropped = |tag: usize| tag % 2 == 1 && work[tag].0 > at;
        fn run(
            mut network: impl NetworkModel<usize>,
            work: &[Work],
            sent: impl Fn(usize) -> bool,
            (at, is_dropped): (SimTime, impl Fn(usize) -> bool),
        ) -> Vec<(SimTime, usize)> {
            let all = work.iter().enumerate().filter(|(tag, _)| sent(*tag));
            all.for_each(|(tag, work)| submit(&mut network, tag, *work));
            let mut ends = advance_until(&mut network, at);
            network.abandon(at, is_dropped);
            ends.extend(advance_until(&mut network, SimTime::MAX));
            ends
        }
        let [with, without] = [true, false].map(|sends_all| {
            let sent = |tag: usize| sends_all || !is_dropped(tag);
            match contends {
                true => run(FlowNetwork::new(&platform, &parameters), &work, sent, (micros(at), is_dropped)),
                false => {
                    run(UncontendedNetwork::new(&platform, &parameters), &work, sent, (micros(at), is_dropped))
                }
            }
        });
        let kept = (0..work.len()).filter(|tag| !is_dropped(*tag)).count();
        prop_assert_eq!((with.len(), with), (kept, without));
    }
}
