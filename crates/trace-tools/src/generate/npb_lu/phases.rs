//! The phases of the benchmark, in order.

use super::NpbLuParameters;
use super::exchange::{FROM_EAST, FROM_NORTH, FROM_SOUTH, FROM_WEST, Shift};
use super::grid::Subdomain;
use super::sweep::Sweep;
use crate::generate::program::ProgramBuilder;
use trace_mmap::{Collective, Datatype, Item, Op};

/// Computation of each phase, as a share of the computation of a rank in a time step.
///
/// The five shares of a time step sum to 1. All are rounded from the acquired class A trace on 8 ranks.
mod share {
    /// From `init` to the broadcast of the parameters.
    pub(super) const START: f64 = 0.002;
    /// Initial field, and the forcing term up to its first exchange.
    pub(super) const INITIAL_FIELD: f64 = 0.7;
    /// Initial field again, after the warm-up step.
    pub(super) const RESET: f64 = 0.3;
    /// Lower sweep.
    pub(super) const LOWER: f64 = 0.38;
    /// Upper sweep.
    pub(super) const UPPER: f64 = 0.37;
    /// Update of the solution, and the right-hand side up to its first exchange.
    pub(super) const UPDATE: f64 = 0.04;
    /// Right-hand side between its exchanges: along the first dimension.
    pub(super) const RHS_X: f64 = 0.06;
    /// Right-hand side along the other dimensions, and the scaling of the residual.
    pub(super) const RHS_YZ: f64 = 0.15;
    /// A norm of the residual.
    pub(super) const NORM: f64 = 0.02;
    /// The error of the solution.
    pub(super) const ERROR: f64 = 0.1;
    /// Each of the three surface integrals.
    pub(super) const INTEGRAL: f64 = 0.005;
}

/// Writer of the program of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseWriter<'a> {
    /// The parameters of the run.
    pub(super) parameters: &'a NpbLuParameters,
    /// The subdomain of the rank.
    pub(super) domain: Subdomain,
}

