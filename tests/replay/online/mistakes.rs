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

/// A type that is not committed is an error of the call that takes it, unless it is a part of one that is.
#[test]
fn types_that_are_not_committed_are_errors() {
    let body = "int data[8] = {1, 2, 3, 4, 5, 6, 7, 8}, counts[2] = {1, 1}, places[2] = {0, 16}, step = 0;\n\
        MPI_Datatype inner, two, types[2]; MPI_Win window; MPI_Request request;\n\
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);\n\
        MPI_Type_contiguous(1, MPI_INT, &inner); MPI_Type_vector(2, 1, 2, inner, &two); types[0] = types[1] = two;\n\
        MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);\n\
        #define TRY(call) { int class; MPI_Error_class(call, &class);\\\n\
          if (rank == 0) printf(\"%02d %s\\n\", step++, class == MPI_SUCCESS ? \"right\" : class == MPI_ERR_TYPE ? \"type\" : \"other\"); }\n\
        for (int i = 0; i < 2; i++) {\n\
        TRY(rank == 0 ? MPI_Send(data, 1, two, 1, 0, MPI_COMM_WORLD) : i == 0 ? MPI_SUCCESS : MPI_Recv(data + 4, 1, two, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE))\n\
        TRY(MPI_Irecv(data + 4, 1, two, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request))\n\
        TRY(MPI_Bcast(data, 1, two, 0, MPI_COMM_WORLD))\n\
        TRY(MPI_Allgather(data, 1, two, data + 4, 2, MPI_INT, MPI_COMM_SELF))\n\
        TRY(MPI_Alltoallv(data, counts, places, two, data + 4, (int[]){2, 2}, places, MPI_INT, MPI_COMM_SELF))\n\
        TRY(MPI_Alltoallw(data, counts, places, types, data + 4, counts, places, types, MPI_COMM_SELF))\n\
        MPI_Win_fence(0, window);\nTRY(MPI_Get(data, 2, MPI_INT, rank, 16, 1, two, window))\nMPI_Win_fence(0, window);\n\
        MPI_Type_commit(&two);\n}\n\
        if (rank == 1) printf(\"got %d %d\\n\", data[4], data[6]);\n\
        MPI_Win_free(&window); MPI_Type_free(&two); MPI_Type_free(&inner);\n\
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL); MPI_Type_contiguous(3, MPI_INT, &two);\n\
        if (argc > 1) MPI_Allreduce(MPI_IN_PLACE, data, 1, two, MPI_SUM, MPI_COMM_WORLD);\nMPI_Type_free(&two);";
    let Some(program) = Program::with_body(body) else { return };
    let (lines, _) = program.lines_and_digest(2, &["--threads", "1"]);
    let mut expected: Vec<String> = (0..7).map(|step| format!("{step:02} type")).collect();
    expected.extend((7..14).map(|step| format!("{step:02} right")));
    expected.push("got 1 3".to_owned());
    assert_eq!(lines, expected);
    let why = "in MPI_Allreduce (called from ";
    let fails = program.command(2, &[]).arg("fatally").assert().code(1);
    fails.stderr(contains(why).and(contains("MPI_ERR_TYPE: invalid datatype: it is not committed")));
}

