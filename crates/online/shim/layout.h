/* The memory that the simulator and the ranks of a program share; src/layout.rs has the same structures.

   | part | number |
   |---|---|
   | header | one |
   | slot | one per rank |
   | arena | one per rank, then that of the simulator |

   A rank and the simulator take turns on a slot: whoever has the turn owns all of it. A rank ends its turn with operations; only the
   last one of them waits for an answer. The simulator may read those that are posted, and what the rank has computed since, while the rank
   has the turn. Offsets count from the begin of the memory; 0 is none. */
#ifndef PDES_ONLINE_LAYOUT_H
#define PDES_ONLINE_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_VERSION 8
#define PAGE 4096
#define OPERATIONS 256
#define REQUESTS (1 << 18)
#define NONE UINT32_MAX
#define APART UINT32_MAX
/* any source, any tag */
#define ANY (-1)

enum turn { TURN_RANK, TURN_SIMULATOR, TURN_OVER };
enum computation { COMPUTATION_NONE, COMPUTATION_MEASURED, COMPUTATION_INSTRUCTIONS, COMPUTATION_FIXED };
enum clocks { CLOCK_WTIME, CLOCK_ALL };
/* Flag of a test that was not asked, because it fails. */
enum { UNASKED = 1 };

/* States of a rank whose last call has not ended in simulated time: it has gone on, and it waits for the clock. */
enum { AHEAD = 1, CLOCK_AWAITED = 2 };
enum mode { MODE_STANDARD, MODE_SYNCHRONOUS, MODE_BUFFERED, MODE_READY };

enum operation_kind {
  OP_INIT,
  OP_SEND,
  OP_ISEND,
  OP_RECV,
  OP_IRECV,
  OP_SENDRECV,
  OP_SEND_INIT,
  OP_RECV_INIT,
  OP_START,
  OP_FREE,
  OP_WAITALL,
  OP_WAITANY,
  OP_WAITSOME,
  OP_TESTALL,
  OP_TESTANY,
  OP_TESTSOME,
  OP_GET_STATUS,
  OP_PROBE,
  OP_IPROBE,
  OP_CANCEL,
  OP_COLLECTIVE,
  OP_JOIN,
  OP_CLOCK,
  OP_SLEEP,
  /* a region begins, ends, or is gone on with: its path, a text */
  OP_REGION,
  OP_SYNC,
  OP_FINALIZE,
  OP_ABORT,
  OP_OMIT,
  /* a call on a window: its number in `flags`, the target in `peer`, the bytes of an access, and its request; a request of this library that
     later calls complete in `recv_count`; a group as ranks of the window */
  OP_WINDOW,
  OP_YIELD,
  /* a text of `count` bytes for the user, in the block, as an abort has it */
  OP_WARN,
  /* a sampled block, whose name is a text: how often it was executed in `bytes` and skipped in `source_bytes`, the work of its executions in
     `seconds`; `flags` if its samples are of all ranks */
  OP_SAMPLED,
  /* a call on a file: its kind in `flags`, the number of the file in `peer`; of an access the amount of data of the view before it in
     `source_bytes`, and its own amount in `bytes`; a file's name; of a view its displacement in `source_bytes`, its extent in `bytes`, and its
     blocks, begin and size of each. All but accesses take their time in the exchange that follows */
  OP_FILE
};

/* In the order of `CollectiveKind`. */
enum collective_kind {
  COLL_BARRIER,
  COLL_BCAST,
  COLL_REDUCE,
  COLL_ALLREDUCE,
  COLL_ALLTOALL,
  COLL_ALLTOALLV,
  COLL_GATHER,
  COLL_SCATTER,
  COLL_ALLGATHER,
  COLL_GATHERV,
  COLL_SCATTERV,
  COLL_ALLGATHERV,
  COLL_REDUCE_SCATTER,
  COLL_SCAN,
  COLL_EXSCAN,
  /* a vector of members and sizes to send to, then one to receive from */
  COLL_NEIGHBOR,
  /* makes a window of the communicator */
  COLL_WINDOW,
  /* in the time of the call on a file before it */
  COLL_FILE
};

/* Calls on files. */
enum file_call { FILE_OPEN, FILE_CLOSE, FILE_SYNC, FILE_VIEW, FILE_READ, FILE_WRITE };

/* Calls on windows, as `WindowCall` numbers them. */
enum window_call {
  WINDOW_PUT = 0,
  WINDOW_GET = 2,
  WINDOW_RGET = 3,
  WINDOW_ACCUMULATE = 4,
  WINDOW_GET_ACCUMULATE = 6,
  WINDOW_COMPARE_AND_SWAP = 9,
  WINDOW_FENCE = 10,
  WINDOW_POST,
  WINDOW_START,
  WINDOW_COMPLETE,
  WINDOW_LOCK,
  WINDOW_LOCK_EXCLUSIVE,
  WINDOW_UNLOCK,
  WINDOW_FLUSH,
  WINDOW_FLUSH_LOCAL,
  WINDOW_LOCK_ALL,
  WINDOW_UNLOCK_ALL,
  WINDOW_FLUSH_ALL,
  WINDOW_FLUSH_LOCAL_ALL,
  WINDOW_FREE,
  WINDOW_WAIT
};

