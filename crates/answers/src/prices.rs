//! Prices: the time that a run would save if a part of the machine were better.

mod costs;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};

use netmodel::Platform;
use replay::{Parallelism, RunError, RunSpec, run_all};
use serde::Serialize;

use crate::caveat::Caveat;
use crate::curve::{CurvePoint, Slopes, at_one, knee, piecewise, sampled, slopes};
use crate::limit::Limit;
use crate::messages::{MessageError, MessageGroup};
use crate::parameter::Parameter;
use crate::replayed::{Base, Replayed, replay};
pub use costs::{Costs, CostsError};
pub(crate) use text::signed;

/// Prices of all parts of a machine in a run, the highest first.
///
/// ```
/// use answers::{Caveat, Prices};
/// # use std::sync::atomic::AtomicU64;
/// # fn prices(spec: &replay::RunSpec) -> Result<(), Box<dyn std::error::Error>> {
/// let prices = Prices::of(spec, [0.25, 4.0], None, Caveat::default(), 2, &AtomicU64::new(0))?;
/// let price = &prices.prices[0];
/// println!("{}: {} s", price.name(), price.saved_s);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Prices {
    /// `"pdes-replay prices"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Path of the trace.
    pub trace: String,
    /// Path of the platform, or `"inline"`.
    pub platform: String,
    /// Network model.
    pub model: &'static str,
    /// Run time \[s\].
    pub simulated_time_s: f64,
    /// Run time \[ps\], exact.
    pub simulated_time_ps: u64,
    /// Number of replays.
    pub replays: u64,
    /// Currency of costs; null if there are none.
    pub currency: Option<String>,
    /// Prices, those of parameters that save most first.
    pub prices: Vec<Price>,
    /// Warnings that a user should know before trusting the run.
    pub warnings: Vec<String>,
    /// Known difference between the model and the machine.
    pub caveat: Caveat,
}

/// Price of a parameter of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    /// Name of the parameter: `latency`, `time per byte`, `time per flop`, `work`, `messages`, or `costs of the library`.
    pub parameter: &'static str,
    /// Links, or the region or call site of the program, that have the parameter; null if it is of the whole machine or program.
    pub place: Option<String>,
    /// Number of links or hosts that have the parameter; 1 if it is of the program or of the library.
    pub count: usize,
    /// Value of the parameter \[s, s/B or s/flop\]; null unless it is the same everywhere.
    pub value: Option<f64>,
    /// Time saved by one percent less of the parameter \[s\].
    pub saved_s: f64,
    /// Time lost by one percent more of the parameter \[s\].
    pub lost_s: f64,
    /// Source of both.
    pub method: Method,
    /// Change of the parameter from which both are taken.
    pub step: f64,
    /// Factors of the parameter between which they hold exactly; null if that is not known.
    pub holds: Option<[f64; 2]>,
    /// Run time over factors of the parameter. Where the method is exact, the ends of the range, and all breakpoints between; else a sample of it,
    /// for all links, or null.
    pub curve: Option<Vec<CurvePoint>>,
    /// Factors between which the curve has its knee, equal ones if it is exact: less of the parameter saves little, more costs much. Null if the
    /// curve has none.
    pub knee: Option<[f64; 2]>,
    /// Largest factors with which the run takes little more time; null without a curve.
    pub limits: Option<Vec<Limit>>,
    /// Cost of one percent less of the parameter on all links or hosts; null if it is not known.
    pub cost: Option<f64>,
    /// Time saved for each unit of money \[s\]; null if the cost is not known.
    pub saved_s_per_cost: Option<f64>,
}

/// Source of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The piece of a curve of lines.
    Exact,
    /// Differences to both sides, which agree.
    Differences,
    /// Differences to both sides, which do not agree: the run time is not smooth.
    OneSided,
}

