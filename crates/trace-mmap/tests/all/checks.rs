//! Checks of collective operations, messages and files: programs that are wrong by the MPI standard, and those that are not.

use std::fs;

use trace_mmap::{
    ConvertOptions, Cut, Folding, LoadOptions, Trace, WriteError, check, check_collectives, cut,
};

fn load(text: &str) -> Trace {
    trace_tools::from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Makes a trace of ranks, of the lines that each has after its `init`.
fn ranks(programs: &[&str]) -> String {
    let line = |rank: usize, line: &str| format!("{rank} {}\n", line.trim());
    let program = |(rank, program): (usize, &&str)| {
        ["init"]
            .into_iter()
            .chain(program.split('\n'))
            .chain(["finalize"])
            .map(|text| line(rank, text))
            .collect::<String>()
    };
    programs.iter().enumerate().map(program).collect()
}

/// Returns what a check finds in a trace, also as a folded archive; both find the same.
fn findings(text: &str) -> Vec<String> {
    let trace = load(text);
    let found: Vec<String> = check(&trace, None).findings.iter().map(ToString::to_string).collect();
    let dir = tempfile::tempdir().expect("a directory");
    let (merged, archive) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
    fs::write(&merged, text).expect("the text is written");
    let options = ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() };
    trace_tools::convert(&merged, &archive, &options).expect("it converts");
    let archived = Trace::load(&archive).expect("an archive");
    let of_archive: Vec<String> = check(&archived, None).findings.iter().map(ToString::to_string).collect();
    assert_eq!(of_archive, found);
    let collectives = check_collectives(&Trace::open(&archive).expect("an archive")).expect("it is whole");
    let is_collective = |found: &&String| found.starts_with("collective operation");
    assert_eq!(collectives.map(|found| found.to_string()).as_ref(), found.iter().find(is_collective));
    found
}

#[test]
fn differences_of_collective_operations_are_told() {
    let cases = [
        (
            "reduce 10 0 0 6",
            "reduce 10 0 1 6",
            "rank 0 has reduce with root 0 (action 1), rank 1 has reduce with root 1 (action 1)",
        ),
        (
            "bcast 10 1 6",
            "bcast 20 1 6",
            "rank 0 has bcast of 10 B (action 1), rank 1 has bcast of 20 B (action 1)",
        ),
        (
            "bcast 10 1 6",
            "bcast 20 0 6",
            "rank 0 has bcast with root 1 of 10 B (action 1), rank 1 has bcast with root 0 of 20 B (action 1)",
        ),
        ("scan 1 0 0", "scan 1 0 1", "rank 0 has scan of 8 B (action 1), rank 1 has scan of 4 B (action 1)"),
        (
            "allgather 1 1 6 6",
            "allgather 2 2 6 6",
            "rank 0 has allgather of 1 B (action 1), rank 1 has allgather of 2 B (action 1)",
        ),
        (
            "alltoall 1 2 6 6",
            "alltoall 1 2 6 6",
            "in alltoall rank 0 sends 1 B to rank 0, which receives 2 B",
        ),
        (
            "gather 10 10 0 6 6",
            "gather 20 10 0 6 6",
            "rank 0 has gather of 10 B (action 1), rank 1 has gather of 20 B (action 1)",
        ),
        (
            "scatter 10 10 1 6 6",
            "scatter 20 20 1 6 6",
            "rank 0 has scatter of 10 B (action 1), rank 1 has scatter of 20 B (action 1)",
        ),
        (
            "reducescatter 1 2 0 6",
            "reducescatter 1 3 0 6",
            "rank 0 has reducescatter of 2 B for rank 1 of the communicator (action 1), rank 1 has reducescatter of 3 B for rank 1 of the communicator (action 1)",
        ),
        (
            "allgatherv 7 7 5 6 6",
            "allgatherv 4 7 5 6 6",
            "in allgatherv rank 1 sends 4 B to rank 1, which receives 5 B",
        ),
        (
            "alltoallv 3 1 2 3 1 2 6 6",
            "alltoallv 4 3 1 3 2 1 6 6",
            "in alltoallv rank 1 sends 3 B to rank 0, which receives 2 B",
        ),
        (
            "gatherv 5 5 6 0 6 6",
            "gatherv 7 0 0 0 6 6",
            "in gatherv rank 1 sends 7 B to rank 0, which receives 6 B",
        ),
        (
            "scatterv 5 6 5 0 6 6",
            "scatterv 0 0 7 0 6 6",
            "in scatterv rank 0 sends 6 B to rank 1, which receives 7 B",
        ),
        (
            "neighbor_alltoallv 6 6 to=1 scounts=8 from=- rcounts=-",
            "neighbor_alltoallv 6 6 to=- scounts=- from=0 rcounts=9",
            "in neighbor_alltoallv rank 0 sends 8 B to rank 1, which receives 9 B",
        ),
        (
            "io-open /a 0",
            "io-open /b 0",
            "rank 0 has io-open of /a (action 1), rank 1 has io-open of /b (action 1)",
        ),
        ("barrier", "compute 1", "rank 0 has barrier (action 1), rank 1 has none"),
    ];
    for (one, other, expected) in cases {
        let expected = format!("collective operation 0 on communicator 0: {expected}");
        assert_eq!(findings(&ranks(&[one, other])), [expected], "{one}, {other}");
    }
    // In iteration 7 of a loop, on a communicator in the reverse order.
    let body = |last: u64| {
        let iterations = (0..20).map(|iteration| {
            format!("compute 1\nbcast {} 1 6 comm=3\n", if iteration == 7 { last } else { 5 })
        });
        format!("comm_split new=3 members=1-0:-1\n{}barrier", iterations.collect::<String>())
    };
    assert_eq!(
        findings(&ranks(&[&body(5), &body(6)])),
        [
            "collective operation 7 on communicator 3: rank 0 has bcast of 5 B (action 17), rank 1 has bcast of 6 B (action 17)"
        ]
    );
}

