//! Figures of a training run that are known without a replay.

use trace_mmap::{CallOp, Collective, Item, Op, RequestName};
use trace_tools::generate::Generator as _;

use super::mesh::GroupKind;
use super::{Recomputation, Transformer, TransformerParameters};

/// Sizes of a training run, which follow from its parameters. Times are those of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformerSummary {
    /// Number of all parameters of the model.
    pub parameters: u64,
    /// Number of parameters by which a token is multiplied.
    pub active_parameters: u64,
    /// Number of tokens of an iteration.
    pub tokens: u64,
    /// Computation of an iteration, without any that is repeated \[flop\]. Over time, ranks and their speed it is the model-flops
    /// utilisation.
    pub model_flops: f64,
    /// Amount of computation of an iteration in the trace, on all ranks \[flop\]: with what is repeated, and with the time of memory
    /// where that is the limit.
    pub trace_flops: f64,
    /// Share of the computation of a layer whose limit is memory.
    pub memory_bound: f64,
    /// Share of an iteration for which a stage is idle because the pipeline fills and drains, if messages take no time.
    pub bubble: f64,
    /// Memory of a rank of the first stage \[B\]: parameters, gradients, states of the optimizer (12 B per parameter), activations.
    pub memory: [u64; 4],
    /// Least number of bytes that a rank sends in an iteration for the operations of each kind of group with several ranks: the largest
    /// of all stages, with the number of ranks of a group.
    pub collectives: Vec<(GroupKind, u32, u64)>,
    /// Bytes that a rank sends in an iteration in messages to other stages and to other parts of a sequence: the largest of all stages.
    pub messages: u64,
}

impl TransformerSummary {
    /// Returns the summary as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let [parameters, gradients, optimizer, activations] = self.memory.map(gib);
        let total = gib(self.memory.iter().sum());
        let mut lines = vec![
            format!(
                "model:       {} parameters, {} per token; {} tokens and {:.6e} flop per iteration",
                self.parameters, self.active_parameters, self.tokens, self.model_flops
            ),
            format!(
                "trace:       {:.6e} flop per iteration, {:.1} % of a layer bound by memory; bubble of the pipeline {:.2} %",
                self.trace_flops,
                100.0 * self.memory_bound,
                100.0 * self.bubble
            ),
            format!(
                "memory:      {total:.1} GiB of a rank: parameters {parameters:.1}, gradients {gradients:.1}, optimizer {optimizer:.1}, activations {activations:.1} (estimate)"
            ),
        ];
        for (kind, ranks, bytes) in &self.collectives {
            lines.push(format!(
                "collectives: {bytes} B per rank and iteration, {} groups of {ranks}",
                kind.name()
            ));
        }
        lines.push(format!("messages:    {} B per rank and iteration", self.messages));
        lines
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 30) as f64
}

/// Sums over the program of a rank.
#[derive(Default)]
struct Sums {
    flops: f64,
    collectives: [u64; GroupKind::ALL.len()],
    messages: u64,
    /// Sizes of the messages of persistent requests.
    sends: Vec<(RequestName, u64)>,
}

impl Sums {
    fn add(&mut self, items: &[Item], times: u64, len: &impl Fn(GroupKind) -> u32) {
        for item in items {
            match item {
                Item::Loop { count, body } => self.add(body, times * count, len),
                Item::Op(Op::Compute { flops }) => self.flops += times as f64 * flops,
                Item::Op(Op::Call(call)) => self.add_call(call, times, len),
                Item::Op(_) => {}
            }
        }
    }

    fn add_call(&mut self, call: &CallOp, times: u64, len: &impl Fn(GroupKind) -> u32) {
        match call {
            CallOp::SendInit { request, bytes, .. } => self.sends.push((*request, bytes.get())),
            CallOp::Start { requests } => {
                let sizes = self.sends.iter().filter(|(send, _)| requests.contains(send));
                self.messages += times * sizes.map(|(_, bytes)| bytes).sum::<u64>();
            }
            CallOp::Collective { communicator, operation, .. } => {
                let kind = GroupKind::of(*communicator);
                let others = u64::from(len(kind)) - 1;
                self.collectives[kind as usize] += times * least_sent(operation, others);
            }
            _ => {}
        }
    }
}

/// Returns the least number of bytes that a rank sends if the work is divided evenly, as in a ring.
fn least_sent(operation: &Collective, others: u64) -> u64 {
    match operation {
        Collective::Allreduce { count, .. } => 2 * (others * count).div_ceil(others + 1),
        Collective::ReduceScatter { recv_counts, .. } => recv_counts.iter().skip(1).sum(),
        Collective::Allgather { send_count, .. } | Collective::Alltoall { send_count, .. } => {
            others * send_count
        }
        other => unreachable!("{} is never written", other.name()),
    }
}

