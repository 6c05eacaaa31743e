/* Requests: pooled objects of the real library, numbered, and the functions that complete them. */
#include "online.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct request *requests;
static uint32_t length, capacity;
/* The numbers that are vacant, a heap with the lowest one first: it is taken, so that equal steps of a program have equal numbers. */
static uint32_t *vacant, vacant_length;
#if FOR_MPICH
/* Handles are numbers, these of no objects. */
enum { OWN_REQUESTS = 0x2d000000 };

static MPI_Request new_handle(uint32_t index) { return OWN_REQUESTS + index; }

uint32_t request_index(MPI_Request handle) { return (uint32_t)handle - OWN_REQUESTS < length ? handle - OWN_REQUESTS : NONE; }
#else
/* Number of a request plus one, by its Fortran handle. */
static uint32_t *numbers;
static size_t numbers_length;

static int no_query(void *state, MPI_Status *status) { return (void)state, (void)status, MPI_SUCCESS; }
static int no_free(void *state) { return (void)state, MPI_SUCCESS; }
static int no_cancel(void *state, int done) { return (void)state, (void)done, MPI_SUCCESS; }

static void remember(MPI_Request handle, uint32_t index)
{
  size_t number = (size_t)REAL(Request_c2f)(handle);
  if (number >= numbers_length) {
    size_t larger = 2 * number + 64;
    numbers = realloc(numbers, larger * sizeof *numbers);
    memset(numbers + numbers_length, 0, (larger - numbers_length) * sizeof *numbers);
    numbers_length = larger;
  }
  numbers[number] = index + 1;
}

static MPI_Request new_handle(uint32_t index)
{
  MPI_Request handle;
  REAL(Grequest_start)(no_query, no_free, no_cancel, NULL, &handle);
  remember(handle, index);
  return handle;
}

uint32_t request_index(MPI_Request handle)
{
  if (handle == MPI_REQUEST_NULL)
    return NONE;
  size_t number = (size_t)REAL(Request_c2f)(handle);
  return number < numbers_length && numbers[number] ? numbers[number] - 1 : NONE;
}

#endif

static uint32_t grow(void)
{
  if (length == REQUESTS)
    fail("it has %d requests at once, the most that a run can have: complete or free them", REQUESTS);
  if (length == capacity) {
    capacity = capacity ? 2 * capacity : 64;
    requests = realloc(requests, capacity * sizeof *requests);
    vacant = realloc(vacant, capacity * sizeof *vacant);
  }
  requests[length] = (struct request){.handle = new_handle(length)};
  return length++;
}

static void put_vacant(uint32_t index)
{
  uint32_t at = vacant_length++;
  for (; at > 0 && vacant[(at - 1) / 2] > index; at = (at - 1) / 2)
    vacant[at] = vacant[(at - 1) / 2];
  vacant[at] = index;
}

static uint32_t take_vacant(void)
{
  uint32_t least = vacant[0], last = vacant[--vacant_length], at = 0;
  for (uint32_t child; (child = 2 * at + 1) < vacant_length; at = child) {
    child += child + 1 < vacant_length && vacant[child + 1] < vacant[child];
    if (vacant[child] >= last)
      break;
    vacant[at] = vacant[child];
  }
  vacant[at] = last;
  return least;
}

uint32_t new_request(enum request_kind kind, struct communicator *communicator, MPI_Request *handle)
{
  hold_communicator(communicator);
  uint32_t index = vacant_length ? take_vacant() : grow();
  MPI_Request own_handle = requests[index].handle;
  requests[index] = (struct request){.kind = kind, .is_active = true, .handle = own_handle, .communicator = communicator, .type = MPI_DATATYPE_NULL,
                                     .made_by = current_call()};
  own->completion[index] = (struct completion){0};
  *handle = own_handle;
  return index;
}

struct request *request_at(uint32_t index) { return &requests[index]; }

void release_request(uint32_t index)
{
  struct request *request = &requests[index];
  drop_type(request->type);
  drop_communicator(request->communicator);
  request->kind = REQUEST_NONE;
  request->is_active = false;
  put_vacant(index);
}

