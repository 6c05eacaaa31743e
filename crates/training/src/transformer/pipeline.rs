//! The order in which a stage of a pipeline works: one forward and one backward in turn (1F1B), interleaved where a stage has several
//! chunks of layers (Narayanan et al., SC 2021).

/// Forward or backward work of a stage on one micro-batch and one of its chunks of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) is_backward: bool,
    /// Number of the chunk among those of the stage.
    pub(super) chunk: u32,
    /// Activations or gradients come from another stage.
    pub(super) receives: bool,
    /// It receives, and so does a later unit of the same direction.
    pub(super) receives_later: bool,
    /// Activations or gradients go to another stage.
    pub(super) sends: bool,
    /// The gradients of the chunk are complete afterwards.
    pub(super) is_last: bool,
}

/// Units that are repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) count: u64,
    pub(super) units: Vec<Unit>,
}

/// A pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline {
    /// Number of stages.
    pub(super) stages: u32,
    /// Number of chunks of layers of each stage.
    pub(super) chunks: u32,
    /// Number of micro-batches; a multiple of the stages if there are several chunks.
    pub(super) micro_batches: u32,
}

impl Pipeline {
    /// Returns the units of a stage in their order.
    fn units(self, stage: u32) -> Vec<Unit> {
        let Self { stages, chunks, micro_batches } = self;
        let total = micro_batches * chunks;
        let behind = stages - 1 - stage;
        let warm_up = if chunks > 1 { 2 * behind + (chunks - 1) * stages } else { behind }.min(total);
        let forward = (0..total).map(|number| self.unit(stage, false, number));
        let backward = (0..total).map(|number| self.unit(stage, true, number));
        let (mut forward, mut backward) = (forward.collect::<Vec<_>>().into_iter(), backward);
        let mut units: Vec<Unit> = forward.by_ref().take(warm_up as usize).collect();
        for unit in forward {
            units.push(unit);
            units.extend(backward.next());
        }
        units.extend(backward);
        let mut receives = [false; 2];
        for unit in units.iter_mut().rev() {
            let later = &mut receives[usize::from(unit.is_backward)];
            unit.receives_later = unit.receives && *later;
            *later |= unit.receives;
        }
        units
    }

    /// Returns a forward or backward unit of a stage by its number in the order of its direction.
    fn unit(self, stage: u32, is_backward: bool, number: u32) -> Unit {
        let Self { stages, chunks, micro_batches } = self;
        let (turn, within) = (number / (stages * chunks), number % (stages * chunks));
        let (chunk, micro_batch) = match chunks {
            1 => (0, number),
            _ => (within / stages, turn * stages + within % stages),
        };
        let chunk = if is_backward { chunks - 1 - chunk } else { chunk };
        let is_first = stage == 0 && chunk == 0;
        let is_final = stage == stages - 1 && chunk == chunks - 1;
        let (receives, sends) = if is_backward { (!is_final, !is_first) } else { (!is_first, !is_final) };
        let is_last = is_backward && micro_batch == micro_batches - 1;
        Unit { is_backward, chunk, receives, receives_later: false, sends, is_last }
    }

    /// Returns the units of a stage, folded: equal runs of units are written once.
    pub(super) fn folded(self, stage: u32) -> Vec<Repeated> {
        let units = self.units(stage);
        let longest = 2 * (self.stages * self.chunks) as usize;
        let mut folded: Vec<Repeated> = Vec::new();
        let mut rest = &units[..];
        while !rest.is_empty() {
            let covered = |period: &usize| {
                let repeats = rest.chunks_exact(*period).take_while(|run| **run == rest[..*period]).count();
                if repeats > 1 { repeats * *period } else { 0 }
            };
            // The shortest period of those that cover most.
            let best = (1..=longest.min(rest.len() / 2)).rev().max_by_key(covered);
            let (period, length) = match best.map(|period| (period, covered(&period))) {
                Some((period, length)) if length > 0 => (period, length),
                _ => (1, 1),
            };
            let count = (length / period) as u64;
            folded.push(Repeated { count, units: rest[..period].to_vec() });
            rest = &rest[length..];
        }
        folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_units_are_the_units() {
        for (stages, chunks, micro_batches) in
            [(1, 1, 5), (4, 1, 2), (4, 1, 64), (2, 2, 4), (4, 3, 8), (4, 2, 128)]
        {
            let pipeline = Pipeline { stages, chunks, micro_batches };
            for stage in 0..stages {
                let folded = pipeline.folded(stage);
                let unfolded: Vec<Unit> = folded
                    .iter()
                    .flat_map(|part| (0..part.count).flat_map(|_| part.units.iter().copied()))
                    .collect();
                assert_eq!(unfolded, pipeline.units(stage));
                let written: usize = folded.iter().map(|part| part.units.len()).sum();
                assert!(written <= 8 * (stages * chunks) as usize, "{written} units of {pipeline:?}");
                assert_eq!(unfolded.iter().filter(|unit| unit.is_last).count(), chunks as usize);
            }
        }
    }
}
