//! Records of calls, with expected lines written by hand.

use std::fs::File;
use std::path::Path;

use ti_shard::{Action, COMPLETE_MARK, Header, Kind, Message, ProcessState, ShardReader, TextReader};
use ti_tracer::{
    ANY_SOURCE, ANY_TAG, Argument, CollectiveForm, Completion, Object, PROC_NULL, Recorder, ShardFile, Status,
};

const WORLD: i64 = 500;
const OWN: i64 = 501;

const HEADER: Header<'static> =
    Header { job: "test", world: 4, rank: 1, counter: "cpu-time", rate: 1e9, library: "" };

/// Returns the lines of a shard after the first.
fn lines(path: &Path) -> Vec<String> {
    let text = std::io::read_to_string(TextReader::new(File::open(path).unwrap()).unwrap()).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Records as rank 1 of 4, and returns the lines between `init` and `finalize`.
fn record(work: impl FnOnce(&mut Recorder)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.shard");
    let mut recorder = Recorder::new(ShardFile::create(&path, &HEADER).unwrap(), 1, 4).with_scale(2.0);
    recorder.init(WORLD, OWN);
    work(&mut recorder);
    recorder.finish().unwrap();
    assert!(std::fs::read(&path).unwrap().ends_with(&COMPLETE_MARK));
    let lines = lines(&path);
    let [first, calls @ .., last] = &lines[..] else { panic!("there are two lines at least") };
    assert_eq!((first.as_str(), last.as_str()), ("1 init", "1 finalize"));
    calls.iter().map(|line| line.strip_prefix("1 ").unwrap().to_owned()).collect()
}

fn complete(
    recorder: &mut Recorder,
    verb: &str,
    requests: &[(i64, usize)],
    done: &[(usize, Option<Status>)],
) {
    let mut call = Completion::default();
    requests.iter().for_each(|&(handle, address)| recorder.add(&mut call, handle, address));
    done.iter().for_each(|&(position, status)| recorder.complete(&mut call, position, status));
    recorder.completion(verb, &call);
}

fn from(source: i32, tag: i32) -> Option<Status> {
    Some(Status { source, tag, is_cancelled: false })
}

#[test]
fn computations_are_scaled_and_stand_before_the_next_line() {
    let calls = record(|recorder| {
        recorder.add_computation(10);
        // A call on a null request is not recorded.
        complete(recorder, "wait", &[(1, 1)], &[]);
        recorder.add_computation(11);
        recorder.collective("barrier", WORLD, &[], false);
        recorder.collective("barrier", WORLD, &[], false);
    });
    assert_eq!(calls, ["compute 42", "barrier", "barrier"]);
}

#[test]
fn wildcards_are_filled_in_even_behind_the_window() {
    let calls = record(|recorder| {
        let any = recorder.irecv("irecv", ANY_SOURCE, ANY_TAG, 8, WORLD);
        recorder.bind(any, 71, 1, false);
        let tag = recorder.irecv("irecv", 2, ANY_TAG, 8, WORLD);
        recorder.bind(tag, 72, 2, false);
        let never = recorder.irecv("irecv", ANY_SOURCE, 5, 8, WORLD);
        recorder.bind(never, 73, 3, false);
        // Beyond the window.
        (0..200_000).for_each(|_| recorder.send("send", PROC_NULL, 1, 4, WORLD));
        let done = [(0, from(3, 9)), (1, from(2, i32::MAX))];
        complete(recorder, "waitsome", &[(71, 1), (72, 2), (73, 3)], &done);
        let cancelled = Some(Status { source: 0, tag: 0, is_cancelled: true });
        let mut call = Completion::default();
        recorder.add(&mut call, 73, 3);
        recorder.cancel(&call);
        complete(recorder, "wait", &[(73, 3)], &[(0, cancelled)]);
    });
    assert_eq!(
        calls[..3],
        ["irecv -555 -444 8 req=0 source=3", "irecv 2 2147483647 8 req=1", "irecv -555 5 8 req=2"]
    );
    assert_eq!(calls[200_003..], ["waitsome req=0-2 done=0,1", "cancel req=2 done=yes", "wait req=2"]);
}

#[test]
fn one_handle_twice_in_a_call_is_two_requests() {
    let calls = record(|recorder| {
        for (number, address) in [(0, 100), (1, 200)] {
            let request = recorder.isend("isend", number, 7, 8, WORLD);
            // The common handle of all requests that complete at once.
            recorder.bind(request, 99, address, false);
        }
        // The program stores copies of the handles elsewhere.
        complete(recorder, "waitall", &[(99, 300), (99, 400)], &[(0, None), (1, None)]);
        let request = recorder.isend("isend", 3, 7, 8, WORLD);
        recorder.bind(request, 99, 100, false);
        complete(recorder, "test", &[(99, 100)], &[]);
        for is_complete in [false, true] {
            let mut call = Completion::default();
            recorder.add(&mut call, 99, 500);
            recorder.request_get_status(&call, is_complete);
        }
        complete(recorder, "test", &[(99, 100)], &[(0, None)]);
    });
    assert_eq!(
        calls,
        [
            "isend 0 7 8 req=0",
            "isend 1 7 8 req=1",
            "waitall req=0,1",
            "isend 3 7 8 req=0",
            "test req=0 done=-",
            "request_get_status req=0 done=no",
            "request_get_status req=0 done=yes",
            "test req=0 done=0"
        ]
    );
}

#[test]
fn persistent_requests_keep_their_numbers_until_they_are_freed() {
    let calls = record(|recorder| {
        let request = recorder.irecv("recv_init", 2, ANY_TAG, 8, WORLD);
        recorder.bind(request, 70, 1, true);
        for _ in 0..2 {
            let mut call = Completion::default();
            recorder.add(&mut call, 70, 1);
            recorder.start("start", &call);
            complete(recorder, "wait", &[(70, 1)], &[(0, from(2, 2))]);
        }
        let mut call = Completion::default();
        recorder.add(&mut call, 70, 1);
        recorder.free_request(&call);
        let request = recorder.collective("ibarrier", WORLD, &[], true);
        recorder.bind(request, 70, 1, false);
    });
    let expected = ["recv_init 2 -444 8 req=0", "start req=0", "wait req=0", "start req=0", "wait req=0"];
    assert_eq!(calls[..5], expected);
    assert_eq!(calls[5..], ["request_free req=0", "ibarrier req=0"]);
}

#[test]
fn receives_from_any_source_and_collectives_are_recorded_at_each_start() {
    let on = |recorder: &mut Recorder, requests: &[i64]| {
        let mut call = Completion::default();
        requests.iter().for_each(|&handle| recorder.add(&mut call, handle, 1));
        call
    };
    let calls = record(|recorder| {
        let any = recorder.irecv("recv_init", ANY_SOURCE, ANY_TAG, 8, WORLD);
        recorder.bind(any, 70, 1, true);
        let reduction = recorder.collective("iallreduce", WORLD, &[8, 0], CollectiveForm::Persistent);
        recorder.bind(reduction, 71, 1, true);
        // Neither is active: nothing to wait for, to cancel or to ask.
        complete(recorder, "waitall", &[(70, 1), (71, 1)], &[(0, None), (1, None)]);
        let call = on(recorder, &[70]);
        recorder.cancel(&call);
        recorder.request_get_status(&call, true);
        for source in [2, 3] {
            let call = on(recorder, &[70, 71]);
            recorder.add_computation(1);
            recorder.start("startall", &call);
            complete(recorder, "waitall", &[(70, 1), (71, 1)], &[(0, from(source, 9)), (1, None)]);
        }
        let call = on(recorder, &[71]);
        recorder.free_request(&call);
        let call = on(recorder, &[70]);
        recorder.start("start", &call);
        let call = on(recorder, &[70]);
        recorder.free_request(&call);
        let request = recorder.collective("ibarrier", WORLD, &[], true);
        recorder.bind(request, 72, 1, false);
    });
    let step = |source: u32| {
        let receive = format!("irecv -555 -444 8 req=0 source={source}");
        ["compute 2".to_owned(), receive, "iallreduce 8 0 req=1".to_owned(), "waitall req=0,1".to_owned()]
    };
    assert_eq!(calls[..8], [step(2), step(3)].concat());
    assert_eq!(calls[8..], ["irecv -555 -444 8 req=0", "request_free req=0", "ibarrier req=0"]);
}

/// Returns the state of a shard, and the text of what was begun.
fn left_behind(path: &Path) -> (ProcessState, Option<Action<'static>>, Vec<String>) {
    let mut reader = ShardReader::new(File::open(path).unwrap()).unwrap();
    while reader.read_record().unwrap().is_some() {}
    let begun = match reader.begun().unwrap() {
        Some(Action::Message(message)) => Some(Action::Message(message)),
        Some(Action::Wait { request }) => Some(Action::Wait { request }),
        other => {
            assert!(other.is_none(), "{other:?}");
            None
        }
    };
    (*reader.state(), begun, lines(path))
}

#[test]
fn a_call_in_progress_is_known_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.shard");
    let mut recorder = Recorder::new(ShardFile::create(&path, &HEADER).unwrap(), 1, 4);
    recorder.init(WORLD, OWN);
    recorder.enter_call(b"c_Recv", 1, 50, 7);
    recorder.announce(|recorder| recorder.recv(2, 6, 8, WORLD, (2, 6)));
    let (state, begun, before) = left_behind(&path);
    assert_eq!((state.call().as_deref(), state.elapsed_and_computed()), (Some("MPI_Recv"), (50, 7)));
    let expected =
        Message { kind: Kind::Recv, peer: 2, tag: 6, communicator: 0, bytes: 8, request: None, source: None };
    assert_eq!(begun, Some(Action::Message(expected)));
    assert_eq!(before, ["1 init"]);
    // Completed: the record overwrites what was begun.
    recorder.recv(2, 6, 8, WORLD, (2, 6));
    recorder.leave_call();
    // Not completed, as it returned an error.
    recorder.enter_call(b"c_Recv", 1, 50, 7);
    recorder.announce(|recorder| recorder.recv(3, 6, 8, OWN, (3, 6)));
    recorder.fail_call(None, None);
    recorder.leave_call();
    let (state, begun, after) = left_behind(&path);
    assert_eq!((state.call(), begun), (None, None));
    assert_eq!(state.failed(), Some((1, "MPI_Recv".to_owned())));
    assert!(!state.has_threads());
    // The communicator of the process alone is made where it is first used, whatever becomes of the call.
    assert_eq!(after, ["1 init", "1 recv 2 6 8", "1 comm_create_group comm=0 new=2 members=1"]);
    recorder.enter_call(b"f_finalize", 2, 0, 0);
    assert!(!left_behind(&path).0.has_threads(), "the last call may be of another thread");
    recorder.enter_call(b"f_recv", 2, 0, 0);
    assert!(left_behind(&path).0.has_threads());
}

