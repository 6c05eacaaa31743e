//! Transformations that move work, join messages, or start operations earlier.

use std::time::{Duration, Instant};

use super::{changed, refusal, written};

#[test]
fn computations_move_between_visits_of_two_places() {
    let program = "0 init\n0 compute 1\n0 location a 0\n0 compute 10\n0 location b 0\n0 barrier\n0 location a 0\n0 compute 4\n0 compute 2\n\
        0 location b 0\n0 compute 1\n0 finalize\n1 init\n1 barrier\n1 finalize\n";
    let half = "kind='move'\nregion='a'\nto='b'\nfraction=0.5\nranks=0";
    let expected = "0 init\n0 compute 1\n0 location a 0\n0 compute 5\n0 location b 0\n0 barrier\n0 compute 5\n0 location a 0\n0 compute 2\n0 compute 1\n\
        0 location b 0\n0 compute 1\n0 compute 3\n0 finalize\n1 init\n1 barrier\n1 finalize\n";
    assert_eq!(changed(program, &[half]), written(expected));
    let begin = "0 init\n0 compute 1\n0 location a 0\n0 compute 10\n0 location b 0\n0 barrier\n0 location a 0\n0 compute 0\n0 compute 0\n\
        0 location b 0\n0 compute 6\n0 compute 1\n0 finalize\n1 init\n1 barrier\n1 finalize\n";
    assert_eq!(
        changed(program, &["kind='move'\nregion='a'\niterations=1\nto='b'\nat='begin'"]),
        written(begin)
    );
    let refused = refusal(program, &["kind='move'\nregion='a'\nto='c'"]);
    assert!(
        refused.contains("region = \"c\" matches no visits; the program has \"a\" and \"b\""),
        "{refused}"
    );
    let uneven = program.replace("0 location b 0\n0 barrier", "0 barrier");
    let refused = refusal(&uneven, &[half]);
    assert!(refused.contains("rank 0: it visits the place 2 times, and the place to which"), "{refused}");
}

#[test]
fn compressed_messages_cost_computation() {
    let program = "0 init\n0 send 1 1 100\n0 isend 1 2 10\n0 waitall\n1 init\n1 irecv 0 1 100\n1 irecv 0 2 10\n1 compute 7\n1 wait 0 1 2\n1 waitall\n";
    let expected = "0 init\n0 compute 200\n0 send 1 1 25\n0 compute 20\n0 isend 1 2 3\n0 waitall\n\
        1 init\n1 irecv 0 1 25\n1 irecv 0 2 3\n1 compute 7\n1 wait 0 1 2\n1 compute 30\n1 waitall\n1 compute 300\n";
    assert_eq!(changed(program, &["kind='compress'\nfactor=0.25\ncompress=2\nexpand=3"]), written(expected));
    let exchange = "0 init\n0 sendRecv 8 1 16 1 6 6\n1 init\n1 recv 0 0 8\n1 send 0 0 16\n";
    let expected = "0 init\n0 compute 8\n0 sendRecv 4 1 16 1 6 6\n1 init\n1 recv 0 0 4\n1 send 0 0 16\n";
    assert_eq!(changed(exchange, &["kind='compress'\nfactor=0.5\ncompress=1\nranks=0"]), written(expected));
}