/// The reason why there are no prices.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The run cannot be replayed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run cannot be replayed with a changed parameter.
    #[error("with {parameter} x {factor}: {source}")]
    Changed {
        /// Name of the parameter.
        parameter: String,
        /// Its factor.
        factor: f64,
        /// Cause.
        source: Box<RunError>,
    },
    /// The messages of the program cannot be changed.
    #[error(transparent)]
    Messages(#[from] MessageError),
    /// A cost is of a parameter that the machine does not have.
    #[error(transparent)]
    Costs(#[from] CostsError),
}

impl Prices {
    /// Finds the prices of all [parameters](Parameter::all) of a run's machine, those of `at_once` parameters at a time. `range` has the
    /// least and the largest factor of curves, below and above 1; curves are only of runs without contention. `done` counts the
    /// replays that are done.
    ///
    /// Without contention, a parameter takes three replays and some five for each breakpoint of its curve; with contention two for each
    /// halving of the step, mostly two in all, and those of all links some twenty more. Sizes of messages take two and more in any case.
    ///
    /// # Errors
    /// Returns an error if a replay fails, or a cost is of nothing that the machine has.
    pub fn of(
        spec: &RunSpec,
        range: [f64; 2],
        costs: Option<&Costs>,
        caveat: Caveat,
        at_once: usize,
        done: &AtomicU64,
    ) -> Result<Self, PricesError> {
        let spec = spec.without_analyses();
        let platform = spec.platform().map_err(RunError::from)?;
        let found = Base::of(&RunSpec { region_times: true, ..spec.clone() })?;
        let mut warnings = found.warnings.clone();
        let messages = message_groups(&spec, found.sending_regions(), &mut warnings)?;
        let (base, parameters) = (found.replayed, Parameter::all(&platform, found.regions(), messages));
        costs.map_or(Ok(()), |costs| costs.check(&parameters))?;
        let found = run_all(&parameters, at_once, &AtomicU64::new(0), |parameter| {
            Priced { spec: &spec, base, parameter, done }.price(&platform, range)
        })?;
        let mut prices = Vec::new();
        for (parameter, price) in parameters.iter().zip(found) {
            match price {
                Some(price) => prices.push(price),
                None => warnings.push(format!(
                    "{} have no price: their sizes are so few bytes that no part of them can be left out",
                    name(parameter.name(), parameter.place())
                )),
            }
        }
        costs.into_iter().for_each(|costs| prices.iter_mut().for_each(|price| costs.apply(price)));
        // The sort is stable: equal prices keep the order of their parameters.
        prices
            .sort_by(|one, other| other.rank().partial_cmp(&one.rank()).unwrap_or(std::cmp::Ordering::Equal));
        Ok(Self {
            format: "pdes-replay prices",
            version: 1,
            trace: spec.trace.to_string(),
            platform: spec.platform.to_string(),
            model: spec.model.key,
            simulated_time_s: base.time_ps as f64 / 1e12,
            simulated_time_ps: base.time_ps,
            // The first one is that without changes.
            replays: 1 + done.load(Ordering::Relaxed),
            currency: costs.map(|costs| costs.currency.clone()),
            prices,
            warnings,
            caveat,
        })
    }
}

/// Returns all messages of the program, and those of each of some places, if there are several; adds a warning for those that cannot be changed.
fn message_groups(
    spec: &RunSpec,
    places: Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Vec<MessageGroup>, MessageError> {
    // Programs that run have no trace to change.
    if spec.code.is_some() {
        return Ok(Vec::new());
    }
    let places = if places.len() > 1 { places } else { Vec::new() };
    let mut groups = Vec::new();
    for place in std::iter::once(None).chain(places.iter().map(|place| Some(place.as_str()))) {
        match MessageGroup::new(spec, place) {
            Ok(group) => groups.extend(group),
            Err(error) if error.is_misuse() => {
                warnings.push(format!("{} have no price: {error}", name("messages", place)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(groups)
}

impl Price {
    /// Returns the name of the parameter, and of its place.
    pub fn name(&self) -> String {
        name(self.parameter, self.place.as_deref())
    }

    /// Prices with costs come first, by what a unit of money saves; then the others, by what a percent saves.
    fn rank(&self) -> (bool, f64) {
        (self.saved_s_per_cost.is_some(), self.saved_s_per_cost.unwrap_or(self.saved_s))
    }
}

/// Returns the name of a parameter of a place.
fn name(parameter: &str, place: Option<&str>) -> String {
    match place {
        Some("") => format!("{parameter}, before the first region"),
        Some(place) => format!("{parameter}, {place}"),
        None => parameter.to_owned(),
    }
}

/// A parameter whose price is sought.
struct Priced<'a> {
    spec: &'a RunSpec,
    base: Replayed,
    parameter: &'a Parameter,
    done: &'a AtomicU64,
}

impl Priced<'_> {
    /// Returns the price; `None` if the parameter can have no other value.
    fn price(&self, platform: &Platform, range: [f64; 2]) -> Result<Option<Price>, PricesError> {
        let parameter = self.parameter;
        // Each action may be rounded by half a picosecond, and equal ones all in one direction; a message by half a byte, too.
        let slowest_ps = platform.links().iter().map(|link| 1e12 / link.bandwidth).fold(0.0, f64::max);
        let unit = if parameter.is_whole() { 1.0 + slowest_ps } else { 1.0 };
        let rounding = 1.0 + 0.5 * unit * self.base.actions as f64;
        let base = self.base.time_ps as f64;
        let is_free = self.spec.model.parallelism == Parallelism::Uncontended && !parameter.is_whole();
        let curve = match is_free {
            true => piecewise(range, rounding, |factor| self.time(factor))?,
            false => None,
        };
        let (Slopes { left, right, step }, holds) = match curve.as_deref().and_then(at_one) {
            Some((slopes, holds)) => (slopes, Some(holds)),
            None => match slopes(base, rounding, |factor| self.whole_time(factor))? {
                Some(slopes) => (slopes, None),
                None => return Ok(None),
            },
        };
        let (curve, limits) = match curve {
            Some(curve) => {
                let limits = Limit::on_curve(base / 1e12, &curve);
                (Some(curve), Some(limits))
            }
            None if parameter.is_of_all_links() => {
                let curve = sampled(range, |factor| self.time(factor))?;
                let known = curve.iter().filter(|point| point.factor >= 1.0);
                let known = known.map(|point| (point.factor, point.time_s));
                let limits =
                    Limit::search(known, range[1], |factor| self.time(factor).map(|time| time / 1e12))?;
                (Some(curve), Some(limits))
            }
            None => (None, None),
        };
        let knee = curve.as_deref().and_then(|curve| {
            let number = knee(curve)?;
            let ends = if holds.is_some() { [number; 2] } else { [number.saturating_sub(1), number + 1] };
            Some(ends.map(|end| curve[end.min(curve.len() - 1)].factor))
        });
        let method = match holds {
            Some(_) => Method::Exact,
            None if left == right => Method::Differences,
            None => Method::OneSided,
        };
        Ok(Some(Price {
            parameter: parameter.name(),
            place: parameter.place().map(str::to_owned),
            count: parameter.count(platform),
            value: parameter.value(platform),
            saved_s: 0.01 * left,
            lost_s: 0.01 * right,
            method,
            step,
            holds,
            curve,
            knee,
            limits,
            cost: None,
            saved_s_per_cost: None,
        }))
    }

    /// Returns the run time with a factor of the parameter \[ps\]; `None` if whole bytes allow only one that is far from it.
    fn whole_time(&self, factor: f64) -> Result<Option<f64>, PricesError> {
        let scaled = self.parameter.scaled(self.spec, factor)?;
        let [wanted, possible] = [factor - 1.0, scaled.factor - 1.0];
        if (possible - wanted).abs() > 0.5 * wanted.abs() {
            return Ok(None);
        }
        let (base, time) = (self.base.time_ps as f64, self.replay(&scaled, factor)?);
        // The difference of the factor that is possible stands for that of the factor that was asked for.
        Ok(Some(base + (time - base) * (wanted / possible)))
    }

    /// Returns the run time with a factor of the parameter \[ps\].
    fn time(&self, factor: f64) -> Result<f64, PricesError> {
        if factor == 1.0 {
            return Ok(self.base.time_ps as f64);
        }
        self.replay(&*self.parameter.scaled(self.spec, factor)?, factor)
    }

    fn replay(&self, spec: &RunSpec, factor: f64) -> Result<f64, PricesError> {
        // A display elsewhere reads this counter; it is read when all are done.
        self.done.fetch_add(1, Ordering::Relaxed);
        let changed = |source| PricesError::Changed {
            parameter: name(self.parameter.name(), self.parameter.place()),
            factor,
            source: Box::new(source),
        };
        let Replayed { time_ps, .. } = replay(spec).map_err(changed)?;
        Ok(time_ps as f64)
    }
}
