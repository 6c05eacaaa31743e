/* Clocks and sleeps of the C library in simulated time, where the configuration asks for it: on the thread that calls MPI, outside of it. */
#define _GNU_SOURCE
#include "online.h"
#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The date at which every run begins: 2000-01-01. */
#define ORIGIN 946684800

static bool is_simulated(void) { return is_outside() && shared->clocks == CLOCK_ALL && !own->is_finalized; }

static struct timespec simulated_time(void)
{
  double seconds = MPI_Wtime();
  time_t whole = (time_t)seconds;
  return (struct timespec){whole, (long)((seconds - whole) * 1e9)};
}

static int sleep_simulated(const struct timespec *length)
{
  if (length->tv_nsec < 0 || length->tv_nsec > 999999999 || length->tv_sec < 0) {
    errno = EINVAL;
    return -1;
  }
  enter("sleep", __builtin_return_address(0));
  post((struct operation){.kind = OP_SLEEP, .seconds = length->tv_sec + 1e-9 * length->tv_nsec});
  return leave(MPI_COMM_WORLD, MPI_SUCCESS);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
  bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME_COARSE ||
                 clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
  if (!is_wall || !is_simulated())
    return (int)syscall(SYS_clock_gettime, clock, time);
  *time = simulated_time();
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    time->tv_sec += ORIGIN;
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *result)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result)
    *result = now.tv_sec;
  return now.tv_sec;
}

int nanosleep(const struct timespec *length, struct timespec *rest)
{
  return is_simulated() && !is_call_elsewhere() ? sleep_simulated(length) : (int)syscall(SYS_nanosleep, length, rest);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *length, struct timespec *rest)
{
  if (!is_simulated() || is_call_elsewhere())
    return syscall(SYS_clock_nanosleep, clock, flags, length, rest) ? errno : 0;
  struct timespec left = *length;
  if (flags & TIMER_ABSTIME) {
    struct timespec now;
    clock_gettime(clock, &now);
    left = (struct timespec){length->tv_sec - now.tv_sec, length->tv_nsec - now.tv_nsec};
    if (left.tv_nsec < 0)
      left = (struct timespec){left.tv_sec - 1, left.tv_nsec + 1000000000};
    if (left.tv_sec < 0)
      return 0;
  }
  return sleep_simulated(&left) ? errno : 0;
}

int usleep(useconds_t length) { return nanosleep(&(struct timespec){length / 1000000, length % 1000000 * 1000}, NULL); }

unsigned sleep(unsigned length)
{
  nanosleep(&(struct timespec){length, 0}, NULL);
  return 0;
}
