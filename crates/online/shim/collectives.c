/* Collective operations. Each member contributes a block of parts; the simulator lets a member go on when, by the schedule of the operation,
   what it needs has arrived; it takes its parts from the blocks of the others then. Reductions are in the order of ranks. */
#include "online.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Parts begin at multiples of this, so that reductions find elements aligned. */
#define ALIGNMENT 16

struct parts {
  uint64_t length;
  uint64_t end[];
};

struct collective;
typedef int finish_function(struct collective *, struct table *);

struct collective {
  struct communicator *c;
  struct call by;
  enum collective_kind kind;
  finish_function *finish;
  /* as the simulator has it: elements and their sizes, a root in ranks of both groups */
  struct operation operation;
  /* where data go */
  char *to;
  int count;
  MPI_Datatype type;
  /* of each sender, or null */
  int *counts, *displacements;
  /* in bytes, in place of displacements */
  MPI_Aint *offsets;
  MPI_Datatype *types;
  MPI_Op op;
  int root;
  /* number of the own part in the blocks of others */
  uint64_t part;
  /* what is received is a slice of a part, after so many elements */
  bool is_slice;
  int skipped;
  struct neighbors neighbors;
  /* what it sends is not to be changed before its end, and is kept for this */
  bool is_watched;
  struct sent *sent;
  /* of its arguments */
  int error;
};

/* ---- blocks and tables ---- */

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }
static uint64_t head(uint64_t parts) { return aligned((parts + 1) * sizeof(uint64_t)); }

/* Begins a block of parts of these sizes. */
static uint64_t new_parts(uint64_t parts, const uint64_t *bytes)
{
  uint64_t total = head(parts);
  for (uint64_t i = 0; i < parts; i++)
    total = aligned(total) + bytes[i];
  uint64_t block = new_block(total);
  struct parts *list = payload(block);
  list->length = parts;
  for (uint64_t i = 0, at = head(parts); i < parts; i++)
    at = list->end[i] = aligned(at) + bytes[i];
  return block;
}

static char *part_begin(struct parts *list, uint64_t part)
{
  return (char *)list + (part == 0 ? head(list->length) : aligned(list->end[part - 1]));
}

static uint64_t part_bytes(struct parts *list, uint64_t part)
{
  return (uint64_t)((char *)list + list->end[part] - part_begin(list, part));
}

void *contribution(struct table *table, int member)
{
  uint64_t block = atomic_load_explicit(&table->block[member], memory_order_acquire);
  return block ? part_begin(payload(block), 0) : NULL;
}

static struct parts *parts_of(struct table *table, int member)
{
  uint64_t block = atomic_load_explicit(&table->block[member], memory_order_acquire);
  return block ? payload(block) : NULL;
}

void release(struct table *table)
{
  if (atomic_fetch_add_explicit(&table->readers, 1, memory_order_acq_rel) + 1 < table->size)
    return;
  for (uint32_t i = 0; i <= table->size; i++)
    if (table->block[i])
      free_block(table->block[i]);
  free_block((uint64_t)((char *)table - (char *)shared));
}

/* ---- members ---- */

/* The communicator of all members: of an intercommunicator, those of both groups. */
static struct communicator *all_members(struct communicator *c) { return c->both ? c->both : c; }

/* Number of a sender, a rank of the other group of an intercommunicator, among all members. */
static int sender(struct communicator *c, int rank) { return c->remote && c->is_lower ? c->size + rank : rank; }

static int own_member(struct communicator *c) { return c->remote && !c->is_lower ? c->remote_size + c->rank : c->rank; }

/* ---- ends of operations ---- */

static int need(int from, struct parts *parts, uint64_t part, uint64_t bytes)
{
  if (!parts && bytes > 0)
    fail("an operation has ended before the data of all members were there: messages of a closed form or of 0 B do not order them");
  uint64_t given = parts ? part_bytes(parts, part < parts->length ? part : 0) : 0;
  if (given > bytes)
    return explained_error(MPI_ERR_TRUNCATE, "rank %d gives %" PRIu64 " B, and %" PRIu64 " B are expected", from, given, bytes);
  return MPI_SUCCESS;
}

static uint64_t own_part(struct parts *parts, struct collective *o) { return parts->length > 1 ? o->part : 0; }

static void check_elements(struct collective *o, struct parts *parts, uint64_t bytes, MPI_Datatype type, int from)
{
  check_signature((uint64_t)((char *)parts - (char *)shared), bytes, type, from, o->by);
}

static int take_part(struct collective *o, struct table *table, int from, char *to, int count, MPI_Datatype type)
{
  struct parts *parts = parts_of(table, sender(o->c, from));
  uint64_t part = parts ? own_part(parts, o) : 0, skipped = packed_size(o->skipped, type), bytes = packed_size(count, type);
  int error = need(from, parts, part, o->is_slice && bytes > 0 ? UINT64_MAX : bytes);
  if (parts) {
    uint64_t given = part_bytes(parts, part), rest = given > skipped ? given - skipped : 0;
    if (o->kind != COLL_ALLREDUCE)
      check_elements(o, parts, given, type, from);
    if (given < bytes && !o->is_slice)
      warn_of_less(bytes, given, from, o->by);
    unpack(part_begin(parts, part) + skipped, o->is_slice && rest > bytes ? bytes : rest, to, count, type);
  }
  return error;
}

