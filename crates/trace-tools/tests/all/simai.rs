//! Workloads of SimAI: groups, the order of phases, and errors.

use std::fs;

use pdes_core::Rank;
use trace_mmap::{LoadOptions, Trace, TraceError, check};
use trace_tools::{SimaiError, load, write_text};

const HEADER: &str =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8";
const LAYERS: &str = "3\nembed -1 100 ALLREDUCE 64 200 NONE 0 300 ALLREDUCE 80 1\n\
                      moe\t-1\t10\tALLTOALL_EP\t32\t20\tALLGATHER\t16\t1\tREDUCESCATTER_DP_EP\t8\t100\n\
                      moe\t-1\t10\tALLTOALL_EP\t32\t20\tALLGATHER\t16\t1\tREDUCESCATTER_DP_EP\t8\t100\n";

fn read(text: &str) -> Result<Trace, TraceError> {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("workload.txt");
    fs::write(&file, text).expect("the file is written");
    load(&file, &LoadOptions::default())
}

fn text(trace: &Trace, rank: u32) -> Vec<String> {
    let mut text = Vec::new();
    write_text(trace, Rank::new(rank), &mut text, None).expect("memory takes all");
    String::from_utf8(text).expect("text").lines().map(|line| line[2..].to_owned()).collect()
}

#[test]
fn all_ranks_run_the_layers_in_their_groups() {
    let trace =
        read(&format!("{HEADER} checkpoints: 1 0 checkpoint_initiates: 1 1\n{LAYERS}")).expect("a trace");
    assert_eq!((trace.ranks(), check(&trace, None).findings), (8, vec![]));
    let forward = ["compute 10", "location moe 4", "alltoall 16 16 6 6 comm=20"];
    let moe = |request| {
        let reduce = format!("ireducescatter 4 4 0 6 comm=28 req={request}");
        ["compute 20", "location moe 4", "allgather 8 8 6 6 comm=3", "compute 1", "location moe 4"]
            .map(str::to_owned)
            .into_iter()
            .chain([reduce])
    };
    let mut expected = vec![
        "init".to_owned(),
        "comm_create_group comm=0 new=3 members=2-3".to_owned(),
        "comm_create_group comm=0 new=10 members=1-7:2".to_owned(),
        "comm_create_group comm=0 new=18 members=1-3:2".to_owned(),
        "comm_create_group comm=0 new=28 members=3-7:4".to_owned(),
    ];
    let first = ["compute 100", "location embed 3", "allreduce 64 0 6 comm=3"];
    let forward = forward.map(|line| line.replace("comm=20", "comm=18"));
    expected.extend(first.map(str::to_owned));
    expected.extend(forward.clone());
    expected.extend(forward);
    expected.extend(moe(0));
    // The forward pass of the first layer is repeated before the backward pass of the second one.
    expected.extend(first.map(str::to_owned));
    expected.extend(moe(1));
    let last = [
        "compute 200",
        "compute 300",
        "location embed 3",
        "iallreduce 80 0 6 comm=10 req=2",
        "waitall",
        "finalize",
    ];
    expected.extend(last.map(str::to_owned));
    assert_eq!(text(&trace, 3), expected);
    let staged = read(&format!("{}\n{LAYERS}", HEADER.replace("pp: 1", "pp: 2"))).expect("a trace");
    assert!(staged.warnings()[0].to_string().contains("bubble of the pipeline"), "{:?}", staged.warnings());
    assert_eq!(check(&staged, None).findings, []);
}

#[test]
fn errors_have_their_line() {
    let layer = |text: &str| format!("{HEADER}\n1\n{text}\n");
    let cases = [
        (HEADER.replace("all_gpus: 8", ""), 1, "0 GPUs in tensor groups of 2"),
        (HEADER.replace("ep: 2", "ep: 3"), 1, "expert groups of 3"),
        (HEADER.replace("ep: 2", "ep: x"), 1, "the size of the expert groups is \"x\""),
        (format!("{HEADER}\nmany\n"), 2, "the number of layers is \"many\""),
        (HEADER.to_owned(), 1, "found no number of layers"),
        (format!("{HEADER}\n\u{c}\u{c}\n"), 2, "found no number of layers"),
        (format!("{HEADER}\n1\n\u{c}\n"), 3, "the workload ends after 0 layers, expected 1"),
        (
            format!("{HEADER}\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            3,
            "the workload ends after 1 layers, expected 2",
        ),
        (layer("a -1 1 NONE 0 1 NONE 0 1"), 3, "found no operation of the weight gradient"),
        (layer("a -1 -1 NONE 0 1 NONE 0 1 NONE 0 1"), 3, "the forward time is \"-1\""),
        (
            layer("a -1 1 ALLREDUCEALLTOALL 8 1 NONE 0 1 NONE 0 1"),
            3,
            "the forward operation is \"ALLREDUCEALLTOALL\"",
        ),
    ];
    for (workload, line, message) in cases {
        let error = read(&workload).expect_err(message);
        let TraceError::Action { location, kind } = &error else { panic!("{workload}: {error}") };
        assert!(kind.downcast_ref::<SimaiError>().is_some(), "{error}");
        assert!(location.line == line && error.to_string().contains(message), "{error}");
    }
}
