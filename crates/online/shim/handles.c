/* Handles of communicators and groups: objects of the real library, so that its Fortran functions and attributes know them. */
#include "online.h"
#include <stdlib.h>
#include <string.h>

struct entry {
  void *key, *value;
};

static struct map communicators, groups;
static uint32_t next_index;

static struct entry *find(struct map *map, void *key)
{
  size_t at = ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20 & (map->capacity - 1);
  while (map->entries[at].key && map->entries[at].key != key)
    at = (at + 1) & (map->capacity - 1);
  return &map->entries[at];
}

void *map_get(struct map *map, void *key) { return map->capacity ? find(map, key)->value : NULL; }

void map_put(struct map *map, void *key, void *value)
{
  if (2 * map->length >= map->capacity) {
    struct map larger = {calloc(map->capacity ? 2 * map->capacity : 64, sizeof(struct entry)), map->capacity ? 2 * map->capacity : 64, 0};
    for (size_t i = 0; i < map->capacity; i++)
      if (map->entries[i].value) {
        *find(&larger, map->entries[i].key) = map->entries[i];
        larger.length++;
      }
    free(map->entries);
    *map = larger;
  }
  struct entry *entry = find(map, key);
  map->length += entry->key == NULL;
  *entry = (struct entry){key, value};
}

static int *copied(int length, const int *numbers)
{
  int *copy = malloc((length + 1) * sizeof *copy);
  memcpy(copy, numbers, length * sizeof *copy);
  return copy;
}

static int place(int length, const int *world, int rank)
{
  for (int i = 0; i < length; i++)
    if (world[i] == rank)
      return i;
  return MPI_UNDEFINED;
}

struct communicator *communicator_of(MPI_Comm handle) { return handle == MPI_COMM_NULL ? NULL : map_get(&communicators, KEY(handle)); }

struct communicator *new_communicator(MPI_Comm handle, uint32_t id, int size, const int *world)
{
  struct communicator *c = calloc(1, sizeof *c);
  *c = (struct communicator){.handle = handle, .id = id, .index = next_index++, .size = size, .world = copied(size, world), .references = 1, .made_by = current_call()};
  c->rank = place(size, world, world_rank);
  if (handle != MPI_COMM_NULL)
    map_put(&communicators, KEY(handle), c);
  if (c->index > 0) {
    uint64_t members = new_block(size * sizeof(int));
    memcpy(payload(members), world, size * sizeof(int));
    post((struct operation){.kind = OP_JOIN, .communicator = c->index, .tag = (int32_t)id, .peer = c->rank, .count = size, .block = members});
  }
  return c;
}

void warn_of_communicators(void)
{
  uint32_t number = 0;
  struct communicator *first = NULL;
  for (size_t i = 0; i < communicators.capacity; i++) {
    struct communicator *c = communicators.entries[i].value;
    if (!c || !c->made_by.name)
      continue;
    number++;
    first = !first || c->index < first->index ? c : first;
  }
  if (first)
    warn_of("communicator(s) were never freed", number, first->made_by);
}

/* ---- what the program has made and not freed ---- */

struct thing {
  void *handle;
  struct call by;
};

static struct {
  struct thing *things;
  uint32_t length, capacity;
} made[MADE_KINDS];

static uint32_t place_of(enum made kind, const void *handle)
{
  uint32_t at = made[kind].length;
  while (at > 0 && made[kind].things[at - 1].handle != handle)
    at--;
  return at;
}

void note_made(enum made kind, void *handle, struct call by)
{
  if (place_of(kind, handle) > 0)
    return;
  if (made[kind].length == made[kind].capacity) {
    made[kind].capacity = made[kind].capacity ? 2 * made[kind].capacity : 16;
    made[kind].things = realloc(made[kind].things, made[kind].capacity * sizeof(struct thing));
  }
  made[kind].things[made[kind].length++] = (struct thing){handle, by};
}

