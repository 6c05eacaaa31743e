//! From MPI programs to traces: programs with known behaviour are recorded exactly.

#[path = "acquisition/programs.rs"]
mod programs;

use std::path::{Path, PathBuf};

use pdes_replay::SavedReport;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, command};
use crate::reference::repository;
use programs::Program;
use ti_shard::{COMPLETE_MARK, Header, Kind, Phrase, UNIT, Unit};

#[test]
fn a_stencil_twice_alike() {
    let Some(program) = Program::compile("stencil.c") else { return };
    let run = program.record("first", 4, &["3", "1000"]);
    let body = |left: &str, right: &str| {
        let body = format!(
            "irecv {left} 1 8 req=0; irecv {right} 2 8 req=1; isend {right} 1 8 req=2; isend {left} 2 8 req=3; \
             waitall req=0-3; allreduce 8 0"
        );
        [body.as_str(); 3].join(";")
    };
    run.expect(0, &body("-666", "1"));
    run.expect(1, &body("0", "2"));
    run.expect(3, &body("2", "-666"));
    let again = program.record("again", 4, &["3", "1000"]);
    assert_eq!(run.all_calls(), again.all_calls());
    // Three iterations of 100 million cells take more than 1000 of 1000.
    let amount = |run: &programs::Run<'_>| {
        let text = programs::text(&run.shards().join("0.shard"));
        let flops = text.lines().filter_map(|line| line.strip_prefix("0 compute ")?.parse::<f64>().ok());
        flops.sum::<f64>()
    };
    let large = program.record("large", 4, &["3", "1000000"]);
    assert!(amount(&large) > 10.0 * amount(&run), "{} and {}", amount(&large), amount(&run));
}

#[test]
fn a_pipeline_with_the_tags_that_came() {
    let Some(program) = Program::compile("pipeline.c") else { return };
    let run = program.record("run", 4, &["2"]);
    // Rank 0 is in the north-west, rank 3 in the south-east.
    let first = |tag: u32| format!("send 2 10 320; ssend 1 10 160; recv 2 {tag} 320; recv 1 20 320");
    run.expect(0, &format!("{}; {}", first(30), first(31)));
    let last = |tag: u32| format!("recv 1 10 320; recv 2 10 320; send 1 {tag} 320; send 2 20 320");
    run.expect(3, &format!("{}; {}", last(30), last(31)));
    assert_eq!(run.all_calls(), program.record("again", 4, &["2"]).all_calls());
}

#[test]
fn all_collectives_in_bytes() {
    let Some(program) = Program::compile("transpose.c") else { return };
    let run = program.record("run", 4, &["2", "100"]);
    let calls = |rank: u32| {
        let own = rank + 1;
        let (gathered, scattered) = if rank == 0 { ("1 2 3 4", "1 2 3 4") } else { ("0 0 0 0", "0 0 0 0") };
        format!(
            "barrier; bcast 48 1; reduce 20 0 2; allreduce 48 0; scan 8 0; exscan 16 0; gather 7 7 0; scatter 9 9 1; \
             allgather 11 11; gatherv {own} {gathered} 0; scatterv {scattered} {own} 0; allgatherv {own} 1 2 3 4; \
             alltoallv 10 1 2 3 4 {} {own} {own} {own} {own}; alltoallv 4 1 1 1 1 4 1 1 1 1; reducescatter 1 2 3 4 0; \
             reducescatter 4 4 4 4 0; alltoall 800 800; alltoall 800 800",
            4 * own
        )
    };
    (0..4).for_each(|rank| run.expect(rank, &calls(rank)));
}

#[test]
fn workers_are_served_as_they_come() {
    let Some(program) = Program::compile("workers.c") else { return };
    let run = program.record("run", 4, &["9"]);
    let calls = run.all_calls();
    let count = |rank: usize, start: &str| calls[rank].iter().filter(|call| call.starts_with(start)).count();
    assert_eq!(count(0, "waitany "), 9);
    // Nine tasks, one stop for each worker.
    assert_eq!((count(0, "send "), count(0, "irecv "), count(0, "irecv -555 -444 4 ")), (12, 12, 3));
    for start in ["recv -555 4 16 source=", "irecv -555 -444 4 req="] {
        let sources = calls[0].iter().filter(|call| call.starts_with(start));
        let mut sources: Vec<&str> = sources.map(|call| call.split_once("source=").unwrap().1).collect();
        sources.sort_unstable();
        assert_eq!(sources, ["1", "2", "3"], "{start}");
    }
    // A worker receives each task with the tag that it had.
    let worker =
        |rank: usize| (count(rank, "recv 0 1 4"), count(rank, "recv 0 3 4"), count(rank, "send 0 2 4"));
    let tasks: Vec<_> = (1..4).map(worker).collect();
    assert!(tasks.iter().all(|(tasks, stops, results)| (*stops, results) == (1, tasks)), "{tasks:?}");
    assert_eq!(tasks.iter().map(|(tasks, ..)| tasks).sum::<usize>(), 9);
}

