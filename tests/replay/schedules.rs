//! GOAL schedules on platforms: one answer on any number of threads and processes, and that of the same program as a trace.

#[path = "schedules/analyses.rs"]
mod analyses;
#[path = "schedules/npb.rs"]
mod npb;

use std::fmt::Write as _;
use std::path::Path;

use pdes_core::{Progress, SimTime};
use pdes_replay::{Config, Outcome, RunError, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use proptest::prelude::*;

use crate::checkpoints::replay_in_parts;
use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::matrix::digest;
use crate::processes::mpirun;

const TORUS: &str = "platform.topology={ kind = 'torus', dims = [4, 2, 1], speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
const EPOCHS: &str = "network.epoch_s='auto'";

/// An event of a random program, whose order in the list is one in which all can happen.
#[derive(Clone, Debug)]
enum Event {
    Message { from: u8, to: u8, bytes: u32, tag: u8 },
    Computation { rank: u8, nanos: u32 },
}

const RANKS: u8 = 8;

/// Sends end at once, so that messages which meet other receives never block a program.
const DETACHED: &str = "mpi.detached_below_bytes=2000000";

/// Makes the receives of odd ranks take messages from any source with any tag.
fn with_wildcards(text: &str, [source, tag]: [&str; 2]) -> String {
    let mut is_odd = false;
    let mut lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        match *words {
            ["rank", rank, "{"] => is_odd = rank.parse::<u8>().unwrap() % 2 == 1,
            [label, "recv", _, "from", _, "tag", _] if is_odd => {
                return format!("{label} recv 1000000b from {source} tag {tag}\n");
            }
            [rank, "recv", _, _, _, kind] if rank.parse::<u8>().unwrap() % 2 == 1 => {
                return format!("{rank} recv {source} {tag} 1000000 {kind}\n");
            }
            _ => {}
        }
        format!("{line}\n")
    });
    lines.by_ref().collect()
}

/// Ranks as text, an operation of each event at each of its sides.
fn operations(events: &[Event]) -> Vec<Vec<(usize, String)>> {
    let mut ranks = vec![Vec::new(); RANKS.into()];
    for (index, event) in events.iter().enumerate() {
        match *event {
            Event::Message { from, to, bytes, tag } => {
                ranks[usize::from(from)].push((index, format!("send {bytes}b to {to} tag {tag}")));
                ranks[usize::from(to)].push((index, format!("recv {bytes}b from {from} tag {tag}")));
            }
            Event::Computation { rank, nanos } => {
                ranks[usize::from(rank)].push((index, format!("calc {nanos}")));
            }
        }
    }
    ranks
}

/// Writes a schedule; `depends` tells whether the later operation of a rank waits for an earlier one, and for its start only.
fn schedule(events: &[Event], depends: impl Fn(usize, usize) -> Option<&'static str>) -> String {
    let mut text = format!("num_ranks {RANKS}\n");
    for (rank, operations) in operations(events).iter().enumerate() {
        writeln!(text, "rank {rank} {{").unwrap();
        for (number, (_, operation)) in operations.iter().enumerate() {
            writeln!(text, "l{number}: {operation}").unwrap();
            for earlier in 0..number {
                if let Some(kind) = depends(earlier, number) {
                    writeln!(text, "l{number} {kind} l{earlier}").unwrap();
                }
            }
        }
        text.push_str("}\n");
    }
    text
}

/// Writes the program in which each rank does one thing after the other, as the text of a trace.
fn trace(events: &[Event]) -> String {
    let mut text: String = (0..RANKS).map(|rank| format!("{rank} init\n")).collect();
    for event in events {
        match *event {
            Event::Message { from, to, bytes, tag } => {
                writeln!(text, "{from} send {to} {tag} {bytes} 6\n{to} recv {from} {tag} {bytes} 6").unwrap();
            }
            Event::Computation { rank, nanos } => writeln!(text, "{rank} compute {nanos}").unwrap(),
        }
    }
    text + &(0..RANKS).map(|rank| format!("{rank} finalize\n")).collect::<String>()
}

prop_compose! {
    fn message()(
        from in 0..RANKS, distance in 1..RANKS, tag in 0..2_u8,
        bytes in prop_oneof![1..2000_u32, Just(70_000), Just(1_000_000)],
    ) -> Event {
        Event::Message { from, to: (from + distance) % RANKS, bytes, tag }
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let computation = (0..RANKS, 0..90_000_u32).prop_map(|(rank, nanos)| Event::Computation { rank, nanos });
    prop::collection::vec(prop_oneof![3 => message(), 1 => computation], 1..60)
}

fn config(path: &Path, settings: &[&str], threads: usize) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", path);
    // SimGrid's thresholds: waits for eager messages are told apart otherwise in a graph than in a trace.
    for setting in [TORUS, "network.preset=smpi", "analysis.links=true"].iter().chain(settings) {
        config.set(setting).unwrap();
    }
    config.set(&format!("engine.threads={threads}")).unwrap();
    config.set("parallel.oversubscribe=true").unwrap();
    config
}