#[test]
fn refused_calls_leave_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.shard");
    let mut recorder = Recorder::new(ShardFile::create(&path, &HEADER).unwrap(), 1, 4);
    recorder.init(WORLD, OWN);
    recorder.enter_call(b"c_Send", 1, 0, 0);
    recorder.send("send", 4, 0, 1, WORLD);
    // The tracer sees by itself that these are wrong, once per call.
    recorder.send("send", ANY_SOURCE, 0, 1, WORLD);
    recorder.send("send", 2, -1, 1, WORLD);
    assert_eq!(recorder.isend("isend", 2, 0, -8, WORLD), None);
    recorder.recv(2, 0, -8, WORLD, (2, 0));
    recorder.probe((5, 0), WORLD, Some(false), (5, 0));
    recorder.send_recv("sendRecv", (1, 1, 1), (7, 1, 1), WORLD, (7, 1));
    recorder.collective("bcast", WORLD, &[8, -1], false);
    recorder.neighbors(WORLD, (&[1], &[-8]), (&[], &[]), false);
    recorder.leave_call();
    // Of these, the library says so after they were recorded.
    recorder.enter_call(b"c_Allreduce", 1, 0, 0);
    recorder.collective("allreduce", WORLD, &[8, 0], false);
    let record = recorder.take_call_record();
    recorder.fail_call(record, None);
    recorder.leave_call();
    recorder.enter_call(b"c_Isend", 1, 0, 0);
    let posted = recorder.isend("isend", 2, 0, 8, WORLD);
    let record = recorder.take_call_record();
    recorder.fail_call(record, posted);
    recorder.leave_call();
    recorder.enter_call(b"c_Irecv", 1, 0, 0);
    let request = recorder.irecv("irecv", 2, ANY_TAG, 8, WORLD);
    let record = recorder.take_call_record();
    recorder.fail_call(record, request);
    let posted = recorder.isend("isend", 3, 0, 8, WORLD);
    recorder.bind(posted, 7, 7, false);
    recorder.finish().unwrap();
    let (state, _, lines) = left_behind(&path);
    assert_eq!(lines, ["1 init", "1 isend 3 0 8 req=0", "1 finalize"]);
    assert_eq!(state.failed(), Some((4, "MPI_Send".to_owned())));
}

