//! Hypotheses about programs of a few lines.

mod folded;
mod kinds;
mod structure;
mod untimed;

use std::path::Path;
use std::sync::Arc;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{ConvertOptions, Finding, Folding, Info, LoadOptions, Op, Trace, check};
use trace_tools::transform::{Hypothesis, Refusal, TransformError};
use trace_tools::{convert, from_text, write_text};

use crate::call_programs::writer::{Step, step, text as random_text};

/// Returns the text of all ranks.
fn text(trace: &Trace) -> String {
    let mut text = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        write_text(trace, rank, &mut text, None).expect("a vector takes any text");
    }
    String::from_utf8(text).expect("the text is ASCII")
}

/// Reads one hypothesis with these transformations.
fn hypothesis(transforms: &[&str]) -> Result<Hypothesis, TransformError> {
    let transforms: String =
        transforms.iter().map(|keys| format!("[[hypothesis.transform]]\n{keys}\n")).collect();
    let text = format!("[[hypothesis]]\nname = 'changed'\n{transforms}");
    Ok(Hypothesis::from_text(&text, Path::new("h.toml"))?.remove(0))
}

fn apply(trace: Trace, transforms: &[&str]) -> Result<Trace, TransformError> {
    let source = hypothesis(transforms)?.apply(Arc::new(trace), Path::new("trace.txt"))?;
    Ok(Trace::read(Box::new(source), &LoadOptions::default())?)
}

/// Returns the text of a program after transformations.
fn changed(program: &str, transforms: &[&str]) -> String {
    text(&apply(from_text(program).expect("a trace"), transforms).expect("the transformations fit"))
}

/// Returns the text of a program, as it is written.
fn written(program: &str) -> String {
    text(&from_text(program).expect("a trace"))
}

/// Returns the reason why transformations do not fit a program.
fn refusal(program: &str, transforms: &[&str]) -> String {
    match apply(from_text(program).expect("a trace"), transforms) {
        Err(error @ TransformError::Refused { .. }) => {
            assert!(error.is_misuse());
            error.to_string()
        }
        other => panic!("{other:?}"),
    }
}

/// Two ranks with regions and call sites: rank 0 has 10, 20, 30 flop in `foo`, rank 1 30, 20, 10.
const REGIONS: &str = "0 init\n0 compute 1\n\
    0 location foo 0\n0 compute 10\n0 barrier\n\
    0 location main.c 7\n0 compute 5\n\
    0 location foo 0\n0 compute 20\n0 location foo 0\n0 compute 30\n\
    1 init\n1 location foo 0\n1 compute 30\n1 barrier\n1 location foo 0\n1 compute 20\n1 location foo 0\n1 compute 10\n";

#[test]
fn no_transformation_is_the_identity() {
    let program = "0 init\n0 compute 5e6 time=4000000\n0 irecv 1 7 8\n0 irecv 1 7 8\n0 test 1 0 7\n0 wait 1 0 7\n0 waitall\n\
        1 init\n1 send 0 7 8\n1 isend 0 7 8 6 req=3\n1 wait req=3\n1 isend -666 1 1\n1 sendRecv 5 -666 0 -666 6 6\n";
    let named = "0 init\n0 recv_init 1 4 8 6 req=0\n0 start req=0\n0 waitany req=0 done=0\n0 request_free req=0\n\
        1 init\n1 comm_split new=2 members=1\n1 ssend 0 4 8 6\n1 allreduce 4 0 comm=2\n1 ibarrier comm=2 req=1\n1 wait req=1\n1 unmodelled MPI_Put bytes=3\n";
    for program in [program, named, REGIONS] {
        assert_eq!(changed(program, &[]), written(program));
        assert_eq!(
            changed(program, &["kind='scale'\nfactor=1"; 1][..usize::from(program != named)]),
            written(program)
        );
    }
}

#[test]
fn computations_are_scaled_and_set_where_the_selector_says() {
    let scaled = |keys: &str, from: &[(&str, &str)]| {
        let expected = from.iter().fold(written(REGIONS), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        });
        assert_eq!(changed(REGIONS, &[keys]), expected, "{keys}");
    };
    scaled("kind='scale'\nfactor=2\nsite='main.c:*'", &[("0 compute 5\n", "0 compute 10\n")]);
    scaled(
        "kind='scale'\nfactor=0.5\nregion='foo'\nranks=1\niterations='1-'",
        &[
            ("1 compute 20\n", "1 compute 10\n"),
            (
                "1 location foo 0\n1 compute 10\n1 location foo 0\n1 compute 10\n",
                "1 location foo 0\n1 compute 10\n1 location foo 0\n1 compute 5\n",
            ),
        ],
    );
    scaled(
        "kind='set'\nflops=7\nregion=['bar','f*']\nranks='0'\niterations='0,2'",
        &[("0 compute 10\n", "0 compute 7\n"), ("0 compute 30\n", "0 compute 7\n")],
    );
    // Without a place, also that before the first location.
    let sums = |trace: &Trace| -> Vec<f64> {
        let flops = |op: Op| if let Op::Compute { flops } = op { flops } else { 0.0 };
        (0..2).map(|rank| trace.ops(Rank::new(rank)).map(flops).sum()).collect()
    };
    let program = || from_text(REGIONS).expect("a trace");
    let doubled = apply(program(), &["kind='scale'\nfactor=2"]).expect("it fits");
    assert_eq!((sums(&program()), sums(&doubled)), (vec![66.0, 60.0], vec![132.0, 120.0]));
}

#[test]
fn balancing_keeps_the_sum_of_each_instance() {
    let even = written(REGIONS);
    let even = even.replace("compute 10\n", "compute 20\n").replace("compute 30\n", "compute 20\n");
    assert_eq!(changed(REGIONS, &["kind='balance'\nregion='foo'"]), even);
    // Rank 0 computes 2 and 4 in the visit, rank 1 once 12: both get 9, rank 0 in parts of 1 and 2.
    let parts = "0 init\n0 location foo 0\n0 compute 2\n0 barrier\n0 compute 4\n1 init\n1 location foo 0\n1 compute 12\n1 barrier\n";
    let expected = parts.replace("compute 2", "compute 3").replace("compute 4", "compute 6");
    let expected = expected.replace("compute 12", "compute 9");
    assert_eq!(changed(parts, &["kind='balance'\nregion='foo'"]), written(&expected));
    // In sum: 8 of rank 0, 4 of rank 1, both get 6; rank 2 is not selected.
    let uneven = "0 init\n0 compute 4\n0 compute 4\n1 init\n1 compute 4\n2 init\n2 compute 1\n";
    let expected = "0 init\n0 compute 3\n0 compute 3\n1 init\n1 compute 6\n2 init\n2 compute 1\n";
    assert_eq!(changed(uneven, &["kind='balance'\nover='sum'\nranks='0-1'"]), written(expected));
    let refused = refusal(uneven, &["kind='balance'\nranks='0-1'"]);
    assert!(refused.contains("rank 1: it has 1 instances, an earlier rank has 2"), "{refused}");
    // A rank without computations gets its part, too.
    let idle = "0 init\n1 init\n1 compute 8\n";
    let expected = "0 init\n0 compute 4\n1 init\n1 compute 4\n";
    assert_eq!(changed(idle, &["kind='balance'\nover='sum'"]), written(expected));
    let zero = "0 init\n0 compute 4\n1 init\n1 compute 0\n";
    let refused = refusal(zero, &["kind='balance'"]);
    assert!(refused.contains("rank 1, action 1: its computations are all zero"), "{refused}");
}

