/* Signatures of datatypes: the sequence of the basic types of which an element consists, however it is written, as a polynomial hash. That of
   one sequence after another follows from those of both, so that counts cost their logarithm. Basic types are told apart by size, and floating-point
   numbers from others: a complex number is two of them. */
#include "online.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Codes of basic types: the logarithm of the size after one of these. */
enum { OTHERS = 1, FLOATS = 7, CODES = 16, CODE_BITS = 4, SHOWN = 64 / CODE_BITS };

static const uint64_t PRIME = ((uint64_t)1 << 61) - 1, BASE = 0x12345678abcdef01;

static uint64_t product(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b % PRIME); }

static uint64_t power(uint64_t exponent)
{
  uint64_t result = 1;
  for (uint64_t base = BASE; exponent > 0; exponent >>= 1, base = product(base, base))
    result = exponent & 1 ? product(result, base) : result;
  return result;
}

static const struct signature EMPTY = {.is_known = 1};

static struct signature joined(struct signature a, struct signature b)
{
  if (!a.is_known || !b.is_known)
    return (struct signature){0};
  return (struct signature){.is_known = 1,
                            .bytes = a.bytes + b.bytes,
                            .length = a.length + b.length,
                            .first = a.length < SHOWN ? a.first | b.first << CODE_BITS * a.length : a.first,
                            .hash = (product(a.hash, power(b.length)) + b.hash) % PRIME};
}

static struct signature repeated(struct signature one, uint64_t number)
{
  struct signature result = EMPTY;
  for (; number > 0; number >>= 1, one = number ? joined(one, one) : one)
    if (number & 1)
      result = joined(result, one);
  return result;
}

/* Returns the signature of basic types of one kind; that of those of an unusual size is not known. */
static struct signature basic(int kind, uint64_t bytes, uint64_t number)
{
  int logarithm = 0;
  while (logarithm < 5 && (uint64_t)1 << logarithm < bytes)
    logarithm++;
  if ((uint64_t)1 << logarithm != bytes || logarithm == 5)
    return (struct signature){0};
  uint64_t code = (uint64_t)(kind + logarithm);
  return repeated((struct signature){.is_known = 1, .bytes = bytes, .length = 1, .first = code, .hash = code}, number);
}

static bool is_one_of(const char *name, const char *const *names)
{
  while (*names && strcmp(name, *names))
    names++;
  return *names != NULL;
}

/* Returns the signature of a predefined type, by its name. */
static struct signature predefined(MPI_Datatype type, uint64_t bytes)
{
  static const char *const wild[] = {"BYTE", "PACKED", NULL}, *const twice[] = {"2INT", "2INTEGER", "2REAL", "2DOUBLE_PRECISION", NULL},
                           *const places[] = {"FLOAT_INT", "DOUBLE_INT", "LONG_DOUBLE_INT", "LONG_INT", "SHORT_INT", NULL};
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length;
  REAL(Type_get_name)(type, name, &length);
  const char *rest = name + strlen("MPI_");
  if (strncmp(name, "MPI_", strlen("MPI_")) || is_one_of(rest, wild))
    return (struct signature){0};
  int kind = strstr(rest, "FLOAT") || strstr(rest, "DOUBLE") || strstr(rest, "REAL") ? FLOATS : OTHERS;
  if (is_one_of(rest, places))
    return joined(basic(kind, bytes - sizeof(int), 1), basic(OTHERS, sizeof(int), 1));
  if (is_one_of(rest, twice))
    return basic(kind, bytes / 2, 2);
  /* pairs of complex numbers are too large for it */
  return strstr(rest, "COMPLEX") ? basic(FLOATS, bytes / 2, 2) : basic(kind, bytes, 1);
}

/* Returns the signature of a type that is made of others. */
static struct signature derived(MPI_Datatype type, uint64_t bytes, int integers, int addresses, int types, int combiner)
{
  int *numbers = malloc((integers + 1) * sizeof *numbers);
  MPI_Aint *places = malloc((addresses + 1) * sizeof *places);
  MPI_Datatype *parts = malloc((types + 1) * sizeof *parts);
  REAL(Type_get_contents)(type, integers, addresses, types, numbers, places, parts);
  struct signature all = EMPTY;
  for (int i = 0; i < types; i++) {
    uint64_t size = packed_size(1, parts[i]), number = combiner == MPI_COMBINER_STRUCT ? (uint64_t)numbers[1 + i] : size ? bytes / size : 0;
    if (size > 0 && number > 0)
      all = joined(all, repeated(signature_of(parts[i]), number));
    drop_type(parts[i]);
  }
  free(numbers);
  free(places);
  free(parts);
  return all;
}