/* Requests that were freed while they were active. */
static uint32_t freed;
static struct call of_freed;

void warn_of_requests(void)
{
  uint32_t pending = 0, persistent = 0;
  struct call of_pending = {0}, of_persistent = {0};
  for (uint32_t i = length; i-- > 0;) {
    const struct request *request = &requests[i];
    if (request->kind == REQUEST_NONE || request->is_freed)
      continue;
    *(request->is_active ? &of_pending : &of_persistent) = request->made_by;
    *(request->is_active ? &pending : &persistent) += 1;
  }
  warn_of("request(s) were never completed", pending, of_pending);
  warn_of("active request(s) were freed, so that nothing says when their buffers may be used again", freed, of_freed);
  warn_of("persistent request(s) were never freed", persistent, of_persistent);
}

void set_status(MPI_Status *status, int source, int tag, int error, uint64_t bytes, bool is_cancelled)
{
  if (status == MPI_STATUS_IGNORE)
    return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  if (error >= 0)
    status->MPI_ERROR = error;
  REAL(Status_set_elements_x)(status, MPI_BYTE, (MPI_Count)bytes);
  REAL(Status_set_cancelled)(status, is_cancelled);
}

void empty_status(MPI_Status *status) { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS, 0, false); }

/* Says how much longer a message is than its receive. */
static int truncate_message(const struct completion *from, uint64_t room)
{
  return explained_error(MPI_ERR_TRUNCATE, "the message from rank %d has %" PRIu64 " B, but the receive that matches it has room for %" PRIu64 " B",
                         from->source, from->bytes, room);
}

int take_message(struct communicator *c, const struct completion *from, void *buffer, uint64_t count, MPI_Datatype type, MPI_Status *status,
                 struct call by)
{
  uint64_t room = packed_size(count, type), bytes = from->bytes < room ? from->bytes : room;
  if (from->block) {
    check_signature(from->block, from->bytes, type, from->source, by);
    unpack(payload(from->block), bytes, buffer, count, type);
    free_block(from->block);
  }
  /* Of a message that is too long, Open MPI tells the length, and MPICH what is received. */
  set_status(status, peer_rank(c, from->source), from->tag, -1, FOR_MPICH ? bytes : from->bytes, false);
  return from->bytes > room ? truncate_message(from, room) : MPI_SUCCESS;
}

/* Fills the status of a request that is complete; with `takes` its data are taken, too. */
static int status_of(uint32_t index, bool takes, MPI_Status *status)
{
  struct request *request = &requests[index];
  const struct completion *end = &own->completion[index];
  struct communicator *c = request->communicator;
  if (request->kind == REQUEST_COLLECTIVE && takes) {
    empty_status(status);
    return finish_collective(request->collective, end->block);
  }
  if (request->kind == REQUEST_FILE) {
    set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, -1, request->count, false);
    return MPI_SUCCESS;
  }
  if (request->kind != REQUEST_RECEIVE) {
    empty_status(status);
    return MPI_SUCCESS;
  }
  if (request->is_done) {
    set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, -1, 0, false);
    return MPI_SUCCESS;
  }
  if (!end->is_receive) {
    set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, -1, 0, true);
    return MPI_SUCCESS;
  }
  if (takes)
    return take_message(c, end, request->buffer, request->count, request->type, status, request->made_by);
  set_status(status, peer_rank(c, end->source), end->tag, -1, end->bytes, false);
  return MPI_SUCCESS;
}

static bool is_complete(uint32_t index) { return requests[index].is_done || own->completion[index].is_complete; }

/* ---- buffers of pending messages ---- */

uint64_t contents_of(const void *buffer, uint64_t count, MPI_Datatype type)
{
  uint64_t bytes = packed_size(count, type), hash = 0xcbf29ce484222325;
  unsigned char *packed = malloc(bytes + 1);
  pack(buffer, count, type, packed);
  for (uint64_t i = 0; i < bytes; i++)
    hash = (hash ^ packed[i]) * 0x100000001b3;
  free(packed);
  return hash;
}

struct span {
  const char *begin, *end;
};

