//! Each problem in a program that has it, and not in its twin.

use std::fmt::Write as _;

use pdes_core::Cluster;
use pdes_replay::{Diagnosis, Report, Rule};

use super::{CLUSTER, TREE, compute, config, diagnose, program};
use crate::command_line::{DONE, Folder, command};

/// A disk that all hosts share.
const DISK: &[&str] = &[
    "platform.storage=[{ directory = '/d', read = '1GBps', write = '1GBps', shared = true, host = 'node-0' }]",
];

/// A problem, a program that has it, and a twin that has not.
struct Pair {
    problem: &'static str,
    with: String,
    without: String,
    topology: &'static str,
    settings: &'static [&'static str],
    /// Duration of the problem \[s\], where it follows by hand.
    duration_s: Option<f64>,
}

fn pair(problem: &'static str, duration_s: Option<f64>, with: String, without: String) -> Pair {
    Pair { problem, with, without, topology: CLUSTER, settings: &[], duration_s }
}

/// Rank 0 computes, then sends to rank 1, which computes, then receives.
pub(super) fn message(send: &str, bytes: u32, before: [f64; 2]) -> String {
    program(2, |rank| match rank {
        0 => compute(before[0]) + &format!("{send} 1 0 {bytes}"),
        _ => compute(before[1]) + &format!("recv 0 0 {bytes}"),
    })
}

/// Rank 0 receives from rank 1, which sends after 3 ms, and from rank 2, which sends after 1 ms, in some order.
fn two_senders(order: [u32; 2]) -> String {
    program(3, |rank| match rank {
        0 => order.iter().map(|from| format!("recv {from} 0 8;")).collect(),
        1 => compute(3.0) + "send 0 0 8",
        _ => compute(1.0) + "send 0 0 8",
    })
}

/// The heart model of Performance Expert: a lattice of cells on 3 x 3 ranks, where the front of the wave takes three times as long. In
/// each step ranks compute, then exchange halos side by side; or they post receives, compute the edges, send them, and compute the
/// inside. At the end rank 0 gathers the cells.
pub(super) fn heart(overlaps: bool) -> String {
    let (side, steps) = (3, 5);
    let step = |rank: u32, step: u32| {
        let (row, column) = (rank / side, rank % side);
        let millis = if row + column == step % (2 * side - 1) { 3.0 } else { 1.0 };
        let neighbours = [
            (row > 0).then(|| rank - side),
            (row + 1 < side).then(|| rank + side),
            (column > 0).then(|| rank - 1),
            (column + 1 < side).then(|| rank + 1),
        ];
        // A message to one side is received from the opposite one.
        let pairs: Vec<_> = (0..4).map(|to| (to, neighbours[to], neighbours[to ^ 1])).collect();
        let name = |rank: Option<u32>| rank.map_or("-666".to_owned(), |rank| rank.to_string());
        let mut text = "location cells 0;".to_owned();
        if !overlaps {
            text += &(compute(millis) + "location halo 0;");
            for (tag, to, from) in pairs {
                let (to, from) = (name(to), name(from));
                write!(text, "sendRecv 4096 {to} 4096 {from} 6 6 stag={tag} rtag={tag};").unwrap();
            }
            return text;
        }
        for (tag, _, from) in &pairs {
            write!(text, "irecv {} {tag} 4096 req={tag};", name(*from)).unwrap();
        }
        text += &(compute(millis / 4.0) + "location halo 0;");
        for (tag, to, _) in &pairs {
            write!(text, "isend {} {tag} 4096 req={};", name(*to), 4 + tag).unwrap();
        }
        text + &compute(0.75 * millis) + "waitall req=0-7;"
    };
    program(side * side, |rank| {
        (0..steps).map(|number| step(rank, number)).collect::<String>()
            + "location gather 0;gather 32768 32768 0"
    })
}

/// Rank 0 computes for some time, the others for another; then they do something together.
fn root_and_others(root: f64, others: f64, together: &str) -> String {
    program(4, |rank| compute(if rank == 0 { root } else { others }) + together)
}

/// Rank 0 works, and the next rank after it.
fn chain(at_once: bool) -> String {
    program(4, |rank| {
        let receive = if rank > 0 { format!("recv {} 0 8;", rank - 1) } else { String::new() };
        let send = if rank < 3 { format!("send {} 0 8;", rank + 1) } else { String::new() };
        if at_once { compute(1.0) + &receive + &send } else { receive + &compute(1.0) + &send }
    })
}

