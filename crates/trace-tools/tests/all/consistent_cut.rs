//! Traces of programs that were killed at any time are cut to a consistent cut.

use std::fs;
use std::path::{Path, PathBuf};

use crate::call_programs::writer::{RANKS, step, text};
use pdes_core::Rank;
use proptest::prelude::*;
use ti_shard::{Header, Kind, Phrase, ProcessState, Unit};
use trace_mmap::{Finding, LoadOptions, Trace, check};
use trace_tools::{RemovedActions, load, recover, write_consistent_cut, write_text};

/// Writes the first lines of each rank into files of their own.
fn split(dir: &Path, text: &str, lengths: impl Fn(u32, usize) -> usize) -> Vec<PathBuf> {
    let write = |rank: u32| {
        let prefix = format!("{rank} ");
        let lines: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with(&prefix)).collect();
        let kept = lines[..lengths(rank, lines.len())].iter().map(|line| format!("{}\n", line.trim()));
        let file = dir.join(format!("{rank}.text"));
        fs::write(&file, kept.collect::<String>()).expect("the text is written");
        file
    };
    (0..RANKS).map(write).collect()
}

fn settled(files: &[PathBuf], dir: &Path) -> (RemovedActions, Trace) {
    fs::create_dir_all(dir).expect("a directory");
    let settled = write_consistent_cut(files, dir, &LoadOptions::default())
        .expect("the ranks are right, each by itself");
    (settled, trace_tools::load(dir, &LoadOptions::default()).expect("what is left fits"))
}

/// Cuts programs of three ranks, and returns the remaining lines of each.
fn remaining_lines(programs: [&str; 3]) -> [String; 3] {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let lines = |(rank, program): (usize, &str)| {
        let lines = program.split(';').map(|line| format!("{rank} {}\n", line.trim()));
        lines.collect::<String>()
    };
    let text: String = programs.into_iter().enumerate().map(lines).collect();
    let files = split(dir.path(), &text, |_, lines| lines);
    let (_, trace) = settled(&files, &dir.path().join("out"));
    std::array::from_fn(|rank| {
        let mut text = Vec::new();
        write_text(&trace, Rank::new(rank as u32), &mut text, None).expect("memory takes all");
        let text = String::from_utf8(text).expect("text");
        let lines = text.lines().map(|line| line.split_once(' ').expect("a rank and an action").1);
        lines.collect::<Vec<_>>().join("; ")
    })
}

#[test]
fn ranks_end_before_what_others_have_not_recorded() {
    // Rank 2 has not entered the second barrier, rank 1 has received what follows it in rank 0.
    let [zero, one, two] = remaining_lines([
        "init; barrier; compute 1; barrier; send 1 7 8",
        "init; barrier; barrier; recv 0 7 8; compute 5",
        "init; barrier; compute 9",
    ]);
    assert_eq!(zero, "init; barrier; compute 1");
    assert_eq!(one, "init; barrier");
    assert_eq!(two, "init; barrier; compute 9");
}

#[test]
fn one_cut_leads_to_another() {
    let [zero, one, two] = remaining_lines([
        "init; send 1 1 8; recv 2 3 8; compute 7",
        "init; recv 0 1 8; recv 2 4 8; send 2 2 8",
        "init; recv 1 2 8; send 0 3 8",
    ]);
    assert_eq!(
        (zero.as_str(), one.as_str(), two.as_str()),
        ("init; send 1 1 8 6", "init; recv 0 1 8 6", "init")
    );
}

#[test]
fn requests_without_another_side_are_left_out_and_sends_do_not_wait() {
    let [zero, one, two] = remaining_lines([
        "init; irecv 1 1 8 req=0; irecv 1 2 8 req=1; ibarrier req=2; waitany req=0,1,2 done=0; test req=2 done=-; \
         testsome req=1,2 done=-; compute 5",
        "init; send 0 1 8; ssend 2 9 800000; sendRecv 8 2 8 2 6 6 stag=5 rtag=6; isend 2 5 8 req=0; wait req=0; \
         compute 3",
        "init; send 1 6 8",
    ]);
    assert_eq!(zero, "init; irecv 1 1 8 6 req=0; waitany req=0 done=0; compute 5");
    let (exchange, isend) = ("bsend 2 5 8 6; recv 2 6 8 6", "ibsend 2 5 8 6 req=0; wait req=0");
    assert_eq!(one, format!("init; send 0 1 8 6; bsend 2 9 800000 6; {exchange}; {isend}; compute 3"));
    assert_eq!(two, "init; send 1 6 8 6");
}

