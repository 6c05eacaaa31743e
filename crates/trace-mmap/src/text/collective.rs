//! Parsing of collective operations.

use pdes_core::Rank;

use crate::action::Action;
use crate::collective::Collective;
use crate::communicator::CommIdx;
use crate::datatype::Datatype;
use crate::text::reader::Reader;
use crate::text::verb::Verb;
use crate::text::{Field, TextError};

const COUNT: &str = "count";
const SEND_COUNT: &str = "send count";
const RECV_COUNT: &str = "receive count";
const FLOPS: &str = "amount of computation";

/// The fields of `gather`, `scatter`, `allgather` and `alltoall`, except the root.
struct Exchange {
    send_count: u64,
    recv_count: u64,
    send_type: Datatype,
    recv_type: Datatype,
}

/// The fields of `allreduce`, `scan` and `exscan`.
struct Reduction {
    count: u64,
    flops: f64,
    datatype: Datatype,
}

impl Reader<'_, '_> {
    /// Reads a collective, or finds it by its text among those read before: programs repeat their collectives, so that parsing each
    /// text once (per default datatype) pays. Also returns whether the line has extra fields.
    pub(super) fn collective(&mut self, text: &[u8]) -> Result<(Action, bool), TextError> {
        if let Some((id, has_extra)) = self.builder.find_collective(text) {
            return Ok((Action::Collective(id), has_extra));
        }
        let collective = self.new_collective()?;
        let has_extra = self.has_more();
        let id = self.builder.insert_collective(text, collective, CommIdx::WORLD, has_extra);
        Ok((Action::Collective(id), has_extra))
    }

    pub(super) fn new_collective(&mut self) -> Result<Collective, TextError> {
        match self.verb.blocking().unwrap_or(self.verb) {
            Verb::Bcast => self.bcast(),
            Verb::Reduce => self.reduce(),
            Verb::Allreduce => {
                let Reduction { count, flops, datatype } = self.reduction()?;
                Ok(Collective::Allreduce { count, flops, datatype })
            }
            Verb::Scan => {
                let Reduction { count, flops, datatype } = self.reduction()?;
                Ok(Collective::Scan { count, flops, datatype })
            }
            Verb::Exscan => {
                let Reduction { count, flops, datatype } = self.reduction()?;
                Ok(Collective::Exscan { count, flops, datatype })
            }
            Verb::Gather => {
                let (root, Exchange { send_count, recv_count, send_type, recv_type }) = self.rooted()?;
                Ok(Collective::Gather { send_count, recv_count, root, send_type, recv_type })
            }
            Verb::Scatter => {
                let (root, Exchange { send_count, recv_count, send_type, recv_type }) = self.rooted()?;
                Ok(Collective::Scatter { send_count, recv_count, root, send_type, recv_type })
            }
            Verb::Allgather => {
                let Exchange { send_count, recv_count, send_type, recv_type } = self.unrooted()?;
                Ok(Collective::Allgather { send_count, recv_count, send_type, recv_type })
            }
            Verb::Alltoall => {
                let Exchange { send_count, recv_count, send_type, recv_type } = self.unrooted()?;
                Ok(Collective::Alltoall { send_count, recv_count, send_type, recv_type })
            }
            Verb::Alltoallv => self.alltoallv(),
            Verb::Gatherv => self.gatherv(),
            Verb::Scatterv => self.scatterv(),
            Verb::Allgatherv => self.allgatherv(),
            Verb::ReduceScatter => self.reduce_scatter(),
            _ => Ok(Collective::Barrier),
        }
    }

    fn bcast(&mut self) -> Result<Collective, TextError> {
        let count = self.count(Field::new(COUNT))?;
        let root = self.root()?;
        let datatype = self.type_of(&[count], COUNT, "datatype")?;
        Ok(Collective::Bcast { count, root, datatype })
    }

    fn reduce(&mut self) -> Result<Collective, TextError> {
        let count = self.count(Field::new(COUNT))?;
        let flops = self.amount(FLOPS)?;
        let root = self.root()?;
        let datatype = self.type_of(&[count], COUNT, "datatype")?;
        Ok(Collective::Reduce { count, flops, root, datatype })
    }

    fn reduction(&mut self) -> Result<Reduction, TextError> {
        let count = self.count(Field::new(COUNT))?;
        let flops = self.amount(FLOPS)?;
        let datatype = self.type_of(&[count], COUNT, "datatype")?;
        Ok(Reduction { count, flops, datatype })
    }

