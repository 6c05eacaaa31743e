/* Files: the real ones (files.c), and the time of calls (file_times.c). */
#ifndef PDES_ONLINE_FILES_H
#define PDES_ONLINE_FILES_H

#include "online.h"

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
  /* for the simulator */
  int32_t number;
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

struct operation file_call(const struct file *file, enum file_call call);
/* Tells the simulator of a call, whose time the exchange takes that follows. */
void tell(struct operation call);
void tell_open(struct communicator *c, int32_t number, const char *name, MPI_Info info);
void tell_view(struct file *file, MPI_Offset displacement, MPI_Datatype view);
/* Returns the size of the units of offsets [B]. */
int64_t view_unit(struct file *file);
/* Takes the time of an access to data of the view: from an offset on, in units of the view. It ends with a request, if there is one. */
void take_access(struct file *file, enum file_call kind, int64_t offset, int count, MPI_Datatype type, uint32_t request);
/* Begins a collective access, once all members have called it; their data move then. */
void begin_together(struct file *file, int64_t offset, int count, MPI_Datatype type);
/* Waits until all members have come here: what they have done to the real file before is done. */
void await_all(struct file *file);
/* Waits as well; returns the error of the first member, which has done something to the real file for all. */
int await_first(struct file *file, int error);

#endif
