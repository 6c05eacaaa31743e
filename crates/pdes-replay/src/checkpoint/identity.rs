//! Identity of the run of a checkpoint: everything that the result depends on.

use serde::{Deserialize, Serialize};

use crate::job::PlatformSource;
use crate::scene::{RunError, Scene};

/// Everything that must be the same for a run to resume from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    name: String,
    /// Description for people.
    shown: String,
    hash: [u8; 32],
}

/// The first part that differs: its name, and its description in either run.
pub(super) struct Difference {
    pub(super) part: String,
    pub(super) found: String,
    pub(super) expected: String,
}

impl Part {
    fn new(name: &str, shown: impl ToString, content: &[u8]) -> Self {
        Self { name: name.to_owned(), shown: shown.to_string(), hash: blake3::hash(content).into() }
    }

    /// Describes a part with a long text by its hash.
    fn hashed(name: &str, description: &impl std::fmt::Debug) -> Self {
        let text = format!("{description:?}");
        Self::new(name, &blake3::hash(text.as_bytes()).to_hex()[..8], text.as_bytes())
    }
}

impl Identity {
    /// Computes the identity of a run. Threads, partition and run-ahead do not belong to it: the result does not depend on them.
    ///
    /// A text trace is read once more for this.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read any more.
    pub(crate) fn of(scene: &Scene) -> Result<Self, RunError> {
        let (job, trace) = (scene.job(), scene.trace());
        let content = (trace.fingerprint()?, trace.ranks(), trace.actions());
        let shown = format!("{} ({} ranks, {} actions)", job.trace.display(), trace.ranks(), trace.actions());
        let platform = match &job.platform {
            PlatformSource::File(path) => {
                std::fs::read(path).map_err(|source| super::CheckpointError::io(path, source))?
            }
            PlatformSource::Inline(description) => format!("{description:?}").into_bytes(),
        };
        Ok(Self(vec![
            Part::new("the program", env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION").as_bytes()),
            Part::new("the trace", shown, format!("{content:?}").as_bytes()),
            Part::new("the platform", &job.platform, &platform),
            Part::new(
                "the rule of routes",
                format!("{:?}", job.routing),
                format!("{:?}", job.routing).as_bytes(),
            ),
            Part::hashed("the placement of ranks", scene.placement()),
            Part::hashed("[network]", &job.network),
            Part::hashed("[mpi] and [compute]", &job.mpi),
            Part::new("analysis.waits", scene.looks_at_waits(), &[scene.looks_at_waits().into()]),
        ]))
    }

    /// Returns the first difference between this identity and that of a checkpoint.
    pub(super) fn difference(&self, found: &Self) -> Option<Difference> {
        let missing = || Part::new("", "nothing", &[]);
        let parts = self.0.iter().enumerate();
        parts
            .map(|(index, expected)| (expected, found.0.get(index).cloned().unwrap_or_else(missing)))
            .find(|(expected, found)| (&expected.name, expected.hash) != (&found.name, found.hash))
            .map(|(expected, found)| Difference {
                part: expected.name.clone(),
                found: found.shown,
                expected: expected.shown.clone(),
            })
    }
}
