//! File types of views: their blocks, as runs of equal blocks at equal distances.

/// Largest number of runs: `FileView::MAX_RUNS` of the archive.
const MAX_RUNS: usize = 1024;

/// Largest position in a file of a trace \[B\].
const MAX_POSITION: i64 = 999_999_999_999_999_999;

/// The blocks of a file type, added in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileType {
    /// The runs, unless there are more than [`MAX_RUNS`].
    runs: Vec<Run>,
    blocks: i64,
    bytes: i64,
    first: i64,
    end: i64,
    /// True once a block began before the end of the last one, or has no position in a trace.
    is_invalid: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    offset: i64,
    bytes: i64,
    stride: i64,
    count: i64,
}

impl Run {
    fn block(offset: i64, bytes: i64) -> Self {
        Self { offset, bytes, stride: bytes, count: 1 }
    }

    fn last(&self) -> i64 {
        self.offset + self.stride * (self.count - 1)
    }

    /// Adds a block to the run, if it has its size and distance.
    fn add(&mut self, offset: i64, bytes: i64) -> bool {
        let is_next = self.count == 1 || offset == self.last() + self.stride;
        if bytes == self.bytes && is_next {
            self.stride = offset - self.last();
            self.count += 1;
        }
        bytes == self.bytes && is_next
    }
}

impl FileType {
    /// Adds a block \[B\].
    pub(super) fn add(&mut self, offset: i64, bytes: i64) {
        let Some(end) = offset.checked_add(bytes).filter(|end| *end <= MAX_POSITION) else {
            self.is_invalid = true;
            return;
        };
        self.is_invalid |= offset < self.end || bytes <= 0;
        if self.is_invalid {
            return;
        }
        let continues = self.blocks > 0 && offset == self.end;
        if self.blocks == 0 {
            self.first = offset;
        }
        self.blocks += i64::from(!continues);
        self.bytes += bytes;
        self.end = end;
        if self.runs.len() > MAX_RUNS {
            return;
        }
        let Some(last) = self.runs.last_mut() else { return self.runs.push(Run::block(offset, bytes)) };
        if continues {
            let (begin, size) = (last.last(), last.bytes + bytes);
            last.count -= 1;
            if last.count == 0 {
                self.runs.pop();
            }
            let joined = self.runs.last_mut().is_some_and(|last| last.add(begin, size));
            if !joined {
                self.runs.push(Run::block(begin, size));
            }
        } else if !last.add(offset, bytes) {
            self.runs.push(Run::block(offset, bytes));
        }
    }

    /// Returns the fields of the view of this file type: its displacement and, unless it has no holes, its extent and blocks. Blocks
    /// that are too many have equal distances, and, but for a byte, equal sizes. A type that is no file type has no holes.
    pub(super) fn view(self, displacement: i64, extent: i64) -> String {
        let has_holes = self.bytes != extent || self.blocks > 1;
        let span = self.end - self.first;
        if !has_holes || self.is_invalid || self.blocks == 0 || !(span..=MAX_POSITION).contains(&extent) {
            return displacement.saturating_add(self.first).clamp(0, MAX_POSITION).to_string();
        }
        let runs = if self.runs.len() <= MAX_RUNS { self.runs.clone() } else { self.equal_blocks() };
        let runs: Vec<String> = runs.iter().map(Run::text).collect();
        format!("{} {extent} {}", displacement.clamp(0, MAX_POSITION), runs.join(","))
    }

    fn equal_blocks(&self) -> Vec<Run> {
        let (stride, size, larger) =
            ((self.end - self.first) / self.blocks, self.bytes / self.blocks, self.bytes % self.blocks);
        let smaller = self.blocks - larger;
        let runs = [
            Run { offset: self.first, bytes: size, stride, count: smaller },
            Run { offset: self.first + stride * smaller, bytes: size + 1, stride, count: larger },
        ];
        match stride > size {
            true => runs.into_iter().filter(|run| run.count > 0 && run.bytes > 0).collect(),
            // There are hardly any holes.
            false => vec![Run::block(self.first, self.bytes)],
        }
    }
}

impl Run {
    fn text(&self) -> String {
        let Self { offset, bytes, stride, count } = self;
        if *count == 1 { format!("{offset}:{bytes}") } else { format!("{offset}:{bytes}:{stride}:{count}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(blocks: &[(i64, i64)], extent: i64) -> String {
        let mut file_type = FileType::default();
        blocks.iter().for_each(|(offset, bytes)| file_type.add(*offset, *bytes));
        file_type.view(100, extent)
    }

    #[test]
    fn equal_blocks_at_equal_distances_are_runs() {
        assert_eq!(view(&[(0, 8)], 8), "100");
        assert_eq!(view(&[(0, 4), (4, 4)], 8), "100");
        assert_eq!(view(&[(16, 8)], 24), "100 24 16:8");
        assert_eq!(view(&[(0, 4), (8, 4), (16, 4), (24, 8), (40, 8)], 48), "100 48 0:4:8:3,24:8:16:2");
        // The last block of a run grows, and becomes one of the next run.
        assert_eq!(view(&[(0, 4), (8, 4), (16, 4), (20, 4), (32, 8)], 40), "100 40 0:4:8:2,16:8:16:2");
        assert_eq!(view(&[(0, 8), (16, 4), (20, 4), (32, 4), (36, 4)], 40), "100 40 0:8:16:3");
    }

    #[test]
    fn what_is_no_file_type_has_no_holes() {
        assert_eq!(view(&[(8, 4), (0, 4)], 16), "108");
        assert_eq!(view(&[(0, 4), (2, 4)], 16), "100");
        assert_eq!(view(&[(0, 4), (8, 4)], 8), "100");
        assert_eq!(view(&[], 8), "100");
        assert_eq!(view(&[(0, 4), (i64::MAX - 2, 4)], 8), "100");
    }

    /// 2000 blocks of 3 and 4 bytes at irregular distances: all of their data, in as many blocks.
    #[test]
    fn too_many_runs_become_equal_blocks() {
        let blocks: Vec<(i64, i64)> = (0..2000).map(|n| (10 * n + n * n % 3, 3 + n % 2)).collect();
        let (end, bytes) = (blocks[1999].0 + blocks[1999].1, blocks.iter().map(|block| block.1).sum::<i64>());
        assert_eq!((end, bytes), (19_995, 7000));
        assert_eq!(view(&blocks, 20_000), "100 20000 0:3:9:1000,9000:4:9:1000");
        let dense: Vec<(i64, i64)> = (0..2000).map(|n| (1000 * n + 1 + n * n % 2, 998 - n % 2)).collect();
        assert!(view(&dense, 2_000_000).starts_with("100 2000000 1:997:"));
    }
}
