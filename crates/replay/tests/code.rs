//! Programs in code: the same answers as their traces, on any number of threads, and decisions by what they are told.
#![expect(clippy::duplicate_mod, reason = "the examples, each of which is a program, have a part in common")]

#[path = "code/examples.rs"]
mod examples;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mpi_model::{ActionKind, Excerpt, Outcomes, Overhead, Progress as MessageProgress};
use pdes_core::{Cluster, Progress, Rank, SimDuration, SimTime};
use replay::{
    CheckpointPlan, CodeProgram, Data, Digest, Epoch, Feature, Model, Mpi, NetworkPreset, Outcome,
    PartitionSource, PlatformSource, Polling, ProgramSpec, RunError, RunSpec, Simulation, Start,
    TimelineFormat, TimelinePlan,
};
use trace_mmap::{Collective, Datatype};

/// Two links of 1 us each and 1 GB/s; 984 B and the envelope take 1 us more.
const CLUSTER: &str =
    "topology = { kind = 'cluster', hosts = 8, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";

/// Changes of a run.
type Setting = fn(&mut RunSpec);

/// Without contention; exact contention; contention with epochs.
const MODELS: [Setting; 3] =
    [|spec| spec.model = Model::uncontended(), |_| {}, |spec| spec.epoch = Epoch::Auto];

/// Returns the run of a trace.
fn spec_of(trace: &Path, settings: &[Setting]) -> RunSpec {
    let platform = PlatformSource::Inline(Box::new(toml::from_str(CLUSTER).unwrap()), None);
    let mut spec = RunSpec::new(trace, platform, NetworkPreset::find("raw").unwrap());
    spec.oversubscribe = true;
    settings.iter().for_each(|set| set(&mut spec));
    spec
}

fn spec(code: &CodeProgram, settings: &[Setting]) -> RunSpec {
    spec_of(Path::new(""), settings).with_code(code.clone())
}

fn run(spec: &RunSpec, jitter: Option<u64>) -> Result<(Simulation, Outcome), RunError> {
    let simulation = Simulation::load(spec)?.with_jitter(jitter);
    let outcome = simulation.replay(&Progress::new(spec.threads))?;
    Ok((simulation, outcome))
}

fn digest(outcome: &Outcome) -> String {
    Digest::of(outcome.program().ends.iter().copied().zip(&outcome.program().statistics)).to_string()
}

/// Runs a program on some numbers of threads, with schedules that are perturbed; returns the one digest of all.
fn digest_of_all(code: &CodeProgram, settings: &[Setting]) -> String {
    let spec = spec(code, settings);
    let runs = [(1, None), (2, None), (3, None), (2, Some(1)), (3, Some(7))]
        .map(|(threads, jitter)| digest(&run(&RunSpec { threads, ..spec.clone() }, jitter).unwrap().1));
    assert!(runs.iter().all(|run| *run == runs[0]), "{}: {runs:?}", spec.model.key);
    runs[0].clone()
}

fn micros(time: u64) -> SimTime {
    SimTime::from_picos(time * 1_000_000)
}

const ALL_CALLS: &str = "R init
R compute 1e6*R
R irecv L 7 70000
R isend N 7 70000
R wait L R 7
R wait R N 7
R allreduce 984 1e5 6
R bcast 100000 2 6
R barrier
R iallreduce 8 0 6 req=3
R compute 2e5
R wait req=3
R alltoall 500 500 6 6
R sleep 1e-5
";

