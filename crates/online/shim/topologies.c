/* Topologies: Cartesian grids, graphs that all members know, and graphs of which each knows its neighbours. */
#include "online.h"
#include <stdlib.h>
#include <string.h>

struct topology {
  /* as MPI_Topo_test reports it */
  int kind;
  int dimensions;
  int *sizes, *periods;
  /* of a graph: ends of the edges of each node */
  int nodes;
  int *ends, *edges;
  /* of a distributed graph */
  int in, out, is_weighted;
  int *sources, *source_weights, *destinations, *destination_weights;
};

static int *copied(const int *numbers, int length)
{
  int *copy = malloc((length + 1) * sizeof *copy);
  if (numbers)
    memcpy(copy, numbers, length * sizeof *copy);
  return copy;
}

static struct topology *new_topology(int kind)
{
  struct topology *t = calloc(1, sizeof *t);
  t->kind = kind;
  return t;
}

static struct topology *new_grid(int dimensions, const int *sizes, const int *periods)
{
  struct topology *t = new_topology(MPI_CART);
  t->dimensions = dimensions;
  t->sizes = copied(sizes, dimensions);
  t->periods = copied(periods, dimensions);
  return t;
}

static struct topology *new_graph(int nodes, const int *ends, const int *edges)
{
  struct topology *t = new_topology(MPI_GRAPH);
  t->nodes = nodes;
  t->ends = copied(ends, nodes);
  t->edges = copied(edges, nodes ? ends[nodes - 1] : 0);
  return t;
}

static struct topology *new_dist_graph(int in, const int *sources, const int *source_weights, int out, const int *destinations,
                                       const int *destination_weights, int is_weighted)
{
  struct topology *t = new_topology(MPI_DIST_GRAPH);
  t->in = in;
  t->out = out;
  t->is_weighted = is_weighted;
  t->sources = copied(sources, in);
  t->destinations = copied(destinations, out);
  t->source_weights = copied(is_weighted ? source_weights : NULL, in);
  t->destination_weights = copied(is_weighted ? destination_weights : NULL, out);
  return t;
}

struct topology *copy_topology(const struct topology *t)
{
  if (t->kind == MPI_CART)
    return new_grid(t->dimensions, t->sizes, t->periods);
  if (t->kind == MPI_GRAPH)
    return new_graph(t->nodes, t->ends, t->edges);
  return new_dist_graph(t->in, t->sources, t->source_weights, t->out, t->destinations, t->destination_weights, t->is_weighted);
}

void free_topology(struct topology *t)
{
  free(t->sizes);
  free(t->periods);
  free(t->ends);
  free(t->edges);
  free(t->sources);
  free(t->source_weights);
  free(t->destinations);
  free(t->destination_weights);
  free(t);
}

/* Finds a communicator with a topology of some kind. */
#define TOPOLOGY(handle, kind_)                                                                                                          \
  struct communicator *c = communicator_of(handle);                                                                                      \
  if (!c)                                                                                                                                \
    return RAISE(MPI_COMM_WORLD, communicator_error(handle));                                                                                    \
  struct topology *t = c->topology;                                                                                                      \
  if (!t || t->kind != (kind_))                                                                                                          \
    return RAISE(handle, MPI_ERR_TOPOLOGY);
#define GRID(handle) TOPOLOGY(handle, MPI_CART)

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
  CHECK(c && !c->remote, MPI_COMM_WORLD, communicator_error(handle));
  CHECK(dimensions >= 0, handle, MPI_ERR_DIMS);
  for (int i = 0; i < dimensions; i++)
    CHECK(sizes[i] > 0, handle, MPI_ERR_DIMS);
  int nodes = nodes_of(dimensions, sizes);
  CHECK(nodes <= c->size, handle, MPI_ERR_DIMS);
  struct communicator *grid = make_communicator(c, 0, nodes, c->world, result);
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
    return RAISE(handle, rank_error(c, "rank", rank));
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
  return *rank == MPI_PROC_NULL ? RAISE(handle, MPI_ERR_RANK) : MPI_SUCCESS;
}