#[test]
fn communicators_have_one_number_for_all_and_ranks_of_the_world() {
    let Some(program) = Program::compile("communicators.c") else { return };
    let run = program.record("run", 4, &[]);
    let grid = "comm_create comm=0 new=5 members=0-3";
    run.expect(
        0,
        &format!(
            "comm_split comm=0 new=2 members=1,0; allreduce 4 0 comm=2; sendRecv 4 1 4 1 6 6 stag=5 rtag=5 comm=2; \
             sendRecv_replace 4 1 -555 6 stag=6 rtag=6 comm=2 source=1; comm_dup comm=2 new=6; bcast 4 1 comm=6; \
             comm_free comm=6; comm_split comm=0 new=1 members=0-2; comm_free comm=1; {grid}; \
             neighbor_alltoallv to=2,2,1 scounts=4,4,4 from=2,2,1 rcounts=4,4,4 comm=5; \
             comm_split comm=5 new=9 members=0,1; barrier comm=9; comm_create_group comm=0 new=12 members=3,0; \
             allgather 4 4 comm=12; comm_free comm=12; comm_create comm=0 new=16 members=3,0; comm_free comm=16; \
             comm_create_group comm=0 new=17 members=0; comm_dup comm=17 new=13; barrier comm=13; \
             comm_create comm=0 new=21 members=0-3; ineighbor_alltoallv to=1 scounts=4 from=3 rcounts=4 comm=21 req=0; wait req=0"
        ),
    );
    let of_rank_3 = run.calls(3);
    // A rank that is in no part has the line without a number; it is the first of its row.
    for line in [
        "comm_split comm=0 new=4 members=3,2",
        "comm_split comm=0",
        grid,
        "comm_create_group comm=0 new=12 members=3,0",
    ] {
        assert!(of_rank_3.iter().any(|call| call == line), "{line} in {of_rank_3:#?}");
    }
    assert_eq!(run.all_calls(), program.record("again", 4, &[]).all_calls());
}

#[test]
fn requests_of_all_kinds() {
    let Some(program) = Program::compile("requests.c") else { return };
    let run = program.record("run", 2, &[]);
    for (rank, peer, matched) in [(0, 1, "send 1 40 8"), (1, 0, "probe 0 40; recv 0 40 16")] {
        run.expect(
            rank,
            &format!(
                "send_init {peer} 1 4 req=0; recv_init {peer} 1 4 req=1; startall req=0,1; waitall req=0,1; start req=1; \
                 start req=0; wait req=0; wait req=1; request_free req=0; request_free req=1; irecv {peer} 99 4 req=0; \
                 cancel req=0 done=yes; wait req=0; isend {peer} 2 4 req=0; probe {peer} 2; irecv {peer} 2 4 req=1; \
                 request_get_status req=1 done=yes; wait req=0; waitsome req=1 done=1; iprobe -555 77 done=no; iallreduce 4 0 req=0; ibarrier req=1; \
                 waitall req=0,1; ibcast 8 0 req=0; test req=0 done=0; barrier; {matched}; irecv -555 -444 4 req=0 source={peer}; \
                 irecv {peer} 9 4 req=1; issend {peer} 8 4 req=2; send {peer} 9 4; testall req=0-2 done=all"
            ),
        );
    }
}

#[test]
fn fortran_is_recorded_once() {
    let Some(program) = Program::compile("fortran.f90") else { return };
    let run = program.record("run", 4, &[]);
    let calls = |peer: u32, third: &str, row: &str, number: u32| {
        format!(
            "irecv {peer} 1 8 req=0; isend {peer} 1 8 req=1; waitall req=0,1; irecv -555 2 8 req=0 source={peer}; \
             send {peer} 2 8; waitany req=0 done=0; {third}; allreduce 4 0; allgatherv 4 4 4 4 4; \
             comm_split comm=0 new={number} members={row}; ibcast 4 1 comm={number} req=0; wait req=0; comm_free comm={number}; location level-7 0; location outside 0"
        )
    };
    run.expect(0, &calls(1, "send 1 3 12", "0,1", 1));
    run.expect(3, &calls(2, "recv 2 3 12", "2,3", 3));
}

#[test]
fn the_module_mpi_f08_is_recorded() {
    if !programs::is_open_mpi() {
        return;
    }
    let Some(program) = Program::compile("fortran08.f90") else { return };
    let run = program.record("run", 2, &[]);
    run.expect(
        1,
        "irecv 0 1 4 req=0; isend 0 1 4 req=1; waitall req=0,1; comm_dup comm=0 new=1; allreduce 4 0 comm=1",
    );
}

