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

/* Persistent collective operations, an extension of Open MPI 4. */
#define REFUSE_EXTENSION(name)                                                                                                           \
  int MPIX_##name##_init(void) { fail("MPIX_%s_init does not run online; docs/online.md lists what does", #name); }                      \
  int PMPIX_##name##_init(void) __attribute__((alias("MPIX_" #name "_init")));

REFUSE_EXTENSION(Allgather)
REFUSE_EXTENSION(Allgatherv)
REFUSE_EXTENSION(Allreduce)
REFUSE_EXTENSION(Alltoall)
REFUSE_EXTENSION(Alltoallv)
REFUSE_EXTENSION(Alltoallw)
REFUSE_EXTENSION(Barrier)
REFUSE_EXTENSION(Bcast)
REFUSE_EXTENSION(Exscan)
REFUSE_EXTENSION(Gather)
REFUSE_EXTENSION(Gatherv)
REFUSE_EXTENSION(Reduce)
REFUSE_EXTENSION(Reduce_scatter)
REFUSE_EXTENSION(Reduce_scatter_block)
REFUSE_EXTENSION(Scan)
REFUSE_EXTENSION(Scatter)
REFUSE_EXTENSION(Scatterv)
REFUSE_EXTENSION(Neighbor_allgather)
REFUSE_EXTENSION(Neighbor_allgatherv)
REFUSE_EXTENSION(Neighbor_alltoall)
REFUSE_EXTENSION(Neighbor_alltoallv)
REFUSE_EXTENSION(Neighbor_alltoallw)