/// The program of [`ALL_CALLS`]; the first two ranks exchange messages for which the sender waits, and one that is probed for.
async fn all_calls(mpi: Mpi) {
    let (me, size) = (mpi.rank(), mpi.size());
    let (before, after) = ((me + size - 1) % size, (me + 1) % size);
    mpi.compute(1e6 * f64::from(me)).await;
    let received = mpi.ireceive(before, 7, 70_000).await;
    let sent = mpi.isend(after, 7, 70_000).await;
    mpi.wait(received).await;
    mpi.wait(sent).await;
    mpi.all_reduce(984, 1e5).await;
    mpi.broadcast(2, 100_000).await;
    mpi.barrier().await;
    let reduction = Collective::Allreduce { count: 8, flops: 0.0, datatype: Datatype::BYTE };
    let reduced = mpi.icollective(reduction).await;
    mpi.compute(2e5).await;
    mpi.wait(reduced).await;
    let (send_type, recv_type) = (Datatype::BYTE, Datatype::BYTE);
    mpi.collective(Collective::Alltoall { send_count: 500, recv_count: 500, send_type, recv_type }).await;
    mpi.sleep(1e-5).await;
    if me == 0 {
        mpi.synchronous_send(1, 3, 984).await;
        mpi.receive(1, None, 1000).await;
    } else if me == 1 {
        mpi.probe(0, 3).await;
        mpi.receive(0, 3, 984).await;
        mpi.send(0, 9, 1000).await;
    }
}

/// Returns the calls of all ranks but `init`: how many there are of each kind, and how long they take.
fn calls(outcome: &Outcome) -> Vec<Vec<(ActionKind, u64, SimDuration)>> {
    let of_rank = |rank: &mpi_model::Statistics| {
        let kinds = rank.kinds().filter(|kind| *kind != ActionKind::Marker);
        kinds.map(|kind| (kind, rank.count(kind), rank.time(kind))).collect()
    };
    outcome.program().statistics.iter().map(of_rank).collect()
}

#[test]
fn a_program_does_what_its_trace_does() {
    let ranks = 5;
    let code = CodeProgram::new("all calls", ranks, all_calls);
    let mut text = String::new();
    for rank in 0..ranks {
        let [before, after] = [rank + ranks - 1, rank + 1].map(|peer| (peer % ranks).to_string());
        let lines = ALL_CALLS.replace("1e6*R", &format!("{}", 1e6 * f64::from(rank)));
        text += &lines.replace('R', &rank.to_string()).replace('L', &before).replace('N', &after);
    }
    text += "0 ssend 1 3 984\n0 recv 1 -444 1000\n1 probe 0 3\n1 recv 0 3 984\n1 send 0 9 1000\n";
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.txt");
    std::fs::write(&trace, &text).unwrap();
    let plain: Setting = |_| {};
    let overheads: Setting = |spec| {
        let overhead: Overhead = "0:1us:1e-10".parse().unwrap();
        (spec.mpi.send, spec.mpi.isend, spec.mpi.receive) = (overhead.clone(), overhead.clone(), overhead);
    };
    let in_calls: Setting = |spec| spec.mpi.progress = MessageProgress::Calls;
    for model in MODELS {
        for library in [plain, overheads, in_calls] {
            let settings = [model, library];
            let (_, expected) = run(&spec_of(&trace, &settings), None).unwrap();
            let (simulation, found) = run(&spec(&code, &settings), None).unwrap();
            assert_eq!(found.program().ends, expected.program().ends);
            assert_eq!(calls(&found), calls(&expected));
            // `init` is an action of the trace.
            assert_eq!(simulation.actions(&found) + u64::from(ranks), text.lines().count() as u64);
            digest_of_all(&code, &settings);
        }
    }
}

#[test]
fn analyses_do_not_change_a_program() {
    let code = CodeProgram::new("all calls", 5, all_calls);
    let folder = tempfile::tempdir().unwrap();
    let plan = TimelinePlan {
        path: folder.path().join("timeline.json"),
        format: TimelineFormat::Chrome,
        excerpt: Excerpt::default(),
    };
    for model in MODELS {
        let plain = digest_of_all(&code, &[model]);
        for threads in [1, 3] {
            let spec = RunSpec {
                threads,
                waits: Some(true),
                histograms: true,
                matrix_groups: Some(5),
                critical_path: true,
                timeline: Some(plan.clone()),
                ..spec(&code, &[model])
            };
            let (_, outcome) = run(&spec, None).unwrap();
            assert_eq!(digest(&outcome), plain);
            let findings = &outcome.program().findings;
            let path = findings.critical_path.as_ref().expect("it was asked for");
            assert_eq!(path.end(), outcome.simulated_time());
            let sent: u64 = outcome.program().statistics.iter().map(|rank| rank.messages).sum();
            assert!(sent > 0 && findings.matrix.is_some() && findings.distributions.is_some());
            assert!(std::fs::read_to_string(&plan.path).unwrap().contains("alltoall"));
        }
    }
}