#[test]
fn calls_without_a_model_are_recorded_with_their_arguments() {
    let Some(program) = Program::compile("unmodelled.c") else { return };
    let folder = Folder::new();
    let file = folder.path("out put");
    let (assert, run) = program.acquire_with(&["--with-times"], "run", 2, &[file.to_str().unwrap()]);
    assert.code(DONE).stderr(contains("take no time in a replay: "));
    run.check();
    let escaped = file.to_str().unwrap().replace(' ', "%20");
    // Before a fence that nothing precedes, there is nothing to wait for.
    let step = "barrier comm=1; put 1 4 comm=1; win_fence comm=1";
    run.expect(
        0,
        &format!(
            "win_create comm=0 new=1; {step}; {step}; win_lock 1 comm=1; get 1 4 comm=1; win_flush_local 1 comm=1; \
             accumulate 1 4 comm=1; fetch_and_op 1 4 comm=1; rput 1 4 comm=1 req=0; wait req=0; win_unlock 1 comm=1; \
             win_post to=1 comm=1; win_start to=1 comm=1; win_complete comm=1; win_wait comm=1; win_free comm=1; io-open {escaped}; \
             io-set_view {escaped} 8; io-write_at_all {escaped} 0 80; io-seek {escaped} 16; io-read {escaped} 24; \
             io-iwrite_at {escaped} 0 8 req=0; wait req=0; io-iread_all {escaped} 8 req=0; wait req=0; io-sync {escaped}; io-close {escaped}; \
             unmodelled MPI_File_open name=/no/such/folder/a%20file mode=rdonly comm=self new=-; \
             comm_split comm=0 new=3 members=0; \
             unmodelled MPI_Intercomm_create comm=3 leader=0 peer_comm=0 remote_leader=1 tag=5 new=other-0; \
             unmodelled MPI_Isend dst=0 tag=6 bytes=4 comm=other-0 req=other-0; unmodelled MPI_Recv src=0 tag=6 bytes=4 comm=other-0; \
             unmodelled MPI_Wait req=other-0 done=other-0; unmodelled MPI_Barrier comm=other-0; \
             unmodelled MPI_Comm_free comm=other-0; unmodelled MPI_Comm_idup comm=0 req=other-0; \
             unmodelled MPI_Wait req=other-0 done=other-0; unmodelled MPI_Allreduce bytes=4 comm=other-0; \
             unmodelled MPI_Comm_free comm=other-0; comm_free comm=3; barrier"
        ),
    );
    let info = command().args(["trace", "info"]).arg(run.archive()).assert().code(DONE);
    let info = String::from_utf8(info.get_output().stdout.clone()).unwrap();
    let row = |name: &str| {
        let line = info.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("MPI_Isend"), "2 calls, 8 B");
    assert_eq!(row("MPI_Barrier"), "2 calls, 0 B");
    // The text is the trace again, arguments and times included.
    let text = folder.path("text");
    command().args(["trace", "dump"]).arg(run.archive()).arg("-o").arg(&text).assert().code(DONE);
    let lines = std::fs::read_to_string(text.join("rank-0.txt")).unwrap();
    let (send, time) = lines
        .lines()
        .find(|line| line.contains("MPI_Isend"))
        .and_then(|line| line.split_once(" time="))
        .unwrap();
    assert_eq!(send, "0 unmodelled MPI_Isend dst=0 tag=6 bytes=4 comm=other-0 req=other-0");
    assert!(time.parse::<u64>().is_ok(), "{time}");
    let again = folder.path("again.pdt");
    command().args(["trace", "convert"]).arg(&text).arg("-o").arg(&again).assert().code(DONE);
    let dump =
        |archive: &Path| command().args(["trace", "dump"]).arg(archive).assert().get_output().stdout.clone();
    assert_eq!(dump(&again), dump(&run.archive()));
    let platform = repository().join("configs/platforms/torus-5g.toml");
    let mut replay = command();
    replay
        .arg("--platform")
        .arg(&platform)
        .arg("--trace")
        .arg(run.archive())
        .assert()
        .code(DONE)
        .stderr(contains("calls that no replay models take no time: 2 MPI_Allreduce, ").count(1));
    let mut validate = command();
    validate
        .arg("validate")
        .arg(run.archive())
        .arg("--platform")
        .arg(&platform)
        .assert()
        .code(DONE)
        .stdout(contains("unmodelled ").and(contains("not modelled: calls with ")));
}

#[test]
fn calls_without_a_model_are_recorded_in_fortran() {
    let Some(program) = Program::compile("unmodelled.f90") else { return };
    let folder = Folder::new();
    let file = folder.path("out");
    let (assert, run) = program.acquire("run", 2, &[file.to_str().unwrap()]);
    assert.code(DONE);
    run.check();
    run.expect(
        1,
        &format!(
            "win_create comm=0 new=1; win_fence comm=1; put 0 4 comm=1; win_fence comm=1; win_free comm=1; io-open {file}; \
             io-iwrite_at {file} 16 16 req=0; wait req=0; io-close {file}",
            file = file.display()
        ),
    );
}

