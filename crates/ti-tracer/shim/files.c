/* MPI-IO. Offsets are in units of the elementary type, as in the call; amounts are in bytes. */
#include "unmodelled.h"

#define FILE_C(f) PMPI_File_f2c(*(f))

static struct argument mode(int number) {
    static const struct flag all[] = {{MPI_MODE_CREATE, "create"},
                                      {MPI_MODE_EXCL, "excl"},
                                      {MPI_MODE_RDONLY, "rdonly"},
                                      {MPI_MODE_WRONLY, "wronly"},
                                      {MPI_MODE_RDWR, "rdwr"},
                                      {MPI_MODE_APPEND, "append"},
                                      {MPI_MODE_SEQUENTIAL, "sequential"},
                                      {MPI_MODE_UNIQUE_OPEN, "unique_open"},
                                      {MPI_MODE_DELETE_ON_CLOSE, "delete_on_close"}};
    return flags("mode", number, all, COUNT(all));
}

static const char *whence(int from) {
    return from == MPI_SEEK_SET ? "set" : from == MPI_SEEK_CUR ? "cur" : "end";
}

void ti_hint(const char *name, const char *value);
static void hints(MPI_Info info) {
    static const char *const all[] = {"cb_nodes",           "cb_buffer_size",  "ind_rd_buffer_size", "ind_wr_buffer_size",
                                      "striping_factor",    "striping_unit",   "romio_cb_read",      "romio_cb_write",
                                      "romio_ds_read",      "romio_ds_write"};
    char value[32];
    for (int i = 0, found = 0; info != MPI_INFO_NULL && i < COUNT(all); i++) {
        PMPI_Info_get(info, all[i], sizeof value - 1, value, &found);
        if (found) ti_hint(all[i], value);
    }
}

/* A file that could not be opened is null. */
#define OPENED(c, m, f) mode(m), COMMUNICATOR("comm", c), FILE_OF("new", f)
int ti_c_File_open(MPI_Comm c, const char *s, int m, MPI_Info i, MPI_File *f) {
    int is_on = enter();
    int error = PMPI_File_open(c, s, m, i, f);
    MPI_File file = error == MPI_SUCCESS ? *f : MPI_FILE_NULL;
    if (is_on) {
        hints(i);
        unmodelled("MPI_File_open", 0, TEXT("name", s), OPENED(c, m, file));
    }
    leave();
    return error;
}
void ti_f_file_open(I c, const char *s, I m, I i, I f, I e, size_t len) {
    static void *slot;
    MPI_Fint unused;
    int is_on = enter();
    if (!e) e = &unused;
    ((void (*)())ti_fortran(&slot, "file_open"))(c, s, m, i, f, e, len);
    MPI_File file = *e == MPI_SUCCESS ? FILE_C(f) : MPI_FILE_NULL;
    if (is_on) {
        hints(PMPI_Info_f2c(*i));
        unmodelled("MPI_File_open", 0, BLANK_TEXT("name", s, (int)len), OPENED(COMM(c), *m, file));
    }
    leave();
}
C_ENDER(File_close, MPI_File, TI_FILE, "file")
F_ENDER(File_close, file_close, FILE_C, TI_FILE, "file")
C_CALL(File_delete, (const char *s, MPI_Info i), (s, i), TEXT("name", s))
void ti_f_file_delete(const char *s, I i, I e, size_t len) {
    static void *slot;
    MPI_Fint unused;
    if (enter()) unmodelled("MPI_File_delete", 0, BLANK_TEXT("name", s, (int)len));
    ((void (*)())ti_fortran(&slot, "file_delete"))(s, i, e ? e : &unused, len);
    leave();
}

#define SIZED(Name, name)                                                                            \
    C_CALL(Name, (MPI_File f, MPI_Offset n), (f, n), NUMBER("size", n), FILE_OF("file", f))          \
    F_CALL(Name, name, (I f, MPI_Offset *n), (f, n), NUMBER("size", *n), FILE_OF("file", FILE_C(f)))
