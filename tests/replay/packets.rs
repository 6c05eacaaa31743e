//! Replays whose messages are packets.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use netmodel::{LinkId, Resource, ResourceChange};
use pdes_core::{Cluster, Progress, SimTime};
use pdes_replay::{
    CheckpointPlan, Config, ExecutionMode, Outcome, Report, RunError, RunSpec, Simulation, StopHandle,
};

use crate::checkpoints::{replay_in_parts, replay_spec_in_parts};
use crate::collectives::call;
use crate::command_line::{Folder, command};
use crate::forward::PROTOCOLS;
use crate::matrix::digest;
use crate::trace_commands::trace;

pub(crate) const TREE: &str = "[topology]\nkind = 'fat_tree'\nspeed = '10Gf'\nbandwidth = '12.5GBps'\nlatency = '500ns'\nlevels = [\
                    { children = 2, parents = 1 }, { children = 2, parents = 2 }, { children = 4, parents = 2 }]\n";
const ROUTINGS: [&str; 5] = ["minimal", "ecmp", "spray", "adaptive", "flowlets"];
const DRAGONFLY: &str = "[topology]\nkind = 'dragonfly'\ngroups = 4\nblue = 1\nchassis = 1\nblack = 1\nblades = 4\ngreen = 1\nnodes = 1\n\
                         speed = '10Gf'\nbandwidth = '12.5GBps'\nlatency = '500ns'\n";
const OF_DRAGONFLIES: [&str; 4] = ["valiant", "ugal-l", "ugal-g", "par"];

/// Needs the loads of links and of hosts.
const POWER: &str = "energy.enabled=true";

/// The settings of a replay of packets on one of the platforms of 16 hosts.
struct Case {
    platform: PathBuf,
    settings: Vec<String>,
}

impl Case {
    fn new(platform: &Path, queues: &str, routing: &str) -> Self {
        // Two packets in a buffer.
        let settings = [
            &format!("packets.queues='{queues}'"),
            &format!("packets.routing='{routing}'"),
            "packets.packet_bytes=512",
            "packets.buffer_bytes=1024",
            "platform.routing='textbook'",
            "analysis.links=true",
        ];
        Self { platform: platform.to_owned(), settings: settings.map(str::to_owned).to_vec() }
    }

    /// Lists all queues and routings.
    fn all(folder: &Folder) -> Vec<Self> {
        let tree = folder.write("tree.toml", TREE);
        let dragonfly = folder.write("dragonfly.toml", DRAGONFLY);
        let on_tree = ["fifo", "credits"]
            .into_iter()
            .flat_map(|queues| ROUTINGS.map(|routing| Self::new(&tree, queues, routing)));
        let on_dragonfly = OF_DRAGONFLIES.map(|routing| Self::new(&dragonfly, "credits", routing));
        // Marks need output queues.
        let reps = Self::new(&tree, "fifo", "reps");
        let mut dcqcn = Self::new(&tree, "fifo", "ecmp");
        dcqcn.settings.extend(["packets.congestion='dcqcn'", "packets.mark_bytes=1024"].map(str::to_owned));
        on_tree.chain(on_dragonfly).chain([reps, dcqcn]).collect()
    }

    /// Routers publish their loads at aligned instants, and groups are whole.
    fn is_aligned(&self) -> bool {
        self.settings.iter().any(|setting| setting.contains("ugal-g"))
    }