/// File types of all kinds, whose blocks a replay sees, and hints.
#[test]
fn views_are_recorded_with_their_blocks() {
    let Some(program) = Program::compile("views.c") else { return };
    let folder = Folder::new();
    let file = folder.path("out");
    let (assert, run) = program.acquire("run", 2, &[file.to_str().unwrap()]);
    assert.code(DONE);
    run.check();
    let file = file.display();
    let views = [
        // A vector, indexed blocks, a structure of both kinds, and a type whose blocks are one.
        "0 48 0:8:16:3",
        "16 40 0:4,8:8,24:12",
        "0 64 4:4,16:8:16:3",
        "8",
        // Of 4 x 6 integers, rows 1 and 2 and columns 2 to 4, in the order of C and in that of Fortran.
        "0 96 32:12:24:2",
        "0 96 24:8:16:3",
        // Rank 1 of a grid of 1 x 2: columns in blocks of 3, then one by one.
        "0 96 12:12:24:4",
        "0 96 4:4:8:12",
    ];
    let views: Vec<String> =
        views.iter().map(|view| format!("io-set_view {file} {view}; io-write_at_all {file} 4 24")).collect();
    run.expect(
        1,
        &format!(
            "io-open {file} cb_nodes=1 cb_buffer_size=1048576 romio_cb_write=enable; {}; io-close {file}",
            views.join("; ")
        ),
    );
}

/// Calls on files below a directory: names without links, positions and amounts as they were. Other files are not recorded, and
/// those of MPI-IO once.
#[test]
fn calls_of_posix_are_recorded() {
    let Some(program) = Program::compile("posix.c") else { return };
    let folder = Folder::new();
    let named = folder.path("data");
    std::fs::create_dir(&named).unwrap();
    std::os::unix::fs::symlink(&named, folder.path("link")).unwrap();
    let (named, link) = (named.canonicalize().unwrap(), folder.path("link"));
    let flags = ["--files", link.to_str().unwrap()];
    let elsewhere = folder.path("elsewhere");
    let arguments = [link.to_str().unwrap(), elsewhere.to_str().unwrap()];
    let (assert, run) = program.acquire_with(&flags, "run", 2, &arguments);
    assert.code(DONE);
    run.check();
    let named = named.display();
    let own = format!("{named}/own%201 comm=2");
    let at = |call: &str, fields: &str| format!("io-{call}_at {named}/own%201 {fields} comm=2");
    let expected = [
        "comm_create_group comm=0 new=2 members=1".to_owned(),
        format!("io-open {own}"),
        at("write", "0 100"),
        at("write", "100 50"),
        at("write", "1000 10"),
        format!("io-sync {own}"),
        at("read", "120 30"),
        at("read", "0 20"),
        at("read", "20 990"),
        format!("io-close {own}"),
        format!("io-open {}/shared", link.display()),
        format!("io-write_at {}/shared 8 8", link.display()),
        format!("io-close {}/shared", link.display()),
        "barrier".to_owned(),
    ];
    run.expect(1, &expected.join("; "));
    // Without the option, only MPI-IO is recorded.
    let (assert, run) = program.acquire("plain", 2, &arguments);
    assert.code(DONE);
    run.expect(1, &expected[10..].join("; "));
    let mut command = command();
    command.args(["trace", "acquire", "--files", "/no/such/directory", "-o", "x.pdt", "--", "true"]);
    command.assert().code(FAILED).stderr(contains("--files /no/such/directory"));
}

#[test]
fn processes_that_are_started_later_are_recorded() {
    // MPICH 4.0.2 of Debian cannot start any, with the tracer or without.
    if !programs::is_open_mpi() {
        return;
    }
    let Some(program) = Program::compile("spawn.c") else { return };
    let (assert, run) = program.acquire("run", 1, &[]);
    assert.code(DONE).stderr(contains("1 MPI_Comm_disconnect, 1 MPI_Comm_spawn, 1 MPI_Send"));
    run.check();
    let calls = run.calls(0);
    let spawn = "maxprocs=1 root=0 comm=0 new=other-0";
    assert!(
        calls[1].starts_with("unmodelled MPI_Comm_spawn command=/") && calls[1].ends_with(spawn),
        "{calls:?}"
    );
    assert_eq!(
        calls[2..4],
        [
            "unmodelled MPI_Send dst=0 tag=3 bytes=4 comm=other-0",
            "unmodelled MPI_Comm_disconnect comm=other-0"
        ]
    );
}

#[test]
fn a_program_that_dies_leaves_what_it_did() {
    let Some(program) = Program::compile("unmodelled.c") else { return };
    let (assert, run) = program.acquire("run", 2, &["die"]);
    assert
        .code(FAILED)
        .stderr(contains("2 rank(s) ended without MPI_Finalize, the first is rank 0"))
        .stderr(contains("the program ended with"));
    run.check();
}

