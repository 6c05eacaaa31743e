/* Communicators that the program makes. Their numbers follow from what all members know; the time of a call is that of SMPI: a broadcast of
   4 B in the new communicator, before which a split gathers colours and keys. */
#include "online.h"
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static uint32_t mix(uint32_t hash, uint32_t word) { return (hash ^ word) * 0x9E3779B1u ^ hash >> 15; }

/* Number of a communicator, from that of its parent, how many the parent has had, and its members. The simulator refuses two with one number. */
static uint32_t number_of(uint32_t parent, uint32_t count, int size, const int *world)
{
  uint32_t hash = mix(mix(mix(2166136261u, parent), count), (uint32_t)size);
  for (int i = 0; i < size; i++)
    hash = mix(hash, (uint32_t)world[i]);
  /* Those below are the world and the ranks themselves. */
  return hash <= (uint32_t)world_size ? hash + (uint32_t)world_size + 1 : hash;
}

/* How often a number has been asked for, which is the same on all members. */
struct counter {
  uint32_t key, count;
};

static uint32_t next_count(uint32_t key)
{
  static struct counter *counters;
  static int length, capacity;
  for (int i = 0; i < length; i++)
    if (counters[i].key == key)
      return ++counters[i].count;
  if (length == capacity) {
    capacity = capacity ? 2 * capacity : 16;
    counters = realloc(counters, capacity * sizeof *counters);
  }
  counters[length++] = (struct counter){key, 0};
  return 0;
}

/* `kind` tells apart calls that members may make in different orders. */
static uint32_t new_number(struct communicator *parent, uint32_t kind, int size, const int *world)
{
  uint32_t id = mix(parent->both ? parent->both->id : parent->id, kind);
  uint32_t first = number_of(id, 0, size, world), count = next_count(first);
  return count ? number_of(id, count, size, world) : first;
}

/* ---- making ---- */

static MPI_Comm real_copy(MPI_Comm parent)
{
  MPI_Comm copy;
  REAL(Comm_split)(parent, 0, 0, &copy);
  return copy;
}

/* The time in which members agree on a new communicator. */
static void agree(struct communicator *new)
{
  answer((struct operation){.kind = OP_COLLECTIVE,
                            .flags = COLL_BCAST,
                            .communicator = new->index,
                            .request = NONE,
                            .count = 4,
                            .recv_count = 4,
                            .bytes = 1,
                            .source_bytes = 1});
  release((struct table *)((char *)shared + own->table));
}

struct communicator *make_communicator(struct communicator *parent, uint32_t kind, int size, const int *world, MPI_Comm *handle)
{
  bool is_member = false;
  for (int i = 0; i < size; i++)
    is_member |= world[i] == world_rank;
  *handle = MPI_COMM_NULL;
  if (!is_member)
    return NULL;
  *handle = real_copy(parent->handle);
  struct communicator *new = new_communicator(*handle, new_number(parent, kind, size, world), size, world);
  agree(new);
  return new;
}

/* Makes both groups of an intercommunicator, of which the lower one has the lower first rank. */
static struct communicator *make_intercommunicator(struct communicator *parent, MPI_Comm handle, int size, const int *world, int remote_size,
                                                   const int *remote)
{
  int *both = malloc((size + remote_size) * sizeof *both);
  bool is_lower = world[0] < remote[0];
  memcpy(both + (is_lower ? 0 : remote_size), world, size * sizeof *both);
  memcpy(both + (is_lower ? size : 0), remote, remote_size * sizeof *both);
  uint32_t id = new_number(parent, 0, size + remote_size, both);
  struct communicator *all = new_communicator(MPI_COMM_NULL, id, size + remote_size, both);
  struct communicator *new = new_communicator(handle, number_of(id, 1, size, world), size, world);
  new->remote = malloc((remote_size + 1) * sizeof *new->remote);
  memcpy(new->remote, remote, remote_size * sizeof *remote);
  new->remote_size = remote_size;
  new->is_lower = is_lower;
  new->both = all;
  /* Messages between the groups are told apart by the communicator of both. */
  new->index = all->index;
  free(both);
  return new;
}

struct communicator *copy_communicator(struct communicator *parent, MPI_Comm handle)
{
  if (parent->remote)
    return make_intercommunicator(parent, handle, parent->size, parent->world, parent->remote_size, parent->remote);
  struct communicator *new = new_communicator(handle, new_number(parent, 0, parent->size, parent->world), parent->size, parent->world);
  if (parent->topology)
    new->topology = copy_topology(parent->topology);
  return new;
}