#[test]
fn programs_that_are_right_are_found_right() {
    let programs: [&[&str]; 10] = [
        // Counts at the root only, as recorded; the root takes part in place.
        &["gatherv 10 10 20 30 0 6 6", "gatherv 20 0 0 0 0 6 6", "gatherv 30 0 0 0 0 6 6"],
        &["gatherv 0 10 20 0 6 6", "gatherv 20 0 0 0 6 6"],
        &["scatterv 0 0 20 1 6 6", "scatterv 20 9 0 1 6 6"],
        &["gather 0 10 0 6 6", "gather 10 0 0 6 6"],
        &["scatter 10 0 0 6 6", "scatter 0 10 0 6 6"],
        // Other types, equally many bytes.
        &["allgatherv 1 1 2 0 0", "allgatherv 16 8 16 6 6"],
        &["alltoall 2 1 1 0", "alltoall 8 8 6 6"],
        &["alltoallv 3 1 2 3 1 2 6 6", "alltoallv 3 2 1 3 2 1 6 6"],
        &["reduce 2 100 0 0", "reduce 4 7 0 1"],
        // Equal files in other handles, and a file that is opened twice.
        &[
            "io-open /a 0\nio-open /a 0\nio-close /a\nio-write /a 5\nio-close /a",
            "io-open /a 0\nio-open /a 0\nio-close /a\nio-close /a",
        ],
    ];
    for program in programs {
        assert_eq!(findings(&ranks(program)), [""; 0], "{program:?}");
    }
}

#[test]
fn messages_longer_than_their_receives_are_found() {
    let room = "but the receive that matches it has room for 10 B; make the receive as large as the send";
    let cases = [
        (
            "send 1 0 1000 6",
            "recv 0 0 10 6",
            format!("rank 1, action 1: a message from rank 0 with tag 0 has 1000 B, {room}"),
        ),
        // The messages are in the order of the channel: the second one is too long, though its size is that of the first receive.
        (
            "send 1 5 10 6\nsend 1 5 20 6",
            "irecv 0 5 20 6\nirecv 0 5 10 6\nwaitall",
            format!("rank 1, action 2: a message from rank 0 with tag 5 has 20 B, {room}"),
        ),
        (
            "send 1 5 20 6",
            "recv -555 5 10 6",
            format!("rank 1: a message from rank 0 with tag 5 has 20 B, {room}"),
        ),
        (
            "send 1 5 20 6",
            "recv 0 -444 10 6",
            format!("rank 1: a message from rank 0 with tag 5 has 20 B, {room}"),
        ),
        (
            "sendRecv 20 1 10 1 6 6",
            "sendRecv 10 0 10 0 6 6",
            format!("rank 1, action 1: a message from rank 0 with tag 0 has 20 B, {room}"),
        ),
        (
            "send_init 1 3 20 6 req=1\nstart req=1\nwait req=1\nrequest_free req=1",
            "recv_init 0 3 10 6 req=1\nstart req=1\nwait req=1\nrequest_free req=1",
            format!("rank 1, action 2: a message from rank 0 with tag 3 has 20 B, {room}"),
        ),
    ];
    for (one, other, expected) in cases {
        assert_eq!(findings(&ranks(&[one, other])), [expected], "{one}, {other}");
    }
    let right = [
        ["send 1 5 10 6\nsend 1 5 20 6", "recv 0 5 10 6\nrecv 0 5 20 6"],
        ["send 1 5 10 6\nsend 1 5 20 6", "recv 0 5 15 6\nrecv 0 5 25 6"],
        ["send 1 5 10 6\nsend 1 6 20 6", "recv -555 -444 10 6\nrecv 0 6 20 6"],
        ["send 1 5 20 6", "irecv 0 5 10 6 req=1\ncancel req=1 done=yes\nwait req=1\nrecv 0 5 20 6"],
    ];
    for programs in right {
        assert_eq!(findings(&ranks(&programs)), [""; 0], "{programs:?}");
    }
    // In the last of many iterations.
    let lines = |line: &str, last: &str| format!("{}{last}", format!("{line}\ncompute 5\n").repeat(50));
    let [sends, receives] = [lines("send 1 0 8 6", "send 1 0 9 6"), lines("recv 0 0 9 6", "recv 0 0 8 6")];
    assert_eq!(findings(&ranks(&[&sends, &receives])).len(), 1);
}

