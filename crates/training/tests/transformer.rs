//! Programs of transformers: sizes by closed forms, and messages that match.

use pdes_core::Rank;
use trace_mmap::{ArchiveWriter, Item, Op, Trace, check, flatten};
use trace_tools::generate::Generator as _;
use training::{GroupKind, Model, Recomputation, Transformer, TransformerError, TransformerParameters};

const GPT: Model = Model {
    layers: 8,
    hidden: 512,
    heads: 8,
    kv_heads: 8,
    feed_forward: 2048,
    is_gated: false,
    vocabulary: 1024,
    is_tied: true,
    sequence: 256,
    experts: 1,
    experts_per_token: 1,
};
const EXPERTS: Model = Model { experts: 8, experts_per_token: 2, is_tied: false, kv_heads: 4, ..GPT };

fn layout() -> TransformerParameters {
    TransformerParameters { batch: 32, iterations: 3, ..TransformerParameters::default() }
}

/// Layouts that use each dimension and option, alone and together.
fn layouts() -> Vec<(Model, TransformerParameters)> {
    let mut layouts = vec![
        (GPT, TransformerParameters { tensor: 4, ..layout() }),
        (GPT, TransformerParameters { pipeline: 4, ..layout() }),
        (GPT, TransformerParameters { context: 4, ..layout() }),
        (GPT, TransformerParameters { data: 4, ..layout() }),
        (EXPERTS, TransformerParameters { data: 8, expert: 4, ..layout() }),
    ];
    let together = TransformerParameters { tensor: 2, context: 2, data: 4, pipeline: 2, ..layout() };
    for zero in 0..=3 {
        for overlap in [false, true] {
            let parameters = TransformerParameters { zero, overlap, interleave: 2, ..together };
            layouts.push((GPT, TransformerParameters { sequence_parallel: overlap, ..parameters }));
            let recomputation = if overlap { Recomputation::Full } else { Recomputation::Selective };
            layouts.push((
                EXPERTS,
                TransformerParameters { expert: 2, recomputation, interleave: 1, ..parameters },
            ));
        }
    }
    layouts
}

#[test]
fn messages_and_collective_operations_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.pdt");
    for (model, parameters) in layouts() {
        let transformer = Transformer::new(model, parameters).unwrap();
        let mut writer = ArchiveWriter::create(&path, transformer.ranks(), 1).unwrap();
        for rank in (0..transformer.ranks()).map(Rank::new) {
            writer.write_rank(rank, &transformer.rank(rank)).unwrap();
        }
        assert_eq!(writer.finish().unwrap().actions, transformer.actions(), "{parameters:?}");
        let report = check(&Trace::load(&path).unwrap(), None);
        assert_eq!(
            (report.findings.len(), report.unreceived, report.pending),
            (0, None, 0),
            "{parameters:?}"
        );
    }
}

/// Adds up the computation of all ranks [flop].
fn flops(transformer: &Transformer) -> f64 {
    let of_rank = |rank| -> f64 {
        let program = transformer.rank(Rank::new(rank));
        flatten(&program).map(|op| if let Op::Compute { flops } = op { *flops } else { 0.0 }).sum()
    };
    (0..transformer.ranks()).map(of_rank).sum()
}

/// The rule 6 N D, and 12 per layer, element and token of the sequence for attention, however the work is divided.
#[test]
fn computation_is_that_of_the_rule() {
    for (model, parameters) in layouts() {
        let plain = TransformerParameters { recomputation: Recomputation::None, ..parameters };
        let transformer = Transformer::new(model, plain).unwrap();
        let tokens = 32 * 256;
        let matrices = model.active_parameters() * 6 * tokens;
        let attention = 12 * model.layers * model.hidden * model.sequence * tokens;
        // The choice of the experts is repeated on each rank of a tensor group.
        let router = 6 * model.router_parameters() * model.layers * tokens * u64::from(plain.tensor - 1);
        let expected = 3.0 * (matrices + attention + router) as f64;
        let found = flops(&transformer);
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected} {plain:?}");
        let summary = transformer.summary();
        assert_eq!(summary.model_flops, (matrices + attention) as f64);
        assert!((summary.trace_flops * 3.0 / expected - 1.0).abs() < 1e-9);

        let full = TransformerParameters { recomputation: Recomputation::Full, ..plain };
        let head = 6 * model.embedding_parameters() * tokens;
        let layers = expected - 3.0 * head as f64;
        let repeated = flops(&Transformer::new(model, full).unwrap());
        assert!((repeated / (expected + layers / 3.0) - 1.0).abs() < 1e-9, "{plain:?}");
    }
}