SIZED(File_set_size, file_set_size)
SIZED(File_preallocate, file_preallocate)
C_CALL(File_sync, (MPI_File f), (f), FILE_OF("file", f))
F_CALL(File_sync, file_sync, (I f), (f), FILE_OF("file", FILE_C(f)))
C_CALL(File_set_atomicity, (MPI_File f, int flag), (f, flag), NUMBER("atomic", flag != 0), FILE_OF("file", f))
F_CALL(File_set_atomicity, file_set_atomicity, (I f, I flag), (f, flag), NUMBER("atomic", *flag != 0),
       FILE_OF("file", FILE_C(f)))
/* The pointer after the call, in units of the elementary type. */
static MPI_Offset position(MPI_File f) {
    MPI_Offset position = 0;
    PMPI_File_get_position(f, &position);
    return position;
}
C_MAKER(File_seek, (MPI_File f, MPI_Offset o, int w), (f, o, w), NUMBER("position", position(f)), FILE_OF("file", f))
F_MAKER(File_seek, file_seek, (I f, MPI_Offset *o, I w), (f, o, w), NUMBER("position", position(FILE_C(f))),
        FILE_OF("file", FILE_C(f)))
C_CALL(File_seek_shared, (MPI_File f, MPI_Offset o, int w), (f, o, w), NUMBER("offset", o), TEXT("whence", whence(w)),
       FILE_OF("file", f))
F_CALL(File_seek_shared, file_seek_shared, (I f, MPI_Offset *o, I w), (f, o, w), NUMBER("offset", *o),
       TEXT("whence", whence(*w)), FILE_OF("file", FILE_C(f)))

/* A file view: displacement, size and extent of its types, the blocks of the file type, and the data representation. */
void ti_blocks_of(MPI_Datatype type);
static int64_t extent(MPI_Datatype type) {
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(type, &lower, &extent);
    return extent;
}
#define VIEW(d, et, ft, f)                                                                           \
    NUMBER("disp", d), NUMBER("etype", bytes_of(1, et)), NUMBER("filetype", bytes_of(1, ft)),        \
        NUMBER("extent", extent(ft)), FILE_OF("file", f)
int ti_c_File_set_view(MPI_File f, MPI_Offset d, MPI_Datatype et, MPI_Datatype ft, const char *s, MPI_Info i) {
    if (enter()) {
        ti_blocks_of(ft);
        unmodelled("MPI_File_set_view", 0, TEXT("datarep", s), VIEW(d, et, ft, f));
    }
    int error = PMPI_File_set_view(f, d, et, ft, s, i);
    leave();
    return error;
}
void ti_f_file_set_view(I f, MPI_Offset *d, I et, I ft, const char *s, I i, I e, size_t len) {
    static void *slot;
    MPI_Fint unused;
    if (enter()) {
        ti_blocks_of(TYPE(ft));
        unmodelled("MPI_File_set_view", 0, BLANK_TEXT("datarep", s, (int)len), VIEW(*d, TYPE(et), TYPE(ft), FILE_C(f)));
    }
    ((void (*)())ti_fortran(&slot, "file_set_view"))(f, d, et, ft, s, i, e ? e : &unused, len);
    leave();
}

/* Blocking, non-blocking and split transfers, at the file pointer or at an explicit offset. */
#define C_BYTES NUMBER("bytes", bytes_of(n, t)), FILE_OF("file", f)
#define F_BYTES NUMBER("bytes", bytes_of(*n, TYPE(t))), FILE_OF("file", FILE_C(f))
#define TRANSFER(Name, name, CONST)                                                                  \
    C_CALL(Name, (MPI_File f, CONST void *b, int n, MPI_Datatype t, MPI_Status *s), (f, b, n, t, s), C_BYTES) \
    F_CALL(Name, name, (I f, void *b, I n, I t, I s), (f, b, n, t, s), F_BYTES)
