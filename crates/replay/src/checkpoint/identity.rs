//! Identity of the run of a checkpoint: everything that the result depends on.

use serde::{Deserialize, Serialize};

use crate::programs::Program;
use crate::simulation::{RunError, Simulation};
use crate::spec::{PlatformChange, PlatformSource};

/// Name of the part of changes in the course of a run.
const CHANGES: &str = "the changes of resources";

/// Everything that must be the same for a run to resume from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunIdentity(Vec<IdentityPart>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct IdentityPart {
    name: String,
    /// Description for people.
    description: String,
    hash: [u8; 32],
}

/// The first part that differs: its name, and its description in either run.
pub(super) struct Difference {
    pub(super) part: String,
    pub(super) found: String,
    pub(super) expected: String,
}

impl IdentityPart {
    fn new(name: &str, shown: impl ToString, content: &[u8]) -> Self {
        Self { name: name.to_owned(), description: shown.to_string(), hash: blake3::hash(content).into() }
    }

    /// Describes a part with a long text by its hash.
    fn hashed(name: &str, description: &impl std::fmt::Debug) -> Self {
        let text = format!("{description:?}");
        Self::new(name, &blake3::hash(text.as_bytes()).to_hex()[..8], text.as_bytes())
    }
}

impl RunIdentity {
    /// Computes the identity of a run. Threads, partition and run-ahead do not belong to it: the result does not depend on them.
    ///
    /// A text trace is read once more for this.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read any more.
    pub(crate) fn of(simulation: &Simulation) -> Result<Self, RunError> {
        Self::with(simulation, |_| true)
    }

    /// Computes the identity of a run without what changes in the course of it.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read any more.
    pub(super) fn without_changes(simulation: &Simulation) -> Result<Self, RunError> {
        let mut identity = Self::with(simulation, |change| !change.is_in_course())?;
        identity.0.retain(|part| part.name != CHANGES);
        Ok(identity)
    }

    fn with(
        simulation: &Simulation,
        is_part: impl Fn(&dyn PlatformChange) -> bool,
    ) -> Result<Self, RunError> {
        let (spec, trace) = (simulation.spec(), simulation.trace());
        let content = (trace.fingerprint()?, trace.ranks(), trace.actions());
        let shown = format!("{} ({} ranks, {} actions)", spec.trace, trace.ranks(), trace.actions());
        let platform = match &spec.platform {
            PlatformSource::File(path) => {
                std::fs::read(path).map_err(|source| super::CheckpointError::io(path, source))?
            }
            PlatformSource::Inline(description, _) => format!("{description:?}").into_bytes(),
        };
        let changes = spec.platform_changes.iter().filter(|change| is_part(&***change)).collect::<Vec<_>>();
        let mut others = Vec::new();
        for Program { spec, trace, placement, .. } in simulation.programs().others() {
            others.push((
                trace.fingerprint()?,
                trace.ranks(),
                trace.actions(),
                placement,
                &spec.mpi,
                spec.start,
            ));
        }
        let mut files = Vec::new();
        for &key in spec.model.section.map_or(&[][..], |section| section.files) {
            if let Some(path) = spec.model_parameters.get(key).and_then(toml::Value::as_str) {
                let content = std::fs::read(path)
                    .map_err(|source| super::CheckpointError::io(path.as_ref(), source))?;
                files.push(IdentityPart::new(&format!("{}.{key}", spec.model.key), path, &content));
            }
        }
        let mut parts = vec![
            IdentityPart::new("the program", env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION").as_bytes()),
            IdentityPart::new("the trace", shown, format!("{content:?}").as_bytes()),
            IdentityPart::new("the platform", &spec.platform, &platform),
            IdentityPart::new(
                "the rule of routes",
                serde_json::to_value(spec.routing)
                    .ok()
                    .and_then(|name| Some(name.as_str()?.to_owned()))
                    .unwrap_or_default(),
                format!("{:?}", spec.routing).as_bytes(),
            ),
            IdentityPart::hashed("the placement of ranks", simulation.placement()),
            IdentityPart::hashed("the start and the other programs", &(spec.start, &others)),
            IdentityPart::new("the network model", spec.model.key, spec.model.key.as_bytes()),
            IdentityPart::hashed("[network]", &(&spec.network, &spec.link_scale, &changes)),
            IdentityPart::hashed(&format!("[{}]", spec.model.key), &spec.model_parameters),
            IdentityPart::hashed(CHANGES, simulation.platform().changes()),
            IdentityPart::hashed("network.epoch_s or network.regions", &simulation.epochs()),
            IdentityPart::hashed("[mpi] and [compute]", &spec.mpi),
            IdentityPart::new(
                "analysis.waits",
                simulation.analyses_waits(),
                &[simulation.analyses_waits().into()],
            ),
            IdentityPart::new("analysis.critical_path", spec.critical_path, &[spec.critical_path.into()]),
            IdentityPart::new(
                "engine.fast_forward",
                simulation.fast_forwards(),
                &[simulation.fast_forwards().into()],
            ),
            IdentityPart::hashed(
                "the timeline",
                &spec.timeline.as_ref().map(|plan| (plan.format.order(), &plan.excerpt)),
            ),
            IdentityPart::new("analysis.histograms", spec.histograms, &[spec.histograms.into()]),
            IdentityPart::new(
                "analysis.matrix",
                spec.matrix_groups.map_or("none".to_owned(), |groups| format!("of {groups} groups at most")),
                format!("{:?}", spec.matrix_groups).as_bytes(),
            ),
            IdentityPart::new(
                "analysis.links",
                simulation.records_links(),
                &[simulation.records_links().into()],
            ),
            IdentityPart::hashed("the noise", &spec.noise),
            IdentityPart::hashed("compute.offload", &spec.offloads),
            IdentityPart::new("energy", spec.host_loads, &[spec.host_loads.into()]),
        ];
        parts.extend(files);
        Ok(Self(parts))
    }

    /// Returns the first difference between this identity and that of a checkpoint.
    pub(super) fn difference(&self, found: &Self) -> Option<Difference> {
        let missing = || IdentityPart::new("", "nothing", &[]);
        let parts = self.0.iter().enumerate();
        parts
            .map(|(index, expected)| (expected, found.0.get(index).cloned().unwrap_or_else(missing)))
            .find(|(expected, found)| (&expected.name, expected.hash) != (&found.name, found.hash))
            .map(|(expected, found)| Difference {
                part: expected.name.clone(),
                found: found.description,
                expected: expected.description.clone(),
            })
    }
}
