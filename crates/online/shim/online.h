/* The parts of the library that runs an MPI program in simulated time. */
#ifndef PDES_ONLINE_H
#define PDES_ONLINE_H

#include "layout.h"
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The MPI library of the program: Open MPI, whose handles are pointers, or MPICH, whose handles are numbers. */
#if !defined(FOR_MPICH) && defined(MPICH_VERSION)
#define FOR_MPICH 1
#elif !defined(FOR_MPICH) && defined(OMPI_MAJOR_VERSION)
#define FOR_MPICH 0
#elif !defined(FOR_MPICH)
#error "expected Open MPI 4 or MPICH"
#endif
#if FOR_MPICH && !defined(MPICH_VERSION)
#error "expected MPICH"
#elif !FOR_MPICH && (!defined(OMPI_MAJOR_VERSION) || OMPI_MAJOR_VERSION != 4)
#error "expected Open MPI 4"
#elif FOR_MPICH
#define LIBRARY "libmpich.so.12"
#pragma weak MPI_UNWEIGHTED
#pragma weak MPI_WEIGHTS_EMPTY
#else
#define LIBRARY "libmpi.so.40"
#endif

/* A handle as the key of a table. */
#define KEY(handle) ((void *)(intptr_t)(handle))

/* The objects behind predefined handles. Weak: processes without MPI, such as a shell that starts the program, load this library, too, and not
   the MPI library for its sake. */
#pragma weak ompi_message_no_proc
#pragma weak ompi_message_null
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_dblprec
#pragma weak ompi_mpi_double
#pragma weak ompi_mpi_errors_are_fatal
#pragma weak ompi_mpi_errors_return
#pragma weak ompi_mpi_float
#pragma weak ompi_mpi_group_empty
#pragma weak ompi_mpi_group_null
#pragma weak ompi_mpi_info_env
#pragma weak ompi_mpi_info_null
#pragma weak ompi_mpi_int
#pragma weak ompi_mpi_long_double
#pragma weak ompi_mpi_op_no_op
#pragma weak ompi_mpi_op_null
#pragma weak ompi_mpi_op_replace
#pragma weak ompi_mpi_packed
#pragma weak ompi_mpi_real
#pragma weak ompi_request_null

/* ---- the real library: a singleton in each rank, which owns datatypes, operations, attributes and files (library.c) ---- */

