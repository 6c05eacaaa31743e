/* What is known of datatypes: kept by their handles until these are freed, for the real library would take longer to tell it than a short message
   takes. */
#include "online.h"
#include <stdlib.h>

struct facts {
  bool is_predefined, is_committed, has_signature;
  struct signature signature;
};

static struct map known;

static struct facts *facts_of(MPI_Datatype type)
{
  struct facts *facts = map_get(&known, KEY(type));
  if (facts)
    return facts;
  int integers, addresses, types, combiner;
  facts = calloc(1, sizeof *facts);
  REAL(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
  /* Those of Fortran that have a precision or a range are predefined, too: they cannot be freed. */
  facts->is_predefined = facts->is_committed = combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
                                               combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  map_put(&known, KEY(type), facts);
  return facts;
}

struct signature signature_of(MPI_Datatype type)
{
  if (type == MPI_DATATYPE_NULL)
    return (struct signature){0};
  struct facts *facts = facts_of(type);
  if (!facts->has_signature) {
    facts->signature = make_signature(type);
    facts->has_signature = true;
  }
  return facts->signature;
}

void know_as(MPI_Datatype copy, MPI_Datatype type)
{
  struct facts *facts = malloc(sizeof *facts);
  /* What is found out now is not for each copy. */
  signature_of(type);
  *facts = *facts_of(type);
  map_put(&known, KEY(copy), facts);
}

void forget_type(MPI_Datatype type)
{
  free(map_get(&known, KEY(type)));
  map_put(&known, KEY(type), NULL);
}

bool is_predefined(MPI_Datatype type) { return facts_of(type)->is_predefined; }

/* Returns whether a type is committed: functions of the real library refuse others, also for no elements. */
static bool is_committed(MPI_Datatype type)
{
  char nothing;
  int position = 0;
  MPI_Errhandler kept;
  REAL(Comm_get_errhandler)(MPI_COMM_SELF, &kept);
  REAL(Comm_set_errhandler)(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  bool is_taken = REAL(Pack)(&nothing, 0, type, &nothing, 1, &position, MPI_COMM_SELF) == MPI_SUCCESS;
  REAL(Comm_set_errhandler)(MPI_COMM_SELF, kept);
  REAL(Errhandler_free)(&kept);
  return is_taken;
}

bool is_usable(MPI_Datatype type)
{
  if (type == MPI_DATATYPE_NULL)
    return false;
  struct facts *facts = facts_of(type);
  facts->is_committed = facts->is_committed || is_committed(type);
  return facts->is_committed;
}

int type_error(MPI_Datatype type)
{
  if (is_usable(type))
    return MPI_SUCCESS;
  return explained_error(MPI_ERR_TYPE, type == MPI_DATATYPE_NULL ? "it is MPI_DATATYPE_NULL" : "it is not committed: call MPI_Type_commit before");
}
