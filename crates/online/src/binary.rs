//! Checks of a program before it starts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use elf::ElfBytes;
use elf::abi::{DT_NEEDED, PT_INTERP};
use elf::endian::AnyEndian;

/// Beginnings of the names of MPI libraries whose programs do not run online, each with the library.
const OTHER_LIBRARIES: [(&str, &str); 4] = [
    ("libmpich.so.10", "MPICH 3.0 or older"),
    ("libmpi.so.12", "Intel MPI, MVAPICH or Open MPI 1"),
    ("libmpi.so.20", "Open MPI 2 or 3"),
    ("libmpi.so.80", "Open MPI of a newer version"),
];

/// MPI libraries whose programs run online, by the files that these need.
const LIBRARIES: [(&str, Library); 5] = [
    ("libmpi.so.40", Library::OpenMpi),
    ("libmpi_mpifh.so.40", Library::OpenMpi),
    ("libmpich.so.12", Library::Mpich),
    ("libmpichcxx.so.12", Library::Mpich),
    ("libmpichfort.so.12", Library::Mpich),
];

/// MPI library of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// Open MPI 4.
    OpenMpi,
    /// MPICH 3.1 or newer.
    Mpich,
}

/// The reason why a program cannot run online.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// The loader has no part in the program.
    #[error(
        "{} is linked statically, so that no library can be loaded before the MPI library: link it dynamically with Open MPI 4 or MPICH",
        path.display()
    )]
    Static {
        /// The program.
        path: PathBuf,
    },
    /// The program uses another MPI library.
    #[error(
        "{} is linked with {library} ({file}), and programs run online that are linked with Open MPI 4 or MPICH: compile it by its mpicc",
        path.display()
    )]
    OtherLibrary {
        /// The program.
        path: PathBuf,
        /// The MPI library.
        library: &'static str,
        /// File of the library.
        file: String,
    },
}

/// Checks the file of a program; returns its MPI library. A script, and a program that loads the MPI library later, pass without one.
///
/// # Errors
/// Its ranks would not be ranks of the run.
pub(crate) fn check(program: &OsStr) -> Result<Option<Library>, BinaryError> {
    let Some(path) = find(program) else { return Ok(None) };
    let Ok(bytes) = std::fs::read(&path) else { return Ok(None) };
    let Ok(file) = ElfBytes::<AnyEndian>::minimal_parse(&bytes) else { return Ok(None) };
    let Some(interpreter) = interpreter(&file) else { return Err(BinaryError::Static { path }) };
    let own: Vec<String> = needed(&file).into_iter().map(str::to_owned).collect();
    match library_of(&path, &own)? {
        None => library_of(&path, &loaded(interpreter, &path)),
        library => Ok(library),
    }
}

/// Returns the MPI library among the libraries of a program.
fn library_of(path: &Path, files: &[String]) -> Result<Option<Library>, BinaryError> {
    for file in files {
        if let Some((_, library)) = LIBRARIES.iter().find(|(name, _)| name == file) {
            return Ok(Some(*library));
        }
        if let Some((_, library)) = OTHER_LIBRARIES.iter().find(|(name, _)| file.starts_with(name)) {
            return Err(BinaryError::OtherLibrary { path: path.to_owned(), library, file: file.clone() });
        }
    }
    Ok(None)
}

/// Returns the loader of a program.
fn interpreter<'data>(file: &ElfBytes<'data, AnyEndian>) -> Option<&'data OsStr> {
    let segment = file.segments()?.iter().find(|segment| segment.p_type == PT_INTERP)?;
    let name = file.segment_data(&segment).ok()?;
    Some(OsStr::from_bytes(name.strip_suffix(&[0]).unwrap_or(name)))
}

/// Returns the names of all libraries that a loader would load for a program, which it does not start.
fn loaded(interpreter: &OsStr, program: &Path) -> Vec<String> {
    let listed = Command::new(interpreter).arg("--list").arg(program).env_remove("LD_PRELOAD").output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    String::from_utf8_lossy(&listed).lines().filter_map(name).collect()
}

/// Returns the file of a command.
fn find(program: &OsStr) -> Option<PathBuf> {
    let named = Path::new(program);
    if named.components().count() > 1 {
        return Some(named.to_path_buf());
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|directory| directory.join(named)).find(|path| path.is_file())
}

/// Returns the names of the libraries that a program needs itself.
fn needed<'data>(file: &ElfBytes<'data, AnyEndian>) -> Vec<&'data str> {
    let (Ok(Some(entries)), Ok(common)) = (file.dynamic(), file.find_common_data()) else {
        return Vec::new();
    };
    let Some(names) = common.dynsyms_strs else { return Vec::new() };
    let needed = entries.iter().filter(|entry| entry.d_tag == DT_NEEDED);
    needed.filter_map(|entry| names.get(entry.d_val() as usize).ok()).collect()
}