/// Results that ranks note beside the simulation, by rank.
type Notes = Arc<Mutex<BTreeMap<u32, Vec<u32>>>>;

/// A master, which gives each of `tasks` to the worker that asks first, and workers that need 1, 3, 5 ... ms for a task.
fn master_and_workers(ranks: u32, tasks: u32, notes: &Notes) -> CodeProgram {
    let notes = Arc::clone(notes);
    CodeProgram::new("master and workers", ranks, move |mpi| {
        let notes = Arc::clone(&notes);
        async move {
            let (me, size) = (mpi.rank(), mpi.size());
            if me > 0 {
                loop {
                    mpi.send(0, 1, Data::new(984, me)).await;
                    let task = mpi.receive(0, None, 984).await;
                    let Some(&task) = task.value::<u32>() else { return };
                    mpi.compute(1e6 * f64::from(2 * me - 1)).await;
                    notes.lock().unwrap().entry(me).or_default().push(task);
                }
            }
            for task in 0..tasks + size - 1 {
                let asked = mpi.receive(None, 1, 984).await;
                assert_eq!(asked.value(), Some(&asked.source));
                let answer = if task < tasks { Data::new(984, task) } else { 984.into() };
                mpi.send(asked.source, 2, answer).await;
            }
        }
    })
}

#[test]
fn a_master_gives_work_to_whoever_asks_first() {
    let notes = Notes::default();
    let code = master_and_workers(3, 6, &notes);
    for threads in 1..4 {
        notes.lock().unwrap().clear();
        // A program that runs has no recorded outcomes.
        let recorded: Setting = |spec| spec.mpi.outcomes = Outcomes::Recorded;
        let spec = RunSpec { threads, ..spec(&code, &[MODELS[0], recorded]) };
        let (simulation, outcome) = run(&spec, None).unwrap();
        // A request and its answer take 3 us each, once their receives are posted: the first answer to rank 2 comes at 9 us. Rank 1 asks at
        // 0, 1006, 2012 and 3018 us, rank 2 at 0 and 3009 us.
        assert_eq!(*notes.lock().unwrap(), BTreeMap::from([(1, vec![0, 2, 3, 5]), (2, vec![1, 4])]));
        assert_eq!(outcome.program().ends, [6018, 4030, 6021].map(micros));
        assert_eq!(simulation.actions(&outcome), 2 * 8 + (2 * 6 + 2 * 2) + 6);
        assert_eq!(outcome.program().statistics[0].outcomes().different, 0);
    }
    let many = master_and_workers(8, 60, &notes);
    for model in MODELS {
        digest_of_all(&many, &[model]);
    }
}

/// A program in code, and its trace, beside each other; the later one is late by as much, where messages share no links.
#[test]
fn programs_run_beside_others() {
    let notes = Notes::default();
    let alone = spec(&master_and_workers(3, 6, &notes), &MODELS[..1]);
    let other = ProgramSpec { start: Start::At(micros(500)), ..alone.program() };
    let ends =
        |outcome: &Outcome| outcome.programs.iter().map(|program| program.ends.clone()).collect::<Vec<_>>();
    for (number, model) in MODELS.into_iter().enumerate() {
        let beside = spec(&master_and_workers(3, 6, &notes), &[model]);
        let beside = RunSpec { other_programs: vec![other.clone()], ..beside };
        let runs =
            [1, 2, 3].map(|threads| ends(&run(&RunSpec { threads, ..beside.clone() }, None).unwrap().1));
        assert!(runs.iter().all(|run| *run == runs[0]), "model {number}: {runs:?}");
        let processes = Cluster::in_memory(2, |mut cluster| {
            let simulation = Simulation::load_on(&mut cluster, &beside, &Default::default()).unwrap();
            simulation.run(&mut cluster, &Progress::new(1)).unwrap()
        });
        let [first, other] = processes.try_into().expect("there are two processes");
        let first = first.expect("no process panics").expect("the first has the outcome");
        assert!(other.expect("no process panics").is_none());
        assert_eq!(ends(&first), runs[0], "model {number}");
        if number == 0 {
            let expected = [6018, 4030, 6021];
            assert_eq!(
                runs[0],
                [expected.map(micros).to_vec(), expected.map(|end| micros(end + 500)).to_vec()]
            );
        }
    }
}

