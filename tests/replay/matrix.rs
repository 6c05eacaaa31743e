//! One digest for any division of a replay without contention: threads and processes, any partition, any bound on run-ahead
//! and size of batches, and workers that are delayed at random.
//!
//! Processes are emulated by threads here; the module `processes` uses those of `mpirun`.

use std::path::{Path, PathBuf};

use pdes_core::{Cluster, Progress, RunAhead, SimDuration};
use pdes_replay::{Config, Digest, Outcome, PartitionSource, Simulation};

use crate::command_line::Folder;
use crate::determinism::{all_calls, committed_platform, operations_among_probes, tests_of_requests};
use crate::forward::digest_of_one;
use crate::reference;
use crate::shared::shared;
use crate::trace_commands::trace;

/// A division of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) threads: usize,
    pub(crate) processes: usize,
    pub(crate) partition: Kind,
    run_ahead: RunAhead,
    batch: usize,
    jitter: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Blocks,
    Auto,
    Shuffled,
}

impl Way {
    /// Returns 1,296 divisions: 4 numbers of threads, 4 of processes, 3 partitions, 3 bounds on run-ahead, 3 sizes of
    /// batches, and 3 kinds of perturbation.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let window = |picos| RunAhead::Window(SimDuration::from_picos(picos));
        let run_aheads = [RunAhead::Auto, window(0), window(1 << 50)];
        (0..1296).map(move |number: usize| {
            let mut rest = number;
            let mut pick = |choices: usize| {
                let choice = rest % choices;
                rest /= choices;
                choice
            };
            Self {
                threads: [1, 2, 3, 7][pick(4)],
                processes: [1, 2, 3, 4][pick(4)],
                partition: [Kind::Blocks, Kind::Auto, Kind::Shuffled][pick(3)],
                run_ahead: run_aheads[pick(3)],
                batch: [1, 5, 256][pick(3)],
                jitter: [None, Some(1), Some(u64::MAX)][pick(3)],
            }
        })
    }

    /// Returns every n-th division for `tests/campaign`; otherwise one of some parts of them, which together are all.
    pub(crate) fn part(every: usize, part: usize, parts: usize) -> impl Iterator<Item = Self> {
        let (first, every) =
            if reference::is_campaign() { (0, every) } else { (part * every, parts * every) };
        Self::all().skip(first).step_by(every)
    }

    /// Writes the file of the partition, if it is one.
    pub(crate) fn partition(&self, ranks: u32, folder: &Folder) -> PartitionSource {
        let workers = (self.threads * self.processes) as u32;
        let shuffled = |rank: u32| (rank.wrapping_mul(0x9E37_79B9) >> 16) % workers;
        match self.partition {
            Kind::Blocks => PartitionSource::Blocks,
            Kind::Auto => PartitionSource::Auto,
            Kind::Shuffled => {
                let lines: String = (0..ranks).map(|rank| format!("{}\n", shuffled(rank))).collect();
                PartitionSource::File(folder.write(&format!("on-{workers}.txt"), &lines))
            }
        }
    }

    /// Sets the options that change the order of execution but not the assignment of ranks.
    pub(crate) fn apply(&self, simulation: Simulation) -> Simulation {
        simulation.with_run_ahead(self.run_ahead).with_batch(self.batch).with_jitter(self.jitter)
    }

    pub(crate) fn replay(&self, simulation: &Simulation) -> Outcome {
        let outcomes = Cluster::in_memory(self.processes, |mut cluster| {
            simulation.run(&mut cluster, &Progress::new(self.threads)).unwrap()
        });
        let mut outcomes: Vec<Outcome> =
            outcomes.into_iter().filter_map(|outcome| outcome.expect("no process panics")).collect();
        assert_eq!((outcomes.len(), outcomes[0].processes), (1, self.processes as u32));
        outcomes.remove(0)
    }
}

pub(crate) fn simulation_of(trace: &Path, model: &str) -> Simulation {
    scene_with(trace, &[&format!("network.model='{model}'")])
}

fn scene_with(trace: &Path, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &committed_platform("fattree-hdr.toml"));
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

pub(crate) fn digest(outcome: &Outcome) -> Digest {
    Digest::of(outcome.program().ends.iter().copied().zip(&outcome.program().statistics))
}

