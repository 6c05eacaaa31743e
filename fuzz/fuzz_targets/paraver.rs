//! Any trace of Paraver, with the names of some calls, is a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_mmap::LoadOptions;

const LABELS: &str = "EVENT_TYPE\n9 50000001 MPI\nVALUES\n1 MPI_Send\n2 MPI_Recv\n3 MPI_Isend\n4 MPI_Irecv\n5 MPI_Waitall\n\n\
                      EVENT_TYPE\n9 50000002 MPI\nVALUES\n1 MPI_Barrier\n2 MPI_Alltoallv\n3 MPI_Gatherv\n";

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("trace.prv");
    std::fs::write(&file, bytes).expect("the file is written");
    std::fs::write(file.with_extension("pcf"), LABELS).expect("the file is written");
    if let Ok(trace) = trace_tools::load(&file, &LoadOptions::default()) {
        trace_mmap::check(&trace, None);
    }
});
