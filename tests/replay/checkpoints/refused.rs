//! Checkpoints that cannot be resumed from, and runs that write none.

use pdes_core::Progress;
use pdes_replay::{CheckpointError, Config, RunError, Simulation, StopHandle};
use predicates::str::contains;
use proptest::prelude::*;

use super::{GENERATED, config, generate};
use crate::command_line::{DONE, Folder, MISUSE, command};
use crate::determinism::committed_platform;

/// A checkpoint of a run, and the configuration of the run.
struct Stopped {
    folder: Folder,
    config: Config,
    bytes: Vec<u8>,
}

impl Stopped {
    fn new() -> Self {
        Self::with(Folder::new(), GENERATED[3], &[])
    }

    fn with(folder: Folder, generator: (&str, &[&str]), settings: &[&str]) -> Self {
        let trace = generate(&folder, generator);
        let settings = [&["checkpoint.resume=true"], settings].concat();
        let mut config = config(&trace, &committed_platform("torus-5g.toml"), &settings);
        config.set_path("checkpoint", "directory", &folder.path("checkpoints"));
        let stop = StopHandle::default();
        stop.request();
        let simulation = Simulation::load(&config.clone().resolve().unwrap()).unwrap().with_stop(stop);
        let stopped = simulation.replay(&Progress::new(1));
        assert!(matches!(stopped, Err(RunError::Stopped { .. })), "{stopped:?}");
        let bytes = std::fs::read(folder.path("checkpoints/checkpoint.pdk")).unwrap();
        Self { folder, config, bytes }
    }

    fn write(&self, bytes: &[u8]) {
        std::fs::write(self.folder.path("checkpoints/checkpoint.pdk"), bytes).unwrap();
    }

    fn go_on(&self, settings: &[&str]) -> Result<(), RunError> {
        let mut config = self.config.clone();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
        simulation.replay(&Progress::new(simulation.spec().threads)).map(drop)
    }

