//! Files in memory for the inputs of fuzz targets. Each input overwrites them: a folder of its own took most of its time.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use trace_mmap::{LoadOptions, Trace};

/// Folder of this process, in memory where the system has such a file system.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let folder = parent.join(format!("pdes-replay-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder is made");
    folder
});

/// Path of a file of this process.
pub fn path(name: &str) -> PathBuf {
    FOLDER.join(name)
}

/// Writes a file of this process, over that of the input before, and returns its path.
///
/// # Panics
/// Panics if the file cannot be written.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    std::fs::write(&path, bytes).expect("the file is written");
    path
}

/// Reads a trace and checks it, if it is one.
pub fn read(path: &Path) -> Option<Trace> {
    let trace = trace_tools::load(path, &LoadOptions::default()).ok()?;
    let _ = trace_mmap::check(&trace, None);
    Some(trace)
}
