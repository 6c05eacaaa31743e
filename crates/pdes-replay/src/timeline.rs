//! The timeline of a run: what is recorded, and how it comes from all processes into one file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ::timeline::{Format, Merge, Record, Sorted, Spool, Streams, Summary, TimelineError, Writer};
use mpi_model::{Excerpt, Recording};
use pdes_core::{Cluster, Wire};

use crate::across::agree;
use crate::scene::{RunError, Scene};

/// Events that a process sends to the first one at once: 688 kB.
const PIECE: usize = 1 << 14;

/// The timeline that a run writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePlan {
    /// The file, or the first of the files.
    pub path: PathBuf,
    /// The format.
    pub format: Format,
    /// What it shows.
    pub excerpt: Excerpt,
}

impl TimelinePlan {
    /// Makes what takes in the events of this process.
    pub(crate) fn spool(&self) -> Spool {
        let beside = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        Spool::new(self.format.order(), beside.unwrap_or(Path::new(".")))
    }

    /// Has events recorded.
    pub(crate) fn recording<'a>(&'a self, sink: &'a Spool) -> Recording<'a> {
        Recording { excerpt: &self.excerpt, sink }
    }

    /// Writes the events of a run of so many ranks on one process.
    pub(crate) fn write(&self, spool: &Spool, ranks: u32) -> Result<Summary, TimelineError> {
        let (mut sorted, mut writer) = (spool.finish()?, self.writer(ranks)?);
        while let Some(record) = sorted.next()? {
            writer.write(&record)?;
        }
        writer.finish()
    }

    /// Writes the events of a run of so many ranks on all processes of a cluster; the first one does, and knows what it has
    /// written.
    pub(crate) fn write_across(
        &self,
        spool: &Spool,
        ranks: u32,
        cluster: &mut Cluster,
    ) -> Result<Option<Summary>, RunError> {
        let own = agree(cluster, spool.finish().map_err(RunError::from))?;
        if cluster.member() > 0 {
            let sent = send(own, cluster)?;
            agree(cluster, sent.map_err(RunError::from))?;
            return agree(cluster, Ok(None));
        }
        let written = self.collect(own, ranks, cluster);
        // The others wait to be asked, whatever has happened here.
        cluster.spread(ask(None))?;
        let writer = agree(cluster, written)?;
        agree(cluster, writer.finish().map(Some).map_err(RunError::from))
    }

    /// Writes the events of all processes, but does not complete the file: another process may have failed.
    fn collect(&self, own: Sorted, ranks: u32, cluster: &mut Cluster) -> Result<Writer, RunError> {
        let mut writer = self.writer(ranks)?;
        let members = cluster.members();
        let mut merge = Merge::new(Members { own, cluster }, members)?;
        while let Some(record) = merge.next()? {
            writer.write(&record)?;
        }
        Ok(writer)
    }

    fn writer(&self, ranks: u32) -> Result<Writer, TimelineError> {
        let Range { start, end } = self.excerpt.ranks;
        Writer::create(self.format, &self.path, start..end.min(ranks))
    }
}

impl Scene {
    /// Makes what takes in the events of this process, if there is to be a timeline.
    pub(crate) fn spool(&self) -> Option<Spool> {
        self.job().timeline.as_ref().map(TimelinePlan::spool)
    }

    /// Has events recorded, if there is to be a timeline.
    pub(crate) fn recording<'a>(&'a self, spool: Option<&'a Spool>) -> Option<Recording<'a>> {
        Some(self.job().timeline.as_ref()?.recording(spool?))
    }

    /// Writes what was recorded on one process.
    pub(crate) fn write_timeline(&self, spool: Option<&Spool>) -> Result<Option<Summary>, TimelineError> {
        let Some((plan, spool)) = self.job().timeline.as_ref().zip(spool) else { return Ok(None) };
        plan.write(spool, self.trace().ranks()).map(Some)
    }

    /// Writes what was recorded on all processes of a cluster.
    pub(crate) fn write_timeline_across(
        &self,
        spool: Option<&Spool>,
        cluster: &mut Cluster,
    ) -> Result<Option<Summary>, RunError> {
        let Some((plan, spool)) = self.job().timeline.as_ref().zip(spool) else { return Ok(None) };
        plan.write_across(spool, self.trace().ranks(), cluster)
    }
}

/// The events of all processes, on the first one.
struct Members<'c> {
    own: Sorted,
    cluster: &'c mut Cluster,
}

impl Streams for Members<'_> {
    type Error = RunError;

    fn refill(&mut self, member: usize) -> Result<Vec<Record>, RunError> {
        if member == 0 {
            return Ok(self.own.next_piece(PIECE)?);
        }
        self.cluster.spread(ask(Some(member as u32)))?;
        let parts = self.cluster.gather(Vec::new())?;
        Ok(Record::of_bytes(&parts[member]))
    }
}

/// Sends events of this process as long as the first one asks for them. Whoever fails says so when nobody asks any more.
fn send(mut own: Sorted, cluster: &mut Cluster) -> Result<Result<(), TimelineError>, RunError> {
    let mut failure = Ok(());
    loop {
        let asked = cluster.spread(Vec::new())?;
        let asked: Option<u32> = Wire::read(&mut asked.as_slice()).ok_or(RunError::Different)?;
        let Some(member) = asked else { return Ok(failure) };
        let mut bytes = Vec::new();
        if member as usize == cluster.member() && failure.is_ok() {
            match own.next_piece(PIECE) {
                Ok(piece) => piece.iter().for_each(|record| bytes.extend_from_slice(record.as_bytes())),
                Err(error) => failure = Err(error),
            }
        }
        cluster.gather(bytes)?;
    }
}

/// Asks a process for events, or says that no more are needed.
fn ask(member: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    member.write(&mut bytes);
    bytes
}