/// A call that fails says which of its arguments is wrong, what it is, and what there is.
#[test]
fn wrong_arguments_are_named() {
    let body = "int x = 0, y, counts[2] = {1, -3}, places[2] = {0, 0}, which = atoi(argv[1]);\n\
        MPI_Comm copy, freed; MPI_Request request; MPI_Group group; MPI_Status status;\n\
        MPI_Comm_group(MPI_COMM_WORLD, &group); MPI_Comm_dup(MPI_COMM_WORLD, &copy); freed = copy; MPI_Comm_free(&copy);\n\
        MPI_Win window; MPI_Win_create(&size, sizeof size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window); MPI_Win_fence(0, window);\n\
        if (which == 0) MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);\n\
        if (which == 1) MPI_Recv(&x, 1, MPI_INT, 0, -7, MPI_COMM_WORLD, &status);\n\
        if (which == 2) MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 6, 0, MPI_COMM_WORLD, &status);\n\
        if (which == 3) MPI_Bcast(&x, 1, MPI_INT, 9, MPI_COMM_WORLD);\n\
        if (which == 4) MPI_Iallreduce(&x, &y, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);\n\
        if (which == 5) MPI_Alltoallv(&x, counts, places, MPI_INT, &y, counts, places, MPI_INT, MPI_COMM_WORLD);\n\
        if (which == 6) MPI_Barrier(MPI_COMM_NULL);\n\
        if (which == 7) MPI_Barrier(freed);\n\
        if (which == 8) MPI_Comm_rank(MPI_COMM_NULL, &x);\n\
        if (which == 9) MPI_Group_translate_ranks(group, 1, (int[]){4}, group, &y);\n\
        if (which == 10) MPI_Gather(&x, 1, MPI_INT, &y, 1, MPI_INT, 1, MPI_COMM_SELF);\n\
        if (which == 11) MPI_Isend(NULL, 3, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);\n\
        if (which == 12) MPI_Allgather(&x, 1, MPI_INT, NULL, 1, MPI_INT, MPI_COMM_WORLD);\n\
        if (which == 13) MPI_Put(NULL, 1, MPI_INT, 0, 0, 1, MPI_INT, window);\n\
        MPI_Exscan(&x, rank > 0 ? &y : NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);\n\
        MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD); MPI_Send(NULL, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);\n\
        MPI_Win_fence(0, window); MPI_Win_free(&window);";
    let Some(program) = Program::with_body(body) else { return };
    let cases = [
        (
            "Send",
            "MPI_ERR_RANK: invalid rank: the destination is 77, and communicator 0 has the ranks 0 to 1",
        ),
        ("Recv", "the tag of the receive is -7"),
        ("Sendrecv", "the source is 6, and communicator 0 has the ranks 0 to 1"),
        ("Bcast", "the root is 9, and communicator 0 has the ranks 0 to 1"),
        ("Iallreduce", "MPI_ERR_COUNT: invalid count argument: the count is -1"),
        ("Alltoallv", "the count is -3"),
        ("Barrier", "the communicator is MPI_COMM_NULL"),
        ("Barrier", "there is no such communicator: perhaps it was freed"),
        ("Comm_rank", "the communicator is MPI_COMM_NULL"),
        ("Group_translate_ranks", "the rank is 4, and the group has the ranks 0 to 1"),
        ("Gather", "the root is 1, and communicator 1 has the ranks 0 to 0"),
        ("Isend", "MPI_ERR_BUFFER: invalid buffer pointer: the buffer of 3 elements is a null pointer"),
        ("Allgather", "the buffer of 1 element is a null pointer"),
        ("Put", "the buffer of 1 element is a null pointer"),
    ];
    for (which, (name, why)) in cases.iter().enumerate() {
        let fails = program.command(2, &[]).arg(which.to_string()).assert().code(1);
        fails.stderr(contains(format!("in MPI_{name} (called from /")).and(contains(*why)));
    }
    program.command(2, &[]).arg("-1").assert().success();
}

