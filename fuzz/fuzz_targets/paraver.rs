//! Any trace of Paraver, with the names of some calls, is a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::{file, read};

const LABELS: &str = "EVENT_TYPE\n9 50000001 MPI\nVALUES\n1 MPI_Send\n2 MPI_Recv\n3 MPI_Isend\n4 MPI_Irecv\n5 MPI_Waitall\n\n\
                      EVENT_TYPE\n9 50000002 MPI\nVALUES\n1 MPI_Barrier\n2 MPI_Alltoallv\n3 MPI_Gatherv\n";

fuzz_target!(|bytes: &[u8]| {
    file("trace.pcf", LABELS.as_bytes());
    read(&file("trace.prv", bytes));
});