#[test]
fn calls_on_files_that_are_not_open_are_found() {
    let file = "the file \"/a\" is";
    let cases = [
        (
            "io-write /a 5\nio-open /a 0",
            format!(
                "rank 0, action 2: io-open: {file} opened here for the first time, but an earlier call uses it; open it before its first use"
            ),
        ),
        (
            "io-open /a 0\nio-close /a\nio-read_at /a 0 5",
            format!("rank 0, action 3: io-read_at: {file} used after it was closed; open it again before"),
        ),
        (
            "io-open /a 0\nio-close /a\nio-close /a",
            format!(
                "rank 0, action 3: io-close: {file} closed here, but is closed already; each close needs an open of its own"
            ),
        ),
    ];
    for (program, expected) in cases {
        assert_eq!(findings(&ranks(&[program])), [expected], "{program}");
    }
    // A loop that closes more often than it opens.
    let text =
        format!("{}{}", "io-open /a 0\n".repeat(15), "io-open /a 0\nio-close /a\nio-close /a\n".repeat(20));
    assert_eq!(findings(&ranks(&[text.trim()])).len(), 1);
    // Without an open, the file was open before the trace begins.
    assert_eq!(findings(&ranks(&["io-set_view /a 0\nio-write /a 5"])), [""; 0]);
    let text = "io-open /a 0\nio-write /a 5\nio-close /a\n".repeat(20);
    assert_eq!(findings(&ranks(&[text.trim()])), [""; 0]);
}

/// Cuts the ranks of a trace, folded or not; returns the text of what is left.
fn cut_text(text: &str, ranks: std::ops::Range<u32>) -> Result<String, WriteError> {
    let dir = tempfile::tempdir().expect("a directory");
    let (merged, whole, part) =
        (dir.path().join("trace.txt"), dir.path().join("whole.pdt"), dir.path().join("part.pdt"));
    fs::write(&merged, text).expect("the text is written");
    let mut texts = Vec::new();
    for folding in [Folding::Never, Folding::Always] {
        let options = ConvertOptions { folding, ..ConvertOptions::default() };
        trace_tools::convert(&merged, &whole, &options).expect("it converts");
        let what = Cut { ranks: Some(ranks.clone()), iterations: None };
        cut(&Trace::load(&whole).expect("an archive"), &part, &what, &options)?;
        let part = trace_tools::load(&part, &LoadOptions::default()).expect("an archive");
        assert_eq!(check(&part, None).findings, []);
        let mut text = Vec::new();
        for rank in (0..part.ranks()).map(pdes_core::Rank::new) {
            trace_tools::write_text(&part, rank, &mut text, None).expect("memory takes all");
        }
        texts.push(String::from_utf8(text).expect("text"));
    }
    assert_eq!(texts[0], texts[1]);
    Ok(texts.remove(0))
}

#[test]
fn probes_go_with_their_messages() {
    let program = |probe: &str| {
        let one = |source: u32| format!("{}\nrecv {source} 7 8 6\n", probe.replace('S', &source.to_string()));
        let all = (one(1) + &one(2)).repeat(8);
        let sends = "send 0 7 8 6\n".repeat(8);
        ranks(&[all.trim(), sends.trim(), sends.trim()])
    };
    for probe in
        ["probe -555 7 source=S", "probe S 7", "iprobe -555 7 source=S done=yes", "iprobe S 7 done=yes"]
    {
        let left = cut_text(&program(probe), 0..2).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(left.matches("probe").count(), 8, "{left}");
        assert_eq!(left.matches("recv").count(), 8, "{left}");
    }
    for probe in ["probe -555 7", "iprobe -555 7 done=yes"] {
        let error = cut_text(&program(probe), 0..2).expect_err("the messages are not known");
        assert!(matches!(error, WriteError::CutProbe { action: 1, .. }), "{error}");
        // No message of rank 0 goes.
        let alone = ranks(&["compute 5", &format!("{probe}\nrecv 2 7 8 6"), "send 1 7 8 6"]);
        let left = cut_text(&alone, 1..3).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(left.matches("probe").count(), 1);
    }
}