/// What one rank alone computes at a place, each rank computes a part of, where its messages and collective operations allow it.
#[test]
fn balancing_distributes_the_computations_of_one_rank() {
    // After the gather: rank 1 comes to the place without computing there, rank 2 does not come to it, rank 3 has no call site.
    let alone = "0 init\n0 location w 1\n0 compute 1\n0 gather 8 8 0\n0 location p 2\n0 compute 6\n0 compute 2\n0 bcast 8\n0 finalize\n\
        1 init\n1 location w 1\n1 compute 1\n1 gather 8 8 0\n1 location p 2\n1 location b 3\n1 bcast 8\n1 finalize\n\
        2 init\n2 location w 1\n2 compute 1\n2 gather 8 8 0\n2 bcast 8\n2 finalize\n\
        3 init\n3 compute 1\n3 gather 8 8 0\n3 bcast 8\n3 finalize\n";
    let expected = "0 init\n0 location w 1\n0 compute 1\n0 gather 8 8 0\n0 location p 2\n0 compute 1.5\n0 compute 0.5\n0 bcast 8\n0 finalize\n\
        1 init\n1 location w 1\n1 compute 1\n1 gather 8 8 0\n1 location p 2\n1 compute 2\n1 location b 3\n1 bcast 8\n1 finalize\n\
        2 init\n2 location w 1\n2 compute 1\n2 gather 8 8 0\n2 location p 2\n2 compute 2\n2 location w 1\n2 bcast 8\n2 finalize\n\
        3 init\n3 compute 1\n3 gather 8 8 0\n3 compute 2\n3 bcast 8\n3 finalize\n";
    assert_eq!(changed(alone, &["kind='balance'\nover='sum'\nsite='p:2'"]), written(expected));
    // Rank 0 collects messages, computes, and answers, twice; rank 2 only computes, and leaves out what is selected.
    let round = |flops: [&str; 3]| {
        let [root, worker, other] = flops;
        format!(
            "0 init\n0 location r 1\n0 recv 1 0 8\n0 location p 2\n0 compute {root}\n0 send 1 0 8\n0 location r 1\n0 recv 1 0 8\n0 location p 2\n\
             0 compute {root}\n0 send 1 0 8\n0 finalize\n1 init\n1 location w 1\n1 compute 9\n1 send 0 0 8\n{worker}1 recv 0 0 8\n1 compute 9\n\
             1 send 0 0 8\n{worker}1 recv 0 0 8\n1 finalize\n2 init\n2 location w 1\n{other}2 compute 9\n2 finalize\n"
        )
    };
    let expected = round([
        "4",
        "1 location p 2\n1 compute 4\n1 location w 1\n",
        "2 location p 2\n2 compute 8\n2 location w 1\n",
    ]);
    assert_eq!(
        changed(&round(["12", "", ""]), &["kind='balance'\nover='sum'\nsite='p:2'"]),
        written(&expected)
    );
    // Only selected ranks share.
    let expected = round(["6", "1 location p 2\n1 compute 6\n1 location w 1\n", ""]);
    assert_eq!(
        changed(&round(["12", "", ""]), &["kind='balance'\nover='sum'\nsite='p:2'\nranks='0-1'"]),
        written(&expected)
    );
}

#[test]
fn shifting_keeps_the_sum_of_all_ranks() {
    // Half of 10, 20, 30 in `foo` goes to rank 1, which has 30, 20, 10.
    let half = written(REGIONS)
        .replace("0 compute 10\n", "0 compute 5\n")
        .replace("0 compute 20\n", "0 compute 10\n");
    let half = half.replace("0 compute 30\n", "0 compute 15\n").replace("1 compute 10\n", "1 compute 25\n");
    let half =
        half.replace("1 compute 20\n", "1 compute 30\n").replacen("1 compute 30\n", "1 compute 35\n", 1);
    assert_eq!(changed(REGIONS, &["kind='shift'\nfraction=0.5\nto=1\nregion='foo'"]), half);
    // In sum: 8 of rank 0 and 4 of rank 3, of which 2 and 1 go to ranks 1 and 2.
    let uneven = "0 init\n0 compute 4\n0 compute 4\n1 init\n1 compute 3\n2 init\n2 compute 1\n2 compute 2\n3 init\n3 compute 4\n4 init\n4 compute 9\n";
    let expected = "0 init\n0 compute 3\n0 compute 3\n1 init\n1 compute 4.5\n2 init\n2 compute 1.5\n2 compute 3\n3 init\n3 compute 3\n4 init\n4 compute 9\n";
    let keys = "kind='shift'\nfraction=0.25\nto='1-2'";
    assert_eq!(changed(uneven, &[&format!("{keys}\nranks='0-3'\nover='sum'")]), written(expected));
    let all = "0 init\n0 compute 0\n0 compute 0\n1 init\n1 compute 11\n2 init\n2 compute 1\n2 compute 2\n3 init\n3 compute 4\n4 init\n4 compute 9\n";
    assert_eq!(changed(uneven, &["kind='shift'\nfraction=1\nto=1\nranks=0\nover='sum'"]), written(all));
    for (keys, reason) in [
        (format!("{keys}\nranks=0"), "rank 1: it has 1 instances, an earlier rank has 2"),
        (format!("{keys}\nranks='1-2'"), "rank 1: it gets computation, as do all selected ranks"),
        (
            "kind='shift'\nfraction=1\nto='4-5'".to_owned(),
            "to = \"4-5\" matches no computations; the program has ranks 0 to 4",
        ),
        (
            "kind='shift'\nfraction=1\nto='7-'".to_owned(),
            "to = \"7-\" matches no computations; the program has ranks 0 to 4",
        ),
    ] {
        let refused = refusal(uneven, &[&keys]);
        assert!(refused.contains(reason), "{refused}");
    }
    let zero = "0 init\n0 compute 4\n1 init\n1 compute 0\n";
    let refused = refusal(zero, &["kind='shift'\nfraction=0.5\nto=1"]);
    assert!(refused.contains("rank 1, action 1: its computations are all zero"), "{refused}");
}

