//! Training of transformers: the program of each rank under a layout of data, tensor, pipeline, context and expert parallelism.

mod error;
mod mesh;
mod model;
mod pipeline;
mod program;
mod summary;
mod work;

pub use error::TransformerError;
pub use mesh::{Axis, GroupKind};
pub use model::{Model, PRESETS};
pub use summary::TransformerSummary;

use pdes_core::Rank;
use trace_mmap::{Item, MAX_RANKS};
use trace_tools::generate::Generator;

use error::{check_divides, check_positive};
use mesh::Mesh;
use pipeline::{Pipeline, Repeated};
use program::ProgramWriter;

/// Parts of the forward computation that are repeated in the backward one, because their activations were not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recomputation {
    /// Nothing.
    #[default]
    None,
    /// The core of the attention (Korthikanti et al., 2022).
    Selective,
    /// All layers.
    Full,
}

/// Layout and parameters of a training run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerParameters {
    /// Parts of each matrix; divides the heads of keys.
    pub tensor: u32,
    /// Parts of each sequence (ring attention).
    pub context: u32,
    /// Parts of the experts; divides experts and `data`.
    pub expert: u32,
    /// Replicas of the dense part of the model.
    pub data: u32,
    /// Stages of layers.
    pub pipeline: u32,
    /// Chunks of layers of each stage; more than one is the interleaved schedule.
    pub interleave: u32,
    /// Stage of `ZeRO`, 0 to 3: what is divided among the replicas, one after the other optimizer states, gradients, parameters
    /// (Rajbhandari et al., SC 2020).
    pub zero: u8,
    /// Divides activations between the matrices among the ranks of a tensor group: all-gathers and reduce-scatters in place of
    /// allreduces (Korthikanti et al., 2022).
    pub sequence_parallel: bool,
    /// Repeated computation.
    pub recomputation: Recomputation,
    /// Overlaps gradients, parameters, blocks of keys and activations of other stages with computation.
    pub overlap: bool,
    /// Number of sequences of an iteration; a multiple of `data` times `micro_batch`.
    pub batch: u32,
    /// Number of sequences of a micro-batch.
    pub micro_batch: u32,
    /// Number of iterations.
    pub iterations: u64,
    /// Size of an activation and of a parameter \[B\].
    pub element_bytes: u64,
    /// Size of a gradient that is reduced \[B\].
    pub gradient_bytes: u64,
    /// Ratio of speed to memory bandwidth of a GPU \[flop/B\]: operations with less computation per byte count as many flops as take
    /// the time of their bytes. 0: memory is no limit.
    pub flops_per_byte: f64,
}

impl Default for TransformerParameters {
    /// One rank and one sequence, 2 bytes per activation and 4 per gradient.
    fn default() -> Self {
        Self {
            tensor: 1,
            context: 1,
            expert: 1,
            data: 1,
            pipeline: 1,
            interleave: 1,
            zero: 0,
            sequence_parallel: false,
            recomputation: Recomputation::None,
            overlap: false,
            batch: 1,
            micro_batch: 1,
            iterations: 1,
            element_bytes: 2,
            gradient_bytes: 4,
            flops_per_byte: 0.0,
        }
    }
}

/// Training of a transformer. Ranks are numbered by tensor, context, expert, data and pipeline, the first varying fastest.
///
/// An iteration of a rank is its part of the pipeline, whose units are micro-batches of a chunk of layers, the reduction of gradients
/// and the step of the optimizer. Between stages messages go by persistent requests, of which one is in flight in each direction.
///
/// | operation | on | bytes |
/// |---|---|---|
/// | allreduce, or all-gather and reduce-scatter | tensor | activations of a micro-batch, before and after attention and network |
/// | all to all | expert | activations of the tokens of each expert, there and back |
/// | messages in a ring | context | keys and values of a part; twice as much backward |
/// | allreduce (`ZeRO` 0), reduce-scatter | gradient | gradients of a layer: at the end of an iteration, from stage 2 on of each micro-batch |
/// | all-gather | gradient | parameters, after an iteration; of stage 3 each layer's before each use |
/// | allreduce | embedding | gradients of the embedding, if first and last stage have the same |
///
/// Left out: embedding lookups, norms and biases, the sums of the loss over parts of the vocabulary, uneven loads of experts.
#[derive(Clone, Debug)]
pub struct Transformer {
    model: Model,
    parameters: TransformerParameters,
    mesh: Mesh,
    ranks: u32,
    /// Units of each stage.
    stages: Vec<Vec<Repeated>>,
}