void note_freed(enum made kind, void *handle)
{
  uint32_t at = place_of(kind, handle);
  if (at > 0)
    memmove(made[kind].things + at - 1, made[kind].things + at, (made[kind].length-- - at) * sizeof(struct thing));
}

void warn_of_made(void)
{
  static const char *const texts[MADE_KINDS] = {"datatype(s) were never freed", "operator(s) were never freed", "group(s) were never freed"};
  for (int kind = 0; kind < MADE_KINDS; kind++)
    if (made[kind].length > 0)
      warn_of(texts[kind], made[kind].length, made[kind].things[0].by);
}

void hold_communicator(struct communicator *c) { c->references++; }

void drop_communicator(struct communicator *c)
{
  if (--c->references > 0)
    return;
  if (c->topology)
    free_topology(c->topology);
  if (c->both)
    drop_communicator(c->both);
  if (c->beside)
    drop_communicator(c->beside);
  free(c->world);
  free(c->remote);
  free(c);
}

void forget_communicator(struct communicator *c)
{
  map_put(&communicators, KEY(c->handle), NULL);
  drop_communicator(c);
}

int peer_rank(const struct communicator *c, int world) { return place(peers(c), c->remote ? c->remote : c->world, world); }

struct group *group_of(MPI_Group handle)
{
  static struct group empty = {.rank = MPI_UNDEFINED};
  if (handle == MPI_GROUP_NULL)
    return NULL;
  return handle == MPI_GROUP_EMPTY ? &empty : map_get(&groups, KEY(handle));
}

MPI_Group make_group(int size, const int *world, struct call by)
{
  if (size == 0)
    return MPI_GROUP_EMPTY;
  MPI_Group self, handle;
  int first = 0;
  REAL(Comm_group)(MPI_COMM_SELF, &self);
  REAL(Group_incl)(self, 1, &first, &handle);
  REAL(Group_free)(&self);
  struct group *group = calloc(1, sizeof *group);
  *group = (struct group){handle, place(size, world, world_rank), size, copied(size, world)};
  map_put(&groups, KEY(handle), group);
  note_made(MADE_GROUP, KEY(handle), by);
  return handle;
}

void init_handles(void)
{
  int *world = malloc(world_size * sizeof *world);
  for (int i = 0; i < world_size; i++)
    world[i] = i;
  new_communicator(MPI_COMM_WORLD, 0, world_size, world);
  new_communicator(MPI_COMM_SELF, (uint32_t)world_rank + 1, 1, &world_rank);
  free(world);
}

/* ---- the functions of groups ---- */

static int comparison(int n, const int *a, int m, const int *b)
{
  if (n != m)
    return MPI_UNEQUAL;
  if (memcmp(a, b, n * sizeof *a) == 0)
    return MPI_IDENT;
  for (int i = 0; i < n; i++)
    if (place(m, b, a[i]) == MPI_UNDEFINED)
      return MPI_UNEQUAL;
  return MPI_SIMILAR;
}

static int member_error(const struct group *group, int rank)
{
  return explained_error(MPI_ERR_RANK, "the rank is %d, and the group has the ranks 0 to %d", rank, group->size - 1);
}

#define GROUP(name, handle)                                                                                                              \
  struct group *name = group_of(handle);                                                                                                 \
  if (!name)                                                                                                                             \
    return RAISE(MPI_COMM_WORLD, group_error(handle));

INTERPOSE(Group_size)
int MPI_Group_size(MPI_Group handle, int *size)
{
  LOCAL(Group_size, handle, size)
  GROUP(group, handle)
  *size = group->size;
  return MPI_SUCCESS;
}

INTERPOSE(Group_rank)
int MPI_Group_rank(MPI_Group handle, int *rank)
{
  LOCAL(Group_rank, handle, rank)
  GROUP(group, handle)
  *rank = group->rank;
  return MPI_SUCCESS;
}