#[test]
fn programs_share_values() {
    async fn rank(mpi: Mpi) {
        let (me, size) = (mpi.rank(), mpi.size());
        let sum: f64 = mpi.all_reduce(Data::of(f64::from(me)), 8.0).await.values::<f64>().sum();
        assert_eq!(sum, 15.0);
        let data = if me == 3 { Data::new(80, "from rank 3") } else { 80.into() };
        assert_eq!(mpi.broadcast(3, data).await.value(), Some(&"from rank 3"));
        // Odd and even ranks, in the order of falling ranks; rank 5 is in none.
        let color = (me < 5).then_some(me % 2);
        let Some(part) = mpi.split(color, -i64::from(me)).await else { return };
        let members: Vec<u32> = part.all_gather(Data::of(me)).await.values().copied().collect();
        assert_eq!(members, if me % 2 == 0 { vec![4, 2, 0] } else { vec![3, 1] });
        assert_eq!((part.size(), members[part.rank() as usize]), (members.len() as u32, me));
        // Messages of two communicators with one tag.
        if part.rank() == 0 {
            part.send(1, 5, Data::of(me)).await;
            mpi.send(members[1], 5, Data::of(100 + me)).await;
        } else if part.rank() == 1 {
            let other = mpi.receive(members[0], 5, 4).await;
            let own = part.receive(None, None, 4).await;
            assert_eq!((other.value(), own.value()), (Some(&(100 + members[0])), Some(&members[0])));
            assert_eq!((other.source, own.source, own.tag, own.data.bytes()), (members[0], 0, 5, 4));
        }
        let again = part.split(Some(0), 0).await.expect("all have a color");
        assert_eq!((again.rank(), again.size(), size), (part.rank(), part.size(), 6));
        again.barrier().await;
    }
    let code = CodeProgram::new("values", 6, rank);
    MODELS.iter().for_each(|model| drop(digest_of_all(&code, &[*model])));
}

#[test]
fn programs_learn_what_is_complete() {
    /// Rank 0 learns when the messages of the others come, at 1003, 2003 and 3003 us.
    async fn rank(mpi: Mpi) {
        let me = mpi.rank();
        if me > 0 {
            mpi.compute(1e6 * f64::from(me)).await;
            mpi.send(0, me, Data::new(984, me)).await;
            return;
        }
        let mut requests = Vec::new();
        for peer in [3, 1, 2] {
            requests.push(mpi.ireceive(peer, peer, 984).await);
        }
        let late = requests.remove(0);
        let (index, message) = mpi.wait_any(&mut requests).await;
        assert_eq!((index, message.unwrap().source), (0, 1));
        assert!((micros(1002)..micros(1006)).contains(&mpi.time()), "{}", mpi.time());
        let late = mpi.test(late).await.expect_err("it comes later");
        assert!(mpi.try_probe(None, None).await.is_none());
        mpi.compute(3e6).await;
        let message = mpi.test(late).await.expect("it has come").expect("it is a receive");
        assert_eq!(message.value(), Some(&3_u32));
        // The last one is left to the end of the program.
    }
    let code = CodeProgram::new("completions", 4, rank);
    let free: Setting = |spec| {
        spec.polling =
            Polling { test: Some(SimDuration::ZERO), grows: None, iprobe: Some(SimDuration::ZERO) };
    };
    for model in MODELS {
        digest_of_all(&code, &[model, free]);
    }
    let (_, outcome) = run(&spec(&code, &[MODELS[0], free]), None).unwrap();
    assert_eq!(outcome.program().ends[0], micros(4003));
}

