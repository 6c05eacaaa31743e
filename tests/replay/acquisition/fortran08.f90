! The module mpi_f08, whose handles are structures and whose error codes may be left out.
program fortran08
  use mpi_f08
  implicit none
  integer :: rank, value, other
  type(MPI_Request) :: requests(2)
  type(MPI_Comm) :: copy
  call mpi_init()
  call mpi_comm_rank(MPI_COMM_WORLD, rank)
  value = rank
  call mpi_irecv(other, 1, MPI_INTEGER, ieor(rank, 1), 1, MPI_COMM_WORLD, requests(1))
  call mpi_isend(value, 1, MPI_INTEGER, ieor(rank, 1), 1, MPI_COMM_WORLD, requests(2))
  call mpi_waitall(2, requests, MPI_STATUSES_IGNORE)
  call mpi_comm_dup(MPI_COMM_WORLD, copy)
  call mpi_allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, MPI_SUM, copy)
  call mpi_finalize()
end program fortran08