/// Rounds with a barrier, in which the computation depends on round and rank.
pub(super) fn rounds(millis: impl Fn(u32, u32) -> f64) -> String {
    program(4, |rank| (0..12).map(|round| compute(millis(round, rank)) + "barrier;").collect())
}

/// Exchange of 1 MB, with the computation before or after the wait.
fn exchange(overlaps: bool) -> String {
    program(2, |rank| {
        let start = format!("irecv {0} 0 1000000 req=1;isend {0} 0 1000000 req=2;", 1 - rank);
        let wait = "waitall req=1,2;";
        if overlaps { start + &compute(1.5) + wait } else { start + wait + &compute(1.5) }
    })
}

/// A gather of 1 MB of some ranks.
fn gather(has_data: impl Fn(u32) -> bool) -> String {
    let counts: Vec<_> = (0..8).map(|rank| if has_data(rank) { "1000000" } else { "0" }).collect();
    program(8, |rank| {
        let own = counts[rank as usize];
        compute(1.0) + &format!("gatherv {own} {} 0", counts.join(" "))
    })
}

/// An alltoall of 10 kB for the ranks at these distances.
fn alltoall(reaches: impl Fn(u32) -> bool) -> String {
    program(8, |rank| {
        let counts = |distance: &dyn Fn(u32) -> u32| {
            let count = |other| if reaches(distance(other)) { "10000" } else { "0" };
            (0..8).map(count).collect::<Vec<_>>().join(" ")
        };
        let sent = counts(&|other| (other + 8 - rank) % 8);
        let received = counts(&|other| (rank + 8 - other) % 8);
        compute(0.1) + &format!("alltoallv 80000 {sent} 80000 {received}")
    })
}

/// Each rank sends 10 MB to the rank that `to` names.
fn crossing(to: impl Fn(u32) -> u32) -> String {
    program(8, |rank| {
        let receives = (0..8).filter(|&from| to(from) == rank).map(|from| format!("recv {from} 0 10000000;"));
        format!("isend {} 0 10000000 req=1;", to(rank)) + &receives.collect::<String>() + "wait req=1"
    })
}

/// The exchange of 10 kB with the next rank, by messages.
fn ring_of_messages() -> String {
    program(8, |rank| {
        let (from, to) = ((rank + 7) % 8, (rank + 1) % 8);
        compute(0.1) + &format!("irecv {from} 0 10000 req=1;isend {to} 0 10000 req=2;waitall req=1,2")
    })
}

/// Rank 1 alone sends 1 MB to rank 0.
fn one_of_eight_sends() -> String {
    program(8, |rank| {
        compute(1.0)
            + match rank {
                0 => "recv 1 0 1000000",
                1 => "send 0 0 1000000",
                _ => "",
            }
    })
}

/// Two ranks, of which one tests many times for the message of the other.
fn polls(count: usize) -> String {
    program(2, |rank| match rank {
        0 => compute(1.0) + "send 1 0 8",
        _ => "irecv 0 0 8;".to_owned() + &"test 0 1 0;".repeat(count) + "wait 0 1 0",
    })
}

fn communicators(count: u32) -> String {
    program(2, |_| compute(1.0) + &(1..=count).map(|new| format!("comm_dup new={new};")).collect::<String>())
}

fn writes(count: u64, bytes: u64) -> String {
    program(2, |rank| {
        let write =
            |number| format!("io-write_at /d/f {} {bytes};", (u64::from(rank) * count + number) * bytes);
        "io-open /d/f;".to_owned() + &(0..count).map(write).collect::<String>() + "io-close /d/f"
    })
}

