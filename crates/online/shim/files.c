/* Files of MPI-IO: each rank opens the real file alone, the first one before the others, which creates it. Access takes no time. */
#include "online.h"
#include <stdlib.h>

/* An open file. */
struct file {
  MPI_File handle;
  struct communicator *c;
  char *deleted;
  struct file *next;
};

static struct file *files;

/* Barrier, in which the first member tells an error of its own. */
static int agree_on(struct communicator *c, int error)
{
  struct table *table = exchange(c, COLL_ALLGATHER, &error, sizeof error, sizeof error);
  int first = *(int *)contribution(table, 0);
  release(table);
  return first;
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
  post((struct operation){.kind = OP_OMIT, .flags = OMITS_FILES});
  if (c->rank == 0)
    error = REAL(File_open)(MPI_COMM_SELF, name, own_mode, info, result);
  error = agree_on(c, error);
  if (error == MPI_SUCCESS && c->rank > 0)
    error = REAL(File_open)(MPI_COMM_SELF, name, own_mode & ~(MPI_MODE_CREATE | MPI_MODE_EXCL), info, result);
  if (error == MPI_SUCCESS) {
    struct file *file = malloc(sizeof *file);
    *file = (struct file){*result, c, mode & MPI_MODE_DELETE_ON_CLOSE ? copied(name) : NULL, files};
    hold_communicator(c);
    files = file;
  }
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
    agree_on(file->c, MPI_SUCCESS);
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
  for (struct file *file = files; file; file = file->next)
    if (file->handle == handle) {
      *result = new_group(file->c->size, file->c->world);
      return MPI_SUCCESS;
    }
  return MPI_ERR_FILE;
}
