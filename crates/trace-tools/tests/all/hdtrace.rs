//! Traces of HDTrace: all kinds of calls, all errors, and hostile bytes.

use std::fs;
use std::path::PathBuf;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{LoadOptions, Trace, TraceError, check, nanos};
use trace_tools::{HdtraceError, load, write_text};

const PROJECT: &str = "<?xml version=\"1.0\"?><Application name=\"app\"><Description></Description><FileList/>
<Topology><Level type=\"Hostname\"><Level type=\"Rank\"/></Level>
 <Node name=\"n1\"><Node name=\"1\"><Node name=\"0\"/></Node></Node>
 <Node name=\"n0\"><Node name=\"0\"><Node name=\"0\"/><Node name=\"1\"/></Node></Node></Topology>
<CommunicatorList><Communicator name=\"WORLD\"><Rank global=\"1\" local=\"1\" cid=\"0\"/><Rank global=\"0\" local=\"0\" cid=\"0\"/></Communicator>
 <Communicator name=\"\"><Rank global=\"0\" local=\"1\" cid=\"2\"/><Rank global=\"1\" local=\"0\" cid=\"3\"/></Communicator></CommunicatorList>
</Application>";

/// Writes a project with the calls of two ranks between `MPI_Init` and `MPI_Finalize`.
fn project(ranks: [&str; 2]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("app.proj");
    fs::write(&file, PROJECT).expect("the file is written");
    for (rank, calls) in ranks.into_iter().enumerate() {
        let calls = format!(
            "<Program timeAdjustment='7'>\n<Nested>\n<Send time='0.1' end='0.2'/>\n<Nested><X/></Nested></Nested>\n\
             <Allgather cid='0' size='1' time='0.1' end='0.3'/>\n<Init time='1.000000' end='1.000002'/>\n{calls}\n\
             <Finalize time='9.5' end='9.6'/>\n</Program>\n"
        );
        fs::write(dir.path().join(format!("app_n{rank}_{rank}_0.trc")), calls).expect("the file is written");
    }
    (dir, file)
}

fn read(ranks: [&str; 2]) -> Result<Trace, TraceError> {
    let (_dir, file) = project(ranks);
    load(&file, &LoadOptions::default())
}

/// Returns the text of a rank without its computations and measured times.
fn text(trace: &Trace, rank: u32) -> Vec<String> {
    let mut text = Vec::new();
    write_text(trace, Rank::new(rank), &mut text, None).expect("memory takes all");
    let text = String::from_utf8(text).expect("text");
    let lines = text.lines().map(|line| line.split(" time=").next().unwrap_or_default());
    lines.filter(|line| !line.contains("compute")).map(|line| line[2..].to_owned()).collect()
}

#[test]
fn calls_of_a_rank_have_their_arguments_and_times() {
    let first = "<Send size='64' count='8' tid='1' toRank='1' toTag='5' cid='0' time='1.5' end='1.6'/>
<Isend size='24' toRank='1' toTag='6' cid='0' rid='4' time='1.7' end='1.7'/>
<Wait time='1.8' end='1.9'><For rid='4'/></Wait>
<Sendrecv size='10' toRank='1' toTag='7' fromRank='1' fromTag='8' cid='2' count='10' sendTid='1' recvTid='1' time='2.0' end='2.1'/>
<Bcast cFile='a.c' cLine='7' size='40' rootRank='1' cid='2' time='2.2' end='2.3'/>
<Gatherv size='8' root='0' cid='0' time='2.3' end='2.4'/>
<Alltoallv cid='0' time='2.4' end='2.5'><Send rank='0' size='1'/><Send rank='1' size='2'/></Alltoallv>
<Reduce_scatter cid='0' time='2.5' end='2.6'><Recv rank='0' size='8'/><Recv rank='1' size='16'/></Reduce_scatter>
<Nested><Comm_dup cid='0' newcid='9' time='2.6' end='2.65'/></Nested>
<File_open cid='0' name='pvfs2:///a b' flags='5' fid='3' time='2.6' end='2.7'/>
<File_write_at fid='3' offset='100' size='50' count='1' tid='1' time='2.7' end='2.8'/>
<File_iread fid='3' rid='5' offset='0' size='20' time='2.8' end='2.8'/>
<Waitall time='2.8' end='2.9'><For rid='5'/></Waitall>
<File_close fid='3' time='2.9' end='3.0'/>
<Type_commit tid='4' time='3.0' end='3.0'/><Win_fence time='3.0' end='3.1'/><Comm_free cid='2' time='3.1' end='3.1'/>";
    let second = "<Irecv fromRank='-2' fromTag='5' cid='0' rid='1' time='1.2' end='1.2'/>
<Recv fromRank='0' fromTag='6' cid='0' time='1.7' end='1.9'/><Wait time='1.9' end='1.9'><For rid='1'/></Wait>
<Sendrecv size='12' toRank='0' toTag='8' fromRank='0' fromTag='7' cid='3' time='2.0' end='2.1'/>
<Bcast size='40' rootRank='1' cid='3' time='2.2' end='2.3'/><Gatherv size='16' root='0' cid='0' time='2.3' end='2.4'/>
<Alltoallv cid='0' time='2.4' end='2.5'><Send rank='0' size='3'/><Send rank='1' size='4'/></Alltoallv>
<Reduce_scatter cid='0' time='2.5' end='2.6'><Recv rank='0' size='8'/><Recv rank='1' size='16'/></Reduce_scatter>
<File_open cid='0' name='pvfs2:///a b' flags='5' fid='0' time='2.6' end='2.7'/><File_close fid='0' time='2.9' end='3.0'/>
<Recv fromRank='-1' fromTag='5' cid='0' time='4.0' end='4.0'/>";
    let trace = read([first, second]).expect("a trace");
    assert_eq!(check(&trace, None).findings, []);
    let expected = [
        "init",
        "send 1 5 64 6",
        "isend 1 6 24 6 req=0",
        "wait req=0",
        "comm_create_group comm=0 new=2 members=1-0:-1",
        "sendRecv 10 1 12 1 6 6 stag=7 rtag=8 comm=2",
        "bcast 40 0 6 comm=2",
        "gatherv 8 8 16 0 6 6",
        "alltoallv 3 1 2 4 1 3 6 6",
        "reducescatter 8 16 0 6",
        "io-open pvfs2:///a_b 5",
        "io-write_at pvfs2:///a_b 100 50",
        "io-iread_at pvfs2:///a_b 0 20 req=0",
        "waitall req=0",
        "io-close pvfs2:///a_b",
        "comm_size",
        "unmodelled MPI_Win_fence",
        "comm_free comm=2",
        "finalize",
    ];
    assert_eq!(text(&trace, 0), expected);
    let second = text(&trace, 1);
    assert_eq!(second[1..4], ["irecv -555 5 64 6 req=0", "recv 0 6 24 6", "wait req=0"]);
    assert!(second.contains(&"sendRecv 12 0 10 0 6 6 stag=8 rtag=7 comm=2".to_owned()), "{second:?}");
    let times = trace.rank(Rank::new(0)).measured().expect("it has measured times");
    let all: u64 = times.map(|(_, time)| nanos(time.expect("every action has a time"))).sum();
    assert_eq!(all, 8_600_000_000);
    let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
    for what in ["further threads", "characters other than printable"] {
        assert!(warnings.iter().any(|warning| warning.contains(what)), "{what}: {warnings:?}");
    }
}

