! Calls that no replay models, from Fortran.
program unmodelled
    use mpi
    implicit none
    integer :: rank, peer, window, file, ierr, value(4), request
    integer(kind=MPI_ADDRESS_KIND) :: bytes, place
    integer(kind=MPI_OFFSET_KIND) :: offset
    character(len=200) :: name

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call get_command_argument(1, name)
    peer = 1 - rank
    value = rank
    bytes = 16
    place = 2
    call MPI_Win_create(value, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
    call MPI_Win_fence(0, window, ierr)
    call MPI_Put(value, 1, MPI_INTEGER, peer, place, 1, MPI_INTEGER, window, ierr)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, window, ierr)
    call MPI_Win_free(window, ierr)
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file, ierr)
    offset = 16 * rank
    call MPI_File_iwrite_at(file, offset, value, 4, MPI_INTEGER, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_File_close(file, ierr)
    call MPI_Finalize(ierr)
end program
