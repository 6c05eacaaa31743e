//! Matched probes and the requests of their messages, which are complete from the begin.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use super::Program;

/// `MPI_Request_get_status` and `MPI_Request_free` of a request that has the number of an earlier receive find the message of its own.
#[test]
fn requests_of_matched_messages_are_complete() {
    let body = "int sent[4] = {1, 2, 3, 4}, got[4] = {0}, flag = 0, count; MPI_Message message; MPI_Status status; MPI_Request request;\n\
        #define PRINT(step) { MPI_Get_count(&status, MPI_INT, &count);\\\n\
          printf(\"%s %d %d %d: %d %d %d %d\\n\", step, status.MPI_SOURCE, status.MPI_TAG, count, got[0], got[1], got[2], got[3]); }\n\
        if (rank == 0) { MPI_Send(sent, 1, MPI_INT, 1, 9, MPI_COMM_WORLD); MPI_Send(sent + 1, 3, MPI_INT, 1, 5, MPI_COMM_WORLD);\n\
          MPI_Send(sent, 4, MPI_INT, 1, 6, MPI_COMM_WORLD); }\n\
        if (rank == 1) {\nMPI_Irecv(got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request); MPI_Wait(&request, &status); PRINT(\"a\")\n\
        MPI_Mprobe(0, 5, MPI_COMM_WORLD, &message, &status); MPI_Imrecv(got, 3, MPI_INT, &message, &request);\n\
        status = (MPI_Status){0}; while (!flag) MPI_Request_get_status(request, &flag, &status);\n\
        MPI_Get_count(&status, MPI_INT, &count); printf(\"b %d %d %d\\n\", status.MPI_SOURCE, status.MPI_TAG, count);\n\
        MPI_Wait(&request, &status); PRINT(\"c\")\n\
        MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, &status); MPI_Imrecv(got, 4, MPI_INT, &message, &request);\n\
        MPI_Request_free(&request); PRINT(\"d\") }";
    let Some(program) = Program::with_body(body) else { return };
    let lines = program.lines_of_recorded(2, &[]);
    assert_eq!(lines, ["a 0 9 1: 1 0 0 0", "b 0 5 3", "c 0 5 3: 2 3 4 0", "d 0 6 4: 1 2 3 4"]);
    program.run(2, &[]).success().stderr(contains("were freed").not());
}
