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

/// The folder of the book.
fn book() -> PathBuf {
    repository().join("docs")
}

/// The pages of the book and of its subfolders, `SUMMARY.md` left out, in the order of their names.
fn pages() -> Vec<PathBuf> {
    let (mut pages, mut folders) = (Vec::new(), vec![book()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("docs/ can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && !path.ends_with("SUMMARY.md")
            {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
