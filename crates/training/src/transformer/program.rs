//! The program of a rank.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use trace_mmap::{
    CallOp, Collective, CommId, CommunicatorCall, Datatype, Group, Item, Op, Peer, RecvFrom, RequestName,
    SendMode, SendTo, Tag,
};
use trace_tools::generate::ProgramBuilder;

use super::mesh::{Axis, GroupKind};
use super::pipeline::{Repeated, Unit};
use super::work::{LayerWork, Operation};
use super::{Recomputation, Transformer};

/// Requests of nonblocking collective operations, of which one of each kind is in flight.
const GRADIENTS: [(GroupKind, RequestName); 2] =
    [(GroupKind::Gradient, RequestName::new(0)), (GroupKind::ExpertGradient, RequestName::new(1))];
const PARAMETERS: [(GroupKind, RequestName); 2] =
    [(GroupKind::Gradient, RequestName::new(2)), (GroupKind::ExpertGradient, RequestName::new(3))];

/// A persistent send and the receive of the same kind of message. The number of the kind is the tag.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    kind: u32,
    to: Rank,
    from: Rank,
    bytes: u64,
}

impl Exchange {
    const FIRST_REQUEST: u32 = 4;

    fn send(self) -> RequestName {
        RequestName::new(Self::FIRST_REQUEST + 2 * self.kind)
    }

    fn receive(self) -> RequestName {
        RequestName::new(Self::FIRST_REQUEST + 2 * self.kind + 1)
    }
}

/// Writer of the program of a rank.
pub(super) struct ProgramWriter<'t> {
    transformer: &'t Transformer,
    stage: u32,
    units: &'t [Repeated],
    work: LayerWork,
    communicators: [(CommId, Arc<Group>); GroupKind::ALL.len()],
    /// Messages between stages: activations, gradients.
    stages: [Exchange; 2],
    /// Messages in a context group: keys and values, and with their gradients.
    ring: [Exchange; 2],
}

impl<'t> ProgramWriter<'t> {
    pub(super) fn new(transformer: &'t Transformer, rank: Rank) -> Self {
        let mesh = &transformer.mesh;
        let neighbours = |axis| {
            let (place, extent) = (mesh.place(rank, axis), mesh.extent(axis));
            let at = |place: u32| mesh.at(rank, axis, place % extent);
            (at(place + 1), at(place + extent - 1))
        };
        let (next, previous) = neighbours(Axis::Pipeline);
        let (right, left) = neighbours(Axis::Context);
        let (between, keys) = (transformer.stage_bytes(), transformer.key_bytes());
        let stage = mesh.place(rank, Axis::Pipeline);
        Self {
            transformer,
            stage,
            units: &transformer.stages[stage as usize],
            work: transformer.layer_work(),
            communicators: GroupKind::ALL.map(|kind| mesh.communicator(rank, kind)),
            stages: [
                Exchange { kind: 0, to: next, from: previous, bytes: between },
                Exchange { kind: 1, to: previous, from: next, bytes: between },
            ],
            ring: [
                Exchange { kind: 2, to: right, from: left, bytes: keys },
                Exchange { kind: 3, to: right, from: left, bytes: 2 * keys },
            ],
        }
    }

    /// Returns the program.
    pub(super) fn write(&self) -> Vec<Item> {
        let (sends, receives) = (self.sends(), self.receives());
        ProgramBuilder::build(|program| {
            for kind in GroupKind::ALL.into_iter().filter(|kind| self.is_member(*kind)) {
                let (number, group) = self.communicators[kind as usize].clone();
                let (kind, parent) = (CommunicatorCall::CreateGroup, CommId::WORLD);
                call(program, CallOp::NewCommunicator { kind, parent, new: Some((number, group)) });
            }
            for exchange in &sends {
                let (peer, tag, communicator) = (Some(exchange.to), tag(exchange.kind), CommId::WORLD);
                let to = SendTo { peer, tag, communicator };
                let (request, bytes) = (exchange.send(), Bytes::new(exchange.bytes));
                call(program, CallOp::SendInit { to, request, mode: SendMode::Standard, bytes });
            }
            for exchange in &receives {
                let from = RecvFrom::on_world(Peer::Rank(exchange.from), Some(tag(exchange.kind)));
                let bytes = Bytes::new(exchange.bytes);
                call(program, CallOp::RecvInit { from, request: exchange.receive(), bytes });
            }
            program.repeat(self.transformer.parameters.iterations, |body| self.iteration(body));
            let sends: Vec<_> = sends.into_iter().map(Exchange::send).collect();
            if !sends.is_empty() {
                wait(program, &sends);
            }
            for request in sends.into_iter().chain(receives.into_iter().map(Exchange::receive)) {
                call(program, CallOp::Free { request });
            }
        })
    }

