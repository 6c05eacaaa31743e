//! Codec of calls as 64-bit words: the number of the kind of call, then its fields.
//!
//! An optional index is stored plus one, with 0 for none; a list is preceded by its length; a source is 0 for nobody, 1 and a
//! channel, or 2, tag, communicator and recorded rank.

use pdes_core::{Bytes, Rank};

use crate::action::CollectiveId;
use crate::call::{Call, CommunicatorCall, SendMode, Source};
use crate::channel::{InIdx, OutIdx, Slot, Tag};
use crate::communicator::CommIdx;
use crate::side_tables::codec::{WordReader, write_text};
use crate::unmodelled::Unmodelled;

const SEND_MODES: [SendMode; 4] =
    [SendMode::Standard, SendMode::Synchronous, SendMode::Buffered, SendMode::Ready];
const COMMUNICATOR_CALLS: [CommunicatorCall; 4] =
    [CommunicatorCall::Split, CommunicatorCall::Dup, CommunicatorCall::Create, CommunicatorCall::CreateGroup];

/// Writes a call.
pub(super) fn write_call(words: &mut Vec<u64>, call: &Call) {
    match *call {
        Call::Send { mode, to, bytes } => words.extend([0, mode as u64, outgoing_word(to), bytes.get()]),
        Call::Isend { mode, to, bytes, slot } => {
            words.extend([1, mode as u64, outgoing_word(to), bytes.get(), slot_word(slot)]);
        }
        Call::Recv { from, bytes } => {
            words.extend([2, bytes.get()]);
            write_source(words, from);
        }
        Call::Irecv { from, bytes, slot } => {
            words.extend([3, bytes.get(), slot_word(slot)]);
            write_source(words, from);
        }
        Call::SendRecv { to, send_bytes, from, recv_bytes } => {
            words.extend([4, outgoing_word(to), send_bytes.get(), recv_bytes.get()]);
            write_source(words, from);
        }
        Call::SendInit { mode, to, bytes, slot } => {
            words.extend([5, mode as u64, outgoing_word(to), bytes.get(), slot_word(slot)]);
        }
        Call::RecvInit { from, bytes, slot } => {
            words.extend([6, bytes.get(), slot_word(slot)]);
            write_source(words, from);
        }
        Call::Probe { from } => {
            words.push(7);
            write_source(words, from);
        }
        Call::Iprobe { from, found } => {
            words.extend([8, found.into()]);
            write_source(words, from);
        }
        Call::Cancel { slot, from, cancelled } => {
            words.extend([9, slot_word(slot), cancelled.into()]);
            write_source(words, from);
        }
        Call::Collective { operation, communicator, slot } => {
            let slot = slot.map_or(0, |slot| slot_word(slot) + 1);
            words.extend([10, operation.get().into(), communicator.get().into(), slot]);
        }
        Call::NeighborAlltoall { communicator, ref to, ref from, slot } => {
            words.extend([11, communicator.get().into(), slot.map_or(0, |slot| slot_word(slot) + 1)]);
            write_neighbors(words, to);
            write_neighbors(words, from);
        }
        Call::NewCommunicator { kind, parent, new } => {
            let new = new.map_or(0, |new| u64::from(new.get()) + 1);
            words.extend([12, kind as u64, parent.get().into(), new]);
        }
        Call::FreeCommunicator { communicator } => words.extend([13, communicator.get().into()]),
        Call::Unmodelled(ref call) => {
            words.push(23);
            write_text(words, call.as_str());
        }
        ref completion => write_completion(words, completion),
    }
}

fn write_completion(words: &mut Vec<u64>, call: &Call) {
    match call {
        Call::Start { slots } => write_slots(words, 14, slots),
        Call::Free { slot } => words.extend([15, slot_word(*slot)]),
        Call::Waitall { slots } => write_slots(words, 16, slots),
        Call::Waitany { slots, done } => {
            write_slots(words, 17, slots);
            words.push(done.map_or(0, |slot| slot_word(slot) + 1));
        }
        Call::Waitsome { slots, done } => {
            write_slots(words, 18, slots);
            write_list(words, done);
        }
        Call::Test { slot, done } => words.extend([19, slot_word(*slot), u64::from(*done)]),
        Call::Testall { slots, done } => {
            write_slots(words, 20, slots);
            words.push(u64::from(*done));
        }
        Call::Testany { slots, done } => {
            write_slots(words, 21, slots);
            words.push(done.map_or(0, |slot| slot_word(slot) + 1));
        }
        Call::Testsome { slots, done } => {
            write_slots(words, 22, slots);
            write_list(words, done);
        }
        // `write` handles all other calls.
        _ => {}
    }
}

