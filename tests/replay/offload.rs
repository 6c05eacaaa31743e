//! Regions of programs that accelerators compute: times, loads and energy, on all models, threads, with checkpoints and fast-forward.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use pdes_core::Progress;
use pdes_replay::{CheckpointPlan, Config, Outcome, Report, RunError, RunSpec, Simulation, StopHandle};

use crate::command_line::{Folder, command};
use crate::matrix::digest;

/// Nodes with two accelerators each, 20 times as fast as one of the four cores, on a switch.
fn nodes(number: u32, streams: u32) -> String {
    let mut text = "topology = { kind = \"graph\" }\n".to_owned();
    for node in 0..number {
        writeln!(text, "[[host]]\nname = \"n{node}\"\nspeed = \"1Gf\"\ncores = 4").unwrap();
        writeln!(text, "[[link]]\nname = \"eth{node}\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"").unwrap();
        for gpu in ["gpu-0", "gpu-1"] {
            writeln!(text, "[[host]]\nname = \"n{node}-{gpu}\"\nspeed = \"20Gf\"\ncores = {streams}")
                .unwrap();
            writeln!(
                text,
                "[[link]]\nname = \"pcie-{node}-{gpu}\"\nbandwidth = \"10GBps\"\nlatency = \"1us\""
            )
            .unwrap();
            writeln!(
                text,
                "[[route]]\nsrc = \"n{node}\"\ndst = \"n{node}-{gpu}\"\nlinks = [\"pcie-{node}-{gpu}\"]"
            )
            .unwrap();
        }
        for other in 0..node {
            writeln!(
                text,
                "[[route]]\nsrc = \"n{node}\"\ndst = \"n{other}\"\nlinks = [\"eth{node}\", \"eth{other}\"]"
            )
            .unwrap();
        }
    }
    text
}

/// Two ranks on each node: each iteration computes on the host, on an accelerator, and exchanges a message with the next node.
fn program(ranks: u32, iterations: u32) -> String {
    let mut text = String::new();
    for rank in 0..ranks {
        let (next, before) = ((rank + 2) % ranks, (rank + ranks - 2) % ranks);
        for _ in 0..iterations {
            writeln!(text, "{rank} location prepare 0\n{rank} compute {}", 1_000_000).unwrap();
            writeln!(text, "{rank} location solve 0\n{rank} compute 4e7\n{rank} location halo 0").unwrap();
            writeln!(text, "{rank} sendRecv 20000 {next} 20000 {before} 6 6").unwrap();
        }
    }
    text
}

const OFFLOAD: &str =
    "compute.offload=[{ region = 'solve', to = '{host}-gpu-*', copy_in = '10MB', copy_out = '1MB' }]";

fn spec(folder: &Folder, platform: &str, trace: &Path, settings: &[&str]) -> RunSpec {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &folder.write("nodes.toml", platform));
    config.set("network.preset='raw'").unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config.resolve().unwrap()
}

fn simulation(folder: &Folder, platform: &str, trace: &Path, settings: &[&str]) -> Simulation {
    Simulation::load(&spec(folder, platform, trace, settings)).unwrap()
}