static int finish_nothing(struct collective *o, struct table *table) { return (void)o, (void)table, MPI_SUCCESS; }
static int finish_from_root(struct collective *o, struct table *table) { return take_part(o, table, o->root, o->to, o->count, o->type); }

static int finish_from_all(struct collective *o, struct table *table)
{
  int error = MPI_SUCCESS;
  for (int from = 0; from < peers(o->c); from++) {
    MPI_Datatype type = o->types ? o->types[from] : o->type;
    int count = o->counts ? o->counts[from] : o->count;
    if (type == MPI_DATATYPE_NULL || count == 0)
      continue;
    ptrdiff_t distance = o->displacements ? o->displacements[from] : (ptrdiff_t)from * o->count;
    int failed = take_part(o, table, from, o->to + distance * (o->types ? 1 : extent_of(type)), count, type);
    error = failed ? failed : error;
  }
  return error;
}

/* Memory for elements of a type, whose first byte may not be the lowest one. */
static char *new_elements(int count, MPI_Datatype type, char **memory)
{
  MPI_Aint lower, extent;
  REAL(Type_get_true_extent)(type, &lower, &extent);
  ptrdiff_t step = extent_of(type), span = step < 0 ? -step : step;
  *memory = calloc(1, (size_t)(count * span + extent + ALIGNMENT));
  return *memory - lower + (step < 0 ? (count - 1) * span : 0);
}

/* Reduces the contributions of senders `first..last`, in the order of ranks. */
static int reduce(struct collective *o, struct table *table, int first, int last)
{
  if (o->count == 0 || last <= first)
    return MPI_SUCCESS;
  char *in_memory, *in = new_elements(o->count, o->type, &in_memory);
  int error = take_part(o, table, last - 1, o->to, o->count, o->type);
  for (int from = last - 2; from >= first && error == MPI_SUCCESS; from--) {
    error = take_part(o, table, from, in, o->count, o->type);
    if (error == MPI_SUCCESS)
      error = REAL(Reduce_local)(in, o->to, o->count, o->type, o->op);
  }
  free(in_memory);
  return error;
}

static int finish_reduction(struct collective *o, struct table *table) { return reduce(o, table, 0, peers(o->c)); }

/* Takes the result of the first member whose operation has ended: members that read the data of all would map the memory of all. */
static int finish_allreduce(struct collective *o, struct table *table)
{
  /* Which member takes the data of all is decided by chance: each one looks at the elements of the next one. */
  int next = (o->c->rank + 1) % peers(o->c);
  struct parts *parts = parts_of(table, sender(o->c, next));
  if (parts)
    check_elements(o, parts, part_bytes(parts, 0), o->type, next);
  _Atomic uint64_t *result = &table->block[table->size];
  uint64_t bytes = packed_size(o->count, o->type), block = atomic_load_explicit(result, memory_order_acquire), none = 0;
  if (block) {
    unpack(payload(block), payload_bytes(block), o->to, o->count, o->type);
    return payload_bytes(block) > bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  }
  int error = finish_reduction(o, table);
  /* The groups of an intercommunicator have different results. */
  if (error || bytes == 0 || o->c->remote)
    return error;
  block = new_block(bytes);
  pack(o->to, o->count, o->type, payload(block));
  if (!atomic_compare_exchange_strong_explicit(result, &none, block, memory_order_acq_rel, memory_order_relaxed))
    free_block(block);
  return MPI_SUCCESS;
}

static int finish_scan(struct collective *o, struct table *table) { return reduce(o, table, 0, o->c->rank + 1); }
static int finish_exscan(struct collective *o, struct table *table) { return reduce(o, table, 0, o->c->rank); }

/* ---- buffers ---- */

/* Buffers of which each receiver gets a part. */
struct buffers {
  const char *from;
  const int *counts, *displacements;
  /* in bytes, in place of displacements */
  const MPI_Aint *offsets;
  const MPI_Datatype *types;
  int count;
  MPI_Datatype type;
};

static MPI_Datatype type_for(const struct buffers *b, int to) { return b->types ? b->types[to] : b->type; }
static int count_for(const struct buffers *b, int to) { return b->counts ? b->counts[to] : b->count; }

static uint64_t bytes_for(const struct buffers *b, int to)
{
  return type_for(b, to) == MPI_DATATYPE_NULL ? 0 : packed_size(count_for(b, to), type_for(b, to));
}

static const char *data_for(const struct buffers *b, int to)
{
  if (b->offsets)
    return b->from + b->offsets[to];
  ptrdiff_t distance = b->displacements ? b->displacements[to] : (ptrdiff_t)to * b->count;
  return b->from + distance * (b->types ? 1 : extent_of(b->type));
}

/* ---- start and end ---- */

static int *copied(const int *numbers, int length)
{
  if (!numbers)
    return NULL;
  int *copy = malloc((length + 1) * sizeof *copy);
  memcpy(copy, numbers, length * sizeof *copy);
  return copy;
}

static MPI_Aint *copied_offsets(const MPI_Aint *offsets, int length)
{
  return offsets ? memcpy(malloc((length + 1) * sizeof *offsets), offsets, length * sizeof *offsets) : NULL;
}

