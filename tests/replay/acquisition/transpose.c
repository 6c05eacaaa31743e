/* Every collective operation once, blocking, with vectors and in place, then transpositions. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 1, n = argc > 2 ? atoi(argv[2]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm world = MPI_COMM_WORLD;
    int *counts = calloc(size, sizeof(int)), *places = calloc(size, sizeof(int));
    int *ones = calloc(size, sizeof(int)), *mine = calloc(size, sizeof(int));
    MPI_Datatype *types = malloc(size * sizeof *types);
    int total = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = total;
        total += i + 1;
        ones[i] = 1;
        mine[i] = rank + 1;
        types[i] = MPI_CHAR;
    }
    double *a = calloc(2 * (size + n) * (size + n), sizeof(double)), *b = calloc(2 * (size + n) * (size + n), sizeof(double));
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_Barrier(world);
    MPI_Bcast(a, 3, pair, 1, world);
    MPI_Reduce(a, b, 5, MPI_INT, MPI_SUM, size > 2 ? 2 : 1, world);
    MPI_Allreduce(MPI_IN_PLACE, a, 6, MPI_DOUBLE, MPI_MAX, world);
    MPI_Scan(a, b, 1, MPI_DOUBLE, MPI_SUM, world);
    MPI_Exscan(a, b, 2, MPI_DOUBLE, MPI_SUM, world);
    MPI_Gather(rank ? (void *)a : MPI_IN_PLACE, 7, MPI_CHAR, b, 7, MPI_CHAR, 0, world);
    MPI_Scatter(a, 9, MPI_CHAR, rank == 1 ? MPI_IN_PLACE : (void *)b, 9, MPI_CHAR, 1, world);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 11, MPI_CHAR, world);
    MPI_Gatherv(a, rank + 1, MPI_CHAR, b, counts, places, MPI_CHAR, 0, world);
    MPI_Scatterv(a, counts, places, MPI_CHAR, b, rank + 1, MPI_CHAR, 0, world);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, places, MPI_CHAR, world);
    MPI_Alltoallv(a, counts, places, MPI_CHAR, b, mine, places, MPI_CHAR, world);
    MPI_Alltoallw(a, ones, places, types, b, ones, places, types, world);
    MPI_Reduce_scatter(a, b, counts, MPI_CHAR, MPI_BOR, world);
    MPI_Reduce_scatter_block(a, b, 4, MPI_CHAR, MPI_BOR, world);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < n * n; i++) a[i] = b[i] * 0.5 + step;
        MPI_Alltoall(a, n, MPI_DOUBLE, b, n, MPI_DOUBLE, world);
    }
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
