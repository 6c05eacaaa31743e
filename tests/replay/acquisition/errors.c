/* Calls that MPI refuses, messages that are too long, programs that hang: errors KIND, on two processes. */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

static int rank, other;
static char buffer[200000];

/* Matched probes of nobody, and receives of their messages. */
static void nobody(void) {
    MPI_Message message, none = MPI_MESSAGE_NO_PROC;
    MPI_Request request;
    int flag;
    MPI_Mprobe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(buffer, 4, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(buffer, 4, MPI_CHAR, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Mrecv(buffer, 4, MPI_CHAR, &none, MPI_STATUS_IGNORE);
}

/* Messages of 40 bytes into 20, received in all ways, and one of 100,000 that is received whole. */
static void truncated(void) {
    MPI_Request requests[2];
    MPI_Message message;
    if (rank == 0) {
        for (int i = 0; i < 6; i++) MPI_Send(buffer, 40, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Send(buffer, 100000, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(buffer, 20, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(buffer, 20, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Irecv(buffer, 20, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(buffer + 100, 50, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(buffer, 8, MPI_CHAR, MPI_PROC_NULL, 1, buffer, 20, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(buffer, 20, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Recv(buffer, 100000, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Wrong ranks, tags, counts, roots and handles between two barriers, and a message of which nothing is wrong. */
static void refused(void) {
    MPI_Request request;
    MPI_Datatype own;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(buffer, 1, MPI_CHAR, 2, 0, MPI_COMM_WORLD);
        MPI_Send(buffer, 1, MPI_CHAR, 1, -1, MPI_COMM_WORLD);
        MPI_Ssend(buffer, -4, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(buffer, 1, MPI_DATATYPE_NULL, 1, 0, MPI_COMM_WORLD);
        MPI_Send(buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_NULL);
        MPI_Isend(buffer, 1, MPI_CHAR, -7, 0, MPI_COMM_WORLD, &request);
        MPI_Irecv(buffer, -1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(buffer, 1, MPI_CHAR, 5, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Probe(5, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(buffer, 1, MPI_CHAR, 9, 0, buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Bcast(buffer, 1, MPI_CHAR, 2, MPI_COMM_WORLD);
        MPI_Ibcast(buffer, 1, MPI_CHAR, -9, MPI_COMM_WORLD, &request);
        MPI_Reduce(buffer, buffer + 8, -1, MPI_CHAR, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Allreduce(buffer, buffer + 8, 1, MPI_CHAR, MPI_OP_NULL, MPI_COMM_WORLD);
        MPI_Type_contiguous(3, MPI_INT, &own);
        MPI_Isend(buffer, 1, own, 1, 0, MPI_COMM_WORLD, &request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Isend(buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else
        MPI_Recv(buffer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 waits for a tag that rank 0 does not send. */
static void hang(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(buffer, 4, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
    else
        MPI_Recv(buffer, 4, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 waits for a receive; rank 0 has gone on to compute for ever. */
static void spin(void) {
    MPI_Request request;
    if (rank == 1) {
        MPI_Irecv(buffer, 4, MPI_CHAR, 0, 6, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (volatile int forever = 1; forever;) {}
}

/* Large sends to each other. */
static void head_to_head(void) {
    MPI_Send(buffer, 200000, MPI_CHAR, other, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, 200000, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int query(void *state, MPI_Status *status) { return MPI_Status_set_elements(status, MPI_CHAR, 0); }
static int release(void *state) { return MPI_SUCCESS; }
static int cancel(void *state, int complete) { return MPI_SUCCESS; }

/* A request that the program itself completes, of a call that is not recorded. */
static void unknown(void) {
    MPI_Request request;
    MPI_Grequest_start(query, release, cancel, NULL, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void idle(void) {
    usleep(200000);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = {{"nobody", nobody}, {"truncated", truncated}, {"refused", refused}, {"hang", hang},
                 {"spin", spin},     {"send", head_to_head},   {"unknown", unknown}, {"idle", idle}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) kinds[i].run();
    MPI_Finalize();
    return 0;
}
