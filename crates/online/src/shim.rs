//! The library to preload: compiled by the local `mpicc` on first use, and kept for the next runs.

use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustc_hash::FxHasher;

use crate::binary::Library;

/// Names and texts of the files of a directory of the sources.
macro_rules! sources {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("../shim/", $name)))),+]
    };
}

const SOURCES: &[(&str, &str)] = sources![
    "layout.h" "online.h" "arena.c" "arguments.c" "channel.c" "clocks.c" "collectives.c" "communicators.c" "datatypes.c" "file_times.c"
    "files.c" "files.h" "folding.c" "handles.c" "messages.c" "process.c" "refused.c" "regions.c" "requests.c" "samples.c" "signatures.c"
    "topologies.c" "types.c" "windows.c"
];

/// Headers and modules for programs.
const HEADERS: &[(&str, &str)] = &[
    ("pdes_sample.h", include_str!("../include/pdes_sample.h")),
    ("pdes_sample.f90", include_str!("../include/pdes_sample.f90")),
    ("pdes_region.h", include_str!("../../ti-tracer/include/pdes_region.h")),
    ("pdes_region.f90", include_str!("../../ti-tracer/include/pdes_region.f90")),
];

/// The reason why there is no library to preload.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// The compiler cannot be started.
    #[error(
        "{compiler}: {source}; online runs need the compiler of the MPI library of the program: set MPICC"
    )]
    NoCompiler {
        /// Command.
        compiler: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The MPI library is not supported.
    #[error("{compiler} is not the compiler of {library}, the MPI library of the program: set MPICC")]
    OtherLibrary {
        /// Command.
        compiler: String,
        /// The MPI library.
        library: &'static str,
    },
    /// The sources do not compile.
    #[error("the library to preload was not compiled by {compiler}:\n{output}")]
    NotCompiled {
        /// Command.
        compiler: String,
        /// Messages of the compiler.
        output: String,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Returns the path of the library to preload for programs of an MPI library, compiled by `MPICC`; where the MPI library is not known, for
/// that of the compiler. Only one that folds memory has functions that allocate.
///
/// # Errors
/// There is no compiler, or it fails.
pub fn shim(folds: bool, mpi: Option<Library>) -> Result<PathBuf, ShimError> {
    let sources: Vec<_> = SOURCES.iter().copied().filter(|(name, _)| folds || *name != "folding.c").collect();
    let compiler = compiler(mpi);
    let line = output(&compiler, Command::new(&compiler).arg("-show"))?;
    let mut hasher = FxHasher::default();
    (&sources, &compiler, &line, mpi).hash(&mut hasher);
    let directory = cache_directory();
    let library = directory.join(format!("libpdes_online-{:016x}.so", hasher.finish()));
    if library.is_file() {
        return Ok(library);
    }
    // Of runs that begin at once, one compiles, and the others wait for it; the lock ends with the process.
    let path = directory.join("lock");
    let locked = std::fs::create_dir_all(&directory).and_then(|()| File::create(&path));
    let lock = locked.and_then(|file| file.lock().map(|()| file)).map_err(io_error(&path))?;
    if !library.is_file() {
        compile(&sources, (&compiler, mpi), &directory, &library)?;
    }
    drop(lock);
    Ok(library)
}

/// Returns the directory of the headers and modules for programs, which it writes.
///
/// # Errors
/// A file cannot be written.
pub fn headers() -> Result<PathBuf, ShimError> {
    let directory = cache_directory().join("include");
    std::fs::create_dir_all(&directory).map_err(io_error(&directory))?;
    for (name, text) in HEADERS {
        let path = directory.join(name);
        if !std::fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
            outputs::write_file(&path, text.as_bytes()).map_err(io_error(&path))?;
        }
    }
    Ok(directory)
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ShimError {
    let path = path.to_path_buf();
    move |source| ShimError::Io { path, source }
}

fn compile(
    sources: &[(&str, &str)],
    (compiler, mpi): (&str, Option<Library>),
    directory: &Path,
    library: &Path,
) -> Result<(), ShimError> {
    let build = directory.join("build");
    std::fs::create_dir_all(&build).map_err(io_error(&build))?;
    for (name, text) in sources {
        let path = build.join(name);
        std::fs::write(&path, text).map_err(io_error(&path))?;
    }
    let files = sources.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c"));
    let mut command = Command::new(compiler);
    // Not linked with the MPI library, which programs without MPI in the same command would load.
    command.args(["-shared", "-fPIC", "-O2", "-std=gnu11", "-Wno-deprecated-declarations", "-o", "shim.so"]);
    command.args(mpi.map(|mpi| format!("-DFOR_MPICH={}", u8::from(mpi == Library::Mpich))));
    command.args(files).args(["-Wl,--as-needed", "-ldl", "-lpthread"]).current_dir(&build);
    let compiled = output(compiler, &mut command).and_then(|_| {
        let built = build.join("shim.so");
        std::fs::rename(&built, library).map_err(io_error(&built))
    });
    let _ = std::fs::remove_dir_all(&build);
    compiled
}

/// Runs a command of the compiler; returns what it prints.
fn output(compiler: &str, command: &mut Command) -> Result<String, ShimError> {
    let ended =
        command.output().map_err(|source| ShimError::NoCompiler { compiler: compiler.to_owned(), source })?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let output = String::from_utf8_lossy(&ended.stderr).into_owned();
    if let Some((_, library)) = EXPECTED.iter().find(|(error, _)| output.contains(error)) {
        return Err(ShimError::OtherLibrary { compiler: compiler.to_owned(), library });
    }
    Err(ShimError::NotCompiled { compiler: compiler.to_owned(), output })
}

/// Errors of the sources where the compiler is that of another MPI library.
const EXPECTED: [(&str, &str); 3] = [
    ("expected Open MPI 4 or MPICH", "Open MPI 4 or MPICH"),
    ("expected Open MPI 4", "Open MPI 4"),
    ("expected MPICH", "MPICH"),
];

/// Returns the command of the compiler of an MPI library: where several are installed, Debian has them by their names.
fn compiler(mpi: Option<Library>) -> String {
    let by_name = match mpi {
        Some(Library::OpenMpi) => "mpicc.openmpi",
        Some(Library::Mpich) => "mpicc.mpich",
        None => "mpicc",
    };
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&paths).any(|directory| directory.join(by_name).is_file());
    std::env::var("MPICC").unwrap_or_else(|_| if is_there { by_name } else { "mpicc" }.to_owned())
}

/// Returns the directory of what runs keep for others of the user.
pub(crate) fn cache_directory() -> PathBuf {
    let of_user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base =
        of_user.or_else(|| Some(std::env::home_dir()?.join(".cache"))).unwrap_or_else(std::env::temp_dir);
    base.join("pdes-replay")
}
