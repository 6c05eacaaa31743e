/* The data of messages: packed and unpacked by the real library, which owns the datatypes. */
#include "online.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

MPI_Datatype keep_type(MPI_Datatype type)
{
  MPI_Datatype kept = type;
  if (type != MPI_DATATYPE_NULL && !is_predefined(type)) {
    REAL(Type_dup)(type, &kept);
    know_as(kept, type);
  }
  return kept;
}

void drop_type(MPI_Datatype type)
{
  if (type == MPI_DATATYPE_NULL || is_predefined(type))
    return;
  forget_type(type);
  REAL(Type_free)(&type);
}

/* ---- types that are to be freed ---- */

/* A function that makes a type, its last argument. */
#define MAKER(name, parameters, ...)                                                                                                     \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name parameters                                                                                                              \
  {                                                                                                                                      \
    LOCAL(name, __VA_ARGS__)                                                                                                             \
    int error = REAL(name)(__VA_ARGS__);                                                                                                 \
    if (error == MPI_SUCCESS)                                                                                                            \
      note_made(MADE_TYPE, KEY(*made), (struct call){"MPI_" #name, __builtin_return_address(0)});                                             \
    return error;                                                                                                                        \
  }

MAKER(Type_contiguous, (int n, MPI_Datatype old, MPI_Datatype *made), n, old, made)
MAKER(Type_vector, (int n, int length, int stride, MPI_Datatype old, MPI_Datatype *made), n, length, stride, old, made)
MAKER(Type_create_hvector, (int n, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *made), n, length, stride, old, made)
MAKER(Type_indexed, (int n, const int lengths[], const int at[], MPI_Datatype old, MPI_Datatype *made), n, lengths, at, old, made)
MAKER(Type_create_hindexed, (int n, const int lengths[], const MPI_Aint at[], MPI_Datatype old, MPI_Datatype *made), n, lengths, at, old, made)
MAKER(Type_create_indexed_block, (int n, int length, const int at[], MPI_Datatype old, MPI_Datatype *made), n, length, at, old, made)
MAKER(Type_create_hindexed_block, (int n, int length, const MPI_Aint at[], MPI_Datatype old, MPI_Datatype *made), n, length, at, old, made)
MAKER(Type_create_struct, (int n, const int lengths[], const MPI_Aint at[], const MPI_Datatype old[], MPI_Datatype *made), n, lengths, at, old, made)
MAKER(Type_create_resized, (MPI_Datatype old, MPI_Aint lower, MPI_Aint extent, MPI_Datatype *made), old, lower, extent, made)
MAKER(Type_dup, (MPI_Datatype old, MPI_Datatype *made), old, made)
MAKER(Type_create_subarray,
      (int n, const int sizes[], const int parts[], const int starts[], int order, MPI_Datatype old, MPI_Datatype *made),
      n, sizes, parts, starts, order, old, made)
MAKER(Type_create_darray,
      (int size, int rank, int n, const int sizes[], const int kinds[], const int arguments[], const int grid[], int order, MPI_Datatype old,
       MPI_Datatype *made),
      size, rank, n, sizes, kinds, arguments, grid, order, old, made)

INTERPOSE(Type_free)
int MPI_Type_free(MPI_Datatype *type)
{
  LOCAL(Type_free, type)
  note_freed(MADE_TYPE, KEY(*type));
  forget_type(*type);
  return REAL(Type_free)(type);
}

/* ---- packing ---- */

/* Predefined types without gaps are copied. */
static bool is_contiguous(MPI_Datatype type, MPI_Count size)
{
  MPI_Aint lower, extent;
  if (!is_predefined(type))
    return false;
  REAL(Type_get_extent)(type, &lower, &extent);
  return lower == 0 && extent == size;
}

static MPI_Count size_of(MPI_Datatype type)
{
  MPI_Count size;
  REAL(Type_size_x)(type, &size);
  return size;
}

uint64_t packed_size(uint64_t count, MPI_Datatype type) { return count ? count * (uint64_t)size_of(type) : 0; }

ptrdiff_t extent_of(MPI_Datatype type)
{
  MPI_Aint lower, extent;
  REAL(Type_get_extent)(type, &lower, &extent);
  return extent;
}

/* Returns how many elements fit into the numbers of MPI_Pack. */
static uint64_t elements_at_once(MPI_Count size)
{
  uint64_t most = size ? INT_MAX / size : INT_MAX;
  return most ? most : 1;
}

/* ---- elements that are too large for the numbers of MPI_Pack: part by part ---- */

/* Data in memory and packed ones, and how many bytes of these are left. */
struct movement {
  char *packed;
  uint64_t left;
  bool packs;
};

static void move(struct movement *m, char *data, uint64_t count, MPI_Datatype type)
{
  uint64_t all = packed_size(count, type), bytes = all < m->left ? all : m->left;
  if (m->packs)
    pack(data, count, type, m->packed);
  else
    unpack(m->packed, bytes, data, count, type);
  m->packed += bytes;
  m->left -= bytes;
}

/* Moves the parts of an element in the order of its type. */
static void move_parts(struct movement *m, char *data, int combiner, const int *n, const MPI_Aint *at, const MPI_Datatype *old)
{
  ptrdiff_t extent = extent_of(old[0]);
  switch (combiner) {
  case MPI_COMBINER_DUP:
  case MPI_COMBINER_RESIZED:
    move(m, data, 1, old[0]);
    return;
  case MPI_COMBINER_CONTIGUOUS:
    move(m, data, n[0], old[0]);
    return;
  case MPI_COMBINER_VECTOR:
  case MPI_COMBINER_HVECTOR:
    for (int i = 0; i < n[0]; i++)
      move(m, data + i * (combiner == MPI_COMBINER_VECTOR ? n[2] * extent : at[0]), n[1], old[0]);
    return;
  case MPI_COMBINER_INDEXED:
  case MPI_COMBINER_HINDEXED:
    for (int i = 0; i < n[0]; i++)
      move(m, data + (combiner == MPI_COMBINER_INDEXED ? n[1 + n[0] + i] * extent : at[i]), n[1 + i], old[0]);
    return;
  case MPI_COMBINER_INDEXED_BLOCK:
  case MPI_COMBINER_HINDEXED_BLOCK:
    for (int i = 0; i < n[0]; i++)
      move(m, data + (combiner == MPI_COMBINER_INDEXED_BLOCK ? n[2 + i] * extent : at[i]), n[1], old[0]);
    return;
  case MPI_COMBINER_STRUCT:
    for (int i = 0; i < n[0]; i++)
      move(m, data + at[i], n[1 + i], old[i]);
    return;
  default:
    fail("it has elements of more than 2 GiB of a type that is a subarray, a distributed array or one of Fortran: send them in parts");
  }
}

/* Moves elements, of which the last one may be packed in part only. */
static void move_large(struct movement m, char *data, uint64_t count, MPI_Datatype type)
{
  int integers, addresses, types, combiner;
  REAL(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
  int *numbers = malloc((integers + 1) * sizeof *numbers);
  MPI_Aint *places = malloc((addresses + 1) * sizeof *places);
  MPI_Datatype *old = malloc((types + 1) * sizeof *old);
  REAL(Type_get_contents)(type, integers, addresses, types, numbers, places, old);
  /* The program need not have committed them. */
  for (int i = 0; i < types; i++)
    REAL(Type_commit)(&old[i]);
  for (uint64_t i = 0; i < count && m.left > 0; i++)
    move_parts(&m, data + (ptrdiff_t)i * extent_of(type), combiner, numbers, places, old);
  for (int i = 0; i < types; i++)
    drop_type(old[i]);
  free(numbers);
  free(places);
  free(old);
}

/* Returns a type whose elements lie so much before an address as those of another one. */
static MPI_Datatype shifted(MPI_Datatype type, MPI_Aint before)
{
  MPI_Datatype result;
  REAL(Type_create_hindexed)(1, (int[]){1}, (MPI_Aint[]){-before}, type, &result);
  REAL(Type_commit)(&result);
  return result;
}

/* MPICH takes MPI_BOTTOM for no buffer: there, data are taken from this address, and the type has the rest. */
enum { NEAR_BOTTOM = FOR_MPICH ? 64 : 0 };

void pack(const void *from, uint64_t count, MPI_Datatype type, void *to)
{
  MPI_Count size = size_of(type);
  if (count == 0 || size == 0)
    return;
  if (NEAR_BOTTOM && !from) {
    MPI_Datatype near = shifted(type, NEAR_BOTTOM);
    pack((const char *)NEAR_BOTTOM, count, near, to);
    drop_type(near);
    return;
  }
  if (is_contiguous(type, size)) {
    memcpy(to, from, count * size);
    return;
  }
  if (size > INT_MAX) {
    move_large((struct movement){.packed = to, .left = count * size, .packs = true}, (char *)from, count, type);
    return;
  }
  for (uint64_t done = 0, most = elements_at_once(size); done < count; done += most) {
    int elements = (int)(count - done < most ? count - done : most), position = 0;
    REAL(Pack)((const char *)from + (ptrdiff_t)done * extent_of(type), elements, type, (char *)to + done * size, INT_MAX, &position, MPI_COMM_SELF);
  }
}

/* Unpacks a part of an element, which MPI allows at the end of a message: by the bytes of whole elements, completed from the buffer. */
static void unpack_part(const char *from, uint64_t bytes, char *to, MPI_Datatype type, MPI_Count size)
{
  char whole[size];
  int position = 0;
  REAL(Pack)(to, 1, type, whole, (int)size, &position, MPI_COMM_SELF);
  memcpy(whole, from, bytes);
  position = 0;
  REAL(Unpack)(whole, (int)size, &position, to, 1, type, MPI_COMM_SELF);
}

void unpack(const void *from, uint64_t bytes, void *to, uint64_t count, MPI_Datatype type)
{
  MPI_Count size = size_of(type);
  if (bytes == 0 || count == 0 || size == 0)
    return;
  if (NEAR_BOTTOM && !to) {
    MPI_Datatype near = shifted(type, NEAR_BOTTOM);
    unpack(from, bytes, (char *)NEAR_BOTTOM, count, near);
    drop_type(near);
    return;
  }
  if (is_contiguous(type, size)) {
    memcpy(to, from, bytes < count * size ? bytes : count * size);
    return;
  }
  if (size > INT_MAX) {
    move_large((struct movement){.packed = (char *)from, .left = bytes, .packs = false}, to, count, type);
    return;
  }
  uint64_t full = bytes / size < count ? bytes / size : count;
  for (uint64_t done = 0, most = elements_at_once(size); done < full; done += most) {
    int elements = (int)(full - done < most ? full - done : most), position = 0;
    REAL(Unpack)((const char *)from + done * size, (int)(elements * size), &position, (char *)to + (ptrdiff_t)done * extent_of(type), elements, type,
                 MPI_COMM_SELF);
  }
  if (full < count && bytes % size)
    unpack_part((const char *)from + full * size, bytes % size, (char *)to + (ptrdiff_t)full * extent_of(type), type, size);
}
