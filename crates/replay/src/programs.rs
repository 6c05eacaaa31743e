//! The programs of a run: traces that are placed on hosts, each with the parameters of its MPI library and a start.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use mpi_model::{Machine, Parameters, RankProcess, Replay, ReplayError};
use netmodel::{HostId, Platform};
use pdes_core::{LpId, Rank, RegionIndex};
use trace_mmap::{LoadOptions, Trace, TraceError};

use crate::allocation::Allocation;
use crate::code::{GrowingTrace, RunningProgram};
use crate::launches::Start;
use crate::offload::Accelerators;
use crate::placement::{Placement, PlacementPolicy};
use crate::simulation::RunError;
use crate::spec::{Polling, RunSpec};
use crate::trace_file::TraceFile;

/// The specification of a program of a run.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// Name of the job; by default the trace is.
    pub name: Option<String>,
    /// The trace, or the name of the program that runs.
    pub trace: TraceFile,
    /// Program that runs in place of the trace.
    pub code: Option<Arc<dyn RunningProgram>>,
    /// Number of ranks; by default that of the trace.
    pub ranks: Option<u32>,
    /// Path of the hosts file, which assigns ranks to hosts; without it, `placement` does.
    pub hosts: Option<PathBuf>,
    /// Placement of ranks if there is no hosts file.
    pub placement: PlacementPolicy,
    /// No other program has ranks on its hosts; without a hosts file it gets such hosts.
    pub is_exclusive: bool,
    /// Parameters of the MPI library.
    pub mpi: Parameters,
    /// Costs of polls that are set.
    pub polling: Polling,
    /// When the program starts.
    pub start: Start,
}

impl ProgramSpec {
    /// Returns the name, or the path of the trace where there is none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.trace.to_string())
    }
}

/// A program of a run, with its trace in memory.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) spec: ProgramSpec,
    pub(crate) trace: Trace,
    pub(crate) placement: Placement,
    /// Logical process of rank 0; those of the other ranks follow.
    pub(crate) first_lp: LpId,
}

/// The programs of a run; their ranks are its logical processes.
#[derive(Debug)]
pub(crate) struct Programs {
    programs: Vec<Program>,
    /// Host of each logical process.
    lp_hosts: Vec<HostId>,
}

impl Program {
    /// Returns whether the program runs in place of a trace, and may access files.
    pub(crate) fn may_access_files(&self) -> bool {
        self.spec.code.as_ref().is_some_and(|code| code.accesses_files())
    }

    /// Returns whether a logical process is one of the program.
    pub(crate) fn has(&self, lp: LpId) -> bool {
        (self.first_lp.get()..self.first_lp.get() + self.trace.ranks()).contains(&lp.get())
    }

    /// Returns the ranks of those logical processes that belong to the program.
    pub(crate) fn ranks_of(&self, lps: &[LpId]) -> impl Iterator<Item = Rank> {
        let own = lps.iter().filter(|lp| self.has(**lp));
        own.map(|lp| Rank::new(lp.get() - self.first_lp.get()))
    }

    /// Returns the logical process of a rank.
    fn lp(&self, rank: Rank) -> LpId {
        LpId::new(self.first_lp.get() + rank.get())
    }

    /// Returns the logical processes of the ranks.
    pub(crate) fn lps(&self) -> Range<LpId> {
        self.first_lp..self.lp(Rank::new(self.trace.ranks()))
    }

    /// Returns the replay of the program on a machine.
    pub(crate) fn replay<'a, M: Machine>(&'a self, machine: &'a M) -> Replay<'a, M> {
        let replay = Replay::new(&self.trace, machine, &self.spec.mpi).with_first_lp(self.first_lp);
        let replay = match self.spec.start {
            Start::At(start) => replay.starting_at(start),
            Start::After(_) | Start::Submitted(_) => replay,
        };
        match &self.spec.code {
            Some(code) => replay.with_sources(code.sources(self.trace.ranks(), &self.spec.mpi.collectives)),
            None => replay,
        }
    }
}

impl Programs {
    /// Opens the traces of all programs of a run, and places their ranks; keeps the programs that are present.
    pub(crate) fn open(
        spec: &RunSpec,
        platform: &Platform,
        accelerators: Option<&Accelerators>,
        options: &LoadOptions<'_>,
    ) -> Result<Self, RunError> {
        let specs = [spec.program()].into_iter().chain(spec.other_programs.iter().cloned());
        let opened = specs.map(|mut program| {
            let options = LoadOptions { ranks: program.ranks, ..options.clone() };
            let trace = match &program.code {
                Some(code) => Trace::read(Box::new(GrowingTrace::new(&**code)), &options)?,
                None => trace_tools::open(&program.trace, &options)?,
            };
            program.polling.apply(&mut program.mpi, trace.provenance().is_recorded());
            Ok((program, trace))
        });
        let opened = opened.collect::<Result<Vec<_>, RunError>>()?;
        let placements = Allocation::new(platform, spec.seed, Accelerators::all(accelerators, platform));
        let placements = placements.place(&opened)?;
        let first_lp = LpId::new(0);
        let programs = opened.into_iter().zip(placements);
        let mut programs: Vec<Program> =
            programs.map(|((spec, trace), placement)| Program { spec, trace, placement, first_lp }).collect();
        if let Some(present) = &spec.present {
            let mut index = 0..;
            programs.retain(|_| index.next().is_some_and(|index| present.contains(&index)));
        }
        let mut lp_hosts = Vec::new();
        for program in &mut programs {
            let first = u32::try_from(lp_hosts.len()).ok();
            let first = first.filter(|first| first.checked_add(program.trace.ranks()).is_some());
            program.first_lp = LpId::new(first.ok_or(RunError::TooManyRanks)?);
            lp_hosts.extend_from_slice(program.placement.hosts());
        }
        for program in &mut programs {
            program.placement.set_residents(&lp_hosts);
        }
        let scale = spec.amount_scale(&programs[0].trace);
        match programs.iter().find(|program| spec.amount_scale(&program.trace) != scale) {
            Some(program) => Err(RunError::OtherSpeed { trace: program.spec.trace.to_path_buf() }),
            None => Ok(Self { programs, lp_hosts }),
        }
    }

