/* Messages between two ranks. Data are packed when a message is sent, and unpacked when it has been received. */
#include "online.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMUNICATOR(c, handle)                                                                                                          \
  struct communicator *c = communicator_of(handle);                                                                                      \
  CHECK(c, MPI_COMM_WORLD, communicator_error(handle))

/* The buffer that the program has attached. It is not used: data are packed when they are sent. */
static void *attached;
static int attached_bytes;

/* Checks that a message has room in the attached buffer, if it is a buffered one; returns the error. Other messages take no room: when they
   have left is known to the simulator alone, and a real library empties its buffer whenever it can. One without data needs no buffer, as in
   Open MPI. */
static int buffer_error(enum mode mode, int count, MPI_Datatype type, int peer)
{
  uint64_t bytes = packed_size(count, type);
  if (mode != MODE_BUFFERED || peer == MPI_PROC_NULL || bytes == 0 || bytes + MPI_BSEND_OVERHEAD <= (uint64_t)attached_bytes)
    return MPI_SUCCESS;
  return explained_error(MPI_ERR_BUFFER,
                         "a message of %" PRIu64 " B needs these and MPI_BSEND_OVERHEAD, %d B, and MPI_Buffer_attach has attached %d B", bytes,
                         (int)MPI_BSEND_OVERHEAD, attached_bytes);
}

static uint64_t packed_block(const void *buffer, uint64_t count, MPI_Datatype type)
{
  uint64_t block = new_block(packed_size(count, type));
  pack(buffer, count, type, payload(block));
  set_signature(block, signature_of(type));
  return block;
}

static struct operation sending(struct communicator *c, enum operation_kind kind, enum mode mode, int peer, int tag, uint64_t bytes, uint64_t block)
{
  return (struct operation){.kind = kind,
                            .flags = mode,
                            .peer = peer_world(c, peer),
                            .tag = tag,
                            .communicator = c->index,
                            .request = NONE,
                            .bytes = bytes,
                            .block = block};
}

static int source_world(struct communicator *c, int source) { return source == MPI_ANY_SOURCE ? ANY : peer_world(c, source); }
static int wanted_tag(int tag) { return tag == MPI_ANY_TAG ? ANY : tag; }

static struct operation receiving(struct communicator *c, enum operation_kind kind, int source, int tag, uint64_t bytes)
{
  return (struct operation){.kind = kind,
                            .source = source_world(c, source),
                            .source_tag = wanted_tag(tag),
                            .communicator = c->index,
                            .request = NONE,
                            .source_bytes = bytes};
}

static void null_status(MPI_Status *status) { set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, -1, 0, false); }

#define SEND(name, mode)                                                                                                                 \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm handle)                                   \
  {                                                                                                                                      \
    CALL(name, buffer, count, type, peer, tag, handle)                                                                                   \
    COMMUNICATOR(c, handle);                                                                                                             \
    int error = message_error(c, buffer, count, type, peer, tag, false);                                                                         \
    error = error ? error : buffer_error(mode, count, type, peer);                                                                       \
    CHECK(!error, handle, error);                                                                                                        \
    if (peer != MPI_PROC_NULL)                                                                                                           \
      post(sending(c, OP_SEND, mode, peer, tag, packed_size(count, type), packed_block(buffer, count, type)));                           \
    RETURN(handle, MPI_SUCCESS);                                                                                                         \
  }

SEND(Send, MODE_STANDARD)
SEND(Ssend, MODE_SYNCHRONOUS)
SEND(Bsend, MODE_BUFFERED)
SEND(Rsend, MODE_READY)

static void post_request(struct operation operation, uint32_t request)
{
  operation.request = request;
  post(operation);
}

