/* Communicators. The first rank of a new one chooses its number and broadcasts it to the others. */
#include "unmodelled.h"

static void made(const char *function, const char *verb, MPI_Comm parent, MPI_Comm new) {
    if (new == MPI_COMM_NULL) {
        ti_new_communicator(verb, KEY(parent), 0, 0, NULL, 0);
        return;
    }
    int is_inter = 0, rank = 0, size = 0;
    unsigned number = 0;
    MPI_Group all, own;
    PMPI_Comm_test_inter(new, &is_inter);
    if (is_inter) {
        unmodelled(function, 0, COMMUNICATOR("comm", parent), COMMUNICATOR("new", new));
        return;
    }
    PMPI_Comm_rank(new, &rank);
    PMPI_Comm_size(new, &size);
    if (rank == 0) number = ti_next_communicator();
    PMPI_Bcast(&number, 1, MPI_UNSIGNED, 0, new);
    int *positions = malloc(size * sizeof *positions), *members = malloc(size * sizeof *members);
    if (!positions || !members) abort();
    for (int i = 0; i < size; i++) positions[i] = i;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_group(new, &own);
    PMPI_Group_translate_ranks(own, size, positions, all, members);
    PMPI_Group_free(&own);
    PMPI_Group_free(&all);
    int is_of_this_world = 1;
    for (int i = 0; i < size; i++) is_of_this_world &= members[i] != MPI_UNDEFINED;
    if (is_of_this_world)
        ti_new_communicator(verb, KEY(parent), KEY(new), number, members, size);
    else
        unmodelled(function, 0, COMMUNICATOR("comm", parent), COMMUNICATOR("new", new));
    free(positions);
    free(members);
}

/* A communicator is an argument, its parent the first. */
#define MAKER(Name, name, VERB, C_PARAMETERS, C_ARGUMENTS, F_PARAMETERS, F_ARGUMENTS)                \
    int ti_c_##Name(MPI_Comm c, UNWRAP C_PARAMETERS MPI_Comm *new) {                                 \
        int is_on = enter();                                                                         \
        int error = PMPI_##Name(c, UNWRAP C_ARGUMENTS new);                                          \
        if (is_on && error == MPI_SUCCESS) made("MPI_" #Name, VERB, c, *new);                                      \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(I c, UNWRAP F_PARAMETERS I new, I e) {                                          \
        int is_on = enter();                                                                         \
        CALL_FORTRAN(name, c, UNWRAP F_ARGUMENTS new);                                               \
        if (is_on && *e == MPI_SUCCESS) made("MPI_" #Name, VERB, COMM(c), COMM(new));                              \
        leave();                                                                                     \
    }

#define I MPI_Fint *

MAKER(Comm_dup, comm_dup, "comm_dup", (), (), (), ())
MAKER(Comm_dup_with_info, comm_dup_with_info, "comm_dup", (MPI_Info i, ), (i, ), (I i, ), (i, ))
MAKER(Comm_split, comm_split, "comm_split", (int color, int key, ), (color, key, ), (I color, I key, ), (color, key, ))
MAKER(Comm_split_type, comm_split_type, "comm_split", (int type, int key, MPI_Info i, ), (type, key, i, ),
      (I type, I key, I i, ), (type, key, i, ))
MAKER(Comm_create, comm_create, "comm_create", (MPI_Group g, ), (g, ), (I g, ), (g, ))
MAKER(Comm_create_group, comm_create_group, "comm_create_group", (MPI_Group g, int tag, ), (g, tag, ), (I g, I tag, ),
      (g, tag, ))
MAKER(Cart_create, cart_create, "comm_create", (int n, const int *dims, const int *periods, int reorder, ),
      (n, dims, periods, reorder, ), (I n, I dims, I periods, I reorder, ), (n, dims, periods, reorder, ))
MAKER(Cart_sub, cart_sub, "comm_split", (const int *remain, ), (remain, ), (I remain, ), (remain, ))
MAKER(Graph_create, graph_create, "comm_create", (int n, const int *index, const int *edges, int reorder, ),
      (n, index, edges, reorder, ), (I n, I index, I edges, I reorder, ), (n, index, edges, reorder, ))
MAKER(Dist_graph_create, dist_graph_create, "comm_create",
      (int n, const int *from, const int *degrees, const int *to, const int *weights, MPI_Info i, int reorder, ),
      (n, from, degrees, to, weights, i, reorder, ),
      (I n, I from, I degrees, I to, I weights, I i, I reorder, ), (n, from, degrees, to, weights, i, reorder, ))
MAKER(Dist_graph_create_adjacent, dist_graph_create_adjacent, "comm_create",
      (int in, const int *from, const int *inw, int out, const int *to, const int *outw, MPI_Info i, int reorder, ),
      (in, from, inw, out, to, outw, i, reorder, ),
      (I in, I from, I inw, I out, I to, I outw, I i, I reorder, ), (in, from, inw, out, to, outw, i, reorder, ))

/* The parent is no communicator of one group: what is made is recorded by its members. */
int ti_c_Intercomm_merge(MPI_Comm c, int high, MPI_Comm *new) {
    int is_on = enter();
    int error = PMPI_Intercomm_merge(c, high, new);
    if (is_on && error == MPI_SUCCESS) made("MPI_Intercomm_merge", "comm_create_group", c, *new);
    leave();
    return error;
}

void ti_f_intercomm_merge(I c, I high, I new, I e) {
    int is_on = enter();
    CALL_FORTRAN(intercomm_merge, c, high, new);
    if (is_on && *e == MPI_SUCCESS) made("MPI_Intercomm_merge", "comm_create_group", COMM(c), COMM(new));
    leave();
}

#define FREER(Name, name)                                                                            \
    int ti_c_##Name(MPI_Comm *c) {                                                                   \
        if (enter()) ti_free_communicator("MPI_" #Name, KEY(*c));                                                  \
        int error = PMPI_##Name(c);                                                                  \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(I c, I e) {                                                                     \
        if (enter()) ti_free_communicator("MPI_" #Name, KEY(COMM(c)));                                             \
        CALL_FORTRAN(name, c);                                                                       \
        leave();                                                                                     \
    }

FREER(Comm_free, comm_free)
FREER(Comm_disconnect, comm_disconnect)
