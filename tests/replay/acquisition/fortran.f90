! Messages, requests and collectives from Fortran, with statuses that are ignored, and in place.
program fortran
  use mpi
  implicit none
  integer :: ierr, rank, ranks, peer, index, requests(2), status(MPI_STATUS_SIZE), row, value(4), all(4), counts(4)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  peer = ieor(rank, 1)
  value = rank
  call mpi_irecv(all, 2, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, requests(1), ierr)
  call mpi_isend(value, 2, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, requests(2), ierr)
  call mpi_waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call mpi_irecv(all, 1, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, requests(1), ierr)
  call mpi_send(value, 1, MPI_DOUBLE_PRECISION, peer, 2, MPI_COMM_WORLD, ierr)
  requests(2) = MPI_REQUEST_NULL
  call mpi_waitany(2, requests, index, MPI_STATUS_IGNORE, ierr)
  if (rank < peer) then
    call mpi_send(value, 3, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, ierr)
  else
    call mpi_recv(all, 3, MPI_INTEGER, peer, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
  end if
  call mpi_allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  counts = 1
  call mpi_allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, (/0, 1, 2, 3/), MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call mpi_comm_split(MPI_COMM_WORLD, rank / 2, 0, row, ierr)
  call mpi_ibcast(value, 1, MPI_INTEGER, 1, row, requests(1), ierr)
  call mpi_wait(requests(1), MPI_STATUS_IGNORE, ierr)
  call mpi_comm_free(row, ierr)
  call mpi_pcontrol(7)
  call mpi_pcontrol(-7)
  call mpi_finalize(ierr)
end program fortran