/* Where the data of a message lie; nowhere if its type has gaps, where others may lie. */
static struct span span_of(const void *buffer, uint64_t count, MPI_Datatype type)
{
  MPI_Aint lower, extent;
  uint64_t bytes = packed_size(count, type);
  REAL(Type_get_true_extent)(type, &lower, &extent);
  if (bytes == 0 || bytes != (count - 1) * (uint64_t)extent_of(type) + (uint64_t)extent)
    return (struct span){0};
  const char *begin = (const char *)buffer + lower;
  return (struct span){begin, begin + bytes};
}

static bool overlap(struct span one, struct span other) { return one.begin < other.end && other.begin < one.end; }

bool share_memory(const void *one, uint64_t one_count, MPI_Datatype one_type, const void *other, uint64_t other_count, MPI_Datatype other_type)
{
  bool is_same = one == other && one_type == other_type && packed_size(one_count, one_type) > 0 && packed_size(other_count, other_type) > 0;
  return is_same || overlap(span_of(one, one_count, one_type), span_of(other, other_count, other_type));
}

/* Names the first two pending messages that share memory, into which one is received. */
static void check_overlap(uint32_t index)
{
  static bool has_warned;
  const struct request *request = &requests[index];
  struct span span = span_of(request->buffer, request->count, request->type);
  for (uint32_t i = 0; i < length && !has_warned && span.begin != span.end; i++) {
    const struct request *other = &requests[i];
    if (i == index || !other->is_active || !other->is_watched || (request->kind != REQUEST_RECEIVE && other->kind != REQUEST_RECEIVE))
      continue;
    if (!overlap(span, span_of(other->buffer, other->count, other->type)))
      continue;
    has_warned = true;
    warn(request->made_by, "the buffer of %s overlaps that of %s, which was not completed before", request->made_by.name, other->made_by.name);
  }
}

void watch_buffer(uint32_t index, const void *buffer, uint64_t count, MPI_Datatype type)
{
  struct request *request = &requests[index];
  if (!shared->checks_buffers)
    return;
  if (request->type == MPI_DATATYPE_NULL) {
    request->buffer = (void *)buffer;
    request->count = count;
    request->type = keep_type(type);
  }
  request->is_watched = true;
  request->contents = contents_of(buffer, count, type);
  check_overlap(index);
}

static void check_buffer(struct request *request)
{
  static bool has_warned;
  if (has_warned)
    return;
  bool is_changed = request->kind == REQUEST_COLLECTIVE
                        ? has_changed(request->collective)
                        : request->is_watched && contents_of(request->buffer, request->count, request->type) != request->contents;
  if (!is_changed)
    return;
  has_warned = true;
  warn(request->made_by, "the program has changed the buffer of %s before its request was completed", request->made_by.name);
}

/* Ends a request that is complete. */
static int end_request(MPI_Request *handle, uint32_t index, MPI_Status *status)
{
  struct request *request = &requests[index];
  check_buffer(request);
  int error = status_of(index, true, status);
  if (request->is_persistent)
    request->is_active = false;
  else {
    release_request(index);
    *handle = MPI_REQUEST_NULL;
  }
  return error;
}

/* Requests of a call: those for which the simulator is asked, and those of the real library. */
struct batch {
  uint32_t asked, active, others;
  bool has_done;
};

static struct batch list_requests(int n, MPI_Request handles[])
{
  struct batch batch = {0};
  for (int i = 0; i < n; i++) {
    uint32_t index = request_index(handles[i]);
    if (index == NONE) {
      batch.others += handles[i] != MPI_REQUEST_NULL;
      continue;
    }
    if (!requests[index].is_active)
      continue;
    batch.active++;
    if (is_complete(index))
      batch.has_done = true;
    else
      own->list[batch.asked++] = index;
  }
  return batch;
}

/* Returns a request for which a test of the listed ones is known to fail; NONE if it may succeed. */
static uint32_t known_incomplete(enum operation_kind kind, uint32_t n)
{
  uint32_t incomplete = 0, last = NONE;
  for (uint32_t i = 0; i < n; i++)
    if (is_quiet(requests[own->list[i]].quiet)) {
      incomplete++;
      last = own->list[i];
    }
  return kind == OP_TESTALL || incomplete == n ? last : NONE;
}

