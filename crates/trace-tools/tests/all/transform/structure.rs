//! Transformations of collective operations, tests, communicators and accesses to files.

use super::{changed, refusal, written};

/// Returns the lines of all ranks, each after its rank; `;` separates lines.
fn program<const N: usize>(ranks: [&str; N]) -> String {
    let lines = |(rank, lines): (usize, &&str)| -> String {
        let lines = format!("init;{lines}");
        let lines: Vec<_> = lines.split(';').map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.iter().map(|line| format!("{rank} {line}\n")).collect()
    };
    ranks.iter().enumerate().map(lines).collect()
}

/// The messages of one rank: sizes by source, sizes by destination, and a wait for all of them.
fn exchange(receives: &[(u32, u64)], sends: &[(u32, u64)], first: usize) -> String {
    exchange_on(receives, sends, first, "")
}

fn exchange_on(receives: &[(u32, u64)], sends: &[(u32, u64)], first: usize, on: &str) -> String {
    let tag = i32::MAX;
    let receive = |(number, (from, bytes)): (usize, &(u32, u64))| {
        format!("irecv {from} {tag} {bytes} 6 {on} req={};", first + number)
    };
    let sends: String = (first + receives.len()..)
        .zip(sends)
        .map(|(number, (to, bytes))| format!("isend {to} {tag} {bytes} 6 {on} req={number};"))
        .collect();
    let count = receives.len() + sends.matches(';').count();
    let receives: String = receives.iter().enumerate().map(receive).collect();
    let requests: Vec<_> = (first..first + count).map(|number| number.to_string()).collect();
    format!("{receives}{sends}waitall req={};", requests.join(","))
}

