/* One-sided communication. */
#include "unmodelled.h"

#define WIN(f) PMPI_Win_f2c(*(f))
#define OP(f) PMPI_Op_f2c(*(f))

static struct argument assertion(int number) {
    static const struct flag all[] = {{MPI_MODE_NOCHECK, "nocheck"},
                                      {MPI_MODE_NOSTORE, "nostore"},
                                      {MPI_MODE_NOPUT, "noput"},
                                      {MPI_MODE_NOPRECEDE, "noprecede"},
                                      {MPI_MODE_NOSUCCEED, "nosucceed"}};
    return flags("assert", number, all, COUNT(all));
}

static const char *operation(MPI_Op op) {
    const struct {
        MPI_Op op;
        const char *name;
    } all[] = {{MPI_SUM, "sum"},   {MPI_REPLACE, "replace"}, {MPI_NO_OP, "no_op"}, {MPI_MAX, "max"},
               {MPI_MIN, "min"},   {MPI_PROD, "prod"},       {MPI_BAND, "band"},   {MPI_BOR, "bor"},
               {MPI_BXOR, "bxor"}, {MPI_LAND, "land"},       {MPI_LOR, "lor"},     {MPI_LXOR, "lxor"},
               {MPI_MAXLOC, "maxloc"}, {MPI_MINLOC, "minloc"}};
    for (int i = 0; i < COUNT(all); i++)
        if (all[i].op == op) return all[i].name;
    return "other";
}

/* The ranks of a group in the world, which are kept until the next such argument of the thread; those of others are -1. */
static struct argument ranks(MPI_Group group) {
    static __thread int *positions, *members, room;
    MPI_Group all;
    int size = 0;
    PMPI_Group_size(group, &size);
    if (size > room) {
        free(positions);
        free(members);
        positions = malloc(size * sizeof *positions);
        members = malloc(size * sizeof *members);
        if (!positions || !members) abort();
        room = size;
        for (int i = 0; i < size; i++) positions[i] = i;
    }
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(group, size, positions, all, members);
    PMPI_Group_free(&all);
    for (int i = 0; i < size; i++)
        if (members[i] == MPI_UNDEFINED) members[i] = -1;
    return (struct argument){"ranks", TI_LIST, size, 0, members};
}
#define GROUP(f) PMPI_Group_f2c(*(f))

/* The first rank of a window chooses the number of its communicator in the trace. */
static struct argument numbered(MPI_Comm c) {
    int rank = 0;
    unsigned number = 0;
    PMPI_Comm_rank(c, &rank);
    if (rank == 0) number = ti_next_communicator();
    PMPI_Bcast(&number, 1, MPI_UNSIGNED, 0, c);
    return NUMBER("number", number);
}

#define MADE(n, u, c, w) NUMBER("size", n), NUMBER("unit", u), COMMUNICATOR("comm", c), WINDOW("new", w), numbered(c)
C_MAKER(Win_create, (void *b, MPI_Aint n, int u, MPI_Info i, MPI_Comm c, MPI_Win *w), (b, n, u, i, c, w),
        MADE(n, u, c, *w))
F_MAKER(Win_create, win_create, (void *b, MPI_Aint *n, I u, I i, I c, I w), (b, n, u, i, c, w),
        MADE(*n, *u, COMM(c), WIN(w)))
C_MAKER(Win_allocate, (MPI_Aint n, int u, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w), (n, u, i, c, b, w),
        MADE(n, u, c, *w))
F_MAKER(Win_allocate, win_allocate, (MPI_Aint *n, I u, I i, I c, void *b, I w), (n, u, i, c, b, w),
        MADE(*n, *u, COMM(c), WIN(w)))
C_MAKER(Win_allocate_shared, (MPI_Aint n, int u, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w), (n, u, i, c, b, w),
        MADE(n, u, c, *w))
F_MAKER(Win_allocate_shared, win_allocate_shared, (MPI_Aint *n, I u, I i, I c, void *b, I w), (n, u, i, c, b, w),
        MADE(*n, *u, COMM(c), WIN(w)))
C_MAKER(Win_create_dynamic, (MPI_Info i, MPI_Comm c, MPI_Win *w), (i, c, w), COMMUNICATOR("comm", c), WINDOW("new", *w),
        numbered(c))
F_MAKER(Win_create_dynamic, win_create_dynamic, (I i, I c, I w), (i, c, w), COMMUNICATOR("comm", COMM(c)),
        WINDOW("new", WIN(w)), numbered(COMM(c)))
