//! Programs on more ranks than were traced.
//!
//! The ranks of each trace stand in a grid, in which their peers are at equal offsets. The place of a rank is, along each dimension,
//! first, inner or last. Ranks at one place have the same program on any number of ranks, but for its values: sizes, counts and
//! amounts, each of which follows a law that is fitted over all traces, or of one trace follows from how the problem grows
//! ([`Scaling`]). What does not fit is refused, with its place.

mod error;
mod grid;
mod law;
mod program;
mod scaling;

pub use error::ExtrapolationError;
pub use scaling::Scaling;

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{ArchiveWriter, ConvertOptions, Folding, LoadOptions, Provenance, Summary, Trace};

use crate::load::{convert, load};
use grid::{Grid, Place, Points, Position, Series};
use law::{Features, Law, Sample, Unfitted};
use program::{Patterns, RankProgram};
use scaling::Rules;

/// Options of an extrapolation.
#[derive(Clone, Debug)]
pub struct ExtrapolationOptions {
    /// Number of ranks of the result.
    pub ranks: u32,
    /// Number of ranks of the result along each dimension; by default the grid most like that of the largest trace.
    pub grid: Option<Vec<u32>>,
    /// Largest misfit of an amount of computation, relative to it. Sizes and counts have to fit exactly.
    pub misfit: f64,
    /// How the problem grows, which one trace does not tell; `None` with several.
    pub scaling: Option<Scaling>,
}

/// A description of an extrapolated trace.
#[derive(Clone, Debug)]
pub struct Extrapolated {
    /// Summary of the archive.
    pub summary: Summary,
    /// Number of ranks along each dimension of the grid of each trace, and at last of the result.
    pub grids: Vec<Vec<u32>>,
    /// Number of points that are divided among the ranks along each dimension; `None` where no value tells it, so that all ranks
    /// have equal shares. Empty with weak scaling, which needs none.
    pub points: Vec<Option<u64>>,
    /// Laws, with the number of values that follow each one and their largest misfit, relative to the value.
    pub laws: Vec<(String, u64, f64)>,
}

/// A trace with its ranks in a grid.
struct Source {
    programs: Vec<RankProgram>,
    grid: Grid,
}

/// The program of all ranks at a place.
struct Class<'s> {
    program: &'s RankProgram,
    /// Offsets of the peers in the grid.
    offsets: Vec<grid::Offset>,
    laws: Vec<Law>,
}