#define BEGIN(name, handle, ...)                                                                                                         \
  CALL(name, __VA_ARGS__)                                                                                                                \
  struct communicator *c = communicator_of(handle);                                                                                      \
  CHECK(c, MPI_COMM_WORLD, communicator_error(handle));

/* The real library copies and deletes attributes by functions of the program, whose calls are those of a rank: so its depth is left. */

static int split_between(struct communicator *c, int color, int key, MPI_Comm *result);
static int create_between(struct communicator *c, struct group *group, MPI_Comm *result);

/* ---- the functions ---- */

INTERPOSE(Comm_dup)
int MPI_Comm_dup(MPI_Comm handle, MPI_Comm *result)
{
  BEGIN(Comm_dup, handle, handle, result)
  depth_down();
  int error = REAL(Comm_dup)(handle, result);
  depth_up();
  CHECK(!error, handle, error);
  agree(copy_communicator(c, *result));
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Comm_dup_with_info)
int MPI_Comm_dup_with_info(MPI_Comm handle, MPI_Info info, MPI_Comm *result)
{
  BEGIN(Comm_dup_with_info, handle, handle, info, result)
  depth_down();
  int error = REAL(Comm_dup_with_info)(handle, info, result);
  depth_up();
  CHECK(!error, handle, error);
  agree(copy_communicator(c, *result));
  RETURN(handle, MPI_SUCCESS);
}

/* What members of a new communicator know is enough to begin: the request takes the time of the broadcast. */
INTERPOSE(Comm_idup)
int MPI_Comm_idup(MPI_Comm handle, MPI_Comm *result, MPI_Request *request)
{
  BEGIN(Comm_idup, handle, handle, result, request)
  depth_down();
  int error = REAL(Comm_dup)(handle, result);
  depth_up();
  CHECK(!error, handle, error);
  copy_communicator(c, *result);
  depth_down();
  error = MPI_Ibarrier(*result, request);
  depth_up();
  RETURN(handle, error);
}

INTERPOSE(Comm_create)
int MPI_Comm_create(MPI_Comm handle, MPI_Group members, MPI_Comm *result)
{
  BEGIN(Comm_create, handle, handle, members, result)
  struct group *group = group_of(members);
  CHECK(group, handle, group_error(members));
  if (c->remote)
    RETURN(handle, create_between(c, group, result));
  make_communicator(c, 0, group->size, group->world, result);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Comm_create_group)
int MPI_Comm_create_group(MPI_Comm handle, MPI_Group members, int tag, MPI_Comm *result)
{
  BEGIN(Comm_create_group, handle, handle, members, tag, result)
  struct group *group = group_of(members);
  CHECK(group, handle, group_error(members));
  make_communicator(c, (uint32_t)tag + 1, group->size, group->world, result);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Comm_free)
int MPI_Comm_free(MPI_Comm *handle)
{
  BEGIN(Comm_free, *handle, handle)
  MPI_Comm freed = *handle;
  depth_down();
  int error = REAL(Comm_free)(handle);
  depth_up();
  CHECK(!error, freed, error);
  forget_communicator(c);
  *handle = MPI_COMM_NULL;
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Comm_disconnect)
int MPI_Comm_disconnect(MPI_Comm *handle) { return MPI_Comm_free(handle); }

/* ---- split ---- */

struct division {
  int color, key;
};

/* Members that a rank divides, with their keys and ranks in the parent. */
struct candidate {
  int key, rank;
};

static int by_key(const void *a, const void *b)
{
  const struct candidate *x = a, *y = b;
  return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->rank - y->rank;
}

/* Lists the ranks of one colour in their new order; returns their number. */
static int select_color(struct communicator *c, const struct division *divisions, int color, struct candidate *selected)
{
  int length = 0;
  for (int i = 0; i < c->size; i++)
    if (divisions[i].color == color)
      selected[length++] = (struct candidate){divisions[i].key, i};
  qsort(selected, length, sizeof *selected, by_key);
  return length;
}

/* The communicator in which rank 0 tells the others of a split, beside the messages of the program. */
static struct communicator *beside(struct communicator *c)
{
  if (!c->beside)
    c->beside = new_communicator(MPI_COMM_NULL, number_of(c->id, UINT32_MAX, c->size, c->world), c->size, c->world);
  return c->beside;
}