fn load(path: &Path, settings: &[&str], threads: usize) -> Result<Simulation, RunError> {
    Simulation::load(&config(path, settings, threads).resolve().unwrap())
}

fn replay(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

const MODELS: [&[&str]; 3] =
    [&["network.model=contention-free"], &["network.model=flow"], &["network.model=flow", EPOCHS]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Random graphs, in which operations overlap.
    #[test]
    fn any_number_of_threads_has_one_answer(events in events(), seed in any::<u32>()) {
        let depends = |earlier: usize, later: usize| {
            match (earlier as u32).wrapping_mul(31).wrapping_add(later as u32).wrapping_mul(seed | 1) >> 29 {
                0 | 1 => Some("requires"),
                2 => Some("irequires"),
                _ => None,
            }
        };
        let folder = Folder::new();
        let path = folder.write("random.goal", &schedule(&events, depends));
        for model in MODELS {
            let expected = replay(&load(&path, model, 1).unwrap());
            for (threads, jitter) in [(2, None), (3, Some(5)), (7, Some(9))] {
                let several = load(&path, model, threads).unwrap().with_jitter(jitter);
                let outcome = replay(&several);
                prop_assert_eq!(&outcome.program().ends, &expected.program().ends, "{} threads, {:?}", threads, model);
                prop_assert_eq!(&outcome.links, &expected.links);
                prop_assert_eq!(digest(&outcome), digest(&expected));
            }
        }
    }

    /// Graphs in which the order of time decides which message a receive takes.
    #[test]
    fn receives_from_any_source_have_one_answer(events in events(), seed in any::<u32>()) {
        let depends = |earlier: usize, later: usize| {
            let hash = (earlier as u32).wrapping_mul(31).wrapping_add(later as u32).wrapping_mul(seed | 1);
            (hash >> 30 == 0).then_some("requires")
        };
        let folder = Folder::new();
        let path = folder.write("any.goal", &with_wildcards(&schedule(&events, depends), ["-1", "-1"]));
        for model in MODELS {
            let settings = [model, &[DETACHED]].concat();
            let expected = replay(&load(&path, &settings, 1).unwrap());
            for (threads, jitter) in [(2, None), (3, Some(5)), (7, Some(9))] {
                let outcome = replay(&load(&path, &settings, threads).unwrap().with_jitter(jitter));
                prop_assert_eq!(&outcome.program().ends, &expected.program().ends, "{} threads, {:?}", threads, model);
                prop_assert_eq!(digest(&outcome), digest(&expected));
            }
            let (parts, _) = replay_in_parts(config(&path, &settings, 2), &Folder::new());
            prop_assert_eq!(digest(&parts.unwrap()), digest(&expected));
        }
    }

    /// A trace whose receives are from any source has the same ends as the sequence.
    #[test]
    fn sequences_with_receives_from_any_source_end_as_their_traces(events in events()) {
        let folder = Folder::new();
        let text = schedule(&events, |earlier, later| (earlier + 1 == later).then_some("requires"));
        let paths = [
            folder.write("chain.goal", &with_wildcards(&text, ["-1", "-1"])),
            folder.write("trace.txt", &with_wildcards(&trace(&events), ["-555", "-444"])),
        ];
        for model in MODELS {
            let settings = [model, &[DETACHED]].concat();
            let [graph, sequence] = paths.each_ref().map(|path| replay(&load(path, &settings, 1).unwrap()));
            prop_assert_eq!(&graph.program().ends, &sequence.program().ends, "{:?}", model);
        }
    }

    /// Graphs that are sequences: a trace of the same program has the same ends.
    #[test]
    fn a_sequence_ends_as_its_trace(events in events()) {
        let folder = Folder::new();
        let text = schedule(&events, |earlier, later| (earlier + 1 == later).then_some("requires"));
        let paths = [folder.write("chain.goal", &text), folder.write("trace.txt", &trace(&events))];
        for model in MODELS {
            let [graph, sequence] =
                paths.each_ref().map(|path| replay(&load(path, model, 1).unwrap()));
            prop_assert_eq!(&graph.program().ends, &sequence.program().ends, "{:?}", model);
            prop_assert_eq!(&graph.links, &sequence.links);
        }
    }

    /// Replays that stop again and again, and continue from checkpoints.
    #[test]
    fn checkpoints_change_nothing(events in events()) {
        let folder = Folder::new();
        let path = folder.write("chain.goal", &schedule(&events, |earlier, later| (later % 3 == 0 && earlier + 2 >= later).then_some("requires")));
        for model in &MODELS[..2] {
            let expected = replay(&load(&path, model, 1).unwrap());
            let (outcome, _) = replay_in_parts(config(&path, model, 1), &Folder::new());
            prop_assert_eq!(outcome.unwrap().into_program().ends, expected.into_program().ends);
        }
    }
}

/// One message between computations, added up by hand.
#[test]
fn operations_that_nothing_orders_overlap() {
    let folder = Folder::new();
    let text = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 1000b to 1\nc: calc 9000\nb irequires a\n}\n\
                rank 1 {\nr: recv 1000b from 0\nx: calc 1000\nx requires r\n}\n";
    let path = folder.write("pair.goal", text);
    let settings = ["network.model=contention-free", "network.preset=raw"];
    let outcome = replay(&load(&path, &settings, 1).unwrap());
    // The message of 1000 bytes and an envelope of 16 is sent at 0 and takes 1 us and a nanosecond per byte; both computations of rank 0 begin at 0.
    assert_eq!(outcome.program().ends, [9_000_000, 3_016_000].map(SimTime::from_picos));
    // With `flow` the two computations share a core: half of it each for 10 us, then the longer one has 4 us left.
    let outcome = replay(&load(&path, &["network.model=flow", "network.preset=raw"], 1).unwrap());
    assert_eq!(outcome.program().ends[0], SimTime::from_picos(14_000_000));
}