#define ISEND(name, mode)                                                                                                                \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm handle, MPI_Request *request)             \
  {                                                                                                                                      \
    CALL(name, buffer, count, type, peer, tag, handle, request)                                                                          \
    COMMUNICATOR(c, handle);                                                                                                             \
    int error = message_error(c, buffer, count, type, peer, tag, false);                                                                         \
    error = error ? error : buffer_error(mode, count, type, peer);                                                                       \
    CHECK(!error, handle, error);                                                                                                        \
    uint32_t index = new_request(REQUEST_SEND, c, request);                                                                         \
    request_at(index)->is_done = peer == MPI_PROC_NULL;                                                                                  \
    if (peer != MPI_PROC_NULL) {                                                                                                         \
      post_request(sending(c, OP_ISEND, mode, peer, tag, packed_size(count, type), packed_block(buffer, count, type)), index);           \
      watch_buffer(index, buffer, count, type);                                                                                          \
    }                                                                                                                                    \
    RETURN(handle, MPI_SUCCESS);                                                                                                         \
  }

ISEND(Isend, MODE_STANDARD)
ISEND(Issend, MODE_SYNCHRONOUS)
ISEND(Ibsend, MODE_BUFFERED)
ISEND(Irsend, MODE_READY)

INTERPOSE(Recv)
int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm handle, MPI_Status *status)
{
  CALL(Recv, buffer, count, type, source, tag, handle, status)
  COMMUNICATOR(c, handle);
  int error = message_error(c, buffer, count, type, source, tag, true);
  CHECK(!error, handle, error);
  if (source == MPI_PROC_NULL) {
    null_status(status);
    RETURN(handle, MPI_SUCCESS);
  }
  answer(receiving(c, OP_RECV, source, tag, packed_size(count, type)));
  RETURN(handle, take_message(c, &own->received, buffer, count, type, status, current_call()));
}

INTERPOSE(Irecv)
int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm handle, MPI_Request *request)
{
  CALL(Irecv, buffer, count, type, source, tag, handle, request)
  COMMUNICATOR(c, handle);
  int error = message_error(c, buffer, count, type, source, tag, true);
  CHECK(!error, handle, error);
  uint32_t index = new_request(REQUEST_RECEIVE, c, request);
  struct request *new = request_at(index);
  new->is_done = source == MPI_PROC_NULL;
  if (source != MPI_PROC_NULL) {
    new->buffer = buffer;
    new->count = count;
    new->type = keep_type(type);
    watch_buffer(index, buffer, count, type);
    post_request(receiving(c, OP_IRECV, source, tag, packed_size(count, type)), index);
  }
  RETURN(handle, MPI_SUCCESS);
}

/* Sends packed data, and receives others in their place or elsewhere. */
static int exchange_messages(struct communicator *c, int to, int send_tag, uint64_t send_bytes, uint64_t block, void *buffer, int count,
                             MPI_Datatype type, int source, int tag, MPI_Status *status)
{
  struct operation both = {.kind = OP_SENDRECV, .communicator = c->index, .request = NONE};
  if (to != MPI_PROC_NULL && source == MPI_PROC_NULL)
    post(sending(c, OP_SEND, MODE_STANDARD, to, send_tag, send_bytes, block));
  if (source == MPI_PROC_NULL) {
    null_status(status);
    return MPI_SUCCESS;
  }
  struct operation receive = receiving(c, OP_RECV, source, tag, packed_size(count, type));
  if (to == MPI_PROC_NULL)
    answer(receive);
  else {
    both = sending(c, OP_SENDRECV, MODE_STANDARD, to, send_tag, send_bytes, block);
    both.source = receive.source;
    both.source_tag = receive.source_tag;
    both.source_bytes = receive.source_bytes;
    answer(both);
  }
  return take_message(c, &own->received, buffer, count, type, status, current_call());
}

INTERPOSE(Sendrecv)
int MPI_Sendrecv(const void *from, int send_count, MPI_Datatype send_type, int to, int send_tag, void *buffer, int count, MPI_Datatype type, int source,
                 int tag, MPI_Comm handle, MPI_Status *status)
{
  CALL(Sendrecv, from, send_count, send_type, to, send_tag, buffer, count, type, source, tag, handle, status)
  COMMUNICATOR(c, handle);
  int error = message_error(c, from, send_count, send_type, to, send_tag, false);
  CHECK(!error, handle, error);
  error = message_error(c, buffer, count, type, source, tag, true);
  CHECK(!error, handle, error);
  static bool has_warned;
  bool exchanges = to != MPI_PROC_NULL && source != MPI_PROC_NULL;
  if (!has_warned && exchanges && share_memory(from, send_count, send_type, buffer, count, type)) {
    has_warned = true;
    warn(current_call(), "%s sends from the buffer into which it receives: the two must be distinct", current_call().name);
  }
  uint64_t block = to == MPI_PROC_NULL ? 0 : packed_block(from, send_count, send_type);
  RETURN(handle, exchange_messages(c, to, send_tag, packed_size(send_count, send_type), block, buffer, count, type, source, tag, status));
}

