//! Workloads of AI training, as traces: training of transformers under any parallel layout.
//!
//! ```
//! use training::{Model, Transformer, TransformerParameters};
//! use trace_tools::generate::Generator;
//!
//! let layout = TransformerParameters { tensor: 8, pipeline: 16, data: 8, batch: 512, ..TransformerParameters::default() };
//! let gpt3 = Transformer::new(Model::preset("gpt3-175b")?, layout)?;
//! assert_eq!(gpt3.ranks(), 1024);
//! assert!(gpt3.rank(pdes_core::Rank::new(0)).len() < 100);
//! # Ok::<(), training::TransformerError>(())
//! ```
//!
//! # Where to start
//!
//! - [`ExecutionTrace`] reads Chakra execution traces; its schedule has their [collective operations](collective) as messages.
//!   [`astra`] runs them as ASTRA-sim's analytical networks do.
//! - [`Transformer`] is a [`Generator`](trace_tools::generate::Generator) of the programs of all ranks; [`Model::preset`] has published
//!   shapes.
#![forbid(unsafe_code)]

pub mod astra;
mod chakra;
pub mod collective;
mod transformer;

pub use chakra::{
    CHAKRA_LINTS, ChakraError, ChakraSchedule, CollectiveKind, ExecutionTrace, Node, NodeKind, Roofline,
    ScheduleOptions,
};
pub use transformer::{
    Axis, GroupKind, Model, PRESETS, Recomputation, Transformer, TransformerError, TransformerParameters,
    TransformerSummary,
};