    /// Returns whether a program starts at an instant that is not known before the run.
    pub(crate) fn are_launched(&self) -> bool {
        self.programs.iter().any(|program| !matches!(program.spec.start, Start::At(_)))
    }

    /// Returns the program with a number.
    pub(crate) fn of(&self, number: usize) -> &Program {
        &self.programs[number]
    }

    /// Returns the first program of the run.
    pub(crate) fn first(&self) -> &Program {
        &self.programs[0]
    }

    /// Returns all programs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter()
    }

    /// Returns the programs beside that of the run.
    pub(crate) fn others(&self) -> &[Program] {
        &self.programs[1..]
    }

    /// Returns the placement of each program.
    pub(crate) fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.programs.iter().map(|program| &program.placement)
    }

    /// Returns the first logical process of each program among some, which are in ascending order.
    pub(crate) fn first_lps(&self, lps: impl IntoIterator<Item = LpId>) -> Vec<LpId> {
        let mut lps: Vec<LpId> = lps.into_iter().collect();
        lps.dedup_by_key(|lp| self.locate(*lp).0.first_lp);
        lps
    }

    /// Returns the number of logical processes.
    pub(crate) fn lps(&self) -> u32 {
        self.lp_hosts.len() as u32
    }

    /// Returns the host of each logical process.
    pub(crate) fn lp_hosts(&self) -> &[HostId] {
        &self.lp_hosts
    }

    /// Returns the program of a logical process, and the rank there.
    pub(crate) fn locate(&self, lp: LpId) -> (&Program, Rank) {
        let after = self.programs.partition_point(|program| program.first_lp <= lp);
        let program = &self.programs[after - 1];
        (program, Rank::new(lp.get() - program.first_lp.get()))
    }

    /// Returns the region of each logical process, if hosts have these.
    pub(crate) fn regions(&self, hosts: &[RegionIndex]) -> Vec<RegionIndex> {
        self.lp_hosts.iter().map(|host| hosts[host.index()]).collect()
    }

    /// Loads the ranks of some logical processes of archives.
    pub(crate) fn load(&mut self, lps: &[LpId]) -> Result<(), TraceError> {
        for program in &mut self.programs {
            let ranks: Vec<Rank> = program.ranks_of(lps).collect();
            program.trace.load_ranks(ranks)?;
        }
        Ok(())
    }

    /// Checks that the archives were not damaged while they were read: results computed meanwhile are invalid.
    pub(crate) fn check_integrity(&self) -> Result<(), RunError> {
        self.programs
            .iter()
            .try_for_each(|program| program.trace.integrity())
            .map_err(|damage| TraceError::from(damage).into())
    }

    /// Returns the logical processes of all ranks, with their programs.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = (LpId, &Program, Rank)> {
        self.programs.iter().flat_map(|program| {
            (0..program.trace.ranks()).map(Rank::new).map(move |rank| (program.lp(rank), program, rank))
        })
    }
}

/// Returns the process of a rank in one of the replays of the programs, which are in the order of their logical processes.
pub(crate) fn replay_of<'w, 't, M: Machine>(
    worlds: &'w [Replay<'t, M>],
    lp: LpId,
) -> (&'w Replay<'t, M>, Rank) {
    let first = |world: &Replay<'_, M>| world.lp(Rank::new(0));
    let after = worlds.partition_point(|world| first(world) <= lp);
    let world = &worlds[after - 1];
    (world, Rank::new(lp.get() - first(world).get()))
}

/// Processes, or the first error with its logical process.
type Processes<'t, M> = Result<Vec<RankProcess<'t, M>>, (LpId, Box<ReplayError<<M as Machine>::Error>>)>;

/// Makes the processes of some ranks.
pub(crate) fn processes_of<'t, M: Machine>(worlds: &'t [Replay<'t, M>], lps: &[LpId]) -> Processes<'t, M> {
    let process = |&lp: &LpId| {
        let (world, rank) = replay_of(worlds, lp);
        world.process(rank).map_err(|error| (lp, error))
    };
    lps.iter().map(process).collect()
}
