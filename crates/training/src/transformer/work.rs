//! Computation of a layer on one rank, and the sizes of what ranks exchange.

use super::mesh::{Axis, GroupKind};
use super::{Model, Recomputation, Transformer, TransformerParameters};

/// An operation of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Operation {
    /// Computation \[flop\].
    pub(super) flops: f64,
    /// Memory that is read and written \[B\].
    pub(super) bytes: f64,
}

impl Operation {
    /// Returns the multiplication of a matrix with `rows` vectors.
    fn multiply(rows: f64, from: f64, to: f64, element_bytes: f64) -> Self {
        let bytes = element_bytes * (from * to + rows * (from + to));
        Self { flops: 2.0 * rows * from * to, bytes }
    }

    fn times(self, factor: f64) -> Self {
        Self { flops: factor * self.flops, bytes: factor * self.bytes }
    }
}

/// Computation of the parts of a layer on one rank and one micro-batch, forward.
#[derive(Clone, Debug)]
pub(super) struct LayerWork {
    /// From the layer's input to queries, keys and values.
    pub(super) projection: Vec<Operation>,
    /// Scores and their product with the values.
    pub(super) core: Operation,
    /// From there to the output of the attention.
    pub(super) output: Vec<Operation>,
    /// Choice of the experts.
    pub(super) router: Vec<Operation>,
    /// The network, or the experts of this rank.
    pub(super) network: Vec<Operation>,
}

impl Transformer {
    /// Returns the number of tokens of a micro-batch on a rank.
    pub(super) fn tokens(&self) -> u64 {
        u64::from(self.parameters.micro_batch) * self.model.sequence / u64::from(self.parameters.context)
    }

    /// Returns the computation of a layer, forward.
    pub(super) fn layer_work(&self) -> LayerWork {
        let Model { hidden, feed_forward, sequence, experts, .. } = self.model;
        let rows = self.tokens() as f64;
        let parts = f64::from(self.parameters.tensor);
        let size = self.parameters.element_bytes as f64;
        let [h, kv, f] = [hidden, self.model.kv_hidden(), feed_forward].map(|width| width as f64);
        let multiply = |rows, from, to| Operation::multiply(rows, from, to, size);
        // Activations between the matrices are whole on each rank of a tensor group, unless they are divided, too.
        let outside = if self.parameters.sequence_parallel { rows * h / parts } else { rows * h };
        let norm = Operation { flops: 0.0, bytes: 2.0 * size * outside };
        let residual = Operation { flops: 0.0, bytes: 3.0 * size * outside };
        let core = Operation {
            flops: 4.0 * rows * sequence as f64 * h / parts,
            bytes: size * rows * 2.0 * (h + kv) / parts,
        };
        let rows_of_experts = rows * self.model.experts_per_token as f64;
        let gates = 1 + u64::from(self.model.is_gated);
        let mut network: Vec<_> = (0..gates).map(|_| multiply(rows_of_experts, h, f / parts)).collect();
        network.extend([multiply(rows_of_experts, f / parts, h), residual]);
        LayerWork {
            projection: vec![norm, multiply(rows, h, (h + 2.0 * kv) / parts)],
            core,
            output: vec![multiply(rows, h / parts, h), residual],
            router: if experts > 1 {
                vec![norm, multiply(outside / h, h, experts as f64)]
            } else {
                vec![norm]
            },
            network,
        }
    }

    /// Returns the multiplication with the last matrix, forward.
    pub(super) fn head_work(&self) -> Operation {
        let parts = f64::from(self.parameters.tensor);
        let [h, v] = [self.model.hidden, self.model.vocabulary].map(|width| width as f64);
        Operation::multiply(self.tokens() as f64, h, v / parts, self.parameters.element_bytes as f64)
    }

