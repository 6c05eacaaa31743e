/* Runs until one of its processes is killed at some time: everything that processes can owe each other. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LARGE = 200000 };

static void die(int signal) {
    (void)signal;
    kill(getpid(), SIGKILL);
}

/* Ends this process after so many microseconds. */
static void die_after(long microseconds) {
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_usec = microseconds;
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv) {
    int rank, size, done, sum, got[4], token = 1;
    long seed = argc > 1 ? atol(argv[1]) : 1;
    static char large[LARGE], room[LARGE];
    MPI_Request requests[4], persistent[2];
    MPI_Status status;
    MPI_Comm halves;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    MPI_Send_init(&token, 1, MPI_INT, next, 8, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(&got[3], 1, MPI_INT, before, 8, MPI_COMM_WORLD, &persistent[1]);
    for (int step = 0;; step++) {
        if (step == 100 && rank == seed % size) die_after(1000 + seed * 7919 % 60000);
        srand(seed + step);
        switch (rand() % 9) {
        case 0: /* a halo, of which some completes late */
            MPI_Irecv(&got[0], 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(room, LARGE, MPI_CHAR, next, 2, MPI_COMM_WORLD, &requests[1]);
            MPI_Isend(&token, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[2]);
            MPI_Isend(large, LARGE, MPI_CHAR, before, 2, MPI_COMM_WORLD, &requests[3]);
            MPI_Waitany(4, requests, &done, &status);
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
            break;
        case 1: /* a pipeline */
            if (rank > 0) MPI_Recv(&token, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &status);
            if (rank + 1 < size) MPI_Send(&token, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
            break;
        case 2: MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_MAX, halves); break;
        case 3: MPI_Bcast(&token, 1, MPI_INT, step % size, MPI_COMM_WORLD); break;
        case 4: /* whoever comes, but in this step: a broadcast need not keep ranks from the next */
            if (rank == 0) {
                for (int from = 1; from < size; from++) {
                    MPI_Recv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 100 + step, MPI_COMM_WORLD, &status);
                    MPI_Ssend(&token, 1, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD);
                }
            } else {
                MPI_Send(&token, 1, MPI_INT, 0, 100 + step, MPI_COMM_WORLD);
                MPI_Recv(&got[0], 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
            }
            break;
        case 5: /* collectives that do not block */
            MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
            MPI_Iallreduce(&token, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
            for (done = 0; !done;) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
            break;
        case 6:
            MPI_Sendrecv(large, LARGE, MPI_CHAR, next, 6, room, LARGE, MPI_CHAR, before, 6, MPI_COMM_WORLD, &status);
            break;
        case 7:
            MPI_Startall(2, persistent);
            MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
            break;
        case 8: /* looks before it takes */
            MPI_Isend(&token, 1, MPI_INT, next, 9, MPI_COMM_WORLD, &requests[0]);
            MPI_Probe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Recv(&got[0], 1, MPI_INT, before, status.MPI_TAG, MPI_COMM_WORLD, &status);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            break;
        }
    }
}