    fn refusal(&self, settings: &[&str]) -> CheckpointError {
        match self.go_on(settings) {
            Err(RunError::Checkpoint(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn of_another_run() {
    let stopped = Stopped::new();
    let other = stopped.folder.path("other.pdt");
    crate::trace_commands::trace(&["generate", "ring", "--ranks=13", "--output"], &[&other]).success();
    let platform = committed_platform("fattree-hdr.toml");
    let inline = "platform.topology={ kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
    let cases = [
        (format!("trace.path={other:?}"), "the trace"),
        (format!("platform.file={platform:?}"), "the platform"),
        (inline.to_owned(), "the platform"),
        ("platform.routing=textbook".to_owned(), "the rule of routes"),
        ("network.preset=lv08".to_owned(), "[network]"),
        ("network.tcp_gamma=1".to_owned(), "[network]"),
        ("mpi.collectives=mpich".to_owned(), "[mpi] and [compute]"),
        ("mpi.envelope_bytes=17".to_owned(), "[mpi] and [compute]"),
        ("compute.region_speeds={ solver = 2.0 }".to_owned(), "[mpi] and [compute]"),
        ("analysis.critical_path=true".to_owned(), "analysis.critical_path"),
        ("timeline.file='run.json'".to_owned(), "the timeline"),
        ("engine.fast_forward=true".to_owned(), "engine.fast_forward"),
    ];
    for (setting, expected) in cases {
        let error = stopped.refusal(&[&setting]);
        assert!(
            matches!(&error, CheckpointError::OtherRun { part, .. } if part == expected),
            "{setting}: {error}"
        );
    }
    let platform = netmodel::Platform::from_path(&committed_platform("torus-5g.toml")).unwrap();
    let names: String = platform.hosts().iter().rev().map(|host| format!("{}\n", host.name)).collect();
    let hosts = stopped.folder.write("hosts.txt", &names);
    let error = stopped.refusal(&[&format!("platform.hosts={hosts:?}")]);
    assert!(
        matches!(&error, CheckpointError::OtherRun { part, .. } if part == "the placement of ranks"),
        "{error}"
    );
    // Threads and run-ahead do not change the result.
    stopped.go_on(&["engine.threads=3", "engine.run_ahead_s=1e-3", "parallel.partition=auto"]).unwrap();
}

/// Files of another version, truncated anywhere, extended, or of another format.
#[test]
fn of_another_format() {
    let stopped = Stopped::new();
    let bytes = &stopped.bytes;
    stopped.write(b"0 init\n");
    assert!(matches!(stopped.refusal(&[]), CheckpointError::Magic { .. }));
    let mut other = bytes.clone();
    other[8] += 1;
    stopped.write(&other);
    assert!(
        matches!(stopped.refusal(&[]), CheckpointError::Version { found, expected, .. } if found == expected + 1)
    );
    for len in (0..bytes.len()).step_by(bytes.len() / 50).chain([1, 8, 11, 12, 43, 44, 45, bytes.len() - 1]) {
        stopped.write(&bytes[..len]);
        let error = stopped.refusal(&[]);
        let is_cut = matches!(error, CheckpointError::Magic { .. } | CheckpointError::Damaged { .. });
        assert!(is_cut, "{len} bytes: {error}");
    }
    stopped.write(&[&bytes[..], &[0]].concat());
    assert!(matches!(stopped.refusal(&[]), CheckpointError::Damaged { .. }));
    stopped.write(bytes);
    stopped.go_on(&[]).unwrap();
}

/// Lengths that were changed, with a valid hash, must not allocate more memory than the size of the file.
#[test]
fn that_are_sealed_with_another_number_of_ranks() {
    let stopped = Stopped::new();
    let seal = |bytes: &[u8]| [bytes, blake3::hash(bytes).as_bytes()].concat();
    let body = &stopped.bytes[..stopped.bytes.len() - 32];
    stopped.write(&seal(&[body, &[1, 0, 0, 0, 7]].concat()));
    assert!(matches!(stopped.refusal(&[]), CheckpointError::Damaged { .. }));
    stopped.write(&seal(&[body, &u32::MAX.to_le_bytes()].concat()));
    assert!(matches!(stopped.refusal(&[]), CheckpointError::Damaged { .. }));
    let mut longer = body.to_vec();
    longer[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    stopped.write(&seal(&longer));
    assert!(matches!(stopped.refusal(&[]), CheckpointError::Damaged { .. }));
    for len in [16, 100, body.len() / 2, body.len() - 1] {
        stopped.write(&seal(&body[..len]));
        assert!(matches!(stopped.refusal(&[]), CheckpointError::Damaged { .. }), "{len} bytes");
    }
    stopped.write(&seal(body));
    stopped.go_on(&[]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn that_are_damaged(places in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 200)) {
        let stopped = Stopped::new();
        for (place, change) in places {
            let mut bytes = stopped.bytes.clone();
            bytes[place.index(stopped.bytes.len())] ^= change;
            stopped.write(&bytes);
            stopped.refusal(&[]);
        }
    }
}

/// The events of a timeline lie in a second file, which may be lost, damaged, or that of another checkpoint.
#[test]
fn that_have_lost_their_events() {
    let folder = Folder::new();
    let timeline = format!("timeline.file={:?}", folder.path("run.json"));
    let stopped = Stopped::with(folder, GENERATED[0], &[&timeline]);
    let find_events = || {
        let files = std::fs::read_dir(stopped.folder.path("checkpoints")).unwrap();
        let mut files = files.map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|extension| extension == "spool"))
    };
    let stop = StopHandle::default();
    stop.request();
    let simulation = Simulation::load(&stopped.config.clone().resolve().unwrap()).unwrap().with_stop(stop);
    // Ranks keep their first events themselves.
    let events = loop {
        if let Some(events) = find_events() {
            break events;
        }
        assert!(matches!(simulation.replay(&Progress::new(1)), Err(RunError::Stopped { .. })));
    };
    let bytes = std::fs::read(&events).unwrap();
    let refuse = || {
        let error = stopped.refusal(&[]);
        assert!(matches!(error, CheckpointError::Events { .. }), "{error}");
        assert!(error.to_string().contains("start from the beginning without --resume"), "{error}");
    };
    std::fs::write(&events, &bytes[..bytes.len() - 1]).unwrap();
    refuse();
    std::fs::remove_file(&events).unwrap();
    refuse();
    // Events after those of the checkpoint were lost with their run.
    std::fs::write(&events, [&bytes[..], b"more"].concat()).unwrap();
    stopped.go_on(&[]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever changes a state and seals it again gets a sentence, or a result: nothing else tells it from a state of the program.
    #[test]
    fn that_are_forged(places in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 60)) {
        let models: [&[&str]; 4] = [
            &[],
            &["network.model=flow"],
            &["network.model=flow", "network.epoch_s='auto'"],
            &["engine.fast_forward=true"],
        ];
        for model in models {
            let analyses = ["analysis.histograms=true", "analysis.matrix=true", "analysis.critical_path=true"];
            let settings = if model.contains(&"engine.fast_forward=true") { model.to_vec() } else { [model, &analyses].concat() };
            let stopped = Stopped::with(Folder::new(), GENERATED[3], &settings);
            let body = &stopped.bytes[..stopped.bytes.len() - 32];
            for &(place, change) in &places {
                let mut bytes = body.to_vec();
                bytes[12 + place.index(body.len() - 12)] ^= change;
                let hash = blake3::hash(&bytes);
                stopped.write(&[&bytes[..], hash.as_bytes()].concat());
                let _ = stopped.go_on(&[]);
            }
        }
    }
}

#[test]
fn unsupported_runs_refuse_checkpoints() {
    let folder = Folder::new();
    let trace = generate(&folder, GENERATED[3]);
    let refuse = |arguments: &[&str], expected: &str| {
        let mut command = command();
        command.arg("--trace").arg(&trace).arg("--platform").arg(committed_platform("torus-5g.toml"));
        command.args(arguments).assert().code(MISUSE).stderr(contains(expected));
    };
    let directory = folder.path("checkpoints");
    let with = ["--checkpoint", directory.to_str().unwrap()];
    refuse(&[&with[..], &["--model=contention-free", "--every=0s"]].concat(), "expected a time from 1ms");
    refuse(&[&with[..], &["--model=contention-free", "--every=often"]].concat(), "expected a time from 1ms");
    refuse(&["--model=contention-free", "--every=5m"], "name the directory");
    refuse(&["--model=contention-free", "--resume"], "name the directory");
    refuse(&[&with[..], &["--model=loggops"]].concat(), "GOAL");
    assert!(!directory.exists());
}

/// The first call of a nightly job.
#[test]
fn without_a_checkpoint_a_run_starts_from_the_beginning() {
    let folder = Folder::new();
    let trace = generate(&folder, GENERATED[3]);
    let mut command = command();
    command.arg("--trace").arg(&trace).arg("--platform").arg(committed_platform("torus-5g.toml"));
    command.args(["--model=contention-free", "--resume", "--checkpoint"]).arg(folder.path("some/where"));
    command.assert().code(DONE).stderr(contains("there is no checkpoint in"));
}
