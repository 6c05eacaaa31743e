/* Persistent requests, all ways to complete, cancellation, probes, operations that do not block. For two ranks. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, flag = 0, index, done, indices[3], value[4] = {1, 2, 3, 4}, sum[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int peer = 1 - rank;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request r[3];
    MPI_Status status;
    /* Number 0 sends, 1 receives, twice. */
    MPI_Send_init(&value[0], 1, MPI_INT, peer, 1, world, &r[0]);
    MPI_Recv_init(&value[1], 1, MPI_INT, peer, 1, world, &r[1]);
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Start(&r[1]);
    MPI_Start(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Wait(&r[1], &status);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    /* A receive that nobody sends to. */
    MPI_Irecv(&value[0], 1, MPI_INT, peer, 99, world, &r[0]);
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    /* One that has come before it is cancelled. */
    MPI_Isend(&value[0], 1, MPI_INT, peer, 2, world, &r[0]);
    MPI_Probe(peer, 2, world, &status);
    MPI_Irecv(&value[1], 1, MPI_INT, peer, 2, world, &r[1]);
    for (flag = 0; !flag; usleep(1000)) MPI_Request_get_status(r[1], &flag, &status);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Waitsome(2, r, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Waitany(2, r, &index, &status);
    MPI_Iprobe(MPI_ANY_SOURCE, 77, world, &flag, &status);
    /* Operations that do not block, two at once. */
    MPI_Iallreduce(value, sum, 1, MPI_INT, MPI_SUM, world, &r[0]);
    MPI_Ibarrier(world, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Ibcast(value, 2, MPI_INT, 0, world, &r[2]);
    for (flag = 0; !flag; usleep(1000)) MPI_Test(&r[2], &flag, MPI_STATUS_IGNORE);
    /* A message that is matched, then received. */
    MPI_Message message;
    MPI_Barrier(world);
    if (rank == 0) MPI_Send(value, 2, MPI_INT, 1, 40, world);
    if (rank == 1) MPI_Mprobe(0, 40, world, &message, &status);
    if (rank == 1) MPI_Mrecv(value, 4, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Irecv(&value[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &r[0]);
    MPI_Irecv(&value[1], 1, MPI_INT, peer, MPI_ANY_TAG, world, &r[1]);
    MPI_Issend(&value[2], 1, MPI_INT, peer, 8, world, &r[2]);
    MPI_Send(&value[3], 1, MPI_INT, peer, 9, world);
    for (flag = 0; !flag; usleep(1000)) MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
