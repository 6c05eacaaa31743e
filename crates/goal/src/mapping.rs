//! Memory-mapped files and huge pages: the only unsafe code of this crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file read-only.
///
/// The caller promises that nobody writes to the file meanwhile: truncating it raises `SIGBUS` on the next access
/// beyond its end, and bytes that change after the checks may end the program with a panic.
pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    // SAFETY: the map is read-only. That no other process changes the file is the promise of the caller, as documented at
    // `Schedule::load`; it cannot be enforced.
    unsafe { Mmap::map(&file) }
}

/// Advises the system to back a table with huge pages. Systems without them refuse, which costs only time.
pub(crate) fn advise_huge_pages<T>(table: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 2 << 20;
        let bytes = size_of_val(table);
        let start = table.as_mut_ptr().cast::<u8>();
        let unaligned = start.align_offset(PAGE);
        if let Some(len) = bytes.checked_sub(unaligned).filter(|&len| len >= PAGE) {
            // SAFETY: the range lies within the table, which is borrowed exclusively; the advice changes how memory is
            // mapped, not what is in it.
            unsafe { libc::madvise(start.add(unaligned).cast(), len - len % PAGE, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}
