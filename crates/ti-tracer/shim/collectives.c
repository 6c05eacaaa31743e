/* Collective operations, each in four forms: blocking and not, C and Fortran. They are recorded before the call. */
#include "tracer.h"

/* Datatypes of C, or of Fortran where `c` is NULL. */
struct types {
    const MPI_Datatype *c;
    const MPI_Fint *f;
};

static MPI_Datatype type_at(struct types types, int index) {
    return types.c ? types.c[index] : TYPE(&types.f[index]);
}

static int size_of(MPI_Comm c) {
    int size = 0, is_inter = 0;
    PMPI_Comm_test_inter(c, &is_inter);
    if (is_inter)
        PMPI_Comm_remote_size(c, &size);
    else
        PMPI_Comm_size(c, &size);
    return size;
}

static int is_root(int root, MPI_Comm c) {
    int rank = 0;
    PMPI_Comm_rank(c, &rank);
    return rank == root;
}

/* A buffer for the fields of one line, for each thread; it grows to the largest communicator. */
static __thread int64_t *fields;
static __thread int fields_len, fields_room;

static void add(int64_t field) {
    if (fields_len == fields_room) {
        int room = fields_room ? 2 * fields_room : 64;
        int64_t *larger = realloc(fields, room * sizeof *fields);
        if (!larger) abort();
        fields = larger;
        fields_room = room;
    }
    fields[fields_len++] = field;
}

static void finish(const char *verb, int posts, MPI_Comm c) {
    ti_collective(verb, posts, KEY(c), fields, fields_len);
    fields_len = 0;
}

/* A root that the communicator does not have is negative, which the recorder takes for an argument that MPI refuses. */
static void add_root(int root, MPI_Comm c) { add(root < size_of(c) ? root : -1); }

static void add_counts(const int *counts, MPI_Datatype t, int size) {
    for (int i = 0; i < size; i++) add(counts ? bytes_of(counts[i], t) : 0);
}

static int64_t sum(const int *counts, MPI_Datatype t, int size) {
    int64_t all = 0;
    for (int i = 0; i < size; i++) all += bytes_of(counts[i], t);
    return all;
}

static void barrier(const char *verb, int posts, MPI_Comm c) { finish(verb, posts, c); }

static void bcast(const char *verb, int posts, int n, MPI_Datatype t, int root, MPI_Comm c) {
    add(bytes_of(n, t));
    add_root(root, c);
    finish(verb, posts, c);
}

static void reduce(const char *verb, int posts, int n, MPI_Datatype t, int root, MPI_Comm c) {
    add(bytes_of(n, t));
    add(0);
    add_root(root, c);
    finish(verb, posts, c);
}

static void reduction(const char *verb, int posts, int n, MPI_Datatype t, MPI_Comm c) {
    add(bytes_of(n, t));
    add(0);
    finish(verb, posts, c);
}

/* Size sent to each rank; with MPI_IN_PLACE it is the size received from each. */
static void exchange(const char *verb, int posts, int in_place, int sn, MPI_Datatype st, int n, MPI_Datatype t,
                     MPI_Comm c) {
    int64_t received = bytes_of(n, t);
    add(in_place ? received : bytes_of(sn, st));
    add(received);
    finish(verb, posts, c);
}

/* Only the root passes a receive count; the other ranks use their send count, which is the same. */
static void gather(const char *verb, int posts, int in_place, int sn, MPI_Datatype st, int n, MPI_Datatype t,
                   int root, MPI_Comm c) {
    int64_t received = is_root(root, c) ? bytes_of(n, t) : bytes_of(sn, st);
    add(in_place ? received : bytes_of(sn, st));
    add(received);
    add_root(root, c);
    finish(verb, posts, c);
}

