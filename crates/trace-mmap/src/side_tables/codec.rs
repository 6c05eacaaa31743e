//! Codec of side tables as 64-bit words.
//!
//! Five lists follow each other, each preceded by its length: collectives on the world, those on other communicators, combined
//! sends and receives, call sites, calls. A collective is a word with its number in the order of
//! [`Collective`]'s variants and then its fields in their order; a vector is preceded by its length, a datatype is its
//! identifier plus one, an amount its bits. A combined send and receive is four words, a channel being its index plus
//! one and 0 for none. A call site is its length in bytes and its text, eight bytes to a word.

mod call;

use pdes_core::{Bytes, Rank};

use crate::action::SendRecv;
use crate::channel::{InIdx, OutIdx};
use crate::collective::Collective;
use crate::datatype::Datatype;
use crate::record::{MAX_AMOUNT_BITS, MAX_BYTES};
use crate::side_tables::SideTables;

impl SideTables {
    /// Encodes the tables.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for collectives in [&self.collectives, &self.group_collectives] {
            words.push(collectives.len() as u64);
            collectives.iter().for_each(|collective| write_collective(&mut words, collective));
        }
        words.push(self.send_recvs.len() as u64);
        for both in &self.send_recvs {
            let to = both.to.map_or(0, |to| u64::from(to.get()) + 1);
            let from = both.from.map_or(0, |from| u64::from(from.get()) + 1);
            words.extend([to, both.send_bytes.get(), from, both.recv_bytes.get()]);
        }
        words.push(self.locations.len() as u64);
        for location in &self.locations {
            write_text(&mut words, location);
        }
        words.push(self.calls.len() as u64);
        self.calls.iter().for_each(|call| call::write_call(&mut words, call));
        words
    }

    /// Decodes the tables of a rank among `ranks`; returns `None` if [`SideTables::to_words`] cannot have written the words.
    pub(crate) fn from_words(words: &[u64], ranks: u32) -> Option<Self> {
        let mut reader = WordReader { words, ranks };
        let collectives = reader.list(WordReader::world_collective)?;
        let group_collectives = reader.list(WordReader::collective)?;
        let send_recvs = reader.list(WordReader::send_recv)?;
        let locations = reader.list(WordReader::text)?;
        let calls = reader.list(WordReader::call)?;
        let side = Self { collectives, group_collectives, send_recvs, locations, calls };
        reader.words.is_empty().then_some(side)
    }
}

fn type_word(datatype: Datatype) -> u64 {
    (datatype.id() + 1) as u64
}

fn write_vector(words: &mut Vec<u64>, counts: &[u64]) {
    words.push(counts.len() as u64);
    words.extend(counts);
}

/// Writes the length of a text [B] and the text.
fn write_text(words: &mut Vec<u64>, text: &str) {
    words.push(text.len() as u64);
    words.extend(text.as_bytes().chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    }));
}

