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

static MPI_Status status_at(struct statuses statuses, int index) {
    MPI_Status status;
    if (statuses.c) return statuses.c[index];
    PMPI_Status_f2c(&statuses.f[index * F_STATUS_INTS], &status);
    return status;
}

/* Whether a call on requests has had its effect: if it has not refused its arguments, the operations of its requests may have
   failed, which does not keep them from being complete. */
static int has_effect(int is_on, int error) {
    check(is_on, error);
    return is_on && !is_refused(error);
}

/* Records that the request at a position has completed; its status is at an index. The error is that of the call. Returns 0 if
   the request has not completed because of the failure of another one. */
static int completed(int position, struct statuses statuses, int index, int error) {
    int has_status = statuses.c || statuses.f;
    if (error != MPI_SUCCESS && has_status) {
        MPI_Status status = status_at(statuses, index);
        int class = class_of(class_of(error) == MPI_ERR_IN_STATUS ? status.MPI_ERROR : error);
        if (class == MPI_ERR_PENDING) return 0;
        int64_t size = class == MPI_ERR_TRUNCATE ? size_of_message(&status) : 0;
        if (size > 0) ti_truncated(position, size);
    }
    if (!ti_wants_status(position) || !has_status) {
        ti_complete(position);
        return 1;
    }
    MPI_Status status = status_at(statuses, index);
    int is_cancelled = 0;
    PMPI_Test_cancelled(&status, &is_cancelled);
    ti_complete_with(position, status.MPI_SOURCE, status.MPI_TAG, is_cancelled);
    return 1;
}

/* Statuses of the tracer, for each thread. */
static void *own_statuses(size_t bytes) {
    static __thread void *statuses;
    static __thread size_t room;
    if (room < bytes) {
        void *larger = realloc(statuses, bytes);
        if (!larger) abort();
        statuses = larger;
        room = bytes;
    }
    return statuses;
}

/* Replaces MPI_STATUS_IGNORE by a status of the tracer, and MPI_STATUSES_IGNORE if there is a receive among the requests. */
#define ONE_C(status)                                                                                \
    MPI_Status own_status;                                                                           \
    MPI_Status *seen = (status) == MPI_STATUS_IGNORE ? &own_status : (status);                       \
    struct statuses told = {seen, NULL}
#define ONE_F(status)                                                                                \
    MPI_Fint own_status[F_STATUS_INTS];                                                              \
    MPI_Fint *seen = (status) == MPI_F_STATUS_IGNORE ? own_status : (status);                        \
    struct statuses told = {NULL, seen}
#define MANY_C(statuses, count)                                                                      \
    MPI_Status *seen = (statuses);                                                                   \
    if (is_on && seen == MPI_STATUSES_IGNORE && (count) > 0 && ti_wants_status(-1))                  \
        seen = own_statuses((count) * sizeof *seen);                                                 \
    struct statuses told = {seen == MPI_STATUSES_IGNORE ? NULL : seen, NULL}
#define MANY_F(statuses, count)                                                                      \
    MPI_Fint *seen = (statuses);                                                                     \
    if (is_on && seen == MPI_F_STATUSES_IGNORE && (count) > 0 && ti_wants_status(-1))                \
        seen = own_statuses((count) * F_STATUS_INTS * sizeof *seen);                                 \
    struct statuses told = {NULL, seen == MPI_F_STATUSES_IGNORE ? NULL : seen}

/* A call that waits for all requests, or tests all, is one for some where not all have completed. */
static void complete_all(const char *all, const char *some, int count, struct statuses told, int error) {
    int done = 0;
    for (int i = 0; i < count; i++) done += completed(i, told, i, error);
    ti_completion(done == count ? all : some);
}

int ti_c_Wait(MPI_Request *r, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){1, r, NULL});
    ONE_C(status);
    if (is_on) ti_begin_completion("wait");
    int error = PMPI_Wait(r, seen);
    if (has_effect(is_on, error)) {
        completed(0, told, 0, error);
        ti_completion("wait");
    }
    leave();
    return error;
}

void ti_f_wait(MPI_Fint *r, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){1, NULL, r});
    ONE_F(status);
    if (is_on) ti_begin_completion("wait");
    CALL_FORTRAN(wait, r, seen);
    if (has_effect(is_on, *e)) {
        completed(0, told, 0, *e);
        ti_completion("wait");
    }
    leave();
}

int ti_c_Test(MPI_Request *r, int *flag, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){1, r, NULL});
    ONE_C(status);
    int error = PMPI_Test(r, flag, seen);
    if (has_effect(is_on, error)) {
        if (*flag) completed(0, told, 0, error);
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
    if (has_effect(is_on, *e)) {
        if (*flag) completed(0, told, 0, *e);
        ti_completion("test");
    }
    leave();
}

int ti_c_Waitall(int n, MPI_Request *r, MPI_Status *statuses) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    MANY_C(statuses, n);
    if (is_on) ti_begin_completion("waitall");
    int error = PMPI_Waitall(n, r, seen);
    if (has_effect(is_on, error)) {
        complete_all("waitall", "waitsome", n, told, error);
    }
    leave();
    return error;
}

