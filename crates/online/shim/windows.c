/* One-sided communication. An origin reads and writes the memory of a target itself: one rank runs at a time. Data move when an access is called,
   those of accesses that fetch and write when these have ended in simulated time: in the order in which they have their target for themselves. */
#define _GNU_SOURCE
#include "online.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Memory of a member. */
struct exposed {
  uint64_t base, bytes;
  int32_t unit, process;
};

struct window {
  MPI_Win handle;
  /* for its synchronisation */
  struct communicator *c;
  struct exposed *members;
  int flavor;
  /* block of shared memory, of its first member */
  uint64_t block;
  /* the memory is exposed, or accessed between Win_start and Win_complete */
  bool is_posted, is_started;
  /* request of the end of the exposure, once Win_test has asked for it, or NONE */
  uint32_t exposure;
  /* requests of accesses that later calls complete, and their number at which those that are complete are looked for */
  uint32_t *pending, pending_length, pending_limit;
  /* locked members, and all of them; members of the group of Win_start */
  bool *is_locked, are_locked, *is_target;
  /* The last fence lets accesses follow; whether some did. */
  bool is_fenced, is_accessed;
  /* the last fence; the last lock or start; the first lock since a fence that lets accesses follow */
  struct call fence, opening, lock_in_fence;
  struct window *next;
};

static struct window *windows;

static struct window *window_of(MPI_Win handle)
{
  for (struct window *w = windows; w; w = w->next)
    if (w->handle == handle)
      return w;
  return NULL;
}

#define WINDOW(handle)                                                                                                                   \
  struct window *w = window_of(handle);                                                                                                  \
  CHECK(w, MPI_COMM_WORLD, MPI_ERR_WIN)

/* Fails a check of an epoch, for a reason. */
#define CHECK_EPOCH(condition, why) CHECK(condition, MPI_COMM_WORLD, explained_error(MPI_ERR_RMA_SYNC, "%s", why))

static void barrier(struct communicator *c)
{
  answer((struct operation){.kind = OP_COLLECTIVE, .flags = COLL_BARRIER, .communicator = c->index, .request = NONE});
  release((struct table *)((char *)shared + own->table));
}

/* A call on a window that concerns a member. */
static struct operation window_call(struct window *w, enum window_call call, int target)
{
  return (struct operation){.kind = OP_WINDOW, .flags = call, .peer = target, .communicator = w->c->index, .request = NONE, .recv_count = NONE};
}

/* Forgets those accesses that are complete. */
static void sweep(struct window *w)
{
  uint32_t left = 0;
  for (uint32_t i = 0; i < w->pending_length; i++)
    if (own->completion[w->pending[i]].is_complete)
      release_request(w->pending[i]);
    else
      w->pending[left++] = w->pending[i];
  w->pending_length = left;
}

/* Returns the number of a request for an access that has none in the program. */
static uint32_t unnamed_request(struct window *w)
{
  MPI_Request ignored;
  if (w->pending_length == w->pending_limit) {
    sweep(w);
    w->pending_limit = 2 * w->pending_length + 64;
    w->pending = realloc(w->pending, w->pending_limit * sizeof *w->pending);
  }
  uint32_t index = new_request(REQUEST_SEND, w->c, &ignored);
  /* The program cannot leave it. */
  request_at(index)->is_freed = true;
  return w->pending[w->pending_length++] = index;
}

/* Synchronises, and waits for the end of that. */
static void synchronise(struct window *w, enum window_call call, int target)
{
  answer(window_call(w, call, target));
  sweep(w);
}

/* ---- epochs ---- */

static int locks(const struct window *w)
{
  int number = w->are_locked;
  for (int i = 0; i < w->c->size; i++)
    number += w->is_locked[i];
  return number;
}

/* Returns whether an epoch of this rank lets it access a member. */
static bool has_epoch(const struct window *w, int target)
{
  return w->is_fenced || w->are_locked || w->is_locked[target] || (w->is_started && w->is_target[target]);
}