static MPI_Datatype *kept_types(const MPI_Datatype *types, int length)
{
  if (!types)
    return NULL;
  MPI_Datatype *copy = malloc((length + 1) * sizeof *copy);
  for (int i = 0; i < length; i++)
    copy[i] = keep_type(types[i]);
  return copy;
}

static void drop_types(MPI_Datatype *types, int length)
{
  for (int i = 0; types && i < length; i++)
    drop_type(types[i]);
  free(types);
}

/* What a nonblocking operation sends, and the hash of its contents at the begin. */
struct sent {
  struct buffers buffers;
  int parts;
  uint64_t contents;
};

static uint64_t contents_of_parts(const struct buffers *b, int n)
{
  uint64_t contents = 0;
  for (int i = 0; i < n; i++)
    if (bytes_for(b, i) > 0)
      contents = 31 * contents + contents_of(data_for(b, i), count_for(b, i), type_for(b, i));
  return contents;
}

static void keep_sent(struct collective *o, const struct buffers *b, int n)
{
  o->sent = malloc(sizeof *o->sent);
  *o->sent = (struct sent){*b, n, contents_of_parts(b, n)};
  o->sent->buffers.counts = copied(b->counts, n);
  o->sent->buffers.displacements = copied(b->displacements, n);
  o->sent->buffers.offsets = copied_offsets(b->offsets, n);
  o->sent->buffers.types = kept_types(b->types, n);
  o->sent->buffers.type = keep_type(b->type);
}

static void drop_sent(struct sent *sent)
{
  if (!sent)
    return;
  drop_types((MPI_Datatype *)sent->buffers.types, sent->parts);
  drop_type(sent->buffers.type);
  free((void *)sent->buffers.counts);
  free((void *)sent->buffers.displacements);
  free((void *)sent->buffers.offsets);
  free(sent);
}

bool has_changed(const struct collective *o) { return o->sent && contents_of_parts(&o->sent->buffers, o->sent->parts) != o->sent->contents; }

/* Keeps the arguments of a nonblocking operation: the program may free them. */
static struct collective *kept(const struct collective *o)
{
  struct collective *copy = malloc(sizeof *copy);
  int n = peers(o->c);
  *copy = *o;
  n = o->kind == COLL_NEIGHBOR ? o->neighbors.in : n;
  copy->counts = copied(o->counts, n);
  copy->displacements = copied(o->displacements, n);
  copy->offsets = copied_offsets(o->offsets, n);
  copy->types = kept_types(o->types, n);
  copy->type = keep_type(o->type);
  return copy;
}

static void forget(struct collective *o)
{
  int n = o->kind == COLL_NEIGHBOR ? o->neighbors.in : peers(o->c);
  drop_types(o->types, n);
  drop_type(o->type);
  free(o->counts);
  free(o->displacements);
  free(o->offsets);
  free(o);
}

static int finish(struct collective *o, uint64_t offset)
{
  struct table *table = (struct table *)((char *)shared + offset);
  int error = o->finish(o, table);
  release(table);
  drop_sent(o->sent);
  free(o->neighbors.sources);
  free(o->neighbors.destinations);
  return error;
}

/* Operators that the program has freed while nonblocking operations needed them. */
static MPI_Op *freed_operators;
static int freed_length, pending;

INTERPOSE(Op_create)
int MPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op)
{
  LOCAL(Op_create, function, commutes, op)
  int error = REAL(Op_create)(function, commutes, op);
  if (error == MPI_SUCCESS)
    note_made(MADE_OPERATOR, KEY(*op), (struct call){"MPI_Op_create", __builtin_return_address(0)});
  return error;
}

