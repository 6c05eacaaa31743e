/* A sheet of heart tissue: a lattice of cells, each with the equations of FitzHugh and Nagumo, in equal squares on the ranks. Cells that
   change fast are integrated in smaller steps, so ranks with the front of the wave compute longer. */
#include <mpi.h>
#include <pdes_region.h>
#include <stdio.h>
#include <stdlib.h>

enum { UP, DOWN, LEFT, RIGHT, SIDES };

struct tissue {
    int rank, side, steps;      /* Cells along a side of the square, and steps. */
    int neighbour[SIDES];       /* Rank at each side, or MPI_PROC_NULL. */
    double *now, *next, *calm;  /* Potentials with a frame of the neighbours' cells, and recovery. */
    MPI_Datatype row, column;
};

static double *at(const struct tissue *t, double *cells, int row, int column) {
    return cells + row * (t->side + 2) + column;
}

/* Arguments: cells along a side of the square of a rank, and steps. */
static void tissue_begin(struct tissue *t, int argc, char **argv) {
    int size, grid[2] = {0, 0};
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, grid);
    t->side = argc > 1 ? atoi(argv[1]) : 32;
    t->steps = argc > 2 ? atoi(argv[2]) : 20;
    int row = t->rank / grid[1], column = t->rank % grid[1];
    t->neighbour[UP] = row > 0 ? t->rank - grid[1] : MPI_PROC_NULL;
    t->neighbour[DOWN] = row < grid[0] - 1 ? t->rank + grid[1] : MPI_PROC_NULL;
    t->neighbour[LEFT] = column > 0 ? t->rank - 1 : MPI_PROC_NULL;
    t->neighbour[RIGHT] = column < grid[1] - 1 ? t->rank + 1 : MPI_PROC_NULL;
    size_t cells = (t->side + 2) * (t->side + 2);
    t->now = calloc(cells, sizeof *t->now);
    t->next = calloc(cells, sizeof *t->next);
    t->calm = calloc(cells, sizeof *t->calm);
    if (t->rank == 0)
        for (int i = 1; i <= t->side / 2; i++)
            for (int j = 1; j <= t->side / 2; j++) *at(t, t->now, i, j) = 1;
    MPI_Type_contiguous(t->side, MPI_DOUBLE, &t->row);
    MPI_Type_vector(t->side, 1, t->side + 2, MPI_DOUBLE, &t->column);
    MPI_Type_commit(&t->row);
    MPI_Type_commit(&t->column);
}

/* The next potentials of the cells of a rectangle, both ends included. */
static void integrate(struct tissue *t, int top, int bottom, int left, int right) {
    for (int i = top; i <= bottom; i++)
        for (int j = left; j <= right; j++) {
            double *cell = at(t, t->now, i, j), u = *cell, v = *at(t, t->calm, i, j);
            double spread = cell[-1] + cell[1] + cell[-t->side - 2] + cell[t->side + 2] - 4 * u;
            double rate = u * (1 - u) * (u - 0.1) - v + 0.2 * spread;
            int parts = 8 + (int)(400 * (rate < 0 ? -rate : rate));
            for (int part = 0; part < parts; part++) {
                u += 0.5 / parts * (u * (1 - u) * (u - 0.1) - v + 0.2 * spread);
                v += 0.5 / parts * 0.01 * (0.5 * u - v);
            }
            *at(t, t->next, i, j) = u;
            *at(t, t->calm, i, j) = v;
        }
}

/* The first of the own cells at a side, or of the neighbour's cells behind it, of the next step. */
static double *edge(struct tissue *t, int side, int is_neighbours) {
    int last = t->side + is_neighbours, first = 1 - is_neighbours;
    if (side == UP || side == DOWN) return at(t, t->next, side == UP ? first : last, 1);
    return at(t, t->next, 1, side == LEFT ? first : last);
}

static MPI_Datatype edge_type(const struct tissue *t, int side) {
    return side == UP || side == DOWN ? t->row : t->column;
}

static int opposite(int side) { return side ^ 1; }

static void tissue_step(struct tissue *t) {
    double *swap = t->now;
    t->now = t->next;
    t->next = swap;
}

/* Gathers the potentials of all cells on rank 0, which prints their sum. */
static void tissue_end(struct tissue *t) {
    int size, count = t->side * t->side;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *own = malloc(count * sizeof *own), *all = t->rank == 0 ? malloc(count * sizeof *all * size) : NULL;
    for (int i = 0; i < t->side; i++)
        for (int j = 0; j < t->side; j++) own[i * t->side + j] = *at(t, t->now, i + 1, j + 1);
    pdes_region_begin("gather");
    MPI_Gather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    pdes_region_end();
    double sum = 0;
    for (int i = 0; t->rank == 0 && i < count * size; i++) sum += all[i];
    if (t->rank == 0) printf("sum of potentials: %.17g\n", sum);
}
