//! Events of two places: what ranks wait for, and what delays those for whom they wait.

use pdes_core::Cluster;
use pdes_replay::{Diagnosis, PlacePair, Problem, Rule};

use super::{CLUSTER, compute, config, diagnose, program};
use crate::command_line::Folder;

fn problem<'a>(found: &'a Diagnosis, name: &str) -> &'a Problem {
    found.problems.iter().find(|problem| problem.name == name).unwrap_or_else(|| panic!("{name}"))
}

/// Names of both sides of a pair, and its time rounded to tenths of milliseconds.
fn shown(pair: &PlacePair) -> (String, String, i64) {
    let side = |site: &Option<String>, call: &Option<String>| {
        format!("{} {}", call.as_deref().unwrap_or("-"), site.as_deref().unwrap_or("-"))
    };
    let tenths = (1e4 * pair.duration_s).round() as i64;
    (side(&pair.site, &pair.call), side(&pair.other_site, &pair.other_call), tenths)
}

/// Rank 0 solves for 3 ms, packs for 0.1 ms and sends; rank 1 computes for 1 ms, receives, and has another message for rank 2, which
/// has nothing to do.
fn relay(solve: f64) -> String {
    program(3, |rank| match rank {
        0 => format!(
            "location solve.c 7;{}location pack.c 9;{}location send.c 11;send 1 0 8;",
            compute(solve),
            compute(0.1)
        ),
        1 => format!(
            "location other.c 3;{}location receive.c 5;recv 0 0 8;location relay.c 6;send 2 0 8;",
            compute(1.0)
        ),
        _ => "location last.c 2;recv 1 0 8;".to_owned(),
    })
}

/// A message is late by the computation before it, also where another message has been waited for between.
#[test]
fn late_messages_name_what_delays_them() {
    let found = diagnose(&relay(3.0), CLUSTER, &[]);
    let late = problem(&found, "late sender");
    let pairs: Vec<_> = late.pairs.iter().map(shown).collect();
    let pair = |one: &str, time| (format!("recv {one}"), "compute solve.c:7".to_owned(), time);
    assert_eq!(pairs, [pair("last.c:2", 31), pair("receive.c:5", 21)]);
    assert!(late.recommendation.contains("delays them"), "{}", late.recommendation);
    assert!(late.recommendation.ends_with("the messages: compute at solve.c:7."), "{}", late.recommendation);
    let sum: f64 = late.places.iter().map(|place| place.duration_s).sum();
    assert!((sum - late.duration_s).abs() < 1e-15 && late.places.len() == 2, "{late:?}");
    let mut text = String::new();
    found.write_text(&mut text).unwrap();
    assert!(text.contains("    recv at receive.c:5 <- compute at solve.c:7"), "{text}");

    // In the twin the last rank waits for the computation of rank 1.
    let found = diagnose(&relay(0.1), CLUSTER, &[]);
    let pairs: Vec<_> = problem(&found, "late sender").pairs.iter().map(shown).collect();
    assert_eq!(pairs, [("recv last.c:2".to_owned(), "compute other.c:3".to_owned(), 10)]);
}

/// All ranks wait for the last one of an operation, whatever its messages are and whoever forwards them.
#[test]
fn operations_name_the_last_rank() {
    let trace = |last: f64| {
        program(8, |rank| {
            let (site, millis) = if rank == 5 { ("rare.c", last) } else { ("usual.c", 1.0) };
            format!("location {site} 1;{}location sum.c 2;allreduce 8 0;", compute(millis)).repeat(3)
        })
    };
    for settings in [&[][..], &["network.model=contention-free"], &["mpi.collectives=analytic"]] {
        let found = diagnose(&trace(3.0), CLUSTER, settings);
        let wait = problem(&found, "wait at NxN");
        let first = shown(&wait.pairs[0]);
        // Seven ranks wait 2 ms, three times; beside that the messages take some microseconds.
        assert_eq!((&first.0[..], &first.1[..]), ("allreduce sum.c:2", "compute rare.c:1"));
        assert!((first.2 - 420).abs() <= 12, "{:?}", wait.pairs);
        assert!(wait.recommendation.contains("compute at rare.c:1"), "{}", wait.recommendation);
        let twin = diagnose(&trace(1.0), CLUSTER, settings);
        // What is left are the messages of the operation itself.
        let left = twin.problems.iter().find(|problem| problem.name == "wait at NxN");
        assert!(left.is_none_or(|left| left.duration_s < 2e-3), "{left:?}");
    }
}

/// A sender waits for a receive that is posted after a computation; what the receiver does between the post and the wait delays nobody.
/// Whoever waits for the sender meanwhile, waits for the receiver's computation.
#[test]
fn late_receivers_name_what_delays_them() {
    let trace = |solve: f64, posts_early: bool| {
        let receive = if posts_early {
            format!("irecv 0 0 100000;location inside.c 8;{}location wait.c 9;wait 0 1 0", compute(9.0))
        } else {
            "recv 0 0 100000".to_owned()
        };
        program(3, |rank| match rank {
            0 => format!("location own.c 2;{}location send.c 3;send 1 0 100000;send 2 0 8", compute(1.0)),
            1 => format!("location solve.c 7;{}location post.c 8;{receive}", compute(solve)),
            _ => "location last.c 4;recv 0 0 8;".to_owned(),
        })
    };
    for settings in [&[][..], &["network.model=contention-free"]] {
        for posts_early in [false, true] {
            let found = diagnose(&trace(3.0, posts_early), CLUSTER, settings);
            let late = problem(&found, "late receiver");
            let pair = |one: &str, time| (one.to_owned(), "compute solve.c:7".to_owned(), time);
            assert_eq!(late.pairs.iter().map(shown).collect::<Vec<_>>(), [pair("send send.c:3", 20)]);
            assert!(late.recommendation.contains("delays them (compute at solve.c:7)"), "{late:?}");
            assert_eq!(late.states, ["late_receiver"]);
            // Beside 2 ms the sender waits for the transfer, a tenth of a millisecond, before it sends.
            let waits = &problem(&found, "late sender").pairs;
            assert_eq!(shown(&waits[0]), pair("recv last.c:4", 31));
            let twin = diagnose(&trace(1.0, posts_early), CLUSTER, settings);
            assert!(twin.problems.iter().all(|problem| problem.name != "late receiver"));
        }
    }
}

