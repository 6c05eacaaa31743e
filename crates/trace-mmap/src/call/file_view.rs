//! Views of files: the parts that a rank sees.

/// The part of a file that a rank sees: from a position on, the blocks of a file type again and again. Positions of accesses are
/// amounts of the data of these blocks.
///
/// ```
/// use trace_mmap::{BlockRun, FileView};
/// // From byte 100 on, 8 bytes of every 24.
/// let view = FileView::new(100, 24, &[BlockRun { offset: 0, bytes: 8, stride: 8, count: 1 }]).expect("a view");
/// assert_eq!((view.position(0), view.position(9), view.position(16)), (100, 125, 148));
/// assert_eq!((view.data_before(100), view.data_before(112), view.data_before(125)), (0, 8, 9));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct FileView {
    displacement: u64,
    extent: u64,
    runs: Box<[PlacedRun]>,
}

/// Blocks of equal size at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct BlockRun {
    /// Position of the first block in the file type \[B\].
    pub offset: u64,
    /// Size of each block \[B\].
    pub bytes: u64,
    /// Distance from one block to the next \[B\]; the size, if there is one block alone.
    pub stride: u64,
    /// Number of blocks.
    pub count: u64,
}

impl BlockRun {
    /// Returns the amount of data \[B\], and the position behind the last block; `None` if the run is none, or too large.
    fn check(self) -> Option<(u64, u64)> {
        let last = self.stride.checked_mul(self.count.checked_sub(1)?)?;
        let end = self.offset.checked_add(last)?.checked_add(self.bytes)?;
        let is_valid = self.bytes > 0 && self.stride >= self.bytes && end <= FileView::MAX;
        is_valid.then(|| (self.bytes * self.count, end))
    }
}

/// A run, with what is before it in the file type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct PlacedRun {
    run: BlockRun,
    data_before: u64,
    blocks_before: u64,
}

impl FileView {
    /// Largest number of runs of a file type.
    pub const MAX_RUNS: usize = 1024;

    /// Largest displacement, extent and end of a block \[B\].
    const MAX: u64 = super::MAX_OFFSET;

    /// Creates the view from a displacement on, of a file type with this extent \[B\]; `None` unless all is in range, the runs are
    /// sorted and do not overlap, and neither do two file types one after the other.
    pub fn new(displacement: u64, extent: u64, runs: &[BlockRun]) -> Option<Self> {
        let (mut placed, mut data, mut blocks, mut end) = (Vec::with_capacity(runs.len()), 0, 0, 0);
        for &run in runs {
            let (amount, behind) = run.check()?;
            if run.offset < end {
                return None;
            }
            placed.push(PlacedRun { run, data_before: data, blocks_before: blocks });
            (data, blocks, end) = (data + amount, blocks + run.count, behind);
        }
        let first = runs.first()?.offset;
        let is_valid = runs.len() <= Self::MAX_RUNS
            && displacement <= Self::MAX
            && (end - first..=Self::MAX).contains(&extent);
        is_valid.then(|| Self { displacement, extent, runs: placed.into() })
    }

    /// Creates the view of all of a file from a displacement on.
    pub fn contiguous(displacement: u64) -> Option<Self> {
        Self::new(displacement, 1, &[BlockRun { offset: 0, bytes: 1, stride: 1, count: 1 }])
    }