/* Returns a function of the real library. */
void *real_function(const char *name);
#define REAL(name)                                                                                                                       \
  ({                                                                                                                                     \
    static __typeof__(&PMPI_##name) function;                                                                                            \
    if (!function)                                                                                                                       \
      function = (__typeof__(function))real_function("PMPI_" #name);                                                                     \
    function;                                                                                                                            \
  })

/* Both names of a function are ours: the Fortran functions of Open MPI call the profiling names. */
#define INTERPOSE(name) extern __typeof__(PMPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)));

/* The begin of an interposed function. Calls from within the real library, and of processes that are no ranks, are the real library's. */
#define LOCAL(name, ...)                                                                                                                 \
  if (!is_call_of_rank())                                                                                                                \
    return REAL(name)(__VA_ARGS__);

/* The begin of a function that posts operations: ends the computation before it. RETURN ends it. */
#define CALL(name, ...)                                                                                                                  \
  LOCAL(name, __VA_ARGS__)                                                                                                               \
  enter("MPI_" #name, __builtin_return_address(0));

#define RETURN(communicator, error) return leave(communicator, error)

/* Fails a check of an argument. */
#define CHECK(condition, communicator, class)                                                                                            \
  if (!(condition))                                                                                                                      \
  RETURN(communicator, class)

/* ---- ranks (process.c) ---- */

extern int world_rank, world_size;
extern struct header *shared;
extern struct slot *own;

bool is_outside(void);
/* Returns whether a call of MPI is one of the rank, not of the real library; its thread is one of those that call MPI from now on. */
bool is_call_of_rank(void);
/* Returns whether another thread is in a call: this one must not use the slot. */
bool is_call_elsewhere(void);
/* Returns whether the program itself runs, and not this library nor the real one for it. */
bool is_of_program(void);
/* Lets a function of this library call another one by its name. */
void depth_down(void);
void depth_up(void);
void enter(const char *call, void *site);
int leave(MPI_Comm communicator, int error);
/* Calls the error handler of a communicator; returns the error. */
int raise_error(MPI_Comm communicator, int error);
/* Raises an error in a function that takes no time, which is no call in progress. */
#define RAISE(communicator, error) raise_in((struct call){__func__, __builtin_return_address(0)}, communicator, error)
/* Says why the call in progress is to fail; returns the error. */
int explained_error(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call of the program: its name, and its return address. */
struct call {
  const char *name;
  void *site;
};

int raise_in(struct call by, MPI_Comm communicator, int error);
/* Returns the call in progress. */
struct call current_call(void);
/* Names the call in progress. */
void name_call(const char *call, void *site);
/* Returns whether the work between calls is counted. */
bool is_counted(void);
/* Adds the work since `begin_computation` to the computation before the next operation; returns it. */
double count_computation(void);
/* The computation before the next operation. */
double pending_computation(void);
void add_computation(double amount);
void begin_computation(void);
/* Says that this process has waited, so that the wall clock says nothing of its work. */
void has_waited(void);
/* The begin of a turn; its length is noted at its end. */
void begin_turn(void);
void note_turn(void);
/* Writes the place of a call as `, called from FILE+OFFSET`; returns the length. */
int called_from(char *text, size_t size, const void *site);
/* Warns at the end of the run, of a call. */
void warn(struct call call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Warns of things that the program has left; the first one is of a call. */
void warn_of(const char *what, uint32_t number, struct call first);
/* Ends the program with a message that names the rank and the call. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void start_ranks(void);

/* ---- operations (channel.c) ---- */

struct slot *slot_of(int rank);
/* Appends an operation that needs no answer. */
void post(struct operation operation);
/* Posts an operation, and waits until it has ended in simulated time. */
void answer(struct operation operation);
/* Simulated time [s]. */
double now(void);
/* Ends the turn of a rank, and wakes the threads of the simulator that sleep until it ends, or any. */
void hand_over(struct slot *slot, uint32_t owner);
/* Lets the program run on all its cores until its next call. */
void leave_core(void);
/* Returns whether a poll fails without being asked: it is one of a row that has failed. Legal, for a poll may see late what has happened. */
bool fails_unasked(void);
/* Ends a test that is known to fail, after its time: the simulator carries it out if it keeps polls. */
void fail_unasked(struct operation test, double seconds);
/* Until when a request that a test has found incomplete stays so, in a row of tests, and what this test took [s]. */
struct quiet {
  uint64_t row;
  double until, poll_s;
};

/* Returns how long the requests of the test that has just failed stay incomplete. */
struct quiet quiet_now(void);
/* Returns whether a request is still known to be incomplete. */
bool is_quiet(struct quiet quiet);
/* Notes how a poll has ended. */
void note_poll(bool has_succeeded);

/* ---- memory (arena.c) ---- */

/* Returns a block of an own arena; the payload at its offset is writable. */
uint64_t new_block(uint64_t bytes);
void *payload(uint64_t block);
uint64_t payload_bytes(uint64_t block);
struct block *block_at(uint64_t block);
void free_block(uint64_t block);

/* ---- sampled blocks (samples.c) ---- */

/* Makes the memory that all ranks share. */
void init_samples(void);
/* Fails in a block. */
void check_no_block(void);
/* Tells the simulator how often the blocks have been executed. */
void report_samples(void);

/* ---- folding of memory (folding.c), which is there only where memory is folded ---- */

/* Makes the memory that all ranks share. */
void init_folding(void) __attribute__((weak));
void warn_of_folding(void) __attribute__((weak));

/* ---- datatypes (types.c) ---- */

bool is_predefined(MPI_Datatype type);
/* Returns whether a type may be that of data: it is none, or not committed, else. */
bool is_usable(MPI_Datatype type);
/* Says why a type is not usable; returns the error. */
int type_error(MPI_Datatype type);
/* Returns its signature, one of no known elements for a type that is none. */
struct signature signature_of(MPI_Datatype type);
/* Knows of a copy what is known of a type. */
void know_as(MPI_Datatype copy, MPI_Datatype type);
/* Forgets a type that is to be freed. */
void forget_type(MPI_Datatype type);

/* ---- signatures of datatypes (signatures.c) ---- */

struct signature make_signature(MPI_Datatype type);
/* Notes of what the elements in a block consist. */
void set_signature(uint64_t block, struct signature signature);
/* Warns if elements in a block, of so many bytes, are others than those of the type with which they are received; once for two places. */
void check_signature(uint64_t block, uint64_t bytes, MPI_Datatype type, int from, struct call by);
/* Warns of a member of a collective operation that gives less than another one expects. */
void warn_of_less(uint64_t expected, uint64_t bytes, int from, struct call by);

/* ---- data (datatypes.c) ---- */

uint64_t packed_size(uint64_t count, MPI_Datatype type);
void pack(const void *from, uint64_t count, MPI_Datatype type, void *to);
/* Unpacks at most `bytes`. */
void unpack(const void *from, uint64_t bytes, void *to, uint64_t count, MPI_Datatype type);
/* Returns the bytes from one element to the next. */
ptrdiff_t extent_of(MPI_Datatype type);
/* Keeps a type that the program may free while it is needed, until it is dropped: a copy, unless it is predefined. */
MPI_Datatype keep_type(MPI_Datatype type);
void drop_type(MPI_Datatype type);

/* ---- handles (handles.c) ---- */

/* A table of pointers by handles: open addressing, at most half full. */
struct map {
  struct entry *entries;
  size_t capacity, length;
};

/* Returns the pointer of a handle; null if there is none. */
void *map_get(struct map *map, void *key);
void map_put(struct map *map, void *key, void *value);

struct topology;

struct communicator {
  MPI_Comm handle;
  /* the same number on all members; that of the simulator's tables on this rank */
  uint32_t id, index;
  int rank, size;
  /* ranks in the world */
  int *world;
  /* of an intercommunicator: the other group, and both groups together, those of the lower one first */
  int remote_size;
  int *remote;
  struct communicator *both;
  /* for the messages of a split, once there was one */
  struct communicator *beside;
  bool is_lower;
  struct topology *topology;
  /* requests that need it, and the handle */
  int references;
  struct call made_by;
};

struct group {
  MPI_Group handle;
  int rank, size;
  int *world;
};

/* Returns a communicator; null if there is none. */
struct communicator *communicator_of(MPI_Comm handle);
struct communicator *new_communicator(MPI_Comm handle, uint32_t id, int size, const int *world);
void forget_communicator(struct communicator *communicator);
void hold_communicator(struct communicator *communicator);
void drop_communicator(struct communicator *communicator);
struct group *group_of(MPI_Group handle);
/* Returns a new handle of a group of ranks of the world, which a function of MPI makes. */
#define new_group(size, world) make_group(size, world, (struct call){__func__, __builtin_return_address(0)})
MPI_Group make_group(int size, const int *world, struct call by);
void init_handles(void);
void warn_of_communicators(void);
/* What the program makes and has to free, beside communicators and requests. */
enum made { MADE_TYPE, MADE_OPERATOR, MADE_GROUP, MADE_KINDS };
void note_made(enum made kind, void *handle, struct call by);
void note_freed(enum made kind, void *handle);
void warn_of_made(void);
static inline int peers(const struct communicator *c) { return c->remote ? c->remote_size : c->size; }
static inline int peer_world(const struct communicator *c, int rank) { return (c->remote ? c->remote : c->world)[rank]; }
int peer_rank(const struct communicator *c, int world);

/* ---- errors of arguments, which say why the call fails (arguments.c) ---- */

/* Of a communicator that is none, or of the wrong kind. */
int communicator_error(MPI_Comm handle);
int group_error(MPI_Group handle);
/* Of a rank that a communicator does not have. */
int rank_error(const struct communicator *c, const char *name, int rank);
int root_error(const struct communicator *c, int root);
int count_error(const char *name, int count);
/* Checks the arguments of a message; returns the error. */
int data_error(const void *buffer, int count, MPI_Datatype type);
int message_error(const struct communicator *c, const void *buffer, int count, MPI_Datatype type, int peer, int tag, bool is_receive);

/* ---- requests (requests.c) ---- */

struct collective;

enum request_kind { REQUEST_NONE, REQUEST_SEND, REQUEST_RECEIVE, REQUEST_COLLECTIVE, REQUEST_FILE };

struct request {
  enum request_kind kind;
  bool is_active, is_persistent, is_freed, is_done;
  MPI_Request handle;
  struct communicator *communicator;
  /* of a receive: where its data go; of a persistent send: where they are */
  void *buffer;
  /* of an access to a file: its bytes */
  uint64_t count;
  MPI_Datatype type;
  int peer, tag;
  enum mode mode;
  struct collective *collective;
  struct call made_by;
  /* since a test has found it incomplete */
  struct quiet quiet;
  /* hash of its buffer when it was posted, if that is watched */
  bool is_watched;
  uint64_t contents;
};

uint32_t new_request(enum request_kind kind, struct communicator *communicator, MPI_Request *handle);
struct request *request_at(uint32_t index);
/* Returns the number of a request of ours, NONE for others. */
uint32_t request_index(MPI_Request handle);
/* Notes the contents of the buffer of a message that has been posted, where that is asked for. */
void watch_buffer(uint32_t index, const void *buffer, uint64_t count, MPI_Datatype type);
/* Returns whether data of two messages lie in the same place, as far as that is certain: data of types with gaps may lie between each other. */
bool share_memory(const void *one, uint64_t one_count, MPI_Datatype one_type, const void *other, uint64_t other_count, MPI_Datatype other_type);
/* Returns a hash of data. */
uint64_t contents_of(const void *buffer, uint64_t count, MPI_Datatype type);
/* Frees the number of a request that is complete. */
void release_request(uint32_t index);
void warn_of_requests(void);
void set_status(MPI_Status *status, int source, int tag, int error, uint64_t bytes, bool is_cancelled);
/* The status of no message. */
void empty_status(MPI_Status *status);
/* Takes the data of a message that a call has received; returns the error. */
int take_message(struct communicator *c, const struct completion *from, void *buffer, uint64_t count, MPI_Datatype type, MPI_Status *status,
                 struct call by);

/* ---- collective operations (collectives.c) ---- */

/* Exchanges a value of each member of a communicator, in the time of an operation with `time_bytes` of each; returns the table. */
struct table *exchange(struct communicator *c, enum collective_kind kind, const void *value, uint64_t bytes, uint64_t time_bytes);
void *contribution(struct table *table, int member);
void release(struct table *table);
int finish_collective(struct collective *collective, uint64_t table);
/* Returns whether the program has changed what a nonblocking operation sends, where that is watched. */
bool has_changed(const struct collective *collective);

/* ---- communicators (communicators.c) ---- */

/* Makes a communicator of these ranks of the world; the handle is null on others. `kind` tells apart calls that members may make in different
   orders. */
struct communicator *make_communicator(struct communicator *parent, uint32_t kind, int size, const int *world, MPI_Comm *handle);

/* Makes a communicator of the same members, in no time. */
struct communicator *copy_communicator(struct communicator *parent, MPI_Comm handle);

/* ---- topologies (topologies.c) ---- */

void free_topology(struct topology *topology);
struct topology *copy_topology(const struct topology *topology);

/* From whom a member receives and to whom it sends, in the order of their buffers; MPI_PROC_NULL beyond the end of a grid. */
struct neighbors {
  int in, out;
  int *sources, *destinations;
  bool is_grid;
};

/* Returns false for a communicator without a topology. */
bool neighbors_of(const struct communicator *communicator, struct neighbors *neighbors);

#endif
