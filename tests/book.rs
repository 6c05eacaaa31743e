//! Tests of the documentation: its examples run, its links are valid, and its reference is generated from the program.

#[path = "book/examples.rs"]
mod examples;
#[path = "book/links.rs"]
mod links;
#[path = "book/reference.rs"]
mod reference;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The pages of the book, `SUMMARY.md` left out, in the order of their names.
fn pages() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(repository().join("docs")).expect("docs/ is there");
    let paths = folder.map(|entry| entry.expect("docs/ can be read").path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.retain(|path| !path.ends_with("SUMMARY.md"));
    pages.sort();
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
