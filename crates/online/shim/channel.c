/* The channel to the simulator: the own slot, whose turn goes back and forth. */
#define _GNU_SOURCE
#include "online.h"
#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct slot *slot_of(int rank)
{
  return (struct slot *)((char *)shared + shared->slot + (uint64_t)rank * shared->slot_bytes);
}

/* Tells the simulator that ranks may have a turn. */
static void ring(void)
{
  atomic_fetch_add(&shared->bell, 1);
  if (atomic_load(&shared->listeners) > 0)
    syscall(SYS_futex, &shared->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void hand_over(struct slot *slot, uint32_t owner)
{
  atomic_store(&slot->turn, owner);
  ring();
  if (atomic_load(&slot->is_awaited))
    syscall(SYS_futex, &slot->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* One more than the core on which this thread is kept, 0 for none, and those on which it ran. */
static uint32_t kept_on;
static pid_t thread;
static cpu_set_t cores;

void leave_core(void)
{
  if (kept_on != 0)
    syscall(SYS_sched_setaffinity, thread, sizeof cores, &cores);
  kept_on = 0;
}

/* Keeps this thread on the core of the simulator, if that has one, for all its calls: a wake-up of another core takes several times as long as
   a change of processes, and one rank runs at a time then. */
static void stay_on_core(void)
{
  uint32_t core = atomic_load_explicit(&shared->core, memory_order_relaxed);
  if (core == kept_on && core != 0)
    return;
  leave_core();
  thread = (pid_t)syscall(SYS_gettid);
  if (syscall(SYS_sched_getaffinity, 0, sizeof cores, &cores) <= 0 || core == 0 || core == APART)
    return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core - 1, &only);
  if (syscall(SYS_sched_setaffinity, 0, sizeof only, &only) == 0)
    kept_on = core;
}

/* The program sees all cores, and its other threads and processes begin on them: it leaves the core before it asks for any, until its next
   call. The C library starts the processes of these functions without handlers of forks. */
#define ON_ALL_CORES(type, name, types, ...)                                                                                             \
  type name types                                                                                                                        \
  {                                                                                                                                      \
    leave_core();                                                                                                                        \
    return ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__);                                                                    \
  }

ON_ALL_CORES(int, sched_getaffinity, (pid_t process, size_t size, cpu_set_t *set), process, size, set)
ON_ALL_CORES(int, sched_setaffinity, (pid_t process, size_t size, const cpu_set_t *set), process, size, set)
ON_ALL_CORES(int, pthread_getaffinity_np, (pthread_t of, size_t size, cpu_set_t *set), of, size, set)
ON_ALL_CORES(int, pthread_setaffinity_np, (pthread_t of, size_t size, const cpu_set_t *set), of, size, set)
ON_ALL_CORES(int, system, (const char *line), line)
ON_ALL_CORES(FILE *, popen, (const char *line, const char *mode), line, mode)
ON_ALL_CORES(int, pthread_create, (pthread_t *made, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument), made, attributes,
             begin, argument)
#define SPAWN_TYPES                                                                                                                      \
  (pid_t * made, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes, char *const *arguments, \
   char *const *variables)
ON_ALL_CORES(int, posix_spawn, SPAWN_TYPES, made, file, actions, attributes, arguments, variables)
ON_ALL_CORES(int, posix_spawnp, SPAWN_TYPES, made, file, actions, attributes, arguments, variables)

/* No function that calls the real one can return in its place; programs may not rely on more than a fork. */
pid_t vfork(void) { return fork(); }

/* Computation before operations that were posted since the last turn. */
static double posted_computation;
/* Time of polls that were not asked: of those posted since the last turn, and of those that the next operation has to tell [s]. */
static double posted_polls, untold_polls;

static void end_turn(void)
{
  stay_on_core();
  note_turn();
  hand_over(own, TURN_SIMULATOR);
  while (atomic_load_explicit(&own->turn, memory_order_acquire) != TURN_RANK)
    syscall(SYS_futex, &own->turn, FUTEX_WAIT, TURN_SIMULATOR, NULL, NULL, 0);
  if (own->core != 0)
    kept_on = own->core;
  begin_turn();
  own->operations = 0;
  posted_computation = posted_polls = 0;
  has_waited();
}

/* The computation before the next operation [s]. */
extern double take_computation(void);

static void append(struct operation operation)
{
  struct call by = current_call();
  operation.computed = take_computation();
  operation.polled = untold_polls;
  posted_computation += operation.computed;
  posted_polls += untold_polls;
  untold_polls = 0;
  operation.site = (uint64_t)by.site;
  if (by.name)
    strncpy(operation.call, by.name, sizeof operation.call - 1);
  own->operation[own->operations++] = operation;
}

static bool is_poll(uint32_t kind)
{
  return kind == OP_TESTALL || kind == OP_TESTANY || kind == OP_TESTSOME || kind == OP_GET_STATUS || kind == OP_IPROBE || kind == OP_SYNC ||
         kind == OP_CLOCK;
}

/* Number of the row of tests and computations in which nothing else was done: others act sooner only if this rank does something. */
static uint64_t quiet_row;

void post(struct operation operation)
{
  quiet_row += operation.flags != UNASKED || !is_poll(operation.kind);
  append(operation);
  atomic_store_explicit(&own->posted, own->operations, memory_order_release);
  if (own->operations == OPERATIONS - 1)
    answer((struct operation){.kind = OP_SYNC});
}

/* ---- polls ---- */

/* A row of failed polls: since when, and the time of the next one that is asked. */
static bool is_in_row;
static double row_begin, next_ask;
static const double LONGEST = 1e-3;
/* More than the rounding of the times of a row [s]. */
static const double MARGIN = 1e-9;

/* Simulated time after what has been computed, if this machine is as fast as the simulated one [s]. */
static double present(void) { return now() + posted_computation + pending_computation() + posted_polls + untold_polls; }

bool fails_unasked(void)
{
  /* While the clock stands, polls are asked: only an answer moves it. */
  bool fails = is_in_row && pending_computation() > 0 && present() + MARGIN < next_ask;
  if (fails)
    untold_polls += own->poll_s;
  return fails;
}

void fail_unasked(struct operation test, double seconds)
{
  note_poll(false);
  if (!shared->keeps_polls)
    untold_polls += seconds;
  else {
    test.flags = UNASKED;
    posted_polls += seconds;
    post(test);
  }
}

void note_poll(bool has_succeeded)
{
  double since = is_in_row ? present() - row_begin : 0, delay = since * shared->poll_tolerance;
  if (!is_in_row)
    row_begin = present();
  is_in_row = !has_succeeded;
  next_ask = present() + (delay < LONGEST ? delay : LONGEST);
}

void answer(struct operation operation)
{
  is_in_row &= is_poll(operation.kind);
  quiet_row += !is_poll(operation.kind);
  append(operation);
  end_turn();
}

struct quiet quiet_now(void) { return (struct quiet){quiet_row, own->quiet_until * 1e-12 - MARGIN, own->poll_s}; }

bool is_quiet(struct quiet quiet)
{
  /* While the clock stands, polls are asked: only an answer moves it. */
  double computed = pending_computation();
  double polled = posted_polls + untold_polls + quiet.poll_s;
  return computed > 0 && quiet.row == quiet_row &&
         now() + (posted_computation + computed) * own->quiet_unit_s + polled < quiet.until;
}

double now(void)
{
  uint32_t ahead = AHEAD;
  while (atomic_compare_exchange_strong(&own->is_ahead, &ahead, CLOCK_AWAITED) || ahead == CLOCK_AWAITED) {
    ring();
    syscall(SYS_futex, &own->is_ahead, FUTEX_WAIT, CLOCK_AWAITED, NULL, NULL, 0);
    has_waited();
    ahead = AHEAD;
  }
  return own->clock * 1e-12;
}
