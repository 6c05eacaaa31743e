/* The heart model as it was: a step calculates all cells, then exchanges the edges with all neighbours, one side after the other. */
#include "heart.h"

int main(int argc, char **argv) {
    struct tissue t;
    MPI_Init(&argc, &argv);
    tissue_begin(&t, argc, argv);
    for (int step = 0; step < t.steps; step++) {
        pdes_region_begin("cells");
        integrate(&t, 1, t.side, 1, t.side);
        pdes_region_end();
        pdes_region_begin("halo");
        for (int side = 0; side < SIDES; side++)
            MPI_Sendrecv(edge(&t, side, 0), 1, edge_type(&t, side), t.neighbour[side], side,
                         edge(&t, opposite(side), 1), 1, edge_type(&t, side), t.neighbour[opposite(side)], side,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pdes_region_end();
        tissue_step(&t);
    }
    tissue_end(&t);
    MPI_Finalize();
    return 0;
}