#[test]
fn longer_messages_make_their_receives_longer() {
    let calls = record(|recorder| {
        let request = recorder.irecv("irecv", ANY_SOURCE, 5, 8, WORLD);
        recorder.bind(request, 7, 7, false);
        let mut call = Completion::default();
        recorder.add(&mut call, 7, 7);
        recorder.truncated(&call, 0, 100);
        recorder.complete(&mut call, 0, from(3, 5));
        recorder.completion("wait", &call);
        recorder.match_message(9, 2, 1, 100, WORLD);
        recorder.receive_matched(9, 20, false);
    });
    assert_eq!(calls, ["irecv -555 5 100 req=0 source=3", "wait req=0", "recv 2 1 100"]);
}

#[test]
fn calls_on_requests_that_were_never_made_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.shard");
    let mut recorder = Recorder::new(ShardFile::create(&path, &HEADER).unwrap(), 1, 4);
    recorder.init(WORLD, OWN);
    recorder.enter_call(b"c_Start", 1, 0, 0);
    let mut call = Completion::default();
    recorder.add(&mut call, 70, 1);
    recorder.start("start", &call);
    complete(&mut recorder, "wait", &[(70, 1)], &[]);
    let (state, _, lines) = left_behind(&path);
    assert_eq!(state.unknown_requests(), Some((2, "MPI_Start".to_owned())));
    assert_eq!(lines, ["1 init"]);
}

