//! Loading of merged files, which have the lines of all ranks.

use pdes_core::Rank;

use crate::action::Action;
use crate::builder::{LinkableRank, RankTraceBuilder};
use crate::error::TraceError;
use crate::load::{LoadOptions, MAX_RANKS, Origin, assemble, check_ranks};
use crate::store::Store;
use crate::text::{Fields, Line, Lines, TextError, read_action, read_rank};
use crate::trace::Trace;
use crate::warning::FileWarnings;

/// The builders of all ranks; `None` before the first line of the rank.
type Builders = Vec<Option<Box<RankTraceBuilder>>>;

/// Loads a merged trace. If the number of ranks is not given, the text is read twice, because the fields of a line depend on that
/// number.
pub(super) fn load(origin: Origin, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let ranks = match options.ranks {
        Some(ranks) => check_ranks(origin.file(Rank::new(0)), u64::from(ranks))?,
        None => count_ranks(&mut origin.merged_lines()?)?,
    };
    let store = super::store(options);
    let mut lines = origin.merged_lines()?;
    let mut warnings = FileWarnings::default();
    let builders = read_lines(&mut lines, ranks, &mut warnings, &store)?;
    let finish = |(rank, builder): (u32, Option<Box<RankTraceBuilder>>)| match builder {
        Some(builder) => builder.finish(&store),
        None => Ok(LinkableRank::empty(Rank::new(rank), ranks)),
    };
    let linkables = (0..).zip(builders).map(finish).collect::<Result<Vec<_>, _>>()?;
    let warnings = vec![(lines.file().to_path_buf(), warnings)];
    drop(lines);
    assemble(linkables, warnings, store, origin)
}

/// Returns one more than the highest rank with a line.
fn count_ranks(lines: &mut Lines<'_>) -> Result<u32, TraceError> {
    let mut ranks = 0;
    while let Some(line) = lines.next()? {
        let number = line.number;
        match read_rank(&mut Fields::new(line.text)) {
            Ok(rank) if rank < u64::from(MAX_RANKS) => ranks = ranks.max(rank as u32 + 1),
            Ok(found) => {
                return Err(lines.error(number, TextError::RankOutOfRange { found, ranks: MAX_RANKS }));
            }
            Err(kind) => return Err(lines.error(number, kind)),
        }
    }
    match ranks {
        0 => Err(TraceError::Empty { file: lines.file().to_path_buf() }),
        ranks => Ok(ranks),
    }
}

fn read_lines(
    lines: &mut Lines<'_>,
    ranks: u32,
    warnings: &mut FileWarnings,
    store: &Store<'_>,
) -> Result<Builders, TraceError> {
    let mut builders = Builders::new();
    builders.resize_with(ranks as usize, || None);
    while let Some(line) = lines.next()? {
        let number = line.number;
        match read_line(line, &mut builders, warnings) {
            Ok((builder, action, nanos)) => builder.push_timed(action, nanos, store)?,
            Err(kind) => return Err(lines.error(number, kind)),
        }
    }
    Ok(builders)
}

fn read_line<'d>(
    line: Line<'_>,
    builders: &'d mut Builders,
    warnings: &mut FileWarnings,
) -> Result<(&'d mut RankTraceBuilder, Action, Option<u64>), TextError> {
    let (line, nanos) = line.split_time()?;
    let mut fields = Fields::new(line.text);
    let found = read_rank(&mut fields)?;
    let ranks = builders.len() as u32;
    let Some(builder) = usize::try_from(found).ok().and_then(|rank| builders.get_mut(rank)) else {
        return Err(TextError::RankOutOfRange { found, ranks });
    };
    let builder =
        builder.get_or_insert_with(|| Box::new(RankTraceBuilder::new(Rank::new(found as u32), ranks)));
    let action = read_action(fields, line, builder, warnings)?;
    Ok((builder, action, nanos))
}