#[test]
fn smoothing_removes_differences_between_visits() {
    let program = |visits: [(f64, f64); 4]| {
        let visit = |(first, second)| {
            format!(
                "0 location foo 0\n0 compute {first}\n0 barrier\n0 compute {second}\n0 location a.c 1\n0 compute 7\n"
            )
        };
        format!("0 init\n0 compute 5\n{}1 init\n{}", visits.map(visit).concat(), "1 barrier\n".repeat(4))
    };
    let uneven = program([(1.0, 10.0), (2.0, 10.0), (6.0, 40.0), (3.0, 20.0)]);
    for (keys, expected) in [
        ("", [(3.0, 20.0); 4]),
        ("statistic='median'", [(2.5, 15.0); 4]),
        ("statistic='min'", [(1.0, 10.0); 4]),
        ("region='foo'\niterations='1-2'", [(1.0, 10.0), (4.0, 25.0), (4.0, 25.0), (3.0, 20.0)]),
    ] {
        assert_eq!(
            changed(&uneven, &[&format!("kind='smooth'\n{keys}")]),
            written(&program(expected)),
            "{keys}"
        );
    }
}

#[test]
fn messages_are_eliminated_with_their_receives_waits_and_tests() {
    // Two channels, tags 1 and 2; the second message with tag 1 is larger.
    let program = "0 init\n0 isend 1 1 8\n0 isend 1 1 800\n0 isend 1 2 8\n0 wait 0 1 1\n0 test 0 1 1\n0 wait 0 1 1\n0 wait 0 1 2\n\
        1 init\n1 irecv 0 2 8\n1 irecv 0 1 8\n1 irecv 0 1 900\n1 wait 0 1 2\n1 wait 0 1 1\n1 waitall\n";
    let first = "0 init\n0 isend 1 1 800\n0 isend 1 2 8\n0 test 0 1 1\n0 wait 0 1 1\n0 wait 0 1 2\n\
        1 init\n1 irecv 0 2 8\n1 irecv 0 1 900\n1 wait 0 1 2\n1 waitall\n";
    assert_eq!(changed(program, &["kind='eliminate'\ntag=1\nbytes='0-100'"]), written(first));
    let second = "0 init\n0 isend 1 1 8\n0 isend 1 2 8\n0 wait 0 1 1\n0 wait 0 1 2\n\
        1 init\n1 irecv 0 2 8\n1 irecv 0 1 8\n1 wait 0 1 2\n1 wait 0 1 1\n1 waitall\n";
    assert_eq!(changed(program, &["kind='eliminate'\nbytes='101-'\ncall='isend'"]), written(second));
    assert_eq!(changed(program, &["kind='eliminate'"]), written("0 init\n1 init\n1 waitall\n"));
    // A second transformation sees what the first one leaves.
    let both = ["kind='eliminate'\ntag=1\nbytes='0-100'", "kind='eliminate'\ntag=1"];
    let tag_two = "0 init\n0 isend 1 2 8\n0 wait 0 1 2\n1 init\n1 irecv 0 2 8\n1 wait 0 1 2\n1 waitall\n";
    assert_eq!(changed(program, &both), written(tag_two));
    let again = refusal(program, &["kind='eliminate'\ntag=1", "kind='eliminate'\ntag=1"]);
    assert!(
        again
            .contains("transformation 2 (eliminate): tag = \"1\" matches no messages; the program has tag 2"),
        "{again}"
    );
}

#[test]
fn halves_of_combined_operations_stay() {
    let ring = "0 init\n0 sendRecv 8 1 16 1 6 6\n1 init\n1 sendRecv 16 0 8 0 6 6\n";
    let half = "0 init\n0 sendRecv 0 -666 16 1 6 6\n1 init\n1 sendRecv 16 0 0 -666 6 6\n";
    let (found, expected) = (changed(ring, &["kind='eliminate'\nranks=0"]), written(half));
    let shape =
        |text: &str| text.replace("sendRecv 8 -666", "sendRecv 0 -666").replace("16 0 8 -666", "16 0 0 -666");
    assert_eq!(shape(&found), expected);
    assert_eq!(changed(ring, &["kind='eliminate'"]), written("0 init\n1 init\n"));
    let tagged = "0 init\n0 sendRecv 8 1 16 1 6 6 stag=3 rtag=4\n1 init\n1 recv 0 3 8 6\n1 send 0 4 16 6\n";
    let (found, trace) = (changed(tagged, &["kind='eliminate'\ntag=3"]), from_text(tagged).expect("a trace"));
    assert_eq!((found.lines().count() as u64, trace.actions()), (4, 5));
    assert!(found.contains("1 init\n1 send 0 4 16 6\n"), "{found}");
}

#[test]
fn named_requests_of_eliminated_messages_disappear_from_lists() {
    let program = "0 init\n0 isend 1 1 8 6 req=0\n0 isend 1 2 8 6 req=1\n0 isend 1 3 8 6 req=2\n\
        0 waitany req=0,1,2 done=1\n0 testsome req=0,2 done=0\n0 waitall req=2\n0 isend 1 3 8 6 req=0\n0 wait req=0\n\
        1 init\n1 recv 0 1 8\n1 recv 0 2 8\n1 recv 0 3 8\n1 recv 0 3 8\n";
    // The waitany has returned for the message that is gone, so it goes.
    let without_two = "0 init\n0 isend 1 1 8 6 req=0\n0 isend 1 3 8 6 req=2\n\
        0 testsome req=0,2 done=0\n0 waitall req=2\n0 isend 1 3 8 6 req=0\n0 wait req=0\n\
        1 init\n1 recv 0 1 8\n1 recv 0 3 8\n1 recv 0 3 8\n";
    assert_eq!(changed(program, &["kind='eliminate'\ntag=2"]), written(without_two));
    let without_three = "0 init\n0 isend 1 1 8 6 req=0\n0 isend 1 2 8 6 req=1\n\
        0 waitany req=0,1 done=1\n0 testsome req=0 done=0\n1 init\n1 recv 0 1 8\n1 recv 0 2 8\n";
    assert_eq!(changed(program, &["kind='eliminate'\ntag=3"]), written(without_three));
}