#[test]
fn peers_are_ranks_of_the_world() {
    let calls = record(|recorder| {
        assert_eq!([recorder.next_communicator(), recorder.next_communicator()], [2, 6]);
        recorder.new_communicator("comm_split", WORLD, Some((600, 6, [3, 1].into())));
        recorder.send("ssend", 0, 7, 8, 600);
        recorder.recv(ANY_SOURCE, 7, 8, 600, (0, 7));
        recorder.recv(0, ANY_TAG, 8, 600, (0, 33));
        recorder.send_recv("sendRecv", (0, 1, 8), (PROC_NULL, ANY_TAG, 4), 600, (PROC_NULL, ANY_TAG));
        recorder.probe((ANY_SOURCE, ANY_TAG), 600, Some(true), (0, 5));
        recorder.probe((ANY_SOURCE, ANY_TAG), 600, Some(false), (0, 0));
        recorder.collective("bcast", 600, &[8, 1], false);
        recorder.neighbors(600, (&[0, 0], &[8, 8]), (&[], &[]), false);
        recorder.free_communicator("MPI_Comm_free", 600);
        recorder.send("send", 0, 7, 8, 600);
        recorder.send("send", 0, 7, 8, 600);
        recorder.unmodelled("MPI_Put", &[("bytes", Argument::Number(8)), ("win", Argument::Window(5))]);
        recorder.send("send", 0, 7, 8, OWN);
    });
    assert_eq!(
        calls,
        [
            "comm_split comm=0 new=6 members=3,1",
            "ssend 3 7 8 comm=6",
            "recv -555 7 8 comm=6 source=3",
            "recv 3 33 8 comm=6",
            "sendRecv 8 3 4 -666 6 6 stag=1 rtag=-444 comm=6",
            "iprobe -555 -444 comm=6 done=yes source=3",
            "iprobe -555 -444 comm=6 done=no",
            "bcast 8 1 comm=6",
            "neighbor_alltoallv to=0,0 scounts=8,8 from=- rcounts=- comm=6",
            "comm_free comm=6",
            "unmodelled MPI_Send dst=0 tag=7 bytes=8 comm=other-0",
            "unmodelled MPI_Send dst=0 tag=7 bytes=8 comm=other-0",
            "unmodelled MPI_Put bytes=8 win=0",
            "comm_create_group comm=0 new=10 members=1",
            "send 1 7 8 comm=10"
        ]
    );
}