/// A program may change what a nonblocking collective operation sends after its end only.
#[test]
fn changed_buffers_of_pending_collectives_are_named() {
    let body = "int data[8] = {0}, got[8], all[8] = {0}, ones[2] = {1, 1}, bytes[2] = {0, 16}, ints[2] = {3, 7}, which = atoi(argv[1]);\n\
        MPI_Request requests[4]; MPI_Datatype ends, types[2]; MPI_Comm ring;\n\
        MPI_Type_vector(2, 1, 2, MPI_INT, &ends); MPI_Type_commit(&ends); types[0] = types[1] = ends;\n\
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &ring);\n\
        for (int step = 0; step < 2; step++) {\ndata[0] = data[3] = step; all[2] = 7;\n\
        MPI_Ibcast(all, 1, ends, 1, MPI_COMM_WORLD, &requests[0]);\n\
        MPI_Iallreduce(MPI_IN_PLACE, all + 4, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);\n\
        MPI_Ialltoallw(data, ones, bytes, types, got, ones, bytes, types, MPI_COMM_WORLD, &requests[2]);\n\
        MPI_Ineighbor_alltoallv(data, ones, ints, MPI_INT, got + 6, ones, (int[]){0, 1}, MPI_INT, ring, &requests[3]);\n\
        data[1] = data[5] = all[1] = 9;\n\
        if (which == 1) all[2] = 8;\nif (which == 2) all[7] = 8;\nif (which == 3) data[6] = 8;\nif (which == 4) data[7] = 8;\n\
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);\n}\nMPI_Type_free(&ends); MPI_Comm_free(&ring);";
    let said = "the program has changed the buffer of";
    let Some(program) = Program::with_body(body) else { return };
    let run = |which: &str, flags: &[&str]| program.command(2, flags).arg(which).assert().success();
    let check = ["--set", "online.check_buffers=true"];
    let calls = ["rank 1: ", "MPI_Iallreduce", "MPI_Ialltoallw", "MPI_Ineighbor_alltoallv"];
    for (which, call) in (1..).zip(calls) {
        run(&which.to_string(), &check).stderr(contains(said).and(contains(call)));
        run(&which.to_string(), &[]).stderr(contains(said).not());
    }
    run("0", &check).stderr(contains(said).not());
}

/// `MPI_Sendrecv` must not send what it receives into; parts of one array that lie between each other are distinct.
#[test]
fn sendrecv_into_its_own_buffer_is_named() {
    let body = "double a[6][6] = {0}; int sizes[2] = {6, 6}, column[2] = {6, 1}, which = atoi(argv[1]);\n\
        MPI_Datatype last, first, row; MPI_Status status;\n\
        MPI_Type_create_subarray(2, sizes, column, (int[]){0, 4}, MPI_ORDER_C, MPI_DOUBLE, &last); MPI_Type_commit(&last);\n\
        MPI_Type_create_subarray(2, sizes, column, (int[]){0, 0}, MPI_ORDER_C, MPI_DOUBLE, &first); MPI_Type_commit(&first);\n\
        MPI_Type_contiguous(6, MPI_DOUBLE, &row); MPI_Type_commit(&row);\n\
        #define EXCHANGE(from, n, of, into, type) MPI_Sendrecv(from, n, of, 1 - rank, 0, into, n, type, 1 - rank, 0, MPI_COMM_WORLD, &status)\n\
        if (which == 0) { EXCHANGE(a, 1, last, a, first); EXCHANGE(a, 1, last, &a[0][1], last); EXCHANGE(a[0], 1, row, a[1], row); EXCHANGE(a, 0, row, a, row);\n\
          MPI_Sendrecv_replace(a, 1, row, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, &status);\n\
          MPI_Sendrecv(a, 1, row, MPI_PROC_NULL, 0, a, 1, row, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status); }\n\
        if (which == 1) EXCHANGE(a, 1, row, a, row);\nif (which == 2) EXCHANGE(a, 2, row, a[1], row);\nif (which == 3) EXCHANGE(a, 1, first, a, first);\n\
        MPI_Type_free(&last); MPI_Type_free(&first); MPI_Type_free(&row);";
    let said =
        "MPI_Sendrecv sends from the buffer into which it receives: the two must be distinct, called from /";
    let Some(program) = Program::with_body(body) else { return };
    let run = |which: &str| program.command(2, &[]).arg(which).assert().success();
    for which in ["1", "2", "3"] {
        run(which).stderr(contains(said));
    }
    run("0").stderr(contains("must be distinct").not());
}
