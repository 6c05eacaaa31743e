/* Persistent receives from any source and, where the library has them, persistent collective operations. */
#include <mpi.h>
#if MPI_VERSION >= 4
#define INIT(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#endif

int main(int argc, char **argv) {
    int rank, size, message = 0, counts[8];
    double in[8], out[8];
    MPI_Request requests[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < size; i++) counts[i] = 1;
    if (rank == 0)
        MPI_Recv_init(&message, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    else
        MPI_Send_init(&message, 1, MPI_INT, 0, rank, MPI_COMM_WORLD, &requests[0]);
    /* Does nothing: the request is not active. */
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 1; i < size; i++) {
        if (rank == 0 || rank == i) {
            MPI_Start(&requests[0]);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
#ifdef INIT
    INIT(Allreduce)(in, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    INIT(Bcast)(in, 2, MPI_DOUBLE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    MPI_Start(&requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Startall(2, &requests[1]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[1]);
    MPI_Request_free(&requests[2]);
    INIT(Reduce_scatter)(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Start(&requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[1]);
#endif
    MPI_Request_free(&requests[0]);
    MPI_Finalize();
    return 0;
}
