//! A GOAL schedule of an NPB trace, and the trace itself, with point-to-point messages only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;

use crate::command_line::Folder;
use crate::reference::repository;

use super::{load, replay};

/// Returns a rank of the trace without collective operations.
fn point_to_point(rank: u32) -> Vec<String> {
    let path = repository().join(format!("configs/traces/lu.S.8/rank-{rank}.txt.gz"));
    let kept = ["init", "compute", "send", "recv", "irecv", "wait", "finalize"];
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let lines = text.lines().filter(|line| kept.contains(&line.split(' ').nth(1).unwrap()));
    lines.map(str::to_owned).collect()
}

/// Returns the same program as a graph: a call that blocks comes after all before it, a receive that does not block only before its wait.
fn graph(rank: u32, lines: &[String]) -> String {
    let (mut text, mut pending) = (format!("rank {rank} {{\n"), BTreeMap::new());
    let mut before = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let message = |way: &str, count: &str| {
            let bytes = 8 * count.parse::<u64>().unwrap();
            let word = if way == "to" { "send" } else { "recv" };
            format!("{word} {bytes}b {way} {} tag {}", fields[2], fields[3])
        };
        let operation = match fields[1] {
            "compute" => format!("calc {}", fields[2]),
            "send" => message("to", fields[4]),
            "recv" | "irecv" => message("from", fields[4]),
            "wait" => {
                before.push(pending.remove(&(fields[2], fields[4])).unwrap());
                continue;
            }
            _ => continue,
        };
        writeln!(text, "l{number}: {operation}").unwrap();
        for earlier in &before {
            writeln!(text, "l{number} requires l{earlier}").unwrap();
        }
        if fields[1] == "irecv" {
            assert_eq!(
                pending.insert((fields[2], fields[3]), number),
                None,
                "one request per source and tag"
            );
        } else {
            before = vec![number];
        }
    }
    text + "}\n"
}

#[test]
fn a_schedule_of_an_npb_trace_ends_as_the_trace() {
    let ranks: Vec<Vec<String>> = (0..8).map(point_to_point).collect();
    let folder = Folder::new();
    let trace = ranks.iter().map(|lines| lines.join("\n") + "\n").collect::<String>();
    let graphs = (0..).zip(&ranks).map(|(rank, lines)| graph(rank, lines)).collect::<String>();
    let paths =
        [folder.write("trace.txt", &trace), folder.write("graph.goal", &format!("num_ranks 8\n{graphs}"))];
    // Sends of both cost the same; the receives of the graph would pay beside what the rank does, those of the trace in its calls.
    let sends = ["mpi.isend_overhead='0:1us:0'", "mpi.send_overhead='0:1us:0'"];
    for settings in [
        &["network.model=contention-free"][..],
        &[&["network.model=contention-free"], &sends[..]].concat(),
        &["network.model=flow", "network.preset=raw"],
        &["network.model=flow"],
    ] {
        let [trace, graph] = paths.each_ref().map(|path| replay(&load(path, settings, 1).unwrap()));
        assert_eq!(graph.program().ends, trace.program().ends, "{settings:?}");
    }
}