    fn unrooted(&mut self) -> Result<Exchange, TextError> {
        let send_count = self.count(Field::new(SEND_COUNT))?;
        let recv_count = self.count(Field::new(RECV_COUNT))?;
        let (send_type, recv_type) = self.types(&[send_count], &[recv_count])?;
        Ok(Exchange { send_count, recv_count, send_type, recv_type })
    }

    fn rooted(&mut self) -> Result<(Rank, Exchange), TextError> {
        let send_count = self.count(Field::new(SEND_COUNT))?;
        let recv_count = self.count(Field::new(RECV_COUNT))?;
        let root = self.root()?;
        let (send_type, recv_type) = self.types(&[send_count], &[recv_count])?;
        Ok((root, Exchange { send_count, recv_count, send_type, recv_type }))
    }

    fn alltoallv(&mut self) -> Result<Collective, TextError> {
        self.count(Field::new("size of the send buffer"))?;
        let send_counts = self.counts(SEND_COUNT)?;
        self.count(Field::new("size of the receive buffer"))?;
        let recv_counts = self.counts(RECV_COUNT)?;
        let (send_type, recv_type) = self.types(&send_counts, &recv_counts)?;
        Ok(Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type })
    }

    fn gatherv(&mut self) -> Result<Collective, TextError> {
        let send_count = self.count(Field::new(SEND_COUNT))?;
        let recv_counts = self.counts(RECV_COUNT)?;
        let root = self.root()?;
        let (send_type, recv_type) = self.types(&[send_count], &recv_counts)?;
        Ok(Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type })
    }

    fn scatterv(&mut self) -> Result<Collective, TextError> {
        let send_counts = self.counts(SEND_COUNT)?;
        let recv_count = self.count(Field::new(RECV_COUNT))?;
        let root = self.root()?;
        let (send_type, recv_type) = self.types(&send_counts, &[recv_count])?;
        Ok(Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type })
    }

    /// Reads the send count and the receive counts, then optionally types, or displacements, or both. The number of remaining fields
    /// distinguishes them: up to two are types, up to one per rank displacements, more are both; but a single one on one rank is a
    /// displacement. Displacements are ignored.
    fn allgatherv(&mut self) -> Result<Collective, TextError> {
        let send_count = self.count(Field::new(SEND_COUNT))?;
        let recv_counts = self.counts(RECV_COUNT)?;
        let ranks = recv_counts.len();
        let left = self.fields.take(ranks + 2).count();
        let has_displacements = left > 2 || (ranks == 1 && left == 1);
        let (send_type, recv_type) = match left > ranks || !has_displacements {
            true => self.types(&[send_count], &recv_counts)?,
            false => self.default_types(&[send_count], &recv_counts)?,
        };
        if has_displacements {
            self.counts("displacement")?;
        }
        Ok(Collective::Allgatherv { send_count, recv_counts, send_type, recv_type })
    }

    fn reduce_scatter(&mut self) -> Result<Collective, TextError> {
        let recv_counts = self.counts(RECV_COUNT)?;
        let flops = self.amount(FLOPS)?;
        let datatype = self.type_of(&recv_counts, RECV_COUNT, "datatype")?;
        Ok(Collective::ReduceScatter { recv_counts, flops, datatype })
    }

    /// Takes one count per rank of the communicator.
    fn counts(&mut self, name: &'static str) -> Result<Box<[u64]>, TextError> {
        (0..self.size).map(|rank| self.count(Field::element(name, rank))).collect()
    }

    /// Takes the root, by default rank 0.
    fn root(&mut self) -> Result<Rank, TextError> {
        if !self.has_more() {
            return Ok(Rank::new(0));
        }
        let field = Field::new("root");
        let found = self.integer_between(field, i64::MIN, i64::MAX, "a rank")?;
        Self::rank_below(self.size, field, found)
    }

    pub(super) fn types(
        &mut self,
        send_counts: &[u64],
        recv_counts: &[u64],
    ) -> Result<(Datatype, Datatype), TextError> {
        let send_type = self.type_of(send_counts, SEND_COUNT, "send type")?;
        Ok((send_type, self.type_of(recv_counts, RECV_COUNT, "receive type")?))
    }

    fn default_types(
        &self,
        send_counts: &[u64],
        recv_counts: &[u64],
    ) -> Result<(Datatype, Datatype), TextError> {
        let send_type = self.default_type("send type")?;
        let recv_type = self.default_type("receive type")?;
        self.check_sizes(send_counts, SEND_COUNT, send_type)?;
        self.check_sizes(recv_counts, RECV_COUNT, recv_type)?;
        Ok((send_type, recv_type))
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
