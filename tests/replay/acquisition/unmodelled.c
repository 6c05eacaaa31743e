/* Calls that no replay models, and an end without MPI_Finalize where an argument says so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void windows(int rank, int peer) {
    int values[4] = {0}, got = 0;
    MPI_Win window;
    MPI_Group all, other;
    MPI_Request request;
    MPI_Win_create(values, sizeof values, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int step = 0; step < 2; step++) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
        MPI_Put(&rank, 1, MPI_INT, peer, 1, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window);
    MPI_Get(&got, 1, MPI_INT, peer, 1, 1, MPI_INT, window);
    MPI_Win_flush_local(peer, window);
    MPI_Accumulate(&rank, 1, MPI_INT, peer, 2, 1, MPI_INT, MPI_SUM, window);
    MPI_Fetch_and_op(&rank, &got, MPI_INT, peer, 2, MPI_SUM, window);
    MPI_Rput(&rank, 1, MPI_INT, peer, 3, 1, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(peer, window);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &peer, &other);
    MPI_Win_post(other, 0, window);
    MPI_Win_start(other, 0, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
}

static void files(const char *name, int rank) {
    double values[10] = {0};
    MPI_File file;
    MPI_Request request;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 8, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 10 * rank, values, 10, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 2, MPI_SEEK_SET);
    MPI_File_read(file, values, 3, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, 0, values, 1, MPI_DOUBLE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_read_all_begin(file, values, 1, MPI_DOUBLE);
    MPI_File_read_all_end(file, values, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_close(&file);
    MPI_File_open(MPI_COMM_SELF, "/no/such/folder/a file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}

static void communicators(int rank, int peer) {
    MPI_Comm between, later, own;
    MPI_Request request;
    int value = rank, got = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, peer, 5, &between);
    MPI_Isend(&value, 1, MPI_INT, 0, 6, between, &request);
    MPI_Recv(&got, 1, MPI_INT, 0, 6, between, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(between);
    MPI_Comm_free(&between);
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, later);
    MPI_Comm_free(&later);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv) {
    int rank, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(argv[1], "die") != 0) {
        windows(rank, 1 - rank);
        files(argv[1], rank);
        communicators(rank, 1 - rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "die") == 0) {
        if (rank == 1) {
            sleep(1);
            abort();
        }
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