    /// Returns the first position of the file type \[B\].
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Returns the distance from one file type to the next \[B\].
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// Returns the blocks of the file type.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = BlockRun> + '_ {
        self.runs.iter().map(|placed| placed.run)
    }

    /// Returns whether the values are those of [`new`](Self::new).
    pub(crate) fn is_valid(&self) -> bool {
        let runs: Vec<BlockRun> = self.runs().collect();
        Self::new(self.displacement, self.extent, &runs).as_ref() == Some(self)
    }

    /// Returns the amount of data of the file type \[B\].
    fn data(&self) -> u64 {
        self.runs.last().map_or(1, |last| last.data_before + last.run.bytes * last.run.count)
    }

    /// Returns the begin of a file type in the file, the run there with the data behind an amount, and the amount in the run.
    fn locate(&self, data: u64) -> (u64, &PlacedRun, u64) {
        let (types, rest) = (data / self.data(), data % self.data());
        let run = &self.runs[self.runs.partition_point(|run| run.data_before <= rest) - 1];
        let begin = self.displacement.saturating_add(types.saturating_mul(self.extent));
        (begin, run, rest - run.data_before)
    }

    /// Returns the position in the file behind an amount of data \[B\].
    pub fn position(&self, data: u64) -> u64 {
        let (begin, PlacedRun { run, .. }, rest) = self.locate(data);
        begin.saturating_add(run.offset + rest / run.bytes * run.stride + rest % run.bytes)
    }

    /// Returns the amount of data from there to the end of its block \[B\].
    pub fn rest_of_block(&self, data: u64) -> u64 {
        let (_, PlacedRun { run, .. }, rest) = self.locate(data);
        run.bytes - rest % run.bytes
    }

    /// Returns the number of blocks that end before an amount of data.
    pub fn blocks_before(&self, data: u64) -> u64 {
        let blocks = self.runs.last().map_or(1, |last| last.blocks_before + last.run.count);
        let (_, PlacedRun { run, blocks_before, .. }, rest) = self.locate(data);
        (data / self.data()).saturating_mul(blocks).saturating_add(blocks_before + rest / run.bytes)
    }

    /// Returns the amount of data before a position in the file \[B\].
    pub fn data_before(&self, position: u64) -> u64 {
        // Relative to the first block, a file type ends before the next one begins.
        let first = self.runs[0].run.offset;
        let Some(relative) = position.checked_sub(self.displacement.saturating_add(first)) else { return 0 };
        let (types, rest) = (relative / self.extent, relative % self.extent + first);
        let before = types.saturating_mul(self.data());
        let Some(number) = self.runs.partition_point(|placed| placed.run.offset < rest).checked_sub(1) else {
            return before;
        };
        let PlacedRun { run, data_before, .. } = &self.runs[number];
        let (blocks, inside) = ((rest - run.offset) / run.stride, (rest - run.offset) % run.stride);
        let of_run = if blocks < run.count {
            blocks * run.bytes + inside.min(run.bytes)
        } else {
            run.bytes * run.count
        };
        before.saturating_add(data_before + of_run)
    }

    /// Returns whether the data between two amounts have no holes.
    pub fn is_contiguous(&self, begin: u64, end: u64) -> bool {
        end <= begin || self.position(end - 1) - self.position(begin) == end - 1 - begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(offset: u64, bytes: u64, stride: u64, count: u64) -> BlockRun {
        BlockRun { offset, bytes, stride, count }
    }

    /// Positions and amounts agree with the list of all bytes of a view.
    #[test]
    fn positions_and_amounts_are_inverse() {
        for (displacement, extent, runs) in [
            (0, 1, vec![run(0, 1, 1, 1)]),
            (7, 40, vec![run(4, 3, 5, 2), run(20, 6, 6, 1), run(26, 2, 4, 3)]),
            (3, 10, vec![run(6, 2, 2, 1), run(10, 4, 4, 1)]),
            (0, 9, vec![run(1, 2, 3, 3)]),
        ] {
            let view = FileView::new(displacement, extent, &runs).unwrap();
            let blocks = |start: u64| {
                let blocks = |run: &BlockRun| {
                    (0..run.count)
                        .map(|block| start + run.offset + block * run.stride)
                        .zip(std::iter::repeat(run.bytes))
                        .collect::<Vec<_>>()
                };
                runs.iter().flat_map(blocks).collect::<Vec<_>>()
            };
            let all: Vec<(u64, u64)> =
                (0..4).flat_map(|number| blocks(displacement + number * extent)).collect();
            let bytes: Vec<(u64, u64, u64)> = (0..)
                .zip(&all)
                .flat_map(|(block, (begin, size))| {
                    (0..*size).map(move |byte| (begin + byte, block, size - byte))
                })
                .collect();
            for (data, (position, block, rest)) in (0..).zip(&bytes) {
                assert_eq!(
                    (view.position(data), view.blocks_before(data), view.rest_of_block(data)),
                    (*position, *block, *rest),
                    "{view:?} {data}"
                );
            }
            for position in 0..all.last().unwrap().0 {
                let before = bytes.iter().filter(|byte| byte.0 < position).count() as u64;
                assert_eq!(view.data_before(position), before, "{view:?} {position}");
            }
            assert!(view.is_valid());
        }
        let view = FileView::new(7, 40, &[run(4, 3, 5, 2)]).unwrap();
        assert!(view.is_contiguous(0, 3) && !view.is_contiguous(2, 4) && view.is_contiguous(5, 5));
        assert!(FileView::contiguous(9).unwrap().is_contiguous(0, 1000));
    }

    #[test]
    fn what_is_no_view_is_refused() {
        let most = FileView::MAX;
        for (displacement, extent, runs) in [
            (0, 8, vec![]),
            (0, 8, vec![run(0, 0, 1, 1)]),
            (0, 8, vec![run(0, 1, 1, 0)]),
            (0, 8, vec![run(0, 4, 3, 2)]),
            (0, 8, vec![run(0, 4, 4, 1), run(3, 1, 1, 1)]),
            (0, 7, vec![run(0, 4, 4, 2)]),
            (most + 1, 8, vec![run(0, 4, 4, 1)]),
            (0, most + 1, vec![run(0, 4, 4, 1)]),
            (0, most, vec![run(most, 4, 4, 1)]),
            (0, most, vec![run(0, 4, u64::MAX, 3)]),
            (0, most, (0..1025).map(|number| run(2 * number, 1, 1, 1)).collect()),
        ] {
            assert_eq!(FileView::new(displacement, extent, &runs), None, "{displacement} {extent} {runs:?}");
        }
    }
}