/// Checks and replays the archive of a program that was killed; returns the number of actions that were cut.
fn replay_recovered(folder: &Folder, archive: &Path) -> u64 {
    command().args(["trace", "check"]).arg(archive).assert().code(DONE);
    let info = command().args(["trace", "info"]).arg(archive).assert().code(DONE).get_output().stdout.clone();
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find(|line| line.starts_with("ends early: ")).unwrap();
    let report = folder.path("report.json");
    let mut replay = command();
    replay.arg("--platform").arg(repository().join("configs/platforms/torus-5g.toml"));
    replay.arg("--trace").arg(archive).arg("--report").arg(&report);
    replay.assert().code(DONE).stderr(contains("rank(s) ended early"));
    line.rsplit_once(", ").unwrap().1.split_once(' ').unwrap().0.parse().unwrap()
}

#[test]
fn a_program_that_is_killed_at_any_time_leaves_a_trace_that_replays() {
    let Some(program) = Program::compile("killed.c") else { return };
    let folder = Folder::new();
    for seed in 1..=4 {
        let (assert, run) = program.acquire(&format!("run{seed}"), 4, &[&seed.to_string()]);
        assert.code(FAILED).stderr(contains("4 rank(s) ended without MPI_Finalize"));
        replay_recovered(&folder, &run.archive());
        // The same as if the ranks had been killed at other times, far from each other.
        let shards = (0..4).map(|rank: u64| {
            let bytes = std::fs::read(run.shards().join(format!("{rank}.shard"))).unwrap();
            let init = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1 + UNIT;
            let len = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1 - init;
            let kept = len * (1 + (seed * 31 + rank * 17) as usize % 97) / 97;
            let path = folder.path(&format!("{rank}.shard"));
            std::fs::write(&path, &bytes[..init + kept]).unwrap();
            path
        });
        let shards: Vec<PathBuf> = shards.collect();
        let gathered = gather(&folder, &shards.iter().collect::<Vec<_>>()).code(DONE);
        // Ranks that only poll whether a request has completed may end anywhere.
        let cut = replay_recovered(&folder, &folder.path("run.pdt"));
        gathered.stderr(contains("are left out").count(usize::from(cut > 0)));
    }
}

#[test]
fn regions_are_recorded_and_known_to_the_breakdown() {
    ["regions.c", "regions.f90"].into_iter().for_each(record_regions);
}

fn record_regions(source: &str) {
    let Some(program) = Program::compile(source) else { return };
    let run = program.record("run", 2, &[]);
    let step = "location solver 0; allreduce 4 0; location solver/halo 0; barrier; location solver 0; location outside 0";
    run.expect(0, &format!("{step}; {step}; location level-5 0; bcast 4 0; location outside 0"));
    let folder = Folder::new();
    let report = folder.path("report.json");
    let mut replay = command();
    replay
        .arg("--platform")
        .arg(repository().join("configs/platforms/torus-5g.toml"))
        .arg("--trace")
        .arg(run.archive());
    replay.arg("--report").arg(&report).assert().code(DONE);
    let regions = SavedReport::from_path(&report).unwrap().sections.breakdown.unwrap().regions;
    let mut sites: Vec<_> = regions.iter().map(|region| (region.site.as_deref(), region.ranks)).collect();
    sites.sort_unstable();
    let named = ["level-5", "outside", "solver", "solver/halo"].map(|name| (Some(name), 2));
    assert_eq!(sites, [vec![(None, 2)], named.to_vec()].concat());
}

#[test]
fn times_are_recorded_on_request() {
    let Some(program) = Program::compile("stencil.c") else { return };
    let (assert, run) = program.acquire_with(&["--with-times"], "timed", 2, &["20", "100000"]);
    assert.code(DONE);
    run.check();
    let dump =
        command().args(["trace", "dump"]).arg(run.archive()).assert().code(DONE).get_output().stdout.clone();
    let lines = String::from_utf8(dump).unwrap();
    let time = |line: &str| line.rsplit_once(" time=").map(|(_, time)| time.parse::<u64>().unwrap());
    let is_untimed = |line: &&str| line.ends_with(" init") || line.ends_with(" finalize");
    assert!(lines.lines().filter(|line| !is_untimed(line)).all(|line| time(line).is_some()), "{lines}");
    let computed: u64 = lines.lines().filter(|line| line.starts_with("0 compute ")).filter_map(time).sum();
    assert!(computed > 0);
    let info = command().args(["trace", "info"]).arg(run.archive()).assert().code(DONE);
    info.stdout(contains("times:    measured"));
    let mut validate = command();
    validate.arg("validate").arg(run.archive());
    validate
        .arg("--platform")
        .arg(repository().join("configs/platforms/torus-5g.toml"))
        .assert()
        .code(DONE)
        .stdout(
            contains("run time")
                .and(contains("by computation"))
                .and(contains("waitall"))
                .and(contains("most of the error")),
        );
}

