//! Folding of memory: large allocations of ranks are the same memory, with a warning.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use super::Program;

const FOLD: [&str; 2] = ["--set", "online.fold_bytes='1MiB'"];

#[test]
fn the_same_large_allocation_of_ranks_is_one() {
    // The first and the second one differ, small ones are of each rank, and a number that is free is used again.
    let body = "long large = 4 << 20;\nint *small = malloc(4096), *first = calloc(large, 1), *second;\n\
        small[0] = rank; first[0] = 0;\nposix_memalign((void **)&second, 64, large);\n\
        MPI_Barrier(MPI_COMM_WORLD);\nif (rank == 0) { first[0] = 5; second[0] = 7; }\nMPI_Barrier(MPI_COMM_WORLD);\n\
        first = realloc(first, 2 * large);\nint seen = first[0], other = rank ? second[0] : 7;\nfree(second);\nfree(first);\nMPI_Barrier(MPI_COMM_WORLD);\n\
        first = malloc(large);\nif (rank == 1) first[1] = 9;\nMPI_Barrier(MPI_COMM_WORLD);\n\
        printf(\"%d %d %d\\n\", small[0] == rank, seen, first[1] == 9);\nMPI_Barrier(MPI_COMM_WORLD);\nfree(first);";
    let Some(program) = Program::with_body(body) else { return };
    let (lines, _) = program.lines_and_digest(3, &FOLD);
    assert_eq!(lines, ["1 5 1"; 3]);
    let warning = "rank 0 and 2 other(s): 4 allocation(s) of 1048576 B or more are the same memory";
    program.run(3, &FOLD).success().stderr(contains(warning));
    program.run(3, &[]).success().stderr(contains("are the same memory").not());
    let (lines, _) = program.lines_and_digest(3, &[]);
    assert_eq!(lines, ["1 0 0", "1 0 1", "1 5 0"]);
}

#[test]
fn parts_of_pages_are_not_folded() {
    let Some(program) = Program::with_body("") else { return };
    let small = ["--set", "online.fold_bytes=100"];
    program
        .run(2, &small)
        .failure()
        .stderr(contains("[online] fold_bytes: found 100 B, expected at least 4096"));
}
