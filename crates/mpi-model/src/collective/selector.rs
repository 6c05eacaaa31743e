//! Selectors: the decision tables by which MPI libraries select algorithms.

// The tables are laid out by hand: as many columns to a line as fit.
#[rustfmt::skip]
pub(super) mod impi;
#[rustfmt::skip]
pub(super) mod mpich;
#[rustfmt::skip]
pub(super) mod mvapich2;
#[rustfmt::skip]
pub(super) mod ompi;

/// Rule of an MPI library that selects algorithms by operation, size and number of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// SimGrid's `default`: linear and binomial algorithms for all sizes, with Open MPI's table for alltoall.
    #[default]
    Default,
    /// Open MPI's.
    Ompi,
    /// MPICH's.
    Mpich,
    /// MVAPICH2's.
    Mvapich2,
    /// Intel MPI's.
    Impi,
    /// All algorithms of an operation one after the other; a call takes as long as all of them.
    Automatic,
    /// Closed forms: no messages, and so no contention.
    Analytic,
}

impl Selector {
    /// All selectors.
    pub const ALL: [Self; 7] =
        [Self::Default, Self::Ompi, Self::Mpich, Self::Mvapich2, Self::Impi, Self::Automatic, Self::Analytic];

    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Ompi => "ompi",
            Self::Mpich => "mpich",
            Self::Mvapich2 => "mvapich2",
            Self::Impi => "impi",
            Self::Automatic => "automatic",
            Self::Analytic => "analytic",
        }
    }

    /// Returns the selector of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|selector| selector.name() == name)
    }
}