fn outcome(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

/// One rank: 5 ms on its host, 1 us + 1 ms to copy 10 MB at 10 GB/s, 2 ms on the accelerator, 1 us + 0.1 ms back, 1 ms on its host.
#[test]
fn a_region_takes_the_time_of_its_accelerator_and_of_its_copies() {
    let folder = Folder::new();
    let text = "0 init\n0 compute 5e6\n0 location solve 0\n0 compute 3e7\n0 location solve 0\n0 compute 1e7\n0 location after 0\n0 compute 1e6\n0 finalize\n";
    let trace = folder.write("trace.txt", text);
    for model in ["network.model='flow'", "network.model='contention-free'", "network.epoch_s='1us'"] {
        let outcome = outcome(&simulation(&folder, &nodes(2, 1), &trace, &[OFFLOAD, model]));
        assert_eq!(outcome.program().ends[0].as_picos(), 9_102_000_000, "{model}");
        let statistics = &outcome.program().statistics[0];
        let time = |kind: &str| {
            let kinds = statistics.kinds().filter(|known| known.name() == kind);
            kinds.map(|kind| statistics.time(kind).as_picos()).sum::<u64>()
        };
        assert_eq!([time("compute"), time("copy")], [8_000_000_000, 1_102_000_000], "{model}");
    }
}

/// Three ranks of a node on two accelerators: the first and the third have one core, or two streams, of the same one.
#[test]
fn ranks_share_accelerators_in_turn() {
    let folder = Folder::new();
    let text: String = (0..3).map(|rank| format!("{rank} location solve 0\n{rank} compute 2e8\n")).collect();
    let trace = folder.write("trace.txt", &text);
    let offload = "compute.offload=[{ region = 'sol*', to = '{host}-gpu-*' }]";
    for (streams, model, expected) in
        [(1, "flow", [20, 10, 20]), (2, "flow", [10; 3]), (1, "contention-free", [10; 3])]
    {
        let model = format!("network.model='{model}'");
        // Ranks are placed on hosts, not on accelerators.
        let outcome = outcome(&simulation(&folder, &nodes(1, streams), &trace, &[offload, &model]));
        let ends = outcome.program().ends.iter();
        let millis: Vec<u64> = ends.map(|end| end.as_picos() / 1_000_000_000).collect();
        assert_eq!(millis, expected, "{streams} streams, {model}");
    }
}

/// A fat tree, a torus or a switch whose hosts have accelerators.
fn cluster(network: &str, accelerators: &str) -> String {
    let rates = "speed = '1Gf', cores = 4, bandwidth = '1GBps', latency = '1us'";
    format!(
        "[topology]\n{network}\nprefix = 'n'\naccelerators = {{ {accelerators} }}\n{}\n",
        rates.replace(", ", "\n")
    )
}

const GPUS: &str = "count = 2, speed = '20Gf', bandwidth = '10GBps', latency = '1us'";

/// Hosts of a topology have accelerators as if all routes were listed.
#[test]
fn accelerators_of_topologies_are_those_of_listed_routes() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &program(12, 3));
    let star = cluster("kind = 'cluster'\nhosts = 6\nsharing = 'shared'", GPUS);
    for model in ["network.model='flow'", "network.model='contention-free'", "network.epoch_s='auto'"] {
        let of = |platform: &str, more: &[&str]| {
            let settings = [&[OFFLOAD, model, "platform.placement='cyclic'"], more].concat();
            digest(&outcome(&simulation(&folder, platform, &trace, &settings)))
        };
        let listed = of(&nodes(6, 1), &[]);
        assert_eq!(of(&star, &[]), listed, "{model}");
        // Without accelerators ranks wait for one core of their host: another answer.
        assert_ne!(of(&star, &["compute.offload=[]"]), listed, "{model}");
    }
}

/// Policies place ranks on hosts; hosts files may name accelerators. Packets cross their cables, on any routing but those of regular networks.
#[test]
fn ranks_and_packets_go_to_accelerators_of_topologies() {
    let folder = Folder::new();
    let tree = "kind = 'fat_tree'\nlevels = [{ children = 2, parents = 1 }, { children = 2, parents = 2 }]";
    let platform = cluster(tree, GPUS);
    let trace = folder.write("trace.txt", "0 send 1 0 40960 6\n1 recv 0 0 40960 6\n");
    let hosts = folder.write("hosts", "n0-gpu-1\nn3-gpu-0\n");
    let hosts = format!("platform.hosts={:?}", hosts.to_str().unwrap());
    let end_on = |threads, settings: &[&str]| {
        let settings = [&["mpi.envelope_bytes=0"], settings].concat();
        let outcome = outcome(&simulation(&folder, &platform, &trace, &settings).with_threads(threads));
        outcome.program().ends[1].as_picos()
    };
    let end = |settings: &[&str]| end_on(1, settings);
    // 40,960 B at 1 GB/s and six cables of 1 us; or, between hosts of a leaf, two.
    assert_eq!(end(&["network.model='flow'", &hosts]), 46_960_000);
    assert_eq!(end(&["network.model='flow'", "platform.placement='cyclic'"]), 42_960_000);
    for routing in ["minimal", "spray", "adaptive"] {
        let routing = format!("packets.routing={routing:?}");
        let of = |threads| end_on(threads, &["network.model='packets'", &routing, &hosts]);
        let alone = of(1);
        // The answer to a message that is not eager takes a latency. The last packet of 4 KiB is stored and forwarded on six cables, two of
        // them ten times as fast.
        assert_eq!(alone, 46_960_000 + 6_000_000 + 3 * 4_096_000 + 2 * 409_600, "{routing}");
        assert_eq!(of(2), alone, "{routing}");
    }
    let settings =
        ["network.model='packets'", "packets.queues='credits'", "packets.routing='ugal-l'", &hosts];
    let error = Simulation::load(&spec(&folder, &platform, &trace, &settings)).unwrap_err().to_string();
    assert!(error.contains("hosts with accelerators"), "{error}");
}