void ti_f_waitall(MPI_Fint *n, MPI_Fint *r, MPI_Fint *statuses, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){*n, NULL, r});
    MANY_F(statuses, *n);
    if (is_on) ti_begin_completion("waitall");
    CALL_FORTRAN(waitall, n, r, seen);
    if (has_effect(is_on, *e)) {
        complete_all("waitall", "waitsome", *n, told, *e);
    }
    leave();
}

int ti_c_Testall(int n, MPI_Request *r, int *flag, MPI_Status *statuses) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    MANY_C(statuses, n);
    int error = PMPI_Testall(n, r, flag, seen);
    if (has_effect(is_on, error)) {
        if (*flag || error != MPI_SUCCESS)
            complete_all("testall", "testsome", n, told, error);
        else
            ti_completion("testall");
    }
    leave();
    return error;
}

void ti_f_testall(MPI_Fint *n, MPI_Fint *r, MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){*n, NULL, r});
    MANY_F(statuses, *n);
    CALL_FORTRAN(testall, n, r, flag, seen);
    if (has_effect(is_on, *e)) {
        if (*flag || *e != MPI_SUCCESS)
            complete_all("testall", "testsome", *n, told, *e);
        else
            ti_completion("testall");
    }
    leave();
}

int ti_c_Waitany(int n, MPI_Request *r, int *index, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    ONE_C(status);
    int error = PMPI_Waitany(n, r, index, seen);
    if (has_effect(is_on, error)) {
        if (*index != MPI_UNDEFINED) completed(*index, told, 0, error);
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
    if (has_effect(is_on, *e)) {
        if (*index != MPI_UNDEFINED) completed(*index - 1, told, 0, *e);
        ti_completion("waitany");
    }
    leave();
}

int ti_c_Testany(int n, MPI_Request *r, int *index, int *flag, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){n, r, NULL});
    ONE_C(status);
    int error = PMPI_Testany(n, r, index, flag, seen);
    if (has_effect(is_on, error)) {
        if (*flag && *index != MPI_UNDEFINED) completed(*index, told, 0, error);
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
    if (has_effect(is_on, *e)) {
        if (*flag && *index != MPI_UNDEFINED) completed(*index - 1, told, 0, *e);
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
        if (has_effect(is_on, error)) {                                                         \
            for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++) completed(indices[i], told, i, error); \
            ti_completion(#name);                                                                    \
        }                                                                                            \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(MPI_Fint *n, MPI_Fint *r, MPI_Fint *done, MPI_Fint *indices, MPI_Fint *statuses, \
                     MPI_Fint *e) {                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) note((struct requests){*n, NULL, r});                                             \
        MANY_F(statuses, *n);                                                                        \
        CALL_FORTRAN(name, n, r, done, indices, seen);                                               \
        if (has_effect(is_on, *e)) {                                                            \
            for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++) completed(indices[i] - 1, told, i, *e); \
            ti_completion(#name);                                                                    \
        }                                                                                            \
        leave();                                                                                     \
    }

SOME(Waitsome, waitsome)
SOME(Testsome, testsome)

/* Recorded before the call, since a start sends messages. */
#define ON_REQUEST(Name, name, verb)                                                                 \
    int ti_c_##Name(MPI_Request *r) {                                                                \
        int is_on = enter();                                                                         \
        if (is_on) {                                                                                 \
            note((struct requests){1, r, NULL});                                                     \
            ti_request(verb);                                                                        \
        }                                                                                            \
        int error = PMPI_##Name(r);                                                                  \
        check(is_on, error);                                                                         \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(MPI_Fint *r, MPI_Fint *e) {                                                     \
        int is_on = enter();                                                                         \
        if (is_on) {                                                                                 \
            note((struct requests){1, NULL, r});                                                     \
            ti_request(verb);                                                                        \
        }                                                                                            \
        CALL_FORTRAN(name, r);                                                                       \
        check(is_on, *e);                                                                            \
        leave();                                                                                     \
    }

ON_REQUEST(Start, start, "start")
ON_REQUEST(Cancel, cancel, "cancel")
ON_REQUEST(Request_free, request_free, "request_free")

int ti_c_Startall(int n, MPI_Request *r) {
    int is_on = enter();
    if (is_on) {
        note((struct requests){n, r, NULL});
        ti_request("startall");
    }
    int error = PMPI_Startall(n, r);
    check(is_on, error);
    leave();
    return error;
}

void ti_f_startall(MPI_Fint *n, MPI_Fint *r, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) {
        note((struct requests){*n, NULL, r});
        ti_request("startall");
    }
    CALL_FORTRAN(startall, n, r);
    check(is_on, *e);
    leave();
}

int ti_c_Request_get_status(MPI_Request r, int *flag, MPI_Status *status) {
    int is_on = enter();
    if (is_on) note((struct requests){1, &r, NULL});
    int error = PMPI_Request_get_status(r, flag, status);
    if (has_effect(is_on, error)) ti_get_status(*flag);
    leave();
    return error;
}

void ti_f_request_get_status(MPI_Fint *r, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) note((struct requests){1, NULL, r});
    CALL_FORTRAN(request_get_status, r, flag, status);
    if (has_effect(is_on, *e)) ti_get_status(*flag);
    leave();
}