fn pairs() -> Vec<Pair> {
    let stream = |count: usize, bytes: u32| {
        program(2, |rank| {
            let line = if rank == 0 { format!("send 1 0 {bytes};") } else { format!("recv 0 0 {bytes};") };
            compute(0.01) + &line.repeat(count)
        })
    };
    vec![
        // 2 ms of computation that the receiver does not have; a message of eight bytes and its overheads take 0.
        pair("late sender", Some(2e-3), message("send", 8, [3.0, 1.0]), message("send", 8, [1.0, 3.0])),
        // Rank 0 waits 3 ms for rank 1, although the message of rank 2 has been sent after 1 ms.
        pair("messages received in the wrong order", Some(2e-3), two_senders([1, 2]), two_senders([2, 1])),
        pair(
            "late receiver",
            Some(2e-3),
            message("send", 100_000, [1.0, 3.0]),
            message("send", 100_000, [3.0, 1.0]),
        ),
        pair(
            "wait at barrier",
            None,
            root_and_others(3.0, 1.0, "barrier"),
            root_and_others(3.0, 3.0, "barrier"),
        ),
        pair(
            "wait at NxN",
            None,
            root_and_others(3.0, 1.0, "allreduce 8 0"),
            root_and_others(3.0, 3.0, "allreduce 8 0"),
        ),
        pair(
            "late broadcast",
            None,
            root_and_others(3.0, 1.0, "bcast 8"),
            root_and_others(3.0, 3.0, "bcast 8"),
        ),
        pair(
            "early reduce",
            None,
            root_and_others(1.0, 3.0, "reduce 8 0"),
            root_and_others(3.0, 1.0, "reduce 8 0"),
        ),
        pair(
            "early scan",
            None,
            root_and_others(3.0, 1.0, "scan 8 0"),
            root_and_others(3.0, 3.0, "scan 8 0"),
        ),
        // 4 * 3 ms - (3 + 1 + 1 + 1) ms.
        pair("load imbalance", Some(6e-3), root_and_others(3.0, 1.0, ""), root_and_others(3.0, 3.0, "")),
        pair(
            "imbalance over iterations",
            None,
            rounds(|round, rank| if round % 4 == rank { 2.0 } else { 1.0 }),
            rounds(|_, _| 1.25),
        ),
        // 3 * (3 - 1) ms.
        pair(
            "straggler",
            Some(6e-3),
            root_and_others(3.0, 1.0, "barrier"),
            program(4, |rank| compute(3.0 - 0.3 * f64::from(rank)) + "barrier"),
        ),
        // Three of four ranks have nothing to do at any time.
        pair("serialization", Some(12e-3), chain(false), chain(true)),
        pair("many small messages", None, stream(300, 8), stream(3, 800)),
        pair(
            "messages just above the limit",
            Some(2e-3),
            message("send", 70_000, [1.0, 3.0]),
            message("send", 60_000, [1.0, 3.0]),
        ),
        pair(
            "synchronous sends",
            Some(2e-3),
            message("ssend", 8, [1.0, 3.0]),
            message("send", 8, [1.0, 3.0]),
        ),
        pair("transfer", None, message("send", 10_000_000, [1.0, 1.0]), message("send", 1000, [1.0, 1.0])),
        pair("unfinished overlap", None, exchange(false), exchange(true)),
        pair("polling", None, polls(300), polls(0)),
        pair(
            "barrier before a collective operation",
            None,
            root_and_others(1.0, 1.0, "barrier;allreduce 8 0"),
            root_and_others(1.0, 1.0, "barrier;compute 10;allreduce 8 0"),
        ),
        pair(
            "collective operation of too many ranks",
            None,
            gather(|rank| rank == 1),
            gather(|rank| rank != 1),
        ),
        pair("sparse alltoall", None, alltoall(|distance| distance == 1), alltoall(|_| true)),
        pair("communicators in a loop", None, communicators(30), communicators(3)),
        // The number of the destination chooses the uplink: all even, or even and odd ones.
        Pair {
            topology: TREE,
            ..pair(
                "links contended by routing",
                None,
                crossing(|rank| (rank ^ 4) & !1),
                crossing(|rank| rank ^ 4),
            )
        },
        Pair {
            topology: TREE,
            ..pair("links contended by placement", None, crossing(|rank| rank ^ 4), crossing(|rank| rank ^ 1))
        },
        Pair {
            settings: DISK,
            ..pair("small independent file accesses", None, writes(50, 4096), writes(1, 50 * 4096))
        },
    ]
}

