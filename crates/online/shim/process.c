/* Processes: the first one starts the real library, and forks one process for each rank, which returns to the program. */
#define _GNU_SOURCE
#include "online.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

struct header *shared;
struct slot *own;
int world_rank, world_size;

static void *library;
/* Threads that call MPI, one at a time, and the one that has initialised it. */
static _Thread_local bool is_rank_thread, is_main_thread;
static _Thread_local int depth;
/* The call in which a thread is, and the thread that is in one. */
static _Thread_local const char *own_call;
static _Atomic(const char **) caller;
static bool is_initialized, is_finalized;
static int thread_level = MPI_THREAD_SINGLE;
/* Work of this thread and ticks at the last reading. */
static _Thread_local double last_work;
static _Thread_local uint64_t last_ticks;
/* The computation since the last operation. */
static double computation;
/* Calls of this library by itself. */
static int nested;

void *real_function(const char *name)
{
  if (!library)
    library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) {
    fprintf(stderr, "pdes-replay online: the MPI library has no function %s\n", name);
    _exit(1);
  }
  return function;
}

bool is_of_program(void) { return depth == 0 && !nested; }

bool is_outside(void) { return own && is_rank_thread && depth == 0; }

void depth_down(void) { depth--, nested++; }
void depth_up(void) { depth++, nested--; }

/* ---- computation ---- */

/* The clock of the C library, which this library hides from programs: a system call for the time of a thread, none for the wall clock. */
static int (*clock_of_system)(clockid_t, struct timespec *);

