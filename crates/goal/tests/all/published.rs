//! The published results of LogGOPSim, with its default parameters.

use goal::pattern::{
    binomial_bcast, binomial_reduce, dissemination, linear_alltoall, recursive_doubling_allreduce,
};
use goal::{LogGops, NANOSECOND, Schedule, read_text, simulate};

/// Returns the end times of all hosts \[ns\], which do not depend on the number of threads.
fn ends(schedule: &Schedule) -> Vec<u64> {
    let [one, three] = [1, 3].map(|threads| {
        let outcome = simulate(schedule, &LogGops::default(), threads).expect("the schedule ends");
        assert_eq!(outcome.protocol_mismatches, 0);
        outcome.ends.iter().map(|end| end / NANOSECOND).collect::<Vec<_>>()
    });
    assert_eq!(one, three);
    one
}

macro_rules! published {
    ($($name:ident: $file:literal is $pattern:expr => $check:expr;)*) => {$(
        #[test]
        fn $name() {
            let schedule = read_text(include_bytes!(concat!("../data/", $file))).expect("the text is good");
            assert_eq!(schedule, $pattern.expect("the pattern fits"), "the file is the pattern");
            let check: fn(Vec<u64>) = $check;
            check(ends(&schedule));
        }
    )*};
}

fn latest(ends: &[u64]) -> u64 {
    ends.iter().copied().max().unwrap_or(0)
}

published! {
    a_binary_tree_of_32: "binary_tree_32.goal" is binomial_bcast(32, 1) => |ends| assert_eq!(latest(&ends), 27_500);
    dissemination_on_16: "dissemination_16.goal" is dissemination(16, 1) => |ends| assert_eq!(ends, [22_000; 16]);
    a_broadcast_to_8: "binomial_bcast_8.goal" is binomial_bcast(8, 1) => |ends| assert_eq!(latest(&ends), 16_500);
    a_reduction_of_8: "binomial_reduce_8.goal" is binomial_reduce(8, 1024) =>
        |ends| assert_eq!(ends, [34_914, 24_776, 13_138, 13_138, 1500, 1500, 1500, 1500]);
    an_allreduce_of_a_mebibyte: "allreduce_recursive_doubling_16.goal" is recursive_doubling_allreduce(16, 1 << 20) =>
        |ends| assert_eq!(ends, [11_840_432; 16]);
    an_alltoall_of_a_kibibyte: "linear_alltoall_16.goal" is linear_alltoall(16, 1024) =>
        |ends| assert_eq!(ends, [174_570; 16]);
}

/// One message with parameters that are all different, added up by hand.
#[test]
fn every_parameter_is_charged_where_it_belongs() {
    let text = b"num_ranks 2\nrank 0 {\n a: send 11b to 1\n b: send 11b to 1\n}\nrank 1 {\n recv 11b from 0\n recv 11b from 0\n}\n";
    let schedule = read_text(text).expect("the text is good");
    let parameters = LogGops {
        latency: 1_000_000,
        overhead: 10_000,
        gap: 100_000,
        gap_per_byte: 2_000,
        overhead_per_byte: 1_000,
        ..LogGops::default()
    };
    let outcome = simulate(&schedule, &parameters, 1).expect("the schedule ends");
    // The second send starts when g + 10 G = 120 ns are over, and takes o + 10 O = 20 ns. It arrives after o + L =
    // 1010 ns, and takes o + 10 max(O, G) = 30 ns.
    assert_eq!(outcome.ends, [120_000 + 20_000, 120_000 + 1_010_000 + 30_000]);
    assert_eq!((outcome.messages, outcome.message_bytes, outcome.events), (2, 22, 6));
}

/// Above S (rendezvous), the sender's next operation waits for the receive.
#[test]
fn a_send_above_the_threshold_waits_for_its_receive() {
    let text = b"num_ranks 2\nrank 0 {\n a: send 9b to 1\n b: calc 5\n b requires a\n}\nrank 1 {\n c: calc 90000\n r: recv 9b from 0\n r requires c\n}\n";
    let schedule = read_text(text).expect("the text is good");
    let end = |eager_up_to| {
        let parameters = LogGops { eager_up_to, ..LogGops::default() };
        let outcome = simulate(&schedule, &parameters, 1).expect("the schedule ends");
        outcome.ends[0] / NANOSECOND
    };
    assert_eq!(end(9), 1505);
    // The message takes the receiver's processor when that is idle, after 90000 ns, and finds the receive posted first.
    assert_eq!(end(8), 90_005);
}

/// Running rank 2 up to its first receive, without the message that it does not ask for yet, would give
/// 101500 and 103000.
#[test]
fn messages_occupy_the_receiver_in_the_order_of_arrival() {
    let text = b"num_ranks 3\nrank 0 {\n a: calc 96000\n b: send 1b to 2\n b requires a\n}\n\
        rank 1 {\n a: calc 95000\n b: send 1b to 2\n b requires a\n}\n\
        rank 2 {\n a: recv 1b from 0\n b: calc 0\n b requires a\n c: recv 1b from 1\n c requires b\n}\n";
    // They arrive at 100000 and 99000, and take 1500 each.
    assert_eq!(ends(&read_text(text).expect("the text is good")), [97_500, 96_500, 102_000]);
}
