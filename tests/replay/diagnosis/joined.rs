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
    let job = config(&folder, &relay(3.0), CLUSTER).resolve().unwrap();
    let rules = Rule::from_text(rules, "own.toml").unwrap();
    let found = Diagnosis::new(&mut Cluster::alone(), &job, &rules).unwrap().unwrap();
    let [delay] = &found.problems[..] else { panic!("{:?}", found.problems) };
    // Half of 3 ms without a tenth of 3.1 ms.
    assert!((delay.duration_s - 1.19e-3).abs() < 1e-5, "{delay:?}");
    assert_eq!(delay.recommendation, "See last.c:2 and compute at solve.c:7: 0.001500 s.");

    let trace = program(2, |rank| match rank {
        0 => format!("location a.c 1;{}send 1 0 8", compute(2.0)),
        _ => format!("location b.c 1;{}recv 0 0 8", compute(1.0)),
    });
    let job = config(&folder, &trace, CLUSTER).resolve().unwrap();
    let found = Diagnosis::new(&mut Cluster::alone(), &job, &rules).unwrap().unwrap();
    let beside = problem(&found, "beside");
    assert_eq!(beside.pairs.len(), 1);
    assert_eq!(shown(&beside.pairs[0]), ("compute b.c:1".to_owned(), "recv b.c:1".to_owned(), 20));
}