/// The same digest on threads, in windows, with epochs, from checkpoints, and with fast-forward.
#[test]
fn accelerators_work_with_threads_checkpoints_and_fast_forward() {
    let folder = Folder::new();
    let text = folder.write("trace.txt", &program(96, 40));
    let archive = folder.path("trace.pdt");
    command().args(["trace", "convert"]).arg(&text).arg("-o").arg(&archive).assert().success();
    let platform = nodes(48, 1);
    for model in ["network.model='flow'", "network.model='contention-free'", "network.epoch_s='auto'"] {
        let whole = spec(&folder, &platform, &archive, &[OFFLOAD, model, "platform.placement='cyclic'"]);
        let load = |spec: &RunSpec| Simulation::load(spec).unwrap();
        let expected = outcome(&load(&whole));
        for threads in [2, 3] {
            let simulation = load(&RunSpec { threads, ..whole.clone() });
            assert!(simulation.execution(1).obstacles.is_empty(), "{model}");
            assert_eq!(digest(&outcome(&simulation)), digest(&expected), "{model} on {threads} threads");
        }
        let skipping = outcome(&load(&RunSpec { fast_forward: true, ..whole.clone() }));
        assert_eq!(digest(&skipping), digest(&expected), "{model} with fast-forward");
        let skipped = skipping.fast_forward.unwrap().skipped_iterations;
        assert!(skipped > 10 || model.contains("epoch"), "{model}: {skipped} skipped");
        let parts = Folder::new();
        let (directory, interval) = (parts.path("checkpoints"), Duration::from_secs(3600));
        let parts =
            RunSpec { checkpoints: Some(CheckpointPlan { directory, interval, resume: true }), ..whole };
        let mut runs = 0;
        let resumed = loop {
            let stop = StopHandle::default();
            if runs < 12 {
                stop.request();
            }
            match load(&parts).with_stop(stop).replay(&Progress::new(1)) {
                Err(RunError::Stopped { .. }) => runs += 1,
                ended => break ended.unwrap(),
            }
        };
        assert_eq!((runs, digest(&resumed)), (12, digest(&expected)), "{model} in parts");
    }
}

/// A host of 100 W, and 50 W more while it computes; accelerators of 40 W, and 400 W while they do.
#[test]
fn accelerators_have_their_energy() {
    let folder = Folder::new();
    let text = "0 location prepare 0\n0 compute 1e9\n0 location solve 0\n0 compute 4e10\n";
    let trace = folder.write("trace.txt", text);
    let power = "energy.hosts={ 'n0' = { idle = 100, epsilon = 100, all_cores = 300 }, '*gpu*' = { idle = 40, all_cores = 400 } }";
    let offload = "compute.offload=[{ region = 'solve', to = '{host}-gpu-*' }]";
    for model in ["network.model='flow'", "network.model='contention-free'"] {
        let settings = ["energy.enabled=true", power, offload, model, "energy.by=['host', 'rank', 'region']"];
        let simulation = simulation(&folder, &nodes(1, 1), &trace, &settings);
        let energy = Report::new(&simulation, &outcome(&simulation)).sections.energy.unwrap();
        let of_hosts: Vec<f64> = energy.hosts.iter().flatten().map(|part| part.energy_j).collect();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
        assert!(near(of_hosts[0], 350.0) && near(of_hosts[1], 40.0 + 800.0) && near(of_hosts[2], 120.0));
        let rank_j = energy.ranks_j.unwrap()[0][0];
        assert!(near(rank_j, 350.0 + 840.0), "{model}: {rank_j} J, of its host and its accelerator");
        let regions = energy.regions.unwrap();
        let solve = regions.iter().find(|part| part.name == "solve").unwrap();
        // Two thirds of the time, and all that is computed on the accelerator.
        assert!(near(solve.energy_j, 420.0 * 2.0 / 3.0 + 720.0), "{model}: {} J", solve.energy_j);
        assert!(near(energy.unassigned_j.unwrap(), 120.0), "{model}");
    }
}