    fn with<'a>(&'a self, settings: &[&'a str]) -> Vec<&'a str> {
        self.settings.iter().map(String::as_str).chain(settings.iter().copied()).collect()
    }
}

pub(crate) fn generate(folder: &Folder, program: &str, arguments: &[&str]) -> PathBuf {
    let path = folder.path(&format!("{program}.pdt"));
    trace(&[&["generate", program], arguments, &["--output"]].concat(), &[&path]).success();
    path
}

pub(crate) fn config(trace: &Path, platform: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    config.set("network.model=packets").unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

pub(crate) fn load(trace: &Path, platform: &Path, settings: &[&str]) -> Simulation {
    Simulation::load(&config(trace, platform, settings).resolve().unwrap()).unwrap()
}

pub(crate) fn replay(trace: &Path, platform: &Path, settings: &[&str]) -> Outcome {
    let simulation = load(trace, platform, settings);
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

/// A ring whose messages meet no others takes as long as without contention, once the last packet has crossed the other links.
#[test]
fn messages_that_meet_no_others_are_only_later_by_a_packet() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let ring = generate(&folder, "ring", &["--ranks=16", "--rounds=3"]);
    let settings = ["platform.placement=cyclic"];
    let packets = replay(&ring, &platform, &settings).simulated_time().as_picos();
    let mut free = config(&ring, &platform, &settings);
    free.set("network.model=contention-free").unwrap();
    let free = Simulation::load(&free.resolve().unwrap()).unwrap();
    let free = free.replay(&Progress::new(1)).unwrap().simulated_time().as_picos();
    // Three times around, over at most six links: five more packets of 4096 B at 12.5 B/ns each time.
    let most = 3 * 16 * 5 * 327_680;
    assert!((free..=free + most).contains(&packets), "{packets} ps, {free} ps without contention");
}

#[test]
fn the_report_tells_packets_and_hops() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let ring = generate(&folder, "ring", &["--ranks=16", "--rounds=3"]);
    let simulation = load(&ring, &platform, &["packets.routing='spray'"]);
    let outcome = simulation.replay(&Progress::new(1)).unwrap();
    let statistics = Report::new(&simulation, &outcome).model_statistics.unwrap();
    let number = |key: &str| statistics[key].as_u64().unwrap();
    assert!(number("packets") >= 3 * 16 && number("hops") >= 2 * number("packets"), "{statistics}");
}

#[test]
fn replays_resume_from_checkpoints() {
    let folder = Folder::new();
    let halo = generate(
        &folder,
        "halo3d",
        &["--cells=24,24,24", "--processes=2,2,4", "--iterations=2", "--jitter=0.3"],
    );
    for case in Case::all(&folder) {
        let settings = case.with(&[]);
        let whole = replay(&halo, &case.platform, &settings);
        let parts = Folder::new();
        let (outcome, stops) = replay_in_parts(config(&halo, &case.platform, &settings), &parts);
        let outcome = outcome.unwrap();
        assert_eq!(digest(&outcome), digest(&whole), "{settings:?}");
        assert!(outcome.links.is_some() && outcome.links == whole.links, "{settings:?}: loads of links");
        assert!(stops > 3, "{settings:?}: {stops} stops");
    }
}

#[test]
fn checkpoints_of_other_queues_are_refused() {
    let folder = Folder::new();
    let case = Case::new(&folder.write("tree.toml", TREE), "fifo", "spray");
    let ring = generate(&folder, "ring", &["--ranks=16", "--rounds=3"]);
    let table = folder.write("table.csv", "# no entry\n");
    let table = format!("packets.table_file='{}'", table.display());
    let replay = |seed: &str, stop: bool| {
        let mut config = config(&ring, &case.platform, &case.with(&[seed, &table]));
        config.set_path("checkpoint", "directory", &folder.path("checkpoints"));
        config.insert("checkpoint", "resume", true.into());
        let handle = StopHandle::default();
        if stop {
            handle.request();
        }
        let simulation = Simulation::load(&config.resolve().unwrap()).unwrap().with_stop(handle);
        simulation.replay(&Progress::new(1)).map(drop)
    };
    assert!(matches!(replay("packets.seed=1", true), Err(RunError::Stopped { .. })));
    let refused = replay("packets.seed=2", false).unwrap_err().to_string();
    assert!(refused.contains("[packets]"), "{refused}");
    folder.write("table.csv", "# another text\n");
    let refused = replay("packets.seed=1", false).unwrap_err().to_string();
    assert!(refused.contains("packets.table_file"), "{refused}");
    folder.write("table.csv", "# no entry\n");
    replay("packets.seed=1", false).unwrap();
}

/// Files of tables and routes lie beside the configuration that names them, and are inputs of a run.
#[test]
fn files_are_beside_the_configuration() {
    let folder = Folder::new();
    let table = folder.write("table.csv", "no-host,no-link\n");
    let text = "[packets]\nrouting = 'spray'\ntable_file = 'table.csv'\nroute_file = 'routes.csv'\n";
    let config = Config::from_path(&folder.write("run.toml", text)).unwrap();
    assert_eq!(config.section("packets").unwrap()["table_file"].as_str(), table.to_str());
    let inputs: Vec<_> = config.input_files().into_iter().map(|(role, _)| role).collect();
    assert_eq!(inputs, ["configuration", "table of ways", "file of routes"]);
}

/// Any number of threads and of processes has the same bits, with messages of all protocols and other regions.
#[test]
fn regions_have_the_bits_of_one_thread() {
    let folder = Folder::new();
    let torus = "[topology]\nkind = 'torus'\ndims = [4, 4]\nspeed = '10Gf'\nbandwidth = '12.5GBps'\nlatency = '500ns'\n";
    let torus = folder.write("torus.toml", torus);
    let halo = generate(
        &folder,
        "halo3d",
        &["--cells=24,24,24", "--processes=2,2,4", "--iterations=3", "--jitter=0.3"],
    );
    let on_torus = ["fifo", "credits"]
        .into_iter()
        .flat_map(|queues| ["minimal", "spray", "valiant"].map(|routing| Case::new(&torus, queues, routing)));
    for (number, case) in Case::all(&folder).into_iter().chain(on_torus).enumerate() {
        // Each case with some of the protocols.
        for protocol in PROTOCOLS.iter().skip(number % 2).step_by(2) {
            let settings = case.with(&[protocol]);
            let whole = replay(&halo, &case.platform, &settings);
            for (threads, processes, regions) in [(3, 1, "'auto'"), (1, 2, "7"), (2, 3, "16")] {
                let regions = if case.is_aligned() { "'auto'" } else { regions };
                let mut config = config(&halo, &case.platform, &settings);
                config.set(&format!("network.regions={regions}")).unwrap();
                config.set(&format!("engine.threads={threads}")).unwrap();
                config.set("parallel.oversubscribe=true").unwrap();
                let spec = config.resolve().unwrap();
                let outcomes = Cluster::in_memory(processes, |mut cluster| {
                    let simulation = Simulation::load_on(&mut cluster, &spec, &AtomicU64::new(0)).unwrap();
                    let execution = simulation.execution(processes);
                    assert!(matches!(execution.mode, ExecutionMode::Regions), "{execution:?}");
                    simulation.run(&mut cluster, &Progress::new(threads)).unwrap()
                });
                let first = outcomes.into_iter().next().unwrap().expect("no process panics");
                let found = first.expect("it is the first");
                let how = format!("{settings:?} on {threads} threads of {processes} processes");
                assert_eq!(digest(&found), digest(&whole), "{how}");
                assert!(found.links.is_some() && found.links == whole.links, "{how}: loads of links");
            }
        }
    }
}

/// Links that get slower, fail and return: the same bits on threads and processes, and in parts.
#[test]
fn links_that_change_have_one_result() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let halo = generate(&folder, "halo3d", &["--cells=24,24,24", "--processes=2,2,4", "--iterations=2"]);
    for (queues, routing) in [("fifo", "spray"), ("fifo", "minimal"), ("credits", "minimal")] {
        let case = Case::new(&platform, queues, routing);
        let usual = load(&halo, &platform, &case.with(&[]));
        let unchanged = usual.replay(&Progress::new(1)).unwrap().simulated_time();
        let at = |part: f64| SimTime::from_picos((unchanged.as_picos() as f64 * part) as u64);
        let values = |link: LinkId| match link.get() % 3 {
            0 => vec![(0.2, 3e9), (0.6, 12.5e9)],
            1 => vec![(0.3, 0.0), (0.8, 12.5e9)],
            _ => vec![],
        };
        let links = (0..usual.platform().links().len() as u32).map(LinkId::new);
        let changes: Vec<ResourceChange> = links
            .flat_map(|link| {
                let resource = Resource::Bandwidth(link);
                let change = move |(part, value)| ResourceChange { at: at(part), resource, value };
                values(link).into_iter().map(change)
            })
            .collect();
        let spec = RunSpec { changes, ..usual.spec().clone() };
        let replay = |threads| {
            let simulation = Simulation::load(&RunSpec { threads, ..spec.clone() }).unwrap();
            simulation.replay(&Progress::new(threads)).unwrap()
        };
        let whole = replay(1);
        assert!(whole.simulated_time() > unchanged, "{queues} {routing}");
        let on_threads = replay(3);
        assert_eq!(digest(&on_threads), digest(&whole), "{queues} {routing}");
        assert_eq!(on_threads.links, whole.links, "{queues} {routing}");
        let (directory, interval) = (Folder::new(), Duration::from_secs(3600));
        let plan = CheckpointPlan { directory: directory.path("checkpoints"), interval, resume: true };
        let (parts, stops) = replay_spec_in_parts(&RunSpec { checkpoints: Some(plan), ..spec });
        let parts = parts.unwrap();
        assert!(stops > 3 && digest(&parts) == digest(&whole), "{queues} {routing}: {stops} stops");
        assert_eq!(parts.links, whole.links, "{queues} {routing}");
    }
}

