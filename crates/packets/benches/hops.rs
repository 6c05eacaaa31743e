//! Hops of packets on a fat tree: one permutation of 2 MB messages, sprayed.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use netmodel::{HostId, Message, NetworkModel, Platform};
use packets::{InFlight, PacketMachine, PacketParameters, PacketRouting, Queues};
use pdes_core::{Bytes, SimTime};

fn main() {
    divan::main();
}

fn platform(ports: u32) -> Platform {
    let half = ports / 2;
    let text = format!(
        "[topology]\nkind = 'fat_tree'\nspeed = '1Gf'\nbandwidth = '12.5GBps'\nlatency = '1us'\nlevels = [{{ children = {half}, \
         parents = 1 }}, {{ children = {half}, parents = {half} }}, {{ children = {ports}, parents = {half} }}]"
    );
    Platform::from_toml(&text, "bench").expect("a platform")
}

/// Sends a message from each host to another one; returns the number of hops.
fn permute(machine: &PacketMachine<'_>, hosts: u32) -> u64 {
    let mut region = machine.make_regions::<u32>(0..1).remove(0);
    for src in 0..hosts {
        // An odd factor permutes a power of two of hosts, and few stay near.
        let dst = (src * 389 + hosts / 2 + 1) % hosts;
        let [from, to] = [src, dst].map(HostId::new);
        if src != dst {
            let message = Message::new(SimTime::ZERO, from, to, Bytes::new(2_000_000), src);
            region.send(message).expect("there is a route");
        }
    }
    let mut done = Vec::new();
    while region.next_event().is_some() {
        region.advance(&mut done);
    }
    region.counts().1
}

#[divan::bench(args = [4, 8, 16], sample_count = 5, sample_size = 1)]
fn output_queues(bencher: Bencher<'_, '_>, ports: u32) {
    permutation(bencher, ports, (Queues::Fifo, InFlight::Unlimited));
}

/// With the limit in flight that is the default.
#[divan::bench(args = [4, 8, 16], sample_count = 5, sample_size = 1)]
fn limited(bencher: Bencher<'_, '_>, ports: u32) {
    permutation(bencher, ports, (Queues::Fifo, InFlight::Loop));
}

#[divan::bench(args = [4, 8, 16], sample_count = 5, sample_size = 1)]
fn credits(bencher: Bencher<'_, '_>, ports: u32) {
    permutation(bencher, ports, (Queues::Credits, InFlight::Unlimited));
}

fn permutation(bencher: Bencher<'_, '_>, ports: u32, (queues, in_flight): (Queues, InFlight)) {
    let platform = platform(ports);
    let hosts = ports.pow(3) / 4;
    let parameters = PacketParameters {
        queues,
        // Buffers of 64 packets.
        buffer_bytes: 64 * 4150,
        packet_bytes: 4086,
        header_bytes: 64,
        routing: PacketRouting::Spray,
        in_flight: Some(in_flight),
        ..PacketParameters::default()
    };
    let homes = vec![0; hosts as usize];
    let machine = PacketMachine::new(&platform, &parameters, (&homes, 1)).expect("a machine");
    let hops = permute(&machine, hosts);
    bencher.counter(ItemsCount::new(hops)).bench(|| permute(black_box(&machine), hosts));
}
