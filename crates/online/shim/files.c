/* Files of MPI-IO: each rank opens the real file alone, the first one before the others, which creates it. Accesses take the time of the
   platform's devices, if it has some, before the data of the real file move. The data of a collective call move between two exchanges of its
   members: after all calls before it, and before all calls after it. The shared pointer of a file is in shared memory; accesses by it are
   accesses at an offset for the real library. */
#include "files.h"
#include <stdlib.h>
#include <string.h>

static struct file *files;

/* What the first member of a file tells the others. */
struct opening {
  uint64_t pointer;
  int error;
};

/* Barrier, in which the first member tells what it has done; in the time of a call on the file, where there are devices. */
static struct opening agree_on(struct communicator *c, struct opening own_part)
{
  struct table *table = exchange(c, shared->has_storage ? COLL_FILE : COLL_ALLGATHER, &own_part, sizeof own_part, sizeof own_part.error);
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

/* ---- opening ---- */

INTERPOSE(File_open)
int MPI_File_open(MPI_Comm handle, const char *name, int mode, MPI_Info info, MPI_File *result)
{
  CALL(File_open, handle, name, mode, info, result)
  struct communicator *c = communicator_of(handle);
  CHECK(c && !c->remote, MPI_COMM_WORLD, communicator_error(handle));
  int own_mode = mode & ~MPI_MODE_DELETE_ON_CLOSE, error = MPI_SUCCESS;
  struct opening opening = {0, MPI_SUCCESS};
  static int32_t opened;
  int32_t number = opened++;
  if (!shared->has_storage)
    post((struct operation){.kind = OP_OMIT, .flags = OMITS_FILES});
  if (c->rank == 0) {
    opening.error = REAL(File_open)(MPI_COMM_SELF, name, own_mode, info, result);
    opening.pointer = new_block(sizeof(struct pointer));
    MPI_Offset position = 0;
    if (opening.error == MPI_SUCCESS && mode & MPI_MODE_APPEND)
      REAL(File_get_position)(*result, &position);
    *(struct pointer *)payload(opening.pointer) = (struct pointer){.position = position};
  }
  tell_open(c, number, name, info);
  opening = agree_on(c, opening);
  error = opening.error;
  if (error == MPI_SUCCESS && c->rank > 0)
    error = REAL(File_open)(MPI_COMM_SELF, name, own_mode & ~(MPI_MODE_CREATE | MPI_MODE_EXCL), info, result);
  if (error == MPI_SUCCESS) {
    struct file *file = malloc(sizeof *file);
    *file = (struct file){.handle = *result,
                          .number = number,
                          .c = c,
                          .pointer = opening.pointer,
                          .deleted = mode & MPI_MODE_DELETE_ON_CLOSE ? strdup(name) : NULL,
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
    tell(file_call(file, FILE_CLOSE));
    agree_on(file->c, (struct opening){0, MPI_SUCCESS});
    if (file->c->rank == 0)
      free_block(file->pointer);
    if (file->deleted) {
      if (file->c->rank == 0)
        REAL(File_delete)(file->deleted, MPI_INFO_NULL);
      await_all(file);
    }
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
  int64_t unit = view_unit(file);
  return unit > 0 ? (int64_t)packed_size((uint64_t)count, type) / unit : 0;
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

/* Ends a call after its value is known: what the real library does for it is neither computation, nor are its calls those of the program. */
#define FILE_RETURN(value)                                                                                                               \
  do {                                                                                                                                   \
    int returned = (value);                                                                                                              \
    leave(MPI_COMM_WORLD, MPI_SUCCESS);                                                                                                  \
    return returned;                                                                                                                     \
  } while (0)

INTERPOSE(File_set_view)
int MPI_File_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype element, MPI_Datatype view, const char *representation, MPI_Info info)
{
  FILE_CALL(File_set_view, handle, handle, displacement, element, view, representation, info);
  if (is_usable(view) && displacement != MPI_DISPLACEMENT_CURRENT)
    tell_view(file, displacement, view);
  else
    tell(file_call(file, FILE_SYNC));
  agree_on(file->c, (struct opening){0, MPI_SUCCESS});
  int64_t before = move_together(file, 0, true);
  /* in a file that is read or written in sequence */
  if (displacement == MPI_DISPLACEMENT_CURRENT)
    REAL(File_get_byte_offset)(handle, before, &displacement);
  FILE_RETURN(REAL(File_set_view)(handle, displacement, element, view, representation, info));
}

/* Calls that are the real library's, which may call other functions. */
#define OF_LIBRARY(name, parameters, ...)                                                                                                \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name parameters                                                                                                              \
  {                                                                                                                                      \
    CALL(name, __VA_ARGS__)                                                                                                              \
    FILE_RETURN(REAL(name)(__VA_ARGS__));                                                                                                \
  }

OF_LIBRARY(File_set_info, (MPI_File handle, MPI_Info info), handle, info)
OF_LIBRARY(File_set_atomicity, (MPI_File handle, int flag), handle, flag)

/* Makes a file longer, never shorter. The function of Open MPI repeats the data of the file behind its end, even if it is long enough. */
static int preallocate(MPI_File handle, MPI_Offset bytes)
{
  MPI_Offset size = 0;
  int error = REAL(File_get_size)(handle, &size);
  return error || (bytes >= 0 && size >= bytes) ? error : REAL(File_set_size)(handle, bytes);
}

/* The first member sets the size of the real file: no other call on it comes between. */
#define OF_FIRST(name, function)                                                                                                         \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, MPI_Offset bytes)                                                                                      \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, bytes);                                                                                              \
    await_all(file);                                                                                                                     \
    int error = file->c->rank == 0 ? function(handle, bytes) : MPI_SUCCESS;                                                              \
    FILE_RETURN(await_first(file, error));                                                                                               \
  }

OF_FIRST(File_set_size, REAL(File_set_size))
OF_FIRST(File_preallocate, preallocate)

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
  tell(file_call(file, FILE_SYNC));
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

/* ---- accesses ---- */

/* The place of an access: the individual pointer, which the real library moves. */
static int64_t pointer_of(struct file *file)
{
  MPI_Offset position = 0;
  REAL(File_get_position)(file->handle, &position);
  return position;
}

/* A nonblocking access moves its data at once: when the real library would be done depends on chance. It is complete when the simulated one is,
   and at once without devices. */
static int post_access(struct file *file, enum file_call kind, int64_t offset, int count, MPI_Datatype type, bool is_collective, int error,
                       MPI_Status *status, MPI_Request *result)
{
  if (error != MPI_SUCCESS)
    return error;
  if (shared->has_storage && is_collective && file->c->size > 1)
    warn(current_call(), "a nonblocking collective access takes the time of one of the rank alone");
  uint32_t index = new_request(REQUEST_FILE, file->c, result);
  struct request *request = request_at(index);
  MPI_Count bytes = 0;
  REAL(Get_elements_x)(status, MPI_BYTE, &bytes);
  request->count = bytes > 0 ? (uint64_t)bytes : 0;
  request->is_done = !shared->has_storage;
  take_access(file, kind, offset, count, type, index);
  return MPI_SUCCESS;
}

#define TRANSFER(name, by, kind)                                                                                                         \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, MPI_Status *status)                                     \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, status);                                                                        \
    take_access(file, kind, pointer_of(file), count, type, NONE);                                                                        \
    FILE_RETURN(REAL(name)(handle, buffer, count, type, status));                                                                        \
  }

#define TRANSFER_AT(name, by, kind)                                                                                                      \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, MPI_Offset offset, by void *buffer, int count, MPI_Datatype type, MPI_Status *status)                  \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, offset, buffer, count, type, status);                                                                \
    take_access(file, kind, offset, count, type, NONE);                                                                                  \
    FILE_RETURN(REAL(name)(handle, offset, buffer, count, type, status));                                                                \
  }