C_CALL(Win_attach, (MPI_Win w, void *b, MPI_Aint n), (w, b, n), NUMBER("size", n), WINDOW("win", w))
F_CALL(Win_attach, win_attach, (I w, void *b, MPI_Aint *n), (w, b, n), NUMBER("size", *n), WINDOW("win", WIN(w)))
C_CALL(Win_detach, (MPI_Win w, const void *b), (w, b), WINDOW("win", w))
F_CALL(Win_detach, win_detach, (I w, void *b), (w, b), WINDOW("win", WIN(w)))
C_ENDER(Win_free, MPI_Win, TI_WINDOW, "win")
F_ENDER(Win_free, win_free, WIN, TI_WINDOW, "win")

/* Epochs. */
#define ASSERTED(a, w) assertion(a), WINDOW("win", w)
#define EPOCH(Name, name)                                                                            \
    C_CALL(Name, (int a, MPI_Win w), (a, w), ASSERTED(a, w))                                         \
    F_CALL(Name, name, (I a, I w), (a, w), ASSERTED(*a, WIN(w)))
EPOCH(Win_fence, win_fence)
EPOCH(Win_lock_all, win_lock_all)
#define GROUP_EPOCH(Name, name)                                                                      \
    C_CALL(Name, (MPI_Group g, int a, MPI_Win w), (g, a, w), ranks(g), ASSERTED(a, w)) \
    F_CALL(Name, name, (I g, I a, I w), (g, a, w), ranks(GROUP(g)), ASSERTED(*a, WIN(w)))
GROUP_EPOCH(Win_start, win_start)
GROUP_EPOCH(Win_post, win_post)
#define ON_WINDOW(Name, name)                                                                        \
    C_CALL(Name, (MPI_Win w), (w), WINDOW("win", w))                                                 \
    F_CALL(Name, name, (I w), (w), WINDOW("win", WIN(w)))
ON_WINDOW(Win_complete, win_complete)
ON_WINDOW(Win_wait, win_wait)
ON_WINDOW(Win_unlock_all, win_unlock_all)
ON_WINDOW(Win_flush_all, win_flush_all)
ON_WINDOW(Win_flush_local_all, win_flush_local_all)
ON_WINDOW(Win_sync, win_sync)
C_MAKER(Win_test, (MPI_Win w, int *flag), (w, flag), WINDOW("win", w), NUMBER("done", *flag != 0))
F_MAKER(Win_test, win_test, (I w, I flag), (w, flag), WINDOW("win", WIN(w)), NUMBER("done", *flag != 0))
#define ON_TARGET(Name, name)                                                                        \
    C_CALL(Name, (int r, MPI_Win w), (r, w), NUMBER("target", r), WINDOW("win", w))                  \
    F_CALL(Name, name, (I r, I w), (r, w), NUMBER("target", *r), WINDOW("win", WIN(w)))
ON_TARGET(Win_unlock, win_unlock)
ON_TARGET(Win_flush, win_flush)
ON_TARGET(Win_flush_local, win_flush_local)
#define LOCK(l) TEXT("lock", (l) == MPI_LOCK_SHARED ? "shared" : "exclusive")
C_CALL(Win_lock, (int l, int r, int a, MPI_Win w), (l, r, a, w), LOCK(l), NUMBER("target", r), ASSERTED(a, w))
F_CALL(Win_lock, win_lock, (I l, I r, I a, I w), (l, r, a, w), LOCK(*l), NUMBER("target", *r), ASSERTED(*a, WIN(w)))