#[test]
fn collective_operations_become_messages() {
    let all = |line: &str| program([line; 3]);
    let cases = [
        (
            all("barrier"),
            program([
                &(exchange(&[(1, 0), (2, 0)], &[], 0) + &exchange(&[], &[(1, 0), (2, 0)], 0)),
                &exchange(&[(0, 0)], &[(0, 0)], 0),
                &exchange(&[(0, 0)], &[(0, 0)], 0),
            ]),
        ),
        (
            all("bcast 5 1 6"),
            program([
                &exchange(&[(1, 5)], &[], 0),
                &exchange(&[], &[(0, 5), (2, 5)], 0),
                &exchange(&[(1, 5)], &[], 0),
            ]),
        ),
        (
            all("reduce 2 7 2 0"),
            program([
                &(exchange(&[], &[(2, 16)], 0) + "compute 7"),
                &(exchange(&[], &[(2, 16)], 0) + "compute 7"),
                &(exchange(&[(0, 16), (1, 16)], &[], 0) + "compute 7"),
            ]),
        ),
        (
            all("allreduce 8 3 6"),
            program([
                &(exchange(&[(1, 8), (2, 8)], &[], 0) + "compute 3;" + &exchange(&[], &[(1, 8), (2, 8)], 0)),
                &(exchange(&[(0, 8)], &[(0, 8)], 0) + "compute 3"),
                &(exchange(&[(0, 8)], &[(0, 8)], 0) + "compute 3"),
            ]),
        ),
        (
            all("alltoall 4 4 6 6"),
            program([
                &exchange(&[(1, 4), (2, 4)], &[(1, 4), (2, 4)], 0),
                &exchange(&[(0, 4), (2, 4)], &[(0, 4), (2, 4)], 0),
                &exchange(&[(0, 4), (1, 4)], &[(0, 4), (1, 4)], 0),
            ]),
        ),
        (
            // A ring, with a block of each rank for itself: all other blocks are empty.
            program([
                "alltoallv 9 4 5 0 9 4 0 7 6 6",
                "alltoallv 9 0 4 6 9 5 4 0 6 6",
                "alltoallv 9 7 0 4 9 0 6 4 6 6",
            ]),
            program([
                &exchange(&[(2, 7)], &[(1, 5)], 0),
                &exchange(&[(0, 5)], &[(2, 6)], 0),
                &exchange(&[(1, 6)], &[(0, 7)], 0),
            ]),
        ),
        (
            program(["gatherv 4 4 0 6 0 6 6", "gatherv 0 4 0 6 0 6 6", "gatherv 6 4 0 6 0 6 6"]),
            program([&exchange(&[(2, 6)], &[], 0), "", &exchange(&[], &[(0, 6)], 0)]),
        ),
        (
            program(["scatterv 4 0 6 4 0 6 6", "scatterv 4 0 6 0 0 6 6", "scatterv 4 0 6 6 0 6 6"]),
            program([&exchange(&[], &[(2, 6)], 0), "", &exchange(&[(0, 6)], &[], 0)]),
        ),
        (
            all("allgather 3 3 6 6"),
            program([
                &exchange(&[(1, 3), (2, 3)], &[(1, 3), (2, 3)], 0),
                &exchange(&[(0, 3), (2, 3)], &[(0, 3), (2, 3)], 0),
                &exchange(&[(0, 3), (1, 3)], &[(0, 3), (1, 3)], 0),
            ]),
        ),
        (
            program(["allgatherv 1 1 0 3 6 6", "allgatherv 0 1 0 3 6 6", "allgatherv 3 1 0 3 6 6"]),
            program([
                &exchange(&[(2, 3)], &[(1, 1), (2, 1)], 0),
                &exchange(&[(0, 1), (2, 3)], &[], 0),
                &exchange(&[(0, 1)], &[(0, 3), (1, 3)], 0),
            ]),
        ),
        (
            all("reducescatter 1 0 3 9 6"),
            program([
                &(exchange(&[(1, 4), (2, 4)], &[], 0) + "compute 9;" + &exchange(&[], &[(2, 3)], 0)),
                &(exchange(&[], &[(0, 4)], 0) + "compute 9"),
                &(exchange(&[(0, 3)], &[(0, 4)], 0) + "compute 9"),
            ]),
        ),
        (
            all("scan 2 1 6"),
            program([
                &(exchange(&[], &[(1, 2), (2, 2)], 0) + "compute 1"),
                &(exchange(&[(0, 2)], &[(2, 2)], 0) + "compute 1"),
                &(exchange(&[(0, 2), (1, 2)], &[], 0) + "compute 1"),
            ]),
        ),
        (
            program([
                "neighbor_alltoallv 6 6 to=1 scounts=8 from=0,1 rcounts=5,3",
                "neighbor_alltoallv 6 6 to=0,2 scounts=3,0 from=0 rcounts=8",
                "neighbor_alltoallv 6 6 to=- scounts=- from=1 rcounts=0",
            ]),
            program([&exchange(&[(1, 3)], &[(1, 8)], 0), &exchange(&[(0, 8)], &[(0, 3)], 0), ""]),
        ),
    ];
    for (with, without) in cases {
        assert_eq!(changed(&with, &["kind='point_to_point'"]), written(&without), "{with}");
    }
}

