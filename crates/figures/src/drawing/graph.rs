//! Graphs of nodes and edges; edges of larger values are wider and redder.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::map::draw_scale;
use super::{DrawingError, INK, SOFT_INK, Scale, Svg, TEXT_SIZE, draw_svg};

/// Height of the colour scale \[px\].
const SCALE_HEIGHT: u32 = 30;

/// A node with its position, from 0 to 1 in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Position, from the upper left corner.
    pub position: (f64, f64),
    /// Radius \[px\].
    pub size: i32,
}

/// An edge between two nodes, with a value from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Indices of its nodes.
    pub ends: (usize, usize),
    /// Value.
    pub value: f64,
}

/// A graph with its layout.
#[derive(Clone, Debug)]
pub struct GraphDrawing {
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Edges.
    pub edges: Vec<Edge>,
    /// Labels at positions from 0 to 1.
    pub labels: Vec<(String, (f64, f64))>,
    /// Height divided by width.
    pub aspect: f64,
    /// Largest width \[px\].
    pub max_width: u32,
    /// Labels of both ends of the colour scale.
    pub ends: (String, String),
}

impl GraphDrawing {
    /// Draws the graph, with edges of large values last and thus on top.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        let wide = width.min(self.max_width);
        let high = (f64::from(wide) * self.aspect) as u32;
        let (left, margin) = ((width - wide) / 2, 14.0);
        let at = |(x, y): (f64, f64)| {
            let inside = |part: f64, size: u32| margin + part * (f64::from(size) - 2.0 * margin);
            ((f64::from(left) + inside(x, wide)) as i32, (f64::from(SCALE_HEIGHT) + inside(y, high)) as i32)
        };
        let mut edges = self.edges.clone();
        edges.sort_by(|one, other| one.value.total_cmp(&other.value));
        draw_svg((width, SCALE_HEIGHT + high), |area, images| {
            draw_scale(area, images, Scale::Heat, &self.ends)?;
            for Edge { ends, value } in edges {
                let line = vec![at(self.nodes[ends.0].position), at(self.nodes[ends.1].position)];
                let style = Scale::Heat.colour(value).stroke_width(1 + (3.0 * value).round() as u32);
                area.draw(&PathElement::new(line, style))?;
            }
            for node in &self.nodes {
                area.draw(&Circle::new(at(node.position), node.size, INK.filled()))?;
            }
            for (label, place) in &self.labels {
                let style = ("sans-serif", TEXT_SIZE - 1)
                    .into_font()
                    .color(&SOFT_INK)
                    .pos(Pos::new(HPos::Center, VPos::Center));
                area.draw(&Text::new(label.as_str(), at(*place), style))?;
            }
            Ok(())
        })
    }
}