INTERPOSE(Op_free)
int MPI_Op_free(MPI_Op *op)
{
  LOCAL(Op_free, op)
  note_freed(MADE_OPERATOR, KEY(*op));
  if (pending == 0)
    return REAL(Op_free)(op);
  freed_operators = realloc(freed_operators, (freed_length + 1) * sizeof *freed_operators);
  freed_operators[freed_length++] = *op;
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

/* Number of a predefined operator, the same on all ranks; one beyond them for operators of the program. */
static int operator_number(MPI_Op op)
{
#if FOR_MPICH
  uint32_t number = (uint32_t)op - MPI_MAX, beyond = MPI_NO_OP - MPI_MAX + 1;
#else
  int number = REAL(Op_c2f)(op), beyond = REAL(Op_c2f)(MPI_NO_OP) + 1;
#endif
  return number < beyond ? number : beyond;
}

static void end_pending(void)
{
  if (--pending == 0)
    while (freed_length > 0)
      REAL(Op_free)(&freed_operators[--freed_length]);
}

/* Drops what has been made for an operation whose arguments are wrong; returns the error. */
static int give_up(struct collective *o)
{
  if (o->operation.block)
    free_block(o->operation.block);
  if (o->operation.vector)
    free_block(o->operation.vector);
  free(o->neighbors.sources);
  free(o->neighbors.destinations);
  return o->error;
}

/* Carries out an operation, or begins it if there is a request. */
static int run(struct collective *o, MPI_Request *request)
{
  if (o->error)
    return give_up(o);
  struct operation operation = o->operation;
  operation.kind = OP_COLLECTIVE;
  /* Algorithms are those of one group: the two of an intercommunicator meet in a barrier. */
  operation.flags = o->c->remote ? COLL_BARRIER : o->kind;
  operation.communicator = all_members(o->c)->index;
  operation.request = NONE;
  operation.tag = o->op ? operator_number(o->op) : 0;
  if (!request) {
    answer(operation);
    return finish(o, own->table);
  }
  operation.request = new_request(REQUEST_COLLECTIVE, o->c, request);
  request_at(operation.request)->collective = kept(o);
  pending++;
  post(operation);
  return MPI_SUCCESS;
}

int finish_collective(struct collective *o, uint64_t table)
{
  int error = finish(o, table);
  forget(o);
  end_pending();
  return error;
}

struct table *exchange(struct communicator *c, enum collective_kind kind, const void *value, uint64_t bytes, uint64_t time_bytes)
{
  uint64_t block = new_parts(1, &bytes);
  memcpy(part_begin(payload(block), 0), value, bytes);
  answer((struct operation){.kind = OP_COLLECTIVE,
                            .flags = kind,
                            .communicator = all_members(c)->index,
                            .request = NONE,
                            .block = block,
                            .count = time_bytes,
                            .recv_count = time_bytes,
                            .bytes = 1,
                            .source_bytes = 1});
  return (struct table *)((char *)shared + own->table);
}

/* ---- contributions ---- */

/* Returns the signature of the elements of all parts; an unknown one if they differ. */
static struct signature signature_for(const struct buffers *b, int n)
{
  if (!b->types)
    return signature_of(b->type);
  struct signature all = {0};
  for (int i = 0; i < n; i++) {
    if (bytes_for(b, i) == 0)
      continue;
    struct signature one = signature_of(type_for(b, i));
    if (!one.is_known || (all.is_known && (one.hash != all.hash || one.length != all.length)))
      return (struct signature){0};
    all = one;
  }
  return all;
}

/* Checks counts, and of the parts that are not empty the types and the buffer. */
static void check_parts(struct collective *o, const struct buffers *b, const void *buffer, int n)
{
  for (int i = 0; i < n && o->error == MPI_SUCCESS; i++)
    if (count_for(b, i) < 0)
      o->error = count_error("count", count_for(b, i));
    else if (bytes_for(b, i) > 0) {
      int error = type_error(type_for(b, i));
      o->error = error ? error : data_error(buffer, count_for(b, i), type_for(b, i));
    }
}

/* Contributes the parts of buffers, and the numbers of their receivers where these are asked for. */
static void contribute_parts(struct collective *o, const struct buffers *b, int n, const int *receivers)
{
  check_parts(o, b, b->from, n);
  if (o->error)
    return;
  uint64_t *bytes = calloc(n + 1, sizeof *bytes);
  for (int to = 0; to < n; to++)
    bytes[to] = bytes_for(b, to);
  bytes[n] = n * sizeof *receivers;
  o->operation.block = new_parts(n + (receivers != NULL), bytes);
  set_signature(o->operation.block, signature_for(b, n));
  struct parts *parts = payload(o->operation.block);
  for (int to = 0; to < n; to++)
    if (bytes[to] > 0)
      pack(data_for(b, to), count_for(b, to), type_for(b, to), part_begin(parts, to));
  if (receivers)
    memcpy(part_begin(parts, n), receivers, bytes[n]);
  free(bytes);
  if (o->is_watched)
    keep_sent(o, b, n);
}

static void contribute(struct collective *o, const void *from, int count, MPI_Datatype type)
{
  contribute_parts(o, &(struct buffers){.from = from, .count = count, .type = type}, 1, NULL);
}

static uint64_t element_bytes(MPI_Datatype type) { return type == MPI_DATATYPE_NULL ? 0 : packed_size(1, type); }

/* Gives the simulator a vector of `length` numbers, or two of them; absent ones are zeros. Where types differ, they are bytes. */
static void add_vector(struct collective *o, int length, int vectors)
{
  o->operation.vector = new_block(vectors * length * sizeof(uint64_t));
  memset(payload(o->operation.vector), 0, vectors * length * sizeof(uint64_t));
}

static void fill_vector(struct collective *o, int first, const struct buffers *b)
{
  uint64_t *vector = (uint64_t *)payload(o->operation.vector) + first;
  for (int i = 0; i < peers(o->c); i++)
    vector[sender(o->c, i)] = b->types ? bytes_for(b, i) : (uint64_t)count_for(b, i);
}

/* ---- the functions ---- */

#define BEGIN(name, handle, ...)                                                                                                         \
  CALL(name, __VA_ARGS__)                                                                                                                \
  struct communicator *c = communicator_of(handle);                                                                                      \
  CHECK(c, MPI_COMM_WORLD, communicator_error(handle));                                                                                               \
  struct collective o = {.c = c, .by = current_call(), .type = MPI_DATATYPE_NULL, .finish = finish_nothing};

#define CHECK_DATA(count, type)                                                                                                          \
  CHECK(count >= 0, handle, count_error("count", count));                                                                                             \
  CHECK(is_usable(type), handle, type_error(type));

/* Roots of intercommunicators: MPI_ROOT at the root, MPI_PROC_NULL at others of its group. */
#define CHECK_ROOT CHECK((root >= 0 && root < peers(c)) || (c->remote && (root == MPI_ROOT || root == MPI_PROC_NULL)), handle, root_error(c, root));

/* Types that only the root uses, or only the others; a member of the root's group of an intercommunicator uses none. */
#define CHECK_AT_ROOT(type) CHECK(!is_root_of(c, root) || is_usable(type), handle, type_error(type));
#define CHECK_AT_OTHERS(buffer, count, type)                                                                                              \
  CHECK(buffer == MPI_IN_PLACE || count == 0 || (c->remote && root < 0) || is_usable(type), handle, type_error(type));

#define CHECK_OP CHECK(op != MPI_OP_NULL, handle, MPI_ERR_OP);

static void set_root(struct collective *o, int root)
{
  o->root = root;
  o->operation.peer = root == MPI_ROOT ? own_member(o->c) : root == MPI_PROC_NULL ? -1 : sender(o->c, root);
}

static bool is_root_of(const struct communicator *c, int root) { return c->remote ? root == MPI_ROOT : c->rank == root; }
static bool is_root(const struct collective *o) { return is_root_of(o->c, o->root); }
/* The own group sends to the root, or receives from it. */
static bool is_opposite(const struct collective *o) { return o->root >= 0; }

static void set_elements(struct collective *o, uint64_t count, MPI_Datatype type)
{
  o->operation.count = o->operation.recv_count = count;
  o->operation.bytes = o->operation.source_bytes = element_bytes(type);
}

static void set_sent(struct collective *o, uint64_t count, MPI_Datatype type)
{
  o->operation.count = count;
  o->operation.bytes = element_bytes(type);
}

static void set_received(struct collective *o, uint64_t count, MPI_Datatype type)
{
  o->operation.recv_count = count;
  o->operation.source_bytes = element_bytes(type);
}

static void receive_into(struct collective *o, finish_function *finish, void *to, int count, MPI_Datatype type)
{
  o->finish = finish;
  o->to = to;
  o->count = count;
  o->type = type;
  if (count < 0 && o->error == MPI_SUCCESS)
    o->error = count_error("count", count);
  /* The first member of an exclusive scan gets nothing. */
  if (o->error == MPI_SUCCESS && !(finish == finish_exscan && o->c->rank == 0))
    o->error = data_error(to, count, type);
}

/* A blocking function and the nonblocking one, which has a request as last argument. */
#define BOTH(name, iname, body, parameters, arguments)                                                                                   \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(UNPACK parameters, MPI_Comm handle)                                                                                     \
  {                                                                                                                                      \
    BEGIN(name, handle, UNPACK arguments, handle)                                                                                        \
    body;                                                                                                                                \
    RETURN(handle, run(&o, NULL));                                                                                                       \
  }                                                                                                                                      \
  INTERPOSE(iname)                                                                                                                       \
  int MPI_##iname(UNPACK parameters, MPI_Comm handle, MPI_Request *request)                                                              \
  {                                                                                                                                      \
    BEGIN(iname, handle, UNPACK arguments, handle, request)                                                                              \
    o.is_watched = shared->checks_buffers;                                                                                               \
    body;                                                                                                                                \
    RETURN(handle, run(&o, request));                                                                                                    \
  }
#define UNPACK(...) __VA_ARGS__

INTERPOSE(Barrier)
int MPI_Barrier(MPI_Comm handle)
{
  BEGIN(Barrier, handle, handle)
  o.kind = COLL_BARRIER;
  RETURN(handle, run(&o, NULL));
}

INTERPOSE(Ibarrier)
int MPI_Ibarrier(MPI_Comm handle, MPI_Request *request)
{
  BEGIN(Ibarrier, handle, handle, request)
  o.kind = COLL_BARRIER;
  RETURN(handle, run(&o, request));
}

static void begin_bcast(struct collective *o, void *buffer, int count, MPI_Datatype type, int root)
{
  o->kind = COLL_BCAST;
  set_root(o, root);
  set_elements(o, count, type);
  if (is_root(o))
    contribute(o, buffer, count, type);
  else if (is_opposite(o))
    receive_into(o, finish_from_root, buffer, count, type);
}

BOTH(Bcast, Ibcast, CHECK_DATA(count, type) CHECK_ROOT begin_bcast(&o, buffer, count, type, root),
     (void *buffer, int count, MPI_Datatype type, int root), (buffer, count, type, root))

static void begin_reduce(struct collective *o, const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root)
{
  o->kind = COLL_REDUCE;
  o->op = op;
  set_root(o, root);
  set_elements(o, count, type);
  if (!o->c->remote || is_opposite(o))
    contribute(o, from == MPI_IN_PLACE ? to : from, count, type);
  if (is_root(o))
    receive_into(o, finish_reduction, to, count, type);
}

BOTH(Reduce, Ireduce, CHECK_DATA(count, type) CHECK_OP CHECK_ROOT begin_reduce(&o, from, to, count, type, op, root),
     (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root), (from, to, count, type, op, root))

static void begin_reduction(struct collective *o, enum collective_kind kind, finish_function *finish, const void *from, void *to, int count,
                            MPI_Datatype type, MPI_Op op)
{
  o->kind = kind;
  o->op = op;
  set_elements(o, count, type);
  contribute(o, from == MPI_IN_PLACE ? to : from, count, type);
  receive_into(o, finish, to, count, type);
}

#define REDUCTION(name, iname, kind, finish)                                                                                             \
  BOTH(name, iname, CHECK_DATA(count, type) CHECK_OP begin_reduction(&o, kind, finish, from, to, count, type, op),                       \
       (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op), (from, to, count, type, op))

REDUCTION(Allreduce, Iallreduce, COLL_ALLREDUCE, finish_allreduce)
REDUCTION(Scan, Iscan, COLL_SCAN, finish_scan)
REDUCTION(Exscan, Iexscan, COLL_EXSCAN, finish_exscan)

static void begin_reduce_scatter(struct collective *o, const void *from, void *to, const int *counts, int count, MPI_Datatype type, MPI_Op op)
{
  /* In an intercommunicator, the counts are those of the own group, to which the other one contributes: each takes a slice of the whole. */
  int n = o->c->size, total = 0, displacements[n + 1];
  o->kind = COLL_REDUCE_SCATTER;
  o->op = op;
  o->part = (uint64_t)o->c->rank;
  for (int i = 0; i < n; i++) {
    displacements[i] = total;
    total += counts ? counts[i] : count;
  }
  add_vector(o, all_members(o->c)->size, 1);
  uint64_t *vector = payload(o->operation.vector);
  for (int i = 0; i < n && !o->c->remote; i++)
    vector[i] = (uint64_t)(counts ? counts[i] : count);
  o->operation.bytes = o->operation.source_bytes = element_bytes(type);
  o->is_slice = o->c->remote != NULL;
  o->skipped = o->is_slice ? displacements[o->c->rank] : 0;
  if (o->c->remote)
    contribute(o, from, total, type);
  else
    contribute_parts(
        o, &(struct buffers){.from = from == MPI_IN_PLACE ? to : from, .counts = counts, .displacements = displacements, .count = count, .type = type}, n,
        NULL);
  receive_into(o, finish_reduction, to, counts ? counts[o->c->rank] : count, type);
}

BOTH(Reduce_scatter, Ireduce_scatter, CHECK(is_usable(type), handle, type_error(type));
     CHECK_OP begin_reduce_scatter(&o, from, to, counts, 0, type, op),
     (const void *from, void *to, const int counts[], MPI_Datatype type, MPI_Op op), (from, to, counts, type, op))
BOTH(Reduce_scatter_block, Ireduce_scatter_block, CHECK_DATA(count, type) CHECK_OP begin_reduce_scatter(&o, from, to, NULL, count, type, op),
     (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op), (from, to, count, type, op))

/* Gathers: to a root, or to all. Counts and displacements are null where all are equal. */
static void begin_gather(struct collective *o, const void *from, int send_count, MPI_Datatype send_type, void *to, int count, const int *counts,
                         const int *displacements, MPI_Datatype type, int root)
{
  bool to_all = o->kind == COLL_ALLGATHER || o->kind == COLL_ALLGATHERV;
  if (!to_all)
    set_root(o, root);
  bool receives = to_all || is_root(o), sends = to_all || !o->c->remote || is_opposite(o);
  if (sends && from == MPI_IN_PLACE) {
    ptrdiff_t distance = displacements ? displacements[o->c->rank] : (ptrdiff_t)o->c->rank * count;
    from = (char *)to + distance * extent_of(type);
    send_count = counts ? counts[o->c->rank] : count;
    send_type = type;
  }
  if (sends) {
    contribute(o, from, send_count, send_type);
    set_sent(o, send_count, send_type);
  }
  if (o->kind == COLL_GATHERV || o->kind == COLL_ALLGATHERV)
    add_vector(o, all_members(o->c)->size, 1);
  if (!receives)
    return;
  set_received(o, count, type);
  if (counts)
    fill_vector(o, 0, &(struct buffers){.counts = counts});
  receive_into(o, finish_from_all, to, count, type);
  o->counts = (int *)counts;
  o->displacements = (int *)displacements;
}

#define GATHER(kind_, counts, displacements, count)                                                                                      \
  CHECK_AT_ROOT(type)                                                                                                                    \
  CHECK_AT_OTHERS(from, send_count, send_type)                                                                                           \
  o.kind = kind_;                                                                                                                        \
  begin_gather(&o, from, send_count, send_type, to, count, counts, displacements, type, root)

BOTH(Gather, Igather, CHECK_ROOT GATHER(COLL_GATHER, NULL, NULL, count),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, int count, MPI_Datatype type, int root),
     (from, send_count, send_type, to, count, type, root))
