//! The ranks as a matrix of parallel dimensions, and its groups.

use std::sync::Arc;

use pdes_core::Rank;
use trace_mmap::{CommId, Group};

/// A dimension of the matrix of ranks, the one that varies fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Axis {
    /// Parts of each matrix.
    Tensor,
    /// Parts of each sequence.
    Context,
    /// Parts of the experts; the dense part of the model is replicated along it.
    Expert,
    /// Replicas of the model, of the dense part together with [`Axis::Expert`].
    Data,
    /// Stages of layers.
    Pipeline,
}

/// Number of dimensions.
pub(super) const AXES: usize = 5;

/// A kind of communicator: the dimensions along which the members of a group differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum GroupKind {
    /// Parts of the same matrices.
    Tensor,
    /// Ranks that exchange tokens for their experts.
    Expert,
    /// Ranks that reduce gradients of the dense parameters.
    Gradient,
    /// Ranks that reduce gradients of the same experts.
    ExpertGradient,
    /// The first and the last stage, which have the same embedding.
    Embedding,
}

impl GroupKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Tensor, Self::Expert, Self::Gradient, Self::ExpertGradient, Self::Embedding];

    /// Returns the name, for people.
    pub const fn name(self) -> &'static str {
        ["tensor", "expert", "gradient", "expert gradient", "embedding"][self as usize]
    }

    /// Returns the kind of a communicator by its number.
    pub(super) fn of(communicator: CommId) -> Self {
        Self::ALL[(communicator.get() as usize - 1) % Self::ALL.len()]
    }

    fn axes(self) -> &'static [Axis] {
        match self {
            Self::Tensor => &[Axis::Tensor],
            Self::Expert => &[Axis::Expert],
            Self::Gradient => &[Axis::Context, Axis::Expert, Axis::Data],
            Self::ExpertGradient => &[Axis::Context, Axis::Data],
            Self::Embedding => &[Axis::Pipeline],
        }
    }
}

/// The matrix of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mesh {
    pub(super) extents: [u32; AXES],
}

impl Mesh {
    /// Returns the number of ranks; `None` if it exceeds 32 bits.
    pub(super) fn ranks(&self) -> Option<u32> {
        self.extents.iter().try_fold(1_u32, |ranks, extent| ranks.checked_mul(*extent))
    }

    pub(super) fn extent(&self, axis: Axis) -> u32 {
        self.extents[axis as usize]
    }

    fn stride(&self, axis: Axis) -> u32 {
        self.extents[..axis as usize].iter().product()
    }

    /// Returns the place of a rank along a dimension.
    pub(super) fn place(&self, rank: Rank, axis: Axis) -> u32 {
        rank.get() / self.stride(axis) % self.extent(axis)
    }

    /// Returns the rank at another place along a dimension.
    pub(super) fn at(&self, rank: Rank, axis: Axis, place: u32) -> Rank {
        Rank::new(rank.get() - self.place(rank, axis) * self.stride(axis) + place * self.stride(axis))
    }

    /// Returns the number of members of a group.
    pub(super) fn len(&self, kind: GroupKind) -> u32 {
        match kind {
            GroupKind::Embedding => self.extent(Axis::Pipeline).min(2),
            _ => kind.axes().iter().map(|axis| self.extent(*axis)).product(),
        }
    }

    /// Returns the communicator of a rank: its number, which is that of its lowest rank among those of its kind, and its members.
    pub(super) fn communicator(&self, rank: Rank, kind: GroupKind) -> (CommId, Arc<Group>) {
        let lowest = kind.axes().iter().fold(rank, |rank, axis| self.at(rank, *axis, 0));
        let mut members = vec![lowest];
        for axis in kind.axes() {
            let last = self.extent(*axis) - 1;
            // Of a pipeline, only the stages at its ends.
            let step = if kind == GroupKind::Embedding { last.max(1) } else { 1 };
            let places = (0..=last).step_by(step as usize);
            members = places
                .flat_map(|place| members.iter().map(move |rank| (*rank, place)))
                .map(|(rank, place)| self.at(rank, *axis, place))
                .collect();
        }
        let group = Group::new(members).expect("the ranks of a matrix are different");
        (CommId::new(1 + lowest.get() * GroupKind::ALL.len() as u32 + kind as u32), Arc::new(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_divide_the_ranks() {
        let mesh = Mesh { extents: [2, 3, 2, 2, 4] };
        let ranks = mesh.ranks().unwrap();
        for kind in GroupKind::ALL {
            let mut members = 0;
            for rank in (0..ranks).map(Rank::new) {
                let (number, group) = mesh.communicator(rank, kind);
                assert_eq!(group.len(), mesh.len(kind), "{kind:?}");
                let is_member = group.members().any(|member| member == rank);
                assert_eq!(
                    is_member,
                    kind != GroupKind::Embedding || [0, 3].contains(&mesh.place(rank, Axis::Pipeline))
                );
                for member in group.members() {
                    assert_eq!(mesh.communicator(member, kind), (number, group.clone()));
                }
                members += u32::from(is_member && group.member(0) == rank) * group.len();
            }
            assert_eq!(members, if kind == GroupKind::Embedding { ranks / 2 } else { ranks });
        }
        let (_, gradient) = mesh.communicator(Rank::new(1), GroupKind::Gradient);
        assert_eq!(
            gradient.members().map(Rank::get).collect::<Vec<_>>(),
            [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]
        );
    }
}
