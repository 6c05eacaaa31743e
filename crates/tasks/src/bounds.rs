//! Lower bounds of the time of a graph on a node.

use serde::Serialize;

use crate::graph::{Kernel, TaskGraph};
use crate::node::Node;

/// Times that no scheduler can beat, whatever copies cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Longest path through the graph, each task on the fastest kind of workers \[s\].
    pub critical_path_s: f64,
    /// Time in which all workers could do all tasks if these were divisible and had no order \[s\].
    pub area_s: f64,
}

impl Bounds {
    /// Computes the bounds. `O(tasks)`.
    ///
    /// The area bound is a linear program: the least `T` for which the work of each kernel can be divided among the kinds of workers so that
    /// no kind works longer than `T`. Its dual gives a weight `w` to one kind and `1 - w` to the other, and to each kernel the lesser of its
    /// weighted times: a concave function of `w`, whose maximum lies where both times of a kernel are equal.
    pub fn of(graph: &TaskGraph, node: &Node<'_>) -> Self {
        let fastest_s = |task: &_| {
            (0..node.kinds.len()).filter_map(|kind| node.time_s(task, kind)).fold(f64::INFINITY, f64::min)
        };
        let critical_path_s = graph.ranks(fastest_s).into_iter().fold(0.0, f64::max);
        // Times of a kernel on all workers of each kind.
        let times: Vec<Vec<f64>> = Kernel::ALL
            .into_iter()
            .map(|kernel| (kernel, graph.flops_of(kernel)))
            .filter(|(_, flops)| *flops > 0.0)
            .map(|(kernel, flops)| {
                let of_kind = node.kinds.iter().map(|kind| {
                    kind.rate(kernel).map_or(f64::INFINITY, |rate| flops / (rate * kind.workers as f64))
                });
                of_kind.collect()
            })
            .collect();
        let weighted =
            |weight: f64, time_s: f64| if time_s.is_finite() { weight * time_s } else { f64::INFINITY };
        let bound = |weight: f64| -> f64 {
            let of_kernel = |times: &Vec<f64>| {
                let weights = [weight, 1.0 - weight];
                times
                    .iter()
                    .zip(weights)
                    .map(|(&time_s, weight)| weighted(weight, time_s))
                    .fold(f64::INFINITY, f64::min)
            };
            times.iter().map(of_kernel).sum()
        };
        let equal = |times: &Vec<f64>| match times[..] {
            [one, other] if one.is_finite() && other.is_finite() => Some(other / (one + other)),
            _ => None,
        };
        let weights = times.iter().filter_map(equal).chain([0.0, 1.0]);
        let weights: Vec<f64> = if node.kinds.len() == 1 { vec![1.0] } else { weights.collect() };
        Self { critical_path_s, area_s: weights.into_iter().map(bound).fold(0.0, f64::max) }
    }

    /// Returns the larger bound \[s\].
    pub fn best_s(&self) -> f64 {
        self.critical_path_s.max(self.area_s)
    }
}