INTERPOSE(Sendrecv_replace)
int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int send_tag, int source, int tag, MPI_Comm handle, MPI_Status *status)
{
  CALL(Sendrecv_replace, buffer, count, type, to, send_tag, source, tag, handle, status)
  COMMUNICATOR(c, handle);
  int error = message_error(c, buffer, count, type, to, send_tag, false);
  CHECK(!error, handle, error);
  error = message_error(c, buffer, count, type, source, tag, true);
  CHECK(!error, handle, error);
  uint64_t block = to == MPI_PROC_NULL ? 0 : packed_block(buffer, count, type);
  RETURN(handle, exchange_messages(c, to, send_tag, packed_size(count, type), block, buffer, count, type, source, tag, status));
}

/* ---- persistent requests ---- */

static int make_persistent(struct communicator *c, enum request_kind kind, enum mode mode, void *buffer, int count, MPI_Datatype type, int peer,
                           int tag, MPI_Request *handle)
{
  bool receives = kind == REQUEST_RECEIVE;
  int error = message_error(c, buffer, count, type, peer, tag, receives);
  if (error)
    return error;
  uint32_t index = new_request(kind, c, handle);
  struct request *request = request_at(index);
  request->is_persistent = true;
  request->is_active = false;
  request->is_done = peer == MPI_PROC_NULL;
  request->buffer = buffer;
  request->count = count;
  request->peer = peer;
  request->tag = tag;
  request->mode = mode;
  request->type = keep_type(type);
  if (peer == MPI_PROC_NULL)
    return MPI_SUCCESS;
  uint64_t bytes = packed_size(count, type);
  post_request(receives ? receiving(c, OP_RECV_INIT, peer, tag, bytes) : sending(c, OP_SEND_INIT, mode, peer, tag, bytes, 0), index);
  return MPI_SUCCESS;
}

#define SEND_INIT(name, mode)                                                                                                            \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm handle, MPI_Request *request)             \
  {                                                                                                                                      \
    CALL(name, buffer, count, type, peer, tag, handle, request)                                                                          \
    COMMUNICATOR(c, handle);                                                                                                             \
    RETURN(handle, make_persistent(c, REQUEST_SEND, mode, (void *)buffer, count, type, peer, tag, request));                             \
  }

SEND_INIT(Send_init, MODE_STANDARD)
SEND_INIT(Ssend_init, MODE_SYNCHRONOUS)
SEND_INIT(Bsend_init, MODE_BUFFERED)
SEND_INIT(Rsend_init, MODE_READY)

INTERPOSE(Recv_init)
int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm handle, MPI_Request *request)
{
  CALL(Recv_init, buffer, count, type, source, tag, handle, request)
  COMMUNICATOR(c, handle);
  RETURN(handle, make_persistent(c, REQUEST_RECEIVE, MODE_STANDARD, buffer, count, type, source, tag, request));
}

static int start_request(MPI_Request *handle)
{
  uint32_t index = request_index(*handle);
  if (index == NONE || !request_at(index)->is_persistent || request_at(index)->is_active)
    return MPI_ERR_REQUEST;
  struct request *request = request_at(index);
  int error = buffer_error(request->mode, request->count, request->type, request->peer);
  if (error)
    return error;
  request->is_active = true;
  own->completion[index] = (struct completion){0};
  if (request->peer == MPI_PROC_NULL)
    return MPI_SUCCESS;
  uint64_t block = request->kind == REQUEST_SEND ? packed_block(request->buffer, request->count, request->type) : 0;
  watch_buffer(index, request->buffer, request->count, request->type);
  post((struct operation){.kind = OP_START, .request = index, .block = block});
  return MPI_SUCCESS;
}

