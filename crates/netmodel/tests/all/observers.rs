//! An observer that is none of ours: a meter of what links carry and hosts compute, without which a run is the same.

use std::collections::BTreeMap;
use std::ops::Range;

use netmodel::{
    FlowNetwork, HostId, LinkId, Message, NetworkModel, NetworkObserver, NetworkParameters, ObservedLink,
    Platform, Preset, Resource, ResourceChange,
};
use pdes_core::{Bytes, SimTime};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

const SPEED: f64 = 1e9;

/// Bytes by link, and work by host [flop].
#[derive(Debug, Default, Serialize, Deserialize)]
struct Meter {
    bytes: BTreeMap<LinkId, f64>,
    work: BTreeMap<HostId, f64>,
    ends: BTreeMap<HostId, SimTime>,
}

impl NetworkObserver for Meter {
    fn carried(&mut self, link: ObservedLink, time: Range<SimTime>, bytes: f64) {
        assert!(time.start <= time.end);
        *self.bytes.entry(link.link).or_default() += bytes;
    }

    fn computed(&mut self, host: HostId, time: Range<SimTime>, cores: f64, speed: f64) {
        assert!(
            self.ends.insert(host, time.end).is_none_or(|end| end <= time.start),
            "intervals follow each other"
        );
        let seconds = (time.end - time.start).as_secs_f64();
        *self.work.entry(host).or_default() += seconds * cores * speed;
    }
}

/// When [us], between which hosts, or on one, how much.
type Work = (u64, u32, u32, u64);

fn run<O: NetworkObserver>(
    mut network: FlowNetwork<'_, usize, O>,
    work: &[Work],
) -> (Vec<(SimTime, usize)>, O) {
    for (tag, &(at, src, dst, amount)) in work.iter().enumerate() {
        let (at, [src, dst]) = (SimTime::from_picos(at * 1_000_000), [src, dst].map(HostId::new));
        match src == dst {
            true => network.compute(at, src, amount as f64, tag),
            false => network.send(Message::new(at, src, dst, Bytes::new(amount), tag)).unwrap(),
        }
    }
    let (mut ends, mut done) = (Vec::new(), Vec::new());
    while network.next_event().is_some() {
        network.advance(&mut done);
        ends.extend(done.drain(..).map(|tag| (network.now(), tag)));
    }
    assert_eq!(ends.len(), work.len());
    (ends, network.into_observer())
}

proptest! {
    #[test]
    fn all_that_is_sent_is_carried_and_all_work_is_done(
        work in prop::collection::vec((0_u64..300, 0_u32..8, 0_u32..8, 1_u64..200_000), 1..60),
        changes in prop::collection::vec((0_u64..600, 0_u32..8, 1_u32..5, any::<bool>()), 0..10),
    ) {
        let text = format!(
            "[topology]\nkind = \"torus\"\ndims = [4, 2]\nspeed = \"{}Mf\"\ncores = 2\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n",
            SPEED / 1e6
        );
        let mut platform = Platform::from_toml(&text, "torus.toml").unwrap();
        let changes = changes.into_iter().map(|(at, number, value, is_host)| {
            let (at, value) = (SimTime::from_picos(at * 1_000_000), f64::from(value) * 4e8);
            let resource = match is_host {
                true => Resource::Speed(HostId::new(number)),
                false => Resource::Bandwidth(LinkId::new(number)),
            };
            ResourceChange { at, resource, value }
        });
        platform.set_changes(changes).unwrap();
        let parameters = NetworkParameters::preset(Preset::Raw);
        let (ends, meter) = run(FlowNetwork::observed(&platform, &parameters, Meter::default()), &work);
        let (unobserved, ()) = run(FlowNetwork::observed(&platform, &parameters, ()), &work);
        prop_assert_eq!(ends, unobserved);
        let (mut bytes, mut flops) = (BTreeMap::<LinkId, f64>::new(), BTreeMap::<HostId, f64>::new());
        let mut route = Vec::new();
        for &(_, src, dst, amount) in &work {
            let [src, dst] = [src, dst].map(HostId::new);
            if src == dst {
                *flops.entry(src).or_default() += amount as f64;
                continue;
            }
            platform.route(src, dst, &mut route).unwrap();
            route.iter().for_each(|&link| *bytes.entry(link).or_default() += amount as f64);
        }
        prop_assert_eq!(meter.bytes.len(), bytes.len());
        for (link, bytes) in bytes {
            // A unit of a 1024th of a byte for each message and change of it.
            prop_assert!((meter.bytes[&link] - bytes).abs() < 1.0, "{}: {} of {}", link, meter.bytes[&link], bytes);
        }
        prop_assert_eq!(meter.work.len(), flops.len());
        for (host, flops) in flops {
            // Computations end at whole picoseconds.
            prop_assert!((meter.work[&host] - flops).abs() < 1.0, "{}: {} of {}", host, meter.work[&host], flops);
        }
    }
}
