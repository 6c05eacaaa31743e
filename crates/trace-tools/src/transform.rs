//! Hypotheses about a program, tested on its trace: transformations of the operations of each rank.
//!
//! A [`Hypothesis`] is a name and a list of transformations, each with a [`Selector`]. It is applied rank by rank as the trace is
//! read: a [`TransformedTrace`] is a [`TraceSource`](trace_mmap::TraceSource), which is loaded, or converted to an archive.
//!
//! # To add a kind of transformation
//! 1. Write a file in this directory with a [`Transform`], which checks the program, and the [`Plan`] and the [`Rewrite`] that
//!    change it; `scale.rs` is the shortest one, `remove.rs` one that may break a program.
//! 2. Describe the state of the rewrite ([`Rewrite::state`]), and check the program by `Program::walk`, if folded programs are to be
//!    transformed at the cost of a few iterations of each loop.
//! 3. Add its row to [`TRANSFORMS`], and update the table of `docs/what-if.md`.
//!
//! # Laws
//! A rewrite depends on the operations of its rank, in their order, and on its plan; a plan on the program alone. So the transformed
//! trace does not depend on the number of threads, nor on how the trace is stored. From equal states, equal operations lead a rewrite to
//! equal operations and equal states.

mod aggregate;
mod balance;
mod coalesce;
mod collective;
mod communicators;
mod compress;
mod computations;
mod eliminate;
mod error;
mod folded;
mod hypothesis;
mod instances;
mod keep;
mod key;
mod keys;
mod messages;
mod mode;
mod neighborhood;
mod nonblocking;
mod overlap;
mod place;
mod point_to_point;
mod program;
mod protocol;
mod relocate;
mod remove;
mod requests;
mod resize;
mod reuse;
mod scale;
mod selector;
mod set;
mod shift;
mod smooth;
mod split;
mod state;
mod wait;
mod waitall;
mod waitany;

pub use error::{Refusal, TransformError};
pub use hypothesis::{Hypothesis, ORIGINAL, TransformedTrace};
pub use key::{Key, KeyValues};
pub use place::{CountedTraffic, Placement};
pub use program::{Program, Step};
pub use selector::{Selector, Subject};

use std::fmt::Debug;

use pdes_core::{Bytes, Rank};
use trace_mmap::SendMode;
use trace_mmap::folded::State;

use keys::Keys;

/// Reads the keys of a transformation, beside those of its selector; fails with what was found and what was expected.
type ReadTransform = fn(Selector, &Keys<'_>) -> Result<Box<dyn Transform>, String>;

/// A kind of transformation.
#[derive(Debug)]
pub struct TransformKind {
    /// Name of the kind in a file.
    pub key: &'static str,
    /// The operations that it changes.
    pub subject: Subject,
    /// Its keys, beside those of the selector.
    pub keys: &'static [Key],
    /// The change.
    pub semantics: &'static str,
    read: ReadTransform,
}

/// All kinds of transformations.
pub static TRANSFORMS: [TransformKind; 26] = [
    scale::KIND,
    set::KIND,
    balance::KIND,
    shift::KIND,
    smooth::KIND,
    relocate::KIND,
    eliminate::KIND,
    resize::KIND,
    compress::KIND,
    aggregate::KIND,
    split::KIND,
    overlap::KIND,
    waitany::KIND,
    neighborhood::KIND,
    mode::KIND,
    protocol::KIND,
    remove::KIND,
    nonblocking::KIND,
    point_to_point::KIND,
    wait::KIND,
    waitall::KIND,
    reuse::KIND,
    collective::KIND,
    coalesce::KIND,
    keep::KIND,
    place::KIND,
];

/// A transformation of programs.
pub trait Transform: Debug + Send + Sync {
    /// Returns the selector, which has to match something.
    fn selector(&self) -> &Selector;

    /// Returns the transformation as a change of amounts by rank and call site, if it is no more than that: folded programs then stay
    /// folded.
    fn pointwise(&self) -> Option<&dyn Pointwise> {
        None
    }

    /// Returns the form in which folded programs stay folded, if there is one.
    fn folded(&self) -> Option<FoldedForm<'_>> {
        self.pointwise().map(FoldedForm::Amounts)
    }

    /// Returns the change of the hosts of ranks, if it is one: the operations then stay.
    fn placement(&self) -> Option<&Placement> {
        None
    }

    /// Checks that the transformation fits a program, and learns what it needs of all ranks.
    ///
    /// # Errors
    /// Fails if the transformed program would wait forever, or is not defined.
    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal>;
}

/// A change of the selected computations by their amounts alone.
pub trait Pointwise: Debug + Send + Sync {
    /// Returns the changed amount of a selected computation \[flop\], finite and not negative.
    fn change(&self, flops: f64) -> f64;
}

/// A change of the sizes of the selected messages, by their sizes alone.
pub trait SizeChange: Debug + Send + Sync {
    /// Returns the changed size of a message, or of the buffer for it; `None` if the message disappears.
    fn size(&self, bytes: Bytes) -> Option<Bytes>;
}

/// The form of a transformation that leaves folded programs folded, where places and channels tell what is selected.
#[derive(Clone, Copy, Debug)]
pub enum FoldedForm<'t> {
    /// A change of amounts.
    Amounts(&'t dyn Pointwise),
    /// A change of messages with their receives.
    Sizes(&'t dyn SizeChange),
    /// Another mode of sends.
    Mode(SendMode),
    /// The computations of each rank are scaled alike, to the mean of all.
    EqualSums,
}

/// A transformation of one program.
pub trait Plan: Debug + Send + Sync {
    /// Starts the transformation of a rank of the program.
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a>;
}

/// A transformation of one rank.
pub trait Rewrite {
    /// Takes the next operation of the rank, and appends those that replace it, or ones that were held back.
    fn apply(&mut self, step: Step, out: &mut Vec<Step>);

    /// Appends the operations that are held back at the end of the rank.
    fn finish(&mut self, _out: &mut Vec<Step>) {}

    /// Describes what a later operation may depend on, so that equal iterations of folded programs are transformed once. By default
    /// each iteration is transformed.
    fn state(&mut self, state: &mut State<'_>) {
        state.unknown();
    }
}
