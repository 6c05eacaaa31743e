/* Calls of POSIX on files below the directories that PDES_TRACE_FILES names. Calls that the MPI library makes are its own. */
#define _GNU_SOURCE
#include "tracer.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

void ti_posix(const char *call, int descriptor, const char *name, int64_t offset, int64_t bytes, int64_t own);

/* The next definition of a function, that of the C library. */
#define NEXT(name)                                                                                   \
    static __typeof__(&name) next;                                                                   \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Files that are recorded, by their descriptors; others cost no more than a look here. */
#define DESCRIPTORS 65536
static unsigned char is_recorded[DESCRIPTORS];
static int is_known(int fd) { return fd >= 0 && fd < DESCRIPTORS && is_recorded[fd]; }

/* Whether a name is below one of the directories, which colons separate. */
static int is_below(const char *name, const char *directories) {
    for (size_t length; *directories; directories += length + (directories[length] == ':')) {
        length = strcspn(directories, ":");
        if (length > 0 && strncmp(name, directories, length) == 0 && name[length] == '/') return 1;
    }
    return 0;
}

static const char *directories(void) {
    static const char *all;
    if (!all) {
        const char *found = getenv("PDES_TRACE_FILES");
        all = found ? found : "";
    }
    return all;
}

/* Records that a file was opened, if it is below a directory; its name is that of the kernel, absolute and without links. */
static void opened(int fd) {
    char link[40], name[4096];
    if (fd < 0 || fd >= DESCRIPTORS) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) return;
    name[length] = 0;
    if (!is_below(name, directories())) return;
    is_recorded[fd] = 1;
    ti_posix("open", fd, name, 0, 0, KEY(MPI_COMM_SELF));
}

/* Runs a call between entering and leaving; `record` may use its `result`. The program sees the error number of the call. */
#define CALL(type, call, record)                                                                     \
    int is_on = enter();                                                                             \
    type result = call;                                                                              \
    int error = errno;                                                                               \
    if (is_on) record;                                                                               \
    leave();                                                                                         \
    errno = error;                                                                                   \
    return result

/* The mode is there if the file may be created. */
#define MODE(flags)                                                                                  \
    mode_t mode = 0;                                                                                 \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                           \
        va_list rest;                                                                                \
        va_start(rest, flags);                                                                       \
        mode = (mode_t)va_arg(rest, int);                                                            \
        va_end(rest);                                                                                \
    }
#define OPEN(name)                                                                                   \
    int ti_p_##name(const char *path, int flags, ...) {                                              \
        NEXT(name);                                                                                  \
        MODE(flags);                                                                                 \
        if (!*directories()) return next(path, flags, mode);                                          \
        CALL(int, next(path, flags, mode), opened(result));                                          \
    }
#define OPEN_AT(name)                                                                                \
    int ti_p_##name(int directory, const char *path, int flags, ...) {                               \
        NEXT(name);                                                                                  \
        MODE(flags);                                                                                 \
        if (!*directories()) return next(directory, path, flags, mode);                               \
        CALL(int, next(directory, path, flags, mode), opened(result));                               \
    }
#define CREATE(name)                                                                                 \
    int ti_p_##name(const char *path, mode_t mode) {                                                 \
        NEXT(name);                                                                                  \
        if (!*directories()) return next(path, mode);                                                 \
        CALL(int, next(path, mode), opened(result));                                                 \
    }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
CREATE(creat)
CREATE(creat64)

/* An access that has moved `bytes`, up to the position of the file. */
static void moved(const char *call, int fd, ssize_t bytes) {
    if (bytes <= 0) return;
    off64_t end = lseek64(fd, 0, SEEK_CUR);
    if (end >= bytes) ti_posix(call, fd, "", end - bytes, bytes, 0);
}
static void moved_at(const char *call, int fd, off64_t offset, ssize_t bytes) {
    if (bytes > 0) ti_posix(call, fd, "", offset, bytes, 0);
}
#define ACCESS(name, verb, PARAMETERS, ARGUMENTS)                                                    \
    ssize_t ti_p_##name PARAMETERS {                                                                 \
        NEXT(name);                                                                                  \
        if (!is_known(fd)) return next ARGUMENTS;                                                    \
        CALL(ssize_t, next ARGUMENTS, moved(verb, fd, result));                                      \
    }
#define ACCESS_AT(name, verb, PARAMETERS, ARGUMENTS)                                                 \
    ssize_t ti_p_##name PARAMETERS {                                                                 \
        NEXT(name);                                                                                  \
        if (!is_known(fd)) return next ARGUMENTS;                                                    \
        CALL(ssize_t, next ARGUMENTS, moved_at(verb, fd, offset, result));                           \
    }
ACCESS(read, "read_at", (int fd, void *data, size_t bytes), (fd, data, bytes))
ACCESS(write, "write_at", (int fd, const void *data, size_t bytes), (fd, data, bytes))
ACCESS(readv, "read_at", (int fd, const struct iovec *data, int count), (fd, data, count))
ACCESS(writev, "write_at", (int fd, const struct iovec *data, int count), (fd, data, count))
ACCESS_AT(pread, "read_at", (int fd, void *data, size_t bytes, off_t offset), (fd, data, bytes, offset))
ACCESS_AT(pread64, "read_at", (int fd, void *data, size_t bytes, off64_t offset), (fd, data, bytes, offset))
ACCESS_AT(pwrite, "write_at", (int fd, const void *data, size_t bytes, off_t offset), (fd, data, bytes, offset))
ACCESS_AT(pwrite64, "write_at", (int fd, const void *data, size_t bytes, off64_t offset), (fd, data, bytes, offset))

/* Recorded before the call: afterwards the descriptor may be that of another file. */
int ti_p_close(int fd) {
    NEXT(close);
    if (!is_known(fd)) return next(fd);
    int is_on = enter();
    is_recorded[fd] = 0;
    if (is_on) ti_posix("close", fd, "", 0, 0, 0);
    int result = next(fd), error = errno;
    leave();
    errno = error;
    return result;
}
#define SYNC(name)                                                                                   \
    int ti_p_##name(int fd) {                                                                        \
        NEXT(name);                                                                                  \
        if (!is_known(fd)) return next(fd);                                                          \
        CALL(int, next(fd), ti_posix("sync", fd, "", 0, 0, 0));                                      \
    }
SYNC(fsync)
SYNC(fdatasync)