static void scatter(const char *verb, int posts, int in_place, int sn, MPI_Datatype st, int n, MPI_Datatype t,
                    int root, MPI_Comm c) {
    int64_t sent = is_root(root, c) ? bytes_of(sn, st) : bytes_of(n, t);
    add(sent);
    add(in_place ? sent : bytes_of(n, t));
    add_root(root, c);
    finish(verb, posts, c);
}

/* Ranks other than the root do not know the counts, and have zeros. */
static void gatherv(const char *verb, int posts, int in_place, int sn, MPI_Datatype st, const int *counts,
                    MPI_Datatype t, int root, MPI_Comm c) {
    int rooted = is_root(root, c);
    add(in_place && rooted ? bytes_of(counts[root], t) : bytes_of(sn, st));
    add_counts(rooted ? counts : NULL, t, size_of(c));
    add_root(root, c);
    finish(verb, posts, c);
}

static void scatterv(const char *verb, int posts, int in_place, const int *counts, MPI_Datatype st, int n,
                     MPI_Datatype t, int root, MPI_Comm c) {
    int rooted = is_root(root, c);
    add_counts(rooted ? counts : NULL, st, size_of(c));
    add(in_place && rooted ? bytes_of(counts[root], st) : bytes_of(n, t));
    add_root(root, c);
    finish(verb, posts, c);
}

static void allgatherv(const char *verb, int posts, int in_place, int sn, MPI_Datatype st, const int *counts,
                       MPI_Datatype t, MPI_Comm c) {
    int rank = 0;
    PMPI_Comm_rank(c, &rank);
    add(in_place ? bytes_of(counts[rank], t) : bytes_of(sn, st));
    add_counts(counts, t, size_of(c));
    finish(verb, posts, c);
}

static void alltoallv(const char *verb, int posts, int in_place, const int *sn, MPI_Datatype st, const int *counts,
                      MPI_Datatype t, MPI_Comm c) {
    int size = size_of(c);
    if (in_place) {
        sn = counts;
        st = t;
    }
    add(sum(sn, st, size));
    add_counts(sn, st, size);
    add(sum(counts, t, size));
    add_counts(counts, t, size);
    finish(verb, posts, c);
}

static void add_typed(const int *counts, struct types types, int size) {
    int64_t all = 0;
    for (int i = 0; i < size; i++) all += bytes_of(counts[i], type_at(types, i));
    add(all);
    for (int i = 0; i < size; i++) add(bytes_of(counts[i], type_at(types, i)));
}

static void alltoallw(const char *verb, int posts, int in_place, const int *sn, struct types st, const int *counts,
                      struct types t, MPI_Comm c) {
    int size = size_of(c);
    add_typed(in_place ? counts : sn, in_place ? t : st, size);
    add_typed(counts, t, size);
    finish(verb, posts, c);
}

static void reduce_scatter(const char *verb, int posts, const int *counts, MPI_Datatype t, MPI_Comm c) {
    add_counts(counts, t, size_of(c));
    add(0);
    finish(verb, posts, c);
}

static void reduce_scatter_block(const char *verb, int posts, int n, MPI_Datatype t, MPI_Comm c) {
    for (int i = size_of(c); i > 0; i--) add(bytes_of(n, t));
    add(0);
    finish(verb, posts, c);
}

/* Ranks with which a communicator with a topology exchanges, and the bytes with each. */
struct side {
    int count;
    int *ranks;
    int64_t *known, *bytes;
    int used;
};

static void make_side(struct side *side, int count) {
    *side = (struct side){count, calloc(count + 1, sizeof(int)), calloc(count + 1, sizeof(int64_t)),
                          calloc(count + 1, sizeof(int64_t)), 0};
    if (!side->ranks || !side->known || !side->bytes) abort();
}

