/* Functions that do not run online, by their names. Their prototypes are not known here: those of the program stay unread. */
#include "layout.h"

void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define REFUSE(name)                                                                                                                     \
  int MPI_##name(void) { fail("MPI_%s does not run online; docs/online.md lists what does", #name); }                                    \
  int PMPI_##name(void) __attribute__((alias("MPI_" #name)));

REFUSE(Comm_spawn)
REFUSE(Comm_spawn_multiple)
REFUSE(Comm_connect)
REFUSE(Comm_accept)
REFUSE(Comm_join)
REFUSE(Open_port)
REFUSE(Graph_create)
REFUSE(Dist_graph_create)
REFUSE(Dist_graph_create_adjacent)
REFUSE(Win_create)
REFUSE(Win_allocate)
REFUSE(Win_allocate_shared)
REFUSE(Win_create_dynamic)
REFUSE(File_open)
REFUSE(Neighbor_allgather)
REFUSE(Neighbor_allgatherv)
REFUSE(Neighbor_alltoall)
REFUSE(Neighbor_alltoallv)
REFUSE(Neighbor_alltoallw)
REFUSE(Ineighbor_allgather)
REFUSE(Ineighbor_allgatherv)
REFUSE(Ineighbor_alltoall)
REFUSE(Ineighbor_alltoallv)
REFUSE(Ineighbor_alltoallw)