#[test]
fn each_problem_is_found_where_it_is_and_only_there() {
    let pairs = pairs();
    let mut wrong = String::new();
    for Pair { problem, with, without, topology, settings, duration_s } in &pairs {
        let found = diagnose(with, topology, settings);
        let names: Vec<_> = found.problems.iter().map(|problem| problem.name.as_str()).collect();
        match (found.problems.iter().find(|found| found.name == *problem), duration_s) {
            (None, _) => writeln!(wrong, "{problem} is not among {names:?}").unwrap(),
            (Some(found), Some(expected)) if (found.duration_s / expected - 1.0).abs() > 0.05 => {
                writeln!(wrong, "{problem}: {} s, expected {expected} s", found.duration_s).unwrap();
            }
            _ => {}
        }
        let twin = diagnose(without, topology, settings);
        if let Some(found) = twin.problems.iter().find(|found| found.name == *problem) {
            writeln!(wrong, "the twin of {problem} has it for {} s", found.duration_s).unwrap();
        }
    }
    assert_eq!(wrong, "");
    let mut tested: Vec<_> = pairs.iter().map(|pair| pair.problem.to_owned()).collect();
    let mut known: Vec<_> = Rule::own().into_iter().map(|rule| rule.name).collect();
    tested.sort();
    known.sort();
    assert_eq!(tested, known);
}

/// A program whose problem has a place, and after it the same calls at another place, where they are no problem.
fn at_place(problem: &str, elsewhere: &str) -> String {
    let lines = |program: &str, rank: u32| -> String {
        let own = format!("{rank} ");
        let lines = program.lines().filter_map(|line| line.strip_prefix(&own).filter(|line| *line != "init"));
        lines.map(|line| format!("{line};")).collect()
    };
    program(8, |rank| {
        format!("location here 0;{}location there 0;{}", lines(problem, rank), lines(elsewhere, rank))
    })
}

/// Programs that have a problem, and those that follow the advice: the gain is what the latter save. The hypotheses change the trace to
/// the same messages and accesses, so that nothing else is between the two but the rounding of times to picoseconds.
#[test]
fn gains_are_what_following_the_advice_saves() {
    let hard_disk = &[
        "platform.storage=[{ directory = '/d', kind = 'hard-disk', bandwidth = '1GBps', average_seek = '8ms', track_seek = '1ms', rotations_per_minute = 7200, shared = true, host = 'node-0' }]",
    ];
    let dense = alltoall(|_| true);
    let many = gather(|_| true);
    // The data of the second message are on their way while the rank waits for the first one.
    let large = |receive: &str| {
        program(3, |rank| match rank {
            0 => receive.to_owned(),
            1 => compute(3.0) + "send 0 0 60000",
            _ => compute(1.0) + "send 0 0 60000",
        })
    };
    let cases: [(&str, String, String, &str, &[&str]); 10] = [
        (
            "messages received in the wrong order",
            large("location a.c 1;recv 1 0 60000;location a.c 2;recv 2 0 60000"),
            large("irecv 1 0 60000 req=0;irecv 2 0 60000 req=1;waitall req=0,1"),
            CLUSTER,
            &[],
        ),
        ("polling", polls(300), polls(0), CLUSTER, &[]),
        ("sparse alltoall", alltoall(|distance| distance == 1), ring_of_messages(), CLUSTER, &[]),
        (
            "collective operation of too many ranks",
            gather(|rank| rank == 1),
            one_of_eight_sends(),
            CLUSTER,
            &[],
        ),
        // What is not at the place of the problem stays.
        (
            "sparse alltoall",
            at_place(&alltoall(|distance| distance == 1), &dense),
            at_place(&ring_of_messages(), &dense),
            CLUSTER,
            &[],
        ),
        (
            "collective operation of too many ranks",
            at_place(&gather(|rank| rank == 1), &many),
            at_place(&one_of_eight_sends(), &many),
            CLUSTER,
            &[],
        ),
        ("communicators in a loop", communicators(30), communicators(1), CLUSTER, &[]),
        ("small independent file accesses", writes(50, 4096), writes(1, 50 * 4096), CLUSTER, DISK),
        ("small independent file accesses", writes(50, 4096), writes(1, 50 * 4096), CLUSTER, hard_disk),
        // Bisection finds the pairs of ranks that talk to each other, and puts each at one leaf.
        ("links contended by placement", crossing(|rank| rank ^ 4), crossing(|rank| rank ^ 1), TREE, &[]),
    ];
    for (problem, with, mended, topology, settings) in cases {
        let folder = Folder::new();
        let mut config = config(&folder, &with, topology);
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        let spec = config.clone().resolve().unwrap();
        let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
        found.simulate_gains(&config).unwrap();
        let gain = found.problems.iter().find(|found| found.name == problem).unwrap().gain_s.unwrap();
        let saved = found.simulated_time_s - diagnose(&mended, topology, settings).simulated_time_s;
        assert!(saved > 0.0 && (gain - saved).abs() < 1e-9, "{problem}: gain {gain} s, saved {saved} s");
    }
}

