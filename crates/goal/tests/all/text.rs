//! GOAL text: the grammar, and the positions of mistakes.

use goal::{After, Kind, Operation, TextProblem, read_text};
use proptest::prelude::*;

#[test]
fn everything_of_the_grammar_is_read() {
    let text = b"/* two\n ranks */ num_ranks 2 // indeed\n\nrank 0 {\n\
        one: send 10b to 1 tag 7 cpu 2 nic 3\r\n\
        \ttwo :recv 5b from-1 tag -1 nic 1 // from anyone\n\
        calc 12 cpu 1\n\
        three: calc 0\n\
        two requires one\n  three  irequires\ttwo\n}\nrank 1{}";
    let schedule = read_text(text).expect("the text is good");
    let operations: Vec<_> = schedule.operations(0).collect();
    let any = Operation { kind: Kind::Receive, size: 5, peer: None, tag: None, cpu: 0, nic: 1 };
    let send = Operation { cpu: 2, nic: 3, ..Operation::send(10, 1, 7) };
    let computation = Operation { cpu: 1, ..Operation::calculate(12) };
    assert_eq!(operations, [send, any, computation, Operation::calculate(0)]);
    let dependencies: Vec<_> = schedule.dependencies(0).collect();
    assert_eq!(dependencies, [(0, 1, After::End), (1, 3, After::Start)]);
    assert_eq!((schedule.extent().cpus, schedule.extent().nics), (3, 4));
}

macro_rules! mistakes {
    ($($name:ident: $text:expr => $message:literal;)*) => {$(
        #[test]
        fn $name() {
            let error = read_text($text.as_bytes()).expect_err("the text has a mistake");
            assert_eq!(error.to_string(), $message);
        }
    )*};
}

/// Returns the text of two ranks of which rank 0 has this line.
fn line(line: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{line}\n}}\nrank 1 {{\n}}\n")
}

mistakes! {
    nothing: "" => "line 1, column 1: found the end of the text, expected \"num_ranks\"";
    no_number_of_ranks: "num_ranks x" => "line 1, column 11: found \"x\", expected a number";
    a_missing_unit: line("send 5 to 1") => "line 3, column 8: found \"to\", expected \"b\"";
    a_wrong_direction: line("send 5b from 1") => "line 3, column 9: found \"from\", expected \"to\"";
    any_destination: line("send 5b to -1") => "line 3, column 12: found \"-1\", expected a number";
    no_such_rank: line("send 5b to 9") => "line 2, column 6: rank 0, operation 0: found peer 9, expected a rank from 0 to 1";
    an_unknown_word: line("l1: wait 5") => "line 3, column 5: found \"wait\", expected \"send\", \"recv\" or \"calc\"";
    an_unknown_relation: line("l1 needs l2") => "line 3, column 4: found \"needs\", expected \":\", \"requires\" or \"irequires\"";
    two_operations_on_a_line: line("calc 5 calc 6") =>
        "line 3, column 8: found \"calc\", expected the end of the line (or an option before it)";
    a_label_that_is_not_there: line("a: calc 1\na requires b") =>
        "line 4, column 12: found the label \"b\", expected one that is defined above in the same rank";
    a_label_of_two: line("a: calc 1\na: calc 2") =>
        "line 4, column 1: found the label \"a\" a second time, expected different labels in a rank";
    too_many_processors: line("calc 1 cpu 256") => "line 3, column 12: found 256, expected a number up to 255";
    a_number_beyond_all: line("calc 99999999999999999999") =>
        "line 3, column 6: found 99999999999999999999, expected a number up to 18446744073709551615";
    an_open_rank: "num_ranks 1\nrank 0 {\ncalc 1\n" =>
        "line 4, column 1: found the end of the text, expected an operation, a label or \"}\"";
    an_open_comment: "num_ranks 1 /* rank 0 {}" =>
        "line 1, column 13: found an unterminated comment, expected a closing \"*/\"";
    ranks_out_of_order: "num_ranks 2\nrank 1 {\n}\n" =>
        "line 2, column 6: found rank 1, expected rank 0: ranks come in order, each exactly once";
    a_rank_too_many: "num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n" =>
        "line 4, column 1: found \"rank\", expected the end of the text: all ranks were there";
    a_circle: line("a: calc 1\nb: calc 1\na requires b\nb requires a") =>
        "line 10, column 1: rank 0: 2 operation(s) never start, the first one is number 0: their dependencies form a cycle";
}

#[test]
fn mistakes_are_data() {
    let error = read_text(line("a requires b").as_bytes()).expect_err("there is no label");
    assert_eq!((error.line, error.column), (3, 1));
    assert_eq!(error.problem, TextProblem::UnknownLabel("a".to_owned()));
}

proptest! {
    #[test]
    fn text_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_text(&bytes);
    }

    #[test]
    fn keywords_never_panic(words in prop::collection::vec(prop::sample::select(vec![
        "num_ranks", "2", "rank", "0", "{", "}", "\n", "a", ":", "send", "recv", "calc", "5b", "to", "from", "-1", "tag", "cpu",
        "requires", "irequires", "//", "/*", "*/", "99999999999999999999",
    ]), 0..60)) {
        let _ = read_text(words.join(" ").as_bytes());
        let _ = read_text(format!("num_ranks 2\nrank 0 {{\n{}", words.join(" ")).as_bytes());
    }
}