/* Warns of two calls on the window, of which the second one is in progress. */
static void warn_of_both(struct call first, const char *what)
{
  char place[500] = "";
  called_from(place, sizeof place, first.site);
  struct call second = current_call();
  warn(second, "%s %s of %s%s: %s", second.name, what, first.name, place, "epochs of a window must not overlap, and all must be closed");
}

static void lock_epoch(struct window *w)
{
  w->opening = current_call();
  if (w->is_fenced && w->is_accessed)
    warn_of_both(w->fence, "opens an epoch of a window in that");
  else if (w->is_fenced && !w->lock_in_fence.name)
    w->lock_in_fence = w->opening;
}

/* Begins an epoch, and ends that of the last fence. A fence with accesses since the last one ends their epoch, so that none may have been
   locked in between, unless it was said that there is no epoch. */
static void fence_epoch(struct window *w, int assertion)
{
  if (w->lock_in_fence.name && !(assertion & MPI_MODE_NOPRECEDE))
    warn_of_both(w->lock_in_fence, "ends the epoch of a fence, in which lay that");
  w->lock_in_fence.name = NULL;
  w->fence = current_call();
  w->is_fenced = !(assertion & MPI_MODE_NOSUCCEED);
  w->is_accessed = false;
}

static void warn_of_open_epochs(struct window *w)
{
  if (w->is_started || locks(w))
    warn_of_both(w->opening, "frees a window in the epoch");
  else if (w->is_fenced && w->is_accessed)
    warn_of_both(w->fence, "frees a window with accesses in the epoch");
}

/* ---- making ---- */

/* Makes the window of memory that the real library knows by a handle; members tell each other where theirs is. */
static struct window *new_window(struct communicator *c, MPI_Win handle, void *base, MPI_Aint bytes, int unit, int flavor)
{
  struct window *w = calloc(1, sizeof *w);
  struct exposed exposed = {(uint64_t)base, (uint64_t)bytes, unit, own->process};
  *w = (struct window){.handle = handle, .flavor = flavor, .exposure = NONE, .next = windows};
  w->c = copy_communicator(c, MPI_COMM_NULL);
  w->is_locked = calloc(c->size, sizeof *w->is_locked);
  w->is_target = calloc(c->size, sizeof *w->is_target);
  w->members = malloc(c->size * sizeof *w->members);
  struct table *table = exchange(w->c, COLL_WINDOW, &exposed, sizeof exposed, 8);
  for (int i = 0; i < c->size; i++)
    w->members[i] = *(struct exposed *)contribution(table, i);
  release(table);
  windows = w;
  return w;
}

#define BEGIN(name, handle, ...)                                                                                                         \
  CALL(name, __VA_ARGS__)                                                                                                                \
  struct communicator *c = communicator_of(handle);                                                                                      \
  CHECK(c && !c->remote, MPI_COMM_WORLD, communicator_error(handle));

INTERPOSE(Win_create)
int MPI_Win_create(void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm handle, MPI_Win *result)
{
  BEGIN(Win_create, handle, base, bytes, unit, info, handle, result)
  CHECK(bytes >= 0, handle, MPI_ERR_SIZE);
  CHECK(base || !bytes, handle, MPI_ERR_BUFFER);
  CHECK(unit > 0, handle, MPI_ERR_DISP);
  int error = REAL(Win_create)(base, bytes, unit, info, handle, result);
  CHECK(!error, handle, error);
  new_window(c, *result, base, bytes, unit, MPI_WIN_FLAVOR_CREATE);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Win_allocate)