/// Communicators with other numbers of ranks, tags that the program uses, requests that are free again, other operations.
#[test]
fn messages_of_collective_operations_meet_no_others() {
    let make = "comm_split new=2 members=2,0;";
    let with = program([
        &format!("{make}send 2 2147483647 8;bcast 5 0 6 comm=2;bcast 6 0 6 comm=2;barrier"),
        "comm_split comm=0;barrier",
        &format!("{make}recv 0 2147483647 8;bcast 5 0 6 comm=2;bcast 6 0 6 comm=2;barrier"),
    ]);
    let late = |text: String| text.replace("2147483647", "2147483646");
    let on = "comm=2";
    let without = program([
        &format!(
            "{make}send 2 2147483647 8;{}barrier",
            late(exchange_on(&[(2, 5)], &[], 0, on) + &exchange_on(&[(2, 6)], &[], 0, on))
        ),
        "comm_split comm=0;barrier",
        &format!(
            "{make}recv 0 2147483647 8;{}barrier",
            late(exchange_on(&[], &[(0, 5)], 0, on) + &exchange_on(&[], &[(0, 6)], 0, on))
        ),
    ]);
    assert_eq!(changed(&with, &["kind='point_to_point'\ncall='bcast'"]), written(&without));
    let counts = program(["gatherv 1 1 4 0 6 6", "gatherv 0 1 4 0 6 6"]);
    let refused = refusal(&counts, &["kind='point_to_point'"]);
    let reason = "rank 0, action 1: gatherv, operation 0 on communicator 0, expects data of rank 1, which sends none there";
    assert!(refused.contains(reason), "{refused}");
    let refused = refusal(&program(["bcast 4 0 6", "bcast 0 0 6"]), &["kind='point_to_point'"]);
    assert!(
        refused.contains("rank 0, action 1: bcast, operation 0")
            && refused.contains("rank 1, which expects none"),
        "{refused}"
    );
    let nonblocking = program(["iallreduce 4 0 6 req=1;wait req=1"; 2]);
    let refused = refusal(&nonblocking, &["kind='point_to_point'"]);
    assert!(refused.contains("rank 0, action 1: iallreduce does not block, but its messages"), "{refused}");
    let computing = program(["ireduce 4 3 0 6 req=1;wait req=1"; 2]);
    let refused = refusal(&computing, &["kind='point_to_point'"]);
    assert!(refused.contains("rank 0, action 1: ireduce does not block"), "{refused}");
    let refused = refusal(&program(["barrier"; 2]), &["kind='point_to_point'\nranks=1"]);
    assert!(refused.contains("rank 1, action 1: barrier is operation 0 on communicator 0"), "{refused}");
    // A receive of any tag could take a message, unless none comes from there.
    let any = |root: u32| {
        program(["send 1 7 8;bcast 4 R 6", "bcast 4 R 6;recv 0 -444 8"]).replace('R', &root.to_string())
    };
    let refused = refusal(&any(0), &["kind='point_to_point'"]);
    assert!(refused.contains("rank 1, action 2: a receive or a probe of any tag could take"), "{refused}");
    assert!(changed(&any(1), &["kind='point_to_point'"]).contains("0 irecv 1 2147483647 4"));
}

/// The request of the operation is that of its first message; a rank without messages has none.
#[test]
fn messages_of_nonblocking_operations_are_waited_for_later() {
    let with = program([
        "ialltoallv 9 0 3 4 9 0 1 2 6 6 req=7;compute 1;test req=7 done=-;wait req=7;irecv 1 9 8 6 req=7;wait req=7;\
         iallgatherv 0 0 0 0 6 6 req=7;wait req=7;ibarrier req=7;wait req=7",
        "ialltoallv 9 1 0 0 9 3 0 0 6 6 req=7;compute 1;waitany req=7 done=7;send 0 9 8;\
         iallgatherv 0 0 0 0 6 6 req=7;wait req=7;ibarrier req=7;wait req=7",
        "ialltoallv 9 2 0 0 9 4 0 0 6 6 req=7;waitall req=7;iallgatherv 0 0 0 0 6 6 req=7;compute 2;testany req=7 done=7;\
         ibarrier req=7;wait req=7",
    ]);
    let t = i32::MAX;
    let without = program([
        &format!(
            "irecv 1 {t} 1 6 req=7;irecv 2 {t} 2 6 req=101;isend 1 {t} 3 6 req=102;isend 2 {t} 4 6 req=103;compute 1;test req=7 done=-;\
             wait req=7;waitall req=101,102,103;irecv 1 9 8 6 req=7;wait req=7;ibarrier req=7;wait req=7"
        ),
        &format!(
            "irecv 0 {t} 3 6 req=7;isend 0 {t} 1 6 req=101;compute 1;waitany req=7 done=7;waitall req=101;send 0 9 8;ibarrier req=7;wait req=7"
        ),
        &format!(
            "irecv 0 {t} 4 6 req=7;isend 0 {t} 2 6 req=101;waitall req=7;waitall req=101;compute 2;ibarrier req=7;wait req=7"
        ),
    ]);
    assert_eq!(
        changed(&with, &["kind='point_to_point'\ncall=['ialltoallv', 'iallgatherv']"]),
        written(&without)
    );
}