#[test]
fn regions_are_profiled() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let ring = generate(&folder, "ring", &["--ranks=16", "--rounds=30"]);
    let profile = load(&ring, &platform, &[]).profile_regions(&Progress::new(1)).unwrap();
    assert_eq!(profile.regions, 4, "subtrees below the top");
}

/// Iterations that end with an all-reduce repeat with every routing.
#[test]
fn repeated_iterations_are_skipped_exactly() {
    let folder = Folder::new();
    let program = generate(&folder, "allreduce-loop", &["--ranks=16", "--iterations=40"]);
    // These iterations do not begin at aligned instants.
    for case in Case::all(&folder).into_iter().filter(|case| !case.is_aligned()) {
        let whole = replay(&program, &case.platform, &case.with(&[POWER]));
        for threads in ["engine.threads=1", "engine.threads=3"] {
            let fast = ["engine.fast_forward=true", threads, "parallel.oversubscribe=true", POWER];
            let settings = case.with(&fast);
            let forwarded = replay(&program, &case.platform, &settings);
            assert_eq!(digest(&forwarded), digest(&whole), "{settings:?}");
            assert!(
                forwarded.links.is_some() && forwarded.links == whole.links,
                "{settings:?}: loads of links"
            );
            let [found, expected] = [&forwarded, &whole].map(|outcome| {
                let hosts = &outcome.hosts.as_ref().expect("energy needs them").hosts;
                hosts.iter().flat_map(|host| &host.busy).sum::<f64>()
            });
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{settings:?}: {found} ps, expected {expected} ps"
            );
            let skipped = forwarded.fast_forward.unwrap().skipped_iterations;
            assert!(skipped >= 30, "{settings:?}: {skipped} iterations");
        }
    }
}

