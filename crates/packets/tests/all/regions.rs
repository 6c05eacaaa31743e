//! The same bits in any division into regions.

use packets::{InFlight, PacketParameters, PacketRouting, Switching};
use proptest::prelude::*;

use crate::driver::{Sent, run, run_in};
use crate::networks::{fat_tree, network};

const ROUTINGS: [PacketRouting; 4] =
    [PacketRouting::Minimal, PacketRouting::Ecmp, PacketRouting::Spray, PacketRouting::Adaptive];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any messages, parameters and regions: all arrivals of packets are those of one region.
    #[test]
    fn packets_arrive_at_the_same_instants_in_any_regions(
        (topology, hosts) in prop_oneof![
            Just((fat_tree(4), 16_u32)),
            Just(("kind = 'torus', dims = [4, 3]".to_owned(), 12)),
            Just(("kind = 'dragonfly', groups = 3, blue = 1, chassis = 2, black = 1, blades = 3, green = 1, nodes = 1".to_owned(), 18)),
        ],
        routing in proptest::sample::select(ROUTINGS.to_vec()),
        is_cut_through in any::<bool>(),
        is_limited in any::<bool>(),
        header_bytes in 0..100_u32,
        messages in proptest::collection::vec((0..3_000_u64, any::<u32>(), any::<u32>(), 0..20_000_u64), 1..60),
        homes in proptest::collection::vec(0..4_u32, 18),
    ) {
        // All hosts are on a grid of times, so that packets meet.
        let platform = network(&topology, 1.0, 100.0);
        let messages: Vec<Sent> = messages.into_iter().map(|(at, src, dst, bytes)| {
            let src = src % hosts;
            (at / 10 * 10_000, src, (src + 1 + dst % (hosts - 1)) % hosts, bytes)
        }).collect();
        let parameters = PacketParameters {
            packet_bytes: 1000,
            header_bytes,
            routing,
            switching: if is_cut_through { Switching::CutThrough } else { Switching::StoreAndForward },
            in_flight: if is_limited { InFlight::Loop } else { InFlight::Unlimited },
            ..PacketParameters::default()
        };
        // All regions up to the last one that has a host.
        let mut homes = homes[..hosts as usize].to_vec();
        let mut known: Vec<u32> = homes.clone();
        known.sort_unstable();
        known.dedup();
        homes.iter_mut().for_each(|home| *home = known.binary_search(home).unwrap() as u32);
        let whole = run(&platform, &parameters, &messages);
        prop_assert_eq!(run_in(&platform, &parameters, &homes, &messages), whole);
    }
}