BOTH(Gatherv, Igatherv, CHECK_ROOT GATHER(COLL_GATHERV, counts, displacements, 0),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, const int counts[], const int displacements[], MPI_Datatype type, int root),
     (from, send_count, send_type, to, counts, displacements, type, root))
BOTH(Allgather, Iallgather, CHECK_DATA(count, type) int root = 0; GATHER(COLL_ALLGATHER, NULL, NULL, count),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, int count, MPI_Datatype type),
     (from, send_count, send_type, to, count, type))
BOTH(Allgatherv, Iallgatherv, CHECK(is_usable(type), handle, type_error(type)); int root = 0; GATHER(COLL_ALLGATHERV, counts, displacements, 0),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, const int counts[], const int displacements[], MPI_Datatype type),
     (from, send_count, send_type, to, counts, displacements, type))

static void begin_scatter(struct collective *o, const struct buffers *b, void *to, int count, MPI_Datatype type, int root)
{
  o->kind = b->counts ? COLL_SCATTERV : COLL_SCATTER;
  o->part = (uint64_t)o->c->rank;
  set_root(o, root);
  if (o->kind == COLL_SCATTERV)
    add_vector(o, all_members(o->c)->size, 1);
  if (is_root(o)) {
    contribute_parts(o, b, peers(o->c), NULL);
    set_sent(o, b->count, b->type);
    if (b->counts)
      fill_vector(o, 0, b);
  }
  if (!is_opposite(o))
    return;
  bool is_in_place = to == MPI_IN_PLACE;
  set_received(o, is_in_place ? (b->counts ? b->counts[root] : b->count) : count, is_in_place ? b->type : type);
  if (!is_in_place)
    receive_into(o, finish_from_root, to, count, type);
}

