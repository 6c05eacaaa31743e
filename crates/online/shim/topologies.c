/* Topologies: Cartesian grids. */
#include "online.h"
#include <stdlib.h>
#include <string.h>

struct topology {
  int dimensions;
  int *sizes, *periods;
};

static int *copied(const int *numbers, int length)
{
  int *copy = malloc((length + 1) * sizeof *copy);
  memcpy(copy, numbers, length * sizeof *copy);
  return copy;
}

static struct topology *new_grid(int dimensions, const int *sizes, const int *periods)
{
  struct topology *t = malloc(sizeof *t);
  *t = (struct topology){dimensions, copied(sizes, dimensions), copied(periods, dimensions)};
  return t;
}

struct topology *copy_topology(const struct topology *t) { return new_grid(t->dimensions, t->sizes, t->periods); }

void free_topology(struct topology *t)
{
  free(t->sizes);
  free(t->periods);
  free(t);
}

#define GRID(handle)                                                                                                                     \
  struct communicator *c = communicator_of(handle);                                                                                      \
  if (!c)                                                                                                                                \
    return raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);                                                                                    \
  struct topology *t = c->topology;                                                                                                      \
  if (!t)                                                                                                                                \
    return raise_error(handle, MPI_ERR_TOPOLOGY);

static int nodes_of(int dimensions, const int *sizes)
{
  int nodes = 1;
  for (int i = 0; i < dimensions; i++)
    nodes *= sizes[i];
  return nodes;
}

/* Coordinates of a rank; the last one counts first. */
static void coordinates(const struct topology *t, int rank, int *result)
{
  for (int i = t->dimensions - 1; i >= 0; rank /= t->sizes[i--])
    result[i] = rank % t->sizes[i];
}

/* Rank at coordinates; MPI_PROC_NULL outside of the grid. */
static int rank_at(const struct topology *t, const int *at)
{
  int rank = 0;
  for (int i = 0; i < t->dimensions; i++) {
    int size = t->sizes[i], c = at[i];
    if (t->periods[i])
      c = (c % size + size) % size;
    if (c < 0 || c >= size)
      return MPI_PROC_NULL;
    rank = rank * size + c;
  }
  return rank;
}

INTERPOSE(Cart_create)
int MPI_Cart_create(MPI_Comm handle, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm *result)
{
  CALL(Cart_create, handle, dimensions, sizes, periods, reorder, result)
  struct communicator *c = communicator_of(handle);
  CHECK(c && !c->remote, MPI_COMM_WORLD, MPI_ERR_COMM);
  CHECK(dimensions >= 0, handle, MPI_ERR_DIMS);
  for (int i = 0; i < dimensions; i++)
    CHECK(sizes[i] > 0, handle, MPI_ERR_DIMS);
  int nodes = nodes_of(dimensions, sizes);
  CHECK(nodes <= c->size, handle, MPI_ERR_DIMS);
  struct communicator *grid = make_communicator(c, nodes, c->world, result);
  if (grid)
    grid->topology = new_grid(dimensions, sizes, periods);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Cart_sub)
int MPI_Cart_sub(MPI_Comm handle, const int keeps[], MPI_Comm *result)
{
  LOCAL(Cart_sub, handle, keeps, result)
  GRID(handle)
  int at[t->dimensions + 1], color = 0, key = 0, kept = 0, sizes[t->dimensions + 1], periods[t->dimensions + 1];
  coordinates(t, c->rank, at);
  for (int i = 0; i < t->dimensions; i++) {
    int *number = keeps[i] ? &key : &color;
    *number = *number * t->sizes[i] + at[i];
    if (!keeps[i])
      continue;
    sizes[kept] = t->sizes[i];
    periods[kept++] = t->periods[i];
  }
  int error = MPI_Comm_split(handle, color, key, result);
  if (error == MPI_SUCCESS)
    communicator_of(*result)->topology = new_grid(kept, sizes, periods);
  return error;
}

INTERPOSE(Cart_get)
int MPI_Cart_get(MPI_Comm handle, int most, int sizes[], int periods[], int at[])
{
  LOCAL(Cart_get, handle, most, sizes, periods, at)
  GRID(handle)
  int own_at[t->dimensions + 1], n = most < t->dimensions ? most : t->dimensions;
  coordinates(t, c->rank, own_at);
  memcpy(sizes, t->sizes, n * sizeof *sizes);
  memcpy(periods, t->periods, n * sizeof *periods);
  memcpy(at, own_at, n * sizeof *at);
  return MPI_SUCCESS;
}

INTERPOSE(Cart_coords)
int MPI_Cart_coords(MPI_Comm handle, int rank, int most, int at[])
{
  LOCAL(Cart_coords, handle, rank, most, at)
  GRID(handle)
  if (rank < 0 || rank >= c->size)
    return raise_error(handle, MPI_ERR_RANK);
  int all[t->dimensions + 1];
  coordinates(t, rank, all);
  memcpy(at, all, (most < t->dimensions ? most : t->dimensions) * sizeof *at);
  return MPI_SUCCESS;
}

INTERPOSE(Cart_rank)
int MPI_Cart_rank(MPI_Comm handle, const int at[], int *rank)
{
  LOCAL(Cart_rank, handle, at, rank)
  GRID(handle)
  *rank = rank_at(t, at);
  return *rank == MPI_PROC_NULL ? raise_error(handle, MPI_ERR_RANK) : MPI_SUCCESS;
}

INTERPOSE(Cart_shift)
int MPI_Cart_shift(MPI_Comm handle, int direction, int distance, int *source, int *destination)
{
  LOCAL(Cart_shift, handle, direction, distance, source, destination)
  GRID(handle)
  if (direction < 0 || direction >= t->dimensions)
    return raise_error(handle, MPI_ERR_DIMS);
  int at[t->dimensions + 1];
  coordinates(t, c->rank, at);
  at[direction] += distance;
  *destination = rank_at(t, at);
  at[direction] -= 2 * distance;
  *source = rank_at(t, at);
  return MPI_SUCCESS;
}

INTERPOSE(Cartdim_get)
int MPI_Cartdim_get(MPI_Comm handle, int *dimensions)
{
  LOCAL(Cartdim_get, handle, dimensions)
  GRID(handle)
  *dimensions = t->dimensions;
  return MPI_SUCCESS;
}

INTERPOSE(Cart_map)
int MPI_Cart_map(MPI_Comm handle, int dimensions, const int sizes[], const int periods[], int *rank)
{
  LOCAL(Cart_map, handle, dimensions, sizes, periods, rank)
  struct communicator *c = communicator_of(handle);
  if (!c)
    return raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  *rank = c->rank < nodes_of(dimensions, sizes) ? c->rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

INTERPOSE(Topo_test)
int MPI_Topo_test(MPI_Comm handle, int *kind)
{
  LOCAL(Topo_test, handle, kind)
  struct communicator *c = communicator_of(handle);
  if (!c)
    return raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  *kind = c->topology ? MPI_CART : MPI_UNDEFINED;
  return MPI_SUCCESS;
}
