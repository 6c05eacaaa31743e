! Samples blocks of a program that runs online (docs/online.md): to be compiled with the program. A block is
!   if (pdes_sample_local("name", 10, 0.05d0)) then; ...; call pdes_sample_end(); end if
! and pdes_sample.h says what the arguments are. Outside of an online run all blocks are executed.
module pdes_sample
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_procpointer, c_funptr, c_int, c_null_char, &
    c_null_ptr, c_ptr
  implicit none
  private
  public :: pdes_sample_local, pdes_sample_global, pdes_sample_end

  abstract interface
    function begin_online(is_global, name, line, samples, precision) bind(c)
      import :: c_char, c_double, c_int
      integer(c_int), value :: is_global, line, samples
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: precision
      integer(c_int) :: begin_online
    end function begin_online
    subroutine end_online() bind(c)
    end subroutine end_online
  end interface

  interface
    function dlsym(handle, symbol) bind(c, name="dlsym")
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: symbol(*)
      type(c_funptr) :: dlsym
    end function dlsym
  end interface

contains

  ! Returns whether the block of this name is to be executed, by the samples of this rank.
  logical function pdes_sample_local(name, samples, precision)
    character(len=*), intent(in) :: name
    integer, intent(in) :: samples
    double precision, intent(in) :: precision
    pdes_sample_local = begin_block(0_c_int, name, samples, precision)
  end function pdes_sample_local

  ! Returns whether the block of this name is to be executed, by the samples of all ranks.
  logical function pdes_sample_global(name, samples, precision)
    character(len=*), intent(in) :: name
    integer, intent(in) :: samples
    double precision, intent(in) :: precision
    pdes_sample_global = begin_block(1_c_int, name, samples, precision)
  end function pdes_sample_global

  logical function begin_block(is_global, name, samples, precision)
    integer(c_int), intent(in) :: is_global
    character(len=*), intent(in) :: name
    integer, intent(in) :: samples
    double precision, intent(in) :: precision
    procedure(begin_online), pointer :: begin_sample
    type(c_funptr) :: address
    begin_block = .true.
    address = dlsym(c_null_ptr, "pdes_online_sample_begin" // c_null_char)
    if (c_associated(address)) then
      call c_f_procpointer(address, begin_sample)
      begin_block = begin_sample(is_global, trim(name) // c_null_char, 0_c_int, int(samples, c_int), &
        real(precision, c_double)) /= 0
    end if
  end function begin_block

  ! Ends the block that is executed.
  subroutine pdes_sample_end()
    procedure(end_online), pointer :: end_sample
    type(c_funptr) :: address
    address = dlsym(c_null_ptr, "pdes_online_sample_end" // c_null_char)
    if (c_associated(address)) then
      call c_f_procpointer(address, end_sample)
      call end_sample()
    end if
  end subroutine pdes_sample_end

end module pdes_sample