/* What the root alone has to pass is read there alone. */
static struct buffers at_root(struct communicator *c, int root, bool is_vector, struct buffers buffers)
{
  static const int none[1];
  return is_root_of(c, root) ? buffers : (struct buffers){.counts = is_vector ? none : NULL, .type = MPI_DATATYPE_NULL};
}

#define SCATTER(is_vector, ...)                                                                                                          \
  CHECK_AT_ROOT(send_type)                                                                                                               \
  CHECK_AT_OTHERS(to, count, type)                                                                                                       \
  struct buffers b = at_root(c, root, is_vector, (struct buffers){__VA_ARGS__});                                                         \
  begin_scatter(&o, &b, to, count, type, root)

BOTH(Scatter, Iscatter, CHECK_ROOT SCATTER(false, .from = from, .count = send_count, .type = send_type),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, int count, MPI_Datatype type, int root),
     (from, send_count, send_type, to, count, type, root))
BOTH(Scatterv, Iscatterv, CHECK_ROOT SCATTER(true, .from = from, .counts = counts, .displacements = displacements, .type = send_type),
     (const void *from, const int counts[], const int displacements[], MPI_Datatype send_type, void *to, int count, MPI_Datatype type, int root),
     (from, counts, displacements, send_type, to, count, type, root))

