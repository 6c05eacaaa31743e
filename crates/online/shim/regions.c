/* Regions of the program: MPI_Pcontrol, and the functions of pdes_region.h, by the names by which the tracer records them. */
#include "online.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the current regions, outermost first. */
static char **names;
static uint32_t depth, capacity;

/* Tells the simulator of the region that follows. */
static void post_region(const char *call, void *site)
{
  size_t length = 0;
  for (uint32_t i = 0; i < depth; i++)
    length += strlen(names[i]) + 1;
  name_call(call, site);
  count_computation();
  uint64_t block = new_block(length + sizeof "outside");
  char *path = payload(block);
  strcpy(path, depth ? "" : "outside");
  for (uint32_t i = 0; i < depth; i++)
    path += sprintf(path, i ? "/%s" : "%s", names[i]);
  post((struct operation){.kind = OP_REGION, .block = block, .count = depth ? length - 1 : strlen("outside")});
  begin_computation();
}

static bool has_regions(void) { return is_outside() && !own->is_finalized; }

static void begin_region(const char *name, const char *call, void *site)
{
  if (depth == capacity) {
    capacity = 2 * capacity + 8;
    names = realloc(names, capacity * sizeof *names);
  }
  names[depth] = strdup(*name ? name : "_");
  for (char *c = names[depth++]; *c; c++)
    *c = isspace((unsigned char)*c) ? '_' : *c;
  post_region(call, site);
}

void pdes_tracer_region_begin(const char *name)
{
  if (has_regions())
    begin_region(name, "pdes_region_begin", __builtin_return_address(0));
}

void pdes_tracer_region_end(void)
{
  if (!has_regions() || depth == 0)
    return;
  free(names[--depth]);
  post_region("pdes_region_end", __builtin_return_address(0));
}

/* A level of 3 or more begins the region `level-LEVEL`, its negative ends that one and those inside. Others are the standard's. */
INTERPOSE(Pcontrol)
int MPI_Pcontrol(const int level, ...)
{
  if (!has_regions() || (level >= -2 && level <= 2))
    return MPI_SUCCESS;
  char name[32];
  snprintf(name, sizeof name, "level-%u", level < 0 ? 0u - (unsigned)level : (unsigned)level);
  void *site = __builtin_return_address(0);
  if (level > 0) {
    begin_region(name, "MPI_Pcontrol", site);
    return MPI_SUCCESS;
  }
  uint32_t begun = depth;
  while (begun > 0 && strcmp(names[begun - 1], name))
    begun--;
  if (begun == 0)
    return MPI_SUCCESS;
  while (depth >= begun)
    free(names[--depth]);
  post_region("MPI_Pcontrol", site);
  return MPI_SUCCESS;
}
