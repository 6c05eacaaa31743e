//! Hypotheses, and the files that have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdes_core::Rank;
use serde::Deserialize;
use toml::Spanned;
use trace_mmap::{
    ConvertOptions, Location, OpError, RankBuilders, Summary, Trace, TraceError, TraceSource, convert,
};

use super::keys::{Keys, suggest};
use super::{
    Placement, Plan, Program, Refusal, Selector, TRANSFORMS, Transform, TransformError, TransformKind,
};

/// Name of the program without a hypothesis in results.
pub const ORIGINAL: &str = "original";

/// A hypothesis about a program: how the program would be different.
///
/// ```
/// use std::sync::Arc;
/// use pdes_core::Rank;
/// use trace_mmap::{LoadOptions, Op, Trace};
/// use trace_tools::transform::Hypothesis;
///
/// let trace = Arc::new(trace_tools::from_text("0 init\n1 init\n0 compute 30\n1 compute 10\n")?);
/// let text = "[[hypothesis]]\nname = 'even'\ntransform = [{ kind = 'balance' }, { kind = 'scale', factor = 2 }]\n";
/// let hypotheses = Hypothesis::from_text(text, "even.toml".as_ref())?;
/// let transformed = Trace::read(Box::new(hypotheses[0].apply(trace, "trace.txt".as_ref())?), &LoadOptions::default())?;
/// assert_eq!(transformed.ops(Rank::new(0)).last(), Some(Op::Compute { flops: 40.0 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Hypothesis {
    name: String,
    settings: Vec<String>,
    transforms: Vec<(&'static TransformKind, Box<dyn Transform>)>,
}

/// A file of hypotheses.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HypothesisFile {
    hypothesis: Vec<HypothesisText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HypothesisText {
    name: Spanned<String>,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    transform: Vec<Spanned<toml::Table>>,
}

impl Hypothesis {
    /// Reads a file of hypotheses (TOML).
    ///
    /// # Errors
    /// Fails if the file cannot be read, or at the first invalid hypothesis, with its line.
    pub fn from_path(path: &Path) -> Result<Vec<Self>, TransformError> {
        let read = std::fs::read_to_string(path);
        let text = read.map_err(|source| TransformError::File { path: path.to_path_buf(), source })?;
        Self::from_text(&text, path)
    }

    /// Reads hypotheses (TOML) from the text of a file.
    ///
    /// # Errors
    /// Fails at the first invalid hypothesis, with its line.
    pub fn from_text(text: &str, path: &Path) -> Result<Vec<Self>, TransformError> {
        let format = |line: Option<usize>, message: String| TransformError::Format {
            path: path.to_path_buf(),
            line,
            message,
        };
        let file: HypothesisFile =
            toml::from_str(text).map_err(|error| format(None, error.to_string().trim_end().to_owned()))?;
        let line_of = |offset: usize| Some(1 + text[..offset].matches('\n').count());
        let mut hypotheses: Vec<Self> = Vec::new();
        for HypothesisText { name, set, transform } in file.hypothesis {
            let line = line_of(name.span().start);
            let name = name.into_inner();
            check_name(&name, &hypotheses).map_err(|message| format(line, message))?;
            let read = |(number, table): (usize, &Spanned<toml::Table>)| {
                let place = |message| {
                    let message = format!("the hypothesis {name:?}, transformation {number}: {message}");
                    format(line_of(table.span().start), message)
                };
                read_transform(table.get_ref()).map_err(place)
            };
            let transforms = (1..).zip(&transform).map(read).collect::<Result<_, _>>()?;
            hypotheses.push(Self { name, settings: set, transforms });
        }
        match hypotheses.is_empty() {
            true => Err(format(None, "found no hypothesis, expected [[hypothesis]] with a name".to_owned())),
            false => Ok(hypotheses),
        }
    }

    /// Returns the name, which can be that of a file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns other values of the configuration, `section.key=value`.
    pub fn settings(&self) -> &[String] {
        &self.settings
    }

