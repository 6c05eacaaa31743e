/* A master takes the results of three workers as they come, and works on each; all four compute regions foo and bar before, and end a
   round with a barrier. By the imbalance of foo results come in the order of ranks; if foo is balanced (an argument), bar reverses it.
   After figure 4 of Boehme et al., "Performance Simulation of Non-blocking Communication in Message-Passing Applications". */
#include "processor_time.h"
#include <mpi.h>
#include <pdes_region.h>
#include <stdlib.h>

/* Computes for so many units of 20 ms of processor time. */
static void compute(const char *region, double units) {
    pdes_region_begin(region);
    double end = now() + 0.02 * units;
    while (now() < end) {}
    pdes_region_end();
}

int main(int argc, char **argv) {
    const double foo[] = {1.0, 3.2, 4.2, 5.2}, balanced = 3.4, bar[] = {0, 3.2, 2.7, 2.2}, work = 0.4;
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 1, is_balanced = argc > 2;
    double results[3] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < rounds; round++) {
        compute("foo", is_balanced ? balanced : foo[rank]);
        if (rank > 0) {
            compute("bar", bar[rank]);
            MPI_Send(results, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        } else {
            MPI_Request requests[3];
            for (int worker = 0; worker < 3; worker++)
                MPI_Irecv(&results[worker], 1, MPI_DOUBLE, worker + 1, 1, MPI_COMM_WORLD, &requests[worker]);
            for (int left = 3, worker; left > 0; left--) {
                MPI_Waitany(3, requests, &worker, MPI_STATUS_IGNORE);
                compute("work", work);
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
