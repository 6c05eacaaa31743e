//! The seam of network models: a bus that carries one message at a time, in this file and one row of the registry.

use netmodel::{Capabilities, HostId, Message, NetworkModel, RouteError};
use pdes_core::{EventQueue, Progress, SimDuration, SimTime};
use pdes_replay::{
    Config, MODELS, Model, ModelSection, Network, Outcome, Parallelism, Report, RunError, Simulation,
};
use predicates::str::contains;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::command_line::{DONE, Folder, command};

/// A bus on which messages queue in the order of their submission, and arrive a latency after they have left; computations take no time.
struct Bus<T> {
    section: BusSection,
    now: SimTime,
    idle_from: SimTime,
    leaving: EventQueue<T>,
    left: Vec<T>,
    ends: EventQueue<T>,
    messages: u64,
}

impl<T> Bus<T> {
    fn new(section: BusSection) -> Self {
        let (now, idle_from) = (SimTime::ZERO, SimTime::ZERO);
        let (leaving, left, ends) = (EventQueue::default(), Vec::new(), EventQueue::default());
        Self { section, now, idle_from, leaving, left, ends, messages: 0 }
    }
}

impl<T: Copy> NetworkModel<T> for Bus<T> {
    type Message = ();
    const ENDS_APART: bool = true;

    fn send(&mut self, Message { at, size, tag, .. }: Message<T>) -> Result<(), RouteError> {
        let BusSection { picos_per_byte, picos_of_latency } = self.section;
        let duration = SimDuration::from_picos(picos_per_byte * size.get());
        self.idle_from = self.idle_from.max(at).saturating_add(duration);
        self.messages += 1;
        self.leaving.add(self.idle_from, tag);
        self.schedule(self.idle_from.saturating_add(SimDuration::from_picos(picos_of_latency)), tag);
        Ok(())
    }

    fn compute(&mut self, at: SimTime, _: HostId, _: f64, tag: T) {
        self.schedule(at, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.ends.add(at, tag);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        self.ends.next().into_iter().chain(self.leaving.next()).min()
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.next_event() else { return };
        self.now = now;
        self.left.extend(std::iter::from_fn(|| self.leaving.pop_due(now)));
        done.extend(std::iter::from_fn(|| self.ends.pop_due(now)));
    }

    fn take_left(&mut self, left: &mut Vec<T>) {
        left.append(&mut self.left);
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.ends.iter().copied()
    }
}

/// The section `[bus]` of the configuration.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
struct BusSection {
    picos_per_byte: u64,
    picos_of_latency: u64,
}

/// The row.
static BUS: Model = Model {
    key: "bus",
    former_key: None,
    description: "One message at a time.",
    section: Some(ModelSection::of::<BusSection>()),
    network: Some(Network {
        capabilities: Capabilities::NONE,
        records_links: false,
        replay: |replay| {
            let section = replay.model_parameters().clone().try_into().expect("the section was checked");
            replay.on(Bus::new(section)).map(|(outcome, bus)| {
                let statistics = serde_json::json!({ "messages": bus.messages });
                Outcome { model_statistics: Some(statistics), ..outcome }
            })
        },
        regions: None,
    }),
    with_epochs: None,
    parallelism: Parallelism::None,
    check: None,
    recurrence: None,
};

/// Two messages of a kilobyte between four ranks, with their envelopes.
const TRACE: &str =
    "0 init\n1 init\n2 init\n3 init\n0 send 1 0 984\n1 recv 0 0 984\n2 send 3 0 984\n3 recv 2 0 984\n";

fn load(model: &'static Model, picos_of_latency: i64, settings: &[&str]) -> Result<Simulation, RunError> {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let mut config = Config::default();
    config.set_path("trace", "path", &trace);
    let topology = "platform.topology={ kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '0s' }";
    for setting in [&[topology, "network.preset='raw'"], settings].concat() {
        config.set(setting).unwrap();
    }
    let mut spec = config.resolve().unwrap();
    spec.model = model;
    spec.model_parameters.insert("picos_per_byte".to_owned(), 1000.into());
    spec.model_parameters.insert("picos_of_latency".to_owned(), picos_of_latency.into());
    Simulation::load(&spec)
}

fn simulated_time(model: &'static Model) -> u64 {
    let simulation = load(model, 0, &[]).unwrap();
    simulation.replay(&Progress::new(1)).unwrap().simulated_time().as_picos()
}

#[test]
fn a_network_model_is_a_file_and_a_row() {
    assert_eq!(simulated_time(&MODELS[0]), 1_000_000, "the messages have links of their own");
    assert_eq!(simulated_time(&BUS), 2_000_000, "one message waits for the other");
    let simulation = load(&BUS, 0, &[]).unwrap();
    let report = Report::new(&simulation, &simulation.replay(&Progress::new(1)).unwrap());
    assert_eq!(report.model_statistics, Some(serde_json::json!({ "messages": 2 })));
}

/// The sender of a rendezvous waits until its message has left, the receiver until it has arrived; a smaller message leaves its sender at
/// once.
#[test]
fn senders_end_before_receivers() {
    for (limit, senders) in [(0, [1_000_000, 2_000_000]), (2000, [0, 0])] {
        let setting = format!("mpi.detached_below_bytes={limit}");
        let simulation = load(&BUS, 5000, &[&setting]).unwrap();
        let ends = simulation.replay(&Progress::new(1)).unwrap().into_program().ends;
        let picos: Vec<u64> = ends.iter().map(|end| end.as_picos()).collect();
        assert_eq!(picos, [senders[0], 1_005_000, senders[1], 2_005_000], "detached below {limit} bytes");
    }
}

/// Warnings follow from the capabilities of the row.
#[test]
fn warnings_name_what_a_model_cannot_do() {
    let settings = ["engine.threads=2", "engine.fast_forward=true", "analysis.links=true"];
    let warnings = load(&BUS, 0, &settings).unwrap().warnings();
    for words in [
        "the exact model \"bus\" runs on one thread: the model has one order of events; for 2 threads take network.model = \"contention-free\"",
        "with the model \"bus\" what happens depends on more than how much later",
        "the model \"bus\" knows no links; take network.model = \"flow\"",
    ] {
        assert!(warnings.iter().any(|warning| warning.contains(words)), "{words}: {warnings:?}");
    }
}

/// The former name of a model has the same result, and a hint once, unless the command is quiet.
#[test]
fn a_former_name_is_accepted_with_a_hint() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let platform = "[topology]\nkind = \"cluster\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"0s\"\n";
    let platform = folder.write("platform.toml", platform);
    let config = folder.write("run.toml", "[network]\nmodel = \"loggps\"\npreset = \"raw\"\n");
    let run = |flags: &[&str]| {
        let mut run = command();
        run.arg("--trace").arg(&trace).arg("--platform").arg(&platform).args(flags);
        run
    };
    let file = ["--config", config.to_str().unwrap()];
    let hint = "the model \"loggps\" is called \"contention-free\" now";
    for flags in [&file[..], &["--model=loggps"], &["--set=network.model=loggps"]] {
        let assert = run(flags).assert().code(DONE).stderr(contains(hint).count(1));
        assert.stdout(contains("simulated time: 0.00000"));
        run(&[flags, &["--quiet"]].concat()).assert().code(DONE).stderr("");
    }
    run(&["--model=contention-free"]).assert().code(DONE).stderr(contains("is called").count(0));
}
