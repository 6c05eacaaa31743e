//! A sweep: a wavefront of computation through the planes.

use super::Recording;
use super::exchange::Shift;
use crate::generate::program::ProgramBuilder;

/// One of the two sweeps of a time step, as a rank runs it.
///
/// For each plane a rank receives from the neighbours on one side, computes and sends to those on the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// Messages of the wavefront: along the rows, then along the columns.
    pub(super) shifts: [Shift; 2],
    /// Number of planes.
    pub(super) planes: u64,
    /// Computation of a plane \[flop\].
    pub(super) plane: f64,
    /// Selection of the short computations that are recorded.
    pub(super) recording: Recording,
    /// Computation of copying a value into or out of a buffer \[flop\].
    pub(super) flops_per_value: f64,
}

impl Sweep {
    /// Returns the computation of a rank without receives before its first call: the first plane, or all planes of a single rank
    /// \[flop\].
    ///
    /// It merges with the computation before the sweep. The caller must therefore add it there, outside of any loop over time steps
    /// that begins with this sweep.
    pub(super) fn leading_computation(&self) -> f64 {
        match self.role() {
            Role::Source => self.plane,
            Role::Single => self.planes as f64 * self.plane,
            Role::Sink | Role::Inner => 0.0,
        }
    }

    /// Writes the sweep, without its leading computation.
    pub(super) fn write(&self, program: &mut ProgramBuilder) {
        let more = self.planes - 1;
        match self.role() {
            Role::Single => {}
            Role::Inner => program.repeat(self.planes, |body| {
                self.receive(body);
                body.compute(self.plane);
                self.send(body);
                if self.recording == Recording::EveryGap {
                    body.compute(self.copy_computation(1));
                }
            }),
            Role::Source => {
                program.repeat(more, |body| {
                    self.send(body);
                    body.compute(self.plane);
                });
                self.send(program);
            }
            Role::Sink => {
                program.repeat(more, |body| {
                    self.receive(body);
                    body.compute(self.plane);
                });
                self.receive(program);
                program.compute(self.plane);
            }
        }
    }

    fn role(&self) -> Role {
        let receives = self.shifts.iter().any(|stream| stream.from.is_some());
        let sends = self.shifts.iter().any(|stream| stream.to.is_some());
        match (receives, sends) {
            (true, true) => Role::Inner,
            (true, false) => Role::Sink,
            (false, true) => Role::Source,
            (false, false) => Role::Single,
        }
    }

    fn receive(&self, program: &mut ProgramBuilder) {
        let [first, second] = &self.shifts;
        first.receive(program);
        if first.from.is_some() && second.from.is_some() {
            program.compute(self.copy_computation(0));
        }
        second.receive(program);
    }

    fn send(&self, program: &mut ProgramBuilder) {
        let [first, second] = &self.shifts;
        first.send(program);
        let recorded = self.recording != Recording::Receives;
        if recorded && first.to.is_some() && second.to.is_some() {
            program.compute(self.copy_computation(1));
        }
        second.send(program);
    }

    /// Returns the computation of copying a message \[flop\].
    fn copy_computation(&self, stream: usize) -> f64 {
        self.flops_per_value * self.shifts[stream].values as f64
    }
}

/// Role of a rank in the wavefront.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The only rank.
    Single,
    /// The wavefront starts here.
    Source,
    /// The wavefront passes through.
    Inner,
    /// The wavefront ends here.
    Sink,
}