INTERPOSE(Start)
int MPI_Start(MPI_Request *handle)
{
  CALL(Start, handle)
  RETURN(MPI_COMM_WORLD, start_request(handle));
}

INTERPOSE(Startall)
int MPI_Startall(int n, MPI_Request handles[])
{
  CALL(Startall, n, handles)
  int error = MPI_SUCCESS;
  for (int i = 0; i < n && error == MPI_SUCCESS; i++)
    error = start_request(&handles[i]);
  RETURN(MPI_COMM_WORLD, error);
}

/* ---- probes ---- */

/* Probes; returns whether there is a message. */
static bool probe(struct communicator *c, enum operation_kind kind, int source, int tag)
{
  if (kind == OP_IPROBE && fails_unasked())
    return false;
  answer(receiving(c, kind, source, tag, 0));
  if (kind == OP_IPROBE)
    note_poll(own->flag != 0);
  return own->flag;
}

static void found_status(struct communicator *c, MPI_Status *status)
{
  set_status(status, peer_rank(c, own->received.source), own->received.tag, -1, own->received.bytes, false);
}

static int probe_error(struct communicator *c, int source, int tag) { return message_error(c, NULL, 0, MPI_BYTE, source, tag, true); }

INTERPOSE(Probe)
int MPI_Probe(int source, int tag, MPI_Comm handle, MPI_Status *status)
{
  CALL(Probe, source, tag, handle, status)
  COMMUNICATOR(c, handle);
  int error = probe_error(c, source, tag);
  CHECK(!error, handle, error);
  if (source == MPI_PROC_NULL)
    null_status(status);
  else {
    probe(c, OP_PROBE, source, tag);
    found_status(c, status);
  }
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Iprobe)
int MPI_Iprobe(int source, int tag, MPI_Comm handle, int *flag, MPI_Status *status)
{
  CALL(Iprobe, source, tag, handle, flag, status)
  COMMUNICATOR(c, handle);
  int error = probe_error(c, source, tag);
  CHECK(!error, handle, error);
  *flag = source == MPI_PROC_NULL || probe(c, OP_IPROBE, source, tag);
  if (source == MPI_PROC_NULL)
    null_status(status);
  else if (*flag)
    found_status(c, status);
  RETURN(handle, MPI_SUCCESS);
}

/* A message that a matched probe has taken. */
struct message {
  struct communicator *communicator;
  struct completion received;
};

#if FOR_MPICH
/* Handles are numbers, these of places in a table. */
enum { OWN_MESSAGES = 0x2e000000 };
static struct message **places;
static int places_length;

static MPI_Message keep_message(struct message *message)
{
  int at = 0;
  while (at < places_length && places[at])
    at++;
  if (at == places_length)
    places = realloc(places, ++places_length * sizeof *places);
  places[at] = message;
  return OWN_MESSAGES + at;
}

static struct message *kept_message(MPI_Message handle)
{
  struct message *message = places[handle - OWN_MESSAGES];
  places[handle - OWN_MESSAGES] = NULL;
  return message;
}
#else
static MPI_Message keep_message(struct message *message) { return (MPI_Message)message; }
static struct message *kept_message(MPI_Message handle) { return (struct message *)handle; }
#endif

/* Receives the message that a probe has found, so that no other receive does. */
static MPI_Message take_found(struct communicator *c, MPI_Status *status)
{
  struct message *message = calloc(1, sizeof *message);
  found_status(c, status);
  answer(receiving(c, OP_RECV, peer_rank(c, own->received.source), own->received.tag, own->received.bytes));
  hold_communicator(c);
  *message = (struct message){c, own->received};
  return keep_message(message);
}

