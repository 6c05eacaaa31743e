/* The time of calls on files, where the platform has devices. */
#define _GNU_SOURCE
#include "files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct operation file_call(const struct file *file, enum file_call call)
{
  return (struct operation){.kind = OP_FILE, .flags = call, .peer = file->number, .communicator = file->c->index, .request = NONE};
}

/* Tells the simulator of a call, whose time the exchange takes that follows. */
void tell(struct operation call)
{
  if (shared->has_storage)
    post(call);
}

void tell_open(struct communicator *c, int32_t number, const char *name, MPI_Info info)
{
  if (!shared->has_storage)
    return;
  char path[8192] = "";
  const char *colon = strchr(name, ':');
  /* the kind of the file system, as ROMIO takes it */
  name = colon && !memchr(name, '/', colon - name) ? colon + 1 : name;
  if (*name != '/' && getcwd(path, sizeof path / 2))
    strcat(path, "/");
  strncat(path, name, sizeof path / 2 - 1);
  struct file opened = {.number = number, .c = c};
  struct operation call = file_call(&opened, FILE_OPEN);
  call.count = strlen(path);
  call.block = new_block(call.count);
  memcpy(payload(call.block), path, call.count);
  int keys = 0, has_value;
  char value[8];
  if (info != MPI_INFO_NULL)
    REAL(Info_get_nkeys)(info, &keys);
  for (int i = 0; i < keys; i++) {
    char key[MPI_MAX_INFO_KEY + 1];
    REAL(Info_get_nthkey)(info, i, key);
    REAL(Info_get)(info, key, sizeof value - 1, value, &has_value);
    if (!strncmp(key, "cb_", 3) || !strncmp(key, "romio_", 6) || !strncmp(key, "ind_", 4) || !strncmp(key, "striping_", 9))
      warn(current_call(), "the hint %s of a file does not change the time of accesses", key);
  }
  tell(call);
}

/* Tells the blocks of a file type: of data without holes. */
void tell_view(struct file *file, MPI_Offset displacement, MPI_Datatype view)
{
  enum { MOST_BYTES = 1 << 28 };
  if (!shared->has_storage)
    return;
  MPI_Aint lower, extent;
  REAL(Type_get_true_extent)(view, &lower, &extent);
  uint64_t size = packed_size(1, view), end = (uint64_t)(lower + extent), number = 0;
  bool is_known = lower >= 0 && extent >= 0 && end <= MOST_BYTES;
  if (!is_known)
    warn(current_call(), "a view of more than %d B is one without holes in the time of accesses", MOST_BYTES);
  is_known &= size < end;
  char *mask = calloc(end * is_known + 1, 1), *ones = malloc(size * is_known + 1);
  if (is_known) {
    memset(ones, 1, size);
    unpack(ones, size, mask, 1, view);
  }
  struct operation call = file_call(file, FILE_VIEW);
  call.source_bytes = (uint64_t)displacement;
  call.bytes = is_known ? (uint64_t)extent_of(view) : size;
  uint64_t most = is_known ? end / 2 + 1 : 1;
  uint64_t *blocks = malloc(2 * most * sizeof *blocks);
  for (uint64_t at = 0; is_known && at < end;) {
    char *begin = memchr(mask + at, 1, end - at);
    if (!begin)
      break;
    char *behind = memchr(begin, 0, mask + end + 1 - begin);
    blocks[2 * number] = (uint64_t)(begin - mask);
    blocks[2 * number++ + 1] = (uint64_t)(behind - begin);
    at = (uint64_t)(behind - mask);
  }
  if (number == 0 && size > 0)
    blocks[0] = 0, blocks[1] = size, number = 1;
  call.count = 2 * number;
  call.block = new_block(call.count * sizeof *blocks);
  memcpy(payload(call.block), blocks, call.count * sizeof *blocks);
  free(blocks);
  free(mask);
  free(ones);
  tell(call);
}

int64_t view_unit(struct file *file)
{
  MPI_Offset displacement;
  MPI_Datatype element, view;
  MPI_Count size = 0;
  char representation[MPI_MAX_DATAREP_STRING];
  REAL(File_get_view)(file->handle, &displacement, &element, &view, representation);
  REAL(Type_size_x)(element, &size);
  drop_type(element);
  drop_type(view);
  return size;
}

static int compare_parts(const void *one, const void *other)
{
  const MPI_Offset *a = one, *b = other;
  return (*a > *b) - (*a < *b);
}

/* Tells all members a part of a file, and returns a table of the parts. */
static struct table *exchange_parts(struct file *file, const MPI_Offset own_part[2])
{
  return exchange(file->c, COLL_ALLGATHER, own_part, 2 * sizeof *own_part, sizeof *own_part);
}

/* Begins a collective access: all members tell each other begin and end of their parts. If parts do not lie side by side, MPI libraries would
   access the file in two phases. */
void begin_together(struct file *file, int64_t offset, int count, MPI_Datatype type)
{
  struct communicator *c = file->c;
  MPI_Offset (*parts)[2] = malloc(c->size * sizeof *parts), own_part[2] = {0, 0};
  int64_t unit = view_unit(file), sum = 0;
  uint64_t bytes = count > 0 && is_usable(type) ? packed_size((uint64_t)count, type) : 0;
  if (bytes > 0 && unit > 0) {
    REAL(File_get_byte_offset)(file->handle, offset, &own_part[0]);
    REAL(File_get_byte_offset)(file->handle, offset + ((int64_t)bytes - 1) / unit, &own_part[1]);
    own_part[1] += ((int64_t)bytes - 1) % unit + 1;
  }
  struct table *table = exchange_parts(file, own_part);
  for (int i = 0; i < c->size; i++)
    memcpy(parts[i], contribution(table, i), sizeof parts[i]);
  release(table);
  qsort(parts, c->size, sizeof *parts, compare_parts);
  MPI_Offset end = 0;
  bool is_apart = false, has_holes = bytes > 0 && own_part[1] - own_part[0] != (MPI_Offset)bytes;
  for (int i = 0; i < c->size; i++) {
    if (parts[i][1] == parts[i][0])
      continue;
    is_apart |= sum > 0 && parts[i][0] != end;
    end = parts[i][1];
    sum += parts[i][1] - parts[i][0];
  }
  if (shared->has_storage && (is_apart || has_holes))
    warn(current_call(), "the parts of a collective access do not lie side by side: in its time each rank accesses its own part alone, without "
                         "the exchange of data between ranks");
  free(parts);
}

int await_first(struct file *file, int error)
{
  struct table *table = exchange_parts(file, (MPI_Offset[2]){error, 0});
  int first = (int)*(MPI_Offset *)contribution(table, 0);
  release(table);
  return first;
}

void await_all(struct file *file) { await_first(file, MPI_SUCCESS); }

/* Takes the time of an access to data of the view: from an offset on, in units of the view. */
void take_access(struct file *file, enum file_call kind, int64_t offset, int count, MPI_Datatype type, uint32_t request)
{
  if (!shared->has_storage || count < 0 || !is_usable(type))
    return;
  struct operation call = file_call(file, kind);
  call.bytes = packed_size((uint64_t)count, type);
  call.source_bytes = (uint64_t)(offset * view_unit(file));
  call.request = request;
  if (request == NONE)
    answer(call);
  else
    post(call);
}