impl Transformer {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Fails if a number is zero, does not divide what it has to, or if there are more than 2^20 ranks.
    pub fn new(model: Model, parameters: TransformerParameters) -> Result<Self, TransformerError> {
        let TransformerParameters { tensor, context, expert, data, pipeline, interleave, .. } = parameters;
        let TransformerParameters { zero, batch, micro_batch, flops_per_byte, .. } = parameters;
        let Model { layers, hidden, heads, kv_heads, feed_forward, vocabulary, sequence, .. } = model;
        let Model { experts, experts_per_token, .. } = model;
        let positive = [
            ("layers", layers),
            ("hidden", hidden),
            ("heads", heads),
            ("kv_heads", kv_heads),
            ("feed_forward", feed_forward),
            ("vocabulary", vocabulary),
            ("sequence", sequence),
            ("experts", experts),
            ("experts_per_token", experts_per_token),
            ("tensor", tensor.into()),
            ("context", context.into()),
            ("expert", expert.into()),
            ("data", data.into()),
            ("pipeline", pipeline.into()),
            ("interleave", interleave.into()),
            ("batch", batch.into()),
            ("micro_batch", micro_batch.into()),
            ("element_bytes", parameters.element_bytes),
            ("gradient_bytes", parameters.gradient_bytes),
        ];
        for (name, value) in positive {
            check_positive(name, value)?;
        }
        let replicas = u64::from(data) * u64::from(micro_batch);
        let micro_batches = batch / replicas.min(u64::from(u32::MAX)) as u32;
        check_divides("heads", heads, "hidden", hidden)?;
        check_divides("kv_heads", kv_heads, "heads", heads)?;
        check_divides("tensor", tensor.into(), "kv_heads", kv_heads)?;
        check_divides("tensor", tensor.into(), "feed_forward", feed_forward)?;
        check_divides("context", context.into(), "sequence", sequence)?;
        check_divides("expert", expert.into(), "experts", experts)?;
        check_divides("expert", expert.into(), "data", data.into())?;
        let chunks = u64::from(pipeline) * u64::from(interleave);
        check_divides("pipeline * interleave", chunks, "layers", layers)?;
        check_divides("data * micro_batch", replicas, "batch", batch.into())?;
        if interleave > 1 {
            check_divides("pipeline", pipeline.into(), "micro-batches", micro_batches.into())?;
        }
        if interleave > 1 && pipeline == 1 {
            return Err(TransformerError::InterleavedStage);
        }
        let most = |name, found: u64, most| {
            if found > most { Err(TransformerError::TooLarge { name, found, most }) } else { Ok(()) }
        };
        most("zero", zero.into(), 3)?;
        most("experts_per_token", experts_per_token, experts)?;
        // Within this no product of sizes exceeds 2^63, and no message 2^48 bytes.
        for (name, value) in [("hidden", hidden), ("feed_forward", feed_forward), ("vocabulary", vocabulary)]
        {
            most(name, value, 1 << 20)?;
        }
        for (name, value) in [("sequence", sequence.saturating_mul(micro_batch.into())), ("layers", layers)] {
            most(name, value, 1 << 22)?;
        }
        most("experts", experts, 1 << 12)?;
        most("parameters", model.parameters(), 1 << 44)?;
        most("micro-batches * interleave", u64::from(micro_batches) * u64::from(interleave), 1 << 20)?;
        most("element_bytes", parameters.element_bytes, 8)?;
        most("gradient_bytes", parameters.gradient_bytes, 8)?;
        if !(flops_per_byte.is_finite() && flops_per_byte >= 0.0) {
            return Err(TransformerError::Ratio { found: flops_per_byte });
        }
        let mesh = Mesh { extents: [tensor, context, expert, data / expert, pipeline] };
        let ranks = mesh.ranks().filter(|ranks| *ranks <= MAX_RANKS).ok_or(TransformerError::TooManyRanks)?;
        let pipeline = Pipeline { stages: pipeline, chunks: interleave, micro_batches };
        let stages = (0..pipeline.stages).map(|stage| pipeline.folded(stage)).collect();
        Ok(Self { model, parameters, mesh, ranks, stages })
    }

    /// Returns the number of iterations.
    pub fn iterations(&self) -> u64 {
        self.parameters.iterations
    }

    /// Returns the number of micro-batches of a replica in an iteration.
    pub fn micro_batches(&self) -> u32 {
        self.parameters.batch / self.parameters.data / self.parameters.micro_batch
    }

    /// Returns the number of layers of a chunk.
    fn chunk_layers(&self) -> u64 {
        self.model.layers / u64::from(self.parameters.pipeline * self.parameters.interleave)
    }

    /// Returns the first rank of a stage.
    fn first_of_stage(&self, stage: u32) -> Rank {
        Rank::new(self.ranks / self.parameters.pipeline * stage)
    }
}

impl Generator for Transformer {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        assert!(rank.get() < self.ranks, "rank {rank} of {}", self.ranks);
        ProgramWriter::new(self, rank).write()
    }

    /// Counts the actions of all ranks: those of one rank of each stage, as all ranks of a stage have the same. O(stages).
    fn actions(&self) -> u64 {
        let actions = |stage| Item::count_all(&self.rank(self.first_of_stage(stage))).unwrap_or(u64::MAX);
        let sum = (0..self.parameters.pipeline).map(actions).fold(0, u64::saturating_add);
        sum.saturating_mul((self.ranks / self.parameters.pipeline).into())
    }

    fn notes(&self) -> Vec<String> {
        self.summary().lines()
    }
}