#[test]
fn messages_of_an_exchange_become_one() {
    // Two tags in one exchange; the second exchange is behind a wait.
    let side = |rank: u32, post: &str| {
        let peer = 1 - rank;
        format!(
            "{rank} compute 1\n{rank} {post} {peer} 1 8\n{rank} compute 2\n{rank} {post} {peer} 2 16\n{rank} waitall\n"
        )
    };
    let program = |send: &str, receive: &str| {
        format!("0 init\n{}{}1 init\n{}{}", side(0, send), side(0, send), side(1, receive), side(1, receive))
    };
    let joined = |rank: u32, line: &str, first: bool| {
        let (one, other) = if first { (line, "") } else { ("", line) };
        format!("{rank} compute 1\n{one}{rank} compute 2\n{other}{rank} waitall\n")
    };
    let (send, receive) = (joined(0, "0 isend 1 1 24 6 req=0\n", false), joined(1, "1 irecv 0 1 24\n", true));
    let expected = format!("0 init\n{send}{send}1 init\n{receive}{receive}");
    assert_eq!(changed(&program("isend", "irecv"), &["kind='aggregate'"]), written(&expected));
    // In another order of receives, nothing is joined.
    let crossed =
        "0 init\n0 isend 1 1 8\n0 isend 1 2 8\n0 waitall\n1 init\n1 irecv 0 2 8\n1 irecv 0 1 8\n1 waitall\n";
    assert_eq!(changed(crossed, &["kind='aggregate'"]), written(crossed));
    for (program, reason) in [
        (
            "0 init\n0 send 1 1 8\n1 init\n1 recv 0 -444 8\n",
            "rank 1, action 1: a receive of any tag or from any",
        ),
        (
            "0 init\n0 sendRecv 8 1 8 1 6 6\n1 init\n1 sendRecv 8 0 8 0 6 6\n",
            "rank 0, action 1: a combined send",
        ),
    ] {
        let refused = refusal(program, &["kind='aggregate'"]);
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn messages_of_a_channel_become_one_by_number() {
    let program = "0 init\n0 compute 1\n0 send 1 5 8\n0 compute 2\n0 send 1 5 9\n0 compute 3\n0 send 1 5 10\n\
        1 init\n1 recv 0 5 8\n1 compute 4\n1 recv 0 5 9\n1 compute 5\n1 recv 0 5 10\n";
    let expected = "0 init\n0 compute 1\n0 compute 2\n0 send 1 5 17\n0 compute 3\n0 send 1 5 10\n\
        1 init\n1 recv 0 5 17\n1 compute 4\n1 compute 5\n1 recv 0 5 10\n";
    assert_eq!(changed(program, &["kind='aggregate'\ncount=2"]), written(expected));
    assert_eq!(changed(program, &["kind='aggregate'\ncount=1"]), written(program));
    // Not across a collective operation.
    let phases = program.replace("0 compute 2\n", "0 barrier\n").replace("1 compute 4\n", "1 barrier\n");
    let expected = "0 init\n0 compute 1\n0 send 1 5 8\n0 barrier\n0 compute 3\n0 send 1 5 19\n\
        1 init\n1 recv 0 5 8\n1 barrier\n1 recv 0 5 19\n1 compute 5\n";
    assert_eq!(changed(&phases, &["kind='aggregate'\ncount=2"]), written(expected));
    // Requests of messages that are gone are neither waited for nor tested, and their slots are free.
    let requests = "0 init\n0 isend 1 5 8 6 req=0\n0 isend 1 5 8 6 req=1\n0 wait req=0\n0 isend 1 7 8 6 req=0\n0 waitall req=0,1\n\
        1 init\n1 irecv 0 5 8 6 req=3\n1 irecv 0 5 8 6 req=4\n1 waitany req=3,4 done=3\n1 wait req=4\n1 recv 0 7 8\n";
    let expected = "0 init\n0 isend 1 5 16 6 req=1\n0 isend 1 7 8 6 req=0\n0 waitall req=0,1\n\
        1 init\n1 irecv 0 5 16 6 req=3\n1 waitany req=3 done=3\n1 recv 0 7 8\n";
    assert_eq!(changed(requests, &["kind='aggregate'\ncount=2\ntag=5"]), written(expected));
}

#[test]
fn collective_operations_end_behind_computations() {
    let rank_text = |rank: u32, reduction: &str| {
        format!(
            "{rank} init\n{reduction}{rank} location a.c 1\n{rank} compute 1\n{rank} compute 2\n{rank} barrier\n{rank} compute 3\n"
        )
    };
    let rank = |rank: u32| rank_text(rank, &format!("{rank} allreduce 8 0\n"));
    let late = |rank: u32, count: u32| {
        let wait = format!("{rank} wait req=0\n");
        let (one, two) = if count == 1 { (&wait[..], "") } else { ("", &wait[..]) };
        format!(
            "{rank} init\n{rank} iallreduce 8 0 req=0\n{rank} location a.c 1\n{rank} compute 1\n{one}{rank} compute 2\n{two}{rank} barrier\n{rank} compute 3\n"
        )
    };
    let program = rank(0) + &rank(1);
    let change = |keys: &str| changed(&program, &[&format!("kind='nonblocking'\ncall='allreduce'\n{keys}")]);
    assert_eq!(change(""), written(&(late(0, 1) + &late(1, 1))));
    assert_eq!(change("late=5"), written(&(late(0, 5) + &late(1, 5))));
    let at_once = |rank: u32| rank_text(rank, &format!("{rank} iallreduce 8 0 req=0\n{rank} wait req=0\n"));
    assert_eq!(change("late='place'"), written(&(at_once(0) + &at_once(1))));
    let refused = refusal(&program, &["kind='nonblocking'\nranks=0"]);
    assert!(refused.contains("rank 1, action 1: allreduce is operation 0 on communicator 0"), "{refused}");
}

#[test]
fn protocols_are_modes_of_sends() {
    let program = "0 init\n0 send 1 1 8\n0 isend 1 2 8\n0 waitall\n1 init\n1 recv 0 1 8\n1 recv 0 2 8\n";
    let sent = |send: &str, isend: &str| program.replace("0 send", send).replace("0 isend", isend);
    let change = |name: &str| changed(program, &[&format!("kind='protocol'\nprotocol='{name}'")]);
    assert_eq!(change("eager"), written(&sent("0 bsend", "0 ibsend")));
    assert_eq!(change("rendezvous"), written(&sent("0 ssend", "0 issend")));
}

/// An exchange side by side, and the cells behind it: receives are posted first, waits end at the end of the region, and sends pass
/// the waits for other sides.
#[test]
fn overlap_ends_with_the_place() {
    let both = |lines: &str| -> String {
        (0..2)
            .map(|rank: u32| lines.replace('@', &rank.to_string()).replace('%', &(1 - rank).to_string()))
            .collect()
    };
    let program = both(
        "@ init\n@ location cells 0\n@ compute 1\n@ location halo 0\n@ compute 2\n@ sendRecv 8 % 8 % 6 6\n@ compute 3\n\
         @ sendRecv 8 % 8 % 6 6 stag=4 rtag=4\n@ compute 4\n@ location cells 0\n@ compute 5\n",
    );
    let expected = both(
        "@ init\n@ location cells 0\n@ compute 1\n@ location halo 0\n@ irecv % 0 8 6 req=0\n@ irecv % 4 8 6 req=1\n@ compute 2\n\
         @ isend % 0 8 6 req=2\n@ compute 3\n@ isend % 4 8 6 req=3\n@ compute 4\n@ wait req=2\n@ wait req=0\n@ wait req=3\n@ wait req=1\n\
         @ location cells 0\n@ compute 5\n",
    );
    let keys = "kind='overlap'\nearly='place'\nlate='place'";
    assert_eq!(changed(&program, &[&format!("{keys}\nindependent=true")]), written(&expected));
    // Else the second side is sent after the first one has come.
    let found = changed(&program, &[keys]);
    let waits = found.find("0 wait ").expect("a wait");
    assert!(waits < found.find("0 isend 1 4 ").expect("a send"), "{found}");
}

/// Without places all operations of a rank are held back until its end.
#[test]
fn overlap_without_places_takes_time_in_proportion_to_the_program() {
    let program = |messages: usize| {
        let side = |rank: u32, line: &dyn Fn(usize) -> String| {
            let body: String = (0..messages)
                .map(|number| format!("{rank} compute {}\n{rank} {}\n", 1000 + number, line(number)))
                .collect();
            format!("{rank} init\n{body}{rank} finalize\n")
        };
        side(0, &|number| format!("send 1 {} 12 6", number % 3))
            + &side(1, &|number| format!("recv 0 {} 12 6", number % 3))
    };
    let keys = "kind='overlap'\nearly='place'\nlate='place'";
    let small = "0 init\n0 compute 1000\n0 isend 1 0 12 6 req=0\n0 compute 1001\n0 isend 1 1 12 6 req=1\n0 wait req=0\n0 wait req=1\n0 finalize\n\
        1 init\n1 irecv 0 0 12 6 req=0\n1 irecv 0 1 12 6 req=1\n1 compute 1000\n1 compute 1001\n1 wait req=0\n1 wait req=1\n1 finalize\n";
    assert_eq!(changed(&program(2), &[keys]), written(small));
    let time = |messages: usize| {
        let program = program(messages);
        let began = Instant::now();
        let found = changed(&program, &[keys]);
        assert_eq!(found.matches("wait req").count(), 2 * messages);
        began.elapsed()
    };
    let (few, many) = (time(2000), time(16_000));
    assert!(many < 20 * few + Duration::from_millis(100), "{few:?}, {many:?}");
}

#[test]
fn communicators_are_selected() {
    let program = "0 init\n0 comm_split new=2 members=0,1\n0 send 1 1 8 6 comm=2\n0 send 1 1 8 6\n0 barrier comm=2\n0 barrier\n\
        1 init\n1 comm_split new=2 members=0,1\n1 recv 0 1 8 6\n1 recv 0 1 8 6 comm=2\n1 barrier comm=2\n1 barrier\n";
    let expected = program.replace("0 send 1 1 8 6 comm=2\n", "").replace("1 recv 0 1 8 6 comm=2\n", "");
    assert_eq!(changed(program, &["kind='eliminate'\ncommunicator=2"]), written(&expected));
    let expected = program.replace("0 barrier comm=2\n", "").replace("1 barrier comm=2\n", "");
    assert_eq!(changed(program, &["kind='remove'\ncommunicator='1-'"]), written(&expected));
    let refused = refusal(program, &["kind='eliminate'\ncommunicator=3"]);
    assert!(
        refused.contains("communicator = \"3\" matches no messages; the program has communicator 0 to 2"),
        "{refused}"
    );
}

#[test]
fn exchanges_become_neighbourhood_collectives() {
    // A line of three ranks; the exchange of rank 1 has two neighbours, with two messages to rank 2.
    let rank = |rank: u32, lines: &str| {
        format!(
            "{rank} init\n{}",
            format!("R location halo 0\n{lines}R location work 0\nR compute 1\n").repeat(2)
        )
        .replace('R', &rank.to_string())
    };
    let program = rank(0, "R irecv 1 1 8\nR compute 7\nR send 1 1 16\nR waitall\n")
        + &rank(
            1,
            "R irecv 0 1 16\nR irecv 2 1 4 6\nR isend 0 1 8\nR send 2 1 32\nR send 2 2 1\nR waitall\n",
        )
        + &rank(2, "R send 1 1 4\nR recv 1 1 32\nR recv 1 2 1\nR compute 2\n");
    let collective = |to: &str, sizes: &str, from: &str, buffers: &str| {
        format!("R neighbor_alltoallv 6 6 to={to} scounts={sizes} from={from} rcounts={buffers}\n")
    };
    let expected = rank(0, &format!("R compute 7\nR waitall\n{}", collective("1", "16", "1", "8")))
        + &rank(1, &format!("R waitall\n{}", collective("0,2", "8,33", "0,2", "16,4")))
        + &rank(2, &format!("{}R compute 2\n", collective("1", "4", "1", "33")));
    assert_eq!(changed(&program, &["kind='neighborhood'\nregion='halo'"]), written(&expected));
    let late = program.replace("0 waitall\n0 location work 0\n", "0 location work 0\n0 waitall\n");
    let refused = refusal(&late, &["kind='neighborhood'\nregion='halo'"]);
    assert!(
        refused.contains("rank 0, action 6: a message of the exchange, sent, received or waited for outside"),
        "{refused}"
    );
    let uneven = program.replacen("2 location halo 0", "2 location work 0", 1);
    let refused = refusal(&uneven, &["kind='neighborhood'\nregion='halo'"]);
    assert!(refused.contains("rank 2"), "{refused}");
}

#[test]
fn persistent_requests_of_eliminated_messages_are_not_started() {
    let program = "0 init\n0 send_init 1 1 8 6 req=0\n0 send_init 1 2 8 6 req=1\n0 send_init -666 1 1 6 req=2\n\
        0 startall req=2,0,1\n0 waitall req=0,1,2\n0 start req=0\n0 wait req=0\n0 start req=1\n0 waitany req=1 done=1\n0 request_free req=0\n0 request_free req=1\n\
        1 init\n1 recv_init 0 1 8 6 req=5\n1 start req=5\n1 recv 0 2 8\n1 wait req=5\n1 start req=5\n1 recv 0 2 8\n1 wait req=5\n1 request_free req=5\n";
    let expected = "0 init\n0 send_init 1 1 8 6 req=0\n0 send_init 1 2 8 6 req=1\n0 send_init -666 1 1 6 req=2\n\
        0 startall req=2,1\n0 waitall req=1,2\n0 start req=1\n0 waitany req=1 done=1\n0 request_free req=0\n0 request_free req=1\n\
        1 init\n1 recv_init 0 1 8 6 req=5\n1 recv 0 2 8\n1 recv 0 2 8\n1 request_free req=5\n";
    assert_eq!(changed(program, &["kind='eliminate'\ntag=1"]), written(expected));
}

/// Persistent requests change where they are made. A receive of one is matched by a send of the other kind.
#[test]
fn persistent_requests_of_selected_messages_change() {
    let program = "0 init\n0 send_init 1 1 8 6 req=0\n0 send_init 1 2 8 6 req=1\n0 send_init -666 1 1 6 req=2\n\
        0 startall req=2,0,1\n0 waitall req=0,1,2\n0 start req=0\n0 wait req=0\n0 request_free req=0\n0 send_init 1 3 8 6 req=0\n0 start req=0\n0 wait req=0\n\
        1 init\n1 recv_init 0 1 8 6 req=5\n1 start req=5\n1 recv 0 2 8\n1 wait req=5\n1 start req=5\n1 compute 1\n1 wait req=5\n1 irecv 0 3 8 6 req=6\n1 wait req=6\n";
    let larger =
        program.replace("send_init 1 1 8", "send_init 1 1 24").replace("recv_init 0 1 8", "recv_init 0 1 24");
    assert_eq!(changed(program, &["kind='resize'\nfactor=3\ntag=1"]), written(&larger));
    let others =
        program.replace("send_init 1 2 8", "send_init 1 2 4").replace("send_init 1 3 8", "send_init 1 3 4");
    let others = others.replace("recv 0 2 8", "recv 0 2 4").replace("irecv 0 3 8", "irecv 0 3 4");
    assert_eq!(changed(program, &["kind='resize'\nfactor=0.5\ntag='2-3'"]), written(&others));
    let synchronous = program.replace("send_init 1 1 8", "ssend_init 1 1 8");
    assert_eq!(changed(program, &["kind='mode'\nmode='synchronous'\ntag=1"]), written(&synchronous));
    let eager = program.replace("send_init 1", "bsend_init 1");
    assert_eq!(changed(program, &["kind='protocol'\nprotocol='eager'"]), written(&eager));
    let small =
        program.replace("send_init 1 1 8", "send_init 1 1 4").replace("recv_init 0 1 8", "recv_init 0 1 4");
    let small = small
        .replace("0 startall req=2,0,1\n", "0 compute 16\n0 startall req=2,0,1\n")
        .replacen("0 start req=0\n", "0 compute 16\n0 start req=0\n", 1)
        .replace("1 wait req=5\n", "1 wait req=5\n1 compute 24\n");
    assert_eq!(
        changed(program, &["kind='compress'\nfactor=0.5\ncompress=2\nexpand=3\ntag=1"]),
        written(&small)
    );
    let places = "0 init\n0 location a 0\n0 send_init 1 1 8 6 req=0\n0 start req=0\n0 wait req=0\n0 location b 0\n0 start req=0\n0 wait req=0\n\
        1 init\n1 recv 0 1 8\n1 recv 0 1 8\n";
    for keys in ["kind='resize'\nfactor=2", "kind='compress'\nfactor=0.5", "kind='mode'\nmode='buffered'"] {
        let refused = refusal(places, &[&format!("{keys}\nregion='b'")]);
        let reason = "rank 0, action 6: a start of a persistent request, whose message is selected at some starts only";
        assert!(refused.contains(reason), "{refused}");
    }
    // Of one channel half the messages are selected: a persistent receive takes both.
    let mixed = "0 init\n0 send 1 1 8\n0 send 1 1 80\n1 init\n1 recv_init 0 1 80 6 req=0\n1 start req=0\n1 wait req=0\n1 start req=0\n1 wait req=0\n";
    let refused = refusal(mixed, &["kind='resize'\nfactor=2\nbytes='0-8'"]);
    assert!(refused.contains("rank 1, action 4: a start of a persistent request"), "{refused}");
}

#[test]
fn messages_are_worked_on_as_they_come() {
    let program = "0 init\n0 irecv 1 1 8 6 req=0\n0 irecv 1 2 8 6 req=1\n0 isend 1 3 8 6 req=2\n0 waitall req=0,1,2\n0 compute 10\n\
        0 irecv 1 1 8 6 req=0\n0 irecv 1 2 8 6 req=1\n0 waitall req=0,1\n0 barrier\n\
        1 init\n1 send 0 1 8\n1 send 0 2 8\n1 recv 0 3 8\n1 send 0 1 8\n1 send 0 2 8\n1 barrier\n";
    let expected = program.replace(
        "0 waitall req=0,1,2\n0 compute 10\n",
        "0 waitany req=0,1 done=0\n0 compute 5\n0 waitany req=1 done=1\n0 compute 5\n0 waitall req=2\n",
    );
    assert_eq!(changed(program, &["kind='waitany'"]), written(&expected));
    assert_eq!(changed(program, &["kind='waitany'\ntag=1"]), written(program));
    let refused = refusal("0 init\n0 irecv 1 1 8\n0 waitall\n1 init\n1 send 0 1 8\n", &["kind='waitany'"]);
    assert!(refused.contains("rank 0, action 1: a request without a number"), "{refused}");
}
