/* Calls on requests. Handles are registered before the call, which may overwrite them. */
#include "tracer.h"

/* Requests of C, or of Fortran where `c` is NULL. */
struct requests {
    int count;
    const MPI_Request *c;
    const MPI_Fint *f;
};

/* Statuses of C, or of Fortran, or none. */
struct statuses {
    const MPI_Status *c;
    const MPI_Fint *f;
};

static void note(struct requests requests) {
    for (int i = 0; i < requests.count; i++) {
        MPI_Request handle = requests.c ? requests.c[i] : REQUEST(&requests.f[i]);
        uintptr_t address = requests.c ? ADDRESS(&requests.c[i]) : ADDRESS(&requests.f[i]);
        ti_add_request(KEY(handle), address, handle == MPI_REQUEST_NULL);
    }
}

/* Records that the request at a position has completed; its status is at an index. */
static void completed(int position, struct statuses statuses, int index) {
    if (!ti_wants_status(position) || (!statuses.c && !statuses.f)) {
        ti_complete(position);
        return;
    }
    MPI_Status status;
    int is_cancelled = 0;
    if (statuses.c)
        status = statuses.c[index];
    else
        PMPI_Status_f2c(&statuses.f[index * F_STATUS_INTS], &status);
    PMPI_Test_cancelled(&status, &is_cancelled);
    ti_complete_with(position, status.MPI_SOURCE, status.MPI_TAG, is_cancelled);
}

/* Replaces MPI_STATUS_IGNORE by a status of the tracer, and MPI_STATUSES_IGNORE if the status of some request is needed. */
#define ONE_C(status)                                                                                \
    MPI_Status own_status;                                                                           \
    MPI_Status *seen = (status) == MPI_STATUS_IGNORE ? &own_status : (status);                       \
    struct statuses told = {seen, NULL}
#define ONE_F(status)                                                                                \
    MPI_Fint own_status[F_STATUS_INTS];                                                              \
    MPI_Fint *seen = (status) == MPI_F_STATUS_IGNORE ? own_status : (status);                        \
    struct statuses told = {NULL, seen}
#define MANY_C(statuses, count)                                                                      \
    MPI_Status *own_statuses = NULL, *seen = (statuses);                                             \
    if (is_on && seen == MPI_STATUSES_IGNORE && (count) > 0 && ti_wants_status(-1)) {                \
        own_statuses = malloc((count) * sizeof *own_statuses);                                       \
        if (own_statuses) seen = own_statuses;                                                       \
    }                                                                                                \
    struct statuses told = {seen == MPI_STATUSES_IGNORE ? NULL : seen, NULL}
#define MANY_F(statuses, count)                                                                      \
    MPI_Fint *own_statuses = NULL, *seen = (statuses);                                               \
    if (is_on && seen == MPI_F_STATUSES_IGNORE && (count) > 0 && ti_wants_status(-1)) {              \
        own_statuses = malloc((count) * F_STATUS_INTS * sizeof *own_statuses);                       \
        if (own_statuses) seen = own_statuses;                                                       \
    }                                                                                                \
    struct statuses told = {NULL, seen == MPI_F_STATUSES_IGNORE ? NULL : seen}

static void complete_all(int count, struct statuses told) {
    for (int i = 0; i < count; i++) completed(i, told, i);
}

int ti_c_Wait(MPI_Request *r, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){1, r, NULL});
    ONE_C(status);
    int error = PMPI_Wait(r, seen);
    if (is_on && error == MPI_SUCCESS) {
        completed(0, told, 0);
        ti_completion("wait");
    }
    leave();
    return error;
}

void ti_f_wait(MPI_Fint *r, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){1, NULL, r});
    ONE_F(status);
    CALL_FORTRAN(wait, r, seen);
    if (is_on && *e == MPI_SUCCESS) {
        completed(0, told, 0);
        ti_completion("wait");
    }
    leave();
}

int ti_c_Test(MPI_Request *r, int *flag, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){1, r, NULL});
    ONE_C(status);
    int error = PMPI_Test(r, flag, seen);
    if (is_on && error == MPI_SUCCESS) {
        if (*flag) completed(0, told, 0);
        ti_completion("test");
    }
    leave();
    return error;
}

void ti_f_test(MPI_Fint *r, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){1, NULL, r});
    ONE_F(status);
    CALL_FORTRAN(test, r, flag, seen);
    if (is_on && *e == MPI_SUCCESS) {
        if (*flag) completed(0, told, 0);
        ti_completion("test");
    }
    leave();
}

int ti_c_Waitall(int n, MPI_Request *r, MPI_Status *statuses) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    MANY_C(statuses, n);
    int error = PMPI_Waitall(n, r, seen);
    if (is_on && error == MPI_SUCCESS) {
        complete_all(n, told);
        ti_completion("waitall");
    }
    free(own_statuses);
    leave();
    return error;
}

void ti_f_waitall(MPI_Fint *n, MPI_Fint *r, MPI_Fint *statuses, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){*n, NULL, r});
    MANY_F(statuses, *n);
    CALL_FORTRAN(waitall, n, r, seen);
    if (is_on && *e == MPI_SUCCESS) {
        complete_all(*n, told);
        ti_completion("waitall");
    }
    free(own_statuses);
    leave();
}