/// Fast-forward cuts a run also where nothing recurs: regions that count their spans from other instants have the same packets.
#[test]
fn cuts_change_nothing() {
    let folder = Folder::new();
    let torus = "[topology]\nkind = 'torus'\ndims = [4, 4, 4]\nspeed = '10Gf'\nbandwidth = '1.25GBps'\nlatency = '1us'\n";
    let torus = folder.write("torus.toml", torus);
    let shape = ["--cells=32,32,32", "--processes=4,4,4", "--periodic", "--iterations=8", "--jitter=0.1"];
    let halo = generate(&folder, "halo3d", &shape);
    for queues in ["packets.queues='fifo'", "packets.queues='credits'"] {
        let settings = [queues, "packets.routing='valiant'", "network.preset='links'"];
        let whole = digest(&replay(&halo, &torus, &settings));
        for regions in ["network.regions=2", "network.regions=4"] {
            let cut =
                [&settings as &[&str], &[regions, "engine.threads=2", "engine.fast_forward=true"]].concat();
            assert_eq!(digest(&replay(&halo, &torus, &cut)), whole, "{cut:?}");
        }
    }
}

/// To look for what recurs changes nothing, though hosts that forward follow behind time: what they need of the past is kept.
#[test]
fn to_look_for_what_recurs_changes_nothing() {
    let folder = Folder::new();
    let torus = "[topology]\nkind = 'torus'\ndims = [4, 4, 4]\nspeed = '10Gf'\nbandwidth = '12.5GBps'\nlatency = '500ns'\n";
    let torus = folder.write("torus.toml", torus);
    let settings: [&[&str]; 4] = [
        &["packets.queues='credits'", "packets.routing='adaptive'"],
        &["packets.queues='credits'", "packets.routing='valiant'"],
        &["packets.queues='credits'", "packets.routing='minimal'", "packets.buffer_bytes=9000"],
        &["packets.queues='fifo'", "packets.routing='flowlets'"],
    ];
    for seed in [20, 37] {
        let seed = format!("--seed={seed}");
        let shape = [&seed, "--ranks=16", "--rounds=40", "--bytes=100000", "--pattern=permutation"];
        let traffic = generate(&folder, "traffic", &shape);
        for settings in settings {
            let whole = digest(&replay(&traffic, &torus, settings));
            let forwarded = [settings, &["engine.fast_forward=true"]].concat();
            assert_eq!(digest(&replay(&traffic, &torus, &forwarded)), whole, "{seed} {settings:?}");
        }
    }
}