#[test]
fn uncertain_matches_are_refused_unless_all_or_none_is_selected() {
    let any_tag = "0 init\n0 send 1 1 8\n0 send 1 2 8\n1 init\n1 recv 0 -444 8\n1 recv 0 -444 8\n";
    let refused = refusal(any_tag, &["kind='eliminate'\ntag=1"]);
    assert!(refused.contains("rank 1, action 1: a receive with any tag may take"), "{refused}");
    assert_eq!(changed(any_tag, &["kind='eliminate'"]), written("0 init\n1 init\n"));
    let any_source = "0 init\n0 send 2 1 8\n1 init\n1 send 2 1 8\n2 init\n2 recv -555 1 8\n2 recv 1 1 8\n";
    let refused = refusal(any_source, &["kind='resize'\nfactor=2\nranks=1"]);
    assert!(refused.contains("rank 2, action 1: a receive from any source"), "{refused}");
    let doubled = any_source.replace(" 8\n", " 16\n");
    assert_eq!(changed(any_source, &["kind='resize'\nfactor=2"]), written(&doubled));
    let probe = "0 init\n0 send 1 1 8\n0 send 1 2 8\n1 init\n1 probe 0 2\n1 recv 0 2 8\n1 recv 0 1 8\n";
    let refused = refusal(probe, &["kind='eliminate'\ntag=2"]);
    assert!(refused.contains("rank 1, action 1: a probe"), "{refused}");
    let persistent = "0 init\n0 send_init 1 1 8 6 req=0\n0 start req=0\n0 wait req=0\n0 send 1 1 8\n1 init\n1 recv 0 1 8\n1 recv 0 1 8\n";
    let refused = refusal(persistent, &["kind='split'\nparts=2\ncall='start'"]);
    assert!(refused.contains("rank 0, action 2: a start of a persistent request"), "{refused}");
    let expected = persistent.replace("0 start req=0\n0 wait req=0\n", "").replacen("1 recv 0 1 8\n", "", 1);
    assert_eq!(changed(persistent, &["kind='eliminate'\ncall='start'"]), written(&expected));
    // Starts count as messages: the second receive belongs to the plain send.
    let expected = persistent.replace("0 send 1 1 8\n", "").replacen("1 recv 0 1 8\n", "", 1);
    assert_eq!(changed(persistent, &["kind='eliminate'\ncall='send'"]), written(&expected));
}

#[test]
fn messages_are_resized_on_both_sides() {
    let program = "0 init\n0 send 1 1 10\n0 isend 1 2 100\n0 waitall\n1 init\n1 recv 0 1 10\n1 irecv 0 2 1000\n1 waitall\n";
    let expected = "0 init\n0 send 1 1 10\n0 isend 1 2 25\n0 waitall\n1 init\n1 recv 0 1 10\n1 irecv 0 2 250\n1 waitall\n";
    assert_eq!(changed(program, &["kind='resize'\nfactor=0.25\nbytes='50-'"]), written(expected));
    let source = hypothesis(&["kind='resize'\nfactor=1e14"]).expect("a hypothesis");
    let source =
        source.apply(Arc::new(from_text(program).expect("a trace")), Path::new("t")).expect("it fits");
    let error = Trace::read(Box::new(source), &LoadOptions::default()).expect_err("2^48 bytes are the limit");
    assert!(error.to_string().starts_with("rank 0, transformed action 1: "), "{error}");
}

#[test]
fn receives_are_posted_before_computations() {
    let program = |rest: &str| {
        format!(
            "0 init\n0 compute 1\n0 compute 2\n0 send 1 5 8\n{rest}1 init\n1 recv 0 5 8\n1 send 0 1 8\n1 send 0 2 8\n"
        )
    };
    let two = program("0 recv 1 1 8\n0 recv 1 2 8\n");
    let overlap = |early: u32| changed(&two, &[&format!("kind='overlap'\nearly={early}\nranks=1")]);
    let waits = "0 send 1 5 8\n0 wait req=0\n0 wait req=1\n";
    let posts = "0 irecv 1 1 8 6 req=0\n0 irecv 1 2 8 6 req=1\n";
    let expected = |early: &str| {
        let text = program("").replace("0 send 1 5 8\n", waits);
        written(&text.replace(early, &format!("{posts}{early}")))
    };
    assert_eq!(overlap(1), expected("0 compute 2\n"));
    assert_eq!(overlap(2), expected("0 compute 1\n"));
    assert_eq!(overlap(9), overlap(2));
    // Behind an earlier receive of the same channel, in the order of both.
    for tag in [1, -444] {
        let program = format!(
            "0 init\n0 compute 1\n0 recv 1 {tag} 8\n0 compute 2\n0 recv 1 1 8\n1 init\n1 send 0 1 8\n1 send 0 1 8\n"
        );
        let expected = format!(
            "0 init\n0 irecv 1 {tag} 8 6 req=0\n0 irecv 1 1 8 6 req=1\n0 compute 1\n0 wait req=0\n0 compute 2\n0 wait req=1\n\
             1 init\n1 send 0 1 8\n1 send 0 1 8\n"
        );
        assert_eq!(changed(&program, &["kind='overlap'\nearly=5"]), written(&expected));
    }
    // Not before what completes requests, or finds messages.
    for obstacle in ["waitall", "probe 1 1"] {
        let program =
            format!("0 init\n0 compute 1\n0 {obstacle}\n0 compute 2\n0 recv 1 1 8\n1 init\n1 send 0 1 8\n");
        let expected = program
            .replace("0 compute 2\n0 recv 1 1 8\n", "0 irecv 1 1 8 6 req=0\n0 compute 2\n0 wait req=0\n");
        assert_eq!(changed(&program, &["kind='overlap'\nearly=5"]), written(&expected));
    }
}

#[test]
fn waits_end_behind_computations() {
    let program = "0 init\n0 recv 1 1 8\n0 recv 1 2 8\n0 location a.c 1\n0 compute 1\n0 compute 2\n0 send 1 3 8\n0 compute 3\n0 finalize\n\
        1 init\n1 isend 0 1 8\n1 isend 0 2 8\n1 waitall\n1 compute 4\n1 recv 0 3 8\n";
    let late = |keys: &str| changed(program, &[&format!("kind='overlap'\nearly=0\n{keys}")]);
    let receives = "0 irecv 1 1 8 6 req=0\n0 irecv 1 2 8 6 req=1\n0 location a.c 1\n0 compute 1\n";
    let waits = "0 wait req=0\n0 wait req=1\n";
    let one = format!(
        "0 init\n{receives}{waits}0 compute 2\n0 isend 1 3 8 6 req=0\n0 compute 3\n0 wait req=0\n0 finalize\n\
         1 init\n1 isend 0 1 8\n1 isend 0 2 8\n1 compute 4\n1 waitall\n1 irecv 0 3 8 6 req=0\n1 wait req=0\n"
    );
    assert_eq!(late("late=1"), written(&one));
    let of_receives = format!(
        "0 init\n{receives}0 compute 2\n{waits}0 send 1 3 8\n0 compute 3\n0 finalize\n\
         1 init\n1 isend 0 1 8\n1 isend 0 2 8\n1 waitall\n1 compute 4\n1 irecv 0 3 8 6 req=0\n1 wait req=0\n"
    );
    assert_eq!(late("late=7\nof='receives'"), written(&of_receives));
    // A wait for another message, too, stays.
    assert_eq!(late("late=1\ntag=1\nranks=1").matches("1 waitall\n1 compute").count(), 1);
    let exchange = "0 init\n0 compute 1\n0 sendRecv 8 1 16 1 6 6\n0 compute 2\n0 barrier\n1 init\n1 sendRecv 16 0 8 0 6 6\n1 barrier\n";
    let expected = "0 init\n0 irecv 1 0 16 6 req=0\n0 compute 1\n0 isend 1 0 8 6 req=1\n0 compute 2\n0 wait req=1\n0 wait req=0\n0 barrier\n\
        1 init\n1 irecv 0 0 8 6 req=0\n1 isend 0 0 16 6 req=1\n1 wait req=1\n1 wait req=0\n1 barrier\n";
    assert_eq!(changed(exchange, &["kind='overlap'\nlate=1"]), written(expected));
}

