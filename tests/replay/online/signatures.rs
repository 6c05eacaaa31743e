//! Signatures of datatypes: what is sent has to be of the types with which it is received, however these are made.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use super::Program;

/// Types of the same sequences of basic types, made in different ways, and of others.
const TYPES: &str = "char data[4096] = {0}, got[4096]; int which = atoi(argv[1]);\n\
    MPI_Datatype pair, turned, pairs, gaps, blocks, rows, names[3] = {MPI_INT, MPI_DOUBLE, MPI_INT};\n\
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, names, &pair); MPI_Type_commit(&pair);\n\
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, names + 1, &turned); MPI_Type_commit(&turned);\n\
    MPI_Type_contiguous(3, pair, &pairs); MPI_Type_commit(&pairs);\n\
    MPI_Type_create_struct(3, (int[]){0, 1, 1}, (MPI_Aint[]){0, 8, 0}, names, &gaps); MPI_Type_commit(&gaps);\n\
    MPI_Type_create_hvector(2, 3, 64, pair, &blocks); MPI_Type_commit(&blocks);\n\
    MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_DOUBLE, &rows); MPI_Type_commit(&rows);\n\
    #define FREE MPI_Type_free(&pair); MPI_Type_free(&turned); MPI_Type_free(&pairs); MPI_Type_free(&gaps); MPI_Type_free(&blocks); MPI_Type_free(&rows);\n\
    #define MESSAGE(n, sent, m, received) if (rank == 0) MPI_Send(data, n, sent, 1, 0, MPI_COMM_WORLD);\\\n\
      else MPI_Recv(got, m, received, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n";

/// Messages that are received with the types that they were sent with are not warned of.
#[test]
fn equal_signatures_are_not_warned_of() {
    let cases = [
        "MESSAGE(6, pair, 1, blocks)",
        "MESSAGE(1, blocks, 2, pairs)",
        "MESSAGE(2, pair, 1, pairs)",
        "MESSAGE(4, pair, 2, blocks)",
        "MESSAGE(2, pairs, 100, pair)",
        "MESSAGE(2, gaps, 2, turned)",
        "MESSAGE(1, rows, 6, MPI_DOUBLE)",
        "MESSAGE(8, MPI_DOUBLE, 2, rows)",
        "MESSAGE(3, MPI_2INT, 6, MPI_UNSIGNED)",
        "MESSAGE(3, MPI_DOUBLE_INT, 3, turned)",
        "MESSAGE(2, MPI_C_DOUBLE_COMPLEX, 4, MPI_DOUBLE)",
        "MESSAGE(1, pairs, 36, MPI_BYTE)",
        "MESSAGE(16, MPI_PACKED, 1, blocks)",
        "MESSAGE(2, MPI_LONG, 2, MPI_LONG_LONG)",
        "MESSAGE(2, MPI_REAL8, 2, MPI_DOUBLE)",
        "MPI_Datatype real, two; MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real); MPI_Type_contiguous(2, real, &two); MPI_Type_commit(&two);\
         MESSAGE(2, two, 4, MPI_DOUBLE) MPI_Type_free(&two);",
        "MPI_Request request; MPI_Isend(data, 1, pairs, 1 - rank, 0, MPI_COMM_WORLD, &request);\
         MPI_Recv(got, 3, pair, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); MPI_Wait(&request, MPI_STATUS_IGNORE);",
        "if (rank == 0) MPI_Bcast(data, 1, blocks, 0, MPI_COMM_WORLD); else MPI_Bcast(got, 2, pairs, 0, MPI_COMM_WORLD);",
        "MPI_Gather(data, 3, pair, got, 1, pairs, 0, MPI_COMM_WORLD);",
        "MPI_Reduce(data, got, 4, MPI_2INT, MPI_MAXLOC, 0, MPI_COMM_WORLD);",
        "MPI_Alltoallw(data, (int[]){1, 3}, (int[]){0, 256}, (MPI_Datatype[]){pairs, pair}, got, rank ? (int[]){3, 3} : (int[]){3, 1},\
          (int[]){0, 256}, (MPI_Datatype[]){pair, rank ? pair : pairs}, MPI_COMM_WORLD);",
    ];
    let body: String = cases
        .iter()
        .enumerate()
        .map(|(which, case)| format!("if (which == {which}) {{ {case} }}\n"))
        .collect();
    let Some(program) = Program::with_body(&format!("{TYPES}{body}FREE")) else { return };
    for (which, case) in cases.iter().enumerate() {
        let run = program.command(2, &[]).arg(which.to_string()).assert().success();
        let output = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(!output.contains("WARN"), "{case}: {output}");
    }
}

