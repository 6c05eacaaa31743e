/* Processes that come later, communicators of two groups, and those that are there some time after the call. Some arguments
 * mean something at the root only. */
#include "unmodelled.h"

#define GROUPS(r, c, w) NUMBER("root", r), COMMUNICATOR("comm", c), COMMUNICATOR("new", w)

static int is_root(int root, MPI_Comm c) {
    int rank = -1;
    PMPI_Comm_rank(c, &rank);
    return rank == root;
}

static void spawned(const char *command, int len, int n, int r, MPI_Comm c, MPI_Comm new) {
    if (is_root(r, c))
        unmodelled("MPI_Comm_spawn", 0, (struct argument){"command", TI_TEXT, len, 0, command}, NUMBER("maxprocs", n),
                   GROUPS(r, c, new));
    else
        unmodelled("MPI_Comm_spawn", 0, GROUPS(r, c, new));
}
int ti_c_Comm_spawn(const char *s, char **v, int n, MPI_Info i, int r, MPI_Comm c, MPI_Comm *w, int *codes) {
    int is_on = enter();
    int error = PMPI_Comm_spawn(s, v, n, i, r, c, w, codes);
    if (is_on && error == MPI_SUCCESS) spawned(s, is_root(r, c) ? (int)strlen(s) : 0, n, r, c, *w);
    leave();
    return error;
}
void ti_f_comm_spawn(const char *s, char *v, I n, I i, I r, I c, I w, I codes, I e, size_t len, size_t argument_len) {
    static void *slot;
    MPI_Fint unused;
    int is_on = enter();
    if (!e) e = &unused;
    ((void (*)())ti_fortran(&slot, "comm_spawn"))(s, v, n, i, r, c, w, codes, e, len, argument_len);
    if (is_on && *e == MPI_SUCCESS) spawned(s, without_blanks(s, (int)len), *n, *r, COMM(c), COMM(w));
    leave();
}

/* Commands of C, or of Fortran, which have the same length. */
static void spawned_all(int count, char **c_commands, const char *f_commands, int len, const int *n, int r, MPI_Comm c,
                        MPI_Comm new) {
    const struct argument groups[] = {GROUPS(r, c, new)};
    int used = 0, commands = is_root(r, c) ? count : 0;
    struct argument *all = malloc((2 * commands + COUNT(groups)) * sizeof *all);
    if (!all) abort();
    for (int k = 0; k < commands; k++) {
        const char *command = c_commands ? c_commands[k] : f_commands + (size_t)k * len;
        int own = c_commands ? (int)strlen(command) : without_blanks(command, len);
        all[used++] = (struct argument){"command", TI_TEXT, own, 0, command};
        all[used++] = NUMBER("maxprocs", n[k]);
    }
    memcpy(all + used, groups, sizeof groups);
    ti_unmodelled("MPI_Comm_spawn_multiple", all, used + COUNT(groups), 0);
    free(all);
}
int ti_c_Comm_spawn_multiple(int k, char **s, char ***v, const int *n, const MPI_Info *i, int r, MPI_Comm c, MPI_Comm *w,
                             int *codes) {
    int is_on = enter();
    int error = PMPI_Comm_spawn_multiple(k, s, v, n, i, r, c, w, codes);
    if (is_on && error == MPI_SUCCESS) spawned_all(k, s, NULL, 0, n, r, c, *w);
    leave();
    return error;
}
void ti_f_comm_spawn_multiple(I k, const char *s, char *v, I n, I i, I r, I c, I w, I codes, I e, size_t len,
                              size_t argument_len) {
    static void *slot;
    MPI_Fint unused;
    int is_on = enter();
    if (!e) e = &unused;
    ((void (*)())ti_fortran(&slot, "comm_spawn_multiple"))(k, s, v, n, i, r, c, w, codes, e, len, argument_len);
    if (is_on && *e == MPI_SUCCESS) spawned_all(*k, NULL, s, (int)len, n, *r, COMM(c), COMM(w));
    leave();
}

/* A server and its clients: the name of the port comes last in the record. */
#define MEETING(Name, name)                                                                          \
    static void met_##name(const char *s, int len, int r, MPI_Comm c, MPI_Comm new) {                \
        if (is_root(r, c))                                                                           \
            unmodelled("MPI_" #Name, 0, GROUPS(r, c, new), (struct argument){"port", TI_TEXT, len, 0, s}); \
        else                                                                                         \
            unmodelled("MPI_" #Name, 0, GROUPS(r, c, new));                                          \
    }                                                                                                \
    int ti_c_##Name(const char *s, MPI_Info i, int r, MPI_Comm c, MPI_Comm *w) {                     \
        int is_on = enter();                                                                         \
        int error = PMPI_##Name(s, i, r, c, w);                                                      \
        if (is_on && error == MPI_SUCCESS) met_##name(s, is_root(r, c) ? (int)strlen(s) : 0, r, c, *w); \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(const char *s, I i, I r, I c, I w, I e, size_t len) {                           \
        static void *slot;                                                                           \
        MPI_Fint unused;                                                                             \
        int is_on = enter();                                                                         \
        if (!e) e = &unused;                                                                         \
        ((void (*)())ti_fortran(&slot, #name))(s, i, r, c, w, e, len);                               \
        if (is_on && *e == MPI_SUCCESS) met_##name(s, without_blanks(s, (int)len), *r, COMM(c), COMM(w)); \
        leave();                                                                                     \
    }
MEETING(Comm_connect, comm_connect)
MEETING(Comm_accept, comm_accept)

C_MAKER(Comm_join, (int fd, MPI_Comm *w), (fd, w), NUMBER("fd", fd), COMMUNICATOR("new", *w))
F_MAKER(Comm_join, comm_join, (I fd, I w), (fd, w), NUMBER("fd", *fd), COMMUNICATOR("new", COMM(w)))

#define TWO_GROUPS(a, l, b, r, t, w)                                                                 \
    COMMUNICATOR("comm", a), NUMBER("leader", l), COMMUNICATOR("peer_comm", b), NUMBER("remote_leader", r), \
        NUMBER("tag", t), COMMUNICATOR("new", w)
C_MAKER(Intercomm_create, (MPI_Comm a, int l, MPI_Comm b, int r, int t, MPI_Comm *w), (a, l, b, r, t, w),
        TWO_GROUPS(a, l, b, r, t, *w))
F_MAKER(Intercomm_create, intercomm_create, (I a, I l, I b, I r, I t, I w), (a, l, b, r, t, w),
        TWO_GROUPS(COMM(a), *l, COMM(b), *r, *t, COMM(w)))
C_POST(Comm_idup, (MPI_Comm c, MPI_Comm *w), (c, w), COMMUNICATOR("comm", c))
F_POST(Comm_idup, comm_idup, (I c, I w), (c, w), COMMUNICATOR("comm", COMM(c)))
