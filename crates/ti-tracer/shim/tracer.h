/* Shared by the MPI functions: entering and leaving, handles as numbers, C and Fortran. */
#ifndef TI_TRACER_H
#define TI_TRACER_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

/* The recorder, in src/interface.rs. */
struct exchange {
    int to, send_tag;
    int64_t send_bytes;
    int from, recv_tag;
    int64_t recv_bytes;
    int64_t communicator;
    int actual_source, actual_tag;
};
void ti_start(int rank, int world, int64_t comm_world, int64_t comm_self, const char *library);
void ti_finish(void);
int ti_enter(void);
void ti_leave(void);
void ti_send(const char *verb, int to, int tag, int64_t bytes, int64_t communicator);
void ti_isend(const char *verb, int to, int tag, int64_t bytes, int64_t communicator);
void ti_irecv(const char *verb, int from, int tag, int64_t bytes, int64_t communicator);
void ti_bind(int64_t handle, uintptr_t address, int is_persistent);
void ti_recv(int from, int tag, int64_t bytes, int64_t communicator, int actual_source, int actual_tag);
void ti_send_recv(const char *verb, const struct exchange *exchange);
void ti_probe(int from, int tag, int64_t communicator, int found, int actual_source, int actual_tag);
void ti_matched(int64_t message, int from, int tag, int64_t communicator);
void ti_receive_matched(int64_t message, int64_t bytes, int posts);
void ti_collective(const char *verb, int posts, int64_t communicator, const int64_t *fields, int len);
void ti_neighbors(int posts, int64_t communicator, int outgoing, const int64_t *to, const int64_t *send_bytes,
                  int incoming, const int64_t *from, const int64_t *recv_bytes);
void ti_add_request(int64_t handle, uintptr_t address, int is_null);
int ti_wants_status(int position);
void ti_complete(int position);
void ti_complete_with(int position, int source, int tag, int is_cancelled);
void ti_completion(const char *verb);
void ti_get_status(int flag);
void ti_request(const char *verb);
unsigned ti_next_communicator(void);
void ti_new_communicator(const char *verb, int64_t parent, int64_t handle, unsigned number, const int *members,
                         int len);
void ti_free_communicator(const char *function, int64_t handle);
void ti_begin_region(const char *name);
void ti_end_region(void);
void ti_region_level(int level);

/* Handles are pointers (Open MPI) or integers (MPICH). */
#define KEY(handle) ((int64_t)(intptr_t)(handle))
#define ADDRESS(pointer) ((uintptr_t)(pointer))

/* Handles of Fortran. */
#define COMM(f) PMPI_Comm_f2c(*(f))
#define TYPE(f) PMPI_Type_f2c(*(f))
#define REQUEST(f) PMPI_Request_f2c(*(f))
#define F_STATUS_INTS (sizeof(MPI_Status) / sizeof(MPI_Fint))

/* Only the outermost call of a thread is recorded, not the calls that the MPI library makes inside. */
extern __thread int ti_depth;
static inline int enter(void) { return ti_depth++ == 0 ? ti_enter() : 0; }
static inline void leave(void) {
    /* Inside: what the tracer itself calls is not recorded. */
    if (ti_depth == 1) ti_leave();
    ti_depth--;
}

/* Names of peers and tags in a trace. */
static inline int peer(int rank) {
    return rank == MPI_PROC_NULL ? -666 : rank == MPI_ANY_SOURCE ? -555 : rank;
}
static inline int tag_or_any(int tag) { return tag == MPI_ANY_TAG ? -444 : tag; }

static inline int64_t bytes_of(int64_t count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (count == 0 || type == MPI_DATATYPE_NULL) return 0;
    PMPI_Type_size_x(type, &size);
    return size > 0 ? count * size : 0;
}

/* Whether a buffer is MPI_IN_PLACE of Fortran. */
int ti_is_fortran_in_place(const void *buffer);
#define IN_PLACE_C(buffer) ((buffer) == MPI_IN_PLACE)
#define IN_PLACE_F(buffer) ti_is_fortran_in_place(buffer)

/* Finds a function of the Fortran interface; ends the program where there is none. */
void *ti_fortran(void **slot, const char *name);

/* Calls pmpi_NAME with these arguments and `e`, the error code, which mpi_f08 may leave out. All arguments are pointers. */
#define CALL_FORTRAN(name, ...)                                                                      \
    MPI_Fint unused_error;                                                                           \
    if (!e) e = &unused_error;                                                                       \
    static void *ti_slot_##name;                                                                     \
    ((void (*)())ti_fortran(&ti_slot_##name, #name))(__VA_ARGS__, e)

#define UNWRAP(...) __VA_ARGS__

#endif