    /// Returns the changes of the hosts of ranks, in their order.
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.transforms.iter().filter_map(|(_, transform)| transform.placement())
    }

    /// Returns whether the operations of the program change.
    pub fn changes_program(&self) -> bool {
        self.transforms.iter().any(|(_, transform)| transform.placement().is_none())
    }

    /// Applies the hypothesis to a trace, all of whose ranks are loaded from `path`.
    ///
    /// Each transformation reads the program once or a few times, to check that it fits, and to learn what it needs of all ranks.
    ///
    /// # Errors
    /// Fails if a selector matches nothing, or a transformation would break the program; if the trace is damaged.
    pub fn apply(&self, trace: Arc<Trace>, path: &Path) -> Result<TransformedTrace, TransformError> {
        let mut plans: Vec<Box<dyn Plan>> = Vec::new();
        for (number, (_, transform)) in (1..).zip(&self.transforms) {
            let program = Program::new(&trace, &plans);
            let plan = transform.selector().check(&program).and_then(|()| transform.plan(&program));
            // Damage explains any refusal.
            trace.integrity().map_err(TraceError::from)?;
            let plan = plan.map_err(|refusal| self.refused(number, refusal))?;
            plans.push(plan);
        }
        Ok(TransformedTrace { trace, path: path.to_path_buf(), plans })
    }

    /// Returns the error for a transformation, by its number from 1.
    pub(super) fn refused(&self, number: usize, refusal: Refusal) -> TransformError {
        let (hypothesis, kind, refusal) =
            (self.name.clone(), self.transforms[number - 1].0.key, Box::new(refusal));
        TransformError::Refused { hypothesis, number, kind, refusal }
    }

    /// Returns the transformations of the program, with their numbers from 1.
    pub(super) fn transforms(&self) -> impl Iterator<Item = (usize, &dyn Transform)> {
        let all = (1..).zip(&self.transforms).map(|(number, (_, transform))| (number, &**transform));
        all.filter(|(_, transform)| transform.placement().is_none())
    }

    /// Writes the transformed trace to an archive. Its provenance is that of the trace. Folded programs are changed in
    /// their folded form where [`FoldedForm`](super::FoldedForm) says so of all transformations.
    ///
    /// # Errors
    /// Fails as [`Self::apply`], or if the archive cannot be written.
    pub fn write(
        &self,
        trace: &Arc<Trace>,
        path: &Path,
        output: &Path,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary, TransformError> {
        let options = ConvertOptions { provenance: Some(trace.provenance()), ..options.clone() };
        if let Some(summary) = self.write_folded(trace, output, &options)? {
            return Ok(summary);
        }
        let source = self.apply(Arc::clone(trace), path)?;
        if let Some(summary) = source.write_folded(output, &options)? {
            return Ok(summary);
        }
        Ok(convert(Box::new(source), output, &options)?.summary)
    }
}

/// Checks the name of a hypothesis after others.
fn check_name(name: &str, others: &[Hypothesis]) -> Result<(), String> {
    let is_file_name = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && !name.contains(|letter: char| letter.is_control() || ['/', '\\'].contains(&letter));
    if !is_file_name {
        return Err(format!(
            "found the name {name:?}, expected one of up to 100 bytes without slashes, that does not begin with a dot: files are named after it"
        ));
    }
    if name == ORIGINAL {
        return Err(format!("the name {ORIGINAL:?} is that of the program without a hypothesis"));
    }
    match others.iter().any(|other| other.name == name) {
        true => Err(format!("the name {name:?} occurs twice")),
        false => Ok(()),
    }
}

fn read_transform(table: &toml::Table) -> Result<(&'static TransformKind, Box<dyn Transform>), String> {
    let names = || TRANSFORMS.iter().map(|kind| kind.key);
    let found = match table.get("kind") {
        Some(toml::Value::String(name)) => name.as_str(),
        Some(other) => return Err(format!("found kind = {other}, expected a name")),
        None => return Err("kind is missing".to_owned()),
    };
    let Some(kind) = TRANSFORMS.iter().find(|kind| kind.key == found) else {
        return Err(format!("there is no kind {found:?}; {}", suggest(found, names())));
    };
    let keys = Keys::new(kind, table)?;
    let selector = Selector::read(kind.subject, &keys)?;
    Ok((kind, (kind.read)(selector, &keys)?))
}

/// A trace with the transformations of a hypothesis, which are applied as its actions are read.
#[derive(Debug)]
pub struct TransformedTrace {
    pub(super) trace: Arc<Trace>,
    path: PathBuf,
    pub(super) plans: Vec<Box<dyn Plan>>,
}

/// An operation of a transformed trace is invalid.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank}, transformed action {action}: {error}")]
struct InvalidStep {
    rank: Rank,
    action: u64,
    error: OpError,
}

impl TraceSource for TransformedTrace {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.trace.ranks().into())
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        for rank in ranks.wanted() {
            let number = Rank::new(rank);
            for step in Program::new(&self.trace, &self.plans).steps(number) {
                let Some(builder) = ranks.get(rank.into()) else { break };
                let invalid = |error| {
                    TraceError::Source(Box::new(InvalidStep { rank: number, action: step.action, error }))
                };
                let action = builder.resolve(&step.op).map_err(invalid)?;
                builder.push(action, step.nanos)?;
            }
        }
        Ok(self.trace.integrity()?)
    }

    fn locate(&self, _: Rank, _: u64) -> Result<Location, TraceError> {
        Err(TraceError::NoLines { file: self.path.clone() })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        self.trace.fingerprint()
    }
}