static int compare_numbers(const void *left, const void *right)
{
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double read_clock(clockid_t clock)
{
  struct timespec t;
  clock_of_system(clock, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Counter of the instructions of this thread in user mode. */
static _Thread_local int counter = -1;

static void open_counter(void)
{
  struct perf_event_attr event = {
      .type = PERF_TYPE_HARDWARE, .size = sizeof event, .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1, .exclude_hv = 1};
  counter = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (counter < 0)
    fail("instructions are not counted here (%s): set online.computation = \"measured\"", strerror(errno));
}

/* Ticks of the wall clock. Clocks of the system wait for all accesses to memory in progress, which would count whole cache misses of each
   short computation, though really they overlap with calls: the counter of the processor does not. */
static uint64_t read_ticks(void)
{
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  return (uint64_t)(1e9 * read_clock(CLOCK_MONOTONIC));
#endif
}

/* An instant before the ranks, from which on ticks are compared with the clock of the system. */
static double origin_wall;
static uint64_t origin_ticks;
/* Length of a tick [s]. */
static double tick;

static void mark_origin(void)
{
  clock_of_system = (__typeof__(clock_of_system))dlsym(RTLD_NEXT, "clock_gettime");
  origin_wall = read_clock(CLOCK_MONOTONIC);
  origin_ticks = read_ticks();
}

static uint64_t turn_begin;

void begin_turn(void) { turn_begin = read_ticks(); }

void note_turn(void) { own->turn_s = (read_ticks() - turn_begin) * tick; }

/* Of so short a time between two readings the wall clock is as good as that of the thread, which takes ten times as long to read: it is too
   short for others to have run [s]. */
static const double SHORT = 2e-5;
/* What a reading takes, of a short time and of a long one. */
static double short_cost, long_cost;

/* Reads what the thread has done so far: seconds, or instructions. Returns what it has done since the last reading. */
static double read_work(void)
{
  double before = last_work, cost = short_cost;
  uint64_t instructions = 0, ticks;
  if (shared->computation == COMPUTATION_INSTRUCTIONS)
    last_work = read(counter, &instructions, sizeof instructions) == sizeof instructions ? (double)instructions : 0;
  else if (((ticks = read_ticks()) - last_ticks) * tick < SHORT) {
    last_work += (ticks - last_ticks) * tick;
    last_ticks = ticks;
  } else {
    last_work = read_clock(CLOCK_THREAD_CPUTIME_ID);
    last_ticks = read_ticks();
    cost = long_cost;
  }
  double since = last_work - before - cost;
  return since > 0 ? since : 0;
}

void has_waited(void) { last_ticks = 0; }

double take_computation(void)
{
  double taken = computation;
  computation = 0;
  return taken;
}

/* Readings of the clock in a row without computation. */
static int idle_readings;

static struct call in_progress;

struct call current_call(void) { return in_progress; }

static void begin_call(void) { atomic_fetch_or(&own->calls, 1); }

void name_call(const char *call, void *site)
{
  begin_call();
  in_progress = (struct call){call, site};
  strncpy(own->call, call, sizeof own->call - 1);
  own->site = (uint64_t)site;
  check_no_block();
}

bool is_counted(void) { return shared->computation == COMPUTATION_MEASURED || shared->computation == COMPUTATION_INSTRUCTIONS; }

void add_computation(double amount) { computation += amount; }

double pending_computation(void) { return computation; }

double count_computation(void)
{
  double since = is_counted() ? read_work() : 0;
  computation += since;
  return since;
}

void begin_computation(void)
{
  static _Thread_local int32_t thread;
  begin_call();
  own->call[0] = 0;
  if (is_counted())
    read_work();
  if (thread == 0)
    thread = (int32_t)syscall(SYS_gettid);
  own->thread = thread;
  own->computed = computation;
  own->spent = (read_ticks() - turn_begin) * tick;
  atomic_fetch_add(&own->calls, 1);
  atomic_store_explicit(&caller, NULL, memory_order_release);
}

bool is_call_of_rank(void)
{
  if (own && !is_rank_thread && is_initialized && !is_finalized) {
    is_rank_thread = true;
    if (shared->computation == COMPUTATION_INSTRUCTIONS)
      open_counter();
  }
  return is_outside();
}

bool is_call_elsewhere(void)
{
  const char **other = atomic_load_explicit(&caller, memory_order_acquire);
  return other && other != &own_call;
}

static bool is_soon_over(const char *call) { return strcmp(call, "MPI_Wtime") == 0 || strcmp(call, "sleep") == 0; }

/* Ends the process if another thread is in a call, but for one that is soon over. */
static void be_only_caller(const char *call)
{
  static const char **last;
  own_call = call;
  for (const char **other = NULL; !atomic_compare_exchange_weak(&caller, &other, &own_call) && other != &own_call; other = NULL)
    if (other && !is_soon_over(*other) && !is_soon_over(call)) {
      fprintf(stderr, "pdes-replay online: rank %d at %.9f s: threads are in %s and %s at the same time; there is at most MPI_THREAD_SERIALIZED\n",
              world_rank, now(), *other, call);
      _exit(1);
    }
  /* Other threads have waited meanwhile. */
  if (last != &own_call)
    last_ticks = 0;
  last = &own_call;
}

void enter(const char *call, void *site)
{
  depth++;
  if (nested)
    return;
  if (is_finalized) {
    char place[1000] = "";
    called_from(place, sizeof place, site);
    fprintf(stderr, "pdes-replay online: rank %d calls %s after MPI_Finalize%s\n", world_rank, call, place);
    _exit(1);
  }
  be_only_caller(call);
  begin_call();
  if (shared->computation == COMPUTATION_FIXED)
    add_computation(shared->fixed_s);
  else
    count_computation();
  idle_readings = 0;
  name_call(call, site);
}

int leave(MPI_Comm communicator, int error)
{
  if (error != MPI_SUCCESS)
    error = raise_error(communicator, error);
  depth--;
  if (nested)
    return error;
  begin_computation();
  return error;
}

/* Finds what a call adds to the computation between two calls, which is subtracted: the median of calls without any. */
static double cost_of_call(bool is_long)
{
  enum { CALLS = 201 };
  double cost[CALLS];
  for (int i = 0; i < CALLS; i++) {
    if (is_long)
      has_waited();
    begin_computation();
    if (is_long)
      has_waited();
    enter("", NULL);
    depth--;
    cost[i] = take_computation();
  }
  qsort(cost, CALLS, sizeof *cost, compare_numbers);
  return cost[CALLS / 2];
}

static void calibrate_clock(void)
{
  double of_short = cost_of_call(false), of_long = cost_of_call(true);
  short_cost = of_short;
  long_cost = of_long;
}

static void describe(char *text, size_t size, const char *format, va_list arguments)
{
  int length = snprintf(text, size, "pdes-replay online: rank %d at %.9f s", world_rank, own ? now() : 0.0);
  if (own && own->call[0])
    length += snprintf(text + length, size - length, " in %s", own->call);
  Dl_info info;
  if (own && own->site && dladdr((void *)own->site, &info) && info.dli_fname)
    length += snprintf(text + length, size - length, " (called from %s%s%s+%#tx)", info.dli_sname ? info.dli_sname : "",
                       info.dli_sname ? " of " : "", info.dli_fname, (char *)own->site - (char *)info.dli_fbase);
  length += snprintf(text + length, size - length, ": ");
  length += vsnprintf(text + length, size - length, format, arguments);
  snprintf(text + length, size - length, "\n");
}

static void end_program(int code, const char *why) __attribute__((noreturn));
static void end_program(int code, const char *why)
{
  fflush(NULL);
  uint64_t length = strlen(why), block = new_block(length);
  memcpy(payload(block), why, length);
  answer((struct operation){.kind = OP_ABORT, .peer = code, .block = block, .count = length});
  _exit(code);
}

void fail(const char *format, ...)
{
  char text[2000], why[1000];
  va_list arguments;
  va_start(arguments, format);
  describe(text, sizeof text, format, arguments);
  va_end(arguments);
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  fputs(text, stderr);
  end_program(1, why);
}

int called_from(char *text, size_t size, const void *site)
{
  Dl_info info;
  bool is_known = dladdr(site, &info) && info.dli_fname;
  return is_known ? snprintf(text, size, ", called from %s+%#tx", info.dli_fname, (const char *)site - (char *)info.dli_fbase) : 0;
}

void warn(struct call call, const char *format, ...)
{
  enum { LONGEST = 1000 };
  uint64_t block = new_block(LONGEST);
  char *text = payload(block);
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, LONGEST / 2, format, arguments);
  va_end(arguments);
  length = length < LONGEST / 2 ? length : LONGEST / 2 - 1;
  length += called_from(text + length, LONGEST - length, call.site);
  post((struct operation){.kind = OP_WARN, .block = block, .count = length < LONGEST ? length : LONGEST - 1});
}

void warn_of(const char *what, uint32_t number, struct call first)
{
  if (number > 0)
    warn(first, "%u %s, the first one of %s", number, what, first.name);
}

/* Why the call in progress fails. */
static char reason[300];

int explained_error(int error, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  return error;
}

int raise_error(MPI_Comm communicator, int error)
{
  MPI_Errhandler handler;
  MPI_Comm with_handler = communicator_of(communicator) ? communicator : MPI_COMM_WORLD;
  REAL(Comm_get_errhandler)(with_handler, &handler);
  if (handler == MPI_ERRORS_ARE_FATAL) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    REAL(Error_string)(error, text, &length);
    fail("%s%s%s", text, *reason ? ": " : "", reason);
  }
  *reason = 0;
  bool returns = handler == MPI_ERRORS_RETURN;
  REAL(Errhandler_free)(&handler);
  if (returns)
    return error;
  /* The handler of the program may call MPI. */
  int kept = depth;
  depth = 0;
  REAL(Comm_call_errhandler)(with_handler, error);
  depth = kept;
  return error;
}

int raise_in(struct call by, MPI_Comm communicator, int error)
{
  bool is_inner = own->call[0] != 0;
  if (!is_inner) {
    strncpy(own->call, by.name, sizeof own->call - 1);
    own->site = (uint64_t)by.site;
  }
  error = raise_error(communicator, error);
  if (!is_inner)
    own->call[0] = 0;
  return error;
}

/* ---- start ---- */

static bool map_memory(const char *descriptor)
{
  int file = atoi(descriptor);
  struct header *header = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
  if (header == MAP_FAILED || header->version != LAYOUT_VERSION)
    return false;
  uint64_t bytes = header->bytes;
  munmap(header, PAGE);
  shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return shared != MAP_FAILED;
}

static void set_default(const char *name, const char *value) { setenv(name, value, 0); }

/* Starts the real library for this process alone: without daemons, sockets and files. */
static void start_library(void)
{
  set_default("OMPI_MCA_ess_singleton_isolated", "1");
  set_default("OMPI_MCA_btl", "self");
  set_default("OMPI_MCA_pml", "ob1");
  set_default("OMPI_MCA_coll", "self,basic,libnbc");
  set_default("OMPI_MCA_osc", "pt2pt");
  set_default("OMPI_MCA_io", "ompio");
  set_default("OMPI_MCA_sharedfp", "^sm");
  set_default("OMPI_MCA_orte_create_session_dirs", "0");
  set_default("OMPI_MCA_btl_base_warn_component_unused", "0");
  set_default("HWLOC_PLUGINS_PATH", "/nonexistent");
  REAL(Init)(NULL, NULL);
  REAL(Comm_set_errhandler)(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Takes this library out of the variable, so that programs which the rank starts are none. */
static void forget_preload(void)
{
  const char *rest = getenv("PDES_ONLINE_PRELOAD");
  if (rest && *rest)
    setenv("LD_PRELOAD", rest, 1);
  else
    unsetenv("LD_PRELOAD");
  unsetenv("PDES_ONLINE_PRELOAD");
  unsetenv("PDES_ONLINE_MEMORY");
}

/* A process that a rank forks is none. */
static void forget_rank(void) { own = NULL; }

/* Sets the variables by which mpirun tells processes their ranks, also before MPI_Init: each rank has a host of its own. */
static void tell_rank(void)
{
#if FOR_MPICH
  const struct { const char *name; int value; } variables[] = {
      {"PMI_RANK", world_rank}, {"PMI_SIZE", world_size}, {"MPI_LOCALRANKID", 0}, {"MPI_LOCALNRANKS", 1}};
#else
  const struct { const char *name; int value; } variables[] = {
      {"OMPI_COMM_WORLD_RANK", world_rank}, {"OMPI_COMM_WORLD_SIZE", world_size}, {"OMPI_COMM_WORLD_LOCAL_RANK", 0},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", 1}, {"OMPI_COMM_WORLD_NODE_RANK", 0}, {"OMPI_UNIVERSE_SIZE", world_size}};
#endif
  char text[16];
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    snprintf(text, sizeof text, "%d", variables[i].value);
    setenv(variables[i].name, text, 1);
  }
#if !FOR_MPICH
  snprintf(text, sizeof text, "%d", world_size);
  REAL(Info_set)(MPI_INFO_ENV, "maxprocs", text);
#endif
}

static void become_rank(int rank, pid_t parent)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  world_rank = rank;
  own = slot_of(rank);
  own->process = (int32_t)getpid();
  tell_rank();
  if (rank > 0) {
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    close(nothing);
  }
  pthread_atfork(leave_core, NULL, forget_rank);
}

static void end_rank(pid_t process, int status)
{
  for (int rank = 0; rank < world_size; rank++) {
    struct slot *slot = slot_of(rank);
    if (slot->process != process)
      continue;
    slot->status = status;
    atomic_store_explicit(&slot->has_ended, 1, memory_order_release);
    hand_over(slot, TURN_OVER);
  }
}

static void wait_for_ranks(void)
{
  int status, code = 0;
  for (pid_t process; (process = waitpid(-1, &status, 0)) > 0 || errno == EINTR;) {
    end_rank(process, status);
    if (code == 0)
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  _exit(code);
}

/* Forks the ranks: each of them returns from here, this process never does. */
static void fork_ranks(void)
{
  pid_t parent = getpid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int32_t nobody = 0;
  if (!atomic_compare_exchange_strong(&shared->zygote, &nobody, (int32_t)parent)) {
    fputs("pdes-replay online: the command starts a second MPI program; run each of them by a command of its own\n", stderr);
    _exit(1);
  }
  init_samples();
  if (init_folding)
    init_folding();
  for (int rank = 0; rank < world_size; rank++) {
    pid_t child = fork();
    if (child == 0) {
      become_rank(rank, parent);
      return;
    }
    if (child < 0) {
      fprintf(stderr, "pdes-replay online: rank %d: fork: %s; raise the limit of processes (ulimit -u), or take fewer ranks\n", rank, strerror(errno));
      _exit(1);
    }
    slot_of(rank)->process = child;
  }
  wait_for_ranks();
}

void start_ranks(void)
{
  if (!shared || own)
    return;
  world_size = (int)shared->ranks;
  mark_origin();
  start_library();
  forget_preload();
  fork_ranks();
  init_handles();
}

__attribute__((constructor)) static void start(void)
{
  const char *descriptor = getenv("PDES_ONLINE_MEMORY");
  if (!descriptor || !map_memory(descriptor))
    return;
  /* Not in a shell that starts the program, nor before a library loads the MPI library later. */
  library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
  if (library)
    start_ranks();
}

/* Stops the rank that is to be debugged, until a debugger or a signal lets it go on. */
static void await_debugger(void)
{
  if (shared->debugged != (uint32_t)world_rank + 1)
    return;
  fprintf(stderr, "pdes-replay online: rank %d waits for a debugger: gdb -p %d, and continue there\n", world_rank, (int)getpid());
  raise(SIGSTOP);
}

/* ---- the functions of MPI ---- */

INTERPOSE(Init_thread)
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
  start_ranks();
  if (!own)
    return REAL(Init_thread)(argc, argv, required, provided);
  is_rank_thread = is_main_thread = true;
  thread_level = required < MPI_THREAD_SERIALIZED ? required : MPI_THREAD_SERIALIZED;
  if (provided)
    *provided = thread_level;
  if (is_initialized)
    fail("MPI is initialized a second time");
  is_initialized = true;
  own->is_attached = 1;
  depth++;
  answer((struct operation){.kind = OP_INIT});
  await_debugger();
  if (shared->computation == COMPUTATION_INSTRUCTIONS)
    open_counter();
  tick = (read_clock(CLOCK_MONOTONIC) - origin_wall) / (read_ticks() - origin_ticks);
  if (is_counted())
    calibrate_clock();
  begin_computation();
  depth--;
  return MPI_SUCCESS;
}

INTERPOSE(Init)
int MPI_Init(int *argc, char ***argv)
{
  int provided;
  return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

/* Attributes of MPI_COMM_SELF are deleted at the end, the last one first. */
enum { MOST_ATTRIBUTES = 1000 };
static int self_keys[MOST_ATTRIBUTES], self_keys_length;

static void forget_key(int key)
{
  for (int i = 0; i < self_keys_length; i++)
    if (self_keys[i] == key) {
      memmove(self_keys + i, self_keys + i + 1, (--self_keys_length - i) * sizeof *self_keys);
      return;
    }
}

INTERPOSE(Comm_set_attr)
int MPI_Comm_set_attr(MPI_Comm handle, int key, void *value)
{
  int error = REAL(Comm_set_attr)(handle, key, value);
  if (is_outside() && handle == MPI_COMM_SELF && error == MPI_SUCCESS && self_keys_length < MOST_ATTRIBUTES) {
    forget_key(key);
    self_keys[self_keys_length++] = key;
  }
  return error;
}

INTERPOSE(Attr_put)
int MPI_Attr_put(MPI_Comm handle, int key, void *value) { return MPI_Comm_set_attr(handle, key, value); }

INTERPOSE(Comm_delete_attr)
int MPI_Comm_delete_attr(MPI_Comm handle, int key)
{
  if (handle == MPI_COMM_SELF)
    forget_key(key);
  return REAL(Comm_delete_attr)(handle, key);
}

INTERPOSE(Attr_delete)
int MPI_Attr_delete(MPI_Comm handle, int key) { return MPI_Comm_delete_attr(handle, key); }

INTERPOSE(Finalize)
int MPI_Finalize(void)
{
  CALL(Finalize)
  depth--;
  while (self_keys_length > 0)
    REAL(Comm_delete_attr)(MPI_COMM_SELF, self_keys[--self_keys_length]);
  depth++;
  warn_of_requests();
  warn_of_communicators();
  warn_of_made();
  report_samples();
  if (warn_of_folding)
    warn_of_folding();
  answer((struct operation){.kind = OP_FINALIZE});
  leave_core();
  own->is_finalized = 1;
  is_finalized = true;
  fflush(stdout);
  return leave(MPI_COMM_WORLD, MPI_SUCCESS);
}

INTERPOSE(Abort)
int MPI_Abort(MPI_Comm handle, int code)
{
  if (!own)
    return REAL(Abort)(handle, code);
  enter("MPI_Abort", __builtin_return_address(0));
  fprintf(stderr, "pdes-replay online: rank %d at %.9f s called MPI_Abort(%d)\n", world_rank, now(), code);
  end_program(code, "it called MPI_Abort");
}

INTERPOSE(Initialized)
int MPI_Initialized(int *flag)
{
  if (!own)
    return REAL(Initialized)(flag);
  *flag = is_initialized;
  return MPI_SUCCESS;
}

INTERPOSE(Finalized)
int MPI_Finalized(int *flag)
{
  if (!own)
    return REAL(Finalized)(flag);
  *flag = is_finalized;
  return MPI_SUCCESS;
}

INTERPOSE(Query_thread)
int MPI_Query_thread(int *provided)
{
  if (!own)
    return REAL(Query_thread)(provided);
  *provided = thread_level;
  return MPI_SUCCESS;
}

INTERPOSE(Is_thread_main)
int MPI_Is_thread_main(int *flag)
{
  if (!own)
    return REAL(Is_thread_main)(flag);
  *flag = is_main_thread;
  return MPI_SUCCESS;
}

INTERPOSE(Get_processor_name)
int MPI_Get_processor_name(char *name, int *length)
{
  LOCAL(Get_processor_name, name, length)
  *length = sprintf(name, "host-of-rank-%d", world_rank);
  return MPI_SUCCESS;
}

/* What the real library says of the number of processes is about this one alone. */
static int universe_size, time_is_global = 1;

INTERPOSE(Comm_get_attr)
int MPI_Comm_get_attr(MPI_Comm handle, int key, void *value, int *flag)
{
  LOCAL(Comm_get_attr, handle, key, value, flag)
  int error = REAL(Comm_get_attr)(handle, key, value, flag);
  if (error != MPI_SUCCESS)
    return error;
  universe_size = world_size;
  if (key == MPI_UNIVERSE_SIZE)
    *(int **)value = &universe_size, *flag = 1;
  if (key == MPI_WTIME_IS_GLOBAL)
    *(int **)value = &time_is_global, *flag = 1;
  return MPI_SUCCESS;
}

INTERPOSE(Attr_get)
int MPI_Attr_get(MPI_Comm handle, int key, void *value, int *flag) { return MPI_Comm_get_attr(handle, key, value, flag); }

/* Once a loop has read the clock so often in a row, each reading takes a step, which doubles: where no time passes, a loop that waits for an
   instant would never end, and elsewhere a second would take it millions of turns. Programs that time short pieces read a clock that moves, and
   are told. */
enum { FREE_READINGS = 1000, FREE_MOVING_READINGS = 1000000, MOST_DOUBLINGS = 10, LATE_READING = 10 };
static const double FIRST_STEP = 1e-7, IDLE = 1e-6;

INTERPOSE(Wtime)
double MPI_Wtime(void)
{
  static double last_reading;
  if (!is_outside() || is_call_elsewhere() || is_finalized)
    return own ? now() : REAL(Wtime)();
  int readings = idle_readings;
  enter("MPI_Wtime", __builtin_return_address(0));
  if (own->operations || computation > 0)
    answer((struct operation){.kind = OP_CLOCK});
  /* Some readings of such a loop are late for no reason of its own. */
  idle_readings = now() - last_reading < IDLE ? readings + 1 : readings > LATE_READING ? readings - LATE_READING : 0;
  bool is_moving = shared->computation != COMPUTATION_NONE;
  int steps = idle_readings - (is_moving ? FREE_MOVING_READINGS : FREE_READINGS);
  if (steps == 1 && is_moving)
    warn(current_call(), "the clock is read %d times in a row, less than 1 us apart: from %.6f s on each reading takes up to 0.1 ms", FREE_MOVING_READINGS,
         now());
  if (steps > 0)
    answer((struct operation){.kind = OP_SLEEP, .seconds = FIRST_STEP * (1 << (steps < MOST_DOUBLINGS ? steps : MOST_DOUBLINGS))});
  last_reading = now();
  leave(MPI_COMM_WORLD, MPI_SUCCESS);
  return last_reading;
}

INTERPOSE(Wtick)
double MPI_Wtick(void) { return own ? 1e-12 : REAL(Wtick)(); }