int ti_c_Testall(int n, MPI_Request *r, int *flag, MPI_Status *statuses) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    MANY_C(statuses, n);
    int error = PMPI_Testall(n, r, flag, seen);
    if (is_on && error == MPI_SUCCESS) {
        if (*flag) complete_all(n, told);
        ti_completion("testall");
    }
    free(own_statuses);
    leave();
    return error;
}

void ti_f_testall(MPI_Fint *n, MPI_Fint *r, MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){*n, NULL, r});
    MANY_F(statuses, *n);
    CALL_FORTRAN(testall, n, r, flag, seen);
    if (is_on && *e == MPI_SUCCESS) {
        if (*flag) complete_all(*n, told);
        ti_completion("testall");
    }
    free(own_statuses);
    leave();
}

int ti_c_Waitany(int n, MPI_Request *r, int *index, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    ONE_C(status);
    int error = PMPI_Waitany(n, r, index, seen);
    if (is_on && error == MPI_SUCCESS) {
        if (*index != MPI_UNDEFINED) completed(*index, told, 0);
        ti_completion("waitany");
    }
    leave();
    return error;
}

/* Fortran counts from 1. */
void ti_f_waitany(MPI_Fint *n, MPI_Fint *r, MPI_Fint *index, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){*n, NULL, r});
    ONE_F(status);
    CALL_FORTRAN(waitany, n, r, index, seen);
    if (is_on && *e == MPI_SUCCESS) {
        if (*index != MPI_UNDEFINED) completed(*index - 1, told, 0);
        ti_completion("waitany");
    }
    leave();
}

int ti_c_Testany(int n, MPI_Request *r, int *index, int *flag, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    ONE_C(status);
    int error = PMPI_Testany(n, r, index, flag, seen);
    if (is_on && error == MPI_SUCCESS) {
        if (*flag && *index != MPI_UNDEFINED) completed(*index, told, 0);
        ti_completion("testany");
    }
    leave();
    return error;
}

void ti_f_testany(MPI_Fint *n, MPI_Fint *r, MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){*n, NULL, r});
    ONE_F(status);
    CALL_FORTRAN(testany, n, r, index, flag, seen);
    if (is_on && *e == MPI_SUCCESS) {
        if (*flag && *index != MPI_UNDEFINED) completed(*index - 1, told, 0);
        ti_completion("testany");
    }
    leave();
}

#define SOME(Name, name)                                                                             \
    int ti_c_##Name(int n, MPI_Request *r, int *done, int *indices, MPI_Status *statuses) {          \
        int is_on = enter();                                                                         \
        if (is_on) note((struct requests){n, r, NULL});                                              \
        MANY_C(statuses, n);                                                                         \
        int error = PMPI_##Name(n, r, done, indices, seen);                                          \
        if (is_on && error == MPI_SUCCESS) {                                                         \
            for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++) completed(indices[i], told, i); \
            ti_completion(#name);                                                                    \
        }                                                                                            \
        free(own_statuses);                                                                          \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(MPI_Fint *n, MPI_Fint *r, MPI_Fint *done, MPI_Fint *indices, MPI_Fint *statuses, \
                     MPI_Fint *e) {                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) note((struct requests){*n, NULL, r});                                             \
        MANY_F(statuses, *n);                                                                        \
        CALL_FORTRAN(name, n, r, done, indices, seen);                                               \
        if (is_on && *e == MPI_SUCCESS) {                                                            \
            for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++) completed(indices[i] - 1, told, i); \
            ti_completion(#name);                                                                    \
        }                                                                                            \
        free(own_statuses);                                                                          \
        leave();                                                                                     \
    }

SOME(Waitsome, waitsome)
SOME(Testsome, testsome)

/* Recorded before the call, since a start sends messages. */
#define ON_REQUEST(Name, name, verb)                                                                 \
    int ti_c_##Name(MPI_Request *r) {                                                                \
        if (enter()) {                                                                               \
            note((struct requests){1, r, NULL});                                                     \
            ti_request(verb);                                                                        \
        }                                                                                            \
        int error = PMPI_##Name(r);                                                                  \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(MPI_Fint *r, MPI_Fint *e) {                                                     \
        if (enter()) {                                                                               \
            note((struct requests){1, NULL, r});                                                     \
            ti_request(verb);                                                                        \
        }                                                                                            \
        CALL_FORTRAN(name, r);                                                                       \
        leave();                                                                                     \
    }

ON_REQUEST(Start, start, "start")
ON_REQUEST(Cancel, cancel, "cancel")
ON_REQUEST(Request_free, request_free, "request_free")

int ti_c_Startall(int n, MPI_Request *r) {
    if (enter()) {
        note((struct requests){n, r, NULL});
        ti_request("startall");
    }
    int error = PMPI_Startall(n, r);
    leave();
    return error;
}

void ti_f_startall(MPI_Fint *n, MPI_Fint *r, MPI_Fint *e) {
    if (enter()) {
        note((struct requests){*n, NULL, r});
        ti_request("startall");
    }
    CALL_FORTRAN(startall, n, r);
    leave();
}

int ti_c_Request_get_status(MPI_Request r, int *flag, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){1, &r, NULL});
    int error = PMPI_Request_get_status(r, flag, status);
    if (is_on && error == MPI_SUCCESS) ti_get_status(*flag);
    leave();
    return error;
}

void ti_f_request_get_status(MPI_Fint *r, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){1, NULL, r});
    CALL_FORTRAN(request_get_status, r, flag, status);
    if (is_on && *e == MPI_SUCCESS) ti_get_status(*flag);
    leave();
}