static void begin_alltoall(struct collective *o, struct buffers send, void *to, const struct buffers *receive)
{
  if (send.from == MPI_IN_PLACE) {
    send = *receive;
    send.from = to;
  }
  o->part = (uint64_t)o->c->rank;
  contribute_parts(o, &send, peers(o->c), NULL);
  check_parts(o, receive, to, peers(o->c));
  set_sent(o, send.count, send.type);
  set_received(o, receive->count, receive->type);
  if (receive->counts) {
    int n = all_members(o->c)->size;
    o->kind = COLL_ALLTOALLV;
    add_vector(o, n, 2);
    fill_vector(o, 0, &send);
    fill_vector(o, n, receive);
    if (receive->types)
      o->operation.bytes = o->operation.source_bytes = 1;
  } else
    o->kind = COLL_ALLTOALL;
  receive_into(o, finish_from_all, to, receive->count, receive->type);
  o->counts = (int *)receive->counts;
  o->displacements = (int *)receive->displacements;
  o->types = (MPI_Datatype *)receive->types;
}

#define BUFFERS(...) ((struct buffers){__VA_ARGS__})

BOTH(Alltoall, Ialltoall, CHECK_DATA(count, type) begin_alltoall(&o, BUFFERS(.from = from, .count = send_count, .type = send_type), to, &BUFFERS(.count = count, .type = type)),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, int count, MPI_Datatype type),
     (from, send_count, send_type, to, count, type))
BOTH(Alltoallv, Ialltoallv, CHECK(is_usable(type), handle, type_error(type));
     begin_alltoall(&o, BUFFERS(.from = from, .counts = send_counts, .displacements = send_displacements, .type = send_type), to,
                    &BUFFERS(.counts = counts, .displacements = displacements, .type = type)),
     (const void *from, const int send_counts[], const int send_displacements[], MPI_Datatype send_type, void *to, const int counts[],
      const int displacements[], MPI_Datatype type),
     (from, send_counts, send_displacements, send_type, to, counts, displacements, type))
BOTH(Alltoallw, Ialltoallw,
     begin_alltoall(&o, BUFFERS(.from = from, .counts = send_counts, .displacements = send_displacements, .types = send_types, .type = MPI_DATATYPE_NULL), to,
                    &BUFFERS(.counts = counts, .displacements = displacements, .types = types, .type = MPI_DATATYPE_NULL)),
     (const void *from, const int send_counts[], const int send_displacements[], const MPI_Datatype send_types[], void *to, const int counts[],
      const int displacements[], const MPI_Datatype types[]),
     (from, send_counts, send_displacements, send_types, to, counts, displacements, types))

/* ---- neighbours ---- */

/* Number of the part that the k-th source has for this member. A neighbour in a grid sends in the opposite direction; of several edges between
   two members of a graph, the first one is the first. */
static uint64_t neighbor_part(struct collective *o, struct table *table, int k)
{
  if (o->neighbors.is_grid)
    return (uint64_t)(k ^ 1);
  int from = o->neighbors.sources[k], before = 0;
  for (int i = 0; i < k; i++)
    before += o->neighbors.sources[i] == from;
  struct parts *parts = parts_of(table, from);
  const int *destinations = (const int *)part_begin(parts, parts->length - 1);
  for (uint64_t part = 0; part + 1 < parts->length; part++)
    if (destinations[part] == o->c->rank && before-- == 0)
      return part;
  return 0;
}