static void find_neighbors(MPI_Comm c, struct side *from, struct side *to) {
    int kind = MPI_UNDEFINED, rank = 0, in = 0, out = 0, weighted = 0;
    PMPI_Topo_test(c, &kind);
    PMPI_Comm_rank(c, &rank);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(c, &in);
        make_side(from, 2 * in);
        make_side(to, 2 * in);
        for (int i = 0; i < in; i++) PMPI_Cart_shift(c, i, 1, &from->ranks[2 * i], &from->ranks[2 * i + 1]);
        for (int i = 0; i < 2 * in; i++) to->ranks[i] = from->ranks[i];
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(c, rank, &in);
        make_side(from, in);
        make_side(to, in);
        PMPI_Graph_neighbors(c, rank, in, from->ranks);
        PMPI_Graph_neighbors(c, rank, in, to->ranks);
    } else {
        if (kind == MPI_DIST_GRAPH) PMPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
        make_side(from, in);
        make_side(to, out);
        int *weights = calloc(in + out + 1, sizeof *weights);
        if (!weights) abort();
        if (kind == MPI_DIST_GRAPH)
            PMPI_Dist_graph_neighbors(c, in, from->ranks, weights, out, to->ranks, weights + in);
        free(weights);
    }
}

/* Size of the exchange with the neighbour at an index: one count or one per neighbour, one type or one per neighbour. */
struct amounts {
    int count;
    const int *counts;
    MPI_Datatype type;
    struct types types;
};

static void fill(struct side *side, struct amounts amounts) {
    int has_types = amounts.types.c || amounts.types.f;
    for (int i = 0; i < side->count; i++) {
        if (side->ranks[i] == MPI_PROC_NULL) continue;
        MPI_Datatype type = has_types ? type_at(amounts.types, i) : amounts.type;
        side->known[side->used] = side->ranks[i];
        side->bytes[side->used++] = bytes_of(amounts.counts ? amounts.counts[i] : amounts.count, type);
    }
}

static void free_side(struct side *side) {
    free(side->ranks);
    free(side->known);
    free(side->bytes);
}

static void neighbors(int posts, struct amounts sent, struct amounts received, MPI_Comm c) {
    struct side from, to;
    find_neighbors(c, &from, &to);
    fill(&to, sent);
    fill(&from, received);
    ti_neighbors(posts, KEY(c), to.used, to.known, to.bytes, from.used, from.known, from.bytes);
    free_side(&from);
    free_side(&to);
}

#define SAME(n, t) ((struct amounts){.count = (n), .type = (t)})
#define EACH(counts_, t) ((struct amounts){.counts = (counts_), .type = (t)})
#define TYPED_C(counts_, t) ((struct amounts){.counts = (counts_), .types = {(t), NULL}})
#define TYPED_F(counts_, t) ((struct amounts){.counts = (counts_), .types = {NULL, (t)}})

/* Persistent collective operations, of MPI 4 or as the extension of Open MPI, with the functions and their names in src/symbols.rs. */
#if MPI_VERSION >= 4
#define PERSISTENT_CALL(Name) PMPI_##Name##_init
#elif defined(TI_MPIX)
#include <mpi-ext.h>
#define PERSISTENT_CALL(Name) PMPIX_##Name##_init
#endif
#ifdef PERSISTENT_CALL
#define PERSISTENT(Name, VERB, C_PARAMETERS, C_ARGUMENTS, C_RECORD)                                  \
    int ti_c_##Name##_init(UNWRAP C_PARAMETERS, MPI_Info info, MPI_Request *r) {                     \
        const char *verb = "i" VERB;                                                                 \
        const int posts = 2;                                                                         \
        (void)verb;                                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) C_RECORD;                                                                         \
        int error = PERSISTENT_CALL(Name)(UNWRAP C_ARGUMENTS, info, r);                              \
        check(is_on, error);                                                                         \
        if (is_on && error == MPI_SUCCESS) ti_bind(KEY(*r), ADDRESS(r), 1);                          \
        leave();                                                                                     \
        return error;                                                                                \
    }
#else
#define PERSISTENT(Name, VERB, C_PARAMETERS, C_ARGUMENTS, C_RECORD)
#endif

