//! Transformations of folded programs in their folded form.

use std::path::Path;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use trace_mmap::folded::{Folded, FoldedSequence};
use trace_mmap::{
    AmountChange, ConvertOptions, Item, MessageChange, Op, SendMode, SentMessage, Summary, Trace, TraceError,
    sum_amounts, write_programs, write_with_amounts, write_with_messages,
};

use super::hypothesis::TransformedTrace;
use super::messages::Sent;
use super::{FoldedForm, Hypothesis, Pointwise, Program, Selector, SizeChange, TransformError};

/// Largest number of operations that a rank has after a transformation in the iterations that are not known from others: in all, and
/// more for each stored operation before.
const MAX_WALKED: usize = 1 << 16;
const MAX_WALKED_PER_ITEM: usize = 1 << 6;

impl Hypothesis {
    /// Writes the transformed trace if all transformations have a folded form that fits it, one after the other; `None` if not.
    ///
    /// # Errors
    /// Fails if a selector matches nothing, the trace is damaged, or an archive cannot be written.
    pub(super) fn write_folded(
        &self,
        trace: &Arc<Trace>,
        output: &Path,
        options: &ConvertOptions<'_>,
    ) -> Result<Option<Summary>, TransformError> {
        // Whether it is the same at all visits of a place does not depend on the place.
        let forms: Option<Vec<_>> = self
            .transforms()
            .map(|(number, transform)| {
                transform.selector().selects_site(Rank::new(0), None)?;
                Some((number, transform.selector(), transform.folded()?))
            })
            .collect();
        let Some(forms) = forms.filter(|_| !trace.has_measured_times()) else { return Ok(None) };
        let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
        let dir = parent.unwrap_or(Path::new(".")).to_path_buf();
        let between = tempfile::Builder::new().prefix(".folded-").tempdir_in(&dir);
        let between = between.map_err(|source| TraceError::Spill { dir, source })?;
        if forms.is_empty() {
            let identity = SelectedAmounts(Vec::new());
            return Ok(Some(write_with_amounts(trace, output, &identity, options)?));
        }
        let mut current = Arc::clone(trace);
        let mut summary = None;
        for (place, (number, selector, form)) in forms.iter().enumerate() {
            let check = selector.check(&Program::new(&current, &[]));
            current.integrity().map_err(TraceError::from)?;
            check.map_err(|refusal| self.refused(*number, refusal))?;
            let is_last = place + 1 == forms.len();
            let path =
                if is_last { output.to_path_buf() } else { between.path().join(format!("{number}.pdt")) };
            summary = match form {
                FoldedForm::Amounts(change) => Some(write_with_amounts(
                    &current,
                    &path,
                    &SelectedAmounts(vec![(selector, *change)]),
                    options,
                )?),
                FoldedForm::Sizes(change) => {
                    write_with_messages(&current, &path, &SelectedSizes(selector, *change), options)?
                }
                FoldedForm::Mode(mode) => {
                    write_with_messages(&current, &path, &SelectedSends(selector, *mode), options)?
                }
                FoldedForm::EqualSums => write_balanced(&current, &path, selector, options)?,
            };
            if summary.is_none() {
                return Ok(None);
            }
            if !is_last {
                current = Arc::new(Trace::load(&path).map_err(TraceError::from)?);
            }
        }
        Ok(summary)
    }
}

impl TransformedTrace {
    /// Writes the transformed trace, iterations of folded programs that are transformed alike once; returns `None`, and writes nothing,
    /// if no rank is folded, or some rank does not remain so.
    ///
    /// # Errors
    /// Fails if the trace is damaged, or the archive cannot be written.
    pub(super) fn write_folded(
        &self,
        output: &Path,
        options: &ConvertOptions<'_>,
    ) -> Result<Option<Summary>, TransformError> {
        let program = Program::new(&self.trace, &self.plans);
        if self.trace.has_measured_times() || !program.ranks().any(|rank| is_folded(&self.trace, rank)) {
            return Ok(None);
        }
        let ranks = self.trace.ranks();
        let summary = write_programs(ranks, |rank| self.folded_program(rank), output, options)?;
        self.trace.integrity().map_err(TraceError::from)?;
        Ok(summary)
    }

    /// Returns the transformed program of a rank; `None` if it has many more operations than the program has.
    fn folded_program(&self, rank: Rank) -> Option<Vec<Item>> {
        let stored = stored_items(&self.trace.rank(rank).folded_actions()?);
        let mut left = MAX_WALKED + MAX_WALKED_PER_ITEM * stored;
        let mut ops = FoldedSequence::default();
        let program = Program::new(&self.trace, &self.plans);
        program
            .walk(rank, &mut ops, |ops, step| {
                left = left.checked_sub(1).ok_or(())?;
                ops.push(step.op);
                Ok::<(), ()>(())
            })
            .ok()?;
        Some(items(ops.into_parts()))
    }
}

fn is_folded(trace: &Trace, rank: Rank) -> bool {
    let parts = trace.rank(rank).folded_actions();
    parts.is_some_and(|parts| parts.iter().any(|part| matches!(part, Folded::Loop(..))))
}

