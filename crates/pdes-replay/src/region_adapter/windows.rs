//! Exact replays on several threads, window by window.

use mpi_model::{Completion, RankProcess};
use netmodel::WindowRegion;
use pdes_core::{
    Cluster, Interrupt, Progress, Rank, RegionBlocks, RegionalEngine, RegionalRun, RegionalTiming,
    SimDuration, SimTime, StateWriter,
};

use super::RegionAdapter;
use crate::checkpoint::Segmented;
use crate::contention::SharedMachine;
use crate::fast_forward::Cuttable;
use crate::simulation::{MemberRun, RunError};

type WindowAdapter<'r, 'g, 'p> = RegionAdapter<'r, WindowRegion<'g, 'p, Completion>>;

/// A replay in windows on several threads, which can be cut between two of them.
pub(crate) struct InWindows<'r, 'g, 'p> {
    engine: RegionalEngine,
    window: SimDuration,
    blocks: &'r RegionBlocks,
    adapters: Vec<WindowAdapter<'r, 'g, 'p>>,
    timing: Option<RegionalTiming>,
}

impl<'r, 'g, 'p> InWindows<'r, 'g, 'p> {
    pub(crate) fn new(
        engine: RegionalEngine,
        window: SimDuration,
        blocks: &'r RegionBlocks,
        adapters: Vec<WindowAdapter<'r, 'g, 'p>>,
    ) -> Self {
        Self { engine, window, blocks, adapters, timing: None }
    }

    /// Returns the regions, and their times if they were measured.
    pub(crate) fn into_parts(self) -> (Vec<WindowAdapter<'r, 'g, 'p>>, Option<RegionalTiming>) {
        (self.adapters, self.timing)
    }
}

impl<'t, 'm> Segmented<'t, SharedMachine<'m>> for InWindows<'_, '_, '_> {
    fn run(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, SharedMachine<'m>>, RunError> {
        Ok(self.run_to_cut(cluster, processes, None, interrupt, progress)?.0)
    }
}

impl<'t, 'm> Cuttable<'t, 'm> for InWindows<'_, '_, '_> {
    fn run_to_cut(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        from: Option<SimTime>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(MemberRun<'t, SharedMachine<'m>>, Option<SimTime>), RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        let engine = from.map_or(engine.clone(), |cut| engine.continuing_from(cut));
        let mut adapters = std::mem::take(&mut self.adapters);
        if let Some(cut) = from {
            RegionAdapter::regions(&mut adapters).for_each(|region| region.count_windows_from(cut));
        }
        let done =
            engine.run_distributed(cluster, self.window, processes, self.blocks, adapters, progress)?;
        let RegionalRun { run, regions, cut, timing, .. } = done.map_err(RunError::Unordered)?;
        (self.adapters, self.timing) = (regions, timing);
        Ok((run, cut))
    }

    fn write_state(&self, state: &mut StateWriter, eager_messages: &dyn Fn(Rank) -> u32) -> bool {
        for RegionAdapter { region, .. } in &self.adapters {
            region.write_state(state, |completion, state| completion.write_state(state, eager_messages));
        }
        // Files are compared on one thread.
        self.adapters.iter().all(|adapter| adapter.storage.is_none())
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let regions = RegionAdapter::regions(&mut self.adapters);
        regions.for_each(|region| region.watch_period(now, period, repetitions));
    }

    fn repeat_period(&mut self, now: SimTime, time: SimDuration) {
        let regions = RegionAdapter::regions(&mut self.adapters);
        regions.for_each(|region| region.repeat_period(now, time, |completion| completion.shift_time(time)));
    }
}