#[test]
fn programs_that_are_not_recorded_are_reported() {
    let folder = Folder::new();
    let tracer = folder.write("tracer.so", "");
    let acquire = |tracer: &PathBuf, program: &str| {
        let mut acquire = command();
        acquire
            .args(["trace", "acquire", "--output"])
            .arg(folder.path("run.pdt"))
            .arg("--tracer")
            .arg(tracer);
        acquire.args(["--", program]).assert().code(FAILED).stdout("")
    };
    acquire(&tracer, "true").stderr(contains("no process was recorded")).stderr(contains("statically"));
    acquire(&tracer, "false").stderr(contains("exit status 1 before any process had entered MPI"));
    acquire(&tracer, "/no/such/program").stderr(contains("/no/such/program: No such file"));
    let hint = "build it with `pdes-replay tracer install`";
    acquire(&folder.path("missing.so"), "true").stderr(contains("missing.so")).stderr(contains(hint));
    assert!(!folder.path("run.pdt").exists());
}

/// Records a kind of error of `errors.c` by a program that ends; returns what the recording and a replay say.
fn record_errors(program: &Program, kind: &str) -> (Vec<Vec<String>>, String, String) {
    let (assert, run) = program.acquire(kind, 2, &[kind]);
    let said = String::from_utf8(assert.code(DONE).get_output().stderr.clone()).unwrap();
    command().args(["trace", "check"]).arg(run.archive()).assert().code(DONE);
    let replayed = replay(&run.archive()).code(DONE).get_output().stderr.clone();
    (run.all_calls(), said, String::from_utf8(replayed).unwrap())
}

fn replay(archive: &Path) -> assert_cmd::assert::Assert {
    let mut replay = command();
    replay.arg("--platform").arg(repository().join("configs/platforms/torus-5g.toml"));
    replay.arg("--trace").arg(archive).assert()
}

#[test]
fn errors_that_programs_tolerate_are_recorded_as_what_they_do() {
    let Some(program) = Program::compile("errors.c") else { return };
    let (calls, said, _) = record_errors(&program, "nobody");
    let none = "probe -666 -444; recv -666 -444 4; iprobe -666 3 done=yes; irecv -666 -444 4 req=0; wait req=0; recv -666 -444 4";
    assert_eq!(calls[0][1..7].join("; "), none);
    assert!(!said.contains("returned an error"), "{said}");

    let (calls, ..) = record_errors(&program, "truncated");
    let received = "recv 0 1 40; irecv -555 1 40 req=0 source=0; wait req=0; irecv 0 1 40 req=0; irecv 0 1 50 req=1; \
                    waitall req=0,1; sendRecv 8 -666 40 0 6 6 stag=1 rtag=1; probe 0 1; recv 0 1 40; recv 0 1 100000";
    assert_eq!(calls[1][1..calls[1].len() - 1].join("; "), received);

    let (calls, said, replayed) = record_errors(&program, "refused");
    assert_eq!(calls[0].join("; "), "init; barrier; barrier; isend 1 0 1 req=0; wait req=0; finalize");
    let expected = "rank 0 made 15 calls that returned an error and did nothing, the first of MPI_Send";
    assert!(said.contains(expected) && replayed.contains(expected), "{said}");

    let (calls, said, replayed) = record_errors(&program, "unknown");
    assert_eq!(calls[0].join("; "), "init; finalize");
    let expected = "2 ranks, the first is rank 0, made 2 calls on requests that no recorded call had made, the first of MPI_Wait";
    assert!(said.contains(expected) && replayed.contains(expected), "{said}");
}

#[test]
fn threads_and_idle_processes_are_reported() {
    let idle = Program::compile("errors.c").map(|program| record_errors(&program, "idle"));
    let Some((_, said, replayed)) = idle else { return };
    let expected = "computed for less than 1 % of the time that elapsed outside of MPI";
    assert!(said.contains(expected) && replayed.contains(expected), "{said}");
    let Some(program) = Program::compile("threads.c") else { return };
    let (assert, run) = program.acquire("one", 2, &[]);
    assert.code(DONE);
    run.check();
    let (assert, run) = program.acquire("both", 2, &["both"]);
    let warning = "2 ranks, the first is rank 0, called MPI from several threads";
    assert.code(DONE).stderr(contains(warning));
    for command_name in ["check", "info"] {
        let assert = command().args(["trace", command_name]).arg(run.archive()).assert().code(DONE);
        let output = assert.get_output();
        let said = [&output.stdout[..], &output.stderr].concat();
        assert!(String::from_utf8_lossy(&said).contains(warning));
    }
    // The order of the calls of the threads is that of the run: with the receives first it is a deadlock, too.
    replay(&run.archive())
        .code(FAILED)
        .stderr(contains("deadlock in the program"))
        .stderr(contains(format!("\n  {warning}")));
}

