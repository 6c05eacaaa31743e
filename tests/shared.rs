//! The data beside the repository.

use std::path::{Path, PathBuf};

/// Returns a path below `../shared`, which must be there: tests that use it are `#[test_with::shared]`.
pub(crate) fn shared(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    assert!(path.exists(), "{} is absent, with which this test compares", path.display());
    path
}
