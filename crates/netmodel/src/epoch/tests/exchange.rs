//! Regions that exchange levels find the rates that one region finds.

use super::*;
use pdes_core::Bytes;

use crate::Message;

pub(super) fn platform(text: &str) -> Platform {
    let text = format!("[topology]\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n{text}");
    Platform::from_toml(&text, "test.toml").expect("the platform is valid")
}

pub(super) const SHAPES: [&str; 4] = [
    "kind = \"fat_tree\"\nlevels = [{ children = 4, parents = 1 }, { children = 4, parents = 2 }]",
    "kind = \"torus\"\ndims = [4, 4]\nlimiter = \"1.5GBps\"",
    "kind = \"dragonfly\"\ngroups = 4\nchassis = 1\nblades = 4\nnodes = 1",
    "kind = \"cluster\"\nhosts = 16\nbackbone = { bandwidth = \"4GBps\", latency = \"1us\" }",
];

/// Change of a link: when [us], which, a latency [us] or a bandwidth [1e8 B/s], and whether it is a latency.
pub(super) type RandomChange = (u64, prop::sample::Index, u32, bool);

pub(super) fn random_changes() -> impl Strategy<Value = Vec<RandomChange>> {
    let change = (0..90_u64, any::<prop::sample::Index>(), 1..40_u32, any::<bool>());
    proptest::collection::vec(change, 0..6)
}

pub(super) fn resource_changes(platform: &Platform, changes: &[RandomChange]) -> Vec<crate::ResourceChange> {
    let change = |&(micros, link, value, is_latency): &RandomChange| {
        let (link, value) = (LinkId::new(link.index(platform.links().len()) as u32), f64::from(value));
        let (resource, value) = match is_latency {
            true => (crate::Resource::Latency(link), value * 1e-6),
            false => (crate::Resource::Bandwidth(link), value * 1e8),
        };
        crate::ResourceChange { at: SimTime::from_picos(micros * 1_000_000), resource, value }
    };
    changes.iter().map(change).collect()
}

/// Sends long messages all at once, and returns their rates after the boundary that follows, by their keys.
fn rates(
    platform: &Platform,
    parameters: &NetworkParameters,
    regions: Regions,
    pairs: &[(u32, u32)],
) -> Vec<(message::FlowKey, u64)> {
    let epoch = SimDuration::from_picos(1_000_000);
    let mut network = EpochNetwork::new(platform, parameters, regions, epoch).expect("the epoch is short");
    for &(src, dst) in pairs {
        let [src, dst] = [src, dst].map(HostId::new);
        network
            .send(Message::new(SimTime::ZERO, src, dst, Bytes::new(1 << 30), ()))
            .expect("hosts are joined");
    }
    let mut done = Vec::new();
    while network.next_event().is_some_and(|at| at <= SimTime::from_picos(100_000_000)) {
        network.advance(&mut done);
    }
    let flows = network.regions.iter().flat_map(|region| region.transfers.iter().zip(&region.solver.flows));
    let mut rates: Vec<_> = flows.map(|(transfer, flow)| (transfer.key, flow.rate)).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_rates_do_not_depend_on_the_regions(
        shape in 0..SHAPES.len(),
        preset in prop_oneof![Just(Preset::Raw), Just(Preset::Cm02), Just(Preset::Smpi)],
        pairs in proptest::collection::vec((0..16_u32, 1..16_u32), 1..60),
        changes in random_changes(),
    ) {
        let pairs: Vec<(u32, u32)> = pairs.into_iter().map(|(src, step)| (src, (src + step) % 16)).collect();
        let mut platform = platform(SHAPES[shape]);
        platform.set_changes(resource_changes(&platform, &changes)).unwrap();
        let parameters = NetworkParameters::preset(preset);
        let whole = rates(&platform, &parameters, Regions::whole(&platform), &pairs);
        prop_assert_eq!(whole.len(), pairs.len());
        for count in [2, 4, 16] {
            let parts = rates(&platform, &parameters, Regions::with_count(&platform, count), &pairs);
            prop_assert_eq!(&whole, &parts, "{} regions", count);
        }
    }
}