#[test]
fn collective_operations_are_removed_on_all_ranks_or_not_at_all() {
    let program = "0 init\n0 barrier\n0 allreduce 4 0\n0 ibarrier req=5\n0 wait req=5\n1 init\n1 barrier\n1 allreduce 4 0\n1 ibarrier req=2\n1 wait req=2\n";
    let without = |lines: &[&str]| {
        lines.iter().fold(program.to_owned(), |text, line| {
            text.replace(&format!("0 {line}\n"), "").replace(&format!("1 {line}\n"), "")
        })
    };
    assert_eq!(changed(program, &["kind='remove'"]), written(&without(&["barrier"])));
    let nonblocking = ["ibarrier req=5", "wait req=5", "ibarrier req=2", "wait req=2"];
    assert_eq!(changed(program, &["kind='remove'\ncall='ibarrier'"]), written(&without(&nonblocking)));
    let refused = refusal(program, &["kind='remove'\nranks=1"]);
    assert!(refused.contains("rank 1, action 1: barrier is operation 0 on communicator 0"), "{refused}");
}

#[test]
fn iterations_are_kept() {
    let round = |rank: u32, number: u32| {
        let peer = 1 - rank;
        format!(
            "{rank} location foo 0\n{rank} irecv {peer} 1 {number}\n{rank} location halo 0\n{rank} send {peer} 1 {number}\n{rank} waitall\n{rank} allreduce {number} 0\n"
        )
    };
    let program = |rounds: &[u32], end: &str| -> String {
        let rank = |rank: u32| {
            let rounds: String = rounds.iter().map(|number| round(rank, *number)).collect();
            format!("{rank} init\n{rank} compute 5\n{rounds}{}", end.replace('R', &rank.to_string()))
        };
        rank(0) + &rank(1)
    };
    let all = program(&[0, 1, 2, 3], "R barrier\nR finalize\n");
    let keep =
        |iterations: &str| changed(&all, &[&format!("kind='keep'\nregion='foo'\niterations='{iterations}'")]);
    assert_eq!(keep("0-"), written(&all));
    assert_eq!(keep("0,3"), written(&program(&[0, 3], "R barrier\nR finalize\n")));
    assert_eq!(keep("1-2"), written(&program(&[1, 2], "R finalize\n")));
    for (program, reason) in [
        // One message crosses two visits.
        (
            "0 init\n0 location foo 0\n0 send 1 1 8\n1 init\n1 recv 0 1 8\n1 location foo 0\n1 location foo 0\n",
            "rank 1, action 1: the receive stays, but the message is removed",
        ),
        (
            "0 init\n0 send 1 1 8\n0 location foo 0\n0 location foo 0\n1 init\n1 location foo 0\n1 recv 0 1 8\n",
            "rank 1, action 2: the receive is removed, but the message is not",
        ),
        (
            "0 init\n0 barrier\n0 location foo 0\n0 location foo 0\n1 init\n1 location foo 0\n1 barrier\n",
            "rank 1, action 2: barrier is operation 0",
        ),
        (
            "0 init\n0 irecv 0 1 8 6 req=0\n0 send 0 1 8\n0 location foo 0\n0 wait req=0\n0 location foo 0\n1 init\n",
            "rank 0, action 4: the wait or test for a request",
        ),
        (
            "0 init\n0 location foo 0\n0 send_init 1 1 8 6 req=0\n0 location foo 0\n1 init\n",
            "rank 0, action 2: send_init, on which other visits may depend",
        ),
    ] {
        let refused = refusal(program, &["kind='keep'\nregion='foo'\niterations='1'"]);
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn sends_get_other_modes() {
    let program = "0 init\n0 send 1 1 8\n0 isend 1 2 8\n0 wait 0 1 2\n0 issend 1 3 8 6 req=1\n0 wait req=1\n0 sendRecv 8 1 8 1 6 6 stag=4 rtag=4\n\
        1 init\n1 recv 0 1 8\n1 recv 0 2 8\n1 recv 0 3 8\n1 sendRecv 8 0 8 0 6 6 stag=4 rtag=4\n";
    let mode = |mode: &str| changed(program, &[&format!("kind='mode'\nmode='{mode}'\ntag='1-3'")]);
    let buffered =
        program.replace("0 send", "0 bsend").replace("0 isend", "0 ibsend").replace("0 issend", "0 ibsend");
    let buffered = buffered.replace("0 bsendRecv", "0 sendRecv");
    assert_eq!(mode("buffered"), written(&buffered));
    assert_eq!(mode("synchronous"), written(&buffered.replace("bsend", "ssend")));
    assert_eq!(mode("standard"), written(&buffered.replace("bsend", "send")));
    let refused = refusal(program, &["kind='mode'\nmode='ready'"]);
    assert!(refused.contains("rank 0, action 6: a combined send and receive"), "{refused}");
}

#[test]
fn messages_travel_in_parts() {
    let program = "0 init\n0 send 1 1 8\n0 isend 1 2 7\n0 wait 0 1 2\n0 isend 1 3 1 6 req=4\n0 test req=4 done=-\n0 waitany req=4 done=4\n\
        1 init\n1 recv 0 1 9\n1 irecv 0 2 7\n1 recv 0 3 1\n1 waitall\n";
    let expected = "0 init\n0 send 1 1 3\n0 send 1 1 3\n0 send 1 1 2\n\
        0 isend 1 2 3\n0 isend 1 2 2 6 req=1\n0 isend 1 2 2 6 req=2\n0 wait 0 1 2\n0 waitall req=1,2\n\
        0 isend 1 3 1 6 req=0\n0 isend 1 3 0 6 req=1\n0 isend 1 3 0 6 req=2\n0 test req=0 done=-\n0 waitany req=0 done=0\n0 waitall req=1,2\n\
        1 init\n1 recv 0 1 3\n1 recv 0 1 3\n1 recv 0 1 3\n1 irecv 0 2 3\n1 irecv 0 2 2 6 req=1\n1 irecv 0 2 2 6 req=2\n\
        1 recv 0 3 1\n1 recv 0 3 0\n1 recv 0 3 0\n1 waitall\n";
    assert_eq!(changed(program, &["kind='split'\nparts=3"]), written(expected));
    assert_eq!(changed(program, &["kind='split'\nparts=1"]), written(program));
    let exchange = "0 init\n0 sendRecv 8 1 16 1 6 6\n1 init\n1 sendRecv 16 0 8 0 6 6\n";
    let one_way = "0 init\n0 irecv 1 0 16 6 req=0\n0 isend 1 0 4 6 req=1\n0 isend 1 0 4 6 req=2\n0 waitall req=0,1,2\n\
        1 init\n1 irecv 0 0 4 6 req=0\n1 irecv 0 0 4 6 req=1\n1 isend 0 0 16 6 req=2\n1 waitall req=0,1,2\n";
    assert_eq!(changed(exchange, &["kind='split'\nparts=2\nranks=0"]), written(one_way));
    let any = "0 init\n0 send 1 1 8\n1 init\n1 recv -555 1 8\n";
    let refused = refusal(any, &["kind='split'\nparts=2"]);
    assert!(refused.contains("rank 1, action 1: a receive from any source: parts of several"), "{refused}");
}

#[test]
fn selectors_that_match_nothing_name_the_nearest() {
    let expect = |keys: &str, key: (&str, &str), nearest: &[&str]| {
        let found = apply(from_text(REGIONS).expect("a trace"), &[keys]);
        let Err(TransformError::Refused { refusal, .. }) = found else { panic!("{keys}: {found:?}") };
        let Refusal::NoMatch { key: found, nearest: names, .. } = *refusal else {
            panic!("{keys}: {refusal:?}")
        };
        assert_eq!(found, Some((key.0, key.1.to_owned())), "{keys}");
        assert_eq!(names, nearest, "{keys}");
    };
    expect("kind='scale'\nfactor=2\nregion='fooo'", ("region", "\"fooo\""), &["\"foo\""]);
    expect("kind='scale'\nfactor=2\nsite='foo'", ("site", "\"foo\""), &["\"main.c:7\""]);
    expect("kind='scale'\nfactor=2\nregion='foo'\niterations=3", ("iterations", "\"3\""), &[]);
    expect("kind='scale'\nfactor=2\nranks='1-2'", ("ranks", "\"1-2\""), &["ranks 0 to 1"]);
    expect("kind='remove'\ncall='barier'", ("call", "\"barier\""), &["\"barrier\""]);
    let together = refusal(REGIONS, &["kind='scale'\nfactor=2\nsite='main.c:7'\nranks=1"]);
    assert!(together.contains("no computations match all keys"), "{together}");
}

#[test]
fn invalid_hypotheses_are_refused_with_their_line() {
    let one = "[[hypothesis]]\nname = 'a'\n";
    for (text, message) in [
        ("", "hypothesis"),
        ("hypothesis = []\n", "found no hypothesis"),
        ("[[hypothesis]]\n", "name"),
        ("[[hypothesis]]\nname = 'a'\nkind = 'scale'\n", "unknown field `kind`"),
        ("[[hypothesis]]\nname = 'original'\n", "h.toml:2: the name \"original\""),
        ("[[hypothesis]]\nname = '../a'\n", "without slashes"),
        ("[[hypothesis]]\nname = 'a'\n[[hypothesis]]\nname = 'a'\n", "h.toml:4: the name \"a\" occurs twice"),
        ("+factor = 2\n", "h.toml:3: the hypothesis \"a\", transformation 1: kind is missing"),
        ("+kind = 'scal'\n", "there is no kind \"scal\"; did you mean \"scale\"?"),
        ("+kind = 'scale'\n", "scale lacks factor"),
        ("+kind = 'scale'\nfacto = 2\n", "scale has no key \"facto\"; did you mean \"factor\"?"),
        ("+kind = 'scale'\nfactor = -1\n", "found factor = -1, expected a number of 0 or more"),
        ("+kind = 'scale'\nfactor = inf\n", "found factor = inf"),
        ("+kind = 'scale'\nfactor = 2\ntag = 3\n", "scale has no key \"tag\""),
        ("+kind = 'resize'\nfactor = 2\nbytes = '9-1'\n", "found bytes = \"9-1\", expected a number"),
        ("+kind = 'balance'\nover = 'ranks'\n", "expected \"instance\" or \"sum\""),
        ("+kind = 'shift'\nfraction = 1.5\nto = 1\n", "found fraction = 1.5, expected a number of 0 to 1"),
        ("+kind = 'shift'\nfraction = 1\n", "shift lacks to"),
        ("+kind = 'smooth'\nstatistic = 'max'\n", "expected \"mean\", \"median\" or \"min\""),
        ("+kind = 'keep'\nregion = 'a'\n", "keep lacks iterations"),
        ("+kind = 'keep'\niterations = 1\n", "add region or site"),
        ("+kind = 'keep'\nregion = 'a'\nranks = 1\n", "keep has no key \"ranks\""),
        ("+kind = 'mode'\n", "mode lacks mode"),
        ("+kind = 'mode'\nmode = 'eager'\n", "found mode = \"eager\", expected \"standard\""),
        ("+kind = 'split'\n", "split lacks parts"),
        ("+kind = 'split'\nparts = 0\n", "found parts = 0, expected a whole number of 1 to 65536"),
        ("+kind = 'overlap'\nearly = -1\n", "found early = -1, expected a whole number of 0 or more"),
        ("+kind = 'overlap'\nlate = 'region'\n", "expected a whole number of 0 or more, of computations, or"),
        ("+kind = 'move'\nto = 'b'\n", "move lacks region or site"),
        ("+kind = 'move'\nregion = 'a'\n", "move lacks to"),
        (
            "+kind = 'move'\nregion = 'a'\nto = 'b'\nfraction = 2\n",
            "found fraction = 2, expected a number of 0 to 1",
        ),
        ("+kind = 'aggregate'\ncount = 0\n", "found count = 0, expected a whole number of 1 or more"),
        ("+kind = 'protocol'\nprotocol = 'fast'\n", "expected \"eager\" or \"rendezvous\""),
        ("+kind = 'place'\n", "expected one of order, mapping and per_host"),
        (
            "+kind = 'place'\nper_host = 2\nmapping = 'greedy'\n",
            "expected one of order, mapping and per_host",
        ),
        ("+kind = 'place'\norder = [0, 0]\n", "expected a list of all ranks, each once"),
        ("+kind = 'overlap'\nof = 'sends'\n", "overlap: nothing would move"),
        ("+kind = 'overlap'\nof = 'all'\n", "expected \"receives\", \"sends\" or \"both\""),
        ("+kind = 'scale'\nfactor = 2\nregion = 'a'\nsite = 'b'\n", "leave out region or site"),
        ("+kind = 'scale'\nfactor = 2\niterations = 3\n", "add region or site"),
    ] {
        let text = match text.strip_prefix('+') {
            Some(keys) => format!("{one}[[hypothesis.transform]]\n{keys}"),
            None => text.to_owned(),
        };
        let error = Hypothesis::from_text(&text, Path::new("h.toml")).expect_err(&text);
        assert!(error.is_misuse() && error.to_string().contains(message), "{text}{error}");
    }
}

#[test]
fn archives_folded_and_flat_on_any_number_of_threads_give_one_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let round = |rank: u32| {
        let peer = 1 - rank;
        let place = "location foo 0";
        format!(
            "{rank} {place}\n{rank} compute {}\n{rank} irecv {peer} 1 8\n{rank} send {peer} 1 8\n{rank} waitall\n{rank} barrier\n",
            10 + 5 * rank
        )
    };
    let program: String = (0..2).map(|rank| format!("{rank} init\n{}", round(rank).repeat(50))).collect();
    std::fs::write(path("trace.txt"), &program).expect("a file");
    let keys =
        ["kind='balance'\nregion='foo'\niterations='10-'", "kind='eliminate'\nranks=0", "kind='remove'"];
    let expected = changed(&program, &keys);
    for folding in [Folding::Never, Folding::Always] {
        let archive = path("trace.pdt");
        let options = ConvertOptions { folding, ..ConvertOptions::default() };
        convert(&path("trace.txt"), &archive, &options).expect("an archive");
        let trace = Arc::new(Trace::load(&archive).expect("an archive"));
        let mut written = Vec::new();
        for threads in [1, 2, 3] {
            let load = LoadOptions { threads, ..LoadOptions::default() };
            let options = ConvertOptions { load, ..options.clone() };
            let output = path("out.pdt");
            hypothesis(&keys)
                .expect("a hypothesis")
                .write(&trace, &archive, &output, &options)
                .expect("an archive");
            written.push(std::fs::read(&output).expect("the archive"));
            assert_eq!(
                text(&Trace::load(&output).expect("an archive")),
                expected,
                "{folding:?}, {threads} threads"
            );
        }
        assert!(written.iter().all(|bytes| *bytes == written[0]));
    }
}

/// A change of amounts alone leaves programs folded, inserted and optional computations too, and is that of the actions one by one.
#[test]
fn folded_programs_with_other_amounts_stay_folded() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    // The first computation of an iteration is in `b` but for the first iteration; some computations are missing, some differ.
    let round = |number: u32| {
        let gap = if number % 7 == 3 { format!("0 compute {}\n", 100 + number) } else { String::new() };
        let amount = number * 37 % 11;
        format!(
            "0 compute {amount}\n0 barrier\n{gap}0 location b 0\n0 compute 3\n0 barrier\n0 location c.c 9\n0 compute {number}\n0 barrier\n"
        )
    };
    let rounds: String = (0..300).map(round).collect();
    let program = format!("0 init\n0 location a 0\n{rounds}");
    std::fs::write(path("trace.txt"), &program).expect("a file");
    let archive = |folding| {
        let options = ConvertOptions { folding, ..ConvertOptions::default() };
        convert(&path("trace.txt"), &path("in.pdt"), &options).expect("an archive");
        Arc::new(Trace::load(&path("in.pdt")).expect("an archive"))
    };
    let records = |trace: &Trace| Info::of(trace).expect("small sums").storage.expect("an archive").records;
    let all = [
        "kind='scale'\nfactor=2",
        "kind='set'\nflops=5\nregion='b'",
        "kind='scale'\nfactor=0.5\nsite='c.c:*'",
    ];
    for keys in [&all[..1], &all[1..2], &all[2..], &all[..], &[]] {
        let expected = changed(&program, keys);
        for folding in [Folding::Always, Folding::Never] {
            let (trace, output) = (archive(folding), path("out.pdt"));
            let hypothesis = hypothesis(keys).expect("a hypothesis");
            hypothesis
                .write(&trace, &path("in.pdt"), &output, &ConvertOptions::default())
                .expect("an archive");
            let written = Trace::load(&output).expect("an archive");
            assert!(text(&written) == expected, "{keys:?} {folding:?}");
            assert!(check(&written, None).findings.is_empty());
            if folding == Folding::Always
                && keys.iter().all(|keys| !keys.contains("region") && !keys.contains("site"))
            {
                assert_eq!(records(&written), records(&trace), "{keys:?}");
            }
        }
    }
}

