//! Networks that more than one test runs.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::schedule::Network;
use super::station::Op;

pub(crate) const COMPUTE: u64 = 1_000;

/// A ring around which a token travels; each process computes before it passes the token on.
pub(crate) fn ring(size: u32, laps: u64, latency: u64) -> Network {
    Network::repeated(
        laps,
        (0..size).map(|me| {
            let receive = Op::Receive { from: (me + size - 1) % size };
            let pass = [Op::Compute(COMPUTE), Op::Send { to: (me + 1) % size, latency }];
            match me {
                0 => vec![pass[0], pass[1], receive],
                _ => vec![receive, pass[0], pass[1]],
            }
        }),
    )
}

/// The wavefront of LU: a cell computes a plane after its northern and its western neighbour.
pub(crate) fn wavefront(rows: u32, columns: u32, planes: u64, latency: u64) -> Network {
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    Network::repeated(
        planes,
        cells.map(|(row, column)| {
            let me = row * columns + column;
            let north = (row > 0).then(|| Op::Receive { from: me - columns });
            let west = (column > 0).then(|| Op::Receive { from: me - 1 });
            let south = (row + 1 < rows).then_some(Op::Send { to: me + columns, latency });
            let east = (column + 1 < columns).then_some(Op::Send { to: me + 1, latency });
            [north, west, Some(Op::Compute(COMPUTE)), south, east].into_iter().flatten().collect()
        }),
    )
}

/// An interaction of two processes: send and receive, question and answer, or a conditional event of the first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interaction {
    Message,
    Question,
    Event,
}

/// Appends each interaction to the programs of both processes. The list is a valid sequential order, so no program deadlocks.
pub(crate) fn programs_of(size: u32, interactions: &[(Interaction, u32, u32, u64, u64)]) -> Network {
    let mut programs = vec![Vec::new(); size as usize];
    for &(interaction, from, to, compute, latency) in interactions {
        let (from, to) = (from % size, to % size);
        let sender = &mut programs[from as usize];
        sender.push(Op::Compute(compute));
        match interaction {
            Interaction::Message => {
                sender.push(Op::Send { to, latency });
                programs[to as usize].push(Op::Receive { from });
            }
            Interaction::Question => sender.extend([Op::Ask { to, latency }, Op::Answer { from: to }]),
            Interaction::Event => sender.push(Op::Commit { after: latency }),
        }
    }
    Network::of(programs)
}

pub(crate) fn interactions() -> impl Strategy<Value = Vec<(Interaction, u32, u32, u64, u64)>> {
    let deed = prop_oneof![12 => Just(Interaction::Message), 4 => Just(Interaction::Question), 1 => Just(Interaction::Event)];
    // Long and short times, so that windows of any length hold much or little; equal times are frequent.
    let time = || prop_oneof![0..3_u64, 0..5_000_u64, Just(3_000_000_u64)];
    prop::collection::vec((deed, 0..64_u32, 0..64_u32, time(), time()), 0..250)
}

/// Returns a network of each kind, with its name; every call returns the same ones.
pub(crate) fn one_of_each() -> Vec<(&'static str, Network)> {
    let send = |to| Op::Send { to, latency: 10 };
    let receive = |from| Op::Receive { from };
    let events = vec![Op::Compute(50), Op::Commit { after: 50 }];
    let master = [Op::ReceiveAny, Op::Compute(7)].repeat(12);
    let worker = |me: u64| [Op::Compute(90 + 13 * me), send(0)].repeat(4);
    let stalled =
        vec![vec![send(3), receive(3)], vec![receive(2)], vec![receive(1)], vec![receive(0), send(0)]];
    let work = |other, at| {
        let mut ops = [send(other), receive(other)].repeat(100);
        ops.extend([Op::Compute(at), Op::Fail]);
        ops
    };
    let mut networks = vec![
        ("nothing", Network::default()),
        ("one process", Network::of([vec![send(0), receive(0)]])),
        ("ring", ring(5, 20, 300)),
        ("wavefront", wavefront(4, 5, 20, 250)),
        ("events", Network::repeated(6, vec![events; 7])),
        ("master", Network::of([master, worker(1), worker(2), worker(3)])),
        ("stalled", Network::of(stalled)),
        ("failures", Network::of([work(3, 900), vec![Op::Compute(5_000), Op::Fail], vec![], work(0, 400)])),
        ("poison", Network::of([vec![receive(1)], vec![Op::Poison { to: 0, latency: 9 }], vec![receive(0)]])),
    ];
    let mut runner = TestRunner::deterministic();
    let random = (0..4).map(|_| {
        let deeds = interactions().new_tree(&mut runner).expect("no deed is refused").current();
        ("random", programs_of(9, &deeds))
    });
    networks.extend(random);
    networks
}
