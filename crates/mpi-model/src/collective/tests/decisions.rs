//! Compares the decisions of the selectors with recorded ones: `decisions.txt` has, for each operation, all sizes at which
//! some table changes its choice, and for each selector a hash of the schedules on both sides of them.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Collective, Datatype};

use crate::collective::{Answer, Layout, Member, Operation, Selection, Selector, Step, schedule};

const RECORDED: &str = include_str!("decisions.txt");

/// Numbers of ranks on both sides of all at which some table changes its choice, and more.
fn numbers_of_ranks() -> impl Iterator<Item = u32> {
    (1..=18).chain((5..13).flat_map(|bit| (1 << bit) - 1..=(1 << bit) + 1))
}

/// Returns placements: so many ranks per node, by blocks and cyclic, and nodes of different sizes.
fn layouts(size: u32) -> Vec<Layout> {
    let of = |host: &dyn Fn(u32) -> u32| Layout::new(&(0..size).map(host).collect::<Vec<_>>());
    let mut layouts = vec![Layout::one_per_node(size), of(&|rank| u32::BITS - rank.leading_zeros())];
    layouts.extend(
        [2, 4, 8, 16].into_iter().filter(|&cores| cores < size).map(|cores| of(&|rank| rank / cores)),
    );
    if size > 2 && size.is_multiple_of(2) {
        layouts.push(of(&|rank| rank % (size / 2)));
    }
    layouts
}

/// Returns calls whose size, as one table or another measures it, is this number, or nearly.
fn calls(operation: Operation, ranks: u32, size: u64) -> Vec<Collective> {
    // Of each three sizes one is met with larger elements, since some tables count elements.
    let datatype = Datatype::from_id(if size.is_multiple_of(3) { 0 } else { 6 }).unwrap();
    let (send_type, recv_type, root, flops) = (datatype, datatype, Rank::new(0), 0.0);
    let (count, number) = (size.div_ceil(datatype.size().get()), u64::from(ranks));
    let (send_count, recv_count) = (count, count);
    let blocks = |total: u64| {
        let mut blocks = vec![total / number; ranks as usize];
        blocks[0] += total % number;
        blocks.into_boxed_slice()
    };
    match operation {
        Operation::Barrier => vec![Collective::Barrier],
        Operation::Bcast => vec![Collective::Bcast { count, root, datatype }],
        Operation::Reduce => vec![Collective::Reduce { count, flops, root, datatype }],
        Operation::Allreduce => vec![Collective::Allreduce { count, flops, datatype }],
        Operation::Gather => vec![Collective::Gather { send_count, recv_count, root, send_type, recv_type }],
        Operation::Scatter => {
            vec![Collective::Scatter { send_count, recv_count, root, send_type, recv_type }]
        }
        Operation::Alltoall => vec![Collective::Alltoall { send_count, recv_count, send_type, recv_type }],
        Operation::Allgather => [count, count.div_ceil(number)]
            .map(|count| Collective::Allgather { send_count: count, recv_count: count, send_type, recv_type })
            .into(),
        Operation::Allgatherv => [count, size, count * number, count * number + 1]
            .map(|total| (blocks(total)[0], blocks(total)))
            .map(|(send_count, recv_counts)| Collective::Allgatherv {
                send_count,
                recv_counts,
                send_type,
                recv_type,
            })
            .into(),
        Operation::Alltoallv => {
            let (send_counts, recv_counts) = (blocks(count), blocks(count));
            vec![Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }]
        }
        Operation::ReduceScatter => [count, size]
            .map(|total| Collective::ReduceScatter { recv_counts: blocks(total), flops, datatype })
            .into(),
    }
}

/// The FNV-1a hash of numbers.
struct Hash(u64);

impl Hash {
    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add_step(&mut self, step: Step) {
        let (kind, peer, bytes) = match step {
            Step::Send { to, bytes } => (1, to, bytes),
            Step::Isend { to, bytes } => (2, to, bytes),
            Step::Recv { from, bytes } => (3, from, bytes),
            Step::Irecv { from, bytes } => (4, from, bytes),
            Step::SendRecv { to, send_bytes, .. } => (5, to, send_bytes),
            _ => (6, Rank::new(0), Bytes::ZERO),
        };
        self.add(kind | u64::from(peer.get()) << 8);
        self.add(bytes.get());
    }
}

/// Returns the hash of the first steps of some members, for calls on both sides of each bound.
fn decisions(operation: Operation, bounds: &[u64], selector: Selector) -> u64 {
    let selection = Selection::new(selector);
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for (turn, ranks) in numbers_of_ranks().enumerate() {
        for layout in &layouts(ranks) {
            // Neighbouring numbers of ranks, which mostly share a row of the table, take turns with the bounds.
            for bound in bounds.iter().skip(turn % 3).step_by(3) {
                for call in calls(operation, ranks, bound - 1).iter().chain(&calls(operation, ranks, *bound))
                {
                    for within_levels in [false, true] {
                        let rank = if within_levels { 0 } else { ranks - 1 };
                        let member = Member { within_levels, ..Member::new(rank, layout, &selection) };
                        let mut steps = schedule(member, call);
                        for step in std::iter::from_fn(|| steps.next_step(Answer::Nothing)).take(4) {
                            hash.add_step(step);
                        }
                        hash.add(0);
                    }
                }
            }
        }
    }
    hash.0
}

#[test]
fn decisions_are_the_recorded_ones() {
    let mut found = String::new();
    for line in RECORDED.lines().filter(|line| line.contains(" bounds ")) {
        let (name, bounds) = line.split_once(" bounds ").unwrap();
        let operation = Operation::ALL.into_iter().find(|operation| operation.name() == name).unwrap();
        let bounds: Vec<u64> = bounds.split(' ').map(|bound| bound.parse().unwrap()).collect();
        found += line;
        for selector in
            [Selector::Default, Selector::Ompi, Selector::Mpich, Selector::Mvapich2, Selector::Impi]
        {
            found +=
                &format!("\n{name} {} {:016x}", selector.name(), decisions(operation, &bounds, selector));
        }
        found += "\n";
    }
    assert!(found == RECORDED, "if the tables were changed on purpose, record the decisions anew:\n{found}");
}
