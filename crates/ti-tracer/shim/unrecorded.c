/* Calls that cannot be replayed: counted by name. The Fortran forms have pointers only, and at the end the lengths of texts. */
#include "tracer.h"

#define SKIP(Name, PARAMETERS, ARGUMENTS)                                                            \
    int ti_c_##Name PARAMETERS {                                                                     \
        if (enter()) ti_skip("MPI_" #Name);                                                          \
        int error = PMPI_##Name ARGUMENTS;                                                           \
        leave();                                                                                     \
        return error;                                                                                \
    }

#define SKIP_F(Name, name, PARAMETERS, ...)                                                          \
    void ti_f_##name PARAMETERS {                                                                    \
        static void *slot;                                                                           \
        if (enter()) ti_skip("MPI_" #Name);                                                          \
        ((void (*)())ti_fortran(&slot, #name))(__VA_ARGS__);                                         \
        leave();                                                                                     \
    }

typedef void *P;
#define SKIP_F2(Name, name) SKIP_F(Name, name, (P a, P b), a, b)
#define SKIP_F3(Name, name) SKIP_F(Name, name, (P a, P b, P c), a, b, c)
#define SKIP_F4(Name, name) SKIP_F(Name, name, (P a, P b, P c, P d), a, b, c, d)
#define SKIP_F5(Name, name) SKIP_F(Name, name, (P a, P b, P c, P d, P e), a, b, c, d, e)
#define SKIP_F6(Name, name) SKIP_F(Name, name, (P a, P b, P c, P d, P e, P f), a, b, c, d, e, f)
#define SKIP_F7(Name, name) SKIP_F(Name, name, (P a, P b, P c, P d, P e, P f, P g), a, b, c, d, e, f, g)
#define SKIP_F8(Name, name) SKIP_F(Name, name, (P a, P b, P c, P d, P e, P f, P g, P h), a, b, c, d, e, f, g, h)
#define SKIP_F9(Name, name)                                                                          \
    SKIP_F(Name, name, (P a, P b, P c, P d, P e, P f, P g, P h, P i), a, b, c, d, e, f, g, h, i)
#define SKIP_F10(Name, name)                                                                         \
    SKIP_F(Name, name, (P a, P b, P c, P d, P e, P f, P g, P h, P i, P j), a, b, c, d, e, f, g, h, i, j)

/* One-sided communication. */
SKIP(Win_create, (void *b, MPI_Aint n, int u, MPI_Info i, MPI_Comm c, MPI_Win *w), (b, n, u, i, c, w))
SKIP_F7(Win_create, win_create)
SKIP(Win_allocate, (MPI_Aint n, int u, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w), (n, u, i, c, b, w))
SKIP_F7(Win_allocate, win_allocate)
SKIP(Win_allocate_shared, (MPI_Aint n, int u, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w), (n, u, i, c, b, w))
SKIP_F7(Win_allocate_shared, win_allocate_shared)
SKIP(Win_create_dynamic, (MPI_Info i, MPI_Comm c, MPI_Win *w), (i, c, w))
SKIP_F4(Win_create_dynamic, win_create_dynamic)
SKIP(Win_free, (MPI_Win * w), (w))
SKIP_F2(Win_free, win_free)
SKIP(Win_fence, (int a, MPI_Win w), (a, w))
SKIP_F3(Win_fence, win_fence)
SKIP(Win_start, (MPI_Group g, int a, MPI_Win w), (g, a, w))
SKIP_F4(Win_start, win_start)
SKIP(Win_post, (MPI_Group g, int a, MPI_Win w), (g, a, w))
SKIP_F4(Win_post, win_post)
SKIP(Win_complete, (MPI_Win w), (w))
SKIP_F2(Win_complete, win_complete)
SKIP(Win_wait, (MPI_Win w), (w))
SKIP_F2(Win_wait, win_wait)
SKIP(Win_lock, (int l, int r, int a, MPI_Win w), (l, r, a, w))
SKIP_F5(Win_lock, win_lock)
SKIP(Win_unlock, (int r, MPI_Win w), (r, w))
SKIP_F3(Win_unlock, win_unlock)
SKIP(Win_lock_all, (int a, MPI_Win w), (a, w))
SKIP_F3(Win_lock_all, win_lock_all)
SKIP(Win_unlock_all, (MPI_Win w), (w))
SKIP_F2(Win_unlock_all, win_unlock_all)
SKIP(Win_flush, (int r, MPI_Win w), (r, w))
SKIP_F3(Win_flush, win_flush)
SKIP(Win_flush_all, (MPI_Win w), (w))
SKIP_F2(Win_flush_all, win_flush_all)
#define ORIGIN const void *b, int n, MPI_Datatype t, int r, MPI_Aint d, int tn, MPI_Datatype tt
SKIP(Put, (ORIGIN, MPI_Win w), (b, n, t, r, d, tn, tt, w))
SKIP_F9(Put, put)
SKIP(Get, (void *b, int n, MPI_Datatype t, int r, MPI_Aint d, int tn, MPI_Datatype tt, MPI_Win w),
     (b, n, t, r, d, tn, tt, w))
SKIP_F9(Get, get)
SKIP(Accumulate, (ORIGIN, MPI_Op o, MPI_Win w), (b, n, t, r, d, tn, tt, o, w))
SKIP_F10(Accumulate, accumulate)
SKIP(Get_accumulate,
     (const void *b, int n, MPI_Datatype t, void *g, int gn, MPI_Datatype gt, int r, MPI_Aint d, int tn,
      MPI_Datatype tt, MPI_Op o, MPI_Win w),
     (b, n, t, g, gn, gt, r, d, tn, tt, o, w))
SKIP_F(Get_accumulate, get_accumulate, (P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k, P l, P m), a, b, c, d, e,
       f, g, h, i, j, k, l, m)
SKIP(Fetch_and_op, (const void *b, void *g, MPI_Datatype t, int r, MPI_Aint d, MPI_Op o, MPI_Win w),
     (b, g, t, r, d, o, w))
SKIP_F8(Fetch_and_op, fetch_and_op)
SKIP(Compare_and_swap, (const void *b, const void *x, void *g, MPI_Datatype t, int r, MPI_Aint d, MPI_Win w),
     (b, x, g, t, r, d, w))
SKIP_F8(Compare_and_swap, compare_and_swap)
SKIP(Rput, (ORIGIN, MPI_Win w, MPI_Request *q), (b, n, t, r, d, tn, tt, w, q))
SKIP_F10(Rput, rput)
SKIP(Rget,
     (void *b, int n, MPI_Datatype t, int r, MPI_Aint d, int tn, MPI_Datatype tt, MPI_Win w, MPI_Request *q),
     (b, n, t, r, d, tn, tt, w, q))
SKIP_F10(Rget, rget)

/* MPI-IO. Texts of Fortran have their lengths behind all arguments. */
SKIP(File_open, (MPI_Comm c, const char *s, int m, MPI_Info i, MPI_File *f), (c, s, m, i, f))
SKIP_F7(File_open, file_open)
SKIP(File_close, (MPI_File * f), (f))
SKIP_F2(File_close, file_close)
#define TRANSFER(Name, name, CONST)                                                                  \
    SKIP(Name, (MPI_File f, CONST void *b, int n, MPI_Datatype t, MPI_Status *s), (f, b, n, t, s))   \
    SKIP_F6(Name, name)
TRANSFER(File_read, file_read, )
TRANSFER(File_read_all, file_read_all, )
TRANSFER(File_read_shared, file_read_shared, )
TRANSFER(File_read_ordered, file_read_ordered, )
TRANSFER(File_write, file_write, const)
TRANSFER(File_write_all, file_write_all, const)
TRANSFER(File_write_shared, file_write_shared, const)
TRANSFER(File_write_ordered, file_write_ordered, const)
#define TRANSFER_AT(Name, name, CONST)                                                               \
    SKIP(Name, (MPI_File f, MPI_Offset o, CONST void *b, int n, MPI_Datatype t, MPI_Status *s), (f, o, b, n, t, s)) \
    SKIP_F7(Name, name)
TRANSFER_AT(File_read_at, file_read_at, )
TRANSFER_AT(File_read_at_all, file_read_at_all, )
TRANSFER_AT(File_write_at, file_write_at, const)
TRANSFER_AT(File_write_at_all, file_write_at_all, const)

/* Processes that come later, other groups, and communicators that are there some time after the call. */
SKIP(Comm_spawn,
     (const char *s, char **v, int n, MPI_Info i, int r, MPI_Comm c, MPI_Comm *w, int *e), (s, v, n, i, r, c, w, e))
SKIP_F(Comm_spawn, comm_spawn, (P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k), a, b, c, d, e, f, g, h, i, j, k)
SKIP(Comm_spawn_multiple,
     (int k, char **s, char ***v, const int *n, const MPI_Info *i, int r, MPI_Comm c, MPI_Comm *w, int *e),
     (k, s, v, n, i, r, c, w, e))
SKIP_F(Comm_spawn_multiple, comm_spawn_multiple, (P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k, P l), a, b, c, d,
       e, f, g, h, i, j, k, l)
SKIP(Comm_connect, (const char *s, MPI_Info i, int r, MPI_Comm c, MPI_Comm *w), (s, i, r, c, w))
SKIP_F7(Comm_connect, comm_connect)
SKIP(Comm_accept, (const char *s, MPI_Info i, int r, MPI_Comm c, MPI_Comm *w), (s, i, r, c, w))
SKIP_F7(Comm_accept, comm_accept)
SKIP(Intercomm_create, (MPI_Comm a, int l, MPI_Comm b, int r, int t, MPI_Comm *w), (a, l, b, r, t, w))
SKIP_F7(Intercomm_create, intercomm_create)
SKIP(Comm_idup, (MPI_Comm c, MPI_Comm *w, MPI_Request *q), (c, w, q))
SKIP_F4(Comm_idup, comm_idup)