INTERPOSE(Cart_shift)
int MPI_Cart_shift(MPI_Comm handle, int direction, int distance, int *source, int *destination)
{
  LOCAL(Cart_shift, handle, direction, distance, source, destination)
  GRID(handle)
  if (direction < 0 || direction >= t->dimensions)
    return RAISE(handle, MPI_ERR_DIMS);
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
    return RAISE(MPI_COMM_WORLD, communicator_error(handle));
  *rank = c->rank < nodes_of(dimensions, sizes) ? c->rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

INTERPOSE(Topo_test)
int MPI_Topo_test(MPI_Comm handle, int *kind)
{
  LOCAL(Topo_test, handle, kind)
  struct communicator *c = communicator_of(handle);
  if (!c)
    return RAISE(MPI_COMM_WORLD, communicator_error(handle));
  *kind = c->topology ? c->topology->kind : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

/* ---- graphs ---- */

INTERPOSE(Graph_create)
int MPI_Graph_create(MPI_Comm handle, int nodes, const int ends[], const int edges[], int reorder, MPI_Comm *result)
{
  CALL(Graph_create, handle, nodes, ends, edges, reorder, result)
  struct communicator *c = communicator_of(handle);
  CHECK(c && !c->remote, MPI_COMM_WORLD, communicator_error(handle));
  CHECK(nodes >= 0 && nodes <= c->size, handle, MPI_ERR_ARG);
  struct communicator *graph = make_communicator(c, 0, nodes, c->world, result);
  if (graph)
    graph->topology = new_graph(nodes, ends, edges);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Graphdims_get)
int MPI_Graphdims_get(MPI_Comm handle, int *nodes, int *edges)
{
  LOCAL(Graphdims_get, handle, nodes, edges)
  TOPOLOGY(handle, MPI_GRAPH)
  *nodes = t->nodes;
  *edges = t->nodes ? t->ends[t->nodes - 1] : 0;
  return MPI_SUCCESS;
}

INTERPOSE(Graph_get)
int MPI_Graph_get(MPI_Comm handle, int most_ends, int most_edges, int ends[], int edges[])
{
  LOCAL(Graph_get, handle, most_ends, most_edges, ends, edges)
  TOPOLOGY(handle, MPI_GRAPH)
  int length = t->nodes ? t->ends[t->nodes - 1] : 0;
  memcpy(ends, t->ends, (most_ends < t->nodes ? most_ends : t->nodes) * sizeof *ends);
  memcpy(edges, t->edges, (most_edges < length ? most_edges : length) * sizeof *edges);
  return MPI_SUCCESS;
}

static int edges_begin(const struct topology *t, int rank) { return rank ? t->ends[rank - 1] : 0; }

INTERPOSE(Graph_neighbors_count)
int MPI_Graph_neighbors_count(MPI_Comm handle, int rank, int *number)
{
  LOCAL(Graph_neighbors_count, handle, rank, number)
  TOPOLOGY(handle, MPI_GRAPH)
  if (rank < 0 || rank >= t->nodes)
    return RAISE(handle, rank_error(c, "rank", rank));
  *number = t->ends[rank] - edges_begin(t, rank);
  return MPI_SUCCESS;
}

INTERPOSE(Graph_neighbors)
int MPI_Graph_neighbors(MPI_Comm handle, int rank, int most, int neighbors[])
{
  LOCAL(Graph_neighbors, handle, rank, most, neighbors)
  TOPOLOGY(handle, MPI_GRAPH)
  if (rank < 0 || rank >= t->nodes)
    return RAISE(handle, rank_error(c, "rank", rank));
  int length = t->ends[rank] - edges_begin(t, rank);
  memcpy(neighbors, t->edges + edges_begin(t, rank), (most < length ? most : length) * sizeof *neighbors);
  return MPI_SUCCESS;
}

INTERPOSE(Graph_map)
int MPI_Graph_map(MPI_Comm handle, int nodes, const int ends[], const int edges[], int *rank)
{
  LOCAL(Graph_map, handle, nodes, ends, edges, rank)
  struct communicator *c = communicator_of(handle);
  if (!c)
    return RAISE(MPI_COMM_WORLD, communicator_error(handle));
  *rank = c->rank < nodes ? c->rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

INTERPOSE(Dist_graph_create_adjacent)
int MPI_Dist_graph_create_adjacent(MPI_Comm handle, int in, const int sources[], const int source_weights[], int out, const int destinations[],
                                   const int destination_weights[], MPI_Info info, int reorder, MPI_Comm *result)
{
  CALL(Dist_graph_create_adjacent, handle, in, sources, source_weights, out, destinations, destination_weights, info, reorder, result)
  struct communicator *c = communicator_of(handle);
  CHECK(c && !c->remote, MPI_COMM_WORLD, communicator_error(handle));
  CHECK(in >= 0 && out >= 0, handle, MPI_ERR_ARG);
  struct communicator *graph = make_communicator(c, 0, c->size, c->world, result);
  int is_weighted = source_weights != MPI_UNWEIGHTED && destination_weights != MPI_UNWEIGHTED;
  graph->topology = new_dist_graph(in, sources, source_weights, out, destinations, destination_weights, is_weighted);
  RETURN(handle, MPI_SUCCESS);
}

/* An edge, as a member tells it. */
struct edge {
  int source, destination, weight;
};

static void add_edge(int *length, int **ranks, int **weights, int rank, int weight)
{
  *ranks = realloc(*ranks, (*length + 1) * sizeof **ranks);
  *weights = realloc(*weights, (*length + 1) * sizeof **weights);
  (*ranks)[*length] = rank;
  (*weights)[(*length)++] = weight;
}

/* Collects the edges of this rank from those that all members tell. */
static struct topology *collect_edges(struct communicator *c, struct table *table, int is_weighted)
{
  struct topology *t = new_topology(MPI_DIST_GRAPH);
  t->is_weighted = is_weighted;
  for (int member = 0; member < c->size; member++) {
    struct edge *edge = contribution(table, member);
    for (; edge->source >= 0; edge++) {
      if (edge->destination == c->rank)
        add_edge(&t->in, &t->sources, &t->source_weights, edge->source, edge->weight);
      if (edge->source == c->rank)
        add_edge(&t->out, &t->destinations, &t->destination_weights, edge->destination, edge->weight);
    }
  }
  return t;
}

INTERPOSE(Dist_graph_create)
int MPI_Dist_graph_create(MPI_Comm handle, int n, const int sources[], const int degrees[], const int destinations[], const int weights[], MPI_Info info,
                          int reorder, MPI_Comm *result)
{
  CALL(Dist_graph_create, handle, n, sources, degrees, destinations, weights, info, reorder, result)
  struct communicator *c = communicator_of(handle);
  CHECK(c && !c->remote, MPI_COMM_WORLD, communicator_error(handle));
  int length = 0, is_weighted = weights != MPI_UNWEIGHTED;
  for (int i = 0; i < n; i++)
    length += degrees[i];
  struct edge *edges = malloc((length + 1) * sizeof *edges);
  for (int i = 0, k = 0; i < n; i++)
    for (int end = k + degrees[i]; k < end; k++)
      edges[k] = (struct edge){sources[i], destinations[k], is_weighted ? weights[k] : 1};
  edges[length].source = -1;
  struct table *table = exchange(c, COLL_ALLGATHER, edges, (length + 1) * sizeof *edges, sizeof *edges);
  struct topology *t = collect_edges(c, table, is_weighted);
  release(table);
  free(edges);
  make_communicator(c, 0, c->size, c->world, result)->topology = t;
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Dist_graph_neighbors_count)
int MPI_Dist_graph_neighbors_count(MPI_Comm handle, int *in, int *out, int *is_weighted)
{
  LOCAL(Dist_graph_neighbors_count, handle, in, out, is_weighted)
  TOPOLOGY(handle, MPI_DIST_GRAPH)
  *in = t->in;
  *out = t->out;
  *is_weighted = t->is_weighted;
  return MPI_SUCCESS;
}

static void copy_some(int *to, const int *from, int most, int length)
{
  if (to != MPI_UNWEIGHTED && from)
    memcpy(to, from, (most < length ? most : length) * sizeof *to);
}

INTERPOSE(Dist_graph_neighbors)
int MPI_Dist_graph_neighbors(MPI_Comm handle, int most_in, int sources[], int source_weights[], int most_out, int destinations[],
                             int destination_weights[])
{
  LOCAL(Dist_graph_neighbors, handle, most_in, sources, source_weights, most_out, destinations, destination_weights)
  TOPOLOGY(handle, MPI_DIST_GRAPH)
  copy_some(sources, t->sources, most_in, t->in);
  copy_some(destinations, t->destinations, most_out, t->out);
  if (t->is_weighted) {
    copy_some(source_weights, t->source_weights, most_in, t->in);
    copy_some(destination_weights, t->destination_weights, most_out, t->out);
  }
  return MPI_SUCCESS;
}

/* ---- neighbours ---- */

static void grid_neighbors(const struct communicator *c, struct neighbors *n)
{
  const struct topology *t = c->topology;
  n->in = n->out = 2 * t->dimensions;
  n->sources = malloc((n->in + 1) * sizeof *n->sources);
  int at[t->dimensions + 1];
  coordinates(t, c->rank, at);
  for (int i = 0; i < t->dimensions; i++) {
    at[i]--;
    n->sources[2 * i] = rank_at(t, at);
    at[i] += 2;
    n->sources[2 * i + 1] = rank_at(t, at);
    at[i]--;
  }
  n->destinations = copied(n->sources, n->in);
}

bool neighbors_of(const struct communicator *c, struct neighbors *n)
{
  const struct topology *t = c->topology;
  if (!t)
    return false;
  n->is_grid = t->kind == MPI_CART;
  if (n->is_grid)
    grid_neighbors(c, n);
  else if (t->kind == MPI_GRAPH) {
    n->in = n->out = t->ends[c->rank] - edges_begin(t, c->rank);
    n->sources = copied(t->edges + edges_begin(t, c->rank), n->in);
    n->destinations = copied(n->sources, n->in);
  } else {
    n->in = t->in;
    n->out = t->out;
    n->sources = copied(t->sources, t->in);
    n->destinations = copied(t->destinations, t->out);
  }
  return true;
}