/// Activations of a micro-batch are 2 B, 256 tokens, 512 elements; a rank sends 2 (n - 1) / n of them in an allreduce of n ranks.
#[test]
fn bytes_of_groups_have_closed_forms() {
    let activations = 2 * 256 * 512;
    let bytes = |model, parameters| {
        let summary = Transformer::new(model, parameters).unwrap().summary();
        (summary.collectives, summary.messages)
    };
    // Four allreduces per layer and micro-batch; with sequence parallelism the same bytes in twice as many operations.
    let tensor = TransformerParameters { tensor: 4, ..layout() };
    let expected = 32 * 8 * 4 * 2 * activations * 3 / 4;
    assert_eq!(bytes(GPT, tensor), (vec![(GroupKind::Tensor, 4, expected)], 0));
    let divided = TransformerParameters { sequence_parallel: true, ..tensor };
    assert_eq!(bytes(GPT, divided), (vec![(GroupKind::Tensor, 4, expected)], 0));

    // Gradients of 4 B once; parameters of 2 B.
    let parameters = 8 * 12 * 512 * 512 + 1024 * 512;
    let data = TransformerParameters { data: 4, ..layout() };
    let gradient = |bytes| (vec![(GroupKind::Gradient, 4, bytes)], 0);
    let reduced = 4 * parameters * 3 / 4;
    let gathered = 2 * parameters * 3 / 4;
    assert_eq!(bytes(GPT, data), gradient(2 * reduced));
    assert_eq!(bytes(GPT, TransformerParameters { zero: 1, ..data }), gradient(reduced + gathered));
    assert_eq!(bytes(GPT, TransformerParameters { zero: 2, ..data }), gradient(8 * reduced + gathered));
    assert_eq!(bytes(GPT, TransformerParameters { zero: 3, ..data }), gradient(8 * (reduced + 2 * gathered)));

    // An inner stage sends the activations and the gradients of each micro-batch; with two chunks of layers twice.
    let pipeline = TransformerParameters { pipeline: 4, ..layout() };
    let embedding = (GroupKind::Embedding, 2, 4 * 1024 * 512);
    assert_eq!(bytes(GPT, pipeline), (vec![embedding], 32 * 2 * activations));
    let interleaved = TransformerParameters { interleave: 2, ..pipeline };
    assert_eq!(bytes(GPT, interleaved), (vec![embedding], 32 * 4 * activations));

    // Keys and values of a quarter of the tokens go round forward, with their gradients backward.
    let context = TransformerParameters { context: 4, ..layout() };
    let reduced = (GroupKind::Gradient, 4, 2 * 4 * parameters * 3 / 4);
    assert_eq!(bytes(GPT, context), (vec![reduced], 32 * 8 * 3 * (1 + 2) * 2 * activations / 4));

    // Each token goes to two experts and back, forward and backward: three quarters of them to other ranks.
    let expert = TransformerParameters { data: 4, expert: 4, ..layout() };
    let tokens = (GroupKind::Expert, 4, 8 * 8 * 4 * 2 * activations * 3 / 4);
    assert_eq!(bytes(EXPERTS, expert).0[0], tokens);
}

#[test]
fn memory_decides_where_computation_per_byte_is_low() {
    let bound = |flops_per_byte| {
        let parameters = TransformerParameters { flops_per_byte, ..layout() };
        Transformer::new(GPT, parameters).unwrap().summary()
    };
    assert_eq!(bound(0.0).memory_bound, 0.0);
    let (some, all) = (bound(50.0), bound(1e6));
    assert!(some.memory_bound > 0.0 && some.memory_bound < 0.5, "{}", some.memory_bound);
    assert_eq!(all.memory_bound, 1.0);
    assert!(some.trace_flops > some.model_flops && all.trace_flops > 10.0 * some.trace_flops);
}

/// Rajbhandari et al., SC 2020: 16 bytes per parameter with gradients of 2 B, of which stages of `ZeRO` divide 12, 14 and all.
#[test]
fn memory_is_that_of_zero() {
    let states = |zero| {
        let parameters = TransformerParameters { data: 4, zero, gradient_bytes: 2, ..layout() };
        let [parameters, gradients, optimizer, _] =
            Transformer::new(GPT, parameters).unwrap().summary().memory;
        parameters + gradients + optimizer
    };
    let all = GPT.parameters();
    assert_eq!(
        [0, 1, 2, 3].map(states),
        [16 * all, (2 + 2 + 3) * all, (2 + 14 / 4) * all + all / 2, 4 * all]
    );
}

#[test]
fn programs_are_loops() {
    let gpt3 = Model::preset("gpt3-175b").unwrap();
    let parameters = TransformerParameters {
        tensor: 8,
        pipeline: 16,
        data: 128,
        batch: 128 * 64,
        iterations: 1000,
        ..TransformerParameters::default()
    };
    let transformer = Transformer::new(gpt3, parameters).unwrap();
    assert_eq!(transformer.ranks(), 16_384);
    let length = |items: &[Item]| {
        fn length(items: &[Item]) -> usize {
            items.iter().map(|item| if let Item::Loop { body, .. } = item { length(body) } else { 1 }).sum()
        }
        length(items)
    };
    for rank in [0, 5000, 16_383] {
        let written = length(&transformer.rank(Rank::new(rank)));
        assert!(written < 150, "{written}");
    }
}

#[test]
fn illegal_layouts_are_named() {
    let error = |model, parameters| Transformer::new(model, parameters).unwrap_err();
    let indivisible = |name, found, of, whole| TransformerError::Indivisible { name, found, of, whole };
    let seven = TransformerParameters { tensor: 7, ..layout() };
    assert_eq!(error(GPT, seven), indivisible("tensor", 7, "kv_heads", 8));
    let three = TransformerParameters { pipeline: 3, ..layout() };
    assert_eq!(error(GPT, three), indivisible("pipeline * interleave", 3, "layers", 8));
    let nothing = TransformerParameters { data: 0, ..layout() };
    assert_eq!(error(GPT, nothing), TransformerError::Zero { name: "data" });
    let experts = TransformerParameters { data: 4, expert: 2, ..layout() };
    assert_eq!(error(GPT, experts), indivisible("expert", 2, "experts", 1));
    let four = TransformerParameters { zero: 4, ..layout() };
    assert_eq!(error(GPT, four), TransformerError::TooLarge { name: "zero", found: 4, most: 3 });
    let alone = TransformerParameters { interleave: 2, ..layout() };
    assert_eq!(error(GPT, alone), TransformerError::InterleavedStage);
}