/* Transfers: the target's rank in the group of the window, the displacement in units of the target, and bytes of the origin. */
#define PLACE(r, d, bytes) NUMBER("target", r), NUMBER("disp", d), NUMBER("bytes", bytes)
#define WITH_OP(op) TEXT("op", operation(op))
#define C_PLACE PLACE(r, d, bytes_of(n, t))
#define F_PLACE PLACE(*r, *d, bytes_of(*n, TYPE(t)))
#define C_TRANSFER CONST void *b, int n, MPI_Datatype t, int r, MPI_Aint d, int tn, MPI_Datatype tt
#define F_TRANSFER void *b, I n, I t, I r, MPI_Aint *d, I tn, I tt
#define PASSED b, n, t, r, d, tn, tt
#define CONST const
C_CALL(Put, (C_TRANSFER, MPI_Win w), (PASSED, w), C_PLACE, WINDOW("win", w))
C_POST(Rput, (C_TRANSFER, MPI_Win w), (PASSED, w), C_PLACE, WINDOW("win", w))
C_CALL(Accumulate, (C_TRANSFER, MPI_Op o, MPI_Win w), (PASSED, o, w), C_PLACE, WITH_OP(o), WINDOW("win", w))
C_POST(Raccumulate, (C_TRANSFER, MPI_Op o, MPI_Win w), (PASSED, o, w), C_PLACE, WITH_OP(o), WINDOW("win", w))
#undef CONST
#define CONST
C_CALL(Get, (C_TRANSFER, MPI_Win w), (PASSED, w), C_PLACE, WINDOW("win", w))
C_POST(Rget, (C_TRANSFER, MPI_Win w), (PASSED, w), C_PLACE, WINDOW("win", w))
F_CALL(Put, put, (F_TRANSFER, I w), (PASSED, w), F_PLACE, WINDOW("win", WIN(w)))
F_POST(Rput, rput, (F_TRANSFER, I w), (PASSED, w), F_PLACE, WINDOW("win", WIN(w)))
F_CALL(Accumulate, accumulate, (F_TRANSFER, I o, I w), (PASSED, o, w), F_PLACE, WITH_OP(OP(o)), WINDOW("win", WIN(w)))
F_POST(Raccumulate, raccumulate, (F_TRANSFER, I o, I w), (PASSED, o, w), F_PLACE, WITH_OP(OP(o)), WINDOW("win", WIN(w)))
F_CALL(Get, get, (F_TRANSFER, I w), (PASSED, w), F_PLACE, WINDOW("win", WIN(w)))
F_POST(Rget, rget, (F_TRANSFER, I w), (PASSED, w), F_PLACE, WINDOW("win", WIN(w)))

/* Operations with a result buffer. */
#define C_BOTH                                                                                       \
    const void *b, int n, MPI_Datatype t, void *g, int gn, MPI_Datatype gt, int r, MPI_Aint d, int tn, \
        MPI_Datatype tt, MPI_Op o, MPI_Win w
#define F_BOTH void *b, I n, I t, void *g, I gn, I gt, I r, MPI_Aint *d, I tn, I tt, I o, I w
#define PASSED_BOTH b, n, t, g, gn, gt, r, d, tn, tt, o, w
#define C_FETCHED C_PLACE, NUMBER("fetched", bytes_of(gn, gt)), WITH_OP(o), WINDOW("win", w)
#define F_FETCHED F_PLACE, NUMBER("fetched", bytes_of(*gn, TYPE(gt))), WITH_OP(OP(o)), WINDOW("win", WIN(w))
C_CALL(Get_accumulate, (C_BOTH), (PASSED_BOTH), C_FETCHED)
F_CALL(Get_accumulate, get_accumulate, (F_BOTH), (PASSED_BOTH), F_FETCHED)
C_POST(Rget_accumulate, (C_BOTH), (PASSED_BOTH), C_FETCHED)
F_POST(Rget_accumulate, rget_accumulate, (F_BOTH), (PASSED_BOTH), F_FETCHED)
C_CALL(Fetch_and_op, (const void *b, void *g, MPI_Datatype t, int r, MPI_Aint d, MPI_Op o, MPI_Win w),
       (b, g, t, r, d, o, w), PLACE(r, d, bytes_of(1, t)), WITH_OP(o), WINDOW("win", w))
F_CALL(Fetch_and_op, fetch_and_op, (void *b, void *g, I t, I r, MPI_Aint *d, I o, I w), (b, g, t, r, d, o, w),
       PLACE(*r, *d, bytes_of(1, TYPE(t))), WITH_OP(OP(o)), WINDOW("win", WIN(w)))
C_CALL(Compare_and_swap, (const void *b, const void *x, void *g, MPI_Datatype t, int r, MPI_Aint d, MPI_Win w),
       (b, x, g, t, r, d, w), PLACE(r, d, bytes_of(1, t)), WINDOW("win", w))
F_CALL(Compare_and_swap, compare_and_swap, (void *b, void *x, void *g, I t, I r, MPI_Aint *d, I w),
       (b, x, g, t, r, d, w), PLACE(*r, *d, bytes_of(1, TYPE(t))), WINDOW("win", WIN(w)))
