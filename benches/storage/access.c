/* Writes a file, then reads it: access FILE KIND BYTES PIECES.
 * KIND is independent, nonblocking, collective or posix; each piece has BYTES, a power of two. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 8

/* The data of pieces come from all of a buffer that is larger than caches, so that memory bounds every access. */
#define BUFFER (256 << 20)
static char *piece(char *data, int bytes, int number) { return data + (size_t)number * bytes % BUFFER; }

static void expect(int is_true) {
    if (!is_true) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void by_mpi(MPI_File file, const char *kind, char *buffer, int bytes, int pieces, int writes) {
    MPI_Request requests[AT_ONCE];
    for (int i = 0; i < pieces; i++) {
        MPI_Offset at = (MPI_Offset)i * bytes;
        char *data = piece(buffer, bytes, i);
        if (*kind == 'n') {
            MPI_Request *one = &requests[i % AT_ONCE];
            if (writes) MPI_File_iwrite_at(file, at, data, bytes, MPI_BYTE, one);
            else MPI_File_iread_at(file, at, data, bytes, MPI_BYTE, one);
            if ((i + 1) % AT_ONCE == 0) MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
        } else if (*kind == 'c') {
            if (writes) MPI_File_write_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
            else MPI_File_read_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        } else if (writes) {
            MPI_File_write_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        } else {
            MPI_File_read_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        }
    }
}

static void by_posix(const char *name, char *buffer, int bytes, int pieces, int writes) {
    int fd = open(name, writes ? O_CREAT | O_TRUNC | O_WRONLY : O_RDONLY, 0600);
    expect(fd >= 0);
    for (int i = 0; i < pieces; i++) {
        char *data = piece(buffer, bytes, i);
        expect((writes ? write(fd, data, bytes) : read(fd, data, bytes)) == bytes);
    }
    close(fd);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int bytes = atoi(argv[3]), pieces = atoi(argv[4]);
    char *data = malloc(BUFFER);
    memset(data, 1, BUFFER);
    for (int phase = 0; phase < 2; phase++) {
        if (*argv[2] == 'p') {
            by_posix(argv[1], data, bytes, pieces, phase == 0);
            continue;
        }
        MPI_File file;
        int mode = phase == 0 ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
        MPI_File_open(MPI_COMM_SELF, argv[1], mode, MPI_INFO_NULL, &file);
        by_mpi(file, argv[2], data, bytes, pieces, phase == 0);
        MPI_File_close(&file);
    }
    MPI_Finalize();
    return 0;
}
