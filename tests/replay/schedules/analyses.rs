//! Wait states, critical paths, histograms and timelines of GOAL schedules.

use std::path::Path;

use mpi_model::{ActionKind, CriticalPath, PathParts, WaitState};
use pdes_core::{SimDuration, SimTime};
use pdes_replay::Outcome;
use proptest::prelude::*;

use super::{DETACHED, MODELS, config, events, load, replay, schedule, trace, with_wildcards};
use crate::command_line::Folder;

const ANALYSES: [&str; 3] =
    ["analysis.waits=true", "analysis.histograms=true", "analysis.critical_path=true"];

fn analysed(path: &Path, settings: &[&str], threads: usize) -> Outcome {
    let settings = [&ANALYSES, settings].concat();
    replay(&load(path, &settings, threads).unwrap().with_jitter((threads > 1).then_some(threads as u64)))
}

/// Returns the critical path, which must be as long as the run.
fn path_of(outcome: &Outcome) -> &CriticalPath {
    let path = outcome.program().findings.critical_path.as_ref().expect("it is asked for");
    assert_eq!(path.end(), outcome.simulated_time());
    let PathParts { compute, sleep, library, latency, bandwidth, waiting } = path.parts();
    let all = compute + sleep + library + latency + bandwidth + waiting;
    assert_eq!(all, path.end() - SimTime::ZERO);
    path
}

/// Returns the time of each wait state of all ranks.
fn waits(outcome: &Outcome) -> [SimDuration; WaitState::COUNT] {
    let mut sums = [SimDuration::ZERO; WaitState::COUNT];
    for statistics in &outcome.program().statistics {
        let all = statistics.breakdown().expect("it is asked for").all();
        sums.iter_mut().zip(all.waiting).for_each(|(sum, more)| *sum += more);
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Random graphs, in which operations overlap.
    #[test]
    fn any_number_of_threads_finds_the_same(events in events(), seed in any::<u32>(), in_order in any::<bool>()) {
        let depends = |earlier: usize, later: usize| {
            match (earlier as u32).wrapping_mul(17).wrapping_add(later as u32).wrapping_mul(seed | 1) >> 29 {
                0 => Some("requires"),
                1 => Some("irequires"),
                _ => None,
            }
        };
        let folder = Folder::new();
        let text = schedule(&events, depends);
        let text = if in_order { with_wildcards(&text, ["-1", "-1"]) } else { text };
        let path = folder.write("random.goal", &text);
        for model in MODELS {
            let settings = if in_order { [model, &[DETACHED]].concat() } else { model.to_vec() };
            let expected = analysed(&path, &settings, 1);
            path_of(&expected);
            for (statistics, end) in expected.program().statistics.iter().zip(&expected.program().ends) {
                let times = statistics.kinds().map(|kind| statistics.time(kind)).sum::<SimDuration>();
                prop_assert_eq!(SimTime::ZERO + times, *end, "a rank has one state at each instant");
                let idle = statistics.breakdown().unwrap().total(ActionKind::Waitall);
                prop_assert_eq!(idle.own(), SimDuration::ZERO, "a rank that does nothing waits");
            }
            for threads in [2, 7] {
                let found = analysed(&path, &settings, threads);
                prop_assert_eq!(&found.program().statistics, &expected.program().statistics, "{} threads, {:?}", threads, settings);
                prop_assert_eq!(&found.program().findings.critical_path, &expected.program().findings.critical_path);
                prop_assert_eq!(&found.program().findings.distributions, &expected.program().findings.distributions);
            }
        }
    }

    /// Graphs that are sequences: the analyses find what they find in a trace of the same program.
    #[test]
    fn a_sequence_is_analysed_as_its_trace(events in events()) {
        let folder = Folder::new();
        let text = schedule(&events, |earlier, later| (earlier + 1 == later).then_some("requires"));
        let paths = [folder.write("chain.goal", &text), folder.write("trace.txt", &trace(&events))];
        for model in MODELS {
            let [graph, sequence] = paths.each_ref().map(|path| analysed(path, model, 1));
            let (one, other) = (path_of(&graph), path_of(&sequence));
            prop_assert_eq!((one.rank(), one.parts()), (other.rank(), other.parts()), "{:?}", model);
            prop_assert_eq!(waits(&graph), waits(&sequence), "{:?}", model);
            prop_assert_eq!(&graph.program().findings.distributions, &sequence.program().findings.distributions);
        }
    }
}

/// Two messages for which a rank waits while it has nothing to compute, and one for which it need not wait, by hand.
#[test]
fn a_rank_waits_where_it_does_nothing_else() {
    let folder = Folder::new();
    // Messages take 1 us and a nanosecond for each of their bytes and of the 16 of the envelope.
    let text = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 984b to 1 tag 7\nb requires a\nc: calc 9000\n\
                d: send 984b to 1 tag 8\nd requires c\n}\n\
                rank 1 {\nr: recv 984b from 0 tag 7\nx: calc 3000\ny: calc 1000\ny requires r\n\
                s: recv 984b from 0 tag 8\n}\n";
    let path = folder.write("pair.goal", text);
    let file = folder.path("run.csv");
    let timeline = format!("timeline.file='{}'", file.display());
    let outcome = analysed(&path, &["network.model=contention-free", "network.preset=raw", &timeline], 1);
    assert_eq!(outcome.program().ends, [9_000_000, 11_000_000].map(SimTime::from_picos));
    let lines = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(
        lines("run.csv"),
        "rank,state,begin_ps,end_ps,site\n0,compute,0,9000000,\n1,compute,0,3000000,\n1,waitall,3000000,7000000,\n\
         1,compute,7000000,8000000,\n1,waitall,8000000,11000000,\n"
    );
    assert_eq!(
        lines("run.waits.csv"),
        "rank,state,wait,begin_ps,end_ps,site\n1,waitall,late_sender,3000000,5000000,\n1,waitall,late_sender,8000000,9000000,\n"
    );
    assert_eq!(
        lines("run.messages.csv"),
        "from,to,sent_ps,arrived_ps,bytes,tag,communicator,operation\n0,1,5000000,7000000,984,7,0,\n0,1,9000000,11000000,984,8,0,\n"
    );
    // The longer computation of rank 0, and the message that follows it.
    let path = path_of(&outcome);
    let micros = |micros: u64| SimDuration::from_picos(micros * 1_000_000);
    let PathParts { compute, latency, bandwidth, .. } = path.parts();
    assert_eq!((compute, latency, bandwidth, path.hops()), (micros(9), micros(1), micros(1), 1));
    let config = config(&folder.path("pair.goal"), &["output.profile='x.json'"], 1);
    let error = pdes_replay::Simulation::load(&config.resolve().unwrap()).unwrap_err().to_string();
    assert!(error.contains("output.profile") && error.contains("GOAL schedule"), "{error}");
}
