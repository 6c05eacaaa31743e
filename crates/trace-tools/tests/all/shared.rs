//! The data beside the repository.

use std::path::{Path, PathBuf};

/// Returns a path below `../shared`, or prints that it is absent.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if path.exists() {
        return Some(path);
    }
    #[expect(clippy::print_stderr, reason = "a skipped test must show")]
    {
        eprintln!("SKIPPED: {} is absent", path.display());
    }
    None
}