fn outgoing_word(to: Option<OutIdx>) -> u64 {
    to.map_or(0, |to| u64::from(to.get()) + 1)
}

fn slot_word(slot: Slot) -> u64 {
    slot.get().into()
}

fn write_source(words: &mut Vec<u64>, source: Source) {
    match source {
        Source::ProcNull => words.push(0),
        Source::Rank(from) => words.extend([1, from.get().into()]),
        Source::Any { tag, communicator, recorded } => {
            let tag = tag.map_or(0, |tag| tag.get() as u64 + 1);
            let recorded = recorded.map_or(0, |rank| u64::from(rank.get()) + 1);
            words.extend([2, tag, communicator.get().into(), recorded]);
        }
    }
}

fn write_slots(words: &mut Vec<u64>, number: u64, slots: &[Slot]) {
    words.push(number);
    write_list(words, slots);
}

fn write_list(words: &mut Vec<u64>, slots: &[Slot]) {
    words.push(slots.len() as u64);
    words.extend(slots.iter().copied().map(slot_word));
}

fn write_neighbors(words: &mut Vec<u64>, neighbors: &[(u32, Bytes)]) {
    words.push(neighbors.len() as u64);
    words.extend(neighbors.iter().flat_map(|(rank, bytes)| [u64::from(*rank), bytes.get()]));
}

