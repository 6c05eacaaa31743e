//! Large pages, which the allocator requests wherever it can: they pay for themselves if there are many ranks.

use std::ffi::c_long;

/// Number of the allocator's option `purge_delay`: time after which released memory returns to the system [ms]; never if negative.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Enables or disables large pages for memory that is touched from now on; a command starts with small pages only. With large pages,
/// released memory is kept: the queues of ranks grow and shrink all the time, and new pages would take a tenth of the time.
///
/// Large pages have no effect on systems other than Linux and on kernels without this switch. Affects times and memory, never results.
pub(super) fn set_large_pages(wanted: bool) {
    if wanted {
        keep_memory();
    }
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!wanted);
    #[cfg(not(target_os = "linux"))]
    let _ = wanted;
}

/// Keeps released memory, unless the environment says otherwise.
#[allow(unsafe_code)]
fn keep_memory() {
    let never: c_long = -1;
    // SAFETY: the option is one of the allocator's, which reads its value whenever it releases memory.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, never) };
}

/// Starts with small pages: the runtime allocates before `main`, and memory in a large page stays there.
// SAFETY: the loader calls the entries of this section as such functions, and the one system call needs nothing of the runtime.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
#[used]
static DISABLE_AT_START: extern "C" fn() = {
    extern "C" fn begin() {
        set_large_pages(false);
    }
    begin
};
