/* Errors of arguments: what a call was given, and what there is. */
#include "online.h"

int communicator_error(MPI_Comm handle)
{
  const struct communicator *c = communicator_of(handle);
  const char *why = handle == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL"
                    : !c                    ? "there is no such communicator: perhaps it was freed"
                    : c->remote             ? "the communicator is an intercommunicator"
                                            : "the communicator is no intercommunicator";
  return explained_error(MPI_ERR_COMM, "%s", why);
}

int group_error(MPI_Group handle)
{
  const char *why = handle == MPI_GROUP_NULL ? "the group is MPI_GROUP_NULL" : "there is no such group: perhaps it was freed";
  return explained_error(MPI_ERR_GROUP, "%s", why);
}

int rank_error(const struct communicator *c, const char *name, int rank)
{
  return explained_error(MPI_ERR_RANK, "the %s is %d, and communicator %u has the ranks 0 to %d", name, rank, c->index, peers(c) - 1);
}

int root_error(const struct communicator *c, int root)
{
  rank_error(c, "root", root);
  return MPI_ERR_ROOT;
}

int count_error(const char *name, int count)
{
  return explained_error(MPI_ERR_COUNT, "the %s is %d", name, count);
}

int data_error(const void *buffer, int count, MPI_Datatype type)
{
  /* Types that are made of others may have addresses. */
  return buffer || count == 0 || !is_predefined(type) ? MPI_SUCCESS : explained_error(MPI_ERR_BUFFER, "the buffer of %d element%s is a null pointer", count, count > 1 ? "s" : "");
}

int message_error(const struct communicator *c, const void *buffer, int count, MPI_Datatype type, int peer, int tag, bool is_receive)
{
  if (count < 0)
    return count_error(is_receive ? "count of the receive" : "count", count);
  int error = type_error(type);
  error = error || peer == MPI_PROC_NULL ? error : data_error(buffer, count, type);
  if (error)
    return error;
  if (!(peer >= 0 && peer < peers(c)) && peer != MPI_PROC_NULL && !(is_receive && peer == MPI_ANY_SOURCE))
    return rank_error(c, is_receive ? "source" : "destination", peer);
  if (tag >= 0 || (is_receive && tag == MPI_ANY_TAG))
    return MPI_SUCCESS;
  return explained_error(MPI_ERR_TAG, "the tag %s is %d", is_receive ? "of the receive" : "of the message", tag);
}