/* Tests the listed requests. */
static void test(enum operation_kind kind, uint32_t n)
{
  uint32_t incomplete = known_incomplete(kind, n);
  if (incomplete != NONE && (n == 1 || !shared->keeps_polls)) {
    fail_unasked((struct operation){.kind = kind, .request = incomplete}, requests[incomplete].quiet.poll_s);
    return;
  }
  answer((struct operation){.kind = kind, .count = n});
  bool has_complete = false;
  for (uint32_t i = 0; i < n; i++)
    has_complete |= own->completion[own->list[i]].is_complete != 0;
  /* The price of a test may depend on the length of its list, and those that are kept have one request. */
  for (uint32_t i = 0; i < n && !has_complete && (n == 1 || !shared->keeps_polls); i++)
    requests[own->list[i]].quiet = quiet_now();
  note_poll(has_complete);
}

/* Asks the simulator for the listed requests. */
static void ask(enum operation_kind kind, uint32_t n)
{
  if (n == 0)
    return;
  if (kind != OP_TESTALL && kind != OP_TESTANY && kind != OP_TESTSOME)
    answer((struct operation){.kind = kind, .count = n});
  else if (!fails_unasked())
    test(kind, n);
}

static MPI_Comm communicator_of_requests(int n, MPI_Request handles[])
{
  for (int i = 0; i < n; i++) {
    uint32_t index = request_index(handles[i]);
    if (index != NONE && requests[index].kind != REQUEST_NONE)
      return requests[index].communicator->handle;
  }
  return MPI_COMM_WORLD;
}

/* Ends one request of an array if it is complete; returns whether it is. */
static bool end_if_complete(MPI_Request *handle, MPI_Status *status, int *error)
{
  uint32_t index = request_index(*handle);
  if (index == NONE) {
    int flag = 0;
    if (*handle != MPI_REQUEST_NULL)
      *error = REAL(Test)(handle, &flag, status);
    return flag;
  }
  if (!requests[index].is_active || !is_complete(index))
    return false;
  *error = end_request(handle, index, status);
  return true;
}

static bool is_active(MPI_Request handle)
{
  uint32_t index = request_index(handle);
  return index == NONE ? handle != MPI_REQUEST_NULL : requests[index].is_active;
}

#define STATUS(statuses, i) ((statuses) == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &(statuses)[i])

/* Ends all requests of an array, which are complete. */
static int end_all(int n, MPI_Request handles[], MPI_Status statuses[])
{
  int errors[n + 1], failures = 0;
  for (int i = 0; i < n; i++) {
    MPI_Status *status = STATUS(statuses, i);
    uint32_t index = request_index(handles[i]);
    errors[i] = MPI_SUCCESS;
    if (!is_active(handles[i]))
      empty_status(status);
    else if (index == NONE)
      errors[i] = REAL(Wait)(&handles[i], status);
    else
      errors[i] = end_request(&handles[i], index, status);
    failures += errors[i] != MPI_SUCCESS;
  }
  if (failures == 0)
    return MPI_SUCCESS;
  for (int i = 0; i < n && statuses != MPI_STATUSES_IGNORE; i++)
    statuses[i].MPI_ERROR = errors[i];
  return MPI_ERR_IN_STATUS;
}

INTERPOSE(Wait)
int MPI_Wait(MPI_Request *handle, MPI_Status *status)
{
  CALL(Wait, handle, status)
  MPI_Comm communicator = communicator_of_requests(1, handle);
  struct batch batch = list_requests(1, handle);
  int error = MPI_SUCCESS;
  ask(OP_WAITALL, batch.asked);
  if (batch.others)
    error = REAL(Wait)(handle, status);
  else if (!end_if_complete(handle, status, &error))
    empty_status(status);
  RETURN(communicator, error);
}