/* Defines MPI_Name, MPI_Iname and MPI_Name_init, and mpi_name and mpi_iname: parameters, arguments, and what records the call,
   with `verb` and `posts` of the form. */
#define COLLECTIVE(Name, name, VERB, C_PARAMETERS, C_ARGUMENTS, C_RECORD, F_PARAMETERS, F_ARGUMENTS, F_RECORD) \
    int ti_c_##Name(UNWRAP C_PARAMETERS) {                                                           \
        const char *verb = VERB;                                                                     \
        const int posts = 0;                                                                         \
        (void)verb;                                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) C_RECORD;                                                                         \
        int error = PMPI_##Name(UNWRAP C_ARGUMENTS);                                                 \
        check(is_on, error);                                                                         \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    int ti_c_I##name(UNWRAP C_PARAMETERS, MPI_Request *r) {                                          \
        const char *verb = "i" VERB;                                                                 \
        const int posts = 1;                                                                         \
        (void)verb;                                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) C_RECORD;                                                                         \
        int error = PMPI_I##name(UNWRAP C_ARGUMENTS, r);                                             \
        check(is_on, error);                                                                         \
        if (is_on && error == MPI_SUCCESS) ti_bind(KEY(*r), ADDRESS(r), 0);                          \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    PERSISTENT(Name, VERB, C_PARAMETERS, C_ARGUMENTS, C_RECORD)                                      \
    void ti_f_##name(UNWRAP F_PARAMETERS, MPI_Fint *e) {                                             \
        const char *verb = VERB;                                                                     \
        const int posts = 0;                                                                         \
        (void)verb;                                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) F_RECORD;                                                                         \
        CALL_FORTRAN(name, UNWRAP F_ARGUMENTS);                                                      \
        check(is_on, *e);                                                                            \
        leave();                                                                                     \
    }                                                                                                \
    void ti_f_i##name(UNWRAP F_PARAMETERS, MPI_Fint *r, MPI_Fint *e) {                               \
        const char *verb = "i" VERB;                                                                 \
        const int posts = 1;                                                                         \
        (void)verb;                                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) F_RECORD;                                                                         \
        CALL_FORTRAN(i##name, UNWRAP F_ARGUMENTS, r);                                                \
        check(is_on, *e);                                                                            \
        if (is_on && *e == MPI_SUCCESS) ti_bind(KEY(REQUEST(r)), ADDRESS(r), 0);                     \
        leave();                                                                                     \
    }

#define I MPI_Fint *

COLLECTIVE(Barrier, barrier, "barrier", (MPI_Comm c), (c), barrier(verb, posts, c), (I c), (c),
           barrier(verb, posts, COMM(c)))

COLLECTIVE(Bcast, bcast, "bcast", (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c),
           bcast(verb, posts, n, t, root, c), (void *b, I n, I t, I root, I c), (b, n, t, root, c),
           bcast(verb, posts, *n, TYPE(t), *root, COMM(c)))

COLLECTIVE(Reduce, reduce, "reduce",
           (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c), (s, b, n, t, o, root, c),
           reduce(verb, posts, n, t, root, c), (void *s, void *b, I n, I t, I o, I root, I c),
           (s, b, n, t, o, root, c), reduce(verb, posts, *n, TYPE(t), *root, COMM(c)))

#define REDUCTION(Name, name)                                                                        \
    COLLECTIVE(Name, name, #name, (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), \
               (s, b, n, t, o, c), reduction(verb, posts, n, t, c),                                  \
               (void *s, void *b, I n, I t, I o, I c), (s, b, n, t, o, c),                           \
               reduction(verb, posts, *n, TYPE(t), COMM(c)))

REDUCTION(Allreduce, allreduce)
REDUCTION(Scan, scan)
REDUCTION(Exscan, exscan)