#[test]
fn processes_have_the_answer_of_one() {
    let folder = Folder::new();
    let events: Vec<Event> = (0..40)
        .map(|step| Event::Message {
            from: step % 8,
            to: (step * 3 + 1) % 8,
            bytes: 500 * u32::from(step),
            tag: 0,
        })
        .filter(|event| !matches!(event, Event::Message { from, to, .. } if from == to))
        .collect();
    let text = schedule(&events, |earlier, later| (earlier + 1 == later).then_some("requires"));
    let path = folder.write("chain.goal", &text);
    let path = path.to_str().unwrap();
    for model in [&["network.model=contention-free"][..], &["network.model=flow", EPOCHS]] {
        let sets: Vec<String> =
            model.iter().chain([&TORUS]).map(|setting| format!("--set={setting}")).collect();
        let arguments: Vec<&str> =
            ["--trace", path].into_iter().chain(sets.iter().map(String::as_str)).collect();
        let one = command().args(&arguments).assert().code(DONE).get_output().stdout.clone();
        let digest = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            text.lines().find(|line| line.starts_with("digest")).map(str::to_owned)
        };
        assert!(digest(&one).is_some());
        if cfg!(feature = "mpi") {
            let two = mpirun(2, &arguments);
            assert_eq!(digest(&two.code(DONE).get_output().stdout), digest(&one));
        }
    }
}

#[test]
fn what_a_graph_cannot_have_is_refused_by_name() {
    let folder = Folder::new();
    let path = folder.write("one.goal", "num_ranks 1\nrank 0 {\ncalc 100\n}\n");
    let any = "num_ranks 2\nrank 0 {\nsend 1b to 1 tag -1\n}\nrank 1 {\nrecv 1b from 0 tag 3\n}\n";
    let error = load(&folder.write("any.goal", any), &["network.model=flow"], 1).unwrap_err().to_string();
    assert!(error.contains("operation 0 of rank 0 is a send with any tag"), "{error}");
    let run =
        |arguments: &[&str]| command().args(["--trace", path.to_str().unwrap()]).args(arguments).assert();
    let platform = format!("--set={TORUS}");
    run(&["--model=loggops", &platform]).code(MISUSE).stderr(contains("or set --model flow"));
    run(&[]).code(DONE).stdout(contains("simulated time: 0.000000100 s"));
    run(&[&platform]).code(DONE).stdout(contains("simulated time: 0.000000100 s"));
}

#[test]
fn a_receive_without_a_message_is_a_deadlock() {
    let folder = Folder::new();
    let path =
        folder.write("half.goal", "num_ranks 2\nrank 0 {\ncalc 5\nrecv 1b from 1 tag 3\n}\nrank 1 {\n}\n");
    let platform = format!("--set={TORUS}");
    command()
        .args(["--model=flow", "--trace", path.to_str().unwrap(), &platform])
        .assert()
        .code(FAILED)
        .stderr(contains("rank 0 waits").and(contains("action 1")));
}
