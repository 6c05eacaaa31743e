//! Layouts of the training of a transformer, as axes of a sweep.

use clap::ValueEnum;
use netmodel::quantity::Size;
use schemars::JsonSchema;
use serde::Deserialize;
use training::TransformerError;

use super::grid::{Axis, Setting};
use crate::generate::{ProgramError, Repeated, transformer};

/// Name of the column with the number of replicas.
pub(super) const DATA: &str = "data";

/// Bytes of a gibibyte.
const GIB: f64 = (1_u64 << 30) as f64;

/// Section `[layouts]`: each combination of the values of its lists is a layout, whose replicas follow from the number of ranks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutsSection {
    /// Model and common options, as those of `trace generate transformer`.
    #[schemars(extend("x-value" = "such as `\"--model llama3-8b --batch 512\"`"))]
    options: String,
    /// Number of ranks, which are GPUs.
    #[schemars(range(min = 1))]
    ranks: u32,
    /// Memory of a GPU: layouts that need more are left out.
    #[schemars(extend("x-default" = "no limit"))]
    memory: Option<Size>,
    /// Numbers of parts of each matrix.
    #[serde(default)]
    #[schemars(inner(range(min = 1)))]
    tensor: Vec<u32>,
    /// Numbers of parts of each sequence.
    #[serde(default)]
    #[schemars(inner(range(min = 1)))]
    context: Vec<u32>,
    /// Numbers of parts of the experts, along the replicas.
    #[serde(default)]
    #[schemars(inner(range(min = 1)))]
    expert: Vec<u32>,
    /// Numbers of stages.
    #[serde(default)]
    #[schemars(inner(range(min = 1)))]
    pipeline: Vec<u32>,
    /// Numbers of chunks of layers of each stage.
    #[serde(default)]
    #[schemars(inner(range(min = 1)))]
    interleave: Vec<u32>,
    /// Numbers of sequences of a micro-batch.
    #[serde(default)]
    #[schemars(inner(range(min = 1)))]
    micro_batch: Vec<u32>,
    /// Stages of ZeRO.
    #[serde(default)]
    #[schemars(inner(range(max = 3)))]
    zero: Vec<u32>,
    /// Computations that are repeated in the backward pass.
    #[serde(default)]
    recompute: Vec<Repeated>,
}

/// An option of a layout.
#[derive(Clone)]
pub(super) struct LayoutOption {
    /// As an argument of `trace generate transformer`.
    argument: String,
    /// Factor of the number of ranks.
    ranks: u32,
}

/// A layout: the number of its replicas, if there is one, and the arguments of `trace generate`, or the reason why it is left out.
pub(super) struct Layout {
    pub(super) data: Option<u32>,
    pub(super) program: Result<String, String>,
}

impl LayoutsSection {
    /// Returns an axis for each list that has values.
    pub(super) fn axes(&self) -> Vec<Axis> {
        let numbers = [
            ("tensor", &self.tensor, true),
            ("context", &self.context, true),
            ("expert", &self.expert, false),
            ("pipeline", &self.pipeline, true),
            ("interleave", &self.interleave, false),
            ("micro_batch", &self.micro_batch, false),
            ("zero", &self.zero, false),
        ];
        let mut axes = Vec::new();
        for (name, values, divides) in numbers {
            let value = |value: &u32| (value.to_string(), if divides { *value } else { 1 });
            axes.push(axis(name, values.iter().map(value)));
        }
        let parts = self.recompute.iter().filter_map(ValueEnum::to_possible_value);
        axes.push(axis("recompute", parts.map(|part| (part.get_name().to_owned(), 1))));
        axes.retain(|axis| !axis.settings.is_empty());
        axes
    }

    /// Returns the layout with these options.
    ///
    /// # Errors
    /// Fails if the common options are wrong, or a value is none that any layout can have.
    pub(super) fn layout<'o>(
        &self,
        options: impl Iterator<Item = &'o LayoutOption>,
    ) -> Result<Layout, ProgramError> {
        let (mut arguments, mut parts) = (self.options.clone(), 1_u64);
        for LayoutOption { argument, ranks } in options {
            arguments += argument;
            parts = parts.saturating_mul((*ranks).into());
        }
        if !u64::from(self.ranks).is_multiple_of(parts) {
            let reason = format!(
                "tensor * context * pipeline is {parts}, expected a divisor of ranks, which is {}",
                self.ranks
            );
            return Ok(Layout { data: None, program: Err(reason) });
        }
        let data = self.ranks / parts as u32;
        arguments += &format!(" --data {data}");
        let program = match transformer(&arguments) {
            Ok(transformer) => {
                let needed = transformer.memory().into_iter().map(|bytes| bytes as f64).sum::<f64>();
                match self.memory {
                    Some(Size(most)) if needed > most => Err(format!(
                        "a rank needs {:.3} GiB of memory, expected at most {:.3} GiB",
                        needed / GIB,
                        most / GIB
                    )),
                    _ => Ok(format!("transformer {arguments}")),
                }
            }
            Err(ProgramError::Transformer(
                reason @ (TransformerError::Indivisible { .. } | TransformerError::InterleavedStage),
            )) => Err(reason.to_string()),
            Err(error) => return Err(error),
        };
        Ok(Layout { data: Some(data), program })
    }
}

fn axis(name: &str, values: impl Iterator<Item = (String, u32)>) -> Axis {
    let setting = |(label, ranks): (String, u32)| {
        let argument = format!(" --{} {label}", name.replace('_', "-"));
        let option = Some(LayoutOption { argument, ranks });
        Setting { label, cost: None, sections: toml::Table::new(), option }
    };
    Axis { name: name.to_owned(), settings: values.map(setting).collect() }
}
