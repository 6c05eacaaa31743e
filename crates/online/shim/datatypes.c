/* The data of messages: packed and unpacked by the real library, which owns the datatypes. */
#include "online.h"
#include <limits.h>
#include <string.h>

static bool is_predefined(MPI_Datatype type)
{
  int integers, addresses, types, combiner;
  REAL(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

MPI_Datatype keep_type(MPI_Datatype type)
{
  MPI_Datatype kept = type;
  if (type != MPI_DATATYPE_NULL && !is_predefined(type))
    REAL(Type_dup)(type, &kept);
  return kept;
}

void drop_type(MPI_Datatype type)
{
  if (type != MPI_DATATYPE_NULL && !is_predefined(type))
    REAL(Type_free)(&type);
}

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

bool is_usable(MPI_Datatype type) { return type != MPI_DATATYPE_NULL; }

/* Returns how many elements fit into the numbers of MPI_Pack. */
static uint64_t elements_at_once(MPI_Count size)
{
  uint64_t most = size ? INT_MAX / size : INT_MAX;
  return most ? most : 1;
}

void pack(const void *from, uint64_t count, MPI_Datatype type, void *to)
{
  MPI_Count size = size_of(type);
  if (count == 0 || size == 0)
    return;
  if (is_contiguous(type, size)) {
    memcpy(to, from, count * size);
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
  if (is_contiguous(type, size)) {
    memcpy(to, from, bytes < count * size ? bytes : count * size);
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