#[test]
fn mistakes_are_named() {
    async fn mistake(mpi: Mpi, number: u32) {
        if mpi.rank() == 1 {
            mpi.receive(0, 0, 8).await;
            return;
        }
        match number {
            0 => mpi.send(2, 0, 8).await,
            1 => mpi.send(1, u32::MAX, 8).await,
            2 => mpi.compute(-1.0).await,
            3 => mpi.send(1, 0, 1 << 60).await,
            4 => {
                mpi.collective(Collective::Bcast { count: 8, root: Rank::new(2), datatype: Datatype::BYTE })
                    .await
            }
            5 => std::future::pending().await,
            6 => {
                let (mut one, mut other) = (Box::pin(mpi.compute(1.0)), Box::pin(mpi.sleep(1.0)));
                let both = std::future::poll_fn(|context| {
                    let polls = [one.as_mut().poll(context), other.as_mut().poll(context)];
                    if polls.iter().all(|poll| poll.is_ready()) { polls[0] } else { std::task::Poll::Pending }
                });
                both.await;
            }
            7 => mpi.send(1, 0, 16).await,
            8 => mpi.abort("the residual grows").await,
            9 => mpi.synchronous_send(1, 7, 8).await,
            _ => mpi.barrier().await,
        }
    }
    let expected = [
        "rank 0, action 0: send: a peer is rank 2, expected one below 2",
        "send: the tag is 4294967295, expected at most 2147483647",
        "compute: an amount is -1, expected a finite number that is not negative",
        "send: a message has 1152921504606846976 bytes, expected at most 281474976710656",
        "bcast: a peer, root, member or neighbour is rank 2, expected one below 2",
        "the program awaits something else than a call of its Mpi",
        "a call is made while another one is in progress",
        "the message from rank 0 has 16 B, but the receive that matches it has room for 8 B",
        "rank 0, action 0: the residual grows",
        "rank 0 waits in action 0 for rank 1 to receive its message",
        "rank 1 waits in action 0 for a message from rank 0",
    ];
    for (number, expected) in (0..).zip(expected) {
        let code = CodeProgram::new("mistakes", 2, move |mpi| mistake(mpi, number));
        for model in MODELS {
            let error = run(&spec(&code, &[model]), None).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{number}: {error}");
            assert!(matches!(number, 9..) || error.contains("mistakes"), "{error}");
        }
    }
}

#[test]
fn what_programs_cannot_have_is_named() {
    let code = CodeProgram::new("all calls", 5, all_calls);
    let folder = tempfile::tempdir().unwrap();
    let plan = CheckpointPlan {
        directory: folder.path().join("checkpoints"),
        interval: Duration::from_millis(1),
        resume: false,
    };
    let saved = RunSpec { checkpoints: Some(plan), ..spec(&code, &[]) };
    let refused = Simulation::load(&saved).map(|_| ()).unwrap_err().to_string();
    assert_eq!(refused, "the state of a program in code is not saved: leave checkpoints out");
    let profiled = RunSpec { profile: Some(folder.path().join("profile.json")), ..spec(&code, &MODELS[..1]) };
    let refused = Simulation::load(&profiled).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("a profile is that of a trace"), "{refused}");
    let lesser =
        RunSpec { fast_forward: true, partition: PartitionSource::Auto, ..spec(&code, &MODELS[..1]) };
    let (simulation, outcome) = run(&lesser, None).unwrap();
    assert!(outcome.fast_forward.is_none() && outcome.cuts.is_none());
    let warnings = simulation.warnings().join("\n");
    for expected in [
        "nothing is fast-forwarded: what a program in code does next is not known before it runs",
        "the messages of a program in code are not known before it runs",
    ] {
        assert!(warnings.contains(expected), "{warnings}");
    }
    let why = simulation.execution(2).obstacle(Feature::Processes).map(ToString::to_string);
    assert!(why.is_some_and(|why| why.contains("one process runs all of them")));
}
