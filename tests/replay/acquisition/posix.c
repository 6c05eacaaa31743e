/* Files by calls of POSIX below a directory, one elsewhere, and one by MPI-IO. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static void expect(int is_true) {
    if (!is_true) abort();
}

int main(int argc, char **argv) {
    char name[4096], data[2000] = {0};
    int rank;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s/own %d", argv[1], rank);
    int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    expect(fd >= 0 && write(fd, data, 100) == 100);
    struct iovec two[2] = {{data, 20}, {data, 30}};
    expect(writev(fd, two, 2) == 50);
    expect(lseek(fd, 1000, SEEK_SET) == 1000 && write(fd, data, 10) == 10);
    expect(fsync(fd) == 0);
    expect(pread(fd, data, 30, 120) == 30);
    expect(lseek(fd, 0, SEEK_SET) == 0 && read(fd, data, 20) == 20);
    /* To the end of the file, and nothing behind it. */
    expect(read(fd, data, 2000) == 990 && read(fd, data, 2000) == 0);
    errno = 0;
    expect(write(fd, NULL, 10) == -1 && errno == EFAULT);
    expect(close(fd) == 0 && close(fd) == -1);
    fd = open(argv[2], O_CREAT | O_WRONLY, 0600);
    expect(fd >= 0 && write(fd, data, 7) == 7 && close(fd) == 0);
    snprintf(name, sizeof name, "%s/shared", argv[1]);
    expect(open(name, O_RDONLY | O_DIRECTORY) == -1);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 8 * rank, data, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