int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm handle, void *base, MPI_Win *result)
{
  BEGIN(Win_allocate, handle, bytes, unit, info, handle, base, result)
  CHECK(bytes >= 0, handle, MPI_ERR_SIZE);
  int error = REAL(Win_allocate)(bytes, unit, info, handle, base, result);
  CHECK(!error, handle, error);
  new_window(c, *result, *(void **)base, bytes, unit, MPI_WIN_FLAVOR_ALLOCATE);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Win_create_dynamic)
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm handle, MPI_Win *result)
{
  BEGIN(Win_create_dynamic, handle, info, handle, result)
  int error = REAL(Win_create)(NULL, 0, 1, info, handle, result);
  CHECK(!error, handle, error);
  new_window(c, *result, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
  RETURN(handle, MPI_SUCCESS);
}

/* Memory is exposed wherever it is. */
INTERPOSE(Win_attach)
int MPI_Win_attach(MPI_Win handle, void *base, MPI_Aint bytes)
{
  LOCAL(Win_attach, handle, base, bytes)
  return MPI_SUCCESS;
}

INTERPOSE(Win_detach)
int MPI_Win_detach(MPI_Win handle, const void *base)
{
  LOCAL(Win_detach, handle, base)
  return MPI_SUCCESS;
}

/* The memory of all members is a block of the first one, which all ranks have at the same address. */
INTERPOSE(Win_allocate_shared)
int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm handle, void *base, MPI_Win *result)
{
  BEGIN(Win_allocate_shared, handle, bytes, unit, info, handle, base, result)
  enum { LINE = 64 };
  uint64_t size = ((uint64_t)bytes + LINE - 1) / LINE * LINE, first = 0, all = 0, sizes[c->size];
  struct table *table = exchange(c, COLL_ALLGATHER, &size, sizeof size, sizeof size);
  for (int i = 0; i < c->size; i++) {
    sizes[i] = *(uint64_t *)contribution(table, i);
    first += i < c->rank ? sizes[i] : 0;
    all += sizes[i];
  }
  release(table);
  uint64_t block = c->rank == 0 ? new_block(all) : 0;
  table = exchange(c, COLL_ALLGATHER, &block, sizeof block, sizeof block);
  char *begin = payload(*(uint64_t *)contribution(table, 0));
  release(table);
  *(void **)base = begin + first;
  int error = REAL(Win_create)(begin + first, bytes, unit, info, handle, result);
  CHECK(!error, handle, error);
  new_window(c, *result, begin + first, bytes, unit, MPI_WIN_FLAVOR_SHARED)->block = block;
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Win_shared_query)
int MPI_Win_shared_query(MPI_Win handle, int rank, MPI_Aint *bytes, int *unit, void *base)
{
  CALL(Win_shared_query, handle, rank, bytes, unit, base)
  WINDOW(handle);
  CHECK(w->flavor == MPI_WIN_FLAVOR_SHARED, MPI_COMM_WORLD, MPI_ERR_RMA_FLAVOR);
  /* MPI_PROC_NULL is the first member with memory. */
  for (int i = 0; rank == MPI_PROC_NULL && i < w->c->size; i++)
    if (w->members[i].bytes > 0 || i == w->c->size - 1)
      rank = i;
  struct exposed *member = &w->members[rank];
  *bytes = (MPI_Aint)member->bytes;
  *unit = member->unit;
  *(void **)base = (void *)member->base;
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_free)
int MPI_Win_free(MPI_Win *handle)
{
  CALL(Win_free, handle)
  WINDOW(*handle);
  warn_of_open_epochs(w);
  synchronise(w, WINDOW_FREE, 0);
  for (struct window **link = &windows; *link; link = &(*link)->next)
    if (*link == w) {
      *link = w->next;
      break;
    }
  int error = REAL(Win_free)(handle);
  if (w->block)
    free_block(w->block);
  drop_communicator(w->c);
  free(w->pending);
  free(w->is_locked);
  free(w->is_target);
  free(w->members);
  free(w);
  RETURN(MPI_COMM_WORLD, error);
}

INTERPOSE(Win_get_group)
int MPI_Win_get_group(MPI_Win handle, MPI_Group *result)
{
  CALL(Win_get_group, handle, result)
  WINDOW(handle);
  *result = new_group(w->c->size, w->c->world);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_get_attr)
int MPI_Win_get_attr(MPI_Win handle, int key, void *value, int *flag)
{
  LOCAL(Win_get_attr, handle, key, value, flag)
  struct window *w = window_of(handle);
  int error = REAL(Win_get_attr)(handle, key, value, flag);
  if (w && key == MPI_WIN_CREATE_FLAVOR && error == MPI_SUCCESS)
    *(int **)value = &w->flavor;
  return error;
}

