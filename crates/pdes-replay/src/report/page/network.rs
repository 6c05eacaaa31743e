//! Link loads on a drawing of the network topology.

mod dragonfly;
mod torus;
mod tree;

use figures::{Figure, Map, Maps, Scale};
use netmodel::{Layout, NetworkShape};

use super::SavedReport;
use super::links::share;

/// Largest number of cables drawn as lines.
const MAX_LINES: usize = 450;
/// Largest number of pixels in a line of a map.
const MAX_LINE_PIXELS: usize = 1024;

/// A cable between two nodes and its utilisation in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cable {
    lower: u64,
    upper: u64,
    up: f64,
    down: f64,
}

/// The cables of a network.
#[derive(Clone, Debug)]
struct Network {
    cables: Vec<Cable>,
    /// Largest utilisation of a cable in either direction.
    max_utilisation: f64,
}

pub(in crate::report) fn figure(layout: &Layout, run: &SavedReport) -> Option<Figure> {
    let network = Network::of(run)?;
    Some(match &layout.shape {
        NetworkShape::Torus { dims } => torus::figure(network, dims),
        NetworkShape::FatTree { levels } => tree::figure(network, levels),
        NetworkShape::Dragonfly(shape) => dragonfly::figure(network, *shape),
        NetworkShape::Star { .. } => star(network),
        // The page to explore draws them.
        NetworkShape::Switches(_) => return None,
    })
}

impl Network {
    /// Collects the cables of a run and their utilisation; `None` if either is unknown.
    fn of(run: &SavedReport) -> Option<Self> {
        let used = &run.sections.links.as_ref()?.all.utilisation;
        let cables = run.sections.topology.as_ref()?.cables()?.into_iter().map(|cable| {
            let of = |link: netmodel::LinkId| used.get(link.index()).copied();
            Some(Cable { lower: cable.lower, upper: cable.upper, up: of(cable.up)?, down: of(cable.down)? })
        });
        let cables = cables.collect::<Option<Vec<_>>>()?;
        let highest = cables.iter().map(Cable::max_utilisation).fold(0.0, f64::max);
        (highest > 0.0).then_some(Self { cables, max_utilisation: highest })
    }

    /// Returns the labels of both ends of the colour scale.
    fn ends(&self) -> (String, String) {
        ("unused".to_owned(), share(self.max_utilisation))
    }

    /// Returns a map of utilisations; pixels without cables are empty.
    fn map(&self, title: String, columns: usize, values: &[Option<f64>]) -> Map {
        let values = values.iter().map(|value| value.map(|value| value / self.max_utilisation)).collect();
        Map { title, columns: columns as u32, values }
    }

    fn maps(&self, maps: Vec<Map>) -> Maps {
        Maps { maps, scale: Scale::Sequential, ends: self.ends() }
    }
}

impl Cable {
    fn max_utilisation(&self) -> f64 {
        self.up.max(self.down)
    }
}

/// Raises `place` to `value` if that is larger.
fn raise_to(place: &mut Option<f64>, value: f64) {
    *place = Some(place.map_or(value, |most| most.max(value)));
}

/// Joins neighbours into their maximum, so that at most [`MAX_LINE_PIXELS`] values remain.
fn downsampled(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let share = values.len().div_ceil(MAX_LINE_PIXELS).max(1);
    let most = |values: &[Option<f64>]| values.iter().copied().flatten().reduce(f64::max);
    values.chunks(share).map(most).collect()
}

fn star(network: Network) -> Figure {
    Figure::new("network", "Cables of hosts", move |width| {
        let columns = super::grid::width(network.cables.len()) as usize;
        let map = |title: &str, of: fn(&Cable) -> f64| {
            let values: Vec<_> = network.cables.iter().map(|cable| Some(of(cable))).collect();
            network.map(title.to_owned(), columns, &values)
        };
        network
            .maps(vec![map("from hosts", |cable| cable.up), map("to hosts", |cable| cable.down)])
            .draw(width)
    })
}
