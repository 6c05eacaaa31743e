//! A network model with regions that is none of ours: this file, and its row. It runs on any number of threads and processes, writes
//! checkpoints and is fast-forwarded, because its state is described.

use std::time::Duration;

use netmodel::{Capabilities, HostId, Message, NetworkModel, RouteError};
use pdes_core::{Cluster, EventQueue, Progress, RegionIndex, SimDuration, SimTime, State, StateVisitor};
use pdes_replay::{
    CheckpointPlan, Config, Model, Network, Outcome, Parallelism, RegionPlan, RegionalNetwork, RunError,
    RunSpec, Simulation,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use trace_tools::generate::{Halo3d, Halo3dParameters};

use crate::checkpoints::replay_spec_in_parts;
use crate::command_line::Folder;
use crate::forward::contention::generated;
use crate::matrix::results;
use crate::windows::TORUS;

/// Every message takes this time.
const LATENCY: SimDuration = SimDuration::from_picos(700_000);

/// A post that carries any number of messages at a time; hosts compute a floating-point operation in a nanosecond.
struct Post<'a, T> {
    /// The region, and the region of each host; `None` for the whole machine.
    part: Option<(RegionIndex, &'a [RegionIndex])>,
    now: SimTime,
    ends: EventQueue<T>,
    leaving: Vec<(RegionIndex, (SimTime, T))>,
}

impl<'a, T> Post<'a, T> {
    fn new(part: Option<(RegionIndex, &'a [RegionIndex])>) -> Self {
        Self { part, now: SimTime::ZERO, ends: EventQueue::default(), leaving: Vec::new() }
    }
}

impl<T: Copy + Send + Serialize + DeserializeOwned> NetworkModel<T> for Post<'_, T> {
    type Message = (SimTime, T);
    const MAX_ROUNDS: &'static [u32] = &[1];
    const BEGINS_ANYWHERE: bool = true;

    fn send(&mut self, Message { at, dst, tag, .. }: Message<T>) -> Result<(), RouteError> {
        let end = at.saturating_add(LATENCY);
        self.ends.add(end, tag);
        if let Some((index, hosts)) = self.part
            && hosts[dst.index()] != index
        {
            self.leaving.push((hosts[dst.index()], (end, tag)));
        }
        Ok(())
    }

    fn compute(&mut self, at: SimTime, _: HostId, flops: f64, tag: T) {
        self.schedule(at.saturating_add(SimDuration::from_picos((flops * 1e3) as u64)), tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.ends.add(at, tag);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        self.ends.next()
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.ends.next() else { return };
        self.now = now;
        done.extend(std::iter::from_fn(|| self.ends.pop_due(now)));
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.ends.iter().copied()
    }

    fn take_messages(&mut self, messages: &mut Vec<(RegionIndex, Self::Message)>) {
        messages.append(&mut self.leaving);
    }

    fn receive(&mut self, (end, tag): Self::Message) {
        self.ends.add(end, tag);
    }

    /// Between two spans nothing leaves.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        let Self { part: _, now, ends, leaving: _ } = self;
        visitor.time(now);
        ends.visit(visitor);
    }
}

/// The row.
static POST: Model = Model {
    key: "post",
    former_key: None,
    description: "Every message takes the same time.",
    section: None,
    network: Some(Network {
        capabilities: Capabilities { checkpoint: true, fast_forward: true, ..Capabilities::NONE },
        records_links: false,
        replay: |replay| replay.on(Post::new(None)).map(|(outcome, _)| outcome),
        regions: Some(RegionalNetwork {
            plan: Some(|_, platform, _| {
                let count = 5;
                let hosts = (0..platform.hosts().len() as u32).map(|host| host % count).collect();
                Ok(Some(RegionPlan { hosts, count, span: LATENCY, regions: None }))
            }),
            replay: |replay| {
                let hosts = replay.hosts();
                let networks = replay.numbers().map(|index| Post::new(Some((index, hosts)))).collect();
                Ok(replay.on(networks)?.into_outcome(|outcome| outcome))
            },
        }),
    }),
    with_epochs: None,
    parallelism: Parallelism::Regions,
    check: None,
    recurrence: None,
};

fn spec(folder: &Folder, settings: &[&str]) -> RunSpec {
    let parameters = Halo3dParameters { cells: [32; 3], iterations: 30, ..Halo3dParameters::default() };
    let trace = generated(folder, "halo.pdt", &Halo3d::new(parameters).unwrap(), None);
    let mut config = Config::default();
    config.set_path("trace", "path", &trace);
    [TORUS, "parallel.oversubscribe=true"]
        .iter()
        .chain(settings)
        .for_each(|setting| config.set(setting).unwrap());
    RunSpec { model: &POST, ..config.resolve().unwrap() }
}

fn replay(spec: &RunSpec, threads: usize, processes: usize) -> Result<Outcome, RunError> {
    let spec = RunSpec { threads, ..spec.clone() };
    let mut outcomes = Cluster::in_memory(processes, |mut cluster| {
        let simulation = Simulation::load_on(&mut cluster, &spec, &Default::default())?;
        simulation.run(&mut cluster, &Progress::new(threads))
    });
    outcomes.remove(0).expect("no process panics").map(|outcome| outcome.expect("it is the first"))
}

#[test]
fn its_regions_run_on_threads_and_processes() {
    let folder = Folder::new();
    let spec = spec(&folder, &[]);
    let expected = replay(&spec, 1, 1).unwrap();
    assert!(expected.simulated_time() > SimTime::ZERO + LATENCY);
    for (threads, processes) in [(2, 1), (3, 1), (1, 2), (2, 3), (1, 7)] {
        let found = replay(&spec, threads, processes).unwrap();
        assert!(results(&found) == results(&expected), "{threads} threads, {processes} processes");
    }
    let (directory, interval) = (folder.path("checkpoints"), Duration::from_secs(3600));
    let checkpoints = Some(CheckpointPlan { directory, interval, resume: true });
    let (found, parts) = replay_spec_in_parts(&RunSpec { checkpoints, ..spec });
    assert!(parts > 1 && results(&found.unwrap()) == results(&expected), "in {parts} parts");
}

#[test]
fn its_iterations_are_skipped() {
    let folder = Folder::new();
    let expected = replay(&spec(&folder, &[]), 1, 1).unwrap();
    for (threads, processes) in [(1, 1), (3, 1), (2, 2)] {
        let found = replay(&spec(&folder, &["engine.fast_forward=true"]), threads, processes).unwrap();
        assert!(found.fast_forward.unwrap().skipped_actions > 0);
        assert!(results(&found) == results(&expected), "{threads} threads, {processes} processes");
    }
}
