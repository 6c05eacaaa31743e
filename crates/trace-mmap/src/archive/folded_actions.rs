//! The actions of a rank with the loops of its program.

use crate::action::Action;
use crate::archive::{ArchivedRank, Damage, MAX_DEPTH};
use crate::column::{ABSENT, ColumnStorage};
use crate::folded::Folded;
use crate::record::{COLUMN, LOOP_BEGIN, LOOP_END, OPTIONAL, Record};
use crate::trace::{ActionStorage, RankTrace};

/// Largest numbers of records of a program whose actions are listed: with loops, and without.
const MAX_RECORDS: u64 = 1 << 20;
const MAX_FLAT: u64 = 1 << 12;

impl RankTrace {
    /// Returns the actions of a folded rank with the loops of its program, at the cost of its length; `None` if the rank is not
    /// folded, if its program is long or damaged, or if some of its computations have other amounts in other iterations.
    pub fn folded_actions(&self) -> Option<Vec<Folded<Action>>> {
        let ActionStorage::Archive(body) = &self.storage else { return None };
        let program = &body.class.program;
        let is_short = program.records <= if program.depth > 0 { MAX_RECORDS } else { MAX_FLAT };
        if !is_short || body.class.changes.inserted > 0 || self.measured_times.is_some() {
            return None;
        }
        let mut open: Vec<(u64, Vec<Folded<Action>>)> = vec![(1, Vec::new())];
        for record in body.records() {
            let record = record.ok()?;
            match record.kind() {
                LOOP_BEGIN if open.len() <= MAX_DEPTH => open.push((record.amount(), Vec::new())),
                LOOP_BEGIN => return None,
                LOOP_END => {
                    let (count, parts) = open.pop()?;
                    open.last_mut()?.1.push(Folded::Loop(count, parts));
                }
                _ => append(&mut open.last_mut()?.1, action(body, record).ok()??),
            }
        }
        let (_, parts) = open.pop()?;
        open.is_empty().then_some(parts)
    }
}

/// Returns the actions of a record, at most one; `None` if that differs between its executions.
fn action(body: &ArchivedRank, record: Record) -> Result<Option<Option<Action>>, Damage> {
    if !matches!(record.kind(), COLUMN | OPTIONAL) {
        return Ok(Some(Some(record.decode())));
    }
    let column = body.class.columns.get(record.index() as usize).ok_or(Damage::of(record))?;
    Ok(match column.storage {
        ColumnStorage::Constant(ABSENT) => Some(None),
        ColumnStorage::Constant(bits) => Some(Some(Action::Compute { flops: f64::from_bits(bits) })),
        ColumnStorage::Blocks(_) => None,
    })
}

fn append(parts: &mut Vec<Folded<Action>>, action: Option<Action>) {
    match (parts.last_mut(), action) {
        (_, None) => {}
        (Some(Folded::Items(items)), Some(action)) => items.push(action),
        (_, Some(action)) => parts.push(Folded::Items(vec![action])),
    }
}
