//! Loading and conversion of traces of any format.

use std::path::Path;

use trace_mmap::{
    ArchiveError, ConvertOptions, Converted, LoadOptions, Trace, TraceError, WriteError, write_archive,
};

use crate::files;
#[cfg(feature = "otf2")]
use crate::format::Candidate;
use crate::format::{FORMATS, Format, Input, open_input};
#[cfg(feature = "otf2")]
use crate::otf2;

/// Loads a trace of any of the [`FORMATS`].
///
/// The result does not depend on the number of threads. For an archive all options but the number of ranks are ignored; it is
/// mapped, with the promise of [`Trace::load`].
///
/// # Errors
/// Returns the first error with its file, and its line if there is one; among the files of several ranks that of the
/// lowest rank.
pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    load_as(FORMATS, path, options)
}

/// Loads a trace of one of some formats.
///
/// # Errors
/// Fails as [`load`].
pub fn load_as(formats: &[Format], path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let mut trace = open_as(formats, path, options)?;
    trace.load_all_ranks()?;
    Ok(trace)
}

/// Opens a trace of any format in order to [load](Trace::load_ranks) some of its ranks. For an archive this verifies the parts that
/// all ranks share and loads no rank. Other formats have no such parts and are loaded as a whole.
///
/// # Errors
/// Fails as [`load`], except for errors in the tables of single ranks of an archive and in the sum of their actions.
pub fn open(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    open_as(FORMATS, path, options)
}

fn open_as(formats: &[Format], path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    match open_input(path, formats)? {
        Input::Archive(trace) => checked(trace, path, options),
        Input::Source(source) => Trace::read(source, options),
    }
}

/// Checks the number of ranks of an archive.
fn checked(trace: Trace, path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let found = trace.ranks();
    match options.ranks {
        Some(asked) if asked != found => {
            Err(ArchiveError::Ranks { file: path.to_path_buf(), asked, found }.into())
        }
        _ => Ok(trace),
    }
}

/// Reads the merged text of all ranks from a string. The number of ranks is the largest number in the first column plus one.
///
/// # Errors
/// Fails as [`load`]; the file is called `<text>`.
///
/// ```
/// let trace = trace_tools::from_text("0 init\n0 compute 1e6\n0 finalize")?;
/// assert_eq!((trace.ranks(), trace.actions()), (1, 3));
/// # Ok::<(), trace_mmap::TraceError>(())
/// ```
pub fn from_text(text: &str) -> Result<Trace, TraceError> {
    Trace::read(files::text(text), &LoadOptions::default())
}

/// Converts a trace of any format, also an archive, to an archive.
///
/// The archive does not depend on the number of threads. It gets its name only when it is complete, so that a failed conversion
/// leaves no file. Memory is bounded by the budget and the tables, and by the whole trace if the lines of all ranks are in one file.
///
/// # Errors
/// Returns errors of [`load`] for the input; fails if the archive cannot be written, as when the drive is full, or if a
/// rank receives more messages than are sent to it.
///
/// ```
/// use trace_mmap::{ConvertOptions, Trace};
/// let dir = tempfile::tempdir()?;
/// let (text, archive) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
/// std::fs::write(&text, "0 init\n".to_owned() + &"0 compute 5\n0 barrier\n".repeat(1000))?;
/// let converted = trace_tools::convert(&text, &archive, &ConvertOptions::default())?;
/// assert_eq!(converted.summary.actions, 2001);
/// assert_eq!(Trace::load(&archive)?.actions(), 2001);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn convert(input: &Path, output: &Path, options: &ConvertOptions<'_>) -> Result<Converted, WriteError> {
    match open_input(input, FORMATS)? {
        Input::Archive(trace) => {
            let mut trace = checked(trace, input, &options.load)?;
            trace.load_all_ranks().map_err(TraceError::from)?;
            let summary = write_archive(&trace, output, options)?;
            Ok(Converted { summary, warnings: trace.warnings().to_vec() })
        }
        Input::Source(source) => trace_mmap::convert(source, output, options),
    }
}

/// Converts an archive of OTF2 whose computations are counted by a metric, such as `PAPI_TOT_INS`, in place of their times.
///
/// # Errors
/// Fails as [`convert`], and if the trace is no archive of OTF2, or has no such counter or no values of it on a rank.
#[cfg(feature = "otf2")]
pub fn convert_counted(
    input: &Path,
    output: &Path,
    counter: &str,
    options: &ConvertOptions<'_>,
) -> Result<Converted, WriteError> {
    let candidate = Candidate::new(input)?;
    if !otf2::knows(&candidate) {
        let (path, counter) = (input.to_path_buf(), counter.to_owned());
        return Err(TraceError::Source(otf2::Otf2ProgramError::NotOtf2 { path, counter }.into()).into());
    }
    trace_mmap::convert(otf2::open_counted(&candidate, Some(counter))?, output, options)
}
