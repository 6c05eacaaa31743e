! Names regions of a program for pdes-replay, its tracer (docs/acquisition.md), and runs online: to be compiled with the program. Without
! their libraries, which are preloaded, the calls do nothing.
module pdes_region
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_null_char, c_null_ptr, c_ptr
  implicit none
  private
  public :: pdes_region_begin, pdes_region_end

  abstract interface
    subroutine begin_in_tracer(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine begin_in_tracer
    subroutine end_in_tracer() bind(c)
    end subroutine end_in_tracer
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

  ! Begins a region: what follows belongs to it, until it ends. Regions may be nested. Blanks at the end are no part of the name.
  subroutine pdes_region_begin(name)
    character(len=*), intent(in) :: name
    procedure(begin_in_tracer), pointer :: begin_region
    type(c_funptr) :: address
    address = dlsym(c_null_ptr, "pdes_tracer_region_begin" // c_null_char)
    if (c_associated(address)) then
      call c_f_procpointer(address, begin_region)
      call begin_region(trim(name) // c_null_char)
    end if
  end subroutine pdes_region_begin

  ! Ends the region that was begun last.
  subroutine pdes_region_end()
    procedure(end_in_tracer), pointer :: end_region
    type(c_funptr) :: address
    address = dlsym(c_null_ptr, "pdes_tracer_region_end" // c_null_char)
    if (c_associated(address)) then
      call c_f_procpointer(address, end_region)
      call end_region()
    end if
  end subroutine pdes_region_end

end module pdes_region
