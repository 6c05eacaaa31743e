//! Large pages, which the allocator requests wherever it can: they pay for themselves if there are many ranks.

/// Enables or disables large pages for memory that is touched from now on; a command starts with small pages only.
///
/// No effect on systems other than Linux and on kernels without this switch: it affects times and memory, never results.
pub(super) fn set_large_pages(wanted: bool) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!wanted);
    #[cfg(not(target_os = "linux"))]
    let _ = wanted;
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