/// Returns the digest and all results of each rank; checks that the parts of a rank's time add up to its end.
pub(crate) fn results(outcome: &Outcome) -> (Digest, Vec<u8>) {
    let mut bytes = Vec::new();
    for (rank, (end, statistics)) in
        outcome.program().ends.iter().zip(&outcome.program().statistics).enumerate()
    {
        let all = statistics.breakdown().expect("it is asked for by default").all();
        assert_eq!(all.time.as_picos(), end.as_picos(), "rank {rank}");
        assert_eq!(all.waited() + all.transfer + all.own(), all.time, "rank {rank}");
        bytes.extend(digest_of_one(statistics));
    }
    (digest(outcome), bytes)
}

/// Replays in every n-th division.
fn check(trace: &Path, every: usize) {
    check_simulation(simulation_of(trace, "contention-free"), every);
}

fn check_simulation(mut simulation: Simulation, every: usize) {
    let expected = results(&simulation.replay(&Progress::new(1)).unwrap());
    let folder = Folder::new();
    // 7 is coprime to the number of divisions, so that all choices still meet each other.
    let every = if reference::is_campaign() { every } else { 7 * every };
    for way in Way::all().step_by(every) {
        let partition = way.partition(simulation.trace().ranks(), &folder);
        simulation = way.apply(simulation.with_threads(way.threads).with_partition(partition));
        assert!(
            results(&way.replay(&simulation)) == expected,
            "{} {way:?}",
            simulation.spec().trace.display()
        );
    }
}

/// Generates a trace.
fn generated(arguments: &[&str], folder: &Folder) -> PathBuf {
    let path = folder.path("trace.pdt");
    trace(&[&["generate"], arguments, &["--output"]].concat(), &[&path]).success();
    path
}

/// Tests of traces, each in every n-th division: strides that are coprime to 1,296, so that all choices meet.
macro_rules! one_digest {
    ($($name:ident: every $every:literal of |$folder:ident| $trace:expr;)*) => {$(
        #[test]
        fn $name() {
            let $folder = &Folder::new();
            check(&$trace, $every);
        }
    )*};
}

one_digest! {
    of_a_master_and_its_workers: every 11 of |folder|
        generated(&["master-worker", "--ranks=9", "--tasks=60", "--jitter=0.5"], folder);
    of_random_partners: every 11 of |folder|
        generated(&["random-sparse", "--ranks=24", "--steps=6", "--rounds=3", "--jitter=0.3"], folder);
    of_neighbours_in_a_grid: every 13 of |folder|
        generated(&["halo3d", "--cells=24,24,24", "--processes=3,3,3", "--iterations=8", "--jitter=0.3"], folder);
    of_a_wavefront: every 41 of |_folder| reference::repository().join("configs/traces/lu.S.8");
    of_receives_from_anybody: every 11 of |folder| folder.write("calls.txt", &all_calls(3));
    of_looks_that_share_a_counter: every 11 of |folder| folder.write("tests.txt", &tests_of_requests());
}

#[test_with::shared]
fn of_all_small_real_traces() {
    let traces = shared("traces");
    let unpacked = reference::unpack(&traces);
    let names = ["cg.S.8", "dt.S.21", "ep.S.32", "ft.S.8", "is.S.8", "mg.S.8", "sp.S.16"];
    for name in names {
        check(&unpacked.path().join(name), 157);
    }
}

#[test]
fn of_operations_that_serve_ranks_as_they_arrive() {
    let folder = Folder::new();
    let trace = folder.write("arrivals.txt", &operations_among_probes());
    for bcast in ["arrival_pattern_aware", "arrival_pattern_aware_wait", "arrival_scatter", "automatic"] {
        let bcast = format!("mpi.bcast='{bcast}'");
        let reduce = "mpi.reduce='arrival_pattern_aware'";
        check_simulation(scene_with(&trace, &["network.model='contention-free'", &bcast, reduce]), 67);
    }
}

/// With contention the first process does all the work.
#[test]
fn of_messages_that_share_links() {
    let simulation = simulation_of(&reference::repository().join("configs/traces/lu.S.8"), "flow");
    let expected = digest(&simulation.replay(&Progress::new(1)).unwrap());
    for way in Way::all().filter(|way| way.threads == 1).take(4) {
        assert_eq!(digest(&way.replay(&simulation)), expected, "{way:?}");
    }
}