/// Rank 0 receives from ranks 1, 2 and 3 in this order; the part of its waits counts in which the message of a later one has been sent.
#[test]
fn messages_in_the_wrong_order_are_found_beyond_the_next_one() {
    for (sent, expected) in [
        // The first message is waited for in vain from 0.5 ms on, when the last one has been sent.
        ([3.0, 2.9, 0.5], Some(2.5e-3)),
        // Both waits, until 1 ms and until 3 ms.
        ([1.0, 3.0, 0.5], Some(0.5e-3 + 2e-3)),
        ([0.5, 2.9, 3.0], None),
    ] {
        let trace = program(4, |rank| match rank {
            0 => (1..4).map(|from| format!("location a.c {from};recv {from} 0 8;")).collect(),
            _ => compute(sent[rank as usize - 1]) + "send 0 0 8",
        });
        let found = diagnose(&trace, CLUSTER, &[]);
        let wrong = found.problems.iter().find(|found| found.name == "messages received in the wrong order");
        match (wrong, expected) {
            (Some(wrong), Some(expected)) => {
                assert!((wrong.duration_s / expected - 1.0).abs() < 0.02, "{wrong:?}")
            }
            (wrong, expected) => assert!(wrong.is_none() && expected.is_none(), "{sent:?}: {wrong:?}"),
        }
    }
}

/// Ranks that work one after the other would save what those save that work at once.
#[test]
fn the_gain_of_serialization_is_that_of_independent_work() {
    let folder = Folder::new();
    let config = config(&folder, &chain(false), CLUSTER);
    let spec = config.clone().resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    found.simulate_gains(&config).unwrap();
    let gain = found.problems.iter().find(|found| found.name == "serialization").unwrap().gain_s.unwrap();
    let saved = found.simulated_time_s - diagnose(&chain(true), CLUSTER, &[]).simulated_time_s;
    // Three of four milliseconds; the messages of the other program come one after the other, too.
    assert!(saved > 2.9e-3 && (gain / saved - 1.0).abs() < 0.02, "gain {gain} s, saved {saved} s");
}

/// Three hosts of a leaf send 10 MB each to the first hosts of three other leaves, by D-mod-k over one of four uplinks. Random paths take
/// two at least.
#[test]
fn other_routing_gains_what_the_configuration_does() {
    const LEAVES: &str = "kind = 'fat_tree'\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '10us'\nlevels = [\n\
        { children = 4, parents = 1 }, { children = 4, parents = 4 } ]\n";
    let trace = program(16, |rank| match rank {
        1..4 => format!("send {} 0 10000000", 4 * rank),
        4 | 8 | 12 => format!("recv {} 0 10000000", rank / 4),
        _ => String::new(),
    });
    let folder = Folder::new();
    let mut config = config(&folder, &trace, LEAVES);
    let spec = config.clone().resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    found.simulate_gains(&config).unwrap();
    let routing = found.problems.iter().find(|found| found.name == "links contended by routing").unwrap();
    config.set("platform.routing=random").unwrap();
    let other = Report::of(&config.resolve().unwrap()).unwrap();
    let saved = found.simulated_time_s - other.simulated_time_s;
    assert!(saved > 9e-3 && routing.gain_s == Some(saved), "saved {saved} s, found {routing:?}");
}

