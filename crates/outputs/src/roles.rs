//! The files that a command reads and writes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::target::{Target, directory_of};

/// The files that a command reads and writes, each with its role, such as `"trace"` or `"report"`.
///
/// ```
/// use outputs::FileRoles;
/// use std::path::Path;
///
/// let mut roles = FileRoles::default();
/// roles.input("trace", Path::new("lu.pdt"));
/// roles.output("report", Path::new("./lu.pdt"));
/// let refused = roles.check().unwrap_err().to_string();
/// assert_eq!(refused, "the report ./lu.pdt is the trace, too: name another file");
/// ```
#[derive(Debug, Default)]
pub struct FileRoles {
    inputs: Vec<FileRole>,
    outputs: Vec<FileRole>,
}

#[derive(Debug)]
struct FileRole {
    role: String,
    path: PathBuf,
}

/// An output that is an input, or another output.
#[derive(Debug, thiserror::Error)]
#[error("the {role} {} is the {other}, too: name another file", path.display())]
pub struct FileConflict {
    /// Role of the output.
    pub role: String,
    /// Path of the output.
    pub path: PathBuf,
    /// The other role of the file.
    pub other: String,
}

impl FileRoles {
    /// Adds a file that the command reads; `-` is standard input, which nothing is written to.
    pub fn input(&mut self, role: &str, path: &Path) {
        if path == Path::new("-") {
            return;
        }
        self.inputs.push(FileRole { role: role.to_owned(), path: path.to_path_buf() });
    }

    /// Adds a file that the command writes.
    pub fn output(&mut self, role: &str, path: &Path) {
        self.outputs.push(FileRole { role: role.to_owned(), path: path.to_path_buf() });
    }

    /// Checks that no output is an input or another output, whatever their names: links and relative paths are followed. Several outputs
    /// may go to one device, but not to standard output.
    ///
    /// # Errors
    /// Returns the first conflict.
    pub fn check(&self) -> Result<(), FileConflict> {
        let mut known: Vec<(Identity, &str)> =
            self.inputs.iter().filter_map(|input| Some((identity(&input.path)?, &*input.role))).collect();
        for FileRole { role, path } in &self.outputs {
            let Some(file) = identity(path) else { continue };
            if let Some((_, other)) = known.iter().find(|(known, _)| *known == file) {
                return Err(FileConflict {
                    role: role.clone(),
                    path: path.clone(),
                    other: (*other).to_owned(),
                });
            }
            known.push((file, role));
        }
        Ok(())
    }
}

/// Identity of a file: equal for all its names.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    Stdout,
    /// Device and number of an existing file.
    #[cfg(unix)]
    Existing(u64, u64),
    /// Path of a file without links.
    Path(PathBuf),
}

/// Returns the identity of a file; `None` for pipes and devices, and for paths that cannot be followed, which fail when they are opened.
fn identity(path: &Path) -> Option<Identity> {
    let file = match Target::of(path).ok()? {
        Target::Stdout => return Some(Identity::Stdout),
        Target::Stream => return None,
        Target::File(file) => file,
    };
    #[cfg(unix)]
    if let Ok(found) = fs::metadata(&file) {
        use std::os::unix::fs::MetadataExt;
        return Some(Identity::Existing(found.dev(), found.ino()));
    }
    let name = file.file_name()?;
    let directory = fs::canonicalize(directory_of(&file));
    Some(Identity::Path(directory.map_or(file.clone(), |directory| directory.join(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inputs: &[&Path], outputs: &[&Path]) -> Result<(), FileConflict> {
        let mut roles = FileRoles::default();
        inputs.iter().for_each(|path| roles.input("input", path));
        outputs.iter().for_each(|path| roles.output("output", path));
        roles.check()
    }

    #[test]
    #[cfg(unix)]
    fn one_file_has_one_role_under_all_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("trace"), "text").unwrap();
        fs::hard_link(path("trace"), path("hard")).unwrap();
        std::os::unix::fs::symlink("trace", path("soft")).unwrap();
        std::os::unix::fs::symlink("new", path("dangling")).unwrap();
        let trace = &*path("trace");
        for name in ["trace", "hard", "soft", "../".to_owned().as_str()] {
            let other = match name {
                "../" => {
                    path(&format!("../{}/trace", directory.path().file_name().unwrap().to_string_lossy()))
                }
                name => path(name),
            };
            assert!(check(&[trace], &[&other]).is_err(), "{name}");
        }
        assert!(check(&[], &[&path("new"), &path("dangling")]).is_err(), "two names of a file to come");
        assert!(check(&[], &[Path::new("-"), Path::new("/dev/stdout")]).is_err());
        assert!(check(&[trace], &[&path("new"), &path("other")]).is_ok());
        assert!(check(&[], &[Path::new("/dev/null"), Path::new("/dev/null")]).is_ok());
    }
}