#[test]
fn persistent_operations_are_recorded_at_each_start() {
    let Some(program) = Program::compile("persistent.c") else { return };
    let run = program.record("run", 3, &[]);
    let calls = run.calls(0);
    let receive = |source: u32| format!("irecv -555 -444 4 req=0 source={source}; wait req=0; barrier");
    assert_eq!(calls[1..7].join("; "), format!("{}; {}", receive(1), receive(2)));
    if programs::is_open_mpi() {
        let collectives = "iallreduce 32 0 req=1; wait req=1; iallreduce 32 0 req=1; ibcast 16 1 req=2; waitall req=1,2; \
                           ireducescatter 8 8 8 0 req=1; wait req=1";
        assert_eq!(calls[7..14].join("; "), collectives);
        assert_eq!(calls[14..], ["finalize"]);
    }
}

/// Runs a kind of program of `errors.c` that does not end, for some seconds; returns what the recording says.
fn record_hanging(program: &Program, kind: &str) -> (String, PathBuf) {
    let (assert, run) = program.acquire_for(2, kind, 2, &[kind]);
    (String::from_utf8(assert.code(FAILED).get_output().stderr.clone()).unwrap(), run.archive())
}

#[test]
fn programs_that_hang_are_deadlocks() {
    let Some(program) = Program::compile("errors.c") else { return };
    let waits = ["rank 0 was in MPI_Barrier when", "rank 1 was in MPI_Recv(source 0, tag 6) when"];
    let sends =
        ["rank 0 was in MPI_Send(destination 1, tag 1)", "rank 1 was in MPI_Send(destination 0, tag 1)"];
    for (kind, calls) in [("hang", waits), ("send", sends)] {
        let (said, archive) = record_hanging(&program, kind);
        let check = command().args(["trace", "check"]).arg(&archive).assert().code(FAILED);
        let checked = String::from_utf8(check.get_output().stderr.clone()).unwrap();
        let replayed = String::from_utf8(replay(&archive).code(FAILED).get_output().stderr.clone()).unwrap();
        assert!(replayed.contains("deadlock in the program"), "{replayed}");
        for call in calls {
            assert!([&said, &checked, &replayed].iter().all(|text| text.contains(call)), "{call}: {said}");
        }
    }
    // Rank 0 computes: it might send the message some day.
    let (said, archive) = record_hanging(&program, "spin");
    assert!(said.contains("rank 1 was in MPI_Wait when") && !said.contains("deadlock"), "{said}");
    command().args(["trace", "check"]).arg(&archive).assert().code(DONE);
    replay(&archive).code(DONE);
}

