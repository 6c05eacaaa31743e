//! Mapped files and the pages of memory: the one place with unsafe code.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file for reading.
///
/// Whoever opens a schedule promises that nobody writes to its file meanwhile: a file that is made shorter raises
/// `SIGBUS` on the next access beyond its end, and bytes that change behind the checks may end the program with a panic.
pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    // SAFETY: the map is read-only. That no other process changes the file is the promise of the caller, as documented at
    // `Schedule::load`; it cannot be enforced.
    unsafe { Mmap::map(&file) }
}

/// Asks for large pages below a table. Systems that have none refuse, which costs time only.
pub(crate) fn ask_for_large_pages<T>(table: &mut [T]) {
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
