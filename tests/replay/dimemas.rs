//! Traces of Dimemas: programs there and back replay to one digest.

use predicates::str::contains;

use crate::command_line::{DONE, Folder, MISUSE};
use crate::epochs::{TORUS, generated, spec};
use crate::forward::digest;
use crate::trace_commands::trace;

#[test]
fn programs_there_and_back_replay_to_one_digest() {
    let folder = Folder::new();
    let programs = [
        "npb-lu --class=S --ranks=16 --steps=2",
        "halo3d --ranks=3,3,2 --iterations=3",
        "alltoall-fft --ranks=8 --steps=2",
        "ring --ranks=8",
    ];
    for (number, program) in programs.into_iter().enumerate() {
        let arguments: Vec<&str> = program.split(' ').collect();
        let text = generated(&folder, &number.to_string(), &arguments);
        let (timed, dim, again) =
            (folder.path("timed.pdt"), folder.path("trace.dim"), folder.path("again.pdt"));
        trace(&["convert", "--speed=1e9", "--output"], &[&timed, &text]).code(DONE);
        trace(&["convert", "--output"], &[&dim, &timed]).code(DONE).stdout(contains("records"));
        trace(&["convert", "--output"], &[&again, &dim]).code(DONE);
        let digests = [&timed, &dim, &again].map(|trace| {
            let simulation = pdes_replay::Simulation::load(&spec(trace, TORUS, &["network.model='flow'"]));
            digest(&simulation.unwrap().replay(&pdes_core::Progress::new(1)).unwrap())
        });
        assert_eq!(digests, [digests[0]; 3], "{program}");
    }
    let goal = folder.path("ring.goal");
    trace(&["convert", "--output"], &[&goal, &folder.path("timed.pdt")]).code(DONE);
    trace(&["convert", "--output"], &[&folder.path("goal.dim"), &goal])
        .code(MISUSE)
        .stderr(contains("a graph of operations has no form among traces of Dimemas"));
    trace(&["convert", "--flat", "--output"], &[&folder.path("trace.dim"), &goal]).code(MISUSE);
}