impl WordReader<'_> {
    pub(super) fn call(&mut self) -> Option<Call> {
        Some(match self.word()? {
            0 => {
                Call::Send { mode: self.one_of(SEND_MODES)?, to: self.outgoing_word()?, bytes: self.bytes()? }
            }
            1 => Call::Isend {
                mode: self.one_of(SEND_MODES)?,
                to: self.outgoing_word()?,
                bytes: self.bytes()?,
                slot: self.slot()?,
            },
            2 => {
                let bytes = self.bytes()?;
                Call::Recv { from: self.source()?, bytes }
            }
            3 => {
                let (bytes, slot) = (self.bytes()?, self.slot()?);
                Call::Irecv { from: self.source()?, bytes, slot }
            }
            4 => {
                let (to, send_bytes, recv_bytes) = (self.outgoing_word()?, self.bytes()?, self.bytes()?);
                Call::SendRecv { to, send_bytes, from: self.source()?, recv_bytes }
            }
            5 => Call::SendInit {
                mode: self.one_of(SEND_MODES)?,
                to: self.outgoing_word()?,
                bytes: self.bytes()?,
                slot: self.slot()?,
            },
            6 => {
                let (bytes, slot) = (self.bytes()?, self.slot()?);
                Call::RecvInit { from: self.source()?, bytes, slot }
            }
            7 => Call::Probe { from: self.source()? },
            8 => {
                let found = self.flag()?;
                Call::Iprobe { from: self.source()?, found }
            }
            9 => {
                let (slot, cancelled) = (self.slot()?, self.flag()?);
                Call::Cancel { slot, from: self.source()?, cancelled }
            }
            10 => Call::Collective {
                operation: CollectiveId::new(self.bounded(u32::MAX.into())? as u32),
                communicator: self.communicator()?,
                slot: self.optional_slot()?,
            },
            11 => {
                let (communicator, slot) = (self.communicator()?, self.optional_slot()?);
                let (to, from) = (self.list(Self::neighbor)?.into(), self.list(Self::neighbor)?.into());
                Call::NeighborAlltoall { communicator, to, from, slot }
            }
            12 => Call::NewCommunicator {
                kind: self.one_of(COMMUNICATOR_CALLS)?,
                parent: self.communicator()?,
                new: self.index_or_none()?.map(CommIdx::new),
            },
            13 => Call::FreeCommunicator { communicator: self.communicator()? },
            23 => Call::Unmodelled(Unmodelled::new(&self.text()?).ok()?),
            number => self.completion(number)?,
        })
    }

    fn completion(&mut self, number: u64) -> Option<Call> {
        Some(match number {
            14 => Call::Start { slots: self.slots()? },
            15 => Call::Free { slot: self.slot()? },
            16 => Call::Waitall { slots: self.slots()? },
            17 => {
                let slots = self.slots()?;
                Call::Waitany { done: self.completed_one(&slots)?, slots }
            }
            18 => {
                let slots = self.slots()?;
                Call::Waitsome { done: self.completed_some(&slots)?, slots }
            }
            19 => Call::Test { slot: self.slot()?, done: self.flag()? },
            20 => Call::Testall { slots: self.slots()?, done: self.flag()? },
            21 => {
                let slots = self.slots()?;
                Call::Testany { done: self.completed_one(&slots)?, slots }
            }
            22 => {
                let slots = self.slots()?;
                Call::Testsome { done: self.completed_some(&slots)?, slots }
            }
            _ => return None,
        })
    }

    fn one_of<T: Copy, const N: usize>(&mut self, values: [T; N]) -> Option<T> {
        let word = self.word()?;
        values.get(usize::try_from(word).ok()?).copied()
    }

    fn flag(&mut self) -> Option<bool> {
        self.one_of([false, true])
    }

    fn bytes(&mut self) -> Option<Bytes> {
        self.count().map(Bytes::new)
    }

    fn index_or_none(&mut self) -> Option<Option<u32>> {
        let word = self.bounded(u32::MAX.into())?;
        Some(word.checked_sub(1).map(|index| index as u32))
    }

    fn outgoing_word(&mut self) -> Option<Option<OutIdx>> {
        Some(self.index_or_none()?.map(OutIdx::new))
    }

    fn communicator(&mut self) -> Option<CommIdx> {
        self.bounded(u64::from(u32::MAX) - 1).map(|index| CommIdx::new(index as u32))
    }

    fn slot(&mut self) -> Option<Slot> {
        self.bounded(u64::from(u32::MAX) - 1).map(|slot| Slot::new(slot as u32))
    }

    fn optional_slot(&mut self) -> Option<Option<Slot>> {
        Some(self.index_or_none()?.map(Slot::new))
    }

    /// Reads a list of distinct slots.
    fn slots(&mut self) -> Option<Box<[Slot]>> {
        let slots = self.list(Self::slot)?;
        let mut sorted = slots.clone();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1]).then(|| slots.into())
    }

    fn completed_one(&mut self, slots: &[Slot]) -> Option<Option<Slot>> {
        let done = self.optional_slot()?;
        done.is_none_or(|done| slots.contains(&done)).then_some(done)
    }

    fn completed_some(&mut self, slots: &[Slot]) -> Option<Box<[Slot]>> {
        let done = self.slots()?;
        let mut listed = slots.to_vec();
        listed.sort_unstable();
        done.iter().all(|done| listed.binary_search(done).is_ok()).then_some(done)
    }

    fn neighbor(&mut self) -> Option<(u32, Bytes)> {
        let rank = self.bounded(u64::from(self.ranks).checked_sub(1)?)?;
        Some((rank as u32, self.bytes()?))
    }

    fn source(&mut self) -> Option<Source> {
        Some(match self.word()? {
            0 => Source::ProcNull,
            1 => Source::Rank(InIdx::new(self.bounded(u64::from(u32::MAX) - 1)? as u32)),
            2 => {
                let tag = self.bounded(i32::MAX as u64 + 1)?;
                let tag = tag.checked_sub(1).map(|tag| Tag::new(tag as i32));
                let communicator = self.communicator()?;
                let recorded = self.bounded(self.ranks.into())?.checked_sub(1);
                Source::Any { tag, communicator, recorded: recorded.map(|rank| Rank::new(rank as u32)) }
            }
            _ => return None,
        })
    }
}