impl Transformer {
    /// Returns what is known without a replay. Cost: that of writing the program of a rank of each stage.
    pub fn summary(&self) -> TransformerSummary {
        let TransformerParameters { pipeline, interleave, batch, .. } = self.parameters;
        let one =
            Self { parameters: TransformerParameters { iterations: 1, ..self.parameters }, ..self.clone() };
        let stages: Vec<Sums> = (0..pipeline)
            .map(|stage| {
                let mut sums = Sums::default();
                sums.add(&one.rank(self.first_of_stage(stage)), 1, &|kind| self.mesh.len(kind));
                sums
            })
            .collect();
        let largest = |of: &dyn Fn(&Sums) -> u64| stages.iter().map(of).max().unwrap_or(0);
        let collectives = GroupKind::ALL
            .map(|kind| (kind, self.mesh.len(kind), largest(&|sums| sums.collectives[kind as usize])));
        let tokens = u64::from(batch) * self.model.sequence;
        let (idle, busy) = (pipeline - 1, self.micro_batches() * interleave);
        TransformerSummary {
            parameters: self.model.parameters(),
            active_parameters: self.model.active_parameters(),
            tokens,
            model_flops: self.model.flops_per_token() as f64 * tokens as f64,
            trace_flops: stages.iter().map(|sums| sums.flops).sum::<f64>() * f64::from(self.ranks / pipeline),
            memory_bound: self.memory_bound(),
            bubble: f64::from(idle) / f64::from(busy + idle),
            memory: self.memory(),
            collectives: collectives.into_iter().filter(|(.., bytes)| *bytes > 0).collect(),
            messages: largest(&|sums| sums.messages),
        }
    }

    /// Returns the share of the computation of a layer whose limit is memory.
    fn memory_bound(&self) -> f64 {
        let work = self.layer_work();
        let parts = [&work.projection, &work.output, &work.router, &work.network];
        let operations = || parts.into_iter().flatten().chain([&work.core]);
        let amounts = operations().map(|operation| self.bounded(*operation));
        let bound = operations().map(|operation| self.bounded(*operation) - operation.flops);
        let limited = amounts.clone().zip(bound).filter(|(_, bound)| *bound > 0.0).map(|(amount, _)| amount);
        // A sum of nothing is -0.
        limited.fold(0.0, |sum, amount| sum + amount) / amounts.sum::<f64>()
    }

    /// Returns the memory of a rank of the first stage \[B\]. Activations are those of a GPT by Korthikanti et al., 2022: without
    /// recomputation 34 values of a byte per token and element, of which 10 are not divided without sequence parallelism, and 5 per
    /// head and pair of tokens.
    pub fn memory(&self) -> [u64; 4] {
        let TransformerParameters {
            tensor, pipeline, interleave, zero, element_bytes, gradient_bytes, ..
        } = self.parameters;
        let layers = self.chunks_layers();
        let sizes = [element_bytes, gradient_bytes, 12];
        let divided_from = [3, 2, 1];
        let [parameters, gradients, optimizer] = std::array::from_fn(|part| {
            let divided = |kind, count: u64| {
                if zero >= divided_from[part] { count.div_ceil(self.mesh.len(kind).into()) } else { count }
            };
            let dense = divided(GroupKind::Gradient, self.dense_parameters(0));
            let experts = divided(GroupKind::ExpertGradient, layers * self.expert_layer_parameters());
            sizes[part] * (dense + experts)
        });
        let elements = (self.tokens() * self.model.hidden) as f64;
        let parts = f64::from(tensor);
        let scores = 5.0 * (self.model.heads * self.model.sequence) as f64 / self.model.hidden as f64;
        let undivided = if self.parameters.sequence_parallel { 10.0 / parts } else { 10.0 };
        let whole = undivided + 24.0 / parts;
        let per_element = match self.parameters.recomputation {
            Recomputation::None => whole + scores / parts,
            Recomputation::Selective => whole,
            Recomputation::Full => 2.0,
        };
        let chunks =
            if interleave > 1 { 2 * (pipeline - 1) + (interleave - 1) * pipeline + 1 } else { pipeline };
        let in_flight = chunks.min(self.micro_batches() * interleave);
        let kept = f64::from(in_flight) * self.chunk_layers() as f64 * per_element;
        let in_work =
            if self.parameters.recomputation == Recomputation::Full { whole + scores / parts } else { 0.0 };
        let activations = elements * element_bytes as f64 / 2.0 * (kept + in_work);
        [parameters, gradients, optimizer, activations as u64]
    }
}