/* ---- access ---- */

static void fail_access(const char *what) { fail("the memory of its target cannot be %s: %s", what, strerror(errno)); }

static void copy_remote(struct window *w, int target, uint64_t address, void *here, uint64_t bytes, bool writes)
{
  struct iovec near = {here, bytes}, far = {(void *)address, bytes};
  struct exposed *member = &w->members[target];
  if (bytes == 0)
    return;
  if (target == w->c->rank || w->flavor == MPI_WIN_FLAVOR_SHARED) {
    memmove(writes ? (void *)address : here, writes ? here : (void *)address, bytes);
    return;
  }
  ssize_t moved = writes ? process_vm_writev(member->process, &near, 1, &far, 1, 0) : process_vm_readv(member->process, &near, 1, &far, 1, 0);
  if (moved != (ssize_t)bytes)
    fail_access(writes ? "written" : "read");
}

/* Elements in the memory of a target, and a copy of the bytes from the first to the last. */
struct part {
  struct window *w;
  int target, count;
  MPI_Datatype type;
  uint64_t address, bytes;
  ptrdiff_t lower;
  char *copy;
};

/* Returns a part without its copy. */
static struct part locate(struct window *w, int target, MPI_Aint place, int count, MPI_Datatype type)
{
  struct exposed *member = &w->members[target];
  MPI_Aint lower, extent;
  REAL(Type_get_true_extent)(type, &lower, &extent);
  struct part part = {w, target, count, type, member->base + (uint64_t)(place * member->unit), 0, lower, NULL};
  part.bytes = count ? (uint64_t)((count - 1) * extent_of(type) + extent) : 0;
  return part;
}

static bool is_in_window(struct part part)
{
  struct exposed *member = &part.w->members[part.target];
  uint64_t first = part.address + part.lower - member->base;
  return part.bytes == 0 || part.w->flavor == MPI_WIN_FLAVOR_DYNAMIC || (first <= member->bytes && part.bytes <= member->bytes - first);
}

static struct part part_at(struct window *w, int target, MPI_Aint place, int count, MPI_Datatype type)
{
  struct part part = locate(w, target, place, count, type);
  part.copy = calloc(1, part.bytes + 1);
  return part;
}

static void read_part(struct part *p) { copy_remote(p->w, p->target, p->address + p->lower, p->copy, p->bytes, false); }

/* Writes the bytes that elements cover, and none in the gaps between them. */
static void write_part(struct part *p)
{
  uint64_t packed = packed_size(p->count, p->type);
  if (packed == p->bytes) {
    copy_remote(p->w, p->target, p->address + p->lower, p->copy, p->bytes, true);
    return;
  }
  char *ones = malloc(packed + 1), *mask = calloc(1, p->bytes + 1);
  memset(ones, 0xFF, packed);
  unpack(ones, packed, mask - p->lower, p->count, p->type);
  for (uint64_t begin = 0, end; begin < p->bytes; begin = end) {
    for (end = begin; end < p->bytes && mask[end] == mask[begin]; end++)
      ;
    if (mask[begin])
      copy_remote(p->w, p->target, p->address + p->lower + begin, p->copy + begin, end - begin, true);
  }
  free(ones);
  free(mask);
}