fn write_collective(words: &mut Vec<u64>, collective: &Collective) {
    match collective {
        Collective::Barrier => words.push(0),
        Collective::Bcast { count, root, datatype } => {
            words.extend([1, *count, root.get().into(), type_word(*datatype)]);
        }
        Collective::Reduce { count, flops, root, datatype } => {
            words.extend([2, *count, flops.to_bits(), root.get().into(), type_word(*datatype)]);
        }
        Collective::Allreduce { count, flops, datatype } => {
            words.extend([3, *count, flops.to_bits(), type_word(*datatype)]);
        }
        Collective::Alltoall { send_count, recv_count, send_type, recv_type } => {
            words.extend([4, *send_count, *recv_count, type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Gather { send_count, recv_count, root, send_type, recv_type } => {
            words.extend([6, *send_count, *recv_count, root.get().into()]);
            words.extend([type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Scatter { send_count, recv_count, root, send_type, recv_type } => {
            words.extend([7, *send_count, *recv_count, root.get().into()]);
            words.extend([type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Allgather { send_count, recv_count, send_type, recv_type } => {
            words.extend([8, *send_count, *recv_count, type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Scan { count, flops, datatype } => {
            words.extend([13, *count, flops.to_bits(), type_word(*datatype)]);
        }
        Collective::Exscan { count, flops, datatype } => {
            words.extend([14, *count, flops.to_bits(), type_word(*datatype)]);
        }
        vector => write_vector_collective(words, vector),
    }
}

fn write_vector_collective(words: &mut Vec<u64>, collective: &Collective) {
    match collective {
        Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
            words.push(5);
            write_vector(words, send_counts);
            write_vector(words, recv_counts);
            words.extend([type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type } => {
            words.extend([9, *send_count]);
            write_vector(words, recv_counts);
            words.extend([root.get().into(), type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type } => {
            words.push(10);
            write_vector(words, send_counts);
            words.extend([*recv_count, root.get().into(), type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::Allgatherv { send_count, recv_counts, send_type, recv_type } => {
            words.extend([11, *send_count]);
            write_vector(words, recv_counts);
            words.extend([type_word(*send_type), type_word(*recv_type)]);
        }
        Collective::ReduceScatter { recv_counts, flops, datatype } => {
            words.push(12);
            write_vector(words, recv_counts);
            words.extend([flops.to_bits(), type_word(*datatype)]);
        }
        // The others have no vectors.
        _ => {}
    }
}

/// Reader of words, from the front.
struct WordReader<'a> {
    words: &'a [u64],
    ranks: u32,
}

impl WordReader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.word()?;
        // Each entry takes at least one word: this bounds the allocation for forged lengths.
        if len > self.words.len() as u64 {
            return None;
        }
        (0..len).map(|_| read(self)).collect()
    }

    fn bounded(&mut self, limit: u64) -> Option<u64> {
        self.word().filter(|word| *word <= limit)
    }

    fn count(&mut self) -> Option<u64> {
        self.bounded(MAX_BYTES)
    }

    fn counts(&mut self) -> Option<Box<[u64]>> {
        Some(self.list(Self::count)?.into())
    }

    fn flops(&mut self) -> Option<f64> {
        self.bounded(MAX_AMOUNT_BITS).map(f64::from_bits)
    }

    fn root(&mut self) -> Option<Rank> {
        let root = self.word().filter(|root| *root < u64::from(self.ranks))?;
        Some(Rank::new(root as u32))
    }

    fn datatype(&mut self) -> Option<Datatype> {
        let word = self.bounded(i32::MAX as u64)?;
        Datatype::from_id(word as i32 - 1)
    }

    /// Reads an operation on the world, whose vectors have one entry per rank.
    fn world_collective(&mut self) -> Option<Collective> {
        let ranks = self.ranks as usize;
        self.collective().filter(|operation| operation.vectors().iter().all(|vector| vector.len() == ranks))
    }

    fn collective(&mut self) -> Option<Collective> {
        let collective = self.unchecked_collective()?;
        has_legal_sizes(&collective).then_some(collective)
    }

    fn unchecked_collective(&mut self) -> Option<Collective> {
        Some(match self.word()? {
            0 => Collective::Barrier,
            1 => Collective::Bcast { count: self.count()?, root: self.root()?, datatype: self.datatype()? },
            2 => {
                let (count, flops) = (self.count()?, self.flops()?);
                Collective::Reduce { count, flops, root: self.root()?, datatype: self.datatype()? }
            }
            3 => Collective::Allreduce {
                count: self.count()?,
                flops: self.flops()?,
                datatype: self.datatype()?,
            },
            4 => {
                let (send_count, recv_count) = (self.count()?, self.count()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Alltoall { send_count, recv_count, send_type, recv_type }
            }
            8 => {
                let (send_count, recv_count) = (self.count()?, self.count()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Allgather { send_count, recv_count, send_type, recv_type }
            }
            6 => {
                let (send_count, recv_count, root) = (self.count()?, self.count()?, self.root()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Gather { send_count, recv_count, root, send_type, recv_type }
            }
            7 => {
                let (send_count, recv_count, root) = (self.count()?, self.count()?, self.root()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Scatter { send_count, recv_count, root, send_type, recv_type }
            }
            13 => Collective::Scan { count: self.count()?, flops: self.flops()?, datatype: self.datatype()? },
            14 => {
                Collective::Exscan { count: self.count()?, flops: self.flops()?, datatype: self.datatype()? }
            }
            number => self.vector_collective(number)?,
        })
    }

    fn vector_collective(&mut self, number: u64) -> Option<Collective> {
        Some(match number {
            5 => {
                let (send_counts, recv_counts) = (self.counts()?, self.counts()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }
            }
            9 => {
                let (send_count, recv_counts, root) = (self.count()?, self.counts()?, self.root()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type }
            }
            10 => {
                let (send_counts, recv_count, root) = (self.counts()?, self.count()?, self.root()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type }
            }
            11 => {
                let (send_count, recv_counts) = (self.count()?, self.counts()?);
                let (send_type, recv_type) = (self.datatype()?, self.datatype()?);
                Collective::Allgatherv { send_count, recv_counts, send_type, recv_type }
            }
            12 => {
                let (recv_counts, flops) = (self.counts()?, self.flops()?);
                Collective::ReduceScatter { recv_counts, flops, datatype: self.datatype()? }
            }
            _ => return None,
        })
    }

    fn send_recv(&mut self) -> Option<SendRecv> {
        let to = self.bounded(u64::from(u32::MAX))?;
        let send_bytes = Bytes::new(self.count()?);
        let from = self.bounded(u64::from(u32::MAX))?;
        let recv_bytes = Bytes::new(self.count()?);
        let to = to.checked_sub(1).map(|to| OutIdx::new(to as u32));
        let from = from.checked_sub(1).map(|from| InIdx::new(from as u32));
        Some(SendRecv { to, send_bytes, from, recv_bytes })
    }

    fn text(&mut self) -> Option<String> {
        let len = self.word()?;
        let words = usize::try_from(len.div_ceil(8)).ok()?;
        let text = self.words.get(..words)?;
        self.words = &self.words[words..];
        let mut bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(len as usize);
        String::from_utf8(bytes).ok()
    }
}

/// Returns whether no count amounts to more bytes than a message may have.
pub(crate) fn has_legal_sizes(collective: &Collective) -> bool {
    let fits = |count: &u64, datatype: &Datatype| {
        datatype.size().checked_mul(*count).is_some_and(|bytes| bytes.get() <= MAX_BYTES)
    };
    match collective {
        Collective::Barrier => true,
        Collective::Bcast { count, datatype, .. }
        | Collective::Reduce { count, datatype, .. }
        | Collective::Allreduce { count, datatype, .. }
        | Collective::Scan { count, datatype, .. }
        | Collective::Exscan { count, datatype, .. } => fits(count, datatype),
        Collective::Alltoall { send_count, recv_count, send_type, recv_type }
        | Collective::Allgather { send_count, recv_count, send_type, recv_type }
        | Collective::Gather { send_count, recv_count, send_type, recv_type, .. }
        | Collective::Scatter { send_count, recv_count, send_type, recv_type, .. } => {
            fits(send_count, send_type) && fits(recv_count, recv_type)
        }
        Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
            send_counts.iter().all(|count| fits(count, send_type))
                && recv_counts.iter().all(|count| fits(count, recv_type))
        }
        Collective::Gatherv { send_count, recv_counts, send_type, recv_type, .. }
        | Collective::Allgatherv { send_count, recv_counts, send_type, recv_type } => {
            fits(send_count, send_type) && recv_counts.iter().all(|count| fits(count, recv_type))
        }
        Collective::Scatterv { send_counts, recv_count, send_type, recv_type, .. } => {
            send_counts.iter().all(|count| fits(count, send_type)) && fits(recv_count, recv_type)
        }
        Collective::ReduceScatter { recv_counts, datatype, .. } => {
            recv_counts.iter().all(|count| fits(count, datatype))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::CollectiveId;
    use crate::call::{Call, CommunicatorCall, SendMode, Source};
    use crate::channel::{Slot, Tag};
    use crate::communicator::CommIdx;
    use crate::unmodelled::Unmodelled;

    fn every_collective() -> Vec<Collective> {
        let (root, datatype, flops) = (Rank::new(2), Datatype::DOUBLE, 1.5);
        let (send_type, recv_type) = (Datatype::BYTE, Datatype::DOUBLE);
        let (send_count, recv_count) = (7, 8);
        let (send_counts, recv_counts): (Box<[u64]>, Box<[u64]>) = ([1, 2, 3].into(), [4, 5, 6].into());
        vec![
            Collective::Barrier,
            Collective::Bcast { count: 1, root, datatype },
            Collective::Reduce { count: 1, flops, root, datatype },
            Collective::Allreduce { count: 1, flops, datatype },
            Collective::Alltoall { send_count, recv_count, send_type, recv_type },
            Collective::Alltoallv {
                send_counts: send_counts.clone(),
                recv_counts: recv_counts.clone(),
                send_type,
                recv_type,
            },
            Collective::Gather { send_count, recv_count, root, send_type, recv_type },
            Collective::Scatter { send_count, recv_count, root, send_type, recv_type },
            Collective::Allgather { send_count, recv_count, send_type, recv_type },
            Collective::Gatherv { send_count, recv_counts: recv_counts.clone(), root, send_type, recv_type },
            Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type },
            Collective::Allgatherv { send_count, recv_counts: recv_counts.clone(), send_type, recv_type },
            Collective::ReduceScatter { recv_counts, flops, datatype },
            Collective::Scan { count: 1, flops, datatype },
            Collective::Exscan { count: 1, flops, datatype },
        ]
    }

    fn every_call() -> Vec<Call> {
        let (mode, bytes, slot) = (SendMode::Ready, Bytes::new(9), Slot::new(2));
        let (to, communicator) = (Some(OutIdx::new(1)), CommIdx::new(1));
        let any = |tag, recorded| Source::Any { tag, communicator, recorded };
        let from = any(Some(Tag::new(i32::MAX)), Some(Rank::new(2)));
        let slots: Box<[Slot]> = [Slot::new(4), slot].into();
        let operation = CollectiveId::new(1 << 31);
        let neighbors: Box<[(u32, Bytes)]> = [(1, bytes), (1, Bytes::ZERO)].into();
        vec![
            Call::Send { mode, to, bytes },
            Call::Isend { mode: SendMode::Synchronous, to, bytes, slot },
            Call::Recv { from: any(None, None), bytes },
            Call::Irecv { from: Source::Rank(InIdx::new(0)), bytes, slot },
            Call::SendRecv { to: None, send_bytes: bytes, from, recv_bytes: Bytes::ZERO },
            Call::SendInit { mode: SendMode::Buffered, to, bytes, slot },
            Call::RecvInit { from: Source::ProcNull, bytes, slot },
            Call::Start { slots: slots.clone() },
            Call::Free { slot },
            Call::Waitall { slots: slots.clone() },
            Call::Waitany { slots: slots.clone(), done: Some(slot) },
            Call::Waitany { slots: slots.clone(), done: None },
            Call::Waitsome { slots: slots.clone(), done: [slot].into() },
            Call::Test { slot, done: true },
            Call::Testall { slots: slots.clone(), done: false },
            Call::Testany { slots: slots.clone(), done: None },
            Call::Testsome { slots: slots.clone(), done: [slot, Slot::new(4)].into() },
            Call::Probe { from },
            Call::Iprobe { from: Source::Rank(InIdx::new(3)), found: true },
            Call::Cancel { slot, from, cancelled: true },
            Call::Collective { operation, communicator, slot: Some(slot) },
            Call::Collective { operation: CollectiveId::new(0), communicator: CommIdx::WORLD, slot: None },
            Call::NeighborAlltoall { communicator, to: neighbors, from: [].into(), slot: None },
            Call::NewCommunicator { kind: CommunicatorCall::Create, parent: CommIdx::WORLD, new: None },
            Call::NewCommunicator {
                kind: CommunicatorCall::Split,
                parent: CommIdx::WORLD,
                new: Some(communicator),
            },
            Call::NewCommunicator {
                kind: CommunicatorCall::CreateGroup,
                parent: CommIdx::WORLD,
                new: Some(communicator),
            },
            Call::FreeCommunicator { communicator },
            Call::Unmodelled(Unmodelled::new("MPI_Put target=3 bytes=800 win=0").expect("a call")),
        ]
    }

    fn side() -> SideTables {
        let both = SendRecv {
            to: None,
            send_bytes: Bytes::ZERO,
            from: Some(InIdx::new(3)),
            recv_bytes: Bytes::new(1 << 48),
        };
        let locations = vec![String::new(), "solver.f90:12".to_owned(), "eight.c:".to_owned()];
        let group_collectives = vec![Collective::ReduceScatter {
            recv_counts: [1, 2].into(),
            flops: 0.0,
            datatype: Datatype::BYTE,
        }];
        let calls = every_call();
        SideTables {
            collectives: every_collective(),
            group_collectives,
            send_recvs: vec![both],
            locations,
            calls,
        }
    }

    #[test]
    fn side_tables_round_trip() {
        assert_eq!(SideTables::from_words(&side().to_words(), 3), Some(side()));
        assert_eq!(SideTables::from_words(&SideTables::default().to_words(), 3), Some(SideTables::default()));
        // A vector has an entry per rank.
        assert_eq!(SideTables::from_words(&side().to_words(), 4), None);
    }

    #[test]
    fn malformed_words_never_panic() {
        let words = side().to_words();
        for len in 0..words.len() {
            assert_eq!(SideTables::from_words(&words[..len], 3), None, "cut to {len}");
            for word in [0, 1, 61, u64::MAX, 1 << 49] {
                let mut changed = words.clone();
                changed[len] = word;
                let _ = SideTables::from_words(&changed, 3);
            }
        }
    }
}