/// A sprayed halo never recurs, and the summary says what does.
#[test]
fn what_recurs_is_told() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let halo = ["--ranks=4,2,2", "--cells=128,64,64", "--periodic", "--iterations=20"];
    let summary = |program: &Path, routing: &str| {
        let mut run = command();
        run.args(["--set", "engine.fast_forward=true", "--model", "packets", "--trace"]).arg(program);
        run.args(["--set", &format!("packets.routing={routing}"), "--platform"]).arg(&platform);
        String::from_utf8(run.assert().success().get_output().stdout.clone()).unwrap()
    };
    let halo = generate(&folder, "halo3d", &halo);
    let words = "packets recur where iterations end with a barrier or an allreduce";
    let sprayed = summary(&halo, "spray");
    assert!(sprayed.contains("no iteration recurred") && sprayed.contains(words), "{sprayed}");
    let by_destination = summary(&halo, "minimal");
    assert!(by_destination.contains(" were not replayed") && !by_destination.contains(words));
}

#[test]
fn what_has_no_effect_is_warned_of_and_bad_platforms_are_refused() {
    let folder = Folder::new();
    let ring = generate(&folder, "ring", &["--ranks=16", "--rounds=3"]);
    let platform = folder.write("tree.toml", TREE);
    let words = "the model \"packets\" takes links as they are written";
    let is_warned = |settings: &[&str]| {
        load(&ring, &platform, settings).warnings().iter().any(|warning| warning.contains(words))
    };
    assert!(!is_warned(&[]) && is_warned(&["network.preset='smpi'"]));
    let unused = |settings: &[&str]| {
        let mut warnings = load(&ring, &platform, settings).warnings();
        warnings.retain(|warning| warning.contains(" no effect without "));
        warnings
    };
    let of_credits = ["packets.buffer_bytes=9000", "packets.arbitration='age'"];
    assert_eq!(
        unused(&of_credits),
        ["packets.buffer_bytes, packets.arbitration have no effect without queues = \"credits\""]
    );
    assert!(unused(&["packets.queues='credits'", of_credits[0], of_credits[1]]).is_empty());
    let weighted = ["packets.weights='capacity'", "packets.routing='adaptive'"];
    assert_eq!(
        unused(&weighted),
        ["packets.weights has no effect without routing = \"ecmp\", \"spray\" or \"reps\""]
    );
    assert!(unused(&["packets.weights='capacity'", "packets.routing='spray'"]).is_empty());
    let shared = folder.write("shared.toml", &TREE.replace("speed", "sharing = 'shared'\nspeed"));
    let refused = Simulation::load(&config(&ring, &shared, &[]).resolve().unwrap()).unwrap_err();
    assert!(
        matches!(refused, RunError::Network(_)) && refused.to_string().contains("split_duplex"),
        "{refused}"
    );
}