#define EXCHANGE(Name, name)                                                                         \
    COLLECTIVE(Name, name, #name,                                                                    \
               (const void *s, int sn, MPI_Datatype st, void *b, int n, MPI_Datatype t, MPI_Comm c), \
               (s, sn, st, b, n, t, c), exchange(verb, posts, IN_PLACE_C(s), sn, st, n, t, c),       \
               (void *s, I sn, I st, void *b, I n, I t, I c), (s, sn, st, b, n, t, c),               \
               exchange(verb, posts, IN_PLACE_F(s), *sn, TYPE(st), *n, TYPE(t), COMM(c)))

EXCHANGE(Alltoall, alltoall)
EXCHANGE(Allgather, allgather)

#define ROOTED(Name, name, BUFFER)                                                                   \
    COLLECTIVE(Name, name, #name,                                                                    \
               (const void *s, int sn, MPI_Datatype st, void *b, int n, MPI_Datatype t, int root, MPI_Comm c), \
               (s, sn, st, b, n, t, root, c), name(verb, posts, IN_PLACE_C(BUFFER), sn, st, n, t, root, c), \
               (void *s, I sn, I st, void *b, I n, I t, I root, I c), (s, sn, st, b, n, t, root, c), \
               name(verb, posts, IN_PLACE_F(BUFFER), *sn, TYPE(st), *n, TYPE(t), *root, COMM(c)))

ROOTED(Gather, gather, s)
ROOTED(Scatter, scatter, b)

COLLECTIVE(Gatherv, gatherv, "gatherv",
           (const void *s, int sn, MPI_Datatype st, void *b, const int *n, const int *d, MPI_Datatype t, int root,
            MPI_Comm c),
           (s, sn, st, b, n, d, t, root, c), gatherv(verb, posts, IN_PLACE_C(s), sn, st, n, t, root, c),
           (void *s, I sn, I st, void *b, I n, I d, I t, I root, I c), (s, sn, st, b, n, d, t, root, c),
           gatherv(verb, posts, IN_PLACE_F(s), *sn, TYPE(st), n, TYPE(t), *root, COMM(c)))

COLLECTIVE(Scatterv, scatterv, "scatterv",
           (const void *s, const int *sn, const int *d, MPI_Datatype st, void *b, int n, MPI_Datatype t, int root,
            MPI_Comm c),
           (s, sn, d, st, b, n, t, root, c), scatterv(verb, posts, IN_PLACE_C(b), sn, st, n, t, root, c),
           (void *s, I sn, I d, I st, void *b, I n, I t, I root, I c), (s, sn, d, st, b, n, t, root, c),
           scatterv(verb, posts, IN_PLACE_F(b), sn, TYPE(st), *n, TYPE(t), *root, COMM(c)))

COLLECTIVE(Allgatherv, allgatherv, "allgatherv",
           (const void *s, int sn, MPI_Datatype st, void *b, const int *n, const int *d, MPI_Datatype t, MPI_Comm c),
           (s, sn, st, b, n, d, t, c), allgatherv(verb, posts, IN_PLACE_C(s), sn, st, n, t, c),
           (void *s, I sn, I st, void *b, I n, I d, I t, I c), (s, sn, st, b, n, d, t, c),
           allgatherv(verb, posts, IN_PLACE_F(s), *sn, TYPE(st), n, TYPE(t), COMM(c)))

COLLECTIVE(Alltoallv, alltoallv, "alltoallv",
           (const void *s, const int *sn, const int *sd, MPI_Datatype st, void *b, const int *n, const int *d,
            MPI_Datatype t, MPI_Comm c),
           (s, sn, sd, st, b, n, d, t, c), alltoallv(verb, posts, IN_PLACE_C(s), sn, st, n, t, c),
           (void *s, I sn, I sd, I st, void *b, I n, I d, I t, I c), (s, sn, sd, st, b, n, d, t, c),
           alltoallv(verb, posts, IN_PLACE_F(s), sn, TYPE(st), n, TYPE(t), COMM(c)))