    /// Returns the exchanges of which the rank sends the messages.
    fn sends(&self) -> Vec<Exchange> {
        self.exchanges(|unit| unit.sends)
    }

    fn receives(&self) -> Vec<Exchange> {
        self.exchanges(|unit| unit.receives)
    }

    fn exchanges(&self, is_used: impl Fn(&Unit) -> bool) -> Vec<Exchange> {
        let units = || self.units.iter().flat_map(|repeated| &repeated.units);
        let is_in = |is_backward| units().any(|unit| unit.is_backward == is_backward && is_used(unit));
        let has_ring = self.transformer.mesh.extent(Axis::Context) > 1;
        let used = [is_in(false), is_in(true), has_ring, has_ring];
        self.stages
            .into_iter()
            .chain(self.ring)
            .zip(used)
            .filter_map(|(exchange, used)| used.then_some(exchange))
            .collect()
    }

    /// Returns whether the rank takes part in operations of a group.
    fn is_member(&self, kind: GroupKind) -> bool {
        let has_experts = self.transformer.model.experts > 1;
        let is_used = match kind {
            GroupKind::Tensor | GroupKind::Gradient => true,
            GroupKind::Expert | GroupKind::ExpertGradient => has_experts,
            GroupKind::Embedding => {
                let last = self.transformer.parameters.pipeline - 1;
                self.transformer.model.is_tied && (self.stage == 0 || self.stage == last)
            }
        };
        is_used && self.transformer.mesh.len(kind) > 1
    }

    /// Writes an iteration.
    fn iteration(&self, program: &mut ProgramBuilder) {
        let parameters = &self.transformer.parameters;
        if parameters.overlap {
            let receives = self.receives().into_iter().filter(|exchange| exchange.kind < 2);
            let requests: Vec<_> = receives.map(Exchange::receive).collect();
            if !requests.is_empty() {
                call(program, CallOp::Start { requests });
            }
        }
        for Repeated { count, units } in self.units {
            program.repeat(*count, |body| units.iter().for_each(|unit| self.unit(body, unit)));
        }
        let embedding = parameters.gradient_bytes * self.transformer.embedding_part();
        self.allreduce(program, GroupKind::Embedding, embedding);
        program.compute(self.transformer.bounded(self.transformer.optimizer_work(self.stage)));
        if let 1 | 2 = parameters.zero {
            let layers = self.transformer.chunks_layers();
            let experts = layers * self.transformer.expert_layer_parameters();
            for (kind, count) in [
                (GroupKind::Gradient, self.transformer.dense_parameters(self.stage)),
                (GroupKind::ExpertGradient, experts),
            ] {
                self.gather(program, kind, count, None);
            }
        }
    }

    /// Writes the work on a micro-batch.
    fn unit(&self, program: &mut ProgramBuilder, unit: &Unit) {
        let parameters = &self.transformer.parameters;
        let exchange = self.stages[usize::from(unit.is_backward)];
        let start = |program: &mut ProgramBuilder, request| {
            call(program, CallOp::Start { requests: vec![request] });
        };
        if unit.receives && !parameters.overlap {
            start(program, exchange.receive());
        }
        if unit.receives {
            wait(program, &[exchange.receive()]);
        }
        if unit.receives_later && parameters.overlap {
            start(program, exchange.receive());
        }
        let is_first = self.stage == 0 && unit.chunk == 0;
        let is_final = self.stage == parameters.pipeline - 1 && unit.chunk == parameters.interleave - 1;
        let embeddings = match (is_first, is_final) {
            (true, true) => self.transformer.embeddings(self.stage),
            (is_first, is_final) => u64::from(is_first || is_final),
        };
        let embedding_parameters = embeddings * self.transformer.embedding_part();
        let reduces = unit.is_backward && (unit.is_last || parameters.zero >= 2);
        let head = self.transformer.amount(self.transformer.head_work(), unit.is_backward);
        if parameters.zero == 3 {
            self.gather(program, GroupKind::Gradient, embedding_parameters, None);
        }
        if is_final && unit.is_backward {
            program.compute(head);
        }
        self.layers(program, unit.is_backward, reduces);
        if is_final && !unit.is_backward {
            program.compute(head);
        }
        if unit.sends {
            wait(program, &[exchange.send()]);
            start(program, exchange.send());
        }
        if reduces {
            self.wait_for(program, &GRADIENTS);
            self.reduce(program, GroupKind::Gradient, embedding_parameters, None);
        }
    }