/// The message was recorded as arrived, but its send was not recorded.
#[test]
fn a_status_of_complete_depends_on_the_message() {
    let [zero, ..] = remaining_lines([
        "init; irecv 1 1 8 req=0; request_get_status req=0 done=no; compute 5; request_get_status req=0 done=yes; \
         compute 7; wait req=0",
        "init",
        "init",
    ]);
    assert_eq!(zero, "init; compute 5");
}

/// A file is open when all have opened it; what one rank does with it concerns that rank only.
#[test]
fn an_open_file_depends_on_all_ranks() {
    let [zero, one, _] = remaining_lines([
        "init; io-open /x 0; compute 5; io-write /x 8; io-close /x; compute 7",
        "init; io-open /x 0; compute 6",
        "init; io-open /x 0; compute 6; io-close /x",
    ]);
    assert_eq!(zero, "init; io-open /x 0; compute 5; io-write /x 8");
    assert_eq!(one, "init; io-open /x 0; compute 6");
}

#[test]
fn starts_of_persistent_requests_are_left_out_each_by_itself() {
    let [zero, one, _] = remaining_lines([
        "init; send_init 1 7 8 req=0; recv_init 1 8 8 req=1; startall req=0,1; waitall req=0,1; startall req=0,1; compute 4",
        "init; recv 0 7 8; send 0 8 8; send 0 8 8",
        "init",
    ]);
    let inits = "init; send_init 1 7 8 6 req=0; recv_init 1 8 8 6 req=1";
    assert_eq!(zero, format!("{inits}; startall req=0,1; waitall req=0,1; startall req=1; compute 4"));
    assert_eq!(one, "init; recv 0 7 8 6; send 0 8 8 6; send 0 8 8 6");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_killed_program_is_cut_consistently(
        steps in prop::collection::vec(step(), 0..40),
        ends in prop::array::uniform3(prop::option::of(any::<prop::sample::Index>())),
    ) {
        let (text, dir) = (text(&steps), tempfile::tempdir().expect("a temporary directory"));
        let files = split(dir.path(), &text, |rank, lines| {
            ends[rank as usize].map_or(lines, |end| end.index(lines + 1))
        });
        let (first, trace) = settled(&files, &dir.path().join("first"));
        let is_unfinished = |finding: &Finding| matches!(finding, Finding::Unfinished { .. });
        let findings = check(&trace, None).findings;
        prop_assert!(findings.iter().all(is_unfinished), "{findings:?}\n{text}");
        if ends.iter().all(Option::is_none) {
            prop_assert_eq!(first, RemovedActions::default(), "{}", text);
        }
        let left: Vec<PathBuf> = (0..RANKS).map(|rank| dir.path().join(format!("first/rank-{rank}.txt"))).collect();
        let (again, _) = settled(&left, &dir.path().join("again"));
        prop_assert_eq!(again, RemovedActions::default(), "what fits together is not cut");
    }
}

