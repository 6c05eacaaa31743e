//! Elements of more than 2 GiB, for which the functions that pack have no numbers.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use super::Program;

/// Makes `type`, of 2.2 GB: the same MB with holes 2,200 times, at 24 B, and an integer before it.
const TYPE: &str = "MPI_Datatype part, many, at, block, all, type;\nenum { NUMBERS = 125000, REPETITIONS = 2200 };\n\
    MPI_Type_vector(NUMBERS, 1, 2, MPI_DOUBLE, &part);\nMPI_Type_create_hvector(REPETITIONS, 1, 0, part, &many);\n\
    MPI_Type_indexed(1, (int[]){1}, (int[]){0}, many, &at);\n\
    MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, at, &block);\n\
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 16}, (MPI_Datatype[]){MPI_INT, block}, &all);\n\
    MPI_Type_create_resized(all, 0, 0, &part);\nMPI_Type_dup(part, &block);\nMPI_Type_contiguous(1, block, &type);\n\
    double *sent = malloc(16 * NUMBERS + 24), *got = calloc(16 * NUMBERS + 24, 1);\n\
    for (int i = 0; i < 2 * NUMBERS + 3; i++) sent[i] = i;\n*(int *)sent = 7;\n";

#[test]
fn elements_of_more_than_two_gigabytes_arrive() {
    let body = format!(
        "{TYPE}MPI_Type_commit(&type);\nMPI_Request request;\nMPI_Status status;\nMPI_Count bytes, whole;\n\
         MPI_Irecv(got, 1, type, 0, 0, MPI_COMM_WORLD, &request);\nMPI_Send(sent, 1, type, 0, 0, MPI_COMM_WORLD);\n\
         MPI_Wait(&request, &status);\nMPI_Get_elements_x(&status, MPI_BYTE, &bytes);\nMPI_Type_size_x(type, &whole);\n\
         int wrong = 0;\nfor (int i = 0; i < NUMBERS; i++) wrong += got[3 + 2 * i] != sent[3 + 2 * i] || got[4 + 2 * i * (i + 1 < NUMBERS)] != 0;\n\
         printf(\"%d %d %d %d\\n\", *(int *)got, wrong, whole == 1000000L * 2200 + 4, bytes == whole);"
    );
    let Some(program) = Program::with_body(&body) else { return };
    let (lines, _) = program.lines_and_digest(1, &[]);
    assert_eq!(lines, ["7 0 1 1"]);
}

#[test]
fn subarrays_of_more_than_two_gigabytes_are_refused() {
    let body = format!(
        "{TYPE}MPI_Type_create_subarray(1, (int[]){{2}}, (int[]){{1}}, (int[]){{0}}, MPI_ORDER_C, type, &part);\n\
         MPI_Type_commit(&part);\nMPI_Send(sent, 1, part, 0, 0, MPI_COMM_WORLD);"
    );
    let Some(program) = Program::with_body(&body) else { return };
    let why = "elements of more than 2 GiB of a type that is a subarray";
    program.run(1, &[]).failure().stderr(contains(why).and(contains("MPI_Send")));
}