    /// Writes the layers of a chunk. Where operations overlap with the next layer, the first and the last layer differ.
    fn layers(&self, program: &mut ProgramBuilder, is_backward: bool, reduces: bool) {
        let layers = self.transformer.chunk_layers();
        let gathers = self.transformer.parameters.zero == 3;
        let layer = |program: &mut ProgramBuilder, is_first, is_last| {
            if gathers {
                self.parameters(program, is_first, is_last);
            }
            if is_backward && self.transformer.parameters.recomputation == Recomputation::Full {
                self.pass(program, false);
            }
            self.pass(program, is_backward);
            if reduces {
                self.gradients(program, is_first);
            }
        };
        if !(self.transformer.parameters.overlap && (gathers || reduces)) {
            return program.repeat(layers, |body| layer(body, true, true));
        }
        layer(program, true, layers == 1);
        program.repeat(layers.saturating_sub(2), |body| layer(body, false, false));
        if layers > 1 {
            layer(program, false, true);
        }
    }

    /// Writes the arrival of the parameters of a layer; with overlap those of the next one are requested.
    fn parameters(&self, program: &mut ProgramBuilder, is_first: bool, is_last: bool) {
        let gather = |program: &mut ProgramBuilder, overlaps: bool| {
            for (kind, request) in PARAMETERS {
                self.gather(program, kind, self.layer_parameters(kind), overlaps.then_some(request));
            }
        };
        if !self.transformer.parameters.overlap {
            return gather(program, false);
        }
        if is_first {
            gather(program, true);
        }
        self.wait_for(program, &PARAMETERS);
        if !is_last {
            gather(program, true);
        }
    }

    /// Writes the reduction of the gradients of a layer; with overlap after that of the layer before.
    fn gradients(&self, program: &mut ProgramBuilder, is_first: bool) {
        let overlaps = self.transformer.parameters.overlap;
        if overlaps && !is_first {
            self.wait_for(program, &GRADIENTS);
        }
        for (kind, request) in GRADIENTS {
            self.reduce(program, kind, self.layer_parameters(kind), overlaps.then_some(request));
        }
    }

    /// Writes a layer, forward or backward.
    fn pass(&self, program: &mut ProgramBuilder, is_backward: bool) {
        if is_backward {
            self.network(program, is_backward);
        }
        self.attention(program, is_backward);
        if !is_backward {
            self.network(program, is_backward);
        }
    }

    fn attention(&self, program: &mut ProgramBuilder, is_backward: bool) {
        let [mut before, mut after] = [&self.work.projection, &self.work.output];
        if is_backward {
            (before, after) = (after, before);
        }
        self.enter(program);
        self.compute(program, before, is_backward);
        let parts = self.transformer.mesh.extent(Axis::Context);
        let core = self.transformer.core_amount(self.work.core, is_backward) / f64::from(parts);
        let overlaps = self.transformer.parameters.overlap;
        let exchange = self.ring[usize::from(is_backward)];
        program.repeat(u64::from(parts - 1), |body| {
            let requests = vec![exchange.send(), exchange.receive()];
            call(body, CallOp::Start { requests: requests.clone() });
            if overlaps {
                body.compute(core);
            }
            wait(body, &requests);
            if !overlaps {
                body.compute(core);
            }
        });
        program.compute(core);
        self.compute(program, after, is_backward);
        self.leave(program);
    }

    fn network(&self, program: &mut ProgramBuilder, is_backward: bool) {
        if !is_backward {
            self.compute(program, &self.work.router, is_backward);
        }
        self.enter(program);
        self.exchange_tokens(program);
        self.compute(program, &self.work.network, is_backward);
        self.exchange_tokens(program);
        self.leave(program);
        if is_backward {
            self.compute(program, &self.work.router, is_backward);
        }
    }

    fn compute(&self, program: &mut ProgramBuilder, operations: &[Operation], is_backward: bool) {
        let amounts = operations.iter().map(|operation| self.transformer.amount(*operation, is_backward));
        program.compute(amounts.sum());
    }

    /// Writes what makes activations whole before matrices.
    fn enter(&self, program: &mut ProgramBuilder) {
        if self.transformer.parameters.sequence_parallel {
            let part = self.transformer.activation_bytes();
            self.all_gather(program, GroupKind::Tensor, part, None);
        }
    }

    /// Writes what sums up the parts of activations after matrices.
    fn leave(&self, program: &mut ProgramBuilder) {
        let bytes = self.transformer.activation_bytes();
        if self.transformer.parameters.sequence_parallel {
            self.reduce_scatter(program, GroupKind::Tensor, bytes, None);
        } else {
            self.allreduce(program, GroupKind::Tensor, bytes);
        }
    }

