/* Rank 0 hands out tasks to whoever is done, with Waitany, then with receives from any source. */
#include <mpi.h>
#include <stdlib.h>

enum { TASK = 1, RESULT = 2, STOP = 3, HELLO = 4 };

int main(int argc, char **argv) {
    int rank, size, tasks = argc > 1 ? atoi(argv[1]) : 6, n = argc > 2 ? atoi(argv[2]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Status status;
    if (rank == 0) {
        MPI_Request *results = malloc(size * sizeof *results);
        int *values = calloc(size, sizeof(int)), given = 0;
        results[0] = MPI_REQUEST_NULL;
        for (int worker = 1; worker < size; worker++) {
            MPI_Send(&given, 1, MPI_INT, worker, TASK, MPI_COMM_WORLD);
            given++;
            MPI_Irecv(&values[worker], 1, MPI_INT, worker, RESULT, MPI_COMM_WORLD, &results[worker]);
        }
        for (int taken = 0; taken < tasks; taken++) {
            int worker;
            MPI_Waitany(size, results, &worker, MPI_STATUS_IGNORE);
            if (given < tasks) {
                MPI_Send(&given, 1, MPI_INT, worker, TASK, MPI_COMM_WORLD);
                given++;
                MPI_Irecv(&values[worker], 1, MPI_INT, worker, RESULT, MPI_COMM_WORLD, &results[worker]);
            } else {
                MPI_Send(&given, 1, MPI_INT, worker, STOP, MPI_COMM_WORLD);
            }
        }
        for (int i = 1; i < size; i++) MPI_Recv(values, 4, MPI_INT, MPI_ANY_SOURCE, HELLO, MPI_COMM_WORLD, &status);
        MPI_Request *hellos = malloc(size * sizeof *hellos);
        for (int i = 1; i < size; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &hellos[i]);
        MPI_Waitall(size - 1, hellos + 1, MPI_STATUSES_IGNORE);
    } else {
        for (;;) {
            int task;
            MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == STOP) break;
            double sum = 1;
            for (int i = 1; i < n * (task + 1); i++) sum += 1 / (sum + i);
            task = (int)sum;
            MPI_Send(&task, 1, MPI_INT, 0, RESULT, MPI_COMM_WORLD);
        }
        MPI_Send(&rank, 1, MPI_INT, 0, HELLO, MPI_COMM_WORLD);
        MPI_Send(&rank, 1, MPI_INT, 0, HELLO + rank, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
