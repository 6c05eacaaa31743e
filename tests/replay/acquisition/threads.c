/* One thread sends while another one receives, or, without an argument, one thread makes all calls but the last. */
#include <mpi.h>
#include <pthread.h>

static int other;
static char sent[100000], received[100000];

static void *sends(void *both) {
    MPI_Send(sent, sizeof sent, MPI_CHAR, both ? other : MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    return 0;
}
static void *receives(void *unused) {
    MPI_Recv(received, sizeof received, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

int main(int argc, char **argv) {
    int provided, rank;
    pthread_t threads[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    pthread_create(&threads[0], 0, sends, argc > 1 ? &other : NULL);
    if (argc > 1) pthread_create(&threads[1], 0, receives, 0);
    for (int i = 0; i < (argc > 1 ? 2 : 1); i++) pthread_join(threads[i], 0);
    MPI_Finalize();
    return 0;
}
