//! Torus: a grid of hosts and cables for each plane.

use figures::{Figure, Map};

use super::{Network, raise_to};

/// The planes of a torus, spanned by two of its dimensions.
struct Planes {
    dims: Vec<u32>,
    /// Horizontal and vertical dimension.
    across: usize,
    down: usize,
}

pub(super) fn figure(network: Network, dims: &[u32]) -> Figure {
    let planes = Planes::new(dims);
    Figure::new("network", format!("Torus {}", planes.size()), move |width| {
        network.maps(planes.maps(&network)).draw(width)
    })
}

impl Planes {
    /// Spans the planes by the two largest dimensions, which gives the fewest planes.
    fn new(dims: &[u32]) -> Self {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&dimension| std::cmp::Reverse(dims[dimension]));
        let mut plane: Vec<usize> = order.into_iter().take(2).collect();
        plane.sort_unstable();
        Self { dims: dims.to_vec(), across: plane[0], down: plane.get(1).copied().unwrap_or(plane[0]) }
    }

    fn size(&self) -> String {
        let sizes: Vec<String> = self.dims.iter().map(u32::to_string).collect();
        sizes.join(" x ")
    }

    fn coordinates(&self, host: u64) -> Vec<u32> {
        let mut rest = host;
        let mut next = |&size: &u32| {
            let coordinate = rest % u64::from(size);
            rest /= u64::from(size);
            coordinate as u32
        };
        self.dims.iter().map(&mut next).collect()
    }

    /// Returns the index of a host's plane, and its name.
    fn plane(&self, coordinates: &[u32]) -> (usize, String) {
        let (mut number, mut stride, mut names) = (0, 1, Vec::new());
        for (dimension, (&coordinate, &size)) in coordinates.iter().zip(&self.dims).enumerate() {
            if dimension != self.across && dimension != self.down {
                number += coordinate as usize * stride;
                stride *= size as usize;
                names.push(format!("{} = {coordinate}", letter(dimension)));
            }
        }
        (number, names.join(", "))
    }

    /// Returns the number of columns and of rows of the grid: two per host.
    fn grid(&self) -> (usize, usize) {
        let down = if self.down == self.across { 1 } else { 2 * self.dims[self.down] as usize };
        (2 * self.dims[self.across] as usize, down)
    }

    fn maps(&self, network: &Network) -> Vec<Map> {
        let (columns, rows) = self.grid();
        let outside =
            (0..self.dims.len()).filter(|&dimension| dimension != self.across && dimension != self.down);
        let count: usize = outside.map(|dimension| self.dims[dimension] as usize).product();
        let mut planes = vec![(String::new(), vec![None; columns * rows]); count];
        for (number, cable) in network.cables.iter().enumerate() {
            let coordinates = self.coordinates(cable.lower);
            let (plane, name) = self.plane(&coordinates);
            let x = 2 * coordinates[self.across] as usize;
            let y = if rows == 1 { 0 } else { 2 * coordinates[self.down] as usize };
            let place = match number % self.dims.len() {
                dimension if dimension == self.across => y * columns + x + 1,
                dimension if dimension == self.down => (y + 1) * columns + x,
                _ => y * columns + x,
            };
            raise_to(&mut planes[plane].1[place], cable.max_utilisation());
            planes[plane].0 = name;
        }
        planes.into_iter().map(|(name, values)| network.map(self.title(&name), columns, &values)).collect()
    }

    fn title(&self, plane: &str) -> String {
        let axes = format!("{} to the right", letter(self.across));
        let axes =
            if self.down == self.across { axes } else { format!("{axes}, {} down", letter(self.down)) };
        if plane.is_empty() { axes } else { plane.to_owned() }
    }
}

fn letter(dimension: usize) -> String {
    ["x", "y", "z"].get(dimension).map_or_else(|| format!("d{dimension}"), |&letter| letter.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Cable;
    use super::*;

    /// A torus of 2 x 4 x 3 hosts in planes of 4 x 3: the two of x are side by side.
    #[test]
    fn cables_lie_between_their_hosts() {
        let planes = Planes::new(&[2, 4, 3]);
        assert_eq!((planes.across, planes.down, planes.grid()), (1, 2, (8, 6)));
        let cable = |host: u64| Cable { lower: host, upper: 0, up: 0.0, down: 0.0 };
        let mut network =
            Network { cables: (0..72).map(|number| cable(number / 3)).collect(), max_utilisation: 1.0 };
        // Host (1, 2, 1) is 1 + 2 * (2 + 4 * 1) = 13: its cables along x, y and z.
        network.cables[39].up = 0.25;
        network.cables[40].down = 0.5;
        network.cables[41].up = 1.0;
        let maps = planes.maps(&network);
        assert_eq!(maps.iter().map(|map| map.title.as_str()).collect::<Vec<_>>(), ["x = 0", "x = 1"]);
        let used = |x: usize, y: usize| maps[1].values[y * 8 + x];
        assert_eq!((used(4, 2), used(5, 2), used(4, 3)), (Some(0.25), Some(0.5), Some(1.0)));
        assert_eq!(used(5, 3), None, "no cable");
        assert!(maps[0].values.iter().flatten().all(|&value| value == 0.0));
    }

    #[test]
    fn a_ring_is_a_line() {
        let planes = Planes::new(&[4]);
        let cable = |host: u64| Cable { lower: host, upper: 0, up: 0.5, down: 0.0 };
        let maps = planes.maps(&Network { cables: (0..4).map(cable).collect(), max_utilisation: 1.0 });
        assert_eq!(maps[0].values, [None, Some(0.5)].repeat(4));
    }
}
