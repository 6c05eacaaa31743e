/* Blocks of the own arena: powers of two, of which those that have been freed are used again. */
#include "online.h"
#include <stdlib.h>
#include <string.h>

#define CLASSES 48
/* As many blocks are looked at before a new one is taken. */
#define LOOKED_AT 16

struct pool {
  uint64_t *blocks;
  uint32_t length, capacity, next;
};

static struct pool pools[CLASSES];
static uint64_t used;

struct block *block_at(uint64_t block) { return (struct block *)((char *)shared + block) - 1; }

void *payload(uint64_t block) { return (char *)shared + block; }
uint64_t payload_bytes(uint64_t block) { return block_at(block)->bytes; }
void free_block(uint64_t block) { atomic_store_explicit(&block_at(block)->is_free, 1, memory_order_release); }

static uint64_t take_free(struct pool *pool)
{
  for (uint32_t i = 0; i < LOOKED_AT && i < pool->length; i++) {
    pool->next = (pool->next + 1) % pool->length;
    uint64_t block = pool->blocks[pool->next];
    if (atomic_load_explicit(&block_at(block)->is_free, memory_order_acquire))
      return block;
  }
  return 0;
}

static uint64_t take_new(struct pool *pool, uint32_t size_class)
{
  uint64_t size = (uint64_t)1 << size_class;
  if (used + size > shared->arena_bytes)
    fail("its messages under way need more than the %llu bytes of an arena: receive them earlier, or take fewer ranks",
         (unsigned long long)shared->arena_bytes);
  uint64_t block = shared->arena + (uint64_t)world_rank * shared->arena_bytes + used + sizeof(struct block);
  used += size;
  if (pool->length == pool->capacity) {
    pool->capacity = pool->capacity ? 2 * pool->capacity : 16;
    pool->blocks = realloc(pool->blocks, pool->capacity * sizeof *pool->blocks);
  }
  pool->blocks[pool->length++] = block;
  block_at(block)->size_class = size_class;
  return block;
}

uint64_t new_block(uint64_t bytes)
{
  uint32_t size_class = 7;
  while (((uint64_t)1 << size_class) < bytes + sizeof(struct block))
    size_class++;
  struct pool *pool = &pools[size_class];
  uint64_t block = take_free(pool);
  if (!block)
    block = take_new(pool, size_class);
  block_at(block)->bytes = bytes;
  block_at(block)->elements = (struct signature){0};
  atomic_store_explicit(&block_at(block)->is_free, 0, memory_order_relaxed);
  return block;
}
