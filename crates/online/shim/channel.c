/* The channel to the simulator: the own slot, whose turn goes back and forth. */
#define _GNU_SOURCE
#include "online.h"
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct slot *slot_of(int rank)
{
  return (struct slot *)((char *)shared + shared->slot + (uint64_t)rank * shared->slot_bytes);
}

void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); }

static void end_turn(void)
{
  atomic_store_explicit(&own->turn, TURN_SIMULATOR, memory_order_release);
  futex_wake(&own->turn);
  while (atomic_load_explicit(&own->turn, memory_order_acquire) != TURN_RANK)
    syscall(SYS_futex, &own->turn, FUTEX_WAIT, TURN_SIMULATOR, NULL, NULL, 0);
  own->operations = 0;
}

/* The computation before the next operation [s]. */
extern double take_computation(void);

static void append(struct operation operation)
{
  struct call by = current_call();
  operation.computed = take_computation();
  operation.site = (uint64_t)by.site;
  if (by.name)
    strncpy(operation.call, by.name, sizeof operation.call - 1);
  own->operation[own->operations++] = operation;
}

void post(struct operation operation)
{
  append(operation);
  if (own->operations == OPERATIONS - 1)
    answer((struct operation){.kind = OP_SYNC});
}

void answer(struct operation operation)
{
  append(operation);
  end_turn();
}

double now(void) { return own->clock * 1e-12; }