#[test]
fn polls_become_waits() {
    let with = program([
        "irecv 1 1 8 6 req=0;irecv 1 2 8 6 req=1;test req=0 done=-;compute 5;testany req=0,1 done=-;compute 6;testany req=0,1 done=1;\
         testall req=0 done=-;test req=0 done=0;irecv 1 3 8 6 req=0;irecv 1 4 8 6 req=1;testsome req=0,1 done=-;testsome req=0,1 done=1;testall req=0 done=all;\
         iprobe 1 5 done=no;compute 7;iprobe 1 5 done=yes;recv 1 5 8;irecv 1 6 8 6 req=0;request_get_status req=0 done=no;request_get_status req=0 done=yes;\
         test req=0 done=-;wait req=0",
        "send 0 1 8;send 0 2 8;send 0 3 8;send 0 4 8;send 0 5 8;send 0 6 8",
    ]);
    let without = program([
        "irecv 1 1 8 6 req=0;irecv 1 2 8 6 req=1;compute 5;compute 6;waitany req=0,1 done=1;wait req=0;\
         irecv 1 3 8 6 req=0;irecv 1 4 8 6 req=1;waitsome req=0,1 done=1;waitall req=0;compute 7;probe 1 5;recv 1 5 8;\
         irecv 1 6 8 6 req=0;request_get_status req=0 done=yes;wait req=0",
        "send 0 1 8;send 0 2 8;send 0 3 8;send 0 4 8;send 0 5 8;send 0 6 8",
    ]);
    assert_eq!(changed(&with, &["kind='wait'"]), written(&without));
    let probes = with.replace("0 iprobe 1 5 done=no\n", "").replace("0 iprobe 1 5 done=yes", "0 probe 1 5");
    assert_eq!(changed(&with, &["kind='wait'\ncall='iprobe'"]), written(&probes));
    let refused = refusal(&program(["compute 1"]), &["kind='wait'"]);
    assert!(refused.contains("transformation 1 (wait): the program has no tests and probes"), "{refused}");
    let refused = refusal(&with, &["kind='wait'\nranks=1"]);
    assert!(refused.contains("ranks = \"1\" matches no tests and probes"), "{refused}");
}

/// Text of SimGrid does not tell outcomes: a wait follows, or the last test is the one that succeeded.
#[test]
fn tests_without_outcomes_become_waits_if_none_follows() {
    let with = program([
        "irecv 1 1 8;test 1 0 1;compute 5;test 1 0 1;wait 1 0 1;irecv 1 1 8;test 1 0 1;waitall;irecv 1 2 8;test 1 0 2;compute 6;test 1 0 2;compute 7",
        "send 0 1 8;send 0 1 8;send 0 2 8",
    ]);
    let without = program([
        "irecv 1 1 8;compute 5;wait 1 0 1;irecv 1 1 8;waitall;irecv 1 2 8;compute 6;wait 1 0 2;compute 7",
        "send 0 1 8;send 0 1 8;send 0 2 8",
    ]);
    assert_eq!(changed(&with, &["kind='wait'"]), written(&without));
    let named = "irecv 1 1 8 6 req=0;test req=0;compute 1;test req=0;compute 2";
    let expected = "irecv 1 1 8 6 req=0;compute 1;wait req=0;compute 2";
    let rank = "send 0 1 8";
    assert_eq!(changed(&program([named, rank]), &["kind='wait'"]), written(&program([expected, rank])));
    // The program names the request again, so that it was not complete.
    let again = "irecv 1 1 8 6 req=0;irecv 1 2 8 6 req=1;test req=0;testany req=0,1 done=1";
    let expected = "irecv 1 1 8 6 req=0;irecv 1 2 8 6 req=1;waitany req=0,1 done=1";
    let rank = "send 0 1 8;send 0 2 8";
    assert_eq!(changed(&program([again, rank]), &["kind='wait'"]), written(&program([expected, rank])));
    let alike = program(["irecv 1 1 8;irecv 1 1 8;test 1 0 1;waitall", "send 0 1 8;send 0 1 8"]);
    let refused = refusal(&alike, &["kind='wait'"]);
    assert!(refused.contains("rank 0, action 3: a test of one of several pending requests"), "{refused}");
}