/// Work at different call sites at the same time is no imbalance; at different times, between barriers, it is, and where it is it counts
/// for as much as equal work there would save.
#[test]
fn only_imbalance_that_balancing_removes_counts() {
    let at = |site: &str, millis: f64| format!("location {site} 1;{}", compute(millis));
    let sync = "location sync.c 9;barrier;";
    // Ranks, lines of each, and the duration of the problem [s], if there is one.
    type Lines<'a> = &'a dyn Fn(u32) -> String;
    let cases: [(&str, u32, Lines, Option<f64>); 9] = [
        ("each rank at its own site", 3, &|rank| at(["a.c", "b.c", "c.c"][rank as usize], 1.0) + sync, None),
        ("without a barrier", 2, &|rank| at(["a.c", "b.c"][rank as usize], 1.0), None),
        (
            "what one rank does less here it does more there",
            2,
            &|rank| at("a.c", f64::from(2 - rank)) + &at("b.c", f64::from(1 + rank)) + sync,
            None,
        ),
        (
            "the same with a barrier between",
            2,
            &|rank| at("a.c", f64::from(3 - 2 * rank)) + sync + &at("b.c", f64::from(1 + 2 * rank)) + sync,
            Some(4e-3),
        ),
        (
            "different sites, different amounts",
            2,
            &|rank| at(["a.c", "b.c"][rank as usize], f64::from(3 - 2 * rank)),
            Some(2e-3),
        ),
        (
            "ranks that are roots in turn",
            3,
            &|rank| {
                let phase = |root| {
                    let work = if rank == root { at("root.c", 2.0) } else { String::new() };
                    format!("{work}location bcast.c 5;bcast 8 {root};")
                };
                (0..3).map(phase).collect()
            },
            // The work of all of them is at one site, and equal in sum.
            None,
        ),
        (
            "ranks that are roots in turn, each at its site",
            3,
            &|rank| {
                let phase = |root| {
                    let work = if rank == root {
                        at(["a.c", "b.c", "c.c"][root as usize], 2.0)
                    } else {
                        String::new()
                    };
                    format!("{work}location bcast.c 5;bcast 8 {root};")
                };
                (0..3).map(phase).collect()
            },
            // In each of three phases two ranks wait for 2 ms.
            Some(12e-3),
        ),
        (
            "one after the other",
            2,
            &|rank| match rank {
                0 => at("a.c", 1.0) + "send 1 0 8;" + sync,
                _ => "location r.c 1;recv 0 0 8;".to_owned() + &at("b.c", 1.0) + sync,
            },
            None,
        ),
        ("alike", 2, &|_| at("a.c", 1.0) + sync, None),
    ];
    for (name, ranks, lines, expected) in cases {
        let found = diagnose(&program(ranks, lines), CLUSTER, &[]);
        let found = found.problems.iter().find(|found| found.name == "load imbalance");
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert!((found.duration_s / expected - 1.0).abs() < 0.05, "{name}: {found:?}");
            }
            (found, expected) => assert!(found.is_none() && expected.is_none(), "{name}: {found:?}"),
        }
    }
}

/// What only rank 0 does at one place between a gather and a broadcast, or between messages from and to all others: distributed over all
/// ranks by the hypothesis, and by hand.
#[test]
fn the_gain_of_a_root_bottleneck_is_that_of_distributing_it() {
    let at = |millis: f64| format!("location post.c 61;{}", compute(millis));
    let collective = |root: f64, others: f64| {
        program(4, |rank| {
            let post = if rank == 0 {
                at(root)
            } else if others > 0.0 {
                at(others)
            } else {
                String::new()
            };
            format!(
                "location work.c 10;{}location gather.c 60;gather 8 8 0;{post}location bcast.c 70;bcast 8 0;",
                compute(1.0)
            )
            .repeat(3)
        })
    };
    let messages = |root: f64, others: f64| {
        program(4, |rank| {
            let round = if rank == 0 {
                let receives: String = (1..4).map(|from| format!("recv {from} 0 8;")).collect();
                let sends: String = (1..4).map(|to| format!("send {to} 0 8;")).collect();
                format!("{receives}{}location rest.c 1;{sends}", at(root))
            } else {
                let post = if others > 0.0 { at(others) } else { String::new() };
                format!("send 0 0 8;{post}location rest.c 1;recv 0 0 8;")
            };
            format!("location work.c 10;{}{round}", compute(1.0)).repeat(3)
        })
    };
    for (with, mended, names) in [
        (collective(8.0, 0.0), collective(2.0, 2.0), &["load imbalance", "late broadcast", "straggler"][..]),
        (messages(8.0, 0.0), messages(2.0, 2.0), &["load imbalance", "straggler"][..]),
    ] {
        let folder = Folder::new();
        let config = config(&folder, &with, CLUSTER);
        let spec = config.clone().resolve().unwrap();
        let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
        found.simulate_gains(&config).unwrap();
        let saved = found.simulated_time_s - diagnose(&mended, CLUSTER, &[]).simulated_time_s;
        assert!((saved - 18e-3).abs() < 1e-5, "{saved}");
        for name in names {
            let problem = found.problems.iter().find(|found| found.name == *name).unwrap();
            let gain = problem.gain_s.unwrap_or_else(|| panic!("{problem:?}"));
            assert!((gain - saved).abs() < 1e-6, "{name}: gain {gain} s, saved {saved} s");
            assert_eq!(
                problem.hypothesis.as_deref(),
                Some("balance (over = \"sum\", site = [\"post.c:61\"])")
            );
        }
    }
}

