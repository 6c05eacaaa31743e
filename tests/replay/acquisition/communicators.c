/* Rows and columns, duplicates, grids, groups, MPI_COMM_SELF, and exchanges with neighbours. For four ranks. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, size, value = 1, all = 0, both[2], four[4], neighbors[8] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm row, other, grid, line, ends, part, self, graph;
    /* Ranks 0 and 1, in turned order, and 2 and 3. */
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &row);
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, row);
    int row_rank;
    MPI_Comm_rank(row, &row_rank);
    MPI_Sendrecv(&value, 1, MPI_INT, 1 - row_rank, 5, &all, 1, MPI_INT, 1 - row_rank, 5, row, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(&value, 1, MPI_INT, 1 - row_rank, 6, MPI_ANY_SOURCE, 6, row, MPI_STATUS_IGNORE);
    MPI_Comm_dup(row, &other);
    MPI_Bcast(&value, 1, MPI_INT, 1, other);
    MPI_Comm_free(&other);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 3 ? MPI_UNDEFINED : 0, 0, &part);
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    int dims[2] = {2, 2}, periods[2] = {1, 0}, remain[2] = {0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Neighbor_alltoall(four, 1, MPI_INT, neighbors, 1, MPI_INT, grid);
    MPI_Cart_sub(grid, remain, &line);
    MPI_Barrier(line);
    /* Ranks 3 and 0 alone. */
    MPI_Group world, group;
    int members[2] = {3, 0};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, members, &group);
    if (rank == 0 || rank == 3) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &ends);
        MPI_Allgather(&value, 1, MPI_INT, both, 1, MPI_INT, ends);
        MPI_Comm_free(&ends);
    }
    MPI_Comm_create(MPI_COMM_WORLD, group, &ends);
    if (ends != MPI_COMM_NULL) MPI_Comm_free(&ends);
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Barrier(self);
    int before = (rank + size - 1) % size, after = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &after, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Request request;
    MPI_Ineighbor_allgather(&value, 1, MPI_INT, &all, 1, MPI_INT, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
