/* Work, then sums over the row and the column of a grid of ranks, by communicators of their own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include "processor_time.h"

int main(int argc, char **argv) {
    int rank, size, columns = 1, steps = argc > 1 ? atoi(argv[1]) : 2, n = argc > 2 ? atoi(argv[2]) : 1000;
    double mine = 1, sum, worked = 0;
    MPI_Comm row, column;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while ((columns + 1) * (columns + 1) <= size) columns++;
    MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % columns, rank, &column);
    for (int step = 0; step < steps; step++) {
        double start = now();
        for (int i = 1; i <= n; i++) mine += 1 / (mine + i);
        worked += now() - start;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, row);
        MPI_Allreduce(&sum, &mine, 1, MPI_DOUBLE, MPI_MAX, column);
    }
    printf("rank %d worked %.6f s\n", rank, worked);
    MPI_Finalize();
    return 0;
}
