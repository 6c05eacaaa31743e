//! Random schedules with LogGOPSim's results: several processors and interfaces, `irequires`, any source and any tag,
//! rendezvous messages, empty messages, more than 16 operations ready at once.
//!
//! Each file starts with the parameters and the end times of all hosts \[ns\], as comments.

use std::fs;
use std::path::Path;

use goal::{LogGops, NANOSECOND, read_text, simulate};

fn parameters(line: &str) -> LogGops {
    let mut parameters = LogGops::default();
    for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        let value: u64 = value.parse().expect("a number");
        let field = match name {
            "L" => &mut parameters.latency,
            "o" => &mut parameters.overhead,
            "g" => &mut parameters.gap,
            "G" => &mut parameters.gap_per_byte,
            "O" => &mut parameters.overhead_per_byte,
            "S" => &mut parameters.eager_up_to,
            _ => panic!("an unknown parameter {name}"),
        };
        *field = if name == "S" { value } else { value * NANOSECOND };
    }
    parameters
}

#[test]
fn all_hosts_end_as_in_loggopsim() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/random");
    let mut files = 0;
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("the file is text");
        let mut lines = text.lines();
        let parameters = parameters(lines.next().expect("the parameters"));
        let ends = lines.next().and_then(|line| line.strip_prefix("// ends ")).expect("the ends");
        let expected: Vec<u64> = ends.split(' ').map(|end| end.parse().expect("a time")).collect();
        let schedule = read_text(text.as_bytes()).expect("the text is good");
        for threads in [1, 4] {
            let outcome = simulate(&schedule, &parameters, threads).expect("the schedule ends");
            let found: Vec<u64> = outcome.ends.iter().map(|end| end / NANOSECOND).collect();
            assert_eq!(found, expected, "{} with {threads} thread(s)", path.display());
        }
        files += 1;
    }
    assert_eq!(files, 13, "all files were compared");
}