static int by_color(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* Rank 0 sends 8 B to the members of each colour in turn. */
static void tell_members(struct communicator *c, const struct division *divisions)
{
  int *colors = malloc(c->size * sizeof *colors);
  struct candidate *selected = malloc(c->size * sizeof *selected);
  for (int i = 0; i < c->size; i++)
    colors[i] = divisions[i].color;
  qsort(colors, c->size, sizeof *colors, by_color);
  for (int i = 0; i < c->size; i++) {
    if (colors[i] == MPI_UNDEFINED || (i > 0 && colors[i] == colors[i - 1]))
      continue;
    int length = select_color(c, divisions, colors[i], selected);
    for (int k = 0; k < length; k++)
      if (selected[k].rank != 0)
        post((struct operation){.kind = OP_SEND, .peer = c->world[selected[k].rank], .communicator = beside(c)->index, .request = NONE, .bytes = 8});
  }
  free(colors);
  free(selected);
}

/* Gathers what all members contribute at rank 0, which tells the others. */
static struct division *exchange_divisions(struct communicator *c, struct division own_division)
{
  struct division *divisions = malloc(c->size * sizeof *divisions);
  beside(c);
  struct table *table = exchange(c, COLL_GATHER, &own_division, sizeof own_division, sizeof own_division);
  if (c->rank > 0 && own_division.color != MPI_UNDEFINED)
    answer((struct operation){.kind = OP_RECV,
                              .source = c->world[0],
                              .source_tag = 0,
                              .communicator = beside(c)->index,
                              .request = NONE,
                              .source_bytes = 8});
  for (int i = 0; i < c->size; i++) {
    struct division *division = contribution(table, i);
    divisions[i] = division ? *division : (struct division){MPI_UNDEFINED, 0};
  }
  if (c->rank == 0)
    tell_members(c, divisions);
  release(table);
  return divisions;
}

static int split(struct communicator *c, int color, int key, MPI_Comm *result)
{
  struct division *divisions = exchange_divisions(c, (struct division){color, key});
  struct candidate *selected = malloc(c->size * sizeof *selected);
  int length = color == MPI_UNDEFINED ? 0 : select_color(c, divisions, color, selected), *world = malloc((length + 1) * sizeof *world);
  for (int i = 0; i < length; i++)
    world[i] = c->world[selected[i].rank];
  make_communicator(c, 0, length, world, result);
  free(divisions);
  free(selected);
  free(world);
  return MPI_SUCCESS;
}

INTERPOSE(Comm_split)
int MPI_Comm_split(MPI_Comm handle, int color, int key, MPI_Comm *result)
{
  BEGIN(Comm_split, handle, handle, color, key, result)
  CHECK(color >= 0 || color == MPI_UNDEFINED, handle, explained_error(MPI_ERR_ARG, "the color is %d", color));
  RETURN(handle, c->remote ? split_between(c, color, key, result) : split(c, color, key, result));
}

/* Each rank has a host of its own. */
INTERPOSE(Comm_split_type)
int MPI_Comm_split_type(MPI_Comm handle, int type, int key, MPI_Info info, MPI_Comm *result)
{
  BEGIN(Comm_split_type, handle, handle, type, key, info, result)
  int me = c->world[c->rank];
  *result = MPI_COMM_NULL;
#if FOR_MPICH
  /* Of the hardware within a host, and of what is near it, nothing is known. */
  type = type == MPI_COMM_TYPE_SHARED ? type : MPI_UNDEFINED;
#endif
  if (type != MPI_UNDEFINED) {
    *result = real_copy(handle);
    new_communicator(*result, new_number(c, 0, 1, &me), 1, &me);
  }
  RETURN(handle, MPI_SUCCESS);
}

/* ---- intercommunicators ---- */

/* Gathers the members of a group that each rank of both groups lists; returns those of one side. */
static int select_side(struct communicator *c, struct table *table, bool is_remote, int color, struct candidate *selected)
{
  int size = is_remote ? c->remote_size : c->size, length = 0;
  int first = is_remote == c->is_lower ? (is_remote ? c->size : c->remote_size) : 0;
  for (int i = 0; i < size; i++) {
    struct division *division = contribution(table, first + i);
    if (division && division->color == color)
      selected[length++] = (struct candidate){division->key, (is_remote ? c->remote : c->world)[i]};
  }
  return length;
}

/* Makes an intercommunicator of those members of both groups that have one colour. */
static int divide_between(struct communicator *c, struct division own_division, MPI_Comm *result)
{
  struct table *table = exchange(c, COLL_ALLGATHER, &own_division, sizeof own_division, sizeof own_division);
  struct candidate *near = malloc((c->size + 1) * sizeof *near), *far = malloc((c->remote_size + 1) * sizeof *far);
  int n = 0, m = 0;
  *result = MPI_COMM_NULL;
  if (own_division.color != MPI_UNDEFINED) {
    n = select_side(c, table, false, own_division.color, near);
    m = select_side(c, table, true, own_division.color, far);
  }
  release(table);
  if (n > 0 && m > 0) {
    int *world = malloc(n * sizeof *world), *remote = malloc(m * sizeof *remote);
    qsort(near, n, sizeof *near, by_key);
    qsort(far, m, sizeof *far, by_key);
    for (int i = 0; i < n; i++)
      world[i] = near[i].rank;
    for (int i = 0; i < m; i++)
      remote[i] = far[i].rank;
    *result = real_copy(c->handle);
    make_intercommunicator(c, *result, n, world, m, remote);
    free(world);
    free(remote);
  }
  free(near);
  free(far);
  return MPI_SUCCESS;
}

static int split_between(struct communicator *c, int color, int key, MPI_Comm *result) { return divide_between(c, (struct division){color, key}, result); }

static int create_between(struct communicator *c, struct group *group, MPI_Comm *result)
{
  struct division division = {MPI_UNDEFINED, 0};
  for (int i = 0; i < group->size; i++)
    if (group->world[i] == world_rank)
      division = (struct division){0, i};
  return divide_between(c, division, result);
}

/* Members of a group, as its leader sends them to that of the other group. */
static void send_members(struct communicator *by, int peer, int tag, const int *numbers, int length)
{
  uint64_t block = new_block(length * sizeof(int));
  memcpy(payload(block), numbers, length * sizeof(int));
  post((struct operation){
      .kind = OP_SEND, .peer = peer, .tag = tag, .communicator = by->index, .request = NONE, .bytes = length * sizeof(int), .block = block});
}

static int *receive_members(struct communicator *by, int peer, int tag, int *length)
{
  answer((struct operation){.kind = OP_RECV, .source = peer, .source_tag = tag, .communicator = by->index, .request = NONE, .source_bytes = UINT32_MAX});
  *length = (int)(own->received.bytes / sizeof(int));
  int *members = malloc((*length + 1) * sizeof *members);
  memcpy(members, payload(own->received.block), *length * sizeof *members);
  free_block(own->received.block);
  return members;
}

INTERPOSE(Intercomm_create)
int MPI_Intercomm_create(MPI_Comm handle, int leader, MPI_Comm bridge, int remote_leader, int tag, MPI_Comm *result)
{
  BEGIN(Intercomm_create, handle, handle, leader, bridge, remote_leader, tag, result)
  CHECK(leader >= 0 && leader < c->size, handle, rank_error(c, "leader", leader));
  int remote_size = 0, *remote = NULL;
  if (c->rank == leader) {
    struct communicator *by = communicator_of(bridge);
    CHECK(by, handle, communicator_error(bridge));
    CHECK(remote_leader >= 0 && remote_leader < peers(by), handle, rank_error(by, "remote leader", remote_leader));
    send_members(by, peer_world(by, remote_leader), tag, c->world, c->size);
    remote = receive_members(by, peer_world(by, remote_leader), tag, &remote_size);
  }
  depth_down();
  MPI_Bcast(&remote_size, 1, MPI_INT, leader, handle);
  if (c->rank != leader)
    remote = malloc((remote_size + 1) * sizeof *remote);
  MPI_Bcast(remote, remote_size, MPI_INT, leader, handle);
  depth_up();
  *result = real_copy(handle);
  make_intercommunicator(communicator_of(MPI_COMM_WORLD), *result, c->size, c->world, remote_size, remote);
  free(remote);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Intercomm_merge)
int MPI_Intercomm_merge(MPI_Comm handle, int high, MPI_Comm *result)
{
  BEGIN(Intercomm_merge, handle, handle, high, result)
  CHECK(c->remote, handle, communicator_error(handle));
  struct table *table = exchange(c, COLL_ALLGATHER, &high, sizeof high, sizeof high);
  int remote_high = *(int *)contribution(table, c->is_lower ? c->size : 0), size = c->size + c->remote_size;
  release(table);
  bool is_first = high == remote_high ? c->is_lower : !high;
  int *world = malloc(size * sizeof *world);
  memcpy(world + (is_first ? 0 : c->remote_size), c->world, c->size * sizeof *world);
  memcpy(world + (is_first ? c->size : 0), c->remote, c->remote_size * sizeof *world);
  *result = real_copy(handle);
  agree(new_communicator(*result, new_number(c, 0, size, world), size, world));
  free(world);
  RETURN(handle, MPI_SUCCESS);
}
