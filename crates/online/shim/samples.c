/* Sampled blocks, which a program marks by include/pdes_sample.h: once its mean time is known, a block takes that time in place of being
   executed. */
#define _GNU_SOURCE
#include "online.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The work of a block, of one rank or of all: their number, mean, and squared deviations from it (Welford's algorithm). */
struct samples {
  _Atomic uint64_t name;
  _Atomic uint32_t is_locked;
  uint32_t number;
  double mean, squares;
};

/* A block of this rank. */
struct sampled {
  const char *file;
  int line;
  bool is_global;
  struct samples *samples;
  uint64_t executed, skipped;
  double work;
  struct sampled *next;
};

/* The samples of all ranks, by the hash of their block. */
enum { MOST_BLOCKS = 4096 };
static struct samples *of_all;
static struct sampled *blocks, *executed;

void init_samples(void)
{
  of_all = mmap(NULL, MOST_BLOCKS * sizeof *of_all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (of_all == MAP_FAILED)
    of_all = NULL;
}

void check_no_block(void)
{
  if (executed) {
    struct sampled *left = executed;
    executed = NULL;
    fail("it is called in the sampled block of %s:%d, which may be skipped: the block must not call MPI, contain another one, or be left by "
         "break, goto or return",
         left->file, left->line);
  }
}

/* Returns the samples of all ranks of a block. */
static struct samples *samples_of_all(const char *file, int line)
{
  uint64_t hash = 0xcbf29ce484222325 ^ (uint64_t)line;
  for (const char *c = file; *c; c++)
    hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
  hash += hash == 0;
  for (uint64_t i = 0; of_all && i < MOST_BLOCKS; i++) {
    struct samples *place = &of_all[(hash + i) % MOST_BLOCKS];
    uint64_t nothing = 0;
    if (atomic_compare_exchange_strong(&place->name, &nothing, hash) || nothing == hash)
      return place;
  }
  fail("there are more than %d sampled blocks of all ranks: sample them by PDES_SAMPLE_LOCAL", MOST_BLOCKS);
}

static struct sampled *block_of(bool is_global, const char *file, int line)
{
  for (struct sampled *b = blocks; b; b = b->next)
    if (b->line == line && b->is_global == is_global && (b->file == file || strcmp(b->file, file) == 0))
      return b;
  struct sampled *b = malloc(sizeof *b);
  /* The name of a Fortran program does not live as long. */
  *b = (struct sampled){.file = strdup(file), .line = line, .is_global = is_global, .next = blocks};
  b->samples = is_global ? samples_of_all(file, line) : calloc(1, sizeof *b->samples);
  return blocks = b;
}

static struct samples locked(struct samples *samples)
{
  while (atomic_exchange_explicit(&samples->is_locked, 1, memory_order_acquire))
    ;
  return *samples;
}

static void unlock(struct samples *samples) { atomic_store_explicit(&samples->is_locked, 0, memory_order_release); }

/* Returns whether a block is to be executed. Where work is not measured, each rank executes its part of the samples, which are of all ranks
   then, too: what it does must not depend on which rank is the first in real time. */
static bool is_needed(struct sampled *b, const struct samples *s, int samples, double precision)
{
  if (!is_counted())
    return b->executed < (uint64_t)(b->is_global ? (samples + world_size - 1) / world_size : samples);
  if (s->number >= (uint32_t)samples || s->number < 2 || precision <= 0)
    return s->number < (uint32_t)samples;
  double bound = precision * s->mean;
  return s->squares / (s->number - 1) / s->number >= bound * bound && bound > 0;
}

int pdes_online_sample_begin(int is_global, const char *file, int line, int samples, double precision)
{
  if (!is_outside() || own->is_finalized)
    return true;
  name_call(is_global ? "PDES_SAMPLE_GLOBAL" : "PDES_SAMPLE_LOCAL", __builtin_return_address(0));
  count_computation();
  if (samples < 1 || !(precision >= 0))
    fail("found %d samples and the precision %g, expected at least one sample and a precision from 0", samples, precision);
  struct sampled *b = block_of(is_global, file, line);
  struct samples so_far = locked(b->samples);
  unlock(b->samples);
  bool runs = is_needed(b, &so_far, samples, precision);
  if (runs)
    executed = b;
  else {
    b->skipped++;
    add_computation(so_far.mean);
  }
  begin_computation();
  return runs;
}

void pdes_online_sample_end(void)
{
  if (!is_outside() || !executed)
    return;
  struct sampled *b = executed;
  double work = count_computation();
  executed = NULL;
  b->executed++;
  b->work += work;
  locked(b->samples);
  struct samples *s = b->samples;
  double deviation = work - s->mean;
  s->mean += deviation / ++s->number;
  s->squares += deviation * (work - s->mean);
  unlock(s);
  begin_computation();
}

void report_samples(void)
{
  for (struct sampled *b = blocks; b; b = b->next) {
    enum { LONGEST = 1000 };
    uint64_t block = new_block(LONGEST);
    int length = snprintf(payload(block), LONGEST, b->line ? "%s:%d" : "%s", b->file, b->line);
    length = length < LONGEST ? length : LONGEST - 1;
    post((struct operation){.kind = OP_SAMPLED,
                            .flags = b->is_global,
                            .block = block,
                            .count = length,
                            .bytes = b->executed,
                            .source_bytes = b->skipped,
                            .seconds = b->work});
  }
}