/// Converts a program to an archive, which is transformed; returns the archive and the transformed one.
fn written_folded(program: &str, transforms: &[&str]) -> Result<(Trace, Trace), TransformError> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("trace.txt"), program).expect("a file");
    let options = ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() };
    convert(&path("trace.txt"), &path("in.pdt"), &options).expect("an archive");
    let trace = Arc::new(Trace::load(&path("in.pdt")).expect("an archive"));
    hypothesis(transforms)?.write(&trace, &path("in.pdt"), &path("out.pdt"), &options)?;
    let written = Trace::load(&path("out.pdt")).expect("an archive");
    let is_left_over = |finding: &Finding| matches!(finding, Finding::Unfinished { .. });
    let findings = check(&written, None).findings;
    assert!(findings.iter().all(is_left_over), "{findings:?}\n{program}{transforms:?}");
    Ok((Arc::into_inner(trace).expect("no other owner"), written))
}

/// Messages and sums of whole places and channels change in the folded form of a program: the same program as action by action.
#[test]
fn folded_programs_with_other_messages_stay_folded() {
    // Two sizes on a channel, requests that are posted in one iteration and waited for in the next, and halves of exchanges.
    let round = |rank: u32, number: u32| {
        let peer = 1 - rank;
        let amount = 3 + 2 * rank + number % 5;
        let waits = if number == 0 { String::new() } else { format!("{rank} wait {rank} {peer} 2\n") };
        format!(
            "{rank} location a.c 1\n{rank} compute {amount}\n{waits}{rank} isend {peer} 2 8\n{rank} location b 0\n{rank} send {peer} 1 40\n\
             {rank} recv {peer} 1 40\n{rank} isend {peer} 1 900\n{rank} irecv {peer} 1 900\n{rank} recv {peer} 2 8\n{rank} sendRecv 7 {peer} 7 {peer} 6 6\n\
             {rank} wait {rank} {peer} 1\n{rank} wait {peer} {rank} 1\n{rank} barrier\n"
        )
    };
    let rank = |rank: u32| {
        format!("{rank} init\n{}", (0..200).map(|number| round(rank, number)).collect::<String>())
    };
    let program = rank(0) + &rank(1);
    let records = |trace: &Trace| Info::of(trace).expect("small sums").storage.expect("an archive").records;
    for keys in [
        &["kind='eliminate'\ntag=1\nbytes='0-100'"][..],
        &["kind='eliminate'\ntag=2"],
        &["kind='eliminate'\nranks=0\ncall='sendRecv'"],
        &["kind='eliminate'"],
        &["kind='resize'\nfactor=0.5\nbytes='100-'"],
        &["kind='resize'\nfactor=3\nregion='b'"],
        &["kind='eliminate'\nsite='a.c:*'"],
        &["kind='mode'\nmode='synchronous'\ntag=1"],
        &["kind='protocol'\nprotocol='eager'\nregion='b'\ncall='*send'\nbytes='0-900'\nranks=1"],
        &["kind='balance'\nover='sum'"],
        &[
            "kind='scale'\nfactor=2\nranks=1",
            "kind='balance'\nover='sum'\nsite='a.c:1'",
            "kind='eliminate'\ntag=2",
            "kind='resize'\nfactor=2",
        ],
    ] {
        let (trace, written) = written_folded(&program, keys).expect("it fits");
        assert!(text(&written) == changed(&program, keys), "{keys:?}");
        assert!(records(&written) <= 2 * records(&trace) && records(&trace) < 100, "{keys:?}");
    }
    let refused = written_folded(&program, &["kind='eliminate'\ntag=2", "kind='eliminate'\ntag=2"]);
    let refused = refused.expect_err("no message is left").to_string();
    assert!(refused.contains("transformation 2 (eliminate): tag = \"2\" matches no messages"), "{refused}");
}