#[test]
fn equal_communicators_are_created_once() {
    // Both ranks of each half have one of their own; duplicates of these are equal, too. Rank 2 has none at all.
    let visit = |number: u32| {
        let (half, copy) = (10 * number, 10 * number + 1);
        format!(
            "comm_split new={half} members=0,1;comm_dup comm={half} new={copy};send P 1 8 6 comm={half};recv P 1 8 6 comm={half};\
             allreduce 4 0 6 comm={copy};comm_free comm={copy};comm_free comm={half};"
        )
    };
    let first = "comm_split new=10 members=0,1;comm_dup comm=10 new=11;";
    let body = "send P 1 8 6 comm=10;recv P 1 8 6 comm=10;allreduce 4 0 6 comm=11;";
    let frees = "comm_free comm=11;comm_free comm=10;";
    let ranks = |text: &str, third: &str| program([&text.replace('P', "1"), &text.replace('P', "0"), third]);
    let with =
        ranks(&(visit(1) + &visit(2) + &visit(3)), "comm_split comm=0;comm_split comm=0;comm_split comm=0");
    let without = ranks(&format!("{first}{body}{body}{body}{frees}"), "comm_split comm=0");
    assert_eq!(changed(&with, &["kind='reuse'"]), written(&without));
    // Without the splits, the parents of the duplicates differ.
    assert_eq!(changed(&with, &["kind='reuse'\ncall='comm_dup'"]), written(&with));
    // Another order of members is another communicator, also for ranks that belong to neither.
    let turned = with.replacen("new=20 members=0,1", "new=20 members=1,0", 2);
    let expected = ranks(
        &format!("{first}{body}{}{body}{frees}", visit(2).replace("members=0,1", "members=1,0")),
        "comm_split comm=0;comm_split comm=0",
    );
    assert_eq!(changed(&turned, &["kind='reuse'"]), written(&expected));
    // Some ranks alone make a group.
    let group = |number: u32| {
        format!("comm_create_group new={number} members=1,0;barrier comm={number};comm_free comm={number};")
    };
    let with = program([&(group(5) + &group(6)), &(group(5) + &group(6)), "compute 1"]);
    let once = "comm_create_group new=5 members=1,0;barrier comm=5;barrier comm=5;comm_free comm=5";
    assert_eq!(changed(&with, &["kind='reuse'"]), written(&program([once, once, "compute 1"])));
}

#[test]
fn communicators_that_keep_messages_apart_stay() {
    let two = "comm_dup new=1;comm_dup new=2;";
    let ranks = |first: &str, second: &str| program([&format!("{two}{first}"), &format!("{two}{second}")]);
    let crossing = ranks(
        "isend 1 3 8 6 comm=1 req=0;isend 1 3 8 6 comm=2 req=1;waitall req=0,1",
        "recv 0 3 8 6 comm=2;recv 0 3 8 6 comm=1",
    );
    let refused = refusal(&crossing, &["kind='reuse'"]);
    assert!(
        refused.contains("rank 1: it receives messages of rank 0 with tag 3 in another order"),
        "{refused}"
    );
    let any = ranks("send 1 3 8 6 comm=1", "recv -555 3 8 6 comm=1");
    let refused = refusal(&any, &["kind='reuse'"]);
    assert!(refused.contains("rank 1, action 3: a receive or a probe of any tag or source"), "{refused}");
    let collective = ranks(
        "ibarrier comm=1 req=0;ibarrier comm=2 req=1;waitall req=0,1",
        "ibarrier comm=2 req=0;ibarrier comm=1 req=1;waitall req=0,1",
    );
    let refused = refusal(&collective, &["kind='reuse'"]);
    assert!(
        refused.contains("rank 1: its collective operations on communicators equal to number 1"),
        "{refused}"
    );
    let place = program([
        "location a 0;comm_dup new=1;location b 0;comm_dup new=2",
        "comm_dup new=1;location b 0;comm_dup new=2",
    ]);
    let refused = refusal(&place, &["kind='reuse'\nregion='a'"]);
    assert!(
        refused.contains("rank 1, action 1: it is creation 0 on communicator 0, of rank 0, too"),
        "{refused}"
    );
    let refused = refusal(&place, &["kind='reuse'\ncommunicator=1"]);
    assert!(
        refused.contains(
            "communicator = \"1\" matches no creations of communicators; the program has communicator 0"
        ),
        "{refused}"
    );
}

