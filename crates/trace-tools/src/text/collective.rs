//! Parsing of collective operations.

use pdes_core::Rank;
use trace_mmap::table::{CollectiveKind, ReadCollective};
use trace_mmap::{Action, Collective, CommIdx, Datatype};

use crate::text::reader::{Reader, rank_below};
use crate::text::{Field, TextError};

const COUNT: &str = "count";
const SEND_COUNT: &str = "send count";
const RECV_COUNT: &str = "receive count";

impl Reader<'_, '_, '_> {
    /// Reads a collective, or finds it by its text among those read before: programs repeat their collectives, so that parsing each
    /// text once (per default datatype) pays. Also returns whether the line has extra fields.
    pub(super) fn collective(
        &mut self,
        kind: CollectiveKind,
        text: &[u8],
    ) -> Result<(Action, bool), TextError> {
        if let Some((id, has_extra)) = self.state.collective(text) {
            return Ok((Action::Collective(id), has_extra));
        }
        let collective = self.new_collective(kind)?;
        let has_extra = self.has_more();
        let id = self.builder.add_collective(collective, CommIdx::WORLD);
        self.state.add_collective(text, id, has_extra);
        Ok((Action::Collective(id), has_extra))
    }

    pub(super) fn new_collective(&mut self, kind: CollectiveKind) -> Result<Collective, TextError> {
        let (sent, received) = Default::default();
        let (has_types, has_displacements) = (true, false);
        Collective::read(
            kind,
            &mut CollectiveReader { kind, line: self, sent, received, has_types, has_displacements },
        )
    }

    pub(super) fn types(
        &mut self,
        send_counts: &[u64],
        recv_counts: &[u64],
    ) -> Result<(Datatype, Datatype), TextError> {
        let send_type = self.type_of(send_counts, SEND_COUNT, "send type")?;
        Ok((send_type, self.type_of(recv_counts, RECV_COUNT, "receive type")?))
    }

    /// Takes the datatype of these counts.
    fn type_of(
        &mut self,
        counts: &[u64],
        counted: &'static str,
        name: &'static str,
    ) -> Result<Datatype, TextError> {
        let datatype = self.datatype(name)?;
        self.check_sizes(counts, counted, datatype)?;
        Ok(datatype)
    }

    fn check_sizes(
        &self,
        counts: &[u64],
        counted: &'static str,
        datatype: Datatype,
    ) -> Result<(), TextError> {
        for (rank, count) in counts.iter().enumerate() {
            let field =
                if counts.len() == 1 { Field::new(counted) } else { Field::element(counted, rank as u32) };
            self.bytes(field, *count, datatype)?;
        }
        Ok(())
    }
}

/// Parser of the arguments of a collective operation, with a method for each argument.
struct CollectiveReader<'l, 'a, 'r, 's> {
    kind: CollectiveKind,
    line: &'l mut Reader<'a, 'r, 's>,
    /// The counts read so far, of which the datatypes decide whether they are too large.
    sent: Box<[u64]>,
    received: Box<[u64]>,
    has_types: bool,
    has_displacements: bool,
}

impl ReadCollective for CollectiveReader<'_, '_, '_, '_> {
    type Error = TextError;

    fn count(&mut self) -> Result<u64, TextError> {
        let count = self.line.count(Field::new(COUNT))?;
        self.sent = [count].into();
        Ok(count)
    }

    fn send_count(&mut self) -> Result<u64, TextError> {
        let count = self.line.count(Field::new(SEND_COUNT))?;
        self.sent = [count].into();
        Ok(count)
    }

    fn recv_count(&mut self) -> Result<u64, TextError> {
        let count = self.line.count(Field::new(RECV_COUNT))?;
        self.received = [count].into();
        Ok(count)
    }

    fn send_counts(&mut self) -> Result<Box<[u64]>, TextError> {
        if self.kind == CollectiveKind::Alltoallv {
            self.line.count(Field::new("size of the send buffer"))?;
        }
        self.sent = self.counts(SEND_COUNT)?;
        Ok(self.sent.clone())
    }

    fn recv_counts(&mut self) -> Result<Box<[u64]>, TextError> {
        if self.kind == CollectiveKind::Alltoallv {
            self.line.count(Field::new("size of the receive buffer"))?;
        }
        self.received = self.counts(RECV_COUNT)?;
        Ok(self.received.clone())
    }

    fn flops(&mut self) -> Result<f64, TextError> {
        self.line.amount("amount of computation")
    }

    /// Takes the root, by default rank 0.
    fn root(&mut self) -> Result<Rank, TextError> {
        if !self.line.has_more() {
            return Ok(Rank::new(0));
        }
        let field = Field::new("root");
        let found = self.line.integer_between(field, i64::MIN, i64::MAX, "a rank")?;
        rank_below(self.line.size, field, found)
    }

    fn datatype(&mut self) -> Result<Datatype, TextError> {
        let counted = if self.kind == CollectiveKind::ReduceScatter { RECV_COUNT } else { COUNT };
        self.type_of_counts(counted, "datatype")
    }

    fn send_type(&mut self) -> Result<Datatype, TextError> {
        if self.kind == CollectiveKind::Allgatherv {
            self.find_displacements();
        }
        self.type_of_counts(SEND_COUNT, "send type")
    }

    fn recv_type(&mut self) -> Result<Datatype, TextError> {
        let datatype = self.type_of_counts(RECV_COUNT, "receive type")?;
        if self.has_displacements {
            self.counts("displacement")?;
        }
        Ok(datatype)
    }
}

impl CollectiveReader<'_, '_, '_, '_> {
    /// Takes one count per rank of the communicator.
    fn counts(&mut self, name: &'static str) -> Result<Box<[u64]>, TextError> {
        (0..self.line.size).map(|rank| self.line.count(Field::element(name, rank))).collect()
    }

    /// After the counts of an `allgatherv` there are optionally types, or displacements, or both. The number of remaining fields
    /// distinguishes them: up to two are types, up to one per rank displacements, more are both; but a single one on one rank is a
    /// displacement. Displacements are ignored.
    fn find_displacements(&mut self) {
        let ranks = self.received.len();
        let left = self.line.fields.take(ranks + 2).count();
        self.has_displacements = left > 2 || (ranks == 1 && left == 1);
        self.has_types = left > ranks || !self.has_displacements;
    }

    fn type_of_counts(&mut self, counted: &'static str, name: &'static str) -> Result<Datatype, TextError> {
        let counts = if counted == RECV_COUNT { &self.received } else { &self.sent };
        if self.has_types {
            return self.line.type_of(counts, counted, name);
        }
        let datatype = self.line.default_type(name)?;
        self.line.check_sizes(counts, counted, datatype)?;
        Ok(datatype)
    }
}