/// A call that waits for receivers and for senders has both problems, each with its own time.
#[test]
fn waits_for_senders_and_receivers_are_apart() {
    let trace = program(3, |rank| {
        let round = |late: u32| match rank {
            0 => "location all.c 5;isend 1 0 100000;irecv 2 0 8;waitall;".to_owned(),
            1 => format!("location one.c 6;{}recv 0 0 100000;", compute(if late == 1 { 2.0 } else { 0.0 })),
            _ => format!("location two.c 7;{}send 0 0 8;", compute(if late == 2 { 4.0 } else { 0.0 })),
        };
        round(1) + "barrier;" + &round(2)
    });
    let found = diagnose(&trace, CLUSTER, &[]);
    let times = ["late receiver", "late sender"].map(|name| {
        let pairs = &problem(&found, name).pairs;
        pairs.iter().map(shown).find(|(one, ..)| one == "waitall all.c:5").unwrap()
    });
    let pair = |other: &str, time| ("waitall all.c:5".to_owned(), other.to_owned(), time);
    assert_eq!(times, [pair("compute one.c:6", 20), pair("compute two.c:7", 40)]);
}

/// A nonblocking operation is delayed by what a rank did before it began, not by what it does meanwhile: the operation advances without
/// it.
#[test]
fn nonblocking_operations_are_late_from_their_start() {
    let trace = program(8, |rank| {
        let (site, millis) = if rank == 5 { ("rare.c", 3.0) } else { ("usual.c", 1.0) };
        let (before, inside) = (compute(millis), compute(0.5));
        format!(
            "location {site} 1;{before}iallreduce 80000 0 req=0;location inside.c 3;{inside}location wait.c 4;wait req=0"
        )
    });
    for settings in [&[][..], &["network.model=contention-free"]] {
        let found = diagnose(&trace, CLUSTER, settings);
        let pairs: Vec<_> = found.problems.iter().flat_map(|problem| &problem.pairs).map(shown).collect();
        assert!(!pairs.is_empty());
        for (one, other, _) in pairs {
            assert_eq!((&one[..], &other[..]), ("wait wait.c:4", "compute rare.c:1"));
        }
    }
}

/// Own rules join events, use the variables of both sides, and are about other rules' pairs.
#[test]
fn own_rules_join_events() {
    let rules = "[[event]]\nname = 'receive'\ncalls = ['recv']\nwhen = 'time > 0'\n\
        [[event]]\nname = 'work'\ncalls = ['compute']\nwhen = 'time > 0'\namounts = { half = 'time / 2' }\n\
        [[event]]\nname = 'delayed'\nof = 'receive'\nwith = 'work'\nby = 'delayed_by'\nwhen = 'delay > 0.0025'\n\
        amounts = { rest = 'other_half - delay / 10' }\n\
        [[problem]]\nname = 'delay'\nof = 'delayed'\nwhen = 'count == 1 && other_count == 1'\nduration = 'rest'\n\
        description = ''\nrecommendation = 'See {sites} and {other_sites}: {other_half} s.'\n\
        [[event]]\nname = 'beside'\nof = 'work'\nwith = 'receive'\nby = 'same_site'\nwhen = '1'\n\
        [[problem]]\nname = 'beside'\nof = 'beside'\nwhen = '1'\nduration = 'time + other_time'\n\
        description = ''\nrecommendation = ''\n";
    let folder = Folder::new();
    let spec = config(&folder, &relay(3.0), CLUSTER).resolve().unwrap();
    let rules = Rule::from_text(rules, "own.toml").unwrap();
    let found = Diagnosis::new(&mut Cluster::alone(), &spec, &rules).unwrap().unwrap();
    let [delay] = &found.problems[..] else { panic!("{:?}", found.problems) };
    // Half of 3 ms without a tenth of 3.1 ms.
    assert!((delay.duration_s - 1.19e-3).abs() < 1e-5, "{delay:?}");
    assert_eq!(delay.recommendation, "See last.c:2 and compute at solve.c:7: 0.001500 s.");

    let trace = program(2, |rank| match rank {
        0 => format!("location a.c 1;{}send 1 0 8", compute(2.0)),
        _ => format!("location b.c 1;{}recv 0 0 8", compute(1.0)),
    });
    let spec = config(&folder, &trace, CLUSTER).resolve().unwrap();
    let found = Diagnosis::new(&mut Cluster::alone(), &spec, &rules).unwrap().unwrap();
    let beside = problem(&found, "beside");
    assert_eq!(beside.pairs.len(), 1);
    assert_eq!(shown(&beside.pairs[0]), ("compute b.c:1".to_owned(), "recv b.c:1".to_owned(), 20));
}