#[test]
fn a_new_root_has_the_counts_of_the_old_one() {
    let text = |calls: [&str; 3]| {
        let program =
            |call: &str| format!("comm_split new=4 members=2-0:-1\n{}barrier", format!("{call}\n").repeat(9));
        ranks(&calls.map(program).each_ref().map(String::as_str))
    };
    let cases = [
        (
            ["gatherv 10 10 20 30 0 6 6", "gatherv 20 0 0 0 0 6 6", "gatherv 30 0 0 0 0 6 6"],
            "0 gatherv 20 20 30 0 6 6\n",
        ),
        (
            ["scatterv 10 20 30 10 0 6 6", "scatterv 0 0 0 20 0 6 6", "scatterv 0 0 0 30 0 6 6"],
            "0 scatterv 20 30 20 0 6 6\n",
        ),
        (["gather 10 10 0 6 6", "gather 10 0 0 6 6", "gather 10 0 0 6 6"], "0 gather 10 10 0 6 6\n"),
        (["scatter 10 10 0 6 6", "scatter 0 10 0 6 6", "scatter 0 10 0 6 6"], "0 scatter 10 10 0 6 6\n"),
        (
            [
                "gatherv 10 30 20 10 2 6 6 comm=4",
                "gatherv 20 0 0 0 2 6 6 comm=4",
                "gatherv 30 0 0 0 2 6 6 comm=4",
            ],
            "1 gatherv 30 30 20 0 6 6 comm=4\n",
        ),
    ];
    for (calls, expected) in cases {
        let left = cut_text(&text(calls), 1..3).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(left.matches(expected).count(), 9, "{left}");
    }
    // The counts of rank 2 change, and the calls of rank 1 do not.
    let differing = ranks(&[
        "gatherv 10 10 20 30 0 6 6\ngatherv 10 10 20 40 0 6 6",
        "gatherv 20 0 0 0 0 6 6\ngatherv 20 0 0 0 0 6 6",
        "gatherv 30 0 0 0 0 6 6\ngatherv 40 0 0 0 0 6 6",
    ]);
    let error = cut_text(&differing, 1..3).expect_err("which counts?").to_string();
    assert!(
        error.starts_with("rank 1, action 2: this gatherv has its counts at its root, rank 0, which goes"),
        "{error}"
    );
}

#[test]
fn ranks_that_do_not_leave_mpi_are_warned_of() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    let warnings = |texts: [&str; 2]| {
        for (rank, text) in texts.iter().enumerate() {
            fs::write(at(&format!("rank-{rank}.txt")), text).expect("written");
        }
        fs::write(at("files.txt"), "rank-0.txt\nrank-1.txt\n").expect("written");
        let texts =
            |warnings: &[trace_mmap::Warning]| warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
        let loaded = trace_tools::load(&at("files.txt"), &LoadOptions::default()).expect("a trace");
        let converted = trace_tools::convert(&at("files.txt"), &at("t.pdt"), &ConvertOptions::default())
            .expect("it converts");
        assert_eq!(texts(&converted.warnings), texts(loaded.warnings()));
        let kept = texts(Trace::load(&at("t.pdt")).expect("an archive").warnings());
        (texts(loaded.warnings()), kept)
    };
    let no_end =
        "rank 1 has no finalize, which other ranks have: its trace may have lost its end (1 such rank(s))";
    let (text, archive) = warnings(["0 init\n0 finalize", "1 init\n1 compute 5\n"]);
    assert_eq!((text, archive), (vec![no_end.to_owned()], vec![no_end.to_owned()]));
    let (text, archive) = warnings(["0 init\n0 finalize\n", "1 init\n1 compute 5"]);
    assert!(
        text[0].contains("rank-1.txt:2: the last line has no newline: it may have lost its end"),
        "{text:?}"
    );
    assert_eq!((&text[1..], &archive[..]), (&[no_end.to_owned()][..], &[no_end.to_owned()][..]));
    for right in
        [["0 init\n0 compute 5\n", "1 init\n"], ["0 init\n0 finalize\n", "1 init\n1 finalize\n# end"]]
    {
        assert_eq!(warnings(right), (Vec::new(), Vec::new()), "{right:?}");
    }
}
