//! Laws of values: sums of a few terms, fitted by least squares.

use std::collections::BTreeSet;
use std::fmt;

use super::grid::{DIMENSIONS, Grid, Points, Position};

/// What a value may depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Features {
    ranks: f64,
    /// Number of ranks along each dimension.
    sides: [f64; DIMENSIONS],
    /// Share of the points along each dimension; where their number is not known, the share of the dimension.
    shares: [f64; DIMENSIONS],
    /// The same without points at ends of the whole dimension.
    inner: [f64; DIMENSIONS],
}

impl Features {
    pub(super) fn of(grid: &Grid, position: Position, points: &[Option<Points>]) -> Self {
        let mut sides = [1.0; DIMENSIONS];
        let (mut shares, mut inner) = (sides, sides);
        let place = grid.place(position);
        for (dimension, side) in grid.sides().into_iter().enumerate() {
            sides[dimension] = side.into();
            if let Some(Some(points)) = points.get(dimension) {
                let share = points.share(side, position[dimension]) as f64;
                (shares[dimension], inner[dimension]) = (share, share - f64::from(place.ends(dimension)));
            } else {
                (shares[dimension], inner[dimension]) = (1.0 / f64::from(side), 1.0 / f64::from(side));
            }
        }
        Self { ranks: sides.iter().product(), sides, shares, inner }
    }
}

/// A value of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) features: Features,
    pub(super) value: f64,
}

/// Leaves one of equal elements.
pub(super) fn deduplicate<T: PartialEq>(all: &mut Vec<T>) {
    let mut distinct: Vec<T> = Vec::new();
    for element in all.drain(..) {
        if !distinct.contains(&element) {
            distinct.push(element);
        }
    }
    *all = distinct;
}

/// Returns whether a value of all samples may be a whole number for each point of a face, with up to two layers around it.
pub(super) fn may_count_points(of: [bool; DIMENSIONS], samples: &[Sample]) -> bool {
    let counts = |shares: fn(&Features) -> &[f64; DIMENSIONS], layers: f64| {
        samples.iter().all(|Sample { features, value }| {
            let sides = shares(features).iter().zip(of).filter(|(_, of)| *of);
            (value / sides.map(|(side, _)| side + layers).product::<f64>()).fract() == 0.0
        })
    };
    let kinds: [fn(&Features) -> &[f64; DIMENSIONS]; 2] =
        [|features| &features.shares, |features| &features.inner];
    kinds.into_iter().any(|shares| [0.0, 1.0, 2.0].into_iter().any(|layers| counts(shares, layers)))
}

/// Describes the first values.
pub(super) fn describe(samples: &[Sample]) -> String {
    let of = |sample: &Sample| format!("{} on {} ranks", sample.value, sample.features.ranks);
    let all: Vec<String> = samples.iter().take(6).map(of).collect();
    all.join(", ") + if samples.len() > 6 { ", ..." } else { "" }
}

/// A term of a law.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Term {
    One,
    /// A power of the number of ranks.
    Ranks(f64),
    /// The logarithm of the number of ranks to base 2.
    Logarithm,
    /// The number of ranks along a dimension.
    Side(usize),
    /// A product of shares of dimensions, as often as each is given.
    Shares([u32; DIMENSIONS]),
    /// A product of shares without the ends.
    Inner([u32; DIMENSIONS]),
}

