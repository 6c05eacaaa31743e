/* Files of MPI-IO: each rank opens the real file alone, the first one before the others, which creates it. Access takes no time. The shared
   pointer of a file is in shared memory; accesses by it are accesses at an offset for the real library. */
#include "online.h"
#include <stdlib.h>

/* The shared pointer of a file [elements of its view]. */
struct pointer {
  _Atomic uint32_t is_locked;
  /* number of the last collective call that has moved it */
  uint32_t moves;
  /* its place now, and before that call */
  int64_t position, before;
};

/* An open file. */
struct file {
  MPI_File handle;
  struct communicator *c;
  /* block of the shared pointer, in the memory of the first member */
  uint64_t pointer;
  /* number of collective calls so far that move it */
  uint32_t moves;
  /* of the split collective access in progress */
  MPI_Status status;
  char *deleted;
  struct file *next;
};

static struct file *files;

/* What the first member of a file tells the others. */
struct opening {
  uint64_t pointer;
  int error;
};

/* Barrier, in which the first member tells what it has done. */
static struct opening agree_on(struct communicator *c, struct opening own_part)
{
  struct table *table = exchange(c, COLL_ALLGATHER, &own_part, sizeof own_part, sizeof own_part.error);
  struct opening first = *(struct opening *)contribution(table, 0);
  release(table);
  return first;
}

static struct file *file_of(MPI_File handle)
{
  struct file *file = files;
  while (file && file->handle != handle)
    file = file->next;
  return file;
}

static char *copied(const char *text)
{
  size_t length = 0;
  while (text[length])
    length++;
  char *copy = malloc(length + 1);
  for (size_t i = 0; i <= length; i++)
    copy[i] = text[i];
  return copy;
}

INTERPOSE(File_open)
int MPI_File_open(MPI_Comm handle, const char *name, int mode, MPI_Info info, MPI_File *result)
{
  CALL(File_open, handle, name, mode, info, result)
  struct communicator *c = communicator_of(handle);
  CHECK(c && !c->remote, MPI_COMM_WORLD, MPI_ERR_COMM);
  int own_mode = mode & ~MPI_MODE_DELETE_ON_CLOSE, error = MPI_SUCCESS;
  struct opening opening = {0, MPI_SUCCESS};
  post((struct operation){.kind = OP_OMIT, .flags = OMITS_FILES});
  if (c->rank == 0) {
    opening.error = REAL(File_open)(MPI_COMM_SELF, name, own_mode, info, result);
    opening.pointer = new_block(sizeof(struct pointer));
    MPI_Offset position = 0;
    if (opening.error == MPI_SUCCESS && mode & MPI_MODE_APPEND)
      REAL(File_get_position)(*result, &position);
    *(struct pointer *)payload(opening.pointer) = (struct pointer){.position = position};
  }
  opening = agree_on(c, opening);
  error = opening.error;
  if (error == MPI_SUCCESS && c->rank > 0)
    error = REAL(File_open)(MPI_COMM_SELF, name, own_mode & ~(MPI_MODE_CREATE | MPI_MODE_EXCL), info, result);
  if (error == MPI_SUCCESS) {
    struct file *file = malloc(sizeof *file);
    *file = (struct file){.handle = *result,
                          .c = c,
                          .pointer = opening.pointer,
                          .deleted = mode & MPI_MODE_DELETE_ON_CLOSE ? copied(name) : NULL,
                          .next = files};
    hold_communicator(c);
    files = file;
  } else if (c->rank == 0)
    free_block(opening.pointer);
  leave(MPI_COMM_WORLD, MPI_SUCCESS);
  return error;
}

INTERPOSE(File_close)
int MPI_File_close(MPI_File *handle)
{
  CALL(File_close, handle)
  struct file **link = &files;
  while (*link && (*link)->handle != *handle)
    link = &(*link)->next;
  struct file *file = *link;
  int error = REAL(File_close)(handle);
  if (file) {
    *link = file->next;
    agree_on(file->c, (struct opening){0, MPI_SUCCESS});
    if (file->c->rank == 0)
      free_block(file->pointer);
    if (file->deleted && file->c->rank == 0)
      REAL(File_delete)(file->deleted, MPI_INFO_NULL);
    drop_communicator(file->c);
    free(file->deleted);
    free(file);
  }
  RETURN(MPI_COMM_WORLD, error);
}

INTERPOSE(File_get_group)
int MPI_File_get_group(MPI_File handle, MPI_Group *result)
{
  LOCAL(File_get_group, handle, result)
  struct file *file = file_of(handle);
  if (!file)
    return MPI_ERR_FILE;
  *result = new_group(file->c->size, file->c->world);
  return MPI_SUCCESS;
}

/* ---- shared pointers ---- */

static struct pointer *lock_pointer(struct file *file)
{
  struct pointer *pointer = payload(file->pointer);
  while (atomic_exchange_explicit(&pointer->is_locked, 1, memory_order_acquire))
    ;
  return pointer;
}

static void unlock_pointer(struct pointer *pointer) { atomic_store_explicit(&pointer->is_locked, 0, memory_order_release); }

/* Returns the number of elements of the view that an access takes. */
static int64_t elements(struct file *file, int count, MPI_Datatype type)
{
  MPI_Offset displacement;
  MPI_Datatype element, view;
  MPI_Count size = 0;
  char representation[MPI_MAX_DATAREP_STRING];
  REAL(File_get_view)(file->handle, &displacement, &element, &view, representation);
  REAL(Type_size_x)(element, &size);
  drop_type(element);
  drop_type(view);
  return size > 0 ? (int64_t)packed_size((uint64_t)count, type) / size : 0;
}