#define TRANSFER_AT(Name, name, CONST)                                                               \
    C_CALL(Name, (MPI_File f, MPI_Offset o, CONST void *b, int n, MPI_Datatype t, MPI_Status *s), (f, o, b, n, t, s), \
           NUMBER("offset", o), C_BYTES)                                                             \
    F_CALL(Name, name, (I f, MPI_Offset *o, void *b, I n, I t, I s), (f, o, b, n, t, s), NUMBER("offset", *o), F_BYTES)
#define POST(Name, name, CONST)                                                                      \
    C_POST(Name, (MPI_File f, CONST void *b, int n, MPI_Datatype t), (f, b, n, t), C_BYTES)          \
    F_POST(Name, name, (I f, void *b, I n, I t), (f, b, n, t), F_BYTES)
#define POST_AT(Name, name, CONST)                                                                   \
    C_POST(Name, (MPI_File f, MPI_Offset o, CONST void *b, int n, MPI_Datatype t), (f, o, b, n, t), NUMBER("offset", o), \
           C_BYTES)                                                                                  \
    F_POST(Name, name, (I f, MPI_Offset *o, void *b, I n, I t), (f, o, b, n, t), NUMBER("offset", *o), F_BYTES)
#define BEGIN(Name, name, CONST)                                                                     \
    C_CALL(Name##_begin, (MPI_File f, CONST void *b, int n, MPI_Datatype t), (f, b, n, t), C_BYTES)  \
    F_CALL(Name##_begin, name##_begin, (I f, void *b, I n, I t), (f, b, n, t), F_BYTES)              \
    END(Name, name, CONST)
#define BEGIN_AT(Name, name, CONST)                                                                  \
    C_CALL(Name##_begin, (MPI_File f, MPI_Offset o, CONST void *b, int n, MPI_Datatype t), (f, o, b, n, t), \
           NUMBER("offset", o), C_BYTES)                                                             \
    F_CALL(Name##_begin, name##_begin, (I f, MPI_Offset *o, void *b, I n, I t), (f, o, b, n, t), NUMBER("offset", *o), \
           F_BYTES)                                                                                  \
    END(Name, name, CONST)
#define END(Name, name, CONST)                                                                       \
    C_CALL(Name##_end, (MPI_File f, CONST void *b, MPI_Status *s), (f, b, s), FILE_OF("file", f))    \
    F_CALL(Name##_end, name##_end, (I f, void *b, I s), (f, b, s), FILE_OF("file", FILE_C(f)))

#define FORMS(name, CONST)                                                                           \
    TRANSFER(File_##name, file_##name, CONST)                                                        \
    TRANSFER(File_##name##_all, file_##name##_all, CONST)                                            \
    TRANSFER(File_##name##_shared, file_##name##_shared, CONST)                                      \
    TRANSFER(File_##name##_ordered, file_##name##_ordered, CONST)                                    \
    TRANSFER_AT(File_##name##_at, file_##name##_at, CONST)                                           \
    TRANSFER_AT(File_##name##_at_all, file_##name##_at_all, CONST)                                   \
    POST(File_i##name, file_i##name, CONST)                                                          \
    POST(File_i##name##_all, file_i##name##_all, CONST)                                              \
    POST(File_i##name##_shared, file_i##name##_shared, CONST)                                        \
    POST_AT(File_i##name##_at, file_i##name##_at, CONST)                                             \
    POST_AT(File_i##name##_at_all, file_i##name##_at_all, CONST)                                     \
    BEGIN(File_##name##_all, file_##name##_all, CONST)                                               \
    BEGIN(File_##name##_ordered, file_##name##_ordered, CONST)                                       \
    BEGIN_AT(File_##name##_at_all, file_##name##_at_all, CONST)
FORMS(read, )
FORMS(write, const)
