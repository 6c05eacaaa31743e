/* Blocks of file types: their data without holes, in the order of the file. */
#include "unmodelled.h"

void ti_block(int64_t offset, int64_t bytes);

static void blocks(MPI_Datatype type, int64_t at);

/* The blocks of `count` elements, one behind the other. */
static void elements(MPI_Datatype type, int64_t at, int64_t count) {
    MPI_Aint lower = 0, extent = 0, first = 0, length = 0;
    int64_t size = bytes_of(1, type);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_get_true_extent(type, &first, &length);
    if (size == 0 || count <= 0) return;
    if (size == length && size == extent)
        ti_block(at + first, count * size);
    else if (size == length)
        for (int64_t i = 0; i < count; i++) ti_block(at + first + i * extent, size);
    else
        for (int64_t i = 0; i < count; i++) blocks(type, at + i * extent);
}

/* The part of a dimension that a process has: `count` intervals of up to `length` indices, `distance` apart. */
struct dimension {
    int64_t size, first, length, distance, stride;
};

/* The blocks of the parts of all dimensions, the outermost first. */
static void array(MPI_Datatype type, int64_t at, const struct dimension *all, int dimensions) {
    for (int64_t first = all->first; first < all->size; first += all->distance) {
        int64_t end = first + all->length < all->size ? first + all->length : all->size;
        if (dimensions == 1) {
            elements(type, at + first * all->stride, end - first);
            continue;
        }
        for (int64_t i = first; i < end; i++) array(type, at + i * all->stride, all + 1, dimensions - 1);
    }
}

/* Sorts the dimensions of a type and gives them strides. */
static void nested(MPI_Datatype type, int64_t at, struct dimension *all, int dimensions, int order) {
    MPI_Aint lower = 0, stride = 0;
    PMPI_Type_get_extent(type, &lower, &stride);
    if (order == MPI_ORDER_FORTRAN)
        for (int i = 0; i < dimensions / 2; i++) {
            struct dimension other = all[i];
            all[i] = all[dimensions - 1 - i];
            all[dimensions - 1 - i] = other;
        }
    for (int i = dimensions; i-- > 0; stride *= all[i].size) all[i].stride = stride;
    if (dimensions > 0) array(type, at, all, dimensions);
}

static void subarray(MPI_Datatype type, int64_t at, const int *n) {
    int dimensions = n[0];
    struct dimension *all = malloc((dimensions + 1) * sizeof *all);
    if (!all) return;
    for (int i = 0; i < dimensions; i++) {
        int size = n[1 + i], length = n[1 + dimensions + i], first = n[1 + 2 * dimensions + i];
        all[i] = (struct dimension){size, first, length, size, 0};
    }
    nested(type, at, all, dimensions, n[1 + 3 * dimensions]);
    free(all);
}

/* The coordinates of the process are those of a grid in the order of C. */
static void distributed(MPI_Datatype type, int64_t at, const int *n) {
    int rank = n[1], dimensions = n[2];
    const int *sizes = n + 3, *kinds = sizes + dimensions, *arguments = kinds + dimensions;
    const int *processes = arguments + dimensions;
    struct dimension *all = malloc((dimensions + 1) * sizeof *all);
    if (!all) return;
    for (int i = dimensions; i-- > 0; rank /= processes[i]) {
        int64_t size = sizes[i], argument = arguments[i], here = rank % processes[i];
        if (kinds[i] == MPI_DISTRIBUTE_NONE) argument = size;
        else if (argument == MPI_DISTRIBUTE_DFLT_DARG)
            argument = kinds[i] == MPI_DISTRIBUTE_BLOCK ? (size + processes[i] - 1) / processes[i] : 1;
        int64_t distance = kinds[i] == MPI_DISTRIBUTE_CYCLIC ? argument * processes[i] : size;
        all[i] = (struct dimension){size, here * argument, argument, distance > 0 ? distance : 1, 0};
    }
    nested(type, at, all, dimensions, processes[dimensions]);
    free(all);
}

static void derived(MPI_Datatype type, int64_t at, int combiner, const int *n, const MPI_Aint *a, MPI_Datatype *t) {
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(t[0], &lower, &extent);
    switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: elements(t[0], at, 1); break;
    case MPI_COMBINER_CONTIGUOUS: elements(t[0], at, n[0]); break;
    case MPI_COMBINER_VECTOR:
        for (int64_t i = 0; i < n[0]; i++) elements(t[0], at + i * n[2] * extent, n[1]);
        break;
    case MPI_COMBINER_HVECTOR:
        for (int64_t i = 0; i < n[0]; i++) elements(t[0], at + i * a[0], n[1]);
        break;
    case MPI_COMBINER_INDEXED:
        for (int i = 0; i < n[0]; i++) elements(t[0], at + n[1 + n[0] + i] * (int64_t)extent, n[1 + i]);
        break;
    case MPI_COMBINER_HINDEXED:
        for (int i = 0; i < n[0]; i++) elements(t[0], at + a[i], n[1 + i]);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (int i = 0; i < n[0]; i++) elements(t[0], at + n[2 + i] * (int64_t)extent, n[1]);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (int i = 0; i < n[0]; i++) elements(t[0], at + a[i], n[1]);
        break;
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < n[0]; i++) elements(t[i], at + a[i], n[1 + i]);
        break;
    case MPI_COMBINER_SUBARRAY: subarray(t[0], at, n); break;
    case MPI_COMBINER_DARRAY: distributed(t[0], at, n); break;
    /* One block of the right size. */
    default: ti_block(at, bytes_of(1, type));
    }
}

static void blocks(MPI_Datatype type, int64_t at) {
    int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED || types == 0) {
        ti_block(at, bytes_of(1, type));
        return;
    }
    int *n = malloc((integers + 1) * sizeof *n);
    MPI_Aint *a = malloc((addresses + 1) * sizeof *a);
    MPI_Datatype *t = malloc(types * sizeof *t);
    if (n && a && t) {
        PMPI_Type_get_contents(type, integers, addresses, types, n, a, t);
        derived(type, at, combiner, n, a, t);
        for (int i = 0; i < types; i++) {
            int one, other, third, kind = MPI_COMBINER_NAMED;
            PMPI_Type_get_envelope(t[i], &one, &other, &third, &kind);
            if (kind != MPI_COMBINER_NAMED) PMPI_Type_free(&t[i]);
        }
    }
    free(n);
    free(a);
    free(t);
}

void ti_blocks_of(MPI_Datatype type) { elements(type, 0, 1); }
