! Regions with names, one inside the other, and one by its level.
program regions
  use pdes_region
  implicit none
  include 'mpif.h'
  integer :: error, step, value, total
  call mpi_init(error)
  value = 1
  do step = 1, 2
    call pdes_region_begin('solver')
    call mpi_allreduce(value, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call pdes_region_begin('halo  ')
    call mpi_barrier(MPI_COMM_WORLD, error)
    call pdes_region_end()
    call pdes_region_end()
  end do
  call mpi_pcontrol(1)
  call mpi_pcontrol(5)
  call mpi_bcast(value, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call mpi_pcontrol(-5)
  call mpi_finalize(error)
end program regions