#[test]
fn times_stand_last_in_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.shard");
    let mut recorder = Recorder::new(ShardFile::create(&path, &HEADER).unwrap(), 1, 4).with_durations();
    recorder.init(WORLD, OWN);
    assert!(recorder.take_duration_slot().is_some(), "the place for the time of init");
    recorder.add_computation(10);
    recorder.add_elapsed(300);
    let any = recorder.irecv("irecv", ANY_SOURCE, 5, 8, WORLD);
    recorder.bind(any, 71, 1, false);
    let place = recorder.take_duration_slot().unwrap();
    recorder.record_duration(place, 1234);
    assert_eq!(recorder.take_duration_slot(), None, "each place is taken once");
    // No computation was counted, but time has passed.
    recorder.add_elapsed(7);
    complete(&mut recorder, "wait", &[(71, 1)], &[(0, from(2, 5))]);
    let place = recorder.take_duration_slot().unwrap();
    recorder.record_duration(place, u64::MAX);
    recorder.collective("barrier", WORLD, &[], false);
    recorder.finish().unwrap();
    let lines = lines(&path);
    let expected = [
        "1 init",
        "1 compute 10 time=300",
        "1 irecv -555 5 8 req=0 source=2 time=1234",
        "1 compute 0 time=7",
        "1 wait req=0 time=999999999999999",
        "1 barrier",
        "1 finalize",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn regions_are_named_by_their_path() {
    let calls = record(|recorder| {
        recorder.end_region();
        recorder.add_computation(1);
        recorder.begin_region("the solver");
        recorder.begin_region("");
        recorder.end_region();
        recorder.add_computation(2);
        recorder.end_region();
        // Levels of the standard, then one of the program that also ends the region inside.
        (-2..=2).for_each(|level| recorder.region_level(level));
        recorder.region_level(7);
        recorder.begin_region("inside");
        recorder.region_level(-8);
        recorder.region_level(-7);
    });
    let expected = [
        "compute 2",
        "location the_solver 0",
        "location the_solver/_ 0",
        "location the_solver 0",
        "compute 4",
        "location outside 0",
        "location level-7 0",
        "location level-7/inside 0",
        "location outside 0",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn unmodelled_calls_have_arguments_and_separate_numbers() {
    let calls = record(|recorder| {
        let flags = ["create", "rdwr"];
        let open = [
            ("name", Argument::Text(b"/a b%\xc3\xa9")),
            ("mode", Argument::Flags(&flags)),
            ("comm", Argument::Communicator(OWN)),
            ("new", Argument::File(9)),
        ];
        recorder.unmodelled("MPI_File_open", &open);
        let modelled = recorder.isend("isend", 0, 7, 8, WORLD);
        recorder.bind(modelled, 70, 1, false);
        let written = recorder.unmodelled_request("MPI_File_iwrite", &[("file", Argument::File(10))]);
        recorder.bind(Some(written), 71, 2, false);
        // Among modelled requests it is left out, and its number is free again.
        complete(recorder, "waitall", &[(70, 1), (71, 2)], &[(0, None), (1, None)]);
        let read = recorder.unmodelled_request("MPI_File_iread", &[("file", Argument::File(10))]);
        recorder.bind(Some(read), 71, 2, false);
        complete(recorder, "test", &[(71, 2)], &[]);
        complete(recorder, "waitany", &[(71, 2)], &[(0, None)]);
        recorder.free_object(Object::File, 10);
        recorder.unmodelled("MPI_File_open", &[("mode", Argument::Flags(&[])), ("new", Argument::File(12))]);
        recorder
            .unmodelled("MPI_Win_post", &[("ranks", Argument::List(&[0, 1, 2])), ("win", Argument::Nothing)]);
        let sent = recorder.isend("send_init", 1, 7, 8, 999);
        recorder.bind(sent, 72, 3, true);
        let mut call = Completion::default();
        recorder.add(&mut call, 72, 3);
        recorder.start("start", &call);
        recorder.free_request(&call);
        let sent = recorder.isend("isend", 0, 7, 8, WORLD);
        recorder.bind(sent, 73, 3, false);
        let mut call = Completion::default();
        recorder.add(&mut call, 73, 3);
        recorder.cancel(&call);
    });
    assert_eq!(
        calls,
        [
            "comm_create_group comm=0 new=2 members=1",
            "io-open /a%20b%25%c3%a9 comm=2",
            "isend 0 7 8 req=0",
            "unmodelled MPI_File_iwrite file=0 req=other-0",
            "waitall req=0",
            "unmodelled MPI_File_iread file=0 req=other-0",
            "unmodelled MPI_Test req=other-0 done=-",
            "unmodelled MPI_Waitany req=other-0 done=other-0",
            "unmodelled MPI_File_open mode=0 new=0",
            "unmodelled MPI_Win_post ranks=0-2 win=-",
            "unmodelled MPI_Send_init dst=1 tag=7 bytes=8 comm=other-0 req=other-0",
            "unmodelled MPI_Start req=other-0",
            "unmodelled MPI_Request_free req=other-0",
            "isend 0 7 8 req=0",
            "unmodelled MPI_Cancel req=0",
        ]
    );
}

#[test]
fn phrases_stand_once_and_memory_stays_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.shard");
    let mut recorder = Recorder::new(ShardFile::create(&path, &HEADER).unwrap(), 1, 4);
    recorder.init(WORLD, OWN);
    let len = |path: &Path| std::fs::metadata(path).unwrap().len();
    for step in 0..100_000 {
        recorder.add_computation(step + 1);
        recorder.send("send", 2, 7, 64, WORLD);
        recorder.collective("allreduce", WORLD, &[8, 0], false);
    }
    // Far more phrases than the cache holds, and a long one.
    for tag in 0..10_000 {
        recorder.send("send", 2, tag, 64, WORLD);
        recorder.collective("bcast", WORLD, &[tag.into(), 0], false);
    }
    let counts: Vec<i64> = (0..1000).collect();
    recorder.collective("allgatherv", WORLD, &counts, false);
    recorder.send("send", 2, 7, 64, WORLD);
    recorder.finish().unwrap();
    let lines = lines(&path);
    assert_eq!(lines.len(), 2 + 300_000 + 20_000 + 2);
    assert_eq!(lines[299_998..301_001][..3], ["1 compute 100000", "1 send 2 7 64", "1 allreduce 8 0"]);
    for (tag, pair) in lines[300_001..320_001].chunks(2).enumerate() {
        assert_eq!(pair, [format!("1 send 2 {tag} 64"), format!("1 bcast {tag} 0")]);
    }
    assert!(lines[320_001].starts_with("1 allgatherv 0 1 2 ") && lines[320_001].ends_with(" 999"));
    assert_eq!(lines[320_002], "1 send 2 7 64");
    let phrases = 20_000 * (16 + 64) + 10_000;
    assert!(len(&path) < 16 * 320_000 + phrases, "{}", len(&path));
}

/// Offsets in the trace are bytes from the begin of the file or, behind a view, of its data.
#[test]
fn calls_on_files_are_actions() {
    let calls = record(|recorder| {
        let call = |recorder: &mut Recorder, name: &str, numbers: &[(&str, i64)]| {
            let numbers = numbers.iter().map(|(key, number)| (*key, Argument::Number(*number)));
            let arguments: Vec<_> = numbers.chain([("file", Argument::File(9))]).collect();
            recorder.unmodelled(&format!("MPI_File_{name}"), &arguments);
        };
        let seek = |recorder: &mut Recorder, position| call(recorder, "seek", &[("position", position)]);
        // Hints that no replay knows are left out.
        for (name, value) in
            [("cb_nodes", "4"), ("romio_ds_write", "disable"), ("cb_nodes", "0"), ("romio_cb_read", "5")]
        {
            recorder.add_hint(name, value);
        }
        let (name, on) = (("name", Argument::Text(b"/f")), ("comm", Argument::Communicator(WORLD)));
        recorder.unmodelled("MPI_File_open", &[name, on, ("new", Argument::File(9))]);
        call(recorder, "write", &[("bytes", 10)]);
        call(recorder, "write_all", &[("bytes", 20)]);
        seek(recorder, 25);
        call(recorder, "read", &[("bytes", 5)]);
        let set_view = |recorder: &mut Recorder, first, extent| {
            recorder.add_block(first, 16);
            call(recorder, "set_view", &[("disp", 100), ("etype", 8), ("filetype", 16), ("extent", extent)]);
        };
        set_view(recorder, 0, 16);
        call(recorder, "read_at", &[("offset", 2), ("bytes", 16)]);
        // The pointer is at the begin of the view.
        call(recorder, "read", &[("bytes", 8)]);
        let posted = recorder.unmodelled_request(
            "MPI_File_iread",
            &[("bytes", Argument::Number(8)), ("file", Argument::File(9))],
        );
        recorder.bind(Some(posted), 71, 2, false);
        call(recorder, "read", &[("bytes", 8)]);
        complete(recorder, "wait", &[(71, 2)], &[(0, None)]);
        call(recorder, "write_at_all_begin", &[("offset", 1), ("bytes", 8)]);
        call(recorder, "write_at_all_end", &[]);
        call(recorder, "read_ordered_begin", &[("bytes", 24)]);
        call(recorder, "read_ordered_end", &[]);
        call(recorder, "write_ordered", &[("bytes", 8)]);
        seek(recorder, 1);
        // A view with holes: 16 bytes of data in 24.
        set_view(recorder, 8, 24);
        call(recorder, "write_at", &[("offset", 3), ("bytes", 8)]);
        call(recorder, "write_all", &[("bytes", 16)]);
        call(recorder, "write_all", &[("bytes", 16)]);
        call(recorder, "sync", &[]);
        call(recorder, "close", &[]);
        call(recorder, "sync", &[]);
    });
    let expected = [
        "io-open /f cb_nodes=4 romio_ds_write=disable",
        "io-write /f 10",
        "io-write_all /f 20",
        "io-seek /f 25",
        "io-read /f 5",
        "io-set_view /f 100",
        "io-read_at /f 16 16",
        "io-read /f 8",
        "io-iread /f 8 req=0",
        "io-read /f 8",
        "wait req=0",
        "io-iwrite_at_all /f 8 8 req=0",
        "wait req=0",
        "io-iread_ordered /f 24 req=0",
        "wait req=0",
        "io-write_ordered /f 8",
        "io-seek /f 8",
        "io-set_view /f 100 24 8:16",
        "io-write_at /f 24 8",
        "io-write_all /f 16",
        "io-write_all /f 16",
        "io-sync /f",
        "io-close /f",
        "unmodelled MPI_File_sync file=0",
    ];
    assert_eq!(calls, expected);
}