/// Removes what makes matches uncertain, or a rank wait for itself.
fn certain(steps: Vec<Step>) -> Vec<Step> {
    let certain = |step| match step {
        Step::Persistent { .. } | Step::Cancel { .. } => None,
        Step::Message { from, to, .. } if from == to => None,
        Step::Message { from, to, tag, comm, mode, send, recv, .. } => {
            Some(Step::Message { from, to, tag, comm, mode, send, recv, from_any: false })
        }
        Step::Loop { count, body } => Some(Step::Loop { count, body: certain(body) }),
        step => Some(step),
    };
    steps.into_iter().filter_map(certain).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Random programs with calls of all kinds: the identity, and messages and barriers that go, unless they are refused.
    #[test]
    fn transformed_programs_are_programs(steps in prop::collection::vec(step(), 0..40)) {
        let program = random_text(&steps);
        let trace = || from_text(&program).unwrap_or_else(|error| panic!("{error}\n{program}"));
        prop_assert_eq!(text(&apply(trace(), &[]).expect("nothing can be refused")), text(&trace()));
        let messages = |trace: &Trace| Info::of(trace).expect("small sums").messages;
        for keys in [
            "kind='eliminate'",
            "kind='eliminate'\nranks=0",
            "kind='resize'\nfactor=2",
            "kind='remove'\ncall='*'",
            "kind='overlap'\nearly=2\nlate=2",
            "kind='overlap'\nranks=0\nlate=1",
            "kind='split'\nparts=2",
            "kind='split'\nparts=2\nranks=0",
            "kind='mode'\nmode='buffered'\ncall='*send'",
            "kind='compress'\nfactor=0.5\ncompress=1\nexpand=1",
            "kind='nonblocking'\ncall='*'\nlate=2",
            "kind='aggregate'\ncount=2\ncall='*send'",
            "kind='aggregate'\ncall='*send'",
            "kind='mode'\nmode='synchronous'\ncall='start'",
            "kind='point_to_point'\ncall=['barrier', 'bcast', 'reduce', 'allreduce', 'alltoall', 'gather', 'neighbor*']",
            "kind='point_to_point'\ncommunicator='0-1'\ncall='*bcast'",
            "kind='point_to_point'\ncall='*alltoallv'",
            "kind='wait'",
            "kind='reuse'",
        ] {
            match apply(trace(), &[keys]) {
                Ok(changed) => {
                    let is_left_over = |finding: &Finding| matches!(finding, Finding::Unfinished { .. });
                    let findings = check(&changed, None).findings;
                    prop_assert!(findings.iter().all(is_left_over), "{findings:?}\n{program}{keys}");
                    if keys.starts_with("kind='eliminate'") {
                        prop_assert!(messages(&changed) < messages(&trace()), "{program}{keys}");
                    } else if keys.contains("aggregate") {
                        prop_assert!(messages(&changed) <= messages(&trace()), "{program}{keys}");
                    } else if keys.contains("point_to_point") {
                        prop_assert!(messages(&changed) >= messages(&trace()), "{program}{keys}");
                    } else if keys.contains("split") {
                        prop_assert!(messages(&changed) > messages(&trace()), "{program}{keys}");
                    } else {
                        prop_assert_eq!(messages(&changed), messages(&trace()));
                    }
                }
                Err(TransformError::Refused { .. }) => {}
                Err(error) => prop_assert!(false, "{error}\n{program}{keys}"),
            }
        }
    }

    /// Random programs that end without any buffers of the library still do if messages overlap with computations, or are in parts.
    #[test]
    fn transformed_programs_end(steps in prop::collection::vec(step(), 0..40)) {
        let program = random_text(&certain(steps));
        let trace = || from_text(&program).unwrap_or_else(|error| panic!("{error}\n{program}"));
        let ends = untimed::ends(&trace()).expect("all operations are known");
        for transforms in [
            &["kind='overlap'\nearly=2\nlate=2"][..],
            &["kind='overlap'\nearly=9\nlate=1\nof='receives'"],
            &["kind='split'\nparts=2"],
            &["kind='split'\nparts=2", "kind='overlap'\nlate=2"],
            &["kind='overlap'\nearly=9\nlate=9\ncall='*send'", "kind='split'\nparts=3"],
            &["kind='overlap'\nearly=9\nlate=9\nindependent=true"],
            &["kind='point_to_point'\ncall=['barrier', 'bcast', 'reduce', 'allreduce', 'alltoall', 'gather']"],
            &["kind='wait'", "kind='reuse'"],
            &["kind='reuse'", "kind='point_to_point'\ncall='alltoallv'", "kind='point_to_point'\ncall=['bcast', 'barrier']", "kind='overlap'\nlate=2"],
        ] {
            match apply(trace(), transforms) {
                Ok(changed) => {
                    let ends_still = untimed::ends(&changed) == Some(true);
                    prop_assert!(!ends || ends_still, "{}\nwaits forever:\n{program}{transforms:?}", text(&changed));
                }
                Err(TransformError::Refused { .. }) => {}
                Err(error) => prop_assert!(false, "{error}\n{program}{transforms:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Random programs with loops: transformed in their folded form, and action by action.
    #[test]
    fn folded_and_flat_programs_are_transformed_alike(steps in prop::collection::vec(step(), 0..12), repeated in 3..9_u8) {
        let steps = vec![Step::Loop { count: repeated, body: certain(steps) }];
        let program = random_text(&steps);
        for keys in [
            "kind='eliminate'",
            "kind='eliminate'\nranks=0",
            "kind='resize'\nfactor=2\nbytes='10-'",
            "kind='balance'\nover='sum'",
            "kind='mode'\nmode='buffered'\ncall='*send'",
            "kind='aggregate'\ncount=2\ncall='*send'",
            "kind='aggregate'\ncall='*send'\nbytes='0-3000'",
            "kind='split'\nparts=2",
            "kind='compress'\nfactor=0.5\ncompress=1\nexpand=1",
            "kind='overlap'\nearly=2\nlate=2",
            "kind='overlap'\nranks=0\nlate=1\nindependent=true",
            "kind='waitall'",
            "kind='waitany'",
            "kind='remove'\ncall='*'",
            "kind='nonblocking'\ncall='*'\nlate=2",
            "kind='wait'",
            "kind='point_to_point'\ncall=['barrier', 'bcast', 'allreduce', 'alltoall']",
        ] {
            let expected = apply(from_text(&program).expect("a trace"), &[keys]).map(|changed| text(&changed));
            let found = written_folded(&program, &[keys]).map(|(_, written)| text(&written));
            prop_assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(|error| error.to_string()), "{}{}", program, keys);
        }
    }
}