impl Term {
    fn value(self, features: &Features) -> f64 {
        let product = |of: &[f64; DIMENSIONS], powers: [u32; DIMENSIONS]| -> f64 {
            of.iter().zip(powers).map(|(value, power)| value.powi(power as i32)).product()
        };
        match self {
            Self::One => 1.0,
            Self::Ranks(power) => features.ranks.powf(power),
            Self::Logarithm => features.ranks.log2(),
            Self::Side(dimension) => features.sides[dimension],
            Self::Shares(powers) => product(&features.shares, powers),
            Self::Inner(powers) => product(&features.inner, powers),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = |name: char, powers: &[u32; DIMENSIONS]| {
            let factors = powers.iter().zip(1..);
            let factors =
                factors.flat_map(|(power, dimension)| (0..*power).map(move |_| format!("{name}{dimension}")));
            factors.collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::One => write!(f, "1"),
            Self::Ranks(power) => write!(f, "P^{power:.3}"),
            Self::Logarithm => write!(f, "log P"),
            Self::Side(dimension) => write!(f, "q{}", dimension + 1),
            Self::Shares(powers) => write!(f, "{}", product('n', powers)),
            Self::Inner(powers) => write!(f, "{}", product('m', powers)),
        }
    }
}

/// Returns the forms of laws, simple ones first.
fn forms(dimensions: usize) -> Vec<Vec<Term>> {
    let mut forms = vec![vec![Term::One]];
    let powers = |chosen: &[usize]| {
        let mut powers = [0; DIMENSIONS];
        chosen.iter().for_each(|dimension| powers[*dimension] += 1);
        powers
    };
    // Work is done at points inside the whole grid, while messages have those at its ends, too: a computation with copies of messages
    // has terms of both kinds.
    let kinds = [Term::Shares, Term::Inner];
    for (product, part) in kinds.iter().flat_map(|product| kinds.iter().map(move |part| (product, part))) {
        let of = |chosen: &[usize]| part(powers(chosen));
        for a in 0..dimensions {
            forms.extend([vec![of(&[a])], vec![of(&[a]), Term::One]]);
            for b in a..dimensions {
                let area = product(powers(&[a, b]));
                forms.extend([vec![area], vec![area, of(&[a])], vec![area, of(&[b])]]);
                forms.push(vec![area, of(&[a]), of(&[b])]);
                forms.push(vec![area, of(&[a]), of(&[b]), Term::One]);
            }
        }
        if dimensions == 3 {
            let volume = product(powers(&[0, 1, 2]));
            forms.extend([vec![volume], vec![volume, of(&[0, 1]), of(&[0, 2]), of(&[1, 2])]]);
        }
    }
    for power in [-1.0, 1.0, -2.0, 2.0, -0.5, 0.5, -1.0 / 3.0, 1.0 / 3.0, -2.0 / 3.0, 2.0 / 3.0] {
        forms.push(vec![Term::Ranks(power)]);
    }
    forms.push(vec![Term::Logarithm]);
    forms.extend((0..dimensions).map(|dimension| vec![Term::Side(dimension)]));
    forms.extend((0..dimensions).map(|dimension| vec![Term::Side(dimension), Term::One]));
    for other in [Term::Logarithm, Term::Ranks(1.0), Term::Ranks(-1.0), Term::Ranks(-0.5), Term::Ranks(0.5)] {
        forms.push(vec![other, Term::One]);
    }
    forms.sort_by_key(Vec::len);
    forms
}

/// Reason why a value has no law.
#[derive(Debug)]
pub(super) enum Unfitted {
    /// No law is near enough: the nearest one, with its misfit.
    NoLaw(Option<(String, f64)>),
    /// One trace does not tell.
    Unknown,
    /// Two laws are exact, and differ on the targets.
    Ambiguous([String; 2]),
}

/// A law of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Law {
    terms: Vec<Term>,
    coefficients: Vec<f64>,
    /// Largest error, relative to the value.
    pub(super) misfit: f64,
}

impl Law {
    /// Finds the law of fewest terms that is exact and tells more values than it has terms; else, where a misfit is tolerated, the nearest
    /// of fewest terms.
    pub(super) fn fit(
        samples: &[Sample],
        targets: &[Features],
        tolerance: Option<f64>,
        dimensions: usize,
    ) -> Result<Self, Unfitted> {
        let laws: Vec<Self> =
            forms(dimensions).into_iter().filter_map(|terms| Self::of(terms, samples, targets)).collect();
        let mut exact = laws.iter().filter(|law| law.is_exact_on(samples, tolerance.is_some()));
        if let Some(simplest) = exact.next() {
            let same = exact.take_while(|law| law.terms.len() == simplest.terms.len());
            return match same.into_iter().find(|law| !simplest.agrees(law, targets)) {
                Some(other) => Err(Unfitted::Ambiguous([simplest, other].map(Self::to_string))),
                None => Ok(simplest.clone()),
            };
        }
        let near = laws.iter().filter(|law| tolerance.is_some_and(|tolerance| law.misfit <= tolerance));
        let order = |one: &&Self, other: &&Self| one.misfit.total_cmp(&other.misfit);
        let nearest =
            near.min_by(|one, other| one.terms.len().cmp(&other.terms.len()).then(order(one, other)));
        let closest = || laws.iter().min_by(order).map(|law| (law.to_string(), law.misfit));
        nearest.cloned().ok_or_else(|| Unfitted::NoLaw(closest()))
    }

    /// Returns the law that all values are equal, but for amounts that miss by what is tolerated.
    pub(super) fn constant(samples: &[Sample], tolerance: Option<f64>) -> Result<Self, Unfitted> {
        let law = Self::of(vec![Term::One], samples, &[]).ok_or(Unfitted::Unknown)?;
        let is_near = tolerance.is_some_and(|tolerance| law.misfit <= tolerance);
        if is_near || law.is_exact_on(samples, false) {
            Ok(law)
        } else {
            Err(Unfitted::NoLaw(Some((law.to_string(), law.misfit))))
        }
    }

