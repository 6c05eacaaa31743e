/* Views of a file by types of all kinds; what is written through each is where the blocks of the type are. */
#include <mpi.h>

static void view(MPI_File file, int displacement, MPI_Datatype type) {
    int values[6] = {1, 2, 3, 4, 5, 6};
    MPI_Type_commit(&type);
    MPI_File_set_view(file, displacement, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 1, values, 6, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    int rank, sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2}, grid[2] = {1, 2};
    MPI_File file;
    MPI_Info info;
    MPI_Datatype type, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "cb_buffer_size", "1048576");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "unknown", "1");
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);

    MPI_Type_vector(3, 2, 4, MPI_INT, &other);
    MPI_Type_create_resized(other, 0, 48, &type);
    view(file, 0, type);
    int lengths[3] = {1, 2, 3}, displacements[3] = {0, 2, 6};
    MPI_Type_indexed(3, lengths, displacements, MPI_INT, &other);
    MPI_Type_dup(other, &type);
    MPI_Type_create_resized(other, 0, 40, &type);
    view(file, 16, type);
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Aint places[2] = {4, 16};
    int counts[2] = {1, 1};
    MPI_Type_create_struct(2, counts, places, types, &other);
    MPI_Type_create_hvector(3, 1, 16, MPI_DOUBLE, &types[1]);
    types[0] = MPI_INT;
    MPI_Type_create_struct(2, counts, places, types, &other);
    MPI_Type_create_resized(other, 0, 64, &type);
    view(file, 0, type);
    MPI_Type_contiguous(3, MPI_INT, &type);
    view(file, 8, type);

    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    view(file, 0, type);
    int fortran[2] = {4, 6}, inner[2] = {2, 3}, first[2] = {2, 1};
    MPI_Type_create_subarray(2, fortran, inner, first, MPI_ORDER_FORTRAN, MPI_INT, &type);
    view(file, 0, type);
    int kinds[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Type_create_darray(2, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
    view(file, 0, type);
    kinds[1] = MPI_DISTRIBUTE_CYCLIC;
    MPI_Type_create_darray(2, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
    view(file, 0, type);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