/* A collective access, whose data `move` by an expression. */
#define MOVE_TOGETHER(kind, offset, move)                                                                                                \
  begin_together(file, offset, count, type);                                                                                             \
  int error = move;                                                                                                                      \
  await_all(file);                                                                                                                       \
  take_access(file, kind, offset, count, type, NONE);                                                                                    \
  FILE_RETURN(error)

#define TRANSFER_ALL(name, by, kind)                                                                                                     \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, MPI_Status *status)                                     \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, status);                                                                        \
    int64_t offset = pointer_of(file);                                                                                                   \
    MOVE_TOGETHER(kind, offset, REAL(name)(handle, buffer, count, type, status));                                                        \
  }

#define TRANSFER_AT_ALL(name, by, kind)                                                                                                  \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, MPI_Offset offset, by void *buffer, int count, MPI_Datatype type, MPI_Status *status)                  \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, offset, buffer, count, type, status);                                                                \
    MOVE_TOGETHER(kind, offset, REAL(name)(handle, offset, buffer, count, type, status));                                                \
  }

#define POST(name, by, kind, blocking, is_collective)                                                                                    \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, MPI_Request *request)                                   \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, request);                                                                       \
    MPI_Status status;                                                                                                                   \
    int64_t offset = pointer_of(file);                                                                                                   \
    int error = REAL(blocking)(handle, buffer, count, type, &status);                                                                    \
    FILE_RETURN(post_access(file, kind, offset, count, type, is_collective, error, &status, request));                                   \
  }