#[test]
fn an_interrupt_ends_the_program_and_keeps_what_it_did() {
    let Some(program) = Program::compile("errors.c") else { return };
    for signal in ["-INT", "-TERM"] {
        let (output, run) = program.interrupt(signal, signal, 2, &["hang"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.contains("interrupted; what the program did until then is in"), "{said}");
        assert!(said.contains("rank 1 was in MPI_Recv(source 0, tag 6)"), "{said}");
        command().args(["trace", "info"]).arg(run.archive()).assert().code(DONE);
        assert!(!program.is_running());
    }
}

#[test]
fn a_rank_without_a_shard_died_in_mpi_init() {
    let folder = Folder::new();
    let write = |name: &str, content: String| folder.write(name, &content);
    let shards = folder.path("shards");
    shard(&folder, "from.shard", "a", 1, &["init", "recv 0 7 8"], false);
    // What a launcher leaves of which a process fails: a shard of rank 1 of two.
    let script = format!("cp {} {}/1.shard; exit 3", folder.path("from.shard").display(), "$PDES_TRACE_DIR");
    let tracer = write("tracer.so", String::new());
    let mut acquire = command();
    acquire.args(["trace", "acquire", "--output"]).arg(folder.path("run.pdt")).arg("--shards").arg(&shards);
    acquire.arg("--tracer").arg(&tracer).args(["--", "sh", "-c", &script]);
    acquire.assert().code(FAILED).stderr(contains("1 rank(s) left no shard, the first is rank 0"));
    let text = command().args(["trace", "dump"]).arg(folder.path("run.pdt")).assert().code(DONE);
    text.stdout("0 init\n1 init\n");
}

/// Writes a shard of one of two ranks, with an end or without.
fn shard(folder: &Folder, name: &str, job: &str, rank: u32, calls: &[&str], is_complete: bool) -> PathBuf {
    let header = Header { job, world: 2, rank, counter: "cpu-time", rate: 1e9, library: "any" };
    let mut bytes = header.to_bytes();
    for (index, call) in (0..).zip(calls) {
        let mut words = call.split(' ');
        let mut phrase = Phrase::new(words.next().unwrap());
        words.for_each(|word| phrase.word("", word));
        let amount = phrase.bytes().len() as u64;
        bytes.extend(Unit { index, amount, ..Unit::of_kind(Kind::Phrase) }.to_bytes(false));
        bytes.extend(phrase.padded());
        bytes.extend(Unit { index, ..Unit::of_kind(Kind::Call) }.to_bytes(false));
    }
    if is_complete {
        bytes.extend(COMPLETE_MARK);
    }
    let path = folder.path(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn gather(folder: &Folder, shards: &[&PathBuf]) -> assert_cmd::assert::Assert {
    let mut gather = command();
    gather.args(["trace", "gather", "--output"]).arg(folder.path("run.pdt")).args(shards).assert()
}

#[test]
fn a_shard_is_recovered_up_to_its_last_whole_record() {
    let folder = Folder::new();
    let calls = ["init", "send 1 7 8", "unmodelled MPI_Put bytes=8", "finalize"];
    let whole = shard(&folder, "0.shard", "a", 0, &calls, true);
    let killed =
        shard(&folder, "1.shard", "a", 1, &["init", "compute 50", "recv 0 7 8", "send 0 7 8"], false);
    // The state that a killed process leaves: a record without its first word, then zeros.
    let mut bytes = std::fs::read(&killed).unwrap();
    let last = bytes.len() - UNIT;
    bytes[last..last + 8].fill(0);
    bytes.resize(bytes.len() + 200_000, 0);
    std::fs::write(&killed, bytes).unwrap();
    gather(&folder, &[&whole, &killed])
        .code(DONE)
        .stdout(contains("2 ranks, 7 actions"))
        .stdout(contains("processor time at 1000000000 flops per second"))
        .stderr(contains("1 rank(s) ended without MPI_Finalize, the first is rank 1"))
        .stderr(contains("take no time in a replay: 1 MPI_Put"));
    let text = command().args(["trace", "dump"]).arg(folder.path("run.pdt")).assert().code(DONE);
    text.stdout(contains("1 compute 50\n1 recv 0 7 8 6\n"));
    let info = command().args(["trace", "info"]).arg(folder.path("run.pdt")).assert().code(DONE);
    info.stdout(contains("counted:  processor time at 1000000000 flops per second"))
        .stdout(contains("ends early: 1 rank(s)"));
}

#[test]
fn shards_must_belong_together() {
    let folder = Folder::new();
    let calls = ["init", "finalize"];
    let first = shard(&folder, "0.shard", "a", 0, &calls, true);
    let second = shard(&folder, "1.shard", "a", 1, &calls, true);
    gather(&folder, &[&second, &first]).code(DONE).stdout(contains("2 ranks, 4 actions"));
    let other = shard(&folder, "other.shard", "b", 1, &calls, true);
    gather(&folder, &[&first, &other]).code(FAILED).stderr(contains("other.shard has job=b, but "));
    gather(&folder, &[&first])
        .code(FAILED)
        .stderr(contains("shards of 1 of 2 ranks; 1 is missing, the first is rank 1"));
    gather(&folder, &[&first, &first, &second]).code(FAILED).stderr(contains("are both of rank 0"));
    let outside = shard(&folder, "outside.shard", "a", 2, &[], false);
    gather(&folder, &[&outside]).code(FAILED).stderr(contains("found rank 2, expected one below 2"));
    let none = folder.write("none.shard", "0 init\n");
    gather(&folder, &[&none])
        .code(FAILED)
        .stderr(contains("none.shard: found \"0 init\", expected the first line"));
    let later = folder.write("later.shard", "# pdes-replay shard version=1 job=a\n");
    gather(&folder, &[&later]).code(FAILED).stderr(contains("version 1, expected 3"));
}

/// The programs whose traces are in `tests/data/hypotheses`, and of `benches/what-if/run`.
#[test]
fn the_heart_model_is_the_same_with_its_exchange_at_once_and_overlapped() {
    let results = ["heart.c", "heart_overlapped.c"].map(|source| {
        let program = Program::compile(source)?;
        let (assert, run) = program.acquire("run", 4, &["16", "3"]);
        let output = String::from_utf8(assert.code(DONE).get_output().stdout.clone()).unwrap();
        run.check();
        let sum = output.lines().find(|line| line.starts_with("sum of potentials: ")).unwrap().to_owned();
        let info = command().args(["trace", "info"]).arg(run.archive()).assert().code(DONE);
        // Three steps on a square of four ranks, each of which has two neighbours with 16 cells each.
        info.stdout(contains("messages: 24 with 3072 bytes"));
        let calls = run.calls(0);
        Some((sum, calls.iter().filter(|call| call.starts_with("location halo ")).count()))
    });
    let [Some(one), Some(other)] = results else { return };
    assert_eq!(one, other);
    assert_eq!(one.1, 3);
}

#[test]
fn a_master_takes_results_as_they_come() {
    let Some(program) = Program::compile("waitany.c") else { return };
    let run = program.record("run", 4, &["1"]);
    run.expect(
        2,
        "location foo 0; location outside 0; location bar 0; location outside 0; send 0 1 8; barrier",
    );
    let calls = run.calls(0);
    let waits: Vec<_> = calls.iter().filter(|call| call.starts_with("waitany ")).collect();
    assert_eq!((waits.len(), waits[0].starts_with("waitany req=0-2 ")), (3, true), "{waits:?}");
}
