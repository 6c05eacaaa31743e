/* Regions of the program: MPI_Pcontrol, and the functions of include/pdes_region.h. */
#include "tracer.h"

/* Further arguments are ignored. */
int ti_c_Pcontrol(const int level, ...) {
    if (enter()) ti_region_level(level);
    int error = PMPI_Pcontrol(level);
    leave();
    return error;
}

/* Has no error code in Fortran. */
void ti_f_pcontrol(MPI_Fint *level) {
    if (enter()) ti_region_level(*level);
    PMPI_Pcontrol(*level);
    leave();
}

void ti_c_region_begin(const char *name) {
    if (enter()) ti_begin_region(name);
    leave();
}

void ti_c_region_end(void) {
    if (enter()) ti_end_region();
    leave();
}
