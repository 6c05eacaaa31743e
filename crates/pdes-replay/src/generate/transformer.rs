//! Arguments of `trace generate transformer`.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;
use training::{Model, Recomputation, Transformer, TransformerParameters};

/// Training of a transformer: a published model or one of the given shape, and its parallel layout.
#[derive(Clone, Debug, Args)]
pub(super) struct TransformerArguments {
    /// Published model, such as gpt3-175b or llama3-405b; the options of its shape change it.
    #[arg(long, value_name = "NAME", default_value = "gpt3-175b")]
    model: String,
    /// Number of layers.
    #[arg(long, value_name = "N")]
    layers: Option<u64>,
    /// Width of an activation.
    #[arg(long, value_name = "N")]
    hidden: Option<u64>,
    /// Number of heads of attention.
    #[arg(long, value_name = "N")]
    heads: Option<u64>,
    /// Number of heads of keys and values; with --heads by default as many.
    #[arg(long, value_name = "N")]
    kv_heads: Option<u64>,
    /// Width within the network of a layer; with --hidden by default four times that.
    #[arg(long, value_name = "N")]
    feed_forward: Option<u64>,
    /// Number of tokens in the vocabulary.
    #[arg(long, value_name = "N")]
    vocabulary: Option<u64>,
    /// Length of a sequence [tokens].
    #[arg(long, value_name = "N")]
    sequence: Option<u64>,
    /// Number of experts of each layer.
    #[arg(long, value_name = "N")]
    experts: Option<u64>,
    /// Number of experts that a token uses.
    #[arg(long, value_name = "N")]
    experts_per_token: Option<u64>,
    /// Parts of each matrix.
    #[arg(long, value_name = "N", default_value_t = 1)]
    tensor: u32,
    /// Parts of each sequence.
    #[arg(long, value_name = "N", default_value_t = 1)]
    context: u32,
    /// Parts of the experts, along the replicas.
    #[arg(long, value_name = "N", default_value_t = 1)]
    expert: u32,
    /// Replicas of the model.
    #[arg(long, value_name = "N", default_value_t = 1)]
    data: u32,
    /// Stages of layers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pipeline: u32,
    /// Chunks of layers of each stage.
    #[arg(long, value_name = "N", default_value_t = 1)]
    interleave: u32,
    /// Stage of ZeRO: 0, 1 (divides optimizer states), 2 (gradients), 3 (parameters).
    #[arg(long, value_name = "STAGE", default_value_t = 0)]
    zero: u8,
    /// Divides activations between the matrices, too.
    #[arg(long)]
    sequence_parallel: bool,
    /// Computation that is repeated in place of keeping activations.
    #[arg(long, value_enum, value_name = "PART", default_value_t = Repeated::None)]
    recompute: Repeated,
    /// Overlaps communication with computation.
    #[arg(long)]
    overlap: bool,
    /// Number of sequences of an iteration.
    #[arg(long, value_name = "N")]
    batch: u32,
    /// Number of sequences of a micro-batch.
    #[arg(long, value_name = "N", default_value_t = 1)]
    micro_batch: u32,
    /// Number of iterations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    iterations: u64,
    /// Size of an activation and of a parameter [B].
    #[arg(long, value_name = "BYTES", default_value_t = 2)]
    element_bytes: u64,
    /// Size of a gradient that is reduced [B].
    #[arg(long, value_name = "BYTES", default_value_t = 4)]
    gradient_bytes: u64,
    /// Speed of a GPU over the bandwidth of its memory [flop/B]; 0: memory is no limit.
    #[arg(long, value_name = "RATIO", default_value_t = 0.0)]
    flops_per_byte: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Repeated {
    /// Nothing is repeated.
    None,
    /// The core of the attention.
    Selective,
    /// All layers.
    Full,
}

impl TransformerArguments {
    pub(super) fn generator(self) -> Result<Transformer, training::TransformerError> {
        let preset = Model::preset(&self.model)?;
        let model = Model {
            layers: self.layers.unwrap_or(preset.layers),
            hidden: self.hidden.unwrap_or(preset.hidden),
            heads: self.heads.unwrap_or(preset.heads),
            kv_heads: self.kv_heads.or(self.heads).unwrap_or(preset.kv_heads),
            feed_forward: self
                .feed_forward
                .or(self.hidden.map(|hidden| hidden.saturating_mul(4)))
                .unwrap_or(preset.feed_forward),
            vocabulary: self.vocabulary.unwrap_or(preset.vocabulary),
            sequence: self.sequence.unwrap_or(preset.sequence),
            experts: self.experts.unwrap_or(preset.experts),
            experts_per_token: self.experts_per_token.unwrap_or(preset.experts_per_token),
            ..preset
        };
        let recomputation = match self.recompute {
            Repeated::None => Recomputation::None,
            Repeated::Selective => Recomputation::Selective,
            Repeated::Full => Recomputation::Full,
        };
        let parameters = TransformerParameters {
            tensor: self.tensor,
            context: self.context,
            expert: self.expert,
            data: self.data,
            pipeline: self.pipeline,
            interleave: self.interleave,
            zero: self.zero,
            sequence_parallel: self.sequence_parallel,
            recomputation,
            overlap: self.overlap,
            batch: self.batch,
            micro_batch: self.micro_batch,
            iterations: self.iterations,
            element_bytes: self.element_bytes,
            gradient_bytes: self.gradient_bytes,
            flops_per_byte: self.flops_per_byte,
        };
        Transformer::new(model, parameters)
    }
}