COLLECTIVE(Alltoallw, alltoallw, "alltoallv",
           (const void *s, const int *sn, const int *sd, const MPI_Datatype *st, void *b, const int *n, const int *d,
            const MPI_Datatype *t, MPI_Comm c),
           (s, sn, sd, st, b, n, d, t, c),
           alltoallw(verb, posts, IN_PLACE_C(s), sn, ((struct types){st, NULL}), n, ((struct types){t, NULL}), c),
           (void *s, I sn, I sd, I st, void *b, I n, I d, I t, I c), (s, sn, sd, st, b, n, d, t, c),
           alltoallw(verb, posts, IN_PLACE_F(s), sn, ((struct types){NULL, st}), n, ((struct types){NULL, t}),
                     COMM(c)))

COLLECTIVE(Reduce_scatter, reduce_scatter, "reducescatter",
           (const void *s, void *b, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, b, n, t, o, c),
           reduce_scatter(verb, posts, n, t, c), (void *s, void *b, I n, I t, I o, I c), (s, b, n, t, o, c),
           reduce_scatter(verb, posts, n, TYPE(t), COMM(c)))

COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, "reducescatter",
           (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, b, n, t, o, c),
           reduce_scatter_block(verb, posts, n, t, c), (void *s, void *b, I n, I t, I o, I c), (s, b, n, t, o, c),
           reduce_scatter_block(verb, posts, *n, TYPE(t), COMM(c)))

/* The same data for all neighbours, or a part for each: the messages have the same sizes. */
#define NEIGHBOR(Name, name)                                                                         \
    COLLECTIVE(Name, name, "",                                                                       \
               (const void *s, int sn, MPI_Datatype st, void *b, int n, MPI_Datatype t, MPI_Comm c), \
               (s, sn, st, b, n, t, c), neighbors(posts, SAME(sn, st), SAME(n, t), c),               \
               (void *s, I sn, I st, void *b, I n, I t, I c), (s, sn, st, b, n, t, c),               \
               neighbors(posts, SAME(*sn, TYPE(st)), SAME(*n, TYPE(t)), COMM(c)))

NEIGHBOR(Neighbor_alltoall, neighbor_alltoall)
NEIGHBOR(Neighbor_allgather, neighbor_allgather)

COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv, "",
           (const void *s, int sn, MPI_Datatype st, void *b, const int *n, const int *d, MPI_Datatype t, MPI_Comm c),
           (s, sn, st, b, n, d, t, c), neighbors(posts, SAME(sn, st), EACH(n, t), c),
           (void *s, I sn, I st, void *b, I n, I d, I t, I c), (s, sn, st, b, n, d, t, c),
           neighbors(posts, SAME(*sn, TYPE(st)), EACH(n, TYPE(t)), COMM(c)))

COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, "",
           (const void *s, const int *sn, const int *sd, MPI_Datatype st, void *b, const int *n, const int *d,
            MPI_Datatype t, MPI_Comm c),
           (s, sn, sd, st, b, n, d, t, c), neighbors(posts, EACH(sn, st), EACH(n, t), c),
           (void *s, I sn, I sd, I st, void *b, I n, I d, I t, I c), (s, sn, sd, st, b, n, d, t, c),
           neighbors(posts, EACH(sn, TYPE(st)), EACH(n, TYPE(t)), COMM(c)))

COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw, "",
           (const void *s, const int *sn, const MPI_Aint *sd, const MPI_Datatype *st, void *b, const int *n,
            const MPI_Aint *d, const MPI_Datatype *t, MPI_Comm c),
           (s, sn, sd, st, b, n, d, t, c), neighbors(posts, TYPED_C(sn, st), TYPED_C(n, t), c),
           (void *s, I sn, void *sd, I st, void *b, I n, void *d, I t, I c), (s, sn, sd, st, b, n, d, t, c),
           neighbors(posts, TYPED_F(sn, st), TYPED_F(n, t), COMM(c)))
