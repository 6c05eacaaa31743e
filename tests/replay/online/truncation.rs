//! Messages that are longer than their receives: an error of MPI, as in Open MPI, which the program may handle.

use predicates::str::contains;

use super::Program;
use crate::command_line::command;

/// A program whose rank 0 receives less than rank 1 sends; it prints in which of its calls, the errors of their statuses, and what it gets.
const BODY: &str = "int got[4] = {0}, flag, index, count, sent[4] = {1, 2, 3, 4}, error, step = 0;\n\
    MPI_Status status, statuses[2];\nMPI_Request request[2];\nMPI_Message message;\n\
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n\
    #define RECEIVED(call) { got[1] = 0; error = call; MPI_Error_class(error, &error);\\\n\
      printf(\"%c %s %d %d\\n\", 'a' + step++, error == MPI_ERR_TRUNCATE ? \"long\" : error == MPI_ERR_IN_STATUS ? \"some\" : \"right\", got[0], got[1]); }\n\
    if (rank) {\n\
      for (int i = 0; i < 8; i++) MPI_Send(sent, i == 3 ? 1 : 3, MPI_INT, 0, i, MPI_COMM_WORLD);\n\
      MPI_Ssend(sent, 4, MPI_INT, 0, 8, MPI_COMM_WORLD);\n\
      MPI_Sendrecv(sent, 4, MPI_INT, 0, 9, got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &status);\n\
      MPI_Send(sent, 4, MPI_INT, 0, 10, MPI_COMM_WORLD);\n\
    } else {\n\
      RECEIVED(MPI_Recv(got, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &status))\n\
      MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, request);\n\
      status.MPI_ERROR = 77;\n\
      RECEIVED(MPI_Wait(request, &status))\n\
      MPI_Get_count(&status, MPI_INT, &count);\n\
      printf(\"b status %d %d %d %d\\n\", status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR, count);\n\
      MPI_Irecv(got, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request[0]);\n\
      MPI_Irecv(got + 2, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request[1]);\n\
      RECEIVED(MPI_Waitall(2, request, statuses))\n\
      printf(\"c status %d %d\\n\", statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE, statuses[1].MPI_ERROR == MPI_SUCCESS);\n\
      MPI_Irecv(got, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, request);\n\
      RECEIVED(MPI_Waitany(1, request, &index, &status))\n\
      MPI_Irecv(got, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, request);\n\
      do error = MPI_Test(request, &flag, &status); while (!flag && error == MPI_SUCCESS);\n\
      RECEIVED(error)\n\
      MPI_Mprobe(1, 6, MPI_COMM_WORLD, &message, &status);\n\
      RECEIVED(MPI_Mrecv(got, 1, MPI_INT, &message, &status))\n\
      MPI_Irecv(got, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, request);\n\
      RECEIVED(MPI_Waitsome(1, request, &count, &index, statuses))\n\
      printf(\"g status %d %d\\n\", count, statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);\n\
      MPI_Recv_init(got, 2, MPI_INT, 1, 8, MPI_COMM_WORLD, request);\n\
      MPI_Start(request);\n\
      RECEIVED(MPI_Wait(request, &status))\n\
      MPI_Request_free(request);\n\
      RECEIVED(MPI_Sendrecv(sent, 1, MPI_INT, 1, 9, got, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &status))\n\
      RECEIVED(MPI_Recv(got, 4, MPI_INT, 1, 10, MPI_COMM_WORLD, &status))\n\
    }";

/// The output of Open MPI 4.1.4 by `mpirun -np 2`, except the second number of `h`: its shared memory gives no part of that message.
const PRINTED: [&str; 13] = [
    "a long 1 0",
    "b long 1 0",
    "b status 1 1 77 3",
    "c some 1 0",
    "c status 1 1",
    "d long 1 0",
    "e long 1 0",
    "f long 1 0",
    "g some 1 0",
    "g status 1 1",
    "h long 1 2",
    "i long 1 0",
    "j right 1 2",
];

#[test]
fn messages_that_are_too_long_are_errors_that_return() {
    let Some(program) = Program::with_body(BODY) else { return };
    let (lines, digest) = program.lines_and_digest(2, &["--threads", "1"]);
    assert_eq!(lines, PRINTED);
    assert_eq!(program.lines_and_digest(2, &["--threads", "2"]).1, digest);
    // A trace has no handlers.
    let record = program.folder.path("run.pdt");
    program.run(2, &["--record", &record.to_string_lossy()]).success();
    let mut replay = command();
    replay.arg("--config").arg(program.folder.path("run.toml")).arg("--trace").arg(record);
    replay.assert().code(1).stderr(contains("has 12 B, but the receive that matches it has room for 4 B"));
}