    /// Finds the law of fewest terms in the shares alone, if the shares of all dimensions differ between the values, so that these tell it.
    pub(super) fn of_shares(
        samples: &[Sample],
        targets: &[Features],
        is_amount: bool,
        dimensions: usize,
    ) -> Result<Option<Self>, Unfitted> {
        let differ = |dimension: usize| {
            let share = |sample: &Sample| sample.features.shares[dimension];
            samples.iter().any(|sample| share(sample) != share(&samples[0]))
        };
        if !(0..dimensions).all(differ) {
            return Ok(None);
        }
        let is_share = |term: &Term| matches!(term, Term::One | Term::Shares(_) | Term::Inner(_));
        let forms = forms(dimensions).into_iter().filter(|terms| terms.iter().all(is_share));
        let laws = forms.filter_map(|terms| Self::of(terms, samples, targets));
        let mut exact: Vec<Self> = laws.filter(|law| law.is_exact_on(samples, is_amount)).collect();
        let fewest = exact.first().map_or(0, |law| law.terms.len());
        exact.retain(|law| law.terms.len() == fewest);
        Self::agreed(exact, targets, is_amount)
    }

    /// Returns the first of some laws, if all say the same: of amounts nearly.
    pub(super) fn agreed(
        laws: Vec<Self>,
        targets: &[Features],
        is_amount: bool,
    ) -> Result<Option<Self>, Unfitted> {
        let Some(first) = laws.first() else { return Ok(None) };
        let is_same = |law: &Self| {
            let differ = |target: &Features| (first.value(target) - law.value(target)).abs() > 0.5;
            first.agrees(law, targets) && (is_amount || !targets.iter().any(differ))
        };
        match laws.iter().find(|law| !is_same(law)) {
            Some(other) => Err(Unfitted::Ambiguous([first, other].map(Self::to_string))),
            None => Ok(laws.into_iter().next()),
        }
    }

    /// Returns the laws that a law of inner ranks may be at ends of the grid: each term with the points at the ends, or without.
    pub(super) fn at_ends(&self) -> impl Iterator<Item = Self> {
        (0..1_u32 << self.terms.len()).map(|choice| {
            let term = |(number, term): (usize, &Term)| match (*term, choice >> number & 1) {
                (Term::Shares(powers) | Term::Inner(powers), 0) => Term::Shares(powers),
                (Term::Shares(powers) | Term::Inner(powers), _) => Term::Inner(powers),
                (term, _) => term,
            };
            Self { terms: self.terms.iter().enumerate().map(term).collect(), ..self.clone() }
        })
    }

    /// Returns the laws that values are proportional to a product of shares, with the points at ends or without.
    pub(super) fn proportional(of: [bool; DIMENSIONS], samples: &[Sample]) -> Vec<Self> {
        if !of.contains(&true) {
            return Self::of(vec![Term::One], samples, &[]).into_iter().collect();
        }
        let powers = of.map(u32::from);
        let law = |term: Term| {
            let terms = samples.iter().map(|sample| (term.value(&sample.features), sample.value));
            let (products, squares) = terms.fold((0.0, 0.0), |(products, squares), (term, value)| {
                (products + term * value, squares + term * term)
            });
            let coefficient = if squares > 0.0 { products / squares } else { 0.0 };
            Self { terms: vec![term], coefficients: vec![coefficient], misfit: 0.0 }.measured(samples)
        };
        vec![law(Term::Shares(powers)), law(Term::Inner(powers))]
    }

    /// Returns the law of a face with layers of points of neighbours around it, such as `n1 n2 + n1 + n2 + 1`: as many values as terms tell
    /// it, and that the layers are whole is what speaks for it.
    pub(super) fn with_layers(of: [bool; DIMENSIONS], samples: &[Sample]) -> Option<Self> {
        let all = (0..DIMENSIONS).filter(|dimension| of[*dimension]).fold(0_usize, |all, one| all | 1 << one);
        let parts = (0..=all).rev().filter(|part| part & all == *part);
        let terms: Vec<Term> = parts
            .map(|part| match part {
                0 => Term::One,
                part => Term::Shares(std::array::from_fn(|dimension| (part >> dimension & 1) as u32)),
            })
            .collect();
        let column = |term: &Term| samples.iter().map(|sample| term.value(&sample.features)).collect();
        let basis = Basis::of(&terms.iter().map(column).collect::<Vec<_>>());
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let coefficients = basis.solve(&values);
        let is_layer = |coefficient: &f64| {
            let layers = coefficient / coefficients[0];
            layers > -0.5 && (layers - layers.round()).abs() < 1e-6
        };
        let is_whole = basis.kept.len() == terms.len() && coefficients.iter().all(is_layer);
        let law = Self { terms, coefficients, misfit: 0.0 }.measured(samples);
        (is_whole && law.is_exact_on(samples, false)).then_some(law)
    }

    /// Returns whether all values are told exactly.
    pub(super) fn is_exact_on(&self, samples: &[Sample], is_amount: bool) -> bool {
        samples.iter().all(|sample| self.is_exact(sample, is_amount))
    }

