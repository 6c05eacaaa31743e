//! Reading of the lines of a file into builders.

use std::path::Path;

use pdes_core::Rank;
use trace_mmap::{Action, Location, RankBuilder, RankBuilders, TraceError};

use crate::error::InputError;
use crate::text::{Fields, FileWarnings, Line, Lines, RankText, TextError, read_action, read_rank};

/// Pushes the actions of all lines. `owner` is the rank to which the file belongs, if it is a file of one rank.
pub(crate) fn read(
    mut lines: Lines<'_>,
    owner: Option<Rank>,
    ranks: &mut RankBuilders<'_>,
) -> Result<(), TraceError> {
    let mut warnings = FileWarnings::default();
    let mut states = Vec::new();
    while let Some(line) = lines.next()? {
        let number = line.number;
        match read_line(line, owner, ranks, &mut states, &mut warnings) {
            Ok((builder, action, nanos)) => builder.push(action, nanos)?,
            Err(kind) => return Err(lines.error(number, kind)),
        }
    }
    // The last word of a program is complete if it is there.
    if let Some(last) = lines.unterminated().filter(|last| !last.text.ends_with(b" finalize")) {
        warnings.no_newline.count(last.number);
    }
    warnings.report(lines.file(), ranks);
    Ok(())
}

type LineResult<'b, 's> = Result<(&'b mut RankBuilder<'s>, Action, Option<u64>), TextError>;

fn read_line<'b, 's>(
    line: Line<'_>,
    owner: Option<Rank>,
    ranks: &'b mut RankBuilders<'s>,
    states: &mut Vec<RankText>,
    warnings: &mut FileWarnings,
) -> LineResult<'b, 's> {
    let (line, nanos) = line.split_time()?;
    let mut fields = Fields::new(line.text);
    let found = read_rank(&mut fields)?;
    let (first, run) = (ranks.wanted().start, ranks.ranks());
    let Some(builder) = ranks.get(found) else { return Err(not_wanted(found, owner, run)) };
    let place = found as usize - first as usize;
    if states.len() <= place {
        states.resize_with(place + 1, RankText::default);
    }
    let action = read_action(Line { text: fields.rest(), ..line }, &mut states[place], builder, warnings)?;
    Ok((builder, action, nanos))
}

/// Makes the error that a line is of a rank that is not to be read.
#[cold]
pub(crate) fn not_wanted(found: u64, owner: Option<Rank>, ranks: u32) -> TextError {
    match owner {
        Some(owner) => TextError::WrongRank { found, expected: owner.get() },
        None => TextError::RankOutOfRange { found, ranks },
    }
}

/// Returns one more than the highest rank with a line.
pub(crate) fn count_ranks(lines: &mut Lines<'_>, limit: u32) -> Result<u64, TraceError> {
    let mut ranks = 0;
    while let Some(line) = lines.next()? {
        let number = line.number;
        match read_rank(&mut Fields::new(line.text)) {
            Ok(rank) if rank < u64::from(limit) => ranks = ranks.max(rank + 1),
            Ok(found) => return Err(lines.error(number, TextError::RankOutOfRange { found, ranks: limit })),
            Err(kind) => return Err(lines.error(number, kind)),
        }
    }
    match ranks {
        0 => Err(InputError::Empty { file: lines.file().to_path_buf() }.into()),
        ranks => Ok(ranks),
    }
}

/// Finds the line of an action.
pub(crate) fn locate(lines: &mut Lines<'_>, rank: Rank, index: u64) -> Result<Location, TraceError> {
    let mut left = index;
    while let Some(line) = lines.next()? {
        let number = line.number;
        if read_rank(&mut Fields::new(line.text)) != Ok(u64::from(rank.get())) {
            continue;
        }
        if left == 0 {
            return Ok(Location { file: lines.file().to_path_buf(), line: number });
        }
        left -= 1;
    }
    Err(TraceError::NoSuchAction { rank, action: index })
}

/// Makes the error of a line.
#[cold]
pub(crate) fn error(file: &Path, line: u64, kind: TextError) -> TraceError {
    TraceError::Action { location: Location { file: file.to_path_buf(), line }, kind: Box::new(kind) }
}