INTERPOSE(Waitall)
int MPI_Waitall(int n, MPI_Request handles[], MPI_Status statuses[])
{
  CALL(Waitall, n, handles, statuses)
  CHECK(n >= 0, MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the number of requests is %d", n));
  MPI_Comm communicator = communicator_of_requests(n, handles);
  ask(OP_WAITALL, list_requests(n, handles).asked);
  RETURN(communicator, end_all(n, handles, statuses));
}

INTERPOSE(Waitany)
int MPI_Waitany(int n, MPI_Request handles[], int *index, MPI_Status *status)
{
  CALL(Waitany, n, handles, index, status)
  CHECK(n >= 0, MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the number of requests is %d", n));
  MPI_Comm communicator = communicator_of_requests(n, handles);
  struct batch batch = list_requests(n, handles);
  int error = MPI_SUCCESS;
  if (batch.active == 0 && batch.others)
    RETURN(communicator, REAL(Waitany)(n, handles, index, status));
  if (!batch.has_done && !batch.others)
    ask(OP_WAITANY, batch.asked);
  for (bool waits = batch.others > 0;; waits = false) {
    for (*index = 0; *index < n; ++*index)
      if (end_if_complete(&handles[*index], status, &error))
        RETURN(communicator, error);
    if (!waits)
      break;
    ask(OP_WAITANY, batch.asked);
  }
  *index = MPI_UNDEFINED;
  empty_status(status);
  RETURN(communicator, error);
}

/* Ends all requests of an array that are complete; returns the error. */
static int end_some(int n, MPI_Request handles[], int *number, int indices[], MPI_Status statuses[])
{
  int failures = 0;
  *number = 0;
  for (int i = 0; i < n; i++) {
    int error = MPI_SUCCESS;
    MPI_Status *status = STATUS(statuses, *number);
    if (!end_if_complete(&handles[i], status, &error))
      continue;
    if (status != MPI_STATUS_IGNORE)
      status->MPI_ERROR = error;
    failures += error != MPI_SUCCESS;
    indices[(*number)++] = i;
  }
  return failures ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

INTERPOSE(Waitsome)
int MPI_Waitsome(int n, MPI_Request handles[], int *number, int indices[], MPI_Status statuses[])
{
  CALL(Waitsome, n, handles, number, indices, statuses)
  CHECK(n >= 0, MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the number of requests is %d", n));
  MPI_Comm communicator = communicator_of_requests(n, handles);
  struct batch batch = list_requests(n, handles);
  if (batch.active == 0 && batch.others == 0) {
    *number = MPI_UNDEFINED;
    RETURN(communicator, MPI_SUCCESS);
  }
  if (!batch.has_done && !batch.others)
    ask(OP_WAITSOME, batch.asked);
  int error = end_some(n, handles, number, indices, statuses);
  if (*number == 0 && batch.asked) {
    ask(OP_WAITSOME, batch.asked);
    error = end_some(n, handles, number, indices, statuses);
  }
  RETURN(communicator, error);
}

INTERPOSE(Test)
int MPI_Test(MPI_Request *handle, int *flag, MPI_Status *status)
{
  CALL(Test, handle, flag, status)
  MPI_Comm communicator = communicator_of_requests(1, handle);
  int error = MPI_SUCCESS;
  *flag = !is_active(*handle);
  if (*flag)
    empty_status(status);
  else {
    ask(OP_TESTALL, list_requests(1, handle).asked);
    *flag = end_if_complete(handle, status, &error);
  }
  RETURN(communicator, error);
}

INTERPOSE(Testall)
int MPI_Testall(int n, MPI_Request handles[], int *flag, MPI_Status statuses[])
{
  CALL(Testall, n, handles, flag, statuses)
  CHECK(n >= 0, MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the number of requests is %d", n));
  MPI_Comm communicator = communicator_of_requests(n, handles);
  ask(OP_TESTALL, list_requests(n, handles).asked);
  *flag = 1;
  for (int i = 0; i < n; i++) {
    uint32_t index = request_index(handles[i]);
    int done = 1;
    if (index == NONE && handles[i] != MPI_REQUEST_NULL)
      REAL(Request_get_status)(handles[i], &done, MPI_STATUS_IGNORE);
    else if (index != NONE && requests[index].is_active)
      done = is_complete(index);
    *flag &= done;
  }
  RETURN(communicator, *flag ? end_all(n, handles, statuses) : MPI_SUCCESS);
}

INTERPOSE(Testany)
int MPI_Testany(int n, MPI_Request handles[], int *index, int *flag, MPI_Status *status)
{
  CALL(Testany, n, handles, index, flag, status)
  CHECK(n >= 0, MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the number of requests is %d", n));
  MPI_Comm communicator = communicator_of_requests(n, handles);
  struct batch batch = list_requests(n, handles);
  int error = MPI_SUCCESS;
  if (!batch.has_done)
    ask(OP_TESTANY, batch.asked);
  for (*index = 0; *index < n; ++*index)
    if (end_if_complete(&handles[*index], status, &error)) {
      *flag = 1;
      RETURN(communicator, error);
    }
  *index = MPI_UNDEFINED;
  *flag = batch.active == 0 && batch.others == 0;
  if (*flag)
    empty_status(status);
  RETURN(communicator, MPI_SUCCESS);
}

INTERPOSE(Testsome)
int MPI_Testsome(int n, MPI_Request handles[], int *number, int indices[], MPI_Status statuses[])
{
  CALL(Testsome, n, handles, number, indices, statuses)
  CHECK(n >= 0, MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the number of requests is %d", n));
  MPI_Comm communicator = communicator_of_requests(n, handles);
  struct batch batch = list_requests(n, handles);
  if (batch.active == 0 && batch.others == 0) {
    *number = MPI_UNDEFINED;
    RETURN(communicator, MPI_SUCCESS);
  }
  ask(OP_TESTSOME, batch.asked);
  RETURN(communicator, end_some(n, handles, number, indices, statuses));
}

INTERPOSE(Request_get_status)
int MPI_Request_get_status(MPI_Request handle, int *flag, MPI_Status *status)
{
  CALL(Request_get_status, handle, flag, status)
  uint32_t index = request_index(handle);
  if (index == NONE && handle != MPI_REQUEST_NULL)
    RETURN(MPI_COMM_WORLD, REAL(Request_get_status)(handle, flag, status));
  *flag = 1;
  if (index == NONE || !requests[index].is_active) {
    empty_status(status);
    RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
  }
  *flag = is_complete(index);
  if (!*flag && !fails_unasked()) {
    answer((struct operation){.kind = OP_GET_STATUS, .request = index});
    *flag = own->flag != 0;
    note_poll(*flag);
  }
  if (*flag)
    status_of(index, false, status);
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Request_free)
int MPI_Request_free(MPI_Request *handle)
{
  CALL(Request_free, handle)
  uint32_t index = request_index(*handle);
  CHECK(*handle != MPI_REQUEST_NULL, MPI_COMM_WORLD, MPI_ERR_REQUEST);
  if (index == NONE)
    RETURN(MPI_COMM_WORLD, REAL(Request_free)(handle));
  struct request *request = &requests[index];
  int error = MPI_SUCCESS;
  if (request->is_persistent && !request->is_active) {
    if (request->peer != MPI_PROC_NULL)
      post((struct operation){.kind = OP_FREE, .request = index});
    release_request(index);
  } else if (request->is_done)
    release_request(index);
  else if (is_complete(index) && !request->is_persistent)
    error = end_request(handle, index, MPI_STATUS_IGNORE);
  else {
    request->is_freed = true;
    of_freed = freed++ == 0 ? request->made_by : of_freed;
  }
  *handle = MPI_REQUEST_NULL;
  RETURN(MPI_COMM_WORLD, error);
}

INTERPOSE(Cancel)
int MPI_Cancel(MPI_Request *handle)
{
  CALL(Cancel, handle)
  CHECK(*handle != MPI_REQUEST_NULL, MPI_COMM_WORLD, MPI_ERR_REQUEST);
  uint32_t index = request_index(*handle);
  if (index == NONE)
    RETURN(MPI_COMM_WORLD, REAL(Cancel)(handle));
  struct request *request = &requests[index];
  if (request->kind == REQUEST_RECEIVE && request->is_active && !is_complete(index))
    answer((struct operation){.kind = OP_CANCEL, .request = index});
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}
