//! Writing of structured programs by ranks in parallel.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pdes_core::Rank;

use crate::archive::convert::in_order;
use crate::archive::{ArchiveWriter, ConvertOptions, Summary, WriteError};
use crate::provenance::Provenance;
use crate::structure::Item;

/// Writes an archive of structured programs, of `ranks` ranks. Returns `None`, and writes nothing, if there is none for some rank, or
/// if one is wrong or cannot be stored as it is.
///
/// # Errors
/// Fails if the archive cannot be written, or if a rank receives more messages than are sent to it.
pub fn write_programs(
    ranks: u32,
    program: impl Fn(Rank) -> Option<Vec<Item>> + Sync,
    output: &Path,
    options: &ConvertOptions<'_>,
) -> Result<Option<Summary>, WriteError> {
    let mut writer = ArchiveWriter::for_conversion(output, ranks, Provenance::default(), options)?;
    // Relaxed: it only saves the work on later ranks.
    let is_over = AtomicBool::new(false);
    let prepare = |rank| Ok(if is_over.load(Ordering::Relaxed) { None } else { program(rank) });
    in_order(options.load.threads, ranks, prepare, |rank, items: Option<Vec<Item>>| {
        let written =
            items.filter(|_| !is_over.load(Ordering::Relaxed)).map(|items| writer.write_rank(rank, &items));
        match written {
            Some(Ok(())) => {}
            None | Some(Err(WriteError::Structure { .. })) => is_over.store(true, Ordering::Relaxed),
            Some(Err(error)) => return Err(error),
        }
        Ok(())
    })?;
    if is_over.into_inner() { Ok(None) } else { writer.finish().map(Some) }
}