#define POST_AT(name, by, kind, blocking, is_collective)                                                                                 \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, MPI_Offset offset, by void *buffer, int count, MPI_Datatype type, MPI_Request *request)                \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, offset, buffer, count, type, request);                                                               \
    MPI_Status status;                                                                                                                   \
    int error = REAL(blocking)(handle, offset, buffer, count, type, &status);                                                            \
    FILE_RETURN(post_access(file, kind, offset, count, type, is_collective, error, &status, request));                                   \
  }

/* The end of a split access, which is done at its begin. */
#define END(name, by)                                                                                                                    \
  INTERPOSE(name##_end)                                                                                                                  \
  int MPI_##name##_end(MPI_File handle, by void *buffer, MPI_Status *status)                                                             \
  {                                                                                                                                      \
    FILE_CALL(name##_end, handle, handle, buffer, status);                                                                               \
    if (status != MPI_STATUS_IGNORE)                                                                                                     \
      *status = file->status;                                                                                                            \
    FILE_RETURN(MPI_SUCCESS);                                                                                                            \
  }

#define SPLIT(name, by, kind)                                                                                                            \
  INTERPOSE(name##_begin)                                                                                                                \
  int MPI_##name##_begin(MPI_File handle, by void *buffer, int count, MPI_Datatype type)                                                 \
  {                                                                                                                                      \
    FILE_CALL(name##_begin, handle, handle, buffer, count, type);                                                                        \
    int64_t offset = pointer_of(file);                                                                                                   \
    MOVE_TOGETHER(kind, offset, REAL(name)(handle, buffer, count, type, &file->status));                                                 \
  }                                                                                                                                      \
  END(name, by)

#define SPLIT_AT(name, by, kind)                                                                                                         \
  INTERPOSE(name##_begin)                                                                                                                \
  int MPI_##name##_begin(MPI_File handle, MPI_Offset offset, by void *buffer, int count, MPI_Datatype type)                              \
  {                                                                                                                                      \
    FILE_CALL(name##_begin, handle, handle, offset, buffer, count, type);                                                                \
    MOVE_TOGETHER(kind, offset, REAL(name)(handle, offset, buffer, count, type, &file->status));                                         \
  }                                                                                                                                      \
  END(name, by)

#define FORMS(form, by, kind)                                                                                                            \
  TRANSFER(File_##form, by, kind)                                                                                                        \
  TRANSFER_ALL(File_##form##_all, by, kind)                                                                                              \
  TRANSFER_AT(File_##form##_at, by, kind)                                                                                                \
  TRANSFER_AT_ALL(File_##form##_at_all, by, kind)                                                                                        \
  POST(File_i##form, by, kind, File_##form, false)                                                                                       \
  POST(File_i##form##_all, by, kind, File_##form, true)                                                                                  \
  POST_AT(File_i##form##_at, by, kind, File_##form##_at, false)                                                                          \
  POST_AT(File_i##form##_at_all, by, kind, File_##form##_at, true)                                                                       \
  SPLIT(File_##form##_all, by, kind)                                                                                                     \
  SPLIT_AT(File_##form##_at_all, by, kind)

FORMS(read, , FILE_READ)
FORMS(write, const, FILE_WRITE)

INTERPOSE(File_sync)
int MPI_File_sync(MPI_File handle)
{
  FILE_CALL(File_sync, handle, handle);
  tell(file_call(file, FILE_SYNC));
  agree_on(file->c, (struct opening){0, MPI_SUCCESS});
  FILE_RETURN(REAL(File_sync)(handle));
}

#define ACCESS(name, by, at, kind)                                                                                                       \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, MPI_Status *status)                                     \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, status);                                                                        \
    int64_t offset = move_alone(file, elements(file, count, type));                                                                      \
    take_access(file, kind, offset, count, type, NONE);                                                                                  \
    FILE_RETURN(REAL(at)(handle, offset, buffer, count, type, status));                                                                  \
  }

#define POST_SHARED(name, by, kind, blocking)                                                                                            \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, MPI_Request *request)                                   \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, request);                                                                       \
    MPI_Status status;                                                                                                                   \
    int64_t offset = move_alone(file, elements(file, count, type));                                                                      \
    int error = REAL(blocking)(handle, offset, buffer, count, type, &status);                                                            \
    FILE_RETURN(post_access(file, kind, offset, count, type, false, error, &status, request));                                           \
  }

ACCESS(File_read_shared, , File_read_at, FILE_READ)
ACCESS(File_write_shared, const, File_write_at, FILE_WRITE)
POST_SHARED(File_iread_shared, , FILE_READ, File_read_at)
POST_SHARED(File_iwrite_shared, const, FILE_WRITE, File_write_at)

#define IN_ORDER(at, kind, status)                                                                                                       \
  int64_t offset = move_in_order(file, elements(file, count, type));                                                                     \
  int error = REAL(at)(handle, offset, buffer, count, type, status);                                                                     \
  await_all(file);                                                                                                                       \
  take_access(file, kind, offset, count, type, NONE);                                                                                    \
  FILE_RETURN(error)

#define ORDERED(name, by, at, kind)                                                                                                      \
  INTERPOSE(name)                                                                                                                        \
  int MPI_##name(MPI_File handle, by void *buffer, int count, MPI_Datatype type, MPI_Status *status)                                     \
  {                                                                                                                                      \
    FILE_CALL(name, handle, handle, buffer, count, type, status);                                                                        \
    IN_ORDER(at, kind, status);                                                                                                          \
  }                                                                                                                                      \
  INTERPOSE(name##_begin)                                                                                                                \
  int MPI_##name##_begin(MPI_File handle, by void *buffer, int count, MPI_Datatype type)                                                 \
  {                                                                                                                                      \
    FILE_CALL(name##_begin, handle, handle, buffer, count, type);                                                                        \
    IN_ORDER(at, kind, &file->status);                                                                                                   \
  }                                                                                                                                      \
  END(name, by)

ORDERED(File_read_ordered, , File_read_at, FILE_READ)
ORDERED(File_write_ordered, const, File_write_at, FILE_WRITE)