INTERPOSE(Mprobe)
int MPI_Mprobe(int source, int tag, MPI_Comm handle, MPI_Message *message, MPI_Status *status)
{
  CALL(Mprobe, source, tag, handle, message, status)
  COMMUNICATOR(c, handle);
  int error = probe_error(c, source, tag);
  CHECK(!error, handle, error);
  if (source == MPI_PROC_NULL) {
    *message = MPI_MESSAGE_NO_PROC;
    null_status(status);
  } else {
    probe(c, OP_PROBE, source, tag);
    *message = take_found(c, status);
  }
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Improbe)
int MPI_Improbe(int source, int tag, MPI_Comm handle, int *flag, MPI_Message *message, MPI_Status *status)
{
  CALL(Improbe, source, tag, handle, flag, message, status)
  COMMUNICATOR(c, handle);
  int error = probe_error(c, source, tag);
  CHECK(!error, handle, error);
  *message = MPI_MESSAGE_NULL;
  if (source == MPI_PROC_NULL) {
    *flag = 1;
    *message = MPI_MESSAGE_NO_PROC;
    null_status(status);
  } else if ((*flag = probe(c, OP_IPROBE, source, tag)))
    *message = take_found(c, status);
  RETURN(handle, MPI_SUCCESS);
}

INTERPOSE(Mrecv)
int MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *handle, MPI_Status *status)
{
  CALL(Mrecv, buffer, count, type, handle, status)
  CHECK(*handle != MPI_MESSAGE_NULL, MPI_COMM_WORLD, MPI_ERR_REQUEST);
  CHECK(is_usable(type), MPI_COMM_WORLD, type_error(type));
  if (*handle == MPI_MESSAGE_NO_PROC) {
    null_status(status);
    *handle = MPI_MESSAGE_NULL;
    RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
  }
  struct message *message = kept_message(*handle);
  MPI_Comm communicator = message->communicator->handle;
  int error = take_message(message->communicator, &message->received, buffer, count, type, status, current_call());
  drop_communicator(message->communicator);
  free(message);
  *handle = MPI_MESSAGE_NULL;
  RETURN(communicator, error);
}

INTERPOSE(Imrecv)
int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *handle, MPI_Request *request)
{
  CALL(Imrecv, buffer, count, type, handle, request)
  CHECK(*handle != MPI_MESSAGE_NULL, MPI_COMM_WORLD, MPI_ERR_REQUEST);
  CHECK(is_usable(type), MPI_COMM_WORLD, type_error(type));
  bool is_null = *handle == MPI_MESSAGE_NO_PROC;
  struct message *message = is_null ? NULL : kept_message(*handle);
  uint32_t index = new_request(REQUEST_RECEIVE, is_null ? communicator_of(MPI_COMM_WORLD) : message->communicator, request);
  struct request *new = request_at(index);
  new->is_done = is_null;
  if (!is_null) {
    new->buffer = buffer;
    new->count = count;
    new->type = keep_type(type);
    own->completion[index] = message->received;
    own->completion[index].is_complete = own->completion[index].is_receive = 1;
    drop_communicator(message->communicator);
    free(message);
  }
  *handle = MPI_MESSAGE_NULL;
  RETURN(MPI_COMM_WORLD, MPI_SUCCESS);
}

/* ---- the buffer of buffered sends ---- */

INTERPOSE(Buffer_attach)
int MPI_Buffer_attach(void *buffer, int bytes)
{
  LOCAL(Buffer_attach, buffer, bytes)
  if (!buffer || bytes < 0)
    return RAISE(MPI_COMM_WORLD, explained_error(MPI_ERR_ARG, "the buffer is null, or has %d B", bytes));
  if (attached)
    return RAISE(MPI_COMM_WORLD, explained_error(MPI_ERR_BUFFER, "a buffer of %d B is attached", attached_bytes));
  attached = buffer;
  attached_bytes = bytes;
  return MPI_SUCCESS;
}

INTERPOSE(Buffer_detach)
int MPI_Buffer_detach(void *buffer, int *bytes)
{
  LOCAL(Buffer_detach, buffer, bytes)
  *(void **)buffer = attached;
  *bytes = attached_bytes;
  attached = NULL;
  attached_bytes = 0;
  return MPI_SUCCESS;
}