impl PhaseWriter<'_> {
    /// Returns the program.
    pub(super) fn write(&self) -> Vec<Item> {
        let mut program = ProgramBuilder::default();
        program.op(Op::Init);
        program.compute(self.work(share::START));
        read_input(&mut program);
        program.compute(self.work(share::INITIAL_FIELD));
        self.exchange(&mut program);
        self.solve(&mut program, 1);
        program.compute(self.work(share::RESET));
        self.solve(&mut program, self.parameters.steps);
        program.compute(self.work(share::ERROR));
        program.allreduce(5, 0.0);
        self.surface_integrals(&mut program);
        program.op(Op::Finalize);
        program.finish()
    }

    /// Returns a share of the computation of a time step \[flop\].
    fn work(&self, share: f64) -> f64 {
        let points = self.domain.inner_x() * self.domain.inner_y() * self.domain.planes();
        share * self.parameters.flops_per_point * points as f64
    }

    /// Writes a run of time steps: a right-hand side before them, norms in the last step of the run.
    fn solve(&self, program: &mut ProgramBuilder, steps: u32) {
        let (lower, upper) = (self.lower_sweep(), self.upper_sweep());
        self.exchange(program);
        self.norm(program);
        program.op(Op::Collective(Collective::Barrier));
        program.compute(lower.leading_computation());
        program.repeat(u64::from(steps - 1), |body| {
            self.sweeps(body, &lower, &upper);
            self.exchange(body);
            body.compute(lower.leading_computation());
        });
        self.last_step(program, &lower, &upper, steps == self.parameters.steps);
        program.allreduce(1, 0.0);
    }

    /// Writes the last time step. The warm-up step computes norms only if the run has a single step, too, because the benchmark
    /// compares the number of the step with that of the run.
    fn last_step(&self, program: &mut ProgramBuilder, lower: &Sweep, upper: &Sweep, norms: bool) {
        self.sweeps(program, lower, upper);
        if norms {
            self.norm(program);
        }
        self.exchange(program);
        if norms {
            self.norm(program);
        }
    }

    /// Writes the two sweeps and the update.
    fn sweeps(&self, program: &mut ProgramBuilder, lower: &Sweep, upper: &Sweep) {
        lower.write(program);
        program.compute(upper.leading_computation());
        upper.write(program);
        program.compute(self.work(share::UPDATE));
    }

    fn lower_sweep(&self) -> Sweep {
        let Subdomain { north, south, west, east, .. } = self.domain;
        let rows = Shift { from: north, to: south, tag: FROM_NORTH, values: 5 * self.domain.inner_y() };
        let columns = Shift { from: west, to: east, tag: FROM_WEST, values: 5 * self.domain.inner_x() };
        self.sweep([rows, columns], share::LOWER)
    }

    fn upper_sweep(&self) -> Sweep {
        let Subdomain { north, south, west, east, .. } = self.domain;
        let rows = Shift { from: south, to: north, tag: FROM_SOUTH, values: 5 * self.domain.inner_y() };
        let columns = Shift { from: east, to: west, tag: FROM_EAST, values: 5 * self.domain.inner_x() };
        self.sweep([rows, columns], share::UPPER)
    }

    fn sweep(&self, streams: [Shift; 2], share: f64) -> Sweep {
        let planes = self.domain.planes();
        Sweep {
            shifts: streams,
            planes,
            plane: self.work(share) / planes as f64,
            recording: self.parameters.recording,
            flops_per_value: self.parameters.flops_per_value,
        }
    }

    fn norm(&self, program: &mut ProgramBuilder) {
        program.compute(self.work(share::NORM));
        program.allreduce(5, 0.0);
    }

    /// Writes a right-hand side or forcing term: each neighbour exchanges the two outermost layers of points.
    fn exchange(&self, program: &mut ProgramBuilder) {
        let Subdomain { north, south, west, east, nx, ny, nz } = self.domain;
        let copy = self.parameters.flops_per_value;
        let face = 10 * ny * nz;
        Shift { from: north, to: south, tag: FROM_NORTH, values: face }.exchange(program, copy);
        Shift { from: south, to: north, tag: FROM_SOUTH, values: face }.exchange(program, copy);
        program.compute(self.work(share::RHS_X));
        let face = 10 * nx * nz;
        Shift { from: west, to: east, tag: FROM_WEST, values: face }.exchange(program, copy);
        Shift { from: east, to: west, tag: FROM_EAST, values: face }.exchange(program, copy);
        program.compute(self.work(share::RHS_YZ));
    }

    /// Writes the integrals over the faces of the grid: first the faces normal to the undistributed dimension, on all ranks.
    fn surface_integrals(&self, program: &mut ProgramBuilder) {
        let Subdomain { north, south, west, east, nx, ny, nz } = self.domain;
        let to_west = |values| Shift { from: east, to: west, tag: FROM_EAST, values };
        let to_north = |values| Shift { from: south, to: north, tag: FROM_SOUTH, values };
        program.compute(self.work(share::INTEGRAL));
        to_west(2 * nx).relay(program);
        to_north(2 * (ny + 2)).relay(program);
        for (edges, stream) in [([west, east], to_north(nz)), ([north, south], to_west(nz))] {
            program.allreduce(1, 0.0);
            program.compute(self.work(share::INTEGRAL));
            edges.iter().filter(|neighbour| neighbour.is_none()).for_each(|_| stream.relay(program));
        }
        program.allreduce(1, 0.0);
    }
}

/// Broadcasts the parameters from rank 0: printing, norms, steps; step length, relaxation; tolerances; grid; timers.
fn read_input(program: &mut ProgramBuilder) {
    let datatype = |id| Datatype::from_id(id).expect("the identifier is predefined");
    let (double, integer, logical) = (Datatype::DOUBLE, datatype(1), datatype(23));
    [integer, integer, integer, double, double].into_iter().for_each(|datatype| program.bcast(1, datatype));
    program.bcast(5, double);
    [integer, integer, integer, logical].into_iter().for_each(|datatype| program.bcast(1, datatype));
}
