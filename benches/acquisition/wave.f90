! A wave through all ranks, there and back, with work in each.
program wave
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi
  implicit none
  integer :: rank, ranks, steps, n, step, i, error
  integer(int64) :: before, after, ticks, worked
  real(real64) :: plane(40)
  character(len=16) :: argument
  call get_command_argument(1, argument)
  read (argument, *) steps
  call get_command_argument(2, argument)
  read (argument, *) n
  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, error)
  call system_clock(count_rate=ticks)
  plane = 1
  worked = 0
  do step = 1, steps
    if (rank > 0) call mpi_recv(plane, 40, MPI_DOUBLE_PRECISION, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call system_clock(before)
    do i = 1, n
      plane(1) = plane(1) + 1 / (plane(1) + i)
    end do
    call system_clock(after)
    worked = worked + after - before
    if (rank < ranks - 1) then
      call mpi_send(plane, 40, MPI_DOUBLE_PRECISION, rank + 1, 1, MPI_COMM_WORLD, error)
      call mpi_recv(plane, 40, MPI_DOUBLE_PRECISION, rank + 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    end if
    if (rank > 0) call mpi_send(plane, 40, MPI_DOUBLE_PRECISION, rank - 1, 2, MPI_COMM_WORLD, error)
  end do
  write (*, '(a, i0, a, f0.6, a)') 'rank ', rank, ' worked ', real(worked, real64) / ticks, ' s'
  call mpi_finalize(error)
end program wave