/// Writes a shard of a process that was in a call when it was killed, with the actions that it had completed.
fn killed(path: &Path, rank: u32, call: &str, completed: &[&str], begun: Option<&str>) {
    let header = Header { job: "job", world: 2, rank, counter: "cpu-time", rate: 1e9, library: "any" };
    let mut bytes = header.to_bytes();
    let mut state = ProcessState::default();
    state.set(ProcessState::CALL, &ProcessState::name_words(call.as_bytes()));
    let place = bytes.len() - ProcessState::BYTES;
    bytes[place..].copy_from_slice(&state.to_bytes());
    let all = completed.iter().zip(std::iter::repeat(true)).chain(begun.iter().zip([false]));
    for (index, (action, is_complete)) in (0..).zip(all) {
        let mut words = action.split(' ');
        let mut phrase = Phrase::new(words.next().unwrap());
        words.for_each(|word| phrase.word("", word));
        let amount = phrase.bytes().len() as u64;
        bytes.extend(Unit { index, amount, ..Unit::of_kind(Kind::Phrase) }.to_bytes(false));
        bytes.extend(phrase.padded());
        let unit = Unit { index, ..Unit::of_kind(Kind::Call) };
        let words = if is_complete { unit.words(false) } else { unit.begun_words() };
        bytes.extend(words.map(u64::to_le_bytes).concat());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn deadlocks_are_told_from_programs_that_were_killed() {
    type Process<'a> = (&'a str, &'a [&'a str], Option<&'a str>);
    let recovered = |processes: [Process<'_>; 2]| {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| dir.path().join(name));
        for (rank, (file, (call, completed, begun))) in (0..).zip(files.iter().zip(processes)) {
            killed(file, rank, call, &[&["init"], completed].concat(), begun);
        }
        let recovered = recover(&files, dir.path(), &LoadOptions::default()).unwrap();
        load(dir.path(), &LoadOptions::default()).unwrap();
        let calls = recovered.calls.iter().map(|(rank, call)| format!("{rank}: {call}"));
        (calls.collect::<Vec<_>>().join("; "), recovered.is_deadlocked)
    };
    let receives: Process<'_> = ("c_Recv", &[], Some("recv 0 6 8"));
    let cases: [([Process<'_>; 2], &str, bool); 12] = [
        // The tags differ.
        (
            [("c_Barrier", &["send 1 5 8", "barrier"], None), receives],
            "0: MPI_Barrier; 1: MPI_Recv(source 0, tag 6)",
            true,
        ),
        // The message was on its way.
        (
            [("c_Barrier", &["send 1 6 8", "barrier"], None), receives],
            "0: MPI_Barrier; 1: MPI_Recv(source 0, tag 6)",
            false,
        ),
        // Rank 0 computed.
        ([("", &[], None), receives], "1: MPI_Recv(source 0, tag 6)", false),
        // Rank 0 has finished.
        ([("", &["finalize"], None), receives], "1: MPI_Recv(source 0, tag 6)", true),
        // A call that was not begun for the trace.
        (
            [("f_comm_split", &["barrier"], None), ("c_Barrier", &["barrier"], None)],
            "0: MPI_Comm_split; 1: MPI_Barrier",
            false,
        ),
        // Small messages need no receive, large and synchronous ones do.
        (
            [("c_Send", &["send 1 1 8"], None), ("c_Send", &["send 0 1 8"], None)],
            "0: MPI_Send(destination 1, tag 1); 1: MPI_Send(destination 0, tag 1)",
            false,
        ),
        (
            [("c_Send", &["send 1 1 100000"], None), ("c_Ssend", &["ssend 0 1 8"], None)],
            "0: MPI_Send(destination 1, tag 1); 1: MPI_Ssend(destination 0, tag 1)",
            true,
        ),
        // Requests.
        (
            [
                ("c_Waitall", &["irecv 1 3 8 req=0", "isend 1 1 8 req=1"], Some("waitall req=0,1")),
                ("c_Wait", &["issend 0 4 8 req=0"], Some("wait req=0")),
            ],
            "0: MPI_Waitall; 1: MPI_Wait",
            true,
        ),
        (
            [
                ("c_Waitall", &["irecv 1 3 8 req=0", "isend 1 1 8 req=1"], Some("waitall req=0,1")),
                ("c_Wait", &["issend 0 3 8 req=0"], Some("wait req=0")),
            ],
            "0: MPI_Waitall; 1: MPI_Wait",
            false,
        ),
        // Both receive first.
        (
            [
                ("c_Sendrecv", &[], Some("sendRecv 8 1 8 1 6 6 stag=1 rtag=2")),
                ("c_Sendrecv", &[], Some("sendRecv 8 0 8 0 6 6 stag=1 rtag=3")),
            ],
            "0: MPI_Sendrecv(destination 1, tag 1; source 1, tag 2); 1: MPI_Sendrecv(destination 0, tag 1; source 0, tag 3)",
            true,
        ),
        // Rank 0 has sent what rank 1 receives, whatever it receives itself.
        (
            [
                ("c_Sendrecv", &[], Some("sendRecv 8 1 8 1 6 6 stag=1 rtag=2")),
                ("c_Sendrecv", &[], Some("sendRecv 8 0 8 0 6 6 stag=1 rtag=1")),
            ],
            "0: MPI_Sendrecv(destination 1, tag 1; source 1, tag 2); 1: MPI_Sendrecv(destination 0, tag 1; source 0, tag 1)",
            false,
        ),
        // A probe of any source needs no particular message.
        (
            [("c_Probe", &[], Some("probe -555 -444")), receives],
            "0: MPI_Probe(source any, tag any); 1: MPI_Recv(source 0, tag 6)",
            false,
        ),
    ];
    for (processes, calls, is_deadlocked) in cases {
        assert_eq!(recovered(processes), (calls.to_owned(), is_deadlocked));
    }
}
