/* Regions with names, one inside the other, and one by its level. */
#include <mpi.h>
#include <pdes_region.h>

int main(int argc, char **argv) {
    int value = 1, sum;
    MPI_Init(&argc, &argv);
    for (int step = 0; step < 2; step++) {
        pdes_region_begin("solver");
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        pdes_region_begin("halo");
        MPI_Barrier(MPI_COMM_WORLD);
        pdes_region_end();
        pdes_region_end();
    }
    MPI_Pcontrol(1);
    MPI_Pcontrol(5, "a name of the program's own");
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Pcontrol(-5);
    MPI_Finalize();
    return 0;
}
