//! Random schedules.

use goal::{After, Kind, Operation, RankBuilder, Schedule, ScheduleBuilder};
use proptest::prelude::*;

/// Limits of random schedules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of processors per rank.
    pub(crate) cpus: u8,
    /// Number of interfaces per rank.
    pub(crate) nics: u8,
    /// Largest message \[B\].
    pub(crate) bytes: u64,
    /// True if receives may have wildcards.
    pub(crate) open: bool,
}

#[derive(Clone, Debug)]
struct Message {
    from: u32,
    to: u32,
    bytes: u64,
    tag: u32,
    open: (bool, bool),
    resources: [u8; 4],
}

prop_compose! {
    fn message(limits: Limits)(
        from in 0..6_u32, to in 0..6_u32, bytes in prop_oneof![Just(0), Just(1), 1..=limits.bytes], tag in 0..2_u32,
        open in (any::<bool>(), any::<bool>()), resources in [0..limits.cpus, 0..limits.nics, 0..limits.cpus, 0..limits.nics],
    ) -> Message {
        Message { from, to, bytes, tag, open, resources }
    }
}

prop_compose! {
    /// Random messages and computations of six ranks in any order, with dependencies on earlier operations.
    pub(crate) fn schedule(limits: Limits)(
        messages in prop::collection::vec(message(limits), 0..80),
        computations in prop::collection::vec((0..6_u32, 0..5000_u64, 0..limits.cpus), 0..20),
        edges in prop::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..60),
    ) -> Schedule {
        let mut ranks = vec![RankBuilder::default(); 6];
        for Message { from, to, bytes, tag, open, resources: [a, b, c, d] } in messages {
            ranks[from as usize].push(Operation { cpu: a, nic: b, ..Operation::send(bytes, to, tag) });
            let receive = Operation { cpu: c, nic: d, ..Operation::receive(bytes, from, tag) };
            let peer = receive.peer.filter(|_| !(limits.open && open.0));
            let tag = receive.tag.filter(|_| !(limits.open && open.1));
            ranks[to as usize].push(Operation { peer, tag, ..receive });
        }
        for (rank, nanos, cpu) in computations {
            ranks[rank as usize].push(Operation { cpu, ..Operation::calculate(nanos) });
        }
        for (index, (one, other, from_start)) in edges.into_iter().enumerate() {
            let rank = &mut ranks[index % 6];
            let len = rank.len() as u32;
            if len > 1 && one % len != other % len {
                let (early, late) = ((one % len).min(other % len), (one % len).max(other % len));
                rank.depend(late, early, if from_start { After::Start } else { After::End });
            }
        }
        let mut schedule = ScheduleBuilder::new(6);
        ranks.iter().for_each(|rank| schedule.push(rank).expect("all peers exist"));
        schedule.finish().expect("dependencies lead forward")
    }
}

/// Encodes a schedule in LogGOPSim's binary format with `bytes_per_operation` bytes per operation.
pub(crate) fn encode(schedule: &Schedule, bytes_per_operation: usize) -> Vec<u8> {
    let extent = schedule.extent();
    let mut jumps = Vec::new();
    let mut bodies = Vec::new();
    let start = 6 + 16 * extent.ranks as usize;
    for rank in 0..extent.ranks {
        jumps.extend(((start + bodies.len()) as u64).to_le_bytes());
        bodies.extend(encode_rank(schedule, rank, bytes_per_operation));
        jumps.extend(((start + bodies.len()) as u64).to_le_bytes());
    }
    let mut bytes = 4223_u64.to_le_bytes().to_vec();
    bytes.extend(extent.ranks.to_le_bytes());
    bytes.extend([(extent.cpus - 1) as u8, (extent.nics - 1) as u8]);
    bytes.extend(jumps);
    bytes.extend(bodies);
    bytes
}

fn encode_rank(schedule: &Schedule, rank: u32, bytes_per_operation: usize) -> Vec<u8> {
    let operations: Vec<Operation> = schedule.operations(rank).collect();
    let dependencies: Vec<_> = schedule.dependencies(rank).collect();
    let waits_for = |index: u32| dependencies.iter().filter(|(_, late, _)| *late == index).count() as u32;
    let roots: Vec<u32> = (0..operations.len() as u32).filter(|&index| waits_for(index) == 0).collect();
    let mut bytes = Vec::new();
    let mut list: Vec<u32> = Vec::new();
    bytes.extend((operations.len() as u32).to_le_bytes());
    bytes.extend((roots.len() as u32).to_le_bytes());
    roots.iter().for_each(|root| bytes.extend(root.to_le_bytes()));
    for (index, operation) in (0..).zip(&operations) {
        let end = bytes.len() + bytes_per_operation;
        let or_any = |number: Option<u32>| match operation.kind {
            Kind::Calculate => 0,
            _ => number.unwrap_or(u32::MAX),
        };
        bytes.extend(waits_for(index).to_le_bytes());
        bytes.push(operation.kind as u8);
        bytes.extend(or_any(operation.peer).to_le_bytes());
        bytes.extend(operation.size.to_le_bytes());
        bytes.extend(or_any(operation.tag).to_le_bytes());
        bytes.extend([operation.cpu, operation.nic]);
        for after in [After::End, After::Start] {
            let first = list.len() as u32;
            let own = dependencies.iter().filter(|(early, _, when)| *early == index && *when == after);
            list.extend(own.map(|(_, late, _)| late));
            bytes.extend((list.len() as u32 - first).to_le_bytes());
            bytes.extend(first.to_le_bytes());
        }
        bytes.resize(end, 0);
    }
    list.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}