fn stored_items<T>(parts: &[Folded<T>]) -> usize {
    let of_part = |part: &Folded<T>| match part {
        Folded::Items(items) => items.len(),
        Folded::Loop(_, body) => stored_items(body),
    };
    parts.iter().map(of_part).sum()
}

fn items(parts: Vec<Folded<Op>>) -> Vec<Item> {
    let of_part = |part| match part {
        Folded::Items(ops) => ops.into_iter().map(Item::Op).collect(),
        Folded::Loop(count, body) => vec![Item::Loop { count, body: items(body) }],
    };
    parts.into_iter().flat_map(of_part).collect()
}

/// Changes of amounts, one after the other. The number of a change has a bit for each that selects the computation.
struct SelectedAmounts<'h>(Vec<(&'h Selector, &'h dyn Pointwise)>);

impl AmountChange for SelectedAmounts<'_> {
    fn number(&self, rank: Rank, site: Option<&str>) -> u64 {
        let selects = |selector: &Selector| selector.selects_site(rank, site).unwrap_or_default();
        let bits = self.0.iter().enumerate().map(|(bit, (selector, _))| u64::from(selects(selector)) << bit);
        bits.sum()
    }

    fn apply(&self, number: u64, flops: f64) -> f64 {
        let selected = self.0.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
        selected.fold(flops, |flops, (_, (_, change))| change.change(flops))
    }
}

/// A change of messages.
struct SelectedSizes<'h>(&'h Selector, &'h dyn SizeChange);

impl MessageChange for SelectedSizes<'_> {
    fn is_here(&self, rank: Rank, site: Option<&str>) -> bool {
        self.0.selects_site(rank, site).unwrap_or_default()
    }

    fn selects(&self, message: &SentMessage) -> bool {
        accepts(self.0, message)
    }

    fn size(&self, bytes: Bytes) -> Option<Bytes> {
        self.1.size(bytes)
    }
}

fn accepts(selector: &Selector, message: &SentMessage) -> bool {
    let SentMessage { call, to, tag, communicator, bytes } = *message;
    selector.accepts_message(&Sent { call, to, tag, communicator, bytes })
}

/// A mode of sends.
struct SelectedSends<'h>(&'h Selector, SendMode);

impl MessageChange for SelectedSends<'_> {
    fn is_here(&self, rank: Rank, site: Option<&str>) -> bool {
        self.0.selects_site(rank, site).unwrap_or_default()
    }

    fn selects(&self, message: &SentMessage) -> bool {
        accepts(self.0, message)
    }

    fn mode(&self) -> Option<SendMode> {
        Some(self.1)
    }
}

/// Selects computations by the number 1.
struct Selected<'h>(&'h Selector);

impl AmountChange for Selected<'_> {
    fn number(&self, rank: Rank, site: Option<&str>) -> u64 {
        self.0.selects_site(rank, site).unwrap_or_default().into()
    }

    fn apply(&self, _: u64, flops: f64) -> f64 {
        flops
    }
}

/// Scales the computations of each rank alike. The number of the change of a rank is the rank plus 1.
struct EqualSums<'h> {
    selector: &'h Selector,
    /// Amount of each rank \[flop\].
    own: Vec<f64>,
    mean: f64,
}

impl AmountChange for EqualSums<'_> {
    fn number(&self, rank: Rank, site: Option<&str>) -> u64 {
        let is_selected = self.selector.selects_site(rank, site).unwrap_or_default();
        if is_selected { u64::from(rank.get()) + 1 } else { 0 }
    }

    fn apply(&self, number: u64, flops: f64) -> f64 {
        let own = number.checked_sub(1).and_then(|rank| self.own.get(rank as usize)).copied();
        // As of a program that is read action by action.
        own.filter(|own| *own > 0.0).map_or(flops, |own| flops / own * (0.0 * own + self.mean))
    }
}

/// Writes a trace whose selected ranks compute equally much in sum; `None` if that is refused, or the trace is not folded.
fn write_balanced(
    trace: &Trace,
    output: &Path,
    selector: &Selector,
    options: &ConvertOptions<'_>,
) -> Result<Option<Summary>, TransformError> {
    let Some(sums) = sum_amounts(trace, &Selected(selector))? else { return Ok(None) };
    let of_ranks = (0..).zip(&sums).filter(|(rank, _)| selector.selects_rank(Rank::new(*rank)));
    let Some(selected) = of_ranks.map(|(_, sum)| Some((*sum)?.get())).collect::<Option<Vec<f64>>>() else {
        return Ok(None);
    };
    let mean = selected.iter().fold(0.0, |sum, own| sum + own) / selected.len() as f64;
    if selected.iter().any(|own| *own == 0.0 && mean > 0.0) {
        return Ok(None);
    }
    let own = sums.iter().map(|sum| sum.map_or(0.0, trace_mmap::AmountSum::get)).collect();
    Ok(Some(write_with_amounts(trace, output, &EqualSums { selector, own, mean }, options)?))
}
