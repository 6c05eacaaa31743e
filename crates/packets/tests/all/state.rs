//! Checkpoints, and iterations that happen again.

use netmodel::NetworkModel;
use packets::{InFlight, PacketParameters, PacketRouting};
use pdes_core::{Observation, SimDuration, SimTime, load_state, save_state};

use crate::driver::{Sent, machine, message, step};
use crate::networks::{fat_tree, network};

fn parameters(routing: PacketRouting, in_flight: InFlight) -> PacketParameters {
    PacketParameters { packet_bytes: 1000, routing, in_flight, ..PacketParameters::default() }
}

/// Each host sends to the next one, to the one after four, and to the opposite one.
fn halo(at: u64) -> Vec<Sent> {
    let sent =
        |host: u32| [1, 4, 8].map(|step| (at, host, (host + step) % 16, 20_000 + 100 * u64::from(step)));
    (0..16).flat_map(sent).collect()
}

#[test]
fn a_region_continues_from_its_saved_state() {
    let platform = network(&fat_tree(4), 12.5, 500.0);
    for routing in [PacketRouting::Minimal, PacketRouting::Spray, PacketRouting::Adaptive] {
        for in_flight in [InFlight::Unlimited, InFlight::Loop] {
            let machine = machine(&platform, &parameters(routing, in_flight));
            let mut region = machine.make_regions::<u32>(0..1).remove(0);
            let messages = [halo(0), halo(1_000_000), halo(9_000_000)].concat();
            for (tag, &sent) in (0..).zip(&messages) {
                region.send(message(tag, sent)).unwrap();
            }
            let finish = |region: &mut packets::PacketRegion<'_, '_, u32>| {
                let (mut done, mut ends) = (Vec::new(), Vec::new());
                while region.next_event().is_some() {
                    step(region, &mut done);
                    ends.extend(done.drain(..).map(|tag| (region.now(), tag)));
                }
                (ends, region.packets(), region.hops())
            };
            let mut done = Vec::new();
            let mut saved = Vec::new();
            for event in 0.. {
                if event % 9 == 4 {
                    saved.push((event, save_state(&mut region).unwrap()));
                }
                if region.next_event().is_none() {
                    break;
                }
                step(&mut region, &mut done);
            }
            assert!(saved.len() > 3, "{} states", saved.len());
            let whole = (region.now(), region.packets(), region.hops());
            for (event, state) in saved {
                let mut loaded = machine.make_regions(0..1).remove(0);
                load_state(&mut loaded, &state).unwrap();
                let (ends, packets, hops) = finish(&mut loaded);
                assert_eq!(
                    (loaded.now(), packets, hops),
                    whole,
                    "{routing:?} {in_flight:?} after event {event}"
                );
                assert!(ends.len() <= messages.len());
            }
        }
    }
}

/// Iterations that end with a barrier recur at once with every routing, since hashes are of the packet's number in its message; and
/// what follows the repetition is what follows the simulated iterations.
#[test]
fn iterations_with_barriers_recur_at_once() {
    let platform = network(&fat_tree(4), 12.5, 500.0);
    for routing in
        [PacketRouting::Minimal, PacketRouting::Ecmp, PacketRouting::Spray, PacketRouting::Adaptive]
    {
        for in_flight in [InFlight::Unlimited, InFlight::Loop] {
            let machine = machine(&platform, &parameters(routing, in_flight));
            let iterate = |region: &mut packets::PacketRegion<'_, '_, u32>, at: u64| {
                for (tag, sent) in (0..).zip(halo(at)) {
                    region.send(message(tag, sent)).unwrap();
                }
                let (mut done, mut ends) = (Vec::new(), Vec::new());
                while region.next_event().is_some() {
                    step(region, &mut done);
                    ends.extend(done.drain(..).map(|end| (region.now().as_picos() - at, end)));
                }
                ends
            };
            let mut region = machine.make_regions(0..1).remove(0);
            let first = iterate(&mut region, 0);
            let period = 100_000_000;
            let before = Observation::of(SimTime::from_picos(period), &mut region);
            assert_eq!(iterate(&mut region, period), first);
            let now = Observation::of(SimTime::from_picos(2 * period), &mut region);
            assert!(now.equals(&before), "{routing:?} {in_flight:?}");
            // The same in the middle of iterations, with packets on their way.
            let hops = region.hops();
            let repetition = now.repetition(&before, 3).unwrap();
            repetition.repeat(SimDuration::from_picos(3 * period), &mut region);
            assert_eq!(region.hops(), hops / 2 * 5);
            assert_eq!(iterate(&mut region, 5 * period), first);
        }
    }
}

#[test]
fn a_cut_between_packets_recurs() {
    let platform = network(&fat_tree(4), 12.5, 500.0);
    for in_flight in [InFlight::Unlimited, InFlight::Loop] {
        let machine = machine(&platform, &parameters(PacketRouting::Spray, in_flight));
        let mut region = machine.make_regions(0..1).remove(0);
        let (period, mut done) = (100_000_000, Vec::new());
        let mut observed = Vec::new();
        for iteration in 0..4 {
            let at = iteration * period;
            for (tag, sent) in (0..).zip(halo(at)) {
                region.send(message(tag, sent)).unwrap();
            }
            let cut = at + 2_000_000;
            while region.next_event().is_some_and(|next| next.as_picos() < cut) {
                step(&mut region, &mut done);
            }
            let now = Observation::of(SimTime::from_picos(cut), &mut region);
            if iteration == 2 {
                let before: &Observation = &observed[1];
                assert!(now.equals(before), "{in_flight:?}");
                let repetition = now.repetition(before, 4).unwrap();
                let mut repeated = machine.make_regions(0..1).remove(0);
                load_state(&mut repeated, &save_state(&mut region).unwrap()).unwrap();
                repetition.repeat(SimDuration::from_picos(4 * period), &mut repeated);
                let rest = |region: &mut packets::PacketRegion<'_, '_, u32>| {
                    let (mut done, mut ends) = (Vec::new(), Vec::new());
                    while region.next_event().is_some() {
                        step(region, &mut done);
                        ends.extend(done.drain(..).map(|end| (region.now().as_picos(), end)));
                    }
                    ends
                };
                let mut later = rest(&mut repeated);
                later.iter_mut().for_each(|(at, _)| *at -= 4 * period);
                let mut continued = machine.make_regions(0..1).remove(0);
                load_state(&mut continued, &save_state(&mut region).unwrap()).unwrap();
                assert_eq!(later, rest(&mut continued), "{in_flight:?}");
            }
            observed.push(now);
            while region.next_event().is_some() {
                step(&mut region, &mut done);
            }
        }
        assert!(observed[1].equals(&observed[3]) && !observed[1].bytes().is_empty());
    }
}