static int finish_from_neighbors(struct collective *o, struct table *table)
{
  int error = MPI_SUCCESS;
  for (int k = 0; k < o->neighbors.in; k++) {
    int from = o->neighbors.sources[k], count = o->counts ? o->counts[k] : o->count;
    MPI_Datatype type = o->types ? o->types[k] : o->type;
    if (from == MPI_PROC_NULL || count == 0)
      continue;
    ptrdiff_t distance = o->offsets ? o->offsets[k] : (o->displacements ? o->displacements[k] : (ptrdiff_t)k * o->count) * extent_of(type);
    o->part = neighbor_part(o, table, k);
    int failed = take_part(o, table, from, o->to + distance, count, type);
    error = failed ? failed : error;
  }
  return error;
}

/* Pairs of a member and the bytes for it, without those beyond the end of a grid. */
static uint64_t list_neighbors(uint64_t *pairs, int n, const int *ranks, const struct buffers *b)
{
  uint64_t length = 0;
  for (int i = 0; i < n; i++)
    if (ranks[i] != MPI_PROC_NULL) {
      pairs[2 * length] = (uint64_t)ranks[i];
      pairs[2 * length++ + 1] = bytes_for(b, i);
    }
  return length;
}

static void begin_neighbors(struct collective *o, const struct buffers *send, void *to, const struct buffers *receive)
{
  struct neighbors *n = &o->neighbors;
  o->kind = COLL_NEIGHBOR;
  contribute_parts(o, send, n->out, n->destinations);
  check_parts(o, receive, to, n->in);
  o->operation.vector = new_block(2 * (n->out + n->in) * sizeof(uint64_t));
  uint64_t *pairs = payload(o->operation.vector);
  o->operation.count = list_neighbors(pairs, n->out, n->destinations, send);
  o->operation.recv_count = list_neighbors(pairs + 2 * o->operation.count, n->in, n->sources, receive);
  receive_into(o, finish_from_neighbors, to, receive->count, receive->type);
  o->counts = (int *)receive->counts;
  o->displacements = (int *)receive->displacements;
  o->offsets = (MPI_Aint *)receive->offsets;
  o->types = (MPI_Datatype *)receive->types;
}

#define NEIGHBORS(send, receive)                                                                                                         \
  CHECK(neighbors_of(c, &o.neighbors), handle, MPI_ERR_TOPOLOGY);                                                                        \
  begin_neighbors(&o, &send, to, &receive)

/* Each neighbour gets the same data. */
#define SAME_FOR_ALL BUFFERS(.from = from, .count = send_count, .type = send_type, .offsets = no_offsets(o.neighbors.out))

static const MPI_Aint *no_offsets(int length)
{
  static MPI_Aint *zeros;
  static int known;
  if (length >= known) {
    free(zeros);
    known = 2 * length + 16;
    zeros = calloc(known, sizeof *zeros);
  }
  return zeros;
}

BOTH(Neighbor_allgather, Ineighbor_allgather, CHECK_DATA(count, type) NEIGHBORS(SAME_FOR_ALL, BUFFERS(.count = count, .type = type)),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, int count, MPI_Datatype type),
     (from, send_count, send_type, to, count, type))
BOTH(Neighbor_allgatherv, Ineighbor_allgatherv,
     NEIGHBORS(SAME_FOR_ALL, BUFFERS(.counts = counts, .displacements = displacements, .type = type)),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, const int counts[], const int displacements[], MPI_Datatype type),
     (from, send_count, send_type, to, counts, displacements, type))
BOTH(Neighbor_alltoall, Ineighbor_alltoall,
     CHECK_DATA(count, type) NEIGHBORS(BUFFERS(.from = from, .count = send_count, .type = send_type), BUFFERS(.count = count, .type = type)),
     (const void *from, int send_count, MPI_Datatype send_type, void *to, int count, MPI_Datatype type),
     (from, send_count, send_type, to, count, type))
BOTH(Neighbor_alltoallv, Ineighbor_alltoallv,
     NEIGHBORS(BUFFERS(.from = from, .counts = send_counts, .displacements = send_displacements, .type = send_type),
               BUFFERS(.counts = counts, .displacements = displacements, .type = type)),
     (const void *from, const int send_counts[], const int send_displacements[], MPI_Datatype send_type, void *to, const int counts[],
      const int displacements[], MPI_Datatype type),
     (from, send_counts, send_displacements, send_type, to, counts, displacements, type))
BOTH(Neighbor_alltoallw, Ineighbor_alltoallw,
     NEIGHBORS(BUFFERS(.from = from, .counts = send_counts, .offsets = send_offsets, .types = send_types, .type = MPI_DATATYPE_NULL),
               BUFFERS(.counts = counts, .offsets = offsets, .types = types, .type = MPI_DATATYPE_NULL)),
     (const void *from, const int send_counts[], const MPI_Aint send_offsets[], const MPI_Datatype send_types[], void *to, const int counts[],
      const MPI_Aint offsets[], const MPI_Datatype types[]),
     (from, send_counts, send_offsets, send_types, to, counts, offsets, types))