/// Ranks that are late in turn are an imbalance over iterations, as far as no rank is spared of waiting; one rank that is always late is none,
/// be it slow or at the end of a chain.
#[test]
fn ranks_that_are_late_in_turn_are_told_from_those_that_always_are() {
    let chain = program(4, |rank| {
        let receive = if rank > 0 { format!("recv {} 0 8;", rank - 1) } else { String::new() };
        let send = if rank < 3 { format!("send {} 0 8;", rank + 1) } else { String::new() };
        format!("{receive}{}{send}allreduce 8 0;", compute(1.0)).repeat(5)
    });
    // The rank that is always late computes as long as all others in sum: they work longer after the last barrier.
    let one_late = program(4, |rank| {
        let (millis, rest) = if rank == 0 { (2.0, 1.0) } else { (1.0, 13.0) };
        (compute(millis) + "location b.c 1;barrier;").repeat(12) + &compute(rest)
    });
    // Before the first barrier the others have more to do, in all other rounds rank 0.
    let two_times = program(4, |rank| {
        let (before, millis) = if rank == 0 { (0.0, 2.0) } else { (12.0, 1.0) };
        compute(before) + &(compute(millis) + "location b.c 1;barrier;").repeat(12)
    });
    for (name, trace, expected) in [
        ("all in turn", rounds(|round, rank| if round % 4 == rank { 2.0 } else { 1.0 }), Some(36e-3)),
        // The longest computations of the rounds take 13 + 11 * 2 ms, those of each rank 24 ms.
        ("first the others", two_times, Some(4.0 * 11e-3)),
        ("a chain", chain, None),
        ("one", one_late, None),
    ] {
        let found = diagnose(&trace, CLUSTER, &[]);
        let found = found.problems.iter().find(|found| found.name == "imbalance over iterations");
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert!((found.duration_s / expected - 1.0).abs() < 0.05, "{name}: {found:?}");
            }
            (found, expected) => assert!(found.is_none() && expected.is_none(), "{name}: {found:?}"),
        }
    }
}

/// A gain that is not known has a reason, in the table as in the JSON; without `--gain` there is no column of gains.
#[test]
fn an_unknown_gain_has_a_reason() {
    let folder = Folder::new();
    config(&folder, &rounds(|round, rank| if round % 4 == rank { 2.0 } else { 1.0 }), CLUSTER);
    let (run, json) = (folder.path("run.toml"), folder.path("found.json"));
    let diagnose = |more: &[&str]| {
        let assert = command().arg("diagnose").arg(&run).args(more).assert().code(DONE);
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let text = diagnose(&["--gain", "--json", json.to_str().unwrap()]);
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let problems = found["problems"].as_array().unwrap();
    assert!(
        problems.iter().all(|problem| problem["gain_s"].is_f64() != problem["no_gain"].is_string()),
        "{found}"
    );
    let chain = problems.iter().find(|problem| problem["name"] == "serialization").unwrap();
    assert_eq!(chain["no_gain"], "overlap: the program has no messages");
    assert!(
        text.contains("No gain is known of overlap (early = 8, independent = true, late = 8):"),
        "{text}"
    );
    assert!(text.contains("Replayed for the gain: balance."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let without = diagnose(&[]);
    assert!(!without.contains("gain") && without.contains("problem  "), "{without}");
}
