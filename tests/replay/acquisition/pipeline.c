/* A wave through a square grid of ranks, as in NPB LU: from the north and the west, to the south and the east, and back. With a
   third argument each rank prints the processor time of its work by its own account. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include "processor_time.h"

static double work(int n) {
    double sum = 1;
    for (int i = 1; i <= n; i++) sum += 1 / (sum + i);
    return sum;
}

int main(int argc, char **argv) {
    int rank, size, columns = 1, steps = argc > 1 ? atoi(argv[1]) : 2, n = argc > 2 ? atoi(argv[2]) : 1000;
    double plane[40] = {0}, worked = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while ((columns + 1) * (columns + 1) <= size) columns++;
    int rows = size / columns, row = rank / columns, column = rank % columns;
    int north = row > 0 ? rank - columns : -1, south = row < rows - 1 ? rank + columns : -1;
    int west = column > 0 ? rank - 1 : -1, east = column < columns - 1 ? rank + 1 : -1;
    for (int step = 0; step < steps; step++) {
        if (north >= 0) MPI_Recv(plane, 40, MPI_DOUBLE, north, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (west >= 0) MPI_Recv(plane, 40, MPI_DOUBLE, west, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double start = now();
        plane[step % 40] += work(n);
        worked += now() - start;
        if (south >= 0) MPI_Send(plane, 40, MPI_DOUBLE, south, 10, MPI_COMM_WORLD);
        if (east >= 0) MPI_Ssend(plane, 20, MPI_DOUBLE, east, 10, MPI_COMM_WORLD);
        /* Back, from any tag: the trace names the one that came. */
        MPI_Status status;
        if (south >= 0) MPI_Recv(plane, 40, MPI_DOUBLE, south, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (east >= 0) MPI_Recv(plane, 40, MPI_DOUBLE, east, 20, MPI_COMM_WORLD, &status);
        if (north >= 0) MPI_Send(plane, 40, MPI_DOUBLE, north, 30 + step, MPI_COMM_WORLD);
        if (west >= 0) MPI_Send(plane, 40, MPI_DOUBLE, west, 20, MPI_COMM_WORLD);
    }
    if (argc > 3) printf("rank %d worked %.6f s\n", rank, worked);
    MPI_Finalize();
    return 0;
}