/* Moves the pointer once all members have called, for all of them by the first one that goes on; returns where it was. */
static int64_t move_together(struct file *file, int64_t by, bool is_absolute)
{
  struct pointer *pointer = lock_pointer(file);
  if (pointer->moves != ++file->moves) {
    pointer->moves = file->moves;
    pointer->before = pointer->position;
    pointer->position = is_absolute ? by : pointer->position + by;
  }
  int64_t before = pointer->before;
  unlock_pointer(pointer);
  return before;
}

/* Moves the pointer by the access of one rank alone, which reaches it in the order of simulated time; returns where it was. */
static int64_t move_alone(struct file *file, int64_t by)
{
  answer((struct operation){.kind = OP_OMIT, .flags = OMITS_SHARED_POINTERS});
  struct pointer *pointer = lock_pointer(file);
  int64_t before = pointer->position;
  pointer->position += by;
  unlock_pointer(pointer);
  return before;
}

/* Returns the place of the own access among those of all members, in the order of their ranks. */
static int64_t move_in_order(struct file *file, int64_t length)
{
  struct table *table = exchange(file->c, COLL_ALLGATHER, &length, sizeof length, sizeof length);
  int64_t earlier = 0, all = 0;
  for (int i = 0; i < file->c->size; i++) {
    earlier = i == file->c->rank ? all : earlier;
    all += *(int64_t *)contribution(table, i);
  }
  release(table);
  return move_together(file, all, false) + earlier;
}

/* The begin of a function of an open file. Errors of files return, unless the program has set another handler. */
#define FILE_CALL(name, handle, ...)                                                                                                     \
  CALL(name, __VA_ARGS__)                                                                                                                \
  struct file *file = file_of(handle);                                                                                                   \
  if (!file)                                                                                                                             \
  return leave(MPI_COMM_WORLD, MPI_SUCCESS), MPI_ERR_FILE

#define FILE_RETURN(error) return leave(MPI_COMM_WORLD, MPI_SUCCESS), error

INTERPOSE(File_set_view)
int MPI_File_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype element, MPI_Datatype view, const char *representation, MPI_Info info)
{
  FILE_CALL(File_set_view, handle, handle, displacement, element, view, representation, info);
  agree_on(file->c, (struct opening){0, MPI_SUCCESS});
  int64_t before = move_together(file, 0, true);
  /* in a file that is read or written in sequence */
  if (displacement == MPI_DISPLACEMENT_CURRENT)
    REAL(File_get_byte_offset)(handle, before, &displacement);
  FILE_RETURN(REAL(File_set_view)(handle, displacement, element, view, representation, info));
}

INTERPOSE(File_seek_shared)
int MPI_File_seek_shared(MPI_File handle, MPI_Offset offset, int from)
{
  FILE_CALL(File_seek_shared, handle, handle, offset, from);
  MPI_Offset end = 0, kept;
  if (from == MPI_SEEK_END) {
    REAL(File_get_position)(handle, &kept);
    REAL(File_seek)(handle, 0, MPI_SEEK_END);
    REAL(File_get_position)(handle, &end);
    REAL(File_seek)(handle, kept, MPI_SEEK_SET);
  }
  agree_on(file->c, (struct opening){0, MPI_SUCCESS});
  move_together(file, end + offset, from != MPI_SEEK_CUR);
  FILE_RETURN(MPI_SUCCESS);
}

INTERPOSE(File_get_position_shared)
int MPI_File_get_position_shared(MPI_File handle, MPI_Offset *offset)
{
  FILE_CALL(File_get_position_shared, handle, handle, offset);
  *offset = move_alone(file, 0);
  FILE_RETURN(MPI_SUCCESS);
}

#define ACCESS(name, by, at, move, result_type)                                                                                          \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, result_type *result)                                    \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, result);                                                                        \
    FILE_RETURN(REAL(at)(handle, move(file, elements(file, count, type)), buffer, count, type, result));                                 \
  }

ACCESS(File_read_shared, , File_read_at, move_alone, MPI_Status)
ACCESS(File_write_shared, const, File_write_at, move_alone, MPI_Status)
ACCESS(File_iread_shared, , File_iread_at, move_alone, MPI_Request)
ACCESS(File_iwrite_shared, const, File_iwrite_at, move_alone, MPI_Request)
ACCESS(File_read_ordered, , File_read_at, move_in_order, MPI_Status)
ACCESS(File_write_ordered, const, File_write_at, move_in_order, MPI_Status)

/* A split access is done at its begin. */
#define SPLIT_ACCESS(name, by, at)                                                                                                       \
  INTERPOSE(name##_begin)                                                                                                                \
  int MPI_##name##_begin(MPI_File handle, by void *buffer, int count, MPI_Datatype type)                                                 \
  {                                                                                                                                      \
    FILE_CALL(name##_begin, handle, handle, buffer, count, type);                                                                        \
    FILE_RETURN(REAL(at)(handle, move_in_order(file, elements(file, count, type)), buffer, count, type, &file->status));                 \
  }                                                                                                                                      \
  INTERPOSE(name##_end)                                                                                                                  \
  int MPI_##name##_end(MPI_File handle, by void *buffer, MPI_Status *status)                                                             \
  {                                                                                                                                      \
    FILE_CALL(name##_end, handle, handle, buffer, status);                                                                               \
    if (status != MPI_STATUS_IGNORE)                                                                                                     \
      *status = file->status;                                                                                                            \
    FILE_RETURN(MPI_SUCCESS);                                                                                                            \
  }

SPLIT_ACCESS(File_read_ordered, , File_read_at)
SPLIT_ACCESS(File_write_ordered, const, File_write_at)