INTERPOSE(Group_compare)
int MPI_Group_compare(MPI_Group one, MPI_Group other, int *result)
{
  LOCAL(Group_compare, one, other, result)
  GROUP(a, one)
  GROUP(b, other)
  *result = comparison(a->size, a->world, b->size, b->world);
  return MPI_SUCCESS;
}

INTERPOSE(Group_translate_ranks)
int MPI_Group_translate_ranks(MPI_Group from, int n, const int ranks[], MPI_Group to, int result[])
{
  LOCAL(Group_translate_ranks, from, n, ranks, to, result)
  GROUP(a, from)
  GROUP(b, to)
  for (int i = 0; i < n; i++) {
    if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= a->size))
      return RAISE(MPI_COMM_WORLD, member_error(a, ranks[i]));
    result[i] = ranks[i] == MPI_PROC_NULL ? MPI_PROC_NULL : place(b->size, b->world, a->world[ranks[i]]);
  }
  return MPI_SUCCESS;
}

INTERPOSE(Group_incl)
int MPI_Group_incl(MPI_Group handle, int n, const int ranks[], MPI_Group *result)
{
  LOCAL(Group_incl, handle, n, ranks, result)
  GROUP(group, handle)
  int world[n + 1];
  for (int i = 0; i < n; i++) {
    if (ranks[i] < 0 || ranks[i] >= group->size)
      return RAISE(MPI_COMM_WORLD, member_error(group, ranks[i]));
    world[i] = group->world[ranks[i]];
  }
  *result = new_group(n, world);
  return MPI_SUCCESS;
}

INTERPOSE(Group_excl)
int MPI_Group_excl(MPI_Group handle, int n, const int ranks[], MPI_Group *result)
{
  LOCAL(Group_excl, handle, n, ranks, result)
  GROUP(group, handle)
  int world[group->size + 1], size = 0;
  for (int i = 0; i < n; i++)
    if (ranks[i] < 0 || ranks[i] >= group->size)
      return RAISE(MPI_COMM_WORLD, member_error(group, ranks[i]));
  for (int i = 0; i < group->size; i++)
    if (place(n, ranks, i) == MPI_UNDEFINED)
      world[size++] = group->world[i];
  *result = new_group(size, world);
  return MPI_SUCCESS;
}

/* Lists the ranks of ranges; returns their number, or -1 if one is none of the group. */
static int expand(int n, int ranges[][3], int size, int *ranks)
{
  int length = 0;
  for (int i = 0; i < n; i++) {
    int first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
    if (stride == 0)
      return -1;
    for (int rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      if (rank < 0 || rank >= size || length == size)
        return -1;
      ranks[length++] = rank;
    }
  }
  return length;
}

INTERPOSE(Group_range_incl)
int MPI_Group_range_incl(MPI_Group handle, int n, int ranges[][3], MPI_Group *result)
{
  LOCAL(Group_range_incl, handle, n, ranges, result)
  GROUP(group, handle)
  int ranks[group->size + 1], length = expand(n, ranges, group->size, ranks);
  return length < 0 ? RAISE(MPI_COMM_WORLD, MPI_ERR_RANK) : MPI_Group_incl(handle, length, ranks, result);
}

INTERPOSE(Group_range_excl)
int MPI_Group_range_excl(MPI_Group handle, int n, int ranges[][3], MPI_Group *result)
{
  LOCAL(Group_range_excl, handle, n, ranges, result)
  GROUP(group, handle)
  int ranks[group->size + 1], length = expand(n, ranges, group->size, ranks);
  return length < 0 ? RAISE(MPI_COMM_WORLD, MPI_ERR_RANK) : MPI_Group_excl(handle, length, ranks, result);
}

/* The ranks of one group that are, or are not, in another one, after `length` others. */
static int select_ranks(const struct group *from, const struct group *other, bool in, int *world, int length)
{
  for (int i = 0; i < from->size; i++)
    if ((place(other->size, other->world, from->world[i]) != MPI_UNDEFINED) == in)
      world[length++] = from->world[i];
  return length;
}