    /// Writes an exchange of tokens between the ranks of an expert group.
    fn exchange_tokens(&self, program: &mut ProgramBuilder) {
        let (count, datatype) = (self.transformer.expert_bytes(), Datatype::BYTE);
        let (send_count, recv_count, send_type, recv_type) = (count, count, datatype, datatype);
        let operation = Collective::Alltoall { send_count, recv_count, send_type, recv_type };
        self.collective(program, GroupKind::Expert, operation, None);
    }

    /// Returns the number of parameters of a layer on this rank that a group replicates.
    fn layer_parameters(&self, kind: GroupKind) -> u64 {
        match kind {
            GroupKind::ExpertGradient => self.transformer.expert_layer_parameters(),
            _ => self.transformer.dense_layer_parameters(),
        }
    }

    /// Writes the all-gather of parameters.
    fn gather(
        &self,
        program: &mut ProgramBuilder,
        kind: GroupKind,
        count: u64,
        request: Option<RequestName>,
    ) {
        self.all_gather(program, kind, self.transformer.parameters.element_bytes * count, request);
    }

    /// Writes the reduction of the gradients of parameters.
    fn reduce(
        &self,
        program: &mut ProgramBuilder,
        kind: GroupKind,
        count: u64,
        request: Option<RequestName>,
    ) {
        let bytes = self.transformer.parameters.gradient_bytes * count;
        if self.transformer.parameters.zero > 0 {
            self.reduce_scatter(program, kind, bytes, request);
        } else if bytes > 0 {
            let operation = Collective::Allreduce { count: bytes, flops: 0.0, datatype: Datatype::BYTE };
            self.collective(program, kind, operation, request);
        }
    }

    fn allreduce(&self, program: &mut ProgramBuilder, kind: GroupKind, bytes: u64) {
        let operation = Collective::Allreduce { count: bytes, flops: 0.0, datatype: Datatype::BYTE };
        self.collective(program, kind, operation, None);
    }

    /// Writes an all-gather of `bytes`, of which each rank has a part.
    fn all_gather(
        &self,
        program: &mut ProgramBuilder,
        kind: GroupKind,
        bytes: u64,
        request: Option<RequestName>,
    ) {
        let count = bytes.div_ceil(self.transformer.mesh.len(kind).into());
        let (send_count, recv_count, datatype) = (count, count, Datatype::BYTE);
        let operation =
            Collective::Allgather { send_count, recv_count, send_type: datatype, recv_type: datatype };
        if bytes > 0 {
            self.collective(program, kind, operation, request);
        }
    }

    /// Writes a reduce-scatter of `bytes`, of which each rank gets a part.
    fn reduce_scatter(
        &self,
        program: &mut ProgramBuilder,
        kind: GroupKind,
        bytes: u64,
        request: Option<RequestName>,
    ) {
        let ranks = self.transformer.mesh.len(kind);
        let recv_counts = vec![bytes.div_ceil(ranks.into()); ranks as usize].into();
        let operation = Collective::ReduceScatter { recv_counts, flops: 0.0, datatype: Datatype::BYTE };
        if bytes > 0 {
            self.collective(program, kind, operation, request);
        }
    }

    /// Writes an operation of a group, if the rank takes part in it.
    fn collective(
        &self,
        program: &mut ProgramBuilder,
        kind: GroupKind,
        operation: Collective,
        request: Option<RequestName>,
    ) {
        if self.is_member(kind) {
            let communicator = self.communicators[kind as usize].0;
            call(program, CallOp::Collective { communicator, operation, request });
        }
    }

    /// Writes a wait for the operations of those groups in which the rank takes part, if they overlap.
    fn wait_for(&self, program: &mut ProgramBuilder, requests: &[(GroupKind, RequestName)]) {
        let member = |(kind, request): &(GroupKind, RequestName)| self.is_member(*kind).then_some(*request);
        let requests: Vec<_> = requests.iter().filter_map(member).collect();
        if self.transformer.parameters.overlap && !requests.is_empty() {
            wait(program, &requests);
        }
    }
}

fn tag(kind: u32) -> Tag {
    Tag::new(kind as i32)
}

fn call(program: &mut ProgramBuilder, call: CallOp) {
    program.op(Op::Call(call));
}

fn wait(program: &mut ProgramBuilder, requests: &[RequestName]) {
    call(program, CallOp::Waitall { requests: requests.to_vec() });
}