#[test]
fn accesses_to_files_become_collective() {
    let with = program([
        "io-open /f;io-write_at /f 0 8;compute 3;io-write /f 8;barrier;io-read_at /f 0 4;io-read_all /f 2;io-close /f",
        "io-open /f;compute 4;io-write_at /f 8 8;io-write /f 16;barrier;io-read_at /f 9 4;io-read_all /f 2;io-close /f",
    ]);
    let without = with
        .replace("write_at ", "write_at_all ")
        .replace("write ", "write_all ")
        .replace("read_at ", "read_at_all ");
    assert_eq!(changed(&with, &["kind='collective'"]), written(&without));
    let writes = with.replace("write_at ", "write_at_all ").replace("write ", "write_all ");
    assert_eq!(changed(&with, &["kind='collective'\ncall='io-write*'"]), written(&writes));
    for (old, new, reason) in [
        (
            "1 io-write /f 16\n",
            "",
            "rank 1, action 4: another collective operation, where rank 0 has a write to /f",
        ),
        (
            "1 io-write /f 16\n",
            "1 io-read /f 16\n",
            "rank 1, action 4: a read of /f, where rank 0 has a write to /f",
        ),
        (
            "1 io-write /f 16\n1 barrier\n",
            "1 barrier\n1 io-write /f 16\n",
            "rank 1, action 4: another collective operation",
        ),
        (
            "1 io-close",
            "1 io-read /f 1\n1 io-close",
            "rank 1, action 8: a read of /f, where rank 0 has another collective operation",
        ),
    ] {
        assert!(with.contains(old), "{old}");
        let refused = refusal(&with.replace(old, new), &["kind='collective'"]);
        assert!(refused.contains(reason), "{refused}");
    }
    let alone = program(["compute 1", "io-write /f 8"]);
    let refused = refusal(&alone, &["kind='collective'"]);
    assert!(refused.contains("rank 0: it makes fewer of the accesses than rank 1"), "{refused}");
    let refused = refusal(&without, &["kind='collective'\ncall='io-write*'"]);
    assert!(refused.contains("matches no independent accesses to files"), "{refused}");
}

#[test]
fn adjoining_accesses_become_one() {
    let with = program([
        "io-open /f;io-write /f 8;compute 3;io-write /f 8;io-write /f 1;location b 0;io-write_at /f 17 3;io-write_at /f 20 3;io-write_at /f 24 3;\
         io-read_at /f 0 4;sleep 1;io-read_at /f 4 4;barrier;io-read_at /f 8 4;io-read_at /g 12 4",
        "barrier",
    ]);
    let all = program([
        "io-open /f;compute 3;io-write /f 17;location b 0;io-write_at /f 17 6;io-write_at /f 24 3;\
         io-read_at /f 0 8;sleep 1;barrier;io-read_at /f 8 4;io-read_at /g 12 4",
        "barrier",
    ]);
    assert_eq!(changed(&with, &["kind='coalesce'"]), written(&all));
    let pairs = all.replace("0 io-write /f 17", "0 io-write /f 16\n0 io-write /f 1");
    assert_eq!(changed(&with, &["kind='coalesce'\ncount=2"]), written(&pairs));
    let here = with.replace("0 io-write_at /f 17 3\n0 io-write_at /f 20 3", "0 io-write_at /f 17 6");
    assert_eq!(changed(&with, &["kind='coalesce'\nregion='b'\ncall='io-write_at'"]), written(&here));
}

#[test]
fn receives_that_follow_each_other_complete_together() {
    let sends = "compute 1;send 0 5 8;send 0 5 9;send 0 6 10;send 0 7 11;send 0 8 12";
    let with = program([
        "location a.c 1;recv 1 5 8;location a.c 2;recv 1 5 9;location b 0;recv 1 6 10;compute 2;recv 1 7 11;barrier;recv 1 8 12",
        &format!("{sends};barrier"),
    ]);
    let all = program([
        "location a.c 1;irecv 1 5 8 req=0;location a.c 2;irecv 1 5 9 req=1;location b 0;irecv 1 6 10 req=2;waitall req=0,1,2;\
         compute 2;recv 1 7 11;barrier;recv 1 8 12",
        &format!("{sends};barrier"),
    ]);
    assert_eq!(changed(&with, &["kind='waitall'"]), written(&all));
    // One of those that follow each other is enough.
    assert_eq!(changed(&with, &["kind='waitall'\nsite='a.c:2'"]), written(&all));
    assert_eq!(changed(&all, &["kind='waitall'"]), written(&all), "what is left is alone");
    let refused = refusal(&with, &["kind='waitall'\nranks='1'"]);
    assert!(refused.contains("matches no blocking receives"), "{refused}");
}