#[test]
fn checks_of_platforms_tell_the_channels_of_each_routing() {
    let folder = Folder::new();
    let check = |text: &str| {
        let platform = folder.write("platform.toml", text);
        let done = command().args(["platform", "check"]).arg(&platform).assert().success();
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    };
    let dragonfly = check(DRAGONFLY);
    let channels = "minimal 2, ecmp 3, spray 3, adaptive 3, flowlets 3, valiant 3, ugal-l 3, ugal-g 3, par 4";
    assert!(
        dragonfly.contains(&format!("packets: no deadlocks with virtual channels: {channels}\n")),
        "{dragonfly}"
    );
    assert!(check(TREE).contains("minimal 1, ecmp 1, spray 1, adaptive 1, flowlets 1\n"));
    assert!(check(&TREE.replace("speed", "sharing = 'shared'\nspeed")).contains("split_duplex"));
}

/// Switches carry out operations in one way up and one way down the tree, of six links between ranks that are as far apart as any; packets
/// cross each link anew.
#[test]
fn switches_reduce_and_broadcast_in_closed_form() {
    const BYTES: u64 = 100_000;
    // Six latencies, and the bytes with an envelope of 16 at 12.5 B/ns.
    let way = |bytes: u64| 6 * 500_000 + (bytes + 16) * 80;
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    for (name, bytes, delays) in [
        ("barrier", 0, [0, 0]),
        ("allreduce", BYTES, [0, 0]),
        ("reduce", BYTES, [0, 0]),
        // The root is late, and then all are.
        ("bcast", BYTES, [20_000, 0]),
        ("allreduce", BYTES, [0, 50_000]),
    ] {
        let call = call(name, 16, &BYTES.to_string(), "0");
        let program = |rank: u32| {
            let late = if rank == 0 {
                delays[0]
            } else if rank == 9 {
                delays[1]
            } else {
                0
            };
            format!("{rank} init\n{rank} compute {late}\n{rank} {call}\n{rank} finalize\n")
        };
        let trace = folder.write("operation.txt", &(0..16).map(program).collect::<String>());
        // At 10 flop/ns.
        let last = delays.iter().max().unwrap() * 100;
        for model in ["contention-free", "flow", "packets"] {
            let model = format!("network.model={model}");
            let settings = [&model, "network.preset=raw", &format!("mpi.{name}=in_network")];
            let found = replay(&trace, &platform, &settings).simulated_time().as_picos();
            let packet = if model.contains("packets") { 5 * 80 * (bytes + 16).min(4096) } else { 0 };
            assert_eq!(found, last + way(bytes) + packet, "{name} {delays:?} {model}");
            let simulation =
                Simulation::load(&config(&trace, &platform, &settings).resolve().unwrap()).unwrap();
            let named =
                format!("mpi.{name} = \"in_network\" takes the time of switches that carry nothing else");
            let warns = simulation.warnings().iter().any(|warning| warning.starts_with(&named));
            assert_eq!(warns, model.contains("flow"), "{name} {model}");
        }
    }
    let torus = folder.write(
        "torus.toml",
        "[topology]\nkind = 'torus'\ndims = [4, 4]\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n",
    );
    let trace =
        folder.write("barrier.txt", &(0..16).map(|rank| format!("{rank} barrier\n")).collect::<String>());
    let refused = Simulation::load(&config(&trace, &torus, &["mpi.barrier=in_network"]).resolve().unwrap());
    let error = refused.expect_err("the switches of a torus are no tree").to_string();
    assert!(error.contains("in_network") && error.contains("barrier"), "{error}");
}