struct signature make_signature(MPI_Datatype type)
{
  int integers, addresses, types, combiner;
  uint64_t bytes = packed_size(1, type);
  REAL(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
  struct signature made = bytes == 0                             ? EMPTY
                          : combiner == MPI_COMBINER_NAMED       ? predefined(type, bytes)
                          : combiner == MPI_COMBINER_F90_REAL    ? basic(FLOATS, bytes, 1)
                          : combiner == MPI_COMBINER_F90_COMPLEX ? basic(FLOATS, bytes / 2, 2)
                          : combiner == MPI_COMBINER_F90_INTEGER ? basic(OTHERS, bytes, 1)
                                                                 : derived(type, bytes, integers, addresses, types, combiner);
  /* Equal basic types are the first one, so that their numbers do not matter. */
  struct signature one = {.is_known = 1, .bytes = made.length ? made.bytes / made.length : 0, .length = 1, .first = made.first % CODES};
  one.hash = one.first;
  return made.length > 1 && repeated(one, made.length).hash == made.hash ? one : made;
}

static int code_at(struct signature s, uint64_t place)
{
  return s.first >> CODE_BITS * (s.length < SHOWN ? place % s.length : place) & (CODES - 1);
}

/* Returns whether data of one signature may be received as those of another one: the first basic types, and all of whole elements of both, are
   the same. */
static bool agree(struct signature sent, uint64_t bytes, struct signature received)
{
  if (!sent.is_known || !received.is_known || !sent.length || !received.length || (sent.length == received.length && sent.hash == received.hash))
    return true;
  uint64_t length = bytes / sent.bytes * sent.length, number = length / received.length, common = number * received.length;
  for (uint64_t i = 0; i < length && i < SHOWN; i++)
    if (code_at(sent, i) != code_at(received, i))
      return false;
  return common % sent.length || repeated(sent, common / sent.length).hash == repeated(received, number).hash;
}

/* ---- warnings ---- */

/* Writes what an element consists of. */
static const char *described(struct signature s, char *text, size_t size)
{
  int at = 0;
  if (s.length == 1) {
    snprintf(text, size, "%s of %llu B", s.first >= FLOATS ? "floating-point numbers" : "integers or others", (unsigned long long)s.bytes);
    return text;
  }
  at += snprintf(text, size, "sequences of (");
  for (uint64_t i = 0; i < s.length && i < SHOWN; i++) {
    int code = code_at(s, i), kind = code >= FLOATS ? FLOATS : OTHERS;
    at += snprintf(text + at, size - at, "%s%s%d", i ? ", " : "", kind == FLOATS ? "float" : "int", 8 << (code - kind));
  }
  snprintf(text + at, size - at, "%s)", s.length > SHOWN ? ", ..." : "");
  return text;
}

/* Returns whether nothing was said so far of two places in the program, and notes that something is; not of many. */
static bool is_first_of(const void *site, const void *other)
{
  enum { MOST = 16 };
  static const void *said[MOST][2];
  static int length;
  for (int i = 0; i < length; i++)
    if (said[i][0] == site && said[i][1] == other)
      return false;
  if (length == MOST)
    return false;
  said[length][0] = site;
  said[length++][1] = other;
  return true;
}

void set_signature(uint64_t block, struct signature signature)
{
  block_at(block)->elements = signature;
  block_at(block)->site = (uint64_t)current_call().site;
}

void check_signature(uint64_t block, uint64_t bytes, MPI_Datatype type, int from, struct call by)
{
  struct signature sent = block_at(block)->elements;
  if (!sent.is_known || agree(sent, bytes, signature_of(type)))
    return;
  const void *site = (void *)block_at(block)->site;
  if (!is_first_of(by.site, site))
    return;
  /* Ranks are forked by one process: addresses of one are those of all. */
  char place[PATH_MAX] = "", ours[200], theirs[200];
  called_from(place, sizeof place, site);
  warn(by, "%s takes elements from rank %d that are %s for %s (sent by a call%s)", by.name, from, described(sent, theirs, sizeof theirs),
       described(signature_of(type), ours, sizeof ours), place);
}

void warn_of_less(uint64_t expected, uint64_t bytes, int from, struct call by)
{
  if (is_first_of(by.site, NULL))
    warn(by, "%s expects %llu B from rank %d, which gives %llu B: amounts must be equal", by.name, (unsigned long long)expected, from,
         (unsigned long long)bytes);
}