#[test]
fn wrong_accelerators_are_refused() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 location solve 0\n0 compute 1e6\n");
    let refuse = |offload: &str, more: &[&str]| {
        let offload = format!("compute.offload=[{{ {offload} }}]");
        let spec = spec(&folder, &nodes(2, 1), &trace, &[&[offload.as_str()], more].concat());
        Simulation::load(&spec).unwrap_err().to_string()
    };
    let error = refuse("region = 'solve', to = '{host}-fpga'", &[]);
    assert!(error.contains("no such host for the ranks on \"n0\""), "{error}");
    let error = refuse("region = '*', to = 'n1-gpu-*', copy_in = '1MB'", &[]);
    assert!(error.contains("n0") && error.contains("n1-gpu-0") && error.contains("leave copy_in"), "{error}");
    let error = refuse("region = '*', to = '{host}-gpu-*'", &["output.certificate='c.txt'"]);
    assert!(error.contains("no accelerators"), "{error}");
    let absent =
        simulation(&folder, &nodes(1, 1), &trace, &["compute.offload=[{ region = 'slove', to = '*gpu-0' }]"]);
    assert!(absent.warnings().iter().any(|warning| warning.contains("no rank enters a region \"slove\"")));
    let graph = folder.write("ring.goal", "num_ranks 1\nrank 0 {\nl1: calc 5\n}\n");
    let schedule =
        spec(&folder, &nodes(1, 1), &graph, &["compute.offload=[{ region = '*', to = '*gpu-0' }]"]);
    assert!(Simulation::load(&schedule).unwrap_err().to_string().contains("hosts file"));
}

/// The nodes of a scheduler are hosts, not the accelerators between them.
#[test]
fn scheduled_jobs_have_accelerators() {
    let folder = Folder::new();
    let text: String = (0..4).map(|rank| format!("{rank} location solve 0\n{rank} compute 2e8\n")).collect();
    folder.write("solver.txt", &text);
    let job = |name| {
        format!("{{\"id\": {name:?}, \"subtime\": 0, \"walltime\": 9, \"res\": 2, \"profile\": \"solver\"}}")
    };
    let profile = "{\"solver\": {\"type\": \"trace\", \"trace\": \"solver.txt\"}}";
    let workload = format!("{{\"jobs\": [{}, {}], \"profiles\": {profile}}}", job("one"), job("two"));
    let workload = folder.write("jobs.json", &workload);
    let (platform, output) = (folder.write("nodes.toml", &nodes(3, 1)), folder.path("out"));
    let schedule =
        ["--set", "compute.offload=[{ region = 'solve', to = '{host}-gpu-*' }]", "--policy", "easy"];
    let mut run = command();
    run.arg("schedule").arg(&workload).args(schedule).arg("--platform").arg(&platform).arg("-o").arg(&output);
    run.assert().success();
    // Two ranks on each of two nodes have accelerators of their own; the second job waits for a node.
    let jobs = std::fs::read_to_string(output.join("jobs.csv")).unwrap();
    assert_eq!(jobs, "job,start,finish,nodes\none,0.000000,0.010000,0-1\ntwo,0.010000,0.020000,0-1\n");
}

/// Computations on an accelerator of several hosts have one order.
#[test]
fn accelerators_of_several_hosts_keep_one_thread() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &program(96, 2));
    let shared = "compute.offload=[{ region = 'solve', to = 'n0-gpu-*' }]";
    let load = |more: &[&str]| {
        let settings = [&[shared, "platform.placement='cyclic'"], more].concat();
        Simulation::load(&spec(&folder, &nodes(48, 1), &trace, &settings))
    };
    let simulation = load(&[]).unwrap().with_threads(2);
    let warnings = simulation.warnings();
    assert!(warnings.iter().any(|warning| warning.contains("several hosts share")), "{warnings:?}");
    let error = load(&["network.epoch_s='auto'", "network.regions=4"]).unwrap_err().to_string();
    assert!(error.contains("another region of the network"), "{error}");
}
