//! The same bits in any division into regions.

use packets::{
    Arbitration, Congestion, Crossbar, InFlight, PacketParameters, PacketRouting, Queues, Switching,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::driver::{Sent, run_in, run_recorded};
use crate::networks::{fat_tree, network};

const ROUTINGS: [PacketRouting; 6] = [
    PacketRouting::Minimal,
    PacketRouting::Ecmp,
    PacketRouting::Spray,
    PacketRouting::Adaptive,
    PacketRouting::Flowlets,
    PacketRouting::Reps,
];
const OF_TORI: [PacketRouting; 5] = [
    PacketRouting::Minimal,
    PacketRouting::Ecmp,
    PacketRouting::Spray,
    PacketRouting::Adaptive,
    PacketRouting::Valiant,
];
const OF_DRAGONFLIES: [PacketRouting; 7] = [
    PacketRouting::Minimal,
    PacketRouting::Spray,
    PacketRouting::Adaptive,
    PacketRouting::Valiant,
    PacketRouting::UgalL,
    PacketRouting::UgalG,
    PacketRouting::Par,
];

const OF_SWITCHES: [PacketRouting; 4] =
    [PacketRouting::Minimal, PacketRouting::Spray, PacketRouting::Valiant, PacketRouting::UgalL];

const ADAPTIVE: [PacketRouting; 3] = [PacketRouting::UgalL, PacketRouting::UgalG, PacketRouting::Par];
const DRAGONFLY: &str =
    "kind = 'dragonfly', groups = 3, blue = 1, chassis = 2, black = 1, blades = 3, green = 1, nodes = 1";
const SLIM_FLY: &str = "kind = 'slim_fly', order = 3, nodes = 1";
const DRAGONFLY_PLUS: &str =
    "kind = 'dragonfly_plus', groups = 3, leaves = 3, spines = 2, cables = 2, nodes = 2";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Any messages, parameters and regions: all arrivals of packets are those of one region.
    #[test]
    fn packets_arrive_at_the_same_instants_in_any_regions(
        ((topology, hosts), routing) in prop_oneof![
            (Just((fat_tree(4), 16_u32)), select(ROUTINGS.to_vec())),
            (Just(("kind = 'torus', dims = [4, 3]".to_owned(), 12)), select(OF_TORI.to_vec())),
            (Just((DRAGONFLY.to_owned(), 18)), select(OF_DRAGONFLIES.to_vec())),
            (Just((SLIM_FLY.to_owned(), 18)), select(OF_SWITCHES.to_vec())),
            (Just((DRAGONFLY_PLUS.to_owned(), 18)), select(OF_SWITCHES.to_vec())),
        ],
        queues in prop_oneof![
            Just((Queues::Fifo, Arbitration::RoundRobin)),
            Just((Queues::Credits, Arbitration::RoundRobin)),
            Just((Queues::Credits, Arbitration::Age)),
        ],
        buffer_packets in 1..8_u32,
        crossbar in select(vec![Crossbar::Ideal, Crossbar::Serial]),
        is_cut_through in any::<bool>(),
        is_limited in any::<bool>(),
        congestion in select(vec![
            Congestion::None,
            Congestion::Dctcp,
            Congestion::Dcqcn,
            Congestion::ReceiverCredits,
        ]),
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
        let has_feedback =
            is_limited && queues.0 == Queues::Fifo && congestion != Congestion::ReceiverCredits;
        let routing = match routing {
            PacketRouting::Reps if !has_feedback => PacketRouting::Spray,
            routing => routing,
        };
        let parameters = PacketParameters {
            // Adaptive routings of dragonflies need credits.
            queues: if ADAPTIVE.contains(&routing) { Queues::Credits } else { queues.0 },
            arbitration: queues.1,
            crossbar,
            buffer_bytes: buffer_packets * (1000 + header_bytes),
            packet_bytes: 1000,
            header_bytes,
            routing,
            flowlet_gap: 1.5e-6,
            switching: if is_cut_through { Switching::CutThrough } else { Switching::StoreAndForward },
            in_flight: Some(if is_limited { InFlight::Loop } else { InFlight::Unlimited }),
            ..PacketParameters::default()
        };
        let mut homes = homes[..hosts as usize].to_vec();
        let has_marks = parameters.queues == Queues::Fifo;
        let congestion = match congestion {
            Congestion::Dctcp | Congestion::Dcqcn if !has_marks => Congestion::None,
            congestion if is_limited => congestion,
            _ => Congestion::None,
        };
        let parameters = PacketParameters { congestion, mark_bytes: 2000, ..parameters };
        if routing == PacketRouting::UgalG {
            // Groups are whole: that of a host is the home of the first one.
            homes = (0..hosts).map(|host| homes[(host / 6 * 6) as usize]).collect();
        }
        // All regions up to the last one that has a host.
        let mut known: Vec<u32> = homes.clone();
        known.sort_unstable();
        known.dedup();
        homes.iter_mut().for_each(|home| *home = known.binary_search(home).unwrap() as u32);
        let whole = run_recorded(&platform, &parameters, &vec![0; homes.len()], &messages);
        let unrecorded = run_in(&platform, &parameters, &homes, &messages);
        prop_assert_eq!(&unrecorded, &whole.0, "recording changes nothing");
        prop_assert_eq!(run_recorded(&platform, &parameters, &homes, &messages), whole);
    }
}

/// A host of a torus starts a message while another one waits for an acknowledgement, and both are over in many windows.
#[test]
fn messages_of_a_host_with_credits_resume_alike_in_any_regions() {
    let platform = network("kind = 'torus', dims = [4, 4]", 12.5, 500.0);
    let parameters = PacketParameters {
        queues: Queues::Credits,
        buffer_bytes: 9000,
        packet_bytes: 1000,
        routing: PacketRouting::Valiant,
        in_flight: Some(InFlight::Loop),
        ..PacketParameters::default()
    };
    let messages = [(10_810_000, 3, 5, 21_000), (5_200_000, 3, 7, 37_000)];
    let homes: Vec<u32> = (0..16).map(|host| host / 4).collect();
    let whole = run_in(&platform, &parameters, &[0; 16], &messages);
    assert_eq!(run_in(&platform, &parameters, &homes, &messages), whole);
}
