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
int ti_enter(const unsigned char *function, int length);
void ti_leave(void);
void ti_failed(void);
void ti_send(const char *verb, int to, int tag, int64_t bytes, int64_t communicator);
void ti_isend(const char *verb, int to, int tag, int64_t bytes, int64_t communicator);
void ti_irecv(const char *verb, int from, int tag, int64_t bytes, int64_t communicator);
void ti_bind(int64_t handle, uintptr_t address, int is_persistent);
void ti_begin_recv(int from, int tag, int64_t bytes, int64_t communicator);
void ti_recv(int from, int tag, int64_t bytes, int64_t communicator, int actual_source, int actual_tag);
void ti_begin_send_recv(const char *verb, const struct exchange *exchange);
void ti_send_recv(const char *verb, const struct exchange *exchange);
void ti_begin_probe(int from, int tag, int64_t communicator);
void ti_probe(int from, int tag, int64_t communicator, int found, int actual_source, int actual_tag);
void ti_matched(int64_t message, int from, int tag, int64_t bytes, int64_t communicator);
void ti_receive_matched(int64_t message, int64_t bytes, int posts);
void ti_collective(const char *verb, int posts, int64_t communicator, const int64_t *fields, int len);
void ti_neighbors(int posts, int64_t communicator, int outgoing, const int64_t *to, const int64_t *send_bytes,
                  int incoming, const int64_t *from, const int64_t *recv_bytes);
void ti_add_request(int64_t handle, uintptr_t address, int is_null);
int ti_wants_status(int position);
void ti_complete(int position);
void ti_complete_with(int position, int source, int tag, int is_cancelled);
void ti_truncated(int position, int64_t bytes);
void ti_begin_completion(const char *verb);
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
static inline int enter_function(const char *function, int length) {
    return ti_depth++ == 0 ? ti_enter((const unsigned char *)function, length) : 0;
}
/* The functions are called ti_c_Send, ti_f_send, ti_p_read and so on: without "ti_" that is what the recorder calls them. */
#define enter() enter_function(__func__ + 3, sizeof __func__ - 4)
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

static inline int class_of(int error) {
    int class = error;
    if (error != MPI_SUCCESS) PMPI_Error_class(error, &class);
    return class;
}

/* Whether MPI has refused an argument: then the call has done nothing. */
static inline int is_refused(int error) {
    static const int all[] = {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE,     MPI_ERR_TAG, MPI_ERR_COMM, MPI_ERR_RANK,
                              MPI_ERR_ROOT,   MPI_ERR_GROUP, MPI_ERR_OP,       MPI_ERR_ARG, MPI_ERR_DIMS, MPI_ERR_TOPOLOGY,
                              MPI_ERR_REQUEST, MPI_ERR_INFO, MPI_ERR_UNSUPPORTED_OPERATION};
    int class = class_of(error);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (class == all[i]) return 1;
    return 0;
}

/* After a call that was recorded before: what was refused is taken back. */
static inline void check(int is_on, int error) {
    if (is_on && error != MPI_SUCCESS && is_refused(error)) ti_failed();
}

/* Whether a blocking receive has taken a message, which may be longer than the buffer; any other error counts as a failed call. */
static inline int has_received(int is_on, int error) {
    if (!is_on) return 0;
    if (error == MPI_SUCCESS || class_of(error) == MPI_ERR_TRUNCATE) return 1;
    ti_failed();
    return 0;
}

/* Size of a message that was received, also of one that was longer than the buffer. */
static inline int64_t size_of_message(const MPI_Status *status) {
    MPI_Count size = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &size);
    return size == MPI_UNDEFINED ? 0 : size;
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
