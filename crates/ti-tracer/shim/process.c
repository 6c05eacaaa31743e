/* Entering and leaving MPI. */
#define _GNU_SOURCE
#include "tracer.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

__thread int ti_depth;

#if defined(OPEN_MPI)
#define LIBRARY "Open MPI"
#elif defined(MPICH_VERSION) || defined(MPICH)
#define LIBRARY "MPICH"
#else
#error "expected the mpi.h of Open MPI or of MPICH, or of an implementation with MPICH's interface"
#endif

/* Handles are invalid in the library of another implementation. This call takes none, and is allowed before MPI_Init. */
static void check_library(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 8192];
    int length = 0;
    PMPI_Get_library_version(version, &length);
    if ((strstr(version, "Open MPI") != NULL) != (strcmp(LIBRARY, "Open MPI") == 0)) {
        version[strcspn(version, "\n,")] = 0;
        fprintf(stderr, "ti-tracer: built for " LIBRARY ", but the program runs with %s: build it with the mpicc of "
                        "that library\n", version);
        exit(1);
    }
}

static void start(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int rank, size, length = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Get_library_version(version, &length);
    version[length] = 0;
    ti_start(rank, size, KEY(MPI_COMM_WORLD), KEY(MPI_COMM_SELF), version);
}

int ti_c_Init(int *argc, char ***argv) {
    check_library();
    ti_depth++;
    int error = PMPI_Init(argc, argv);
    if (error == MPI_SUCCESS) start();
    leave();
    return error;
}

int ti_c_Init_thread(int *argc, char ***argv, int required, int *provided) {
    check_library();
    ti_depth++;
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (error == MPI_SUCCESS) start();
    leave();
    return error;
}

int ti_c_Finalize(void) {
    if (enter()) ti_finish();
    int error = PMPI_Finalize();
    leave();
    return error;
}

void ti_f_init(MPI_Fint *e) {
    MPI_Fint unused;
    static void *slot;
    check_library();
    ti_depth++;
    ((void (*)())ti_fortran(&slot, "init"))(e ? e : &unused);
    if (!e || *e == MPI_SUCCESS) start();
    leave();
}

void ti_f_init_thread(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *e) {
    check_library();
    ti_depth++;
    CALL_FORTRAN(init_thread, required, provided);
    if (*e == MPI_SUCCESS) start();
    leave();
}

void ti_f_finalize(MPI_Fint *e) {
    MPI_Fint unused;
    static void *slot;
    if (enter()) ti_finish();
    ((void (*)())ti_fortran(&slot, "finalize"))(e ? e : &unused);
    leave();
}

void *ti_fortran(void **slot, const char *name) {
    static const char *const forms[] = {"pmpi_%s_", "pmpi_%s", "pmpi_%s__"};
    for (size_t form = 0; !*slot && form < sizeof forms / sizeof *forms; form++) {
        char symbol[80];
        snprintf(symbol, sizeof symbol, forms[form], name);
        *slot = dlsym(RTLD_DEFAULT, symbol);
    }
    if (!*slot) {
        fprintf(stderr, "ti-tracer: the MPI library has no Fortran function pmpi_%s\n", name);
        exit(1);
    }
    return *slot;
}

#if defined(OPEN_MPI)
/* The common blocks behind the constant, one for each name mangling of compilers. */
#pragma weak mpi_fortran_in_place
#pragma weak mpi_fortran_in_place_
#pragma weak mpi_fortran_in_place__
extern int mpi_fortran_in_place, mpi_fortran_in_place_, mpi_fortran_in_place__;
int ti_is_fortran_in_place(const void *buffer) {
    return buffer && (buffer == &mpi_fortran_in_place || buffer == &mpi_fortran_in_place_ ||
                      buffer == &mpi_fortran_in_place__);
}
#else
/* Functions of Fortran call those of C, which see the constant of C. */
int ti_is_fortran_in_place(const void *buffer) {
    (void)buffer;
    return 0;
}
#endif
