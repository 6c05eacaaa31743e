/* Starts a process of its own, and talks to it. */
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    int value = 7;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, 3, children);
        MPI_Comm_disconnect(&children);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, 3, parent, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
