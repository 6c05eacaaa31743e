//! Checkpoints, and iterations that happen again.

use netmodel::NetworkModel;
use packets::{
    Arbitration, Congestion, InFlight, PacketMachine, PacketParameters, PacketRegion, PacketRouting, Queues,
};
use pdes_core::{Observation, SimDuration, SimTime, load_state, save_state};

use crate::driver::{Ended, Sent, machine, message, step};
use crate::networks::{fat_tree, network};

type Region<'m, 'p> = PacketRegion<'m, 'p, u32>;

const DRAGONFLY: &str =
    "kind = 'dragonfly', groups = 4, blue = 1, chassis = 1, black = 1, blades = 4, green = 1, nodes = 1";

/// Runs a test with all queues and routings, with and without the limit of the loop, on 16 hosts.
fn with_all_machines(test: impl Fn(&PacketMachine<'_>, &str)) {
    use PacketRouting::{Adaptive, Ecmp, Flowlets, Minimal, Par, Reps, Spray, UgalG, UgalL, Valiant};
    let tree = network(&fat_tree(4), 12.5, 500.0);
    let dragonfly = network(DRAGONFLY, 12.5, 500.0);
    let fifo = (Queues::Fifo, Arbitration::RoundRobin);
    let credits =
        [Arbitration::RoundRobin, Arbitration::Age].map(|arbitration| (Queues::Credits, arbitration));
    let on_tree = [Minimal, Ecmp, Spray, Adaptive, Flowlets, Reps].map(|routing| (&tree, routing));
    let on_dragonfly = [Valiant, UgalL, UgalG, Par].map(|routing| (&dragonfly, routing));
    let hyperx = network("kind = 'hyperx', dims = [4, 2], nodes = 2", 12.5, 500.0);
    let on_hyperx = [Valiant, UgalL, UgalG].map(|routing| (&hyperx, routing));
    for (platform, routing) in on_tree.into_iter().chain(on_dragonfly).chain(on_hyperx) {
        let all =
            credits.iter().chain([&fifo].into_iter().filter(|_| !matches!(routing, UgalL | UgalG | Par)));
        for &(queues, arbitration) in all {
            let windows = [
                (InFlight::Unlimited, Congestion::None),
                (InFlight::Loop, Congestion::None),
                (InFlight::Loop, Congestion::Dctcp),
                (InFlight::Loop, Congestion::Dcqcn),
                (InFlight::Loop, Congestion::ReceiverCredits),
            ];
            let has_marks = queues == Queues::Fifo;
            let has_feedback = |(in_flight, congestion)| {
                has_marks && in_flight == InFlight::Loop && congestion != Congestion::ReceiverCredits
            };
            for (in_flight, congestion) in windows.into_iter().filter(|&window| match routing {
                Reps => has_feedback(window),
                _ => has_marks || !matches!(window.1, Congestion::Dctcp | Congestion::Dcqcn),
            }) {
                let parameters = PacketParameters {
                    congestion,
                    mark_bytes: 2000,
                    queues,
                    arbitration,
                    // Four packets, so that packets wait for credits.
                    buffer_bytes: 4000,
                    packet_bytes: 1000,
                    routing,
                    // Some packets of these messages pause for longer, most do not.
                    flowlet_gap: 300e-9,
                    in_flight: Some(in_flight),
                    ..PacketParameters::default()
                };
                let case = format!("{queues:?} {arbitration:?} {routing:?} {in_flight:?} {congestion:?}");
                test(&machine(platform, &parameters), &case);
            }
        }
    }
}

/// Each host sends to the next one, to the one after four, and to the opposite one; returns the number of messages.
fn send_halo(region: &mut Region<'_, '_>, at: u64) -> usize {
    let sent =
        |host: u32| [1, 4, 8].map(|step| (at, host, (host + step) % 16, 20_000 + 100 * u64::from(step)));
    let messages: Vec<Sent> = (0..16).flat_map(sent).collect();
    for (tag, &sent) in (0..).zip(&messages) {
        region.send(message(tag, sent)).unwrap();
    }
    messages.len()
}

/// Advances a region up to an instant; returns what ended, and when after `begin`.
fn advance_to(region: &mut Region<'_, '_>, end: u64, begin: u64) -> Vec<(u64, Ended)> {
    let (mut ended, mut ends) = (Vec::new(), Vec::new());
    while region.next_event().is_some_and(|at| at.as_picos() < end) {
        step(region, &mut ended);
        ends.extend(ended.drain(..).map(|end| (region.now().as_picos() - begin, end)));
    }
    ends
}

fn copy<'m, 'p>(machine: &'m PacketMachine<'p>, region: &mut Region<'m, 'p>) -> Region<'m, 'p> {
    let mut copy = machine.make_regions(0..1).remove(0);
    load_state(&mut copy, &save_state(region).unwrap()).unwrap();
    copy
}

#[test]
fn a_region_continues_from_its_saved_state() {
    with_all_machines(|machine, case| {
        let mut region = machine.make_regions(0..1).remove(0);
        for at in [0, 1_000_000, 9_000_000] {
            send_halo(&mut region, at);
        }
        let mut copies = Vec::new();
        let mut whole = Vec::new();
        for step in 0.. {
            if region.next_event().is_none() {
                break;
            }
            if step % 20 == 0 {
                copies.push((whole.len(), copy(machine, &mut region)));
            }
            let end = region.next_event().unwrap().as_picos() + 1;
            whole.extend(advance_to(&mut region, end, 0));
        }
        assert_eq!(whole.len(), 2 * 3 * 48, "{case}");
        for (done, mut copy) in copies {
            assert_eq!(advance_to(&mut copy, u64::MAX, 0), whole[done..], "{case}");
            assert_eq!(copy.counts(), region.counts(), "{case}");
        }
    });
}

/// Iterations that end with a barrier recur at once with every routing, since hashes are of the packet's number in its message; and
/// what follows a repetition is what follows simulated iterations.
#[test]
fn iterations_with_barriers_recur_at_once() {
    with_all_machines(|machine, case| {
        let mut region = machine.make_regions(0..1).remove(0);
        let period = 100_000_000;
        let iterate = |region: &mut Region<'_, '_>, at: u64| {
            let messages = send_halo(region, at);
            let ends = advance_to(region, at + period, at);
            assert_eq!(ends.len(), 2 * messages, "{case}");
            ends
        };
        let first = iterate(&mut region, 0);
        let before = Observation::of(SimTime::from_picos(period), &mut region);
        assert_eq!(iterate(&mut region, period), first, "{case}");
        let now = Observation::of(SimTime::from_picos(2 * period), &mut region);
        assert!(now.equals(&before), "{case}");
        let (_, hops) = region.counts();
        let repetition = now.repetition(&before, 3).unwrap();
        repetition.repeat(SimDuration::from_picos(3 * period), &mut region);
        assert_eq!(region.counts().1, hops / 2 * 5, "{case}");
        assert_eq!(iterate(&mut region, 5 * period), first, "{case}");
    });
}

/// The same in the middle of iterations, with packets on their way.
#[test]
fn cuts_between_packets_recur() {
    with_all_machines(|machine, case| {
        let mut region = machine.make_regions(0..1).remove(0);
        let (period, cut) = (100_000_000, 2_000_000);
        let observe = |region: &mut Region<'_, '_>, iteration: u64| {
            let at = iteration * period;
            send_halo(region, at);
            advance_to(region, at + cut, 0);
            Observation::of(SimTime::from_picos(at + cut), region)
        };
        observe(&mut region, 0);
        advance_to(&mut region, u64::MAX, 0);
        let before = observe(&mut region, 1);
        advance_to(&mut region, u64::MAX, 0);
        let now = observe(&mut region, 2);
        assert!(now.equals(&before), "{case}");
        let mut repeated = copy(machine, &mut region);
        let shift = 4 * period;
        now.repetition(&before, 4).unwrap().repeat(SimDuration::from_picos(shift), &mut repeated);
        let rest = advance_to(&mut region, u64::MAX, 0);
        assert!(rest.len() > 20, "{case}: {} ends", rest.len());
        assert_eq!(advance_to(&mut repeated, u64::MAX, shift), rest, "{case}");
        // Another packet on its way is another state.
        let other = {
            let mut region = machine.make_regions(0..1).remove(0);
            region.send(message(0, (3 * period, 0, 9, 1500))).unwrap();
            observe(&mut region, 3)
        };
        assert!(!other.equals(&now), "{case}");
    });
}
