//! Large pages, for which the allocator asks wherever it can: they are worth their memory where there are many ranks.

/// Uses large pages for what is touched from now on, or small ones only, which is how a command begins.
///
/// Other systems than Linux and kernels without such a switch do as they please: times and memory depend on it, answers do not.
pub(super) fn use_large(wanted: bool) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!wanted);
    #[cfg(not(target_os = "linux"))]
    let _ = wanted;
}

/// Begins with small pages: the runtime allocates before `main`, and what is in a large page stays there.
// SAFETY: the loader calls what stands in this section as such functions, and the one system call needs nothing of the runtime.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_ALLOCATION: extern "C" fn() = {
    extern "C" fn begin() {
        use_large(false);
    }
    begin
};
