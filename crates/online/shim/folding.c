/* Folding of memory, where the configuration asks for it: the k-th large allocation of a rank is the same memory as that of each other rank.
   Caches see the working set of a rank, and its arrays stay apart; what the program computes means nothing. */
#define _GNU_SOURCE
#include "online.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* Allocations of a rank at once, and the part of the file that each of them has at most. */
enum { MOST_FOLDS = 4096 };
static const size_t LARGEST = (size_t)1 << 36;

/* An allocation: its own memory is that of its number. */
static struct fold {
  char *begin;
  size_t bytes;
} folds[MOST_FOLDS];

static int file = -1;
static uint32_t folded;
static _Atomic uint32_t live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void init_folding(void)
{
  file = memfd_create("pdes-replay-folded", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)(MOST_FOLDS * LARGEST)) != 0)
    file = -1;
}

void warn_of_folding(void)
{
  if (file < 0)
    warn((struct call){0}, "no memory is folded: the system has none that processes share");
  if (folded > 0)
    warn((struct call){0}, "%u allocation(s) of %llu B or more are the same memory as those of the other ranks, so that the results of the program mean nothing",
         folded, (unsigned long long)shared->fold_bytes);
}

/* Only what the program itself allocates, on the thread that calls MPI. */
static bool is_foldable(size_t bytes)
{
  return own && file >= 0 && bytes >= shared->fold_bytes && bytes <= LARGEST && is_of_program() && syscall(SYS_gettid) == getpid();
}

/* Returns the memory of the first number that the rank does not use; null if there is none. */
static void *fold(size_t bytes)
{
  void *memory = NULL;
  pthread_mutex_lock(&lock);
  for (size_t k = 0; k < MOST_FOLDS && !memory; k++)
    if (!folds[k].begin) {
      memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, (off_t)(k * LARGEST));
      if (memory == MAP_FAILED) {
        memory = NULL;
        break;
      }
      folds[k] = (struct fold){memory, bytes};
      folded++;
      live++;
    }
  pthread_mutex_unlock(&lock);
  return memory;
}

/* Returns the size of an allocation that is folded, 0 for others; frees it if asked to. */
static size_t folded_bytes(void *memory, bool frees)
{
  size_t bytes = 0;
  /* Those are whole pages. */
  if (live == 0 || (uintptr_t)memory % PAGE || !memory)
    return 0;
  pthread_mutex_lock(&lock);
  for (size_t k = 0; k < MOST_FOLDS; k++)
    if (folds[k].begin == memory) {
      bytes = folds[k].bytes;
      if (frees) {
        munmap(memory, bytes);
        folds[k] = (struct fold){0};
        live--;
      }
      break;
    }
  pthread_mutex_unlock(&lock);
  return bytes;
}

void *malloc(size_t bytes)
{
  void *memory = is_foldable(bytes) ? fold(bytes) : NULL;
  return memory ? memory : __libc_malloc(bytes);
}

void *calloc(size_t number, size_t size)
{
  size_t bytes;
  void *memory = !__builtin_mul_overflow(number, size, &bytes) && is_foldable(bytes) ? fold(bytes) : NULL;
  return memory ? memset(memory, 0, bytes) : __libc_calloc(number, size);
}

void free(void *memory)
{
  if (!folded_bytes(memory, true))
    __libc_free(memory);
}

void *realloc(void *memory, size_t bytes)
{
  size_t before = folded_bytes(memory, false);
  if (!before && (memory || !is_foldable(bytes)))
    return __libc_realloc(memory, bytes);
  void *larger = malloc(bytes);
  if (larger && before) {
    memcpy(larger, memory, before < bytes ? before : bytes);
    free(memory);
  }
  return larger;
}

void *memalign(size_t alignment, size_t bytes)
{
  void *memory = alignment <= PAGE && is_foldable(bytes) ? fold(bytes) : NULL;
  return memory ? memory : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
  if (alignment % sizeof(void *) || alignment & (alignment - 1) || alignment == 0)
    return EINVAL;
  void *found = memalign(alignment, bytes);
  if (!found)
    return ENOMEM;
  *memory = found;
  return 0;
}