/// Writes the trace that a program would have on another number of ranks, of traces on two numbers of ranks or more, or of one and how
/// the problem grows.
///
/// Cost: O(length of the folded programs, times ranks, times grids that these ranks have).
///
/// # Errors
/// Fails if a trace cannot be read or folded, if no grid makes the ranks of all traces alike, if a value follows no law, or if the
/// archive cannot be written.
pub fn extrapolate(
    traces: &[&Path],
    output: &Path,
    options: &ExtrapolationOptions,
) -> Result<Extrapolated, ExtrapolationError> {
    let mut patterns = Patterns::default();
    let (mut programs, mut metrics) = (Vec::new(), Vec::new());
    for path in traces {
        let trace = load_folded(path)?;
        metrics.push(trace.provenance().work_metric);
        programs.push(patterns.programs(&trace, path)?);
    }
    programs.sort_by_key(Vec::len);
    let counts: Vec<usize> = programs.iter().map(Vec::len).collect();
    let least = if options.scaling.is_some() { 1 } else { 2 };
    if counts.len() < least || counts.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(ExtrapolationError::Counts { found: counts });
    }
    if counts.len() > 1 && options.scaling.is_some() {
        return Err(ExtrapolationError::Scaling);
    }
    if metrics.iter().any(|metric| *metric != metrics[0]) {
        return Err(ExtrapolationError::Metrics);
    }
    let grids = grid::consistent(&programs)?;
    let sources: Vec<Source> =
        programs.into_iter().zip(grids).map(|(programs, grid)| Source { programs, grid }).collect();
    let largest = &sources[sources.len() - 1].grid;
    let target = match &options.grid {
        Some(sides) => largest.with_sides(sides, options.ranks)?,
        None => largest.like(options.ranks)?,
    };
    let dimensions = if options.scaling == Some(Scaling::Weak) { 0 } else { target.dimensions() };
    let points: Vec<_> = (0..dimensions).map(|dimension| find_points(&sources, dimension)).collect();
    let context =
        Context { sources: &sources, target, points: &points, patterns: &patterns, misfit: options.misfit };
    let mut rules = options.scaling.map(Rules::new);
    if let Some(dimension) = rules.as_ref().and_then(|_| sources[0].grid.narrow(&target)) {
        return Err(ExtrapolationError::Narrow(dimension + 1));
    }
    if let (Some(rules), Some(place)) = (&mut rules, sources[0].grid.places().find(Place::is_inner)) {
        // What inner ranks have tells what others have.
        let class = context.fit(place, Some(rules))?;
        rules.learn(&patterns.kinds(class.program), &class.offsets, class.laws);
    }
    let mut classes: FxHashMap<Place, Class<'_>> = FxHashMap::default();
    let mut laws: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    let mut writer = ArchiveWriter::create(output, options.ranks, 1)?
        .with_provenance(Provenance { work_metric: metrics[0], ..Provenance::default() });
    for (rank, position) in (0..options.ranks).map(Rank::new).zip(target.positions()) {
        let place = target.place(position);
        let class = match classes.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let class = context.fit(*place.key(), rules.as_ref())?;
                for law in &class.laws {
                    let (values, misfit) = laws.entry(law.to_string()).or_default();
                    (*values, *misfit) = (*values + 1, misfit.max(law.misfit));
                }
                place.insert(class)
            }
        };
        let Class { program, offsets, laws } = &*class;
        let features = Features::of(&target, position, &points);
        let values: Vec<f64> = laws.iter().map(|law| law.value(&features)).collect();
        let peers: Vec<Rank> = offsets.iter().map(|offset| target.at_offset(position, *offset)).collect();
        let items = patterns.instantiate(program, &values, &peers, options.ranks)?;
        writer.write_rank(rank, &items)?;
    }
    Ok(Extrapolated {
        summary: writer.finish()?,
        grids: sources.iter().map(|source| &source.grid).chain([&target]).map(Grid::sides).collect(),
        points: points.into_iter().map(|points| points.map(Points::get)).collect(),
        laws: laws.into_iter().map(|(name, (values, misfit))| (name, values, misfit)).collect(),
    })
}

/// Loads a trace with its loops; one that has none is folded.
fn load_folded(path: &Path) -> Result<Trace, ExtrapolationError> {
    let trace = load(path, &LoadOptions::default())?;
    if trace.has_graphs() {
        return Err(ExtrapolationError::Graph { path: path.to_path_buf() });
    }
    if (0..trace.ranks()).all(|rank| trace.rank(Rank::new(rank)).folded_actions().is_some()) {
        return Ok(trace);
    }
    let folder = tempfile::tempdir().map_err(ExtrapolationError::Folder)?;
    let archive = folder.path().join("folded.pdt");
    convert(path, &archive, &ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() })?;
    // The mapping outlives the file.
    Ok(load(&archive, &LoadOptions::default())?)
}

/// Finds the number of points along a dimension: the first by which some value is proportional to the share of each rank in all traces.
fn find_points(sources: &[Source], dimension: usize) -> Option<Points> {
    let mut places: Vec<Place> = sources.iter().flat_map(|source| source.grid.places()).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().find_map(|place| {
        let lines: Vec<_> = sources.iter().filter_map(|source| source.line(place, dimension)).collect();
        let (_, first) = lines.first()?;
        let slots = first.first()?.1.values.len();
        (0..slots).find_map(|slot| {
            let of_line = |(side, line): &(u32, Vec<(u32, &RankProgram)>)| {
                let values =
                    line.iter().map(|(index, program)| Some((*index, program.values[slot].whole()?)));
                Some(Series { side: *side, values: values.collect::<Option<_>>()? })
            };
            let series: Option<Vec<Series>> = lines.iter().map(of_line).collect();
            Points::find(&series?)
        })
    })
}