#[test]
fn errors_have_their_element() {
    let cases = [
        ("<Send size='1' toTag='1' cid='0' time='1' end='2'/>", 8, "Send has no attribute toRank"),
        (
            "<Send size='x' toRank='1' toTag='1' cid='0' time='1' end='2'/>",
            8,
            "size of Send is \"x\", expected a whole number",
        ),
        ("<Barrier cid='0' time='-1' end='2'/>", 8, "time of Barrier is \"-1\", expected a decimal number"),
        (
            "<Barrier cid='8' time='1' end='2'/>",
            8,
            "Barrier is on communicator 8, which the project does not list",
        ),
        ("<Bcast size='1' rootRank='5' cid='0' time='1' end='2'/>", 8, "Bcast has rank 5 as peer or root"),
        ("<File_close fid='4' time='1' end='2'/>", 8, "File_close is on file 4, which is not open"),
        (
            "<Gatherv size='8' root='0' cid='0' time='1' end='2'/>",
            8,
            "Gatherv is call 1 with counts on its communicator, but rank 1",
        ),
        ("<Barrier cid='0' time='1' end='2'>", 10, "expected `</Barrier>`, but `</Program>` was found"),
    ];
    for (calls, element, message) in cases {
        let error = read([calls, ""]).expect_err(calls);
        let TraceError::Action { location, kind } = &error else { panic!("{calls}: {error}") };
        assert!(kind.downcast_ref::<HdtraceError>().is_some(), "{calls}: {error}");
        assert!(error.to_string().contains(message), "{calls}: {error}");
        assert_eq!(location.line, element, "{calls}: {error}");
    }
    let (_dir, file) = project(["", ""]);
    for (from, to, message) in [
        ("<Node name=\"1\"><Node name=\"0\"/></Node>", "", "no thread of rank 1"),
        ("global=\"1\" local=\"1\"", "global=\"7\" local=\"1\"", "no thread of rank 7"),
        ("global=\"0\" local=\"0\"", "global=\"1\" local=\"0\"", "a communicator has rank 1 twice"),
        ("name=\"n1\"", "name=\"n9\"", "app_n9_1_0.trc"),
    ] {
        fs::write(&file, PROJECT.replace(from, to)).expect("the file is written");
        let error = load(&file, &LoadOptions::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any change of the calls of a rank makes another trace or an error.
    #[test]
    fn hostile_bytes_are_a_trace_or_an_error(changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..6)) {
        let calls = "<Send size='64' toRank='1' toTag='5' cid='0' time='1.5' end='1.6'/><Barrier cid='2' time='2' end='3'/>\
                     <File_open cid='0' name='a' flags='5' fid='3' time='2.6' end='2.7'/><Wait time='3' end='3'><For rid='4'/></Wait>";
        let mut bytes = calls.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let second = "<Recv fromRank='0' fromTag='5' cid='0' time='1.5' end='1.6'/><Barrier cid='3' time='2' end='3'/>\
                      <File_open cid='0' name='a' flags='5' fid='3' time='2.6' end='2.7'/>";
        if let Ok(trace) = read([&String::from_utf8_lossy(&bytes), second]) {
            check(&trace, None);
        }
    }
}