/// Messages that are received with other types are warned of, each pair of calls once, and so are parts of collective operations.
#[test]
fn other_signatures_are_warned_of() {
    let cases = [
        ("MESSAGE(1, pair, 1, turned)", "(int32, float64) for sequences of (float64, int32)"),
        ("MESSAGE(100, pair, 100, turned)", "(int32, float64) for sequences of (float64, int32)"),
        (
            "MESSAGE(3, MPI_DOUBLE, 3, pair)",
            "floating-point numbers of 8 B for sequences of (int32, float64)",
        ),
        ("MESSAGE(1, blocks, 20, MPI_FLOAT)", " for floating-point numbers of 4 B"),
        ("MESSAGE(1, MPI_2INT, 1, MPI_LONG)", "integers or others of 4 B for integers or others of 8 B"),
        ("MESSAGE(2, turned, 3, MPI_2INT)", "(float64, int32) for integers or others of 4 B"),
        (
            "if (rank == 0) MPI_Bcast(data, 1, pair, 0, MPI_COMM_WORLD); else MPI_Bcast(got, 1, turned, 0, MPI_COMM_WORLD);",
            "MPI_Bcast takes elements from rank 0 that are sequences of (int32, float64)",
        ),
        (
            "MPI_Allreduce(data, got, rank ? 2 : 1, rank ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);",
            "rank 1: MPI_Allreduce takes elements from rank 0 that are floating-point numbers of 8 B",
        ),
        (
            "MPI_Request request; MPI_Igather(data, 1, rank ? pair : turned, got, 1, pair, 1, MPI_COMM_WORLD, &request);\
             MPI_Wait(&request, MPI_STATUS_IGNORE);",
            "rank 1: MPI_Igather takes elements from rank 0 that are sequences of (float64, int32)",
        ),
        (
            "MPI_Alltoallv(data, (int[]){1, 1}, (int[]){0, 1}, MPI_INT, got, rank ? (int[]){5, 1} : (int[]){1, 1}, (int[]){0, 5}, MPI_INT,\
             MPI_COMM_WORLD);",
            "rank 1: MPI_Alltoallv expects 20 B from rank 0, which gives 4 B",
        ),
        (
            "MPI_Allgatherv(data, 1, MPI_INT, got, rank ? (int[]){1, 1} : (int[]){1, 4}, (int[]){0, 1}, MPI_INT, MPI_COMM_WORLD);",
            "rank 0: MPI_Allgatherv expects 16 B from rank 1, which gives 4 B",
        ),
    ];
    let body: String = (0..)
        .zip(&cases)
        .map(|(which, (case, _))| format!("if (which == {which} || which == 100) {{ {case} }}\n"))
        .collect();
    let Some(program) = Program::with_body(&format!("{TYPES}{body}FREE")) else { return };
    for (which, (_, said)) in (0..).zip(&cases) {
        let run = program.command(2, &[]).arg(which.to_string()).assert().success();
        run.stderr(contains(*said).and(contains(", called from /")));
    }
    let all = program.command(2, &[]).arg("100").assert().success();
    let output = String::from_utf8_lossy(&all.get_output().stderr).into_owned();
    // Of the reduction for all, both ranks warn.
    assert_eq!(output.matches("WARN").count(), cases.len() + 1, "{output}");
}
