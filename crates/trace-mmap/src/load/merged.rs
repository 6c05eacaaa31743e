//! Loading of merged files, which have the lines of all ranks.

use pdes_core::Rank;

use crate::action::Action;
use crate::draft::{Linkable, RankDraft};
use crate::error::TraceError;
use crate::load::{LoadOptions, MAX_RANKS, Origin, assemble, check_ranks};
use crate::store::Store;
use crate::text::{Fields, Line, Lines, TextError, read_action, read_rank};
use crate::trace::Trace;
use crate::warning::Tolerated;

/// The builders of all ranks; `None` before the first line of the rank.
type Drafts = Vec<Option<Box<RankDraft>>>;

/// Loads a merged trace. If the number of ranks is not given, the text is read twice, because the fields of a line depend on that
/// number.
pub(super) fn load(origin: Origin, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let ranks = match options.ranks {
        Some(ranks) => check_ranks(origin.file(Rank::new(0)), u64::from(ranks))?,
        None => count_ranks(&mut origin.merged_lines()?)?,
    };
    let store = super::store(options);
    let mut lines = origin.merged_lines()?;
    let mut tolerated = Tolerated::default();
    let drafts = read_lines(&mut lines, ranks, &mut tolerated, &store)?;
    let finish = |(rank, draft): (u32, Option<Box<RankDraft>>)| match draft {
        Some(draft) => draft.finish(&store),
        None => Ok(Linkable::idle(Rank::new(rank), ranks)),
    };
    let linkables = (0..).zip(drafts).map(finish).collect::<Result<Vec<_>, _>>()?;
    let tolerated = vec![(lines.file().to_path_buf(), tolerated)];
    drop(lines);
    assemble(linkables, tolerated, store, origin)
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
    tolerated: &mut Tolerated,
    store: &Store<'_>,
) -> Result<Drafts, TraceError> {
    let mut drafts = Drafts::new();
    drafts.resize_with(ranks as usize, || None);
    while let Some(line) = lines.next()? {
        let number = line.number;
        match read_line(line, &mut drafts, tolerated) {
            Ok((draft, action, nanos)) => draft.push_timed(action, nanos, store)?,
            Err(kind) => return Err(lines.error(number, kind)),
        }
    }
    Ok(drafts)
}

fn read_line<'d>(
    line: Line<'_>,
    drafts: &'d mut Drafts,
    tolerated: &mut Tolerated,
) -> Result<(&'d mut RankDraft, Action, Option<u64>), TextError> {
    let (line, nanos) = line.split_time()?;
    let mut fields = Fields::new(line.text);
    let found = read_rank(&mut fields)?;
    let ranks = drafts.len() as u32;
    let Some(draft) = usize::try_from(found).ok().and_then(|rank| drafts.get_mut(rank)) else {
        return Err(TextError::RankOutOfRange { found, ranks });
    };
    let draft = draft.get_or_insert_with(|| Box::new(RankDraft::new(Rank::new(found as u32), ranks)));
    let action = read_action(fields, line, draft, tolerated)?;
    Ok((draft, action, nanos))
}