/* The predefined type of the elements of a type. */
static MPI_Datatype element_type(MPI_Datatype type)
{
  int integers, addresses, types, combiner;
  REAL(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
  if (combiner == MPI_COMBINER_NAMED || types == 0)
    return type;
  int numbers[integers + 1];
  MPI_Aint places[addresses + 1];
  MPI_Datatype inner[types];
  REAL(Type_get_contents)(type, integers, addresses, types, numbers, places, inner);
  return element_type(inner[0]);
}

/* Combines packed data with those of a target: `with` becomes `data op with`. */
static void combine(const char *data, char *with, uint64_t bytes, MPI_Datatype element, MPI_Op op)
{
  uint64_t size = packed_size(1, element), count = size ? bytes / size : 0;
  ptrdiff_t step = extent_of(element);
  char *left = calloc(count + 1, (size_t)step), *right = calloc(count + 1, (size_t)step);
  unpack(data, bytes, left, count, element);
  unpack(with, bytes, right, count, element);
  REAL(Reduce_local)(left, right, (int)count, element, op);
  pack(right, count, element, with);
  free(left);
  free(right);
}

/* Packs data of the origin. */
static char *packed(const void *from, int count, MPI_Datatype type)
{
  char *data = malloc(packed_size(count, type) + 1);
  pack(from, count, type, data);
  return data;
}

static void put_data(const void *from, int count, MPI_Datatype type, struct part *p)
{
  char *data = packed(from, count, type);
  unpack(data, packed_size(count, type), p->copy - p->lower, p->count, p->type);
  write_part(p);
  free(data);
}

static void get_data(void *to, int count, MPI_Datatype type, struct part *p)
{
  read_part(p);
  char *data = packed(p->copy - p->lower, p->count, p->type);
  unpack(data, packed_size(p->count, p->type), to, count, type);
  free(data);
}

static void accumulate_data(const void *from, int count, MPI_Datatype type, struct part *p, MPI_Op op)
{
  if (op == MPI_NO_OP)
    return;
  if (op == MPI_REPLACE) {
    put_data(from, count, type, p);
    return;
  }
  read_part(p);
  uint64_t bytes = packed_size(p->count, p->type);
  char *data = packed(from, count, type), *with = packed(p->copy - p->lower, p->count, p->type);
  combine(data, with, bytes, element_type(p->type), op);
  unpack(with, bytes, p->copy - p->lower, p->count, p->type);
  write_part(p);
  free(data);
  free(with);
}

static int access_error(struct window *w, const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count, MPI_Datatype target_type)
{
  if (count < 0 || target_count < 0)
    return count_error(count < 0 ? "count" : "count of the target", count < 0 ? count : target_count);
  int error = type_error(type);
  error = error ? error : type_error(target_type);
  error = error ? error : data_error(buffer, count, type);
  if (error)
    return error;
  if (target < 0 || target >= w->c->size)
    return rank_error(w->c, "target", target);
  if (!has_epoch(w, target))
    return explained_error(MPI_ERR_RMA_SYNC, "the target is accessed in no epoch: call MPI_Win_fence, MPI_Win_start or MPI_Win_lock first");
  if (packed_size(count, type) != packed_size(target_count, target_type))
    return explained_error(MPI_ERR_TRUNCATE, "the data of the origin and of the target have different lengths");
  if (is_in_window(locate(w, target, place, target_count, target_type)))
    return MPI_SUCCESS;
  return explained_error(MPI_ERR_RMA_RANGE, "the target's window does not reach so far");
}

/* Takes the time of an access. Its request, if the program has one, is that of the origin's side: only that of a get is still to be completed
   when the call returns. */
static void take_access(struct window *w, enum window_call call, int target, uint64_t bytes, bool writes, MPI_Request *request)
{
  struct operation operation = window_call(w, call, target);
  operation.bytes = bytes;
  operation.tag = writes;
  w->is_accessed |= !w->are_locked && !w->is_locked[target] && !w->is_started;
  if (call == WINDOW_GET && request) {
    operation.flags = WINDOW_RGET;
    operation.request = new_request(REQUEST_SEND, w->c, request);
    post(operation);
    return;
  }
  if (call == WINDOW_PUT || call == WINDOW_GET)
    operation.recv_count = unnamed_request(w);
  if (call == WINDOW_GET_ACCUMULATE || call == WINDOW_COMPARE_AND_SWAP)
    answer(operation);
  else
    post(operation);
  if (request)
    request_at(new_request(REQUEST_SEND, w->c, request))->is_done = true;
}

/* An access and the one with a request. */
#define ACCESS(name, rname, number, writes, parameters, arguments, body)                                                                       \
  static int access_##name(UNPACK parameters, MPI_Win handle, MPI_Request *request)                                                      \
  {                                                                                                                                      \
    WINDOW(handle);                                                                                                                      \
    int error = target == MPI_PROC_NULL ? MPI_SUCCESS : access_error(w, buffer, count, type, target, place, target_count, target_type);          \
    CHECK(!error, MPI_COMM_WORLD, error);                                                                                                \
    if (target == MPI_PROC_NULL) {                                                                                                       \
      if (request)                                                                                                                       \
        request_at(new_request(REQUEST_SEND, w->c, request))->is_done = true;                                                            \
      RETURN(MPI_COMM_WORLD, MPI_SUCCESS);                                                                                               \
    }                                                                                                                                    \
    take_access(w, number, target, packed_size(count, type), writes, request);                                                           \
    struct part p = part_at(w, target, place, target_count, target_type);                                                                \
    body;                                                                                                                                \
    free(p.copy);                                                                                                                        \
    RETURN(MPI_COMM_WORLD, MPI_SUCCESS);                                                                                                 \
  }                                                                                                                                      \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(UNPACK parameters, MPI_Win handle)                                                                                      \
  {                                                                                                                                      \
    CALL(name, UNPACK arguments, handle)                                                                                                 \
    return access_##name(UNPACK arguments, handle, NULL);                                                                                \
  }                                                                                                                                      \
  INTERPOSE(rname)                                                                                                                       \
  int MPI_##rname(UNPACK parameters, MPI_Win handle, MPI_Request *request)                                                               \
  {                                                                                                                                      \
    CALL(rname, UNPACK arguments, handle, request)                                                                                     \
    return access_##name(UNPACK arguments, handle, request);                                                                             \
  }
#define UNPACK(...) __VA_ARGS__

ACCESS(Put, Rput, WINDOW_PUT, true,
       (const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count, MPI_Datatype target_type),
       (buffer, count, type, target, place, target_count, target_type), put_data(buffer, count, type, &p))
ACCESS(Get, Rget, WINDOW_GET, false, (void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count, MPI_Datatype target_type),
       (buffer, count, type, target, place, target_count, target_type), get_data(buffer, count, type, &p))
ACCESS(Accumulate, Raccumulate, WINDOW_ACCUMULATE, true,
       (const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count, MPI_Datatype target_type, MPI_Op op),
       (buffer, count, type, target, place, target_count, target_type, op), accumulate_data(buffer, count, type, &p, op))

/* With MPI_NO_OP, the data of the origin mean nothing. */
static void get_and_accumulate(const void *from, int count, MPI_Datatype type, void *to, int result_count, MPI_Datatype result_type, struct part *p,
                               MPI_Op op)
{
  char *data = op == MPI_NO_OP ? NULL : packed(from, count, type);
  get_data(to, result_count, result_type, p);
  if (data)
    accumulate_data(data, (int)packed_size(count, type), MPI_BYTE, p, op);
  free(data);
}

ACCESS(Get_accumulate, Rget_accumulate, WINDOW_GET_ACCUMULATE, op != MPI_NO_OP,
       (const void *from, int from_count, MPI_Datatype from_type, void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
        MPI_Datatype target_type, MPI_Op op),
       (from, from_count, from_type, buffer, count, type, target, place, target_count, target_type, op),
       get_and_accumulate(from, from_count, from_type, buffer, count, type, &p, op))

INTERPOSE(Fetch_and_op)
int MPI_Fetch_and_op(const void *from, void *to, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op, MPI_Win handle)
{
  CALL(Fetch_and_op, from, to, type, target, place, op, handle)
  return access_Get_accumulate(from, 1, type, to, 1, type, target, place, 1, type, op, handle, NULL);
}

INTERPOSE(Compare_and_swap)
int MPI_Compare_and_swap(const void *from, const void *expected, void *to, MPI_Datatype type, int target, MPI_Aint place, MPI_Win handle)
{
  CALL(Compare_and_swap, from, expected, to, type, target, place, handle)
  WINDOW(handle);
  if (target != MPI_PROC_NULL) {
    int error = access_error(w, to, 1, type, target, place, 1, type);
    CHECK(!error, MPI_COMM_WORLD, error);
    uint64_t bytes = packed_size(1, type);
    take_access(w, WINDOW_COMPARE_AND_SWAP, target, bytes, false, NULL);
    struct part p = part_at(w, target, place, 1, type);
    get_data(to, 1, type, &p);
    if (memcmp(to, expected, bytes) == 0) {
      take_access(w, WINDOW_PUT, target, bytes, true, NULL);
      put_data(from, 1, type, &p);
    }
    free(p.copy);
  }
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

/* ---- synchronisation ---- */

INTERPOSE(Win_fence)
int MPI_Win_fence(int assertion, MPI_Win handle)
{
  CALL(Win_fence, assertion, handle)
  WINDOW(handle);
  CHECK_EPOCH(!locks(w) && !w->is_started, "the epoch of a lock or of MPI_Win_start is open");
  fence_epoch(w, assertion);
  if (assertion & MPI_MODE_NOPRECEDE)
    barrier(w->c);
  else
    synchronise(w, WINDOW_FENCE, 0);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

/* Returns a call with the members of a group. */
static struct operation group_call(struct window *w, enum window_call call, const struct group *group)
{
  struct operation operation = window_call(w, call, 0);
  operation.count = group->size;
  operation.block = new_block(group->size * sizeof(int32_t));
  for (int i = 0; i < group->size; i++)
    ((int32_t *)payload(operation.block))[i] = peer_rank(w->c, group->world[i]);
  return operation;
}

INTERPOSE(Win_post)
int MPI_Win_post(MPI_Group origins, int assertion, MPI_Win handle)
{
  CALL(Win_post, origins, assertion, handle)
  WINDOW(handle);
  struct group *group = group_of(origins);
  CHECK(group, MPI_COMM_WORLD, group_error(origins));
  CHECK_EPOCH(!w->is_posted, "the epoch of MPI_Win_post is open");
  w->is_posted = true;
  post(group_call(w, WINDOW_POST, group));
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_start)
int MPI_Win_start(MPI_Group targets, int assertion, MPI_Win handle)
{
  CALL(Win_start, targets, assertion, handle)
  WINDOW(handle);
  struct group *group = group_of(targets);
  CHECK(group, MPI_COMM_WORLD, group_error(targets));
  CHECK_EPOCH(!w->is_started && !locks(w), "the epoch of a lock or of MPI_Win_start is open");
  w->is_started = true;
  w->opening = current_call();
  memset(w->is_target, 0, w->c->size * sizeof *w->is_target);
  struct operation start = group_call(w, WINDOW_START, group);
  for (int i = 0; i < group->size; i++)
    if (((int32_t *)payload(start.block))[i] >= 0)
      w->is_target[((int32_t *)payload(start.block))[i]] = true;
  answer(start);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_complete)
int MPI_Win_complete(MPI_Win handle)
{
  CALL(Win_complete, handle)
  WINDOW(handle);
  CHECK_EPOCH(w->is_started, "there is no epoch of MPI_Win_start");
  w->is_started = false;
  synchronise(w, WINDOW_COMPLETE, 0);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

/* Waits for the end of the exposure that Win_test has asked for, or tests it; returns whether it is over. */
static bool end_exposure(struct window *w, enum operation_kind kind)
{
  own->list[0] = w->exposure;
  answer((struct operation){.kind = kind, .count = 1, .request = NONE});
  if (!own->completion[w->exposure].is_complete)
    return false;
  release_request(w->exposure);
  w->exposure = NONE;
  w->is_posted = false;
  return true;
}

INTERPOSE(Win_wait)
int MPI_Win_wait(MPI_Win handle)
{
  CALL(Win_wait, handle)
  WINDOW(handle);
  CHECK_EPOCH(w->is_posted, "there is no epoch of MPI_Win_post");
  if (w->exposure != NONE)
    end_exposure(w, OP_WAITALL);
  else {
    synchronise(w, WINDOW_WAIT, 0);
    w->is_posted = false;
  }
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_test)
int MPI_Win_test(MPI_Win handle, int *flag)
{
  CALL(Win_test, handle, flag)
  WINDOW(handle);
  CHECK_EPOCH(w->is_posted, "there is no epoch of MPI_Win_post");
  if (w->exposure == NONE) {
    MPI_Request ignored;
    struct operation operation = window_call(w, WINDOW_WAIT, 0);
    w->exposure = operation.request = new_request(REQUEST_SEND, w->c, &ignored);
    request_at(w->exposure)->is_freed = true;
    post(operation);
  }
  *flag = end_exposure(w, OP_TESTALL);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_lock)
int MPI_Win_lock(int type, int target, int assertion, MPI_Win handle)
{
  CALL(Win_lock, type, target, assertion, handle)
  WINDOW(handle);
  CHECK(type == MPI_LOCK_SHARED || type == MPI_LOCK_EXCLUSIVE, MPI_COMM_WORLD, MPI_ERR_LOCKTYPE);
  CHECK(target == MPI_PROC_NULL || (target >= 0 && target < w->c->size), MPI_COMM_WORLD, rank_error(w->c, "target", target));
  if (target != MPI_PROC_NULL) {
    CHECK_EPOCH(!w->is_locked[target] && !w->are_locked && !w->is_started, "an epoch with the target is open");
    w->is_locked[target] = true;
    lock_epoch(w);
    synchronise(w, type == MPI_LOCK_EXCLUSIVE ? WINDOW_LOCK_EXCLUSIVE : WINDOW_LOCK, target);
  }
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_unlock)
int MPI_Win_unlock(int target, MPI_Win handle)
{
  CALL(Win_unlock, target, handle)
  WINDOW(handle);
  CHECK(target == MPI_PROC_NULL || (target >= 0 && target < w->c->size), MPI_COMM_WORLD, rank_error(w->c, "target", target));
  if (target != MPI_PROC_NULL) {
    CHECK_EPOCH(w->is_locked[target], "the target is not locked by MPI_Win_lock");
    w->is_locked[target] = false;
    synchronise(w, WINDOW_UNLOCK, target);
  }
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_lock_all)
int MPI_Win_lock_all(int assertion, MPI_Win handle)
{
  CALL(Win_lock_all, assertion, handle)
  WINDOW(handle);
  CHECK_EPOCH(!locks(w) && !w->is_started, "an epoch is open");
  w->are_locked = true;
  lock_epoch(w);
  synchronise(w, WINDOW_LOCK_ALL, 0);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Win_unlock_all)
int MPI_Win_unlock_all(MPI_Win handle)
{
  CALL(Win_unlock_all, handle)
  WINDOW(handle);
  CHECK_EPOCH(w->are_locked, "the window is not locked by MPI_Win_lock_all");
  w->are_locked = false;
  synchronise(w, WINDOW_UNLOCK_ALL, 0);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

static int flush(enum window_call call, int target, MPI_Win handle)
{
  WINDOW(handle);
  CHECK(target == MPI_PROC_NULL || (target >= 0 && target < w->c->size), MPI_COMM_WORLD, rank_error(w->c, "target", target));
  if (target != MPI_PROC_NULL) {
    CHECK_EPOCH(locks(w), "the window is not locked");
    synchronise(w, call, target);
  }
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

#define FLUSH(name, number, parameters, arguments, target)                                                                               \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name parameters                                                                                                              \
  {                                                                                                                                      \
    CALL(name, UNPACK arguments)                                                                                                         \
    return flush(number, target, handle);                                                                                                \
  }

FLUSH(Win_flush, WINDOW_FLUSH, (int target, MPI_Win handle), (target, handle), target)
FLUSH(Win_flush_local, WINDOW_FLUSH_LOCAL, (int target, MPI_Win handle), (target, handle), target)
FLUSH(Win_flush_all, WINDOW_FLUSH_ALL, (MPI_Win handle), (handle), 0)
FLUSH(Win_flush_local_all, WINDOW_FLUSH_LOCAL_ALL, (MPI_Win handle), (handle), 0)

/* Other ranks get their turn, as loops that look at memory need. */
INTERPOSE(Win_sync)
int MPI_Win_sync(MPI_Win handle)
{
  CALL(Win_sync, handle)
  WINDOW(handle);
  answer((struct operation){.kind = OP_YIELD});
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}