    /// Returns whether another law says the same of all targets, but for rounded amounts.
    fn agrees(&self, other: &Self, targets: &[Features]) -> bool {
        targets.iter().all(|target| {
            let (one, other) = (self.value(target), other.value(target));
            (one - other).abs() <= 1e-3 * one.abs() + 1.0
        })
    }

    /// Fits the coefficients of some terms; `None` if the values do not determine them: too few, or with terms that only on the
    /// targets differ.
    fn of(terms: Vec<Term>, samples: &[Sample], targets: &[Features]) -> Option<Self> {
        let column =
            |term: &Term| -> Vec<f64> { samples.iter().map(|sample| term.value(&sample.features)).collect() };
        let columns: Vec<Vec<f64>> = terms.iter().map(column).collect();
        let with_targets: Vec<Vec<f64>> = terms
            .iter()
            .zip(&columns)
            .map(|(term, column)| {
                column.iter().copied().chain(targets.iter().map(|target| term.value(target))).collect()
            })
            .collect();
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let basis = Basis::of(&columns);
        let row =
            |place: usize| -> Vec<u64> { columns.iter().map(|column| column[place].to_bits()).collect() };
        let rows: BTreeSet<Vec<u64>> = (0..samples.len()).map(row).collect();
        let is_determined = terms == [Term::One] || basis.kept.len() < rows.len();
        if !is_determined || basis.kept != Basis::of(&with_targets).kept {
            return None;
        }
        let coefficients = basis.solve(&values);
        let law = Self { terms, coefficients, misfit: 0.0 }.measured(samples);
        // No value is below 0; rounding may take amounts there.
        targets.iter().all(|target| law.value(target) > -0.5).then_some(law)
    }

    /// Returns the law with its misfit.
    pub(super) fn measured(mut self, samples: &[Sample]) -> Self {
        let misfits = samples.iter().map(|sample| self.error(sample) / sample.value.abs().max(1.0));
        self.misfit = misfits.fold(0.0, f64::max);
        self
    }

    pub(super) fn value(&self, features: &Features) -> f64 {
        self.terms.iter().zip(&self.coefficients).map(|(term, factor)| factor * term.value(features)).sum()
    }

    fn error(&self, sample: &Sample) -> f64 {
        (self.value(&sample.features) - sample.value).abs()
    }

    /// Returns whether a value is told exactly. Amounts are rounded to whole numbers, perhaps in parts.
    fn is_exact(&self, sample: &Sample, is_amount: bool) -> bool {
        let (error, size) = (self.error(sample), sample.value.abs());
        let rounded = is_amount && sample.value.fract() == 0.0 && error <= 0.75 && error <= 0.01 * size;
        error <= 1e-9 * size || rounded
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.terms.iter().map(Term::to_string).collect();
        f.write_str(&terms.join(" + "))
    }
}

/// An orthogonal basis of columns, without those that depend on earlier ones (Gram and Schmidt, twice).
struct Basis {
    columns: usize,
    /// Numbers of the columns that are kept.
    kept: Vec<usize>,
    directions: Vec<Vec<f64>>,
    /// Each kept column by the directions up to its own.
    parts: Vec<Vec<f64>>,
}

impl Basis {
    fn of(columns: &[Vec<f64>]) -> Self {
        let mut basis =
            Self { columns: columns.len(), kept: Vec::new(), directions: Vec::new(), parts: Vec::new() };
        for (number, column) in columns.iter().enumerate() {
            let mut rest = column.clone();
            let mut parts = vec![0.0; basis.directions.len()];
            for _ in 0..2 {
                for (direction, part) in basis.directions.iter().zip(&mut parts) {
                    let along = dot(direction, &rest);
                    *part += along;
                    rest.iter_mut().zip(direction).for_each(|(rest, direction)| *rest -= along * direction);
                }
            }
            let length = dot(&rest, &rest).sqrt();
            if length > 1e-9 * dot(column, column).sqrt() {
                rest.iter_mut().for_each(|rest| *rest /= length);
                parts.push(length);
                basis.kept.push(number);
                basis.directions.push(rest);
                basis.parts.push(parts);
            }
        }
        basis
    }

    /// Returns the coefficients of all columns whose sum is nearest to the values; 0 for those that are not kept.
    fn solve(&self, values: &[f64]) -> Vec<f64> {
        let mut coefficients = vec![0.0; self.columns];
        let mut along: Vec<f64> = self.directions.iter().map(|direction| dot(direction, values)).collect();
        for (place, number) in self.kept.iter().enumerate().rev() {
            let factor = along[place] / self.parts[place][place];
            coefficients[*number] = factor;
            along.iter_mut().zip(&self.parts[place]).for_each(|(along, part)| *along -= factor * part);
        }
        coefficients
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