/* What the time of a run leaves out. */
enum omission { OMITS_FILES, OMITS_SHARED_POINTERS };

struct header {
  uint32_t version, ranks;
  uint32_t computation, clocks;
  /* of each computation, if it is fixed [s] */
  double fixed_s;
  uint64_t bytes, slot, slot_bytes, arena, arena_bytes;
  /* the process that forks the ranks and waits for them */
  _Atomic int32_t zygote;
  /* one more than the rank that waits for a debugger, 0 for none */
  uint32_t debugged;
  /* files have devices, whose time accesses take */
  uint32_t has_storage;
  /* buffers of pending messages are checked */
  uint32_t checks_buffers;
  /* of the smallest allocation that is folded [B], 0 for none */
  uint64_t fold_bytes;
  /* part of the time since the first failed poll of a row, during which further ones are not asked */
  double poll_tolerance;
  /* one more than the core of ranks, which is that of the simulator; 0 for any, APART for one that the simulator chooses for each turn */
  _Atomic uint32_t core;
  /* polls that are not asked are posted, so that the simulator carries them out */
  uint32_t keeps_polls;
  /* number of turns that ranks have given back, modulo 2^32, and of threads that wait for the next one */
  _Atomic uint32_t bell, listeners;
};

struct operation {
  uint32_t kind, flags;
  /* ranks of the world, or a root: a rank of the communicator */
  int32_t peer, tag;
  /* of the receive in a combined send and receive */
  int32_t source, source_tag;
  uint32_t communicator, request;
  uint64_t bytes, source_bytes;
  /* payload, or contribution to a collective operation */
  uint64_t block;
  /* number of listed requests, of members of a communicator, of elements that are sent */
  uint64_t count;
  /* of a collective operation: elements that are received from each member; `bytes` and `source_bytes` are sizes of elements then */
  uint64_t recv_count;
  /* vectors of numbers: elements of each member */
  uint64_t vector;
  /* computation before the operation [s], or the length of a sleep */
  double computed, seconds;
  /* time of the polls before the operation that were not asked [s]; it comes after the computation */
  double polled;
  /* the call of the program: its return address, and its name */
  uint64_t site;
  char call[32];
};

/* The end of a request, a blocking receive or a probe. */
struct completion {
  uint32_t is_complete, is_receive;
  int32_t source, tag;
  uint64_t bytes, block;
};

struct slot {
  _Atomic uint32_t turn;
  uint32_t operations;
  /* simulated time [ps] */
  uint64_t clock;
  int32_t process;
  /* as waitpid reports it; valid once the process has ended */
  int32_t status;
  _Atomic uint32_t has_ended;
  uint32_t is_attached, is_finalized;
  /* outcome of a test or a nonblocking probe */
  uint32_t flag;
  /* after a test that has failed: when its requests may change [ps], unless the rank does more than to compute and test, and the time that a
     unit of computation takes until then [s] */
  uint64_t quiet_until;
  double quiet_unit_s;
  /* what the last poll took that has failed [s] */
  double poll_s;
  /* table of the last blocking collective operation */
  uint64_t table;
  /* of the last turn [s] */
  double turn_s;
  /* number of operations of this turn that wait for no answer and are complete; the simulator sets it to 0 */
  _Atomic uint32_t posted;
  /* changes with each call: odd in one, even where the program computes */
  _Atomic uint32_t calls;
  /* the thread that has left the last call, and one more than the core on which the simulator keeps it for this turn; 0 for any */
  int32_t thread;
  uint32_t core;
  /* a thread of the simulator sleeps until the turn ends */
  _Atomic uint32_t is_awaited;
  /* the last call has not ended in simulated time, so that the clock is not known */
  _Atomic uint32_t is_ahead;
  /* until the end of the last call, the computation before the next operation, and the turn [s] */
  double computed, spent;
  struct completion received;
  /* the call in progress, and its return address */
  char call[40];
  uint64_t site;
  struct operation operation[OPERATIONS];
  uint32_t list[REQUESTS];
  struct completion completion[REQUESTS];
};

/* The sequence of the basic types of which elements consist, as signatures.c has it. */
struct signature {
  /* whether it is known, and the size of an element [B] */
  uint64_t is_known, bytes;
  /* number of its basic types, codes of the first ones, and the hash of all */
  uint64_t length, first, hash;
};

/* Before each payload in an arena. The owner of the arena uses a free block again. */
struct block {
  _Atomic uint32_t is_free;
  uint32_t size_class;
  uint64_t bytes;
  /* of the elements of a message or of a contribution */
  struct signature elements;
  /* the call that has packed them */
  uint64_t site;
};

/* Contributions of the members of a collective operation, and the result of a reduction for all of them, after those; the last one that has
   read them frees them all. */
struct table {
  _Atomic uint32_t readers;
  uint32_t size;
  _Atomic uint64_t block[];
};

_Static_assert(sizeof(struct header) == 112, "as in layout.rs");
_Static_assert(sizeof(struct operation) == 144, "as in layout.rs");
_Static_assert(sizeof(struct completion) == 32, "as in layout.rs");
_Static_assert(offsetof(struct slot, operation) == 200, "as in layout.rs");
_Static_assert(sizeof(struct block) == 64, "as in layout.rs");

#endif