impl Source {
    /// Returns the ranks at a place.
    fn at(&self, place: Place) -> impl Iterator<Item = (Position, &RankProgram)> {
        let all = self.grid.positions().zip(&self.programs);
        all.filter(move |(position, _)| self.grid.place(*position) == place)
    }

    /// Returns the ranks at a place that differ along a dimension only from the first one, with their indices along it and the number of
    /// ranks along it.
    fn line(&self, place: Place, dimension: usize) -> Option<(u32, Vec<(u32, &RankProgram)>)> {
        let (first, _) = self.at(place).next()?;
        let is_on_line = |position: &Position| {
            (0..position.len()).all(|other| other == dimension || position[other] == first[other])
        };
        let line = self.at(place).filter(|(position, _)| is_on_line(position));
        Some((
            self.grid.sides()[dimension],
            line.map(|(position, program)| (position[dimension], program)).collect(),
        ))
    }
}

/// Traces and target of an extrapolation, to which the laws of all places are fitted.
struct Context<'s> {
    sources: &'s [Source],
    target: Grid,
    points: &'s [Option<Points>],
    patterns: &'s Patterns,
    misfit: f64,
}

impl<'s> Context<'s> {
    /// Fits the laws of a place.
    fn fit(&self, place: Place, rules: Option<&Rules>) -> Result<Class<'s>, ExtrapolationError> {
        let Self { sources, target, points, patterns, misfit } = *self;
        let seen: Vec<&Source> = sources.iter().filter(|source| source.at(place).next().is_some()).collect();
        let expected = if rules.is_some() { 1 } else { 2 };
        if seen.len() < expected {
            return Err(ExtrapolationError::Unseen {
                place: place.to_string(),
                traces: seen.len(),
                expected,
            });
        }
        let source = seen[0];
        let (position, program) = source.at(place).next().expect("the source has such a rank");
        let offsets: Vec<_> = program.peers.iter().map(|peer| source.grid.offset(position, *peer)).collect();
        let ranks: Vec<(Features, &RankProgram)> = seen
            .iter()
            .flat_map(|source| {
                source
                    .at(place)
                    .map(|(position, program)| (Features::of(&source.grid, position, points), program))
            })
            .collect();
        let targets = target.positions().filter(|position| target.place(*position) == place);
        let mut targets: Vec<Features> =
            targets.map(|position| Features::of(&target, position, points)).collect();
        law::deduplicate(&mut targets);
        let kinds = patterns.kinds(program);
        let laws = (0..program.values.len()).map(|slot| {
            let sample = |(features, program): &(Features, &RankProgram)| Sample {
                features: *features,
                value: program.values[slot].get(),
            };
            let mut samples: Vec<Sample> = ranks.iter().map(sample).collect();
            law::deduplicate(&mut samples);
            let tolerance = program.values[slot].whole().is_none().then_some(misfit);
            let law = match rules {
                None => Law::fit(&samples, &targets, tolerance, target.dimensions()),
                Some(rules) => {
                    rules.fit(kinds[slot], &offsets, &samples, &targets, tolerance, target.dimensions())
                }
            };
            law.map_err(|unfitted| {
                let (what, place) = (patterns.describe(program, slot), place.to_string());
                match unfitted {
                    Unfitted::Ambiguous(laws) => ExtrapolationError::Ambiguous { what, place, laws },
                    Unfitted::Unknown => ExtrapolationError::Unknown { what, place },
                    Unfitted::NoLaw(best) => {
                        ExtrapolationError::Law { what, place, values: law::describe(&samples), best }
                    }
                }
            })
        });
        let laws = laws.collect::<Result<_, _>>()?;
        Ok(Class { program, offsets, laws })
    }
}