#define SET_OPERATION(name, body)                                                                                                        \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_Group one, MPI_Group other, MPI_Group *result)                                                                      \
  {                                                                                                                                      \
    LOCAL(name, one, other, result)                                                                                                      \
    GROUP(a, one)                                                                                                                        \
    GROUP(b, other)                                                                                                                      \
    int world[a->size + b->size + 1], length = 0;                                                                                        \
    body;                                                                                                                                \
    *result = new_group(length, world);                                                                                                  \
    return MPI_SUCCESS;                                                                                                                  \
  }

SET_OPERATION(Group_intersection, length = select_ranks(a, b, true, world, 0))
SET_OPERATION(Group_difference, length = select_ranks(a, b, false, world, 0))
SET_OPERATION(Group_union, (memcpy(world, a->world, a->size * sizeof *world), length = select_ranks(b, a, false, world, a->size)))

INTERPOSE(Group_free)
int MPI_Group_free(MPI_Group *handle)
{
  LOCAL(Group_free, handle)
  GROUP(group, *handle)
  if (*handle != MPI_GROUP_EMPTY) {
    note_freed(MADE_GROUP, KEY(*handle));
    map_put(&groups, KEY(*handle), NULL);
    REAL(Group_free)(handle);
    free(group->world);
    free(group);
  }
  *handle = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

INTERPOSE(Comm_group)
int MPI_Comm_group(MPI_Comm handle, MPI_Group *result)
{
  LOCAL(Comm_group, handle, result)
  struct communicator *c = communicator_of(handle);
  if (!c)
    return RAISE(MPI_COMM_WORLD, communicator_error(handle));
  *result = new_group(c->size, c->world);
  return MPI_SUCCESS;
}

INTERPOSE(Comm_remote_group)
int MPI_Comm_remote_group(MPI_Comm handle, MPI_Group *result)
{
  LOCAL(Comm_remote_group, handle, result)
  struct communicator *c = communicator_of(handle);
  if (!c || !c->remote)
    return RAISE(MPI_COMM_WORLD, communicator_error(handle));
  *result = new_group(c->remote_size, c->remote);
  return MPI_SUCCESS;
}

INTERPOSE(Comm_compare)
int MPI_Comm_compare(MPI_Comm one, MPI_Comm other, int *result)
{
  LOCAL(Comm_compare, one, other, result)
  struct communicator *a = communicator_of(one), *b = communicator_of(other);
  if (!a || !b)
    return RAISE(MPI_COMM_WORLD, communicator_error(a ? other : one));
  int compared = comparison(a->size, a->world, b->size, b->world);
  if (!a->remote != !b->remote)
    compared = MPI_UNEQUAL;
  else if (a->remote) {
    int remote = comparison(a->remote_size, a->remote, b->remote_size, b->remote);
    compared = compared == MPI_UNEQUAL || remote == MPI_UNEQUAL ? MPI_UNEQUAL : compared == MPI_SIMILAR ? MPI_SIMILAR : remote;
  }
  *result = one == other ? MPI_IDENT : compared == MPI_IDENT ? MPI_CONGRUENT : compared;
  return MPI_SUCCESS;
}

#define OF_COMMUNICATOR(name, value)                                                                                                     \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_Comm handle, int *result)                                                                                           \
  {                                                                                                                                      \
    LOCAL(name, handle, result)                                                                                                          \
    struct communicator *c = communicator_of(handle);                                                                                    \
    if (!c)                                                                                                                              \
      return RAISE(MPI_COMM_WORLD, communicator_error(handle));                                                                                  \
    *result = value;                                                                                                                     \
    return MPI_SUCCESS;                                                                                                                  \
  }

OF_COMMUNICATOR(Comm_rank, c->rank)
OF_COMMUNICATOR(Comm_size, c->size)
OF_COMMUNICATOR(Comm_test_inter, c->remote != NULL)
OF_COMMUNICATOR(Comm_remote_size, c->remote_size)