    /// Returns the step of the optimizer (Adam): a gradient and three numbers of 4 bytes per parameter are read, and these three and
    /// the parameter written.
    pub(super) fn optimizer_work(&self, stage: u32) -> Operation {
        let TransformerParameters { element_bytes, gradient_bytes, zero, .. } = self.parameters;
        let share = |kind| if zero > 0 { f64::from(self.mesh.len(kind)) } else { 1.0 };
        let parameters = self.dense_parameters(stage) as f64 / share(GroupKind::Gradient)
            + self.chunks_layers() as f64 * self.expert_layer_parameters() as f64
                / share(GroupKind::ExpertGradient);
        Operation { flops: 0.0, bytes: parameters * (gradient_bytes + 24 + element_bytes) as f64 }
    }

    /// Returns the flops that an operation counts: backward twice, for its input and its weights.
    pub(super) fn amount(&self, operation: Operation, is_backward: bool) -> f64 {
        self.bounded(operation.times(if is_backward { 2.0 } else { 1.0 }))
    }

    /// Returns the flops that the core of the attention counts.
    pub(super) fn core_amount(&self, core: Operation, is_backward: bool) -> f64 {
        let is_repeated = is_backward && self.parameters.recomputation == Recomputation::Selective;
        self.amount(core, is_backward) + if is_repeated { self.bounded(core) } else { 0.0 }
    }

    /// Returns the flops that take the time of an operation: its own, or that of its memory.
    pub(super) fn bounded(&self, operation: Operation) -> f64 {
        operation.flops.max(operation.bytes * self.parameters.flops_per_byte)
    }

    /// Returns the number of layers of a stage.
    pub(super) fn chunks_layers(&self) -> u64 {
        self.chunk_layers() * u64::from(self.parameters.interleave)
    }

    /// Returns the number of parameters of a layer on a rank that all replicas have.
    pub(super) fn dense_layer_parameters(&self) -> u64 {
        let network = if self.model.experts > 1 { 0 } else { self.model.expert_parameters() };
        let divided = self.model.attention_parameters() + network;
        divided.div_ceil(self.parameters.tensor.into()) + self.model.router_parameters()
    }

    /// Returns the number of parameters of the experts of a layer on a rank.
    pub(super) fn expert_layer_parameters(&self) -> u64 {
        if self.model.experts == 1 {
            return 0;
        }
        let experts = self.model.experts / u64::from(self.parameters.expert);
        experts * self.model.expert_parameters() / u64::from(self.parameters.tensor)
    }

    /// Returns the number of parameters of the embedding on a rank.
    pub(super) fn embedding_part(&self) -> u64 {
        self.model.embedding_parameters().div_ceil(self.parameters.tensor.into())
    }

    /// Returns how many embeddings a stage has: one at either end; one in all if both ends are one stage and share it.
    pub(super) fn embeddings(&self, stage: u32) -> u64 {
        let ends = u64::from(stage == 0) + u64::from(stage == self.parameters.pipeline - 1);
        if self.model.is_tied { ends.min(1) } else { ends }
    }

    /// Returns the number of parameters of a stage on a rank that all replicas have.
    pub(super) fn dense_parameters(&self, stage: u32) -> u64 {
        self.chunks_layers() * self.dense_layer_parameters() + self.embeddings(stage) * self.embedding_part()
    }

    /// Returns the size of the activations of a micro-batch on a rank between the matrices \[B\].
    pub(super) fn activation_bytes(&self) -> u64 {
        self.parameters.element_bytes * self.tokens() * self.model.hidden
    }

    /// Returns the size of a message to the next stage \[B\]: each rank of a tensor group sends its part.
    pub(super) fn stage_bytes(&self) -> u64 {
        self.activation_bytes().div_ceil(self.parameters.tensor.into())
    }

    /// Returns the size of the keys and values of a part of a sequence \[B\].
    pub(super) fn key_bytes(&self) -> u64 {
        let width = 2 * self.model.kv_hidden();
        self.parameters.element_bytes * self.tokens() * width / u64::from(self.parameters.tensor)
    }

    /// Returns the size of what a rank sends to each rank of its expert group, and back \[B\].
    pub(super) fn expert_bytes(&self) -> u64 {
        let ranks = u64::from(self.parameters.tensor) * u64::from(self.mesh.extent(Axis::Expert));
        (self.activation_bytes() * self.model.experts_per_token).div_ceil(ranks)
    }
}
