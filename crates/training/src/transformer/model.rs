//! Shapes of models, and the numbers of their parameters.

use super::TransformerError;

/// Shape of a transformer: layers of attention and of a network of two or three matrices, or of experts.
///
/// Biases and norms, some 0.01 % of the parameters of large models, are left out everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of layers.
    pub layers: u64,
    /// Width of an activation \[elements\].
    pub hidden: u64,
    /// Number of heads that have queries.
    pub heads: u64,
    /// Number of heads that have keys and values, which divides that of queries (grouped-query attention).
    pub kv_heads: u64,
    /// Width within the network of a layer, or of an expert \[elements\].
    pub feed_forward: u64,
    /// True if the network has a third matrix, a gate (`SwiGLU`).
    pub is_gated: bool,
    /// Number of tokens in the vocabulary.
    pub vocabulary: u64,
    /// True if the embedding and the last matrix are one.
    pub is_tied: bool,
    /// Length of a sequence \[tokens\].
    pub sequence: u64,
    /// Number of experts of each layer; 1 is a network without experts.
    pub experts: u64,
    /// Number of experts that a token uses.
    pub experts_per_token: u64,
}

/// Shapes of published models, by name.
///
/// | name | source |
/// |---|---|
/// | `gpt3-175b` | Brown et al., 2020, table 2.1 |
/// | `megatron-1t` | Narayanan et al., SC 2021, table 1 |
/// | `llama2-7b`, `llama2-13b`, `llama2-70b` | Touvron et al., 2023, and the published configurations |
/// | `llama3-8b`, `llama3-70b`, `llama3-405b` | Grattafiori et al., 2024, table 3 |
/// | `mixtral-8x7b` | Jiang et al., 2024, table 1 |
pub const PRESETS: &[(&str, Model)] = &[
    ("gpt3-175b", Model { sequence: 2048, vocabulary: 50_257, ..gpt(96, 12_288, 96) }),
    ("megatron-1t", Model { sequence: 2048, vocabulary: 51_200, ..gpt(128, 25_600, 160) }),
    ("llama2-7b", llama2(32, 4096, 32, 32, 11_008)),
    ("llama2-13b", llama2(40, 5120, 40, 40, 13_824)),
    ("llama2-70b", llama2(80, 8192, 64, 8, 28_672)),
    ("llama3-8b", llama3(32, 4096, 32, 14_336)),
    ("llama3-70b", llama3(80, 8192, 64, 28_672)),
    ("llama3-405b", llama3(126, 16_384, 128, 53_248)),
    ("mixtral-8x7b", Model { experts: 8, experts_per_token: 2, ..llama2(32, 4096, 32, 8, 14_336) }),
];

const fn gpt(layers: u64, hidden: u64, heads: u64) -> Model {
    Model {
        layers,
        hidden,
        heads,
        kv_heads: heads,
        feed_forward: 4 * hidden,
        is_gated: false,
        vocabulary: 50_257,
        is_tied: true,
        sequence: 2048,
        experts: 1,
        experts_per_token: 1,
    }
}

const fn llama2(layers: u64, hidden: u64, heads: u64, kv_heads: u64, feed_forward: u64) -> Model {
    let (vocabulary, sequence) = (32_000, 4096);
    Model {
        kv_heads,
        feed_forward,
        is_gated: true,
        vocabulary,
        is_tied: false,
        sequence,
        ..gpt(layers, hidden, heads)
    }
}

const fn llama3(layers: u64, hidden: u64, heads: u64, feed_forward: u64) -> Model {
    let (vocabulary, sequence) = (128_256, 8192);
    Model { vocabulary, sequence, ..llama2(layers, hidden, heads, 8, feed_forward) }
}

impl Model {
    /// Finds a published model.
    ///
    /// # Errors
    /// [`TransformerError::Preset`] with the names that there are.
    pub fn preset(name: &str) -> Result<Self, TransformerError> {
        let found = PRESETS.iter().find(|(preset, _)| *preset == name);
        found.map(|(_, model)| *model).ok_or_else(|| TransformerError::Preset { found: name.to_owned() })
    }

    /// Returns the width of the keys of a token, which is that of its values \[elements\].
    pub fn kv_hidden(&self) -> u64 {
        self.hidden / self.heads * self.kv_heads
    }

    /// Returns the number of parameters of the attention of a layer.
    pub fn attention_parameters(&self) -> u64 {
        2 * self.hidden * (self.hidden + self.kv_hidden())
    }

    /// Returns the number of parameters of an expert of a layer, or of its network.
    pub fn expert_parameters(&self) -> u64 {
        (2 + u64::from(self.is_gated)) * self.hidden * self.feed_forward
    }

    /// Returns the number of parameters that choose the experts of a token.
    pub fn router_parameters(&self) -> u64 {
        if self.experts > 1 { self.hidden * self.experts } else { 0 }
    }

    /// Returns the number of parameters of the embedding, and of the last matrix.
    pub fn embedding_parameters(&self) -> u64 {
        self.vocabulary * self.hidden
    }

    /// Returns the number of all parameters, at most [`u64::MAX`].
    pub fn parameters(&self) -> u64 {
        let experts = self.experts.saturating_mul(self.expert_parameters());
        let layer = experts.saturating_add(self.attention_parameters() + self.router_parameters());
        let embeddings = (2 - u64::from(self.is_tied)) * self.embedding_parameters();
        self.layers.saturating_mul(layer).saturating_add(embeddings)
    }

    /// Returns the number of parameters by which a token is multiplied: N of the rule 6 N D.
    pub fn active_parameters(&self) -> u64 {
        let layer = self.attention_parameters()
            + self.router_parameters()
            + self.experts_per_token * self.expert_parameters();
        self.layers * layer + self.embedding_parameters()
    }

    /// Returns the computation of one token, forward and backward, without any that is repeated \[flop\]: 6 per active parameter, and
    /// 12 per layer, element and token of the sequence for the attention, whose mask saves nothing (Narayanan et al., SC 2021).
    pub fn flops_per_token(&self) -> u64 {
        6 * self.active_parameters() + 12 * self.layers * self.hidden * self.sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_numbers_of_parameters() {
        let published = [174.6e9, 1008.0e9, 6.74e9, 13.02e9, 68.98e9, 8.03e9, 70.55e9, 405.8e9, 46.7e9];
        for ((name, model), published) in PRESETS.iter().zip(published) {
            let parameters = model.parameters() as f64;
            assert!((parameters / published - 1.0).abs() < 2e-3, "{name}: {parameters}, {published}");
        }
        assert!(matches!(Model::preset("gpt5"), Err(TransformerError::Preset { .. })));
    }

    /// Equation 3 of Narayanan et al., with 72 in place of 96: nothing is computed twice.
    #[test]
    fn flops_of_a_gpt_are_those_of_the_published_formula() {
        let model = Model::preset("megatron-1t").unwrap();
        let [s, l, h, v] =
            [model.sequence, model.layers, model.hidden, model.vocabulary].map(|value| value as f64);
        let published = 72.0 * s * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
        let found = model.flops_per_token() as f64 * s;
        assert!((found / published - 1.0).abs() < 1e-12, "{found} {published}");
    }
}
