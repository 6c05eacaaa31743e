/* The heart model as it was improved: a step posts its receives, calculates the cells at the edges, sends them, calculates the cells
   inside, and waits. Its results are those of heart.c. */
#include "heart.h"

int main(int argc, char **argv) {
    struct tissue t;
    MPI_Init(&argc, &argv);
    tissue_begin(&t, argc, argv);
    for (int step = 0; step < t.steps; step++) {
        MPI_Request requests[2 * SIDES];
        int last = t.side;
        pdes_region_begin("cells");
        for (int side = 0; side < SIDES; side++)
            MPI_Irecv(edge(&t, opposite(side), 1), 1, edge_type(&t, side), t.neighbour[opposite(side)], side,
                      MPI_COMM_WORLD, &requests[side]);
        integrate(&t, 1, 1, 1, last);
        integrate(&t, last, last, 1, last);
        integrate(&t, 2, last - 1, 1, 1);
        integrate(&t, 2, last - 1, last, last);
        pdes_region_end();
        pdes_region_begin("halo");
        for (int side = 0; side < SIDES; side++)
            MPI_Isend(edge(&t, side, 0), 1, edge_type(&t, side), t.neighbour[side], side, MPI_COMM_WORLD,
                      &requests[SIDES + side]);
        integrate(&t, 2, last - 1, 2, last - 1);
        MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
        pdes_region_end();
        tissue_step(&t);
    }
    tissue_end(&t);
    MPI_Finalize();
    return 0;
}
