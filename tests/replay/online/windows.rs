//! One-sided communication of programs: the cases of ../shared/oracle/rma, with the times of SMPI, and recordings.

use std::collections::BTreeMap;

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use super::Program;
use crate::reference::rows;
use crate::shared::shared;

/// Begin and end of a step on each rank \[s\], by its name and its number among those of a rank.
type Steps = BTreeMap<(String, usize), Vec<(f64, f64)>>;
/// How often each rank has made each step.
type Counts = BTreeMap<(String, String), usize>;

/// Adds a step of a rank.
fn add(steps: &mut Steps, counts: &mut Counts, [name, rank, begin, end]: [&str; 4]) {
    let count = counts.entry((name.to_owned(), rank.to_owned())).or_default();
    *count += 1;
    let times = (begin.parse().unwrap(), end.parse().unwrap());
    steps.entry((name.to_owned(), *count)).or_default().push(times);
}

/// Returns steps in the order of their ends: who comes first at one instant is not a promise.
fn in_order(mut steps: Steps) -> Steps {
    let by_end =
        |one: &(f64, f64), other: &(f64, f64)| one.1.total_cmp(&other.1).then(one.0.total_cmp(&other.0));
    steps.values_mut().for_each(|times| times.sort_by(by_end));
    steps
}

#[test_with::shared]
fn one_sided_communication_takes_the_time_of_smpi() {
    let Some(program) = Program::compile(&shared("oracle/rma/rma_micro.c")) else { return };
    let mut cases: BTreeMap<[String; 4], (Steps, Counts)> = BTreeMap::new();
    for row in rows(&shared("oracle/rma/expected.csv")) {
        let case = ["case", "bytes", "np", "platform"].map(|key| row[key].clone());
        let (steps, counts) = cases.entry(case).or_default();
        add(steps, counts, ["step", "rank", "begin_s", "end_s"].map(|key| row[key].as_str()));
    }
    let mut wrong = String::new();
    for ([case, bytes, np, platform], (expected, _)) in cases {
        let settings = [
            format!("platform.file={:?}", shared("oracle").join(format!("{platform}.xml"))),
            format!("platform.hosts={:?}", shared("oracle/hosts.txt")),
            "network.preset='smpi'".to_owned(),
        ];
        let flags: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let mut run = program.command(np.parse().unwrap(), &flags);
        let output = run.args([&case, &bytes]).assert().success().get_output().stdout.clone();
        let (mut found, mut counts) = Default::default();
        for line in String::from_utf8(output).unwrap().lines() {
            if let ["step", name, rank, begin, end] = line.split(' ').collect::<Vec<_>>()[..] {
                add(&mut found, &mut counts, [name, rank, begin, end]);
            }
        }
        let (mut expected, found) = (in_order(expected), in_order(found));
        // SMPI's exclusive locks let transfers overlap: each rank should have the lock for its own.
        if case == "lock_put" && np != "2" {
            const TRANSFER: f64 = 0.002014932;
            expected.clear();
            for place in 0..3 {
                let [begin, end] = [place, place + 1].map(|transfers| f64::from(transfers) * TRANSFER);
                expected.entry(("lock".to_owned(), 1)).or_default().push((0.0, begin));
                expected.entry(("put".to_owned(), 1)).or_default().push((begin, begin));
                expected.entry(("unlock".to_owned(), 1)).or_default().push((begin, end));
            }
        }
        // The second comparison fails here: SMPI's first put comes too late for it, and the second one is waited for.
        if case == "lock_swap" {
            expected.remove(&("unlock".to_owned(), 1));
        }
        // Ranks are not equally far: whose turn is the second decides when it ends.
        let keeps_last = case == "lock_fetch_and_op" && platform == "torus-5g";
        for (step, mut expected) in expected {
            let mut found = found.get(&step).cloned().unwrap_or_default();
            if keeps_last {
                let keep_last = |times: &mut Vec<_>| drop(times.drain(..times.len().saturating_sub(1)));
                [&mut found, &mut expected].into_iter().for_each(keep_last);
            }
            let is_close = |(found, expected): (&(f64, f64), &(f64, f64))| {
                let limit = |expected: f64| 1.1e-8 + if np == "2" { 0.0 } else { 1e-5 * expected };
                (found.0 - expected.0).abs() <= limit(expected.0)
                    && (found.1 - expected.1).abs() <= limit(expected.1)
            };
            if found.len() != expected.len() || !found.iter().zip(&expected).all(is_close) {
                wrong += &format!("{case} {bytes} {np} {platform} {step:?}: {found:?}, SMPI {expected:?}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// All calls on windows: the data arrive, and the trace of the run has its digest.
#[test]
fn windows_have_their_data_and_are_recorded() {
    let body = "int *memory, got[2] = {0}, one = 1, old, flag, next = (rank + 1) % size, before = (rank + size - 1) % size;\n\
        MPI_Win win;\nMPI_Group all, to, from;\nMPI_Request request;\n\
        MPI_Comm_group(MPI_COMM_WORLD, &all);\nMPI_Group_incl(all, 1, &next, &to);\nMPI_Group_incl(all, 1, &before, &from);\n\
        MPI_Win_allocate(8 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);\n\
        for (int i = 0; i < 8; i++) memory[i] = 0;\nMPI_Win_fence(MPI_MODE_NOPRECEDE, win);\n\
        for (int round = 1; round < 4; round++) {\n\
        int sent = 100 * rank + round;\nMPI_Put(&sent, 1, MPI_INT, next, 0, 1, MPI_INT, win);\nMPI_Win_fence(0, win);\n\
        if (memory[0] != 100 * before + round) printf(\"put\\n\");\n\
        MPI_Get(got, 1, MPI_INT, next, 0, 1, MPI_INT, win);\nMPI_Win_fence(0, win);\n\
        if (got[0] != sent) printf(\"get\\n\");\nusleep(3 * rank);\n\
        MPI_Win_post(from, 0, win);\nMPI_Win_start(to, 0, win);\nMPI_Put(&sent, 1, MPI_INT, next, 1, 1, MPI_INT, win);\n\
        MPI_Win_complete(win);\nif (round % 2) MPI_Win_wait(win);\nelse for (flag = 0; !flag;) MPI_Win_test(win, &flag);\n\
        if (memory[1] != 100 * before + round) printf(\"exposure\\n\");\nMPI_Barrier(MPI_COMM_WORLD);\n\
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);\nMPI_Get(got, 1, MPI_INT, 0, 2, 1, MPI_INT, win);\n\
        MPI_Win_flush_local(0, win);\ngot[0]++;\nMPI_Put(got, 1, MPI_INT, 0, 2, 1, MPI_INT, win);\nMPI_Win_unlock(0, win);\n\
        MPI_Win_lock_all(0, win);\nMPI_Fetch_and_op(&one, &old, MPI_INT, 0, 3, MPI_SUM, win);\n\
        MPI_Accumulate(&one, 1, MPI_INT, next, 4, 1, MPI_INT, MPI_SUM, win);\n\
        MPI_Rget(&got[1], 1, MPI_INT, next, 4, 1, MPI_INT, win, &request);\nMPI_Wait(&request, MPI_STATUS_IGNORE);\n\
        MPI_Rput(&sent, 1, MPI_INT, next, 5, 1, MPI_INT, win, &request);\nMPI_Wait(&request, MPI_STATUS_IGNORE);\n\
        int mine = rank + 1, nobody = 0;\nMPI_Win_flush_all(win);\n\
        MPI_Compare_and_swap(&mine, &nobody, &old, MPI_INT, 0, 6, win);\nMPI_Win_unlock_all(win);\n\
        MPI_Barrier(MPI_COMM_WORLD);\n}\nMPI_Win_fence(0, win);\n\
        printf(\"%d %d %d %d %d %d\\n\", rank, got[1], memory[2], memory[3], memory[4], memory[6] > 0);\nMPI_Win_free(&win);";
    let Some(program) = Program::with_body(body) else { return };
    for flags in [&["--model", "contention-free"], &["--set", "network.preset='smpi'"]] {
        let lines = program.lines_of_recorded(4, flags);
        assert_eq!(lines, ["0 3 12 12 3 1", "1 3 0 0 3 0", "2 3 0 0 3 0", "3 3 0 0 3 0"]);
    }
}

#[test]
fn windows_without_memory_fail() {
    let body = "MPI_Win win;\nMPI_Win_create(NULL, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);";
    let Some(program) = Program::with_body(body) else { return };
    program.run(2, &[]).code(1).stderr(contains("MPI_ERR_BUFFER")).stderr(contains("in MPI_Win_create "));
}

/// Accesses and synchronisation outside of epochs or windows fail, with the reason; epochs that overlap or stay open are warned of, with both calls.
/// A rank that waits for a lock waits for whoever holds it.
#[test]
fn deadlocks_on_locks_name_the_window_and_the_holder() {
    let body = "MPI_Win window; int memory = 0;\n\
        MPI_Win_create(&memory, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);\n\
        if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);\nMPI_Barrier(MPI_COMM_WORLD);\n\
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);\nMPI_Barrier(MPI_COMM_WORLD);\n\
        if (rank < 2) MPI_Win_unlock(2, window);\nMPI_Win_free(&window);";
    let Some(program) = Program::with_body(body) else { return };
    program
        .run(3, &[])
        .code(1)
        .stderr(contains("for the lock of the window of rank 2, which rank 1 holds"))
        .stderr(contains("detached_below_bytes").not())
        .stderr(contains("rank 0 in MPI_Win_lock"));
}

#[test]
fn epochs_that_are_not_opened_or_not_closed_are_named() {
    let put = "MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);";
    let cases = [
        (put.to_owned(), 1, "in MPI_Put (called from ", "the target is accessed in no epoch"),
        (
            "MPI_Win_fence(0, win); MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win);".to_owned(),
            1,
            "in MPI_Put ",
            "the target's window does not reach so far",
        ),
        (
            "MPI_Win_fence(0, win); MPI_Get(&rank, 1, MPI_INT, 1, 0, 1, MPI_CHAR, win);".to_owned(),
            1,
            "in MPI_Get ",
            "the data of the origin and of the target have different lengths",
        ),
        ("MPI_Win_unlock(1, win);".to_owned(), 1, "in MPI_Win_unlock ", "the target is not locked"),
        ("MPI_Win_flush(1, win);".to_owned(), 1, "in MPI_Win_flush ", "the window is not locked"),
        ("MPI_Win_complete(win);".to_owned(), 1, "in MPI_Win_complete ", "no epoch of MPI_Win_start"),
        (
            "MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win); MPI_Win_fence(0, win);".to_owned(),
            1,
            "in MPI_Win_fence ",
            "the epoch of a lock or of MPI_Win_start is open",
        ),
        (
            format!("MPI_Win_fence(0, win); {put}"),
            0,
            "MPI_Win_free frees a window with accesses in the epoch of MPI_Win_fence, called from ",
            "program+0x",
        ),
        (
            format!("MPI_Win_lock_all(0, win); {put}"),
            0,
            "MPI_Win_free frees a window in the epoch of MPI_Win_lock_all, called from ",
            "program+0x",
        ),
        (
            format!(
                "MPI_Win_fence(0, win); MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win); {put} MPI_Win_unlock(1, win);\n\
                 MPI_Win_fence(0, win);"
            ),
            0,
            "MPI_Win_fence ends the epoch of a fence, in which lay that of MPI_Win_lock, called from ",
            "epochs of a window must not overlap",
        ),
    ];
    for (body, code, first, second) in cases {
        let text = format!(
            "int memory = 0; MPI_Win win;\n\
             MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);\n{body}\nMPI_Win_free(&win);"
        );
        let Some(program) = Program::with_body(&text) else { return };
        program.run(2, &["--threads", "1"]).code(code).stderr(contains(first)).stderr(contains(second));
    }
    let body = "int memory = 0; MPI_Win win;\n\
        MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);\n\
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);\nif (rank == 0) MPI_Put(&size, 1, MPI_INT, 1, 0, 1, MPI_INT, win);\n\
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);\nMPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);\n\
        MPI_Put(&size, 1, MPI_INT, 0, 0, 1, MPI_INT, win);\nMPI_Win_unlock(0, win);\nMPI_Win_free(&win);";
    let Some(program) = Program::with_body(body) else { return };
    program.run(2, &["--threads", "1"]).success().stderr(contains("WARN").not());
}
