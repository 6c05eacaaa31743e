//! Calls whose arguments are wrong: errors of MPI, as the standard has them, with what is wrong.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use super::Program;

/// Buffered sends need an attached buffer with room for the message and its overhead, but for messages without data.
#[test]
fn buffered_sends_without_room_are_errors() {
    let body = "char *room = malloc(1000), data[100] = {0}; void *found; int bytes;\nMPI_Request sent[3];\n\
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n\
        #define TRIES(n) { int classes[3], errors[3] = {MPI_Bsend(data, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD),\\\n\
          MPI_Ibsend(data, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &sent[0]), MPI_Start(&sent[1])};\\\n\
          for (int i = 0; i < 3; i++) MPI_Error_class(errors[i], &classes[i]);\\\n\
          for (int i = 0; i < 3; i++) printf(\"%s\\n\", errors[i] == MPI_SUCCESS ? \"sent\" : classes[i] == MPI_ERR_BUFFER ? \"no room\" : \"other\");\\\n\
          for (int i = 0; i < 2; i++) if (errors[1 + i] == MPI_SUCCESS) MPI_Wait(&sent[i], MPI_STATUS_IGNORE); }\n\
        if (rank == 0) {\nMPI_Bsend_init(data, 100, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &sent[1]);\n\
        MPI_Bsend(data, 0, MPI_CHAR, 1, 0, MPI_COMM_WORLD);\nMPI_Bsend(data, 100, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);\n\
        TRIES(100)\nMPI_Buffer_attach(room, 99 + MPI_BSEND_OVERHEAD);\nTRIES(100)\n\
        MPI_Buffer_detach(&found, &bytes);\nprintf(\"detached %d %d\\n\", found == room, bytes - MPI_BSEND_OVERHEAD);\n\
        MPI_Buffer_detach(&found, &bytes);\nprintf(\"detached %d %d\\n\", found == NULL, bytes);\n\
        MPI_Buffer_attach(room, 100 + MPI_BSEND_OVERHEAD);\nTRIES(100)\nMPI_Request_free(&sent[1]);\n}\n\
        for (int i = 0; rank == 1 && i < 4; i++) MPI_Recv(data, 100, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);";
    let Some(program) = Program::with_body(body) else { return };
    let (lines, _) = program.lines_and_digest(2, &[]);
    let mut expected = vec!["detached 1 0", "detached 1 99"];
    expected.extend(["no room"; 6]);
    expected.extend(["sent"; 3]);
    assert_eq!(lines, expected);
    let sends = "if (rank == 0) MPI_Bsend(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);\n\
        else MPI_Recv(&size, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);";
    let Some(program) = Program::with_body(sends) else { return };
    let why =
        "a message of 4 B needs these and MPI_BSEND_OVERHEAD, 128 B, and MPI_Buffer_attach has attached 0 B";
    program
        .run(2, &[])
        .code(1)
        .stderr(contains("in MPI_Bsend").and(contains("MPI_ERR_BUFFER")).and(contains(why)));
}
