//! A member's side of a run on a cluster.

use super::blocks::RegionBlocks;
use super::post::{Letter, Letters, PostOffice};
use super::standing::Standing;
use super::{RegionIndex, Seat};
use crate::cluster::{Cluster, ClusterError, Pieces, Terms};
use crate::engine::frame::Tally;
use crate::{Progress, Rank, SimTime, Wire};

/// What the first worker of a member uses to speak for all of them with the other members.
///
/// Whenever the workers of a member have met, all members meet, by dissemination (Hensgen, Finkel and Manber, "Two algorithms for
/// barrier synchronization", 1988): in steps of 1, 2, 4, .. as far as there are members, each sends a message to the one that
/// is so many after it, and waits for that of the one that is so many before it. A message has what its sender knows of how
/// regions stand, and the letters whose way that step is a part of; they are handed on until they are there. So all members go
/// through the same phases, and each learns what all together have found, for as many messages as the number of members has digits
/// in base 2.
pub(super) struct Gateway<'a, T, M> {
    cluster: &'a mut Cluster,
    blocks: &'a RegionBlocks,
    seats: &'a [Seat],
    progress: &'a Progress,
    codec: Codec<T, M>,
    /// What is on its way to each member.
    parcels: Box<[Vec<u8>]>,
    pieces: Pieces,
    letters: Letters<T, M>,
    error: Option<ClusterError>,
}

/// How the regions of several members stand, and the steps of their processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    standing: Standing,
    steps: u64,
}

/// What a member knows of those before it, while all members meet.
///
/// Each member is counted once, whatever their number: `recent` is doubled in each step, `rest` gains those that a digit of the number
/// stands for.
#[derive(Clone, Copy, Debug)]
struct Knowledge {
    /// Of as many members as the step to come is long, up to this one.
    recent: Report,
    /// Of as many as the digits below that step make up; of none at first.
    rest: Report,
}

/// How a run ended in the regions of a member, or in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RegionalTally {
    pub(super) tally: Tally,
    /// The earliest conditional event that a process has met.
    pub(super) conditional: Option<(SimTime, Rank)>,
}

/// How letters are written and read: functions, so that a run on one member does not ask for letters that can be written.
pub(super) struct Codec<T, M> {
    /// The size of the longest letter \[B\].
    letter_bytes: u32,
    write: fn(&Letter<T, M>, &mut Vec<u8>),
    read: fn(&mut &[u8]) -> Option<Letter<T, M>>,
}

const TOKEN: u8 = 0;
const MAIL: u8 = 1;

impl<T: Wire, M: Wire> Codec<T, M> {
    pub(super) fn new() -> Self {
        let size = <(Rank, T)>::SIZE.max(M::SIZE);
        Self {
            letter_bytes: size as u32,
            write: |letter, bytes| match letter {
                Letter::Token(to, token) => {
                    (TOKEN, *to).write(bytes);
                    token.write(bytes);
                }
                Letter::Mail(mail) => {
                    MAIL.write(bytes);
                    mail.write(bytes);
                }
            },
            read: |bytes| match u8::read(bytes)? {
                TOKEN => Some(Letter::Token(Wire::read(bytes)?, Wire::read(bytes)?)),
                MAIL => Some(Letter::Mail(Wire::read(bytes)?)),
                _ => None,
            },
        }
    }
}

impl<'a, T, M> Gateway<'a, T, M> {
    /// Begins a run; all members have to be there, and to run the same.
    pub(super) fn new(
        cluster: &'a mut Cluster,
        blocks: &'a RegionBlocks,
        seats: &'a [Seat],
        progress: &'a Progress,
        codec: Codec<T, M>,
        workers: usize,
    ) -> Result<Self, ClusterError> {
        let ours =
            Terms { ranks: seats.len() as u32, workers: workers as u32, token_bytes: codec.letter_bytes };
        cluster.begin();
        let members = cluster.members();
        let parcels = (0..members).map(|_| Vec::new()).collect();
        let (pieces, letters) = (Pieces::new(members), Vec::new());
        let mut gateway =
            Self { cluster, blocks, seats, progress, codec, parcels, pieces, letters, error: None };
        for parcel in &mut gateway.parcels {
            (ours.ranks, ours.workers, ours.token_bytes).write(parcel);
        }
        gateway.swap()?;
        for member in gateway.others() {
            let terms = Wire::read(&mut gateway.pieces.take(member).as_slice());
            let Some((ranks, workers, token_bytes)) = terms else { return Err(gateway.refuse()) };
            let theirs = Terms { ranks, workers, token_bytes };
            if theirs != ours {
                gateway.cluster.fail(None);
                return Err(ClusterError::Mismatch { member, theirs, ours });
            }
        }
        Ok(gateway)
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<T, M> {
        let me = self.cluster.member();
        (0..self.cluster.members()).filter(move |&member| member != me)
    }

    /// Sends each other member its parcel, and waits for one of each.
    fn swap(&mut self) -> Result<(), ClusterError> {
        for member in self.others() {
            self.cluster.post(member, &self.parcels[member]);
            self.parcels[member].clear();
        }
        let members = self.cluster.members();
        self.cluster.await_all(&mut self.pieces, 0..members)
    }

    /// Ends the run for all members where this one cannot read what it gets.
    fn refuse(&mut self) -> ClusterError {
        self.cluster.fail(None);
        ClusterError::Garbled { receiver: self.cluster.member() }
    }

    /// Tells the other members how the regions of this one stand, and brings them the letters that their regions are to read
    /// in a phase; returns how the regions of all stand, `None` where a member has left.
    pub(super) fn meet(&mut self, office: &PostOffice<T, M>, phase: u64, here: Standing) -> Option<Standing> {
        self.try_meet(office, phase, here).map_err(|error| self.error = Some(error)).ok()
    }

    fn try_meet(
        &mut self,
        office: &PostOffice<T, M>,
        phase: u64,
        here: Standing,
    ) -> Result<Standing, ClusterError> {
        for member in self.others() {
            let parcel = &mut self.parcels[member];
            for to in self.blocks.regions(member) {
                if office.has_letters(phase, to) {
                    office.take(phase, to, &mut self.letters);
                    for (from, letter) in self.letters.drain(..) {
                        (from, to).write(parcel);
                        (self.codec.write)(&letter, parcel);
                    }
                }
            }
        }
        let (me, members) = (self.cluster.member(), self.cluster.members());
        let own = Report { standing: here, steps: self.progress.steps() };
        let mut known = Knowledge::new(own);
        let strides = std::iter::successors(Some(1_usize), |stride| Some(2 * stride));
        for stride in strides.take_while(|&stride| stride < members) {
            let (next, before) = ((me + stride) % members, (me + members - stride) % members);
            let message = self.pack(&known, stride);
            self.cluster.post(next, &message);
            self.cluster.await_all(&mut self.pieces, before..before + 1)?;
            let message = self.pieces.take(before);
            let Some(theirs) = self.unpack(office, phase, &message) else { return Err(self.refuse()) };
            known.learn(theirs, stride, members);
        }
        let all = known.of_all(members);
        if me == 0 {
            self.progress.publish_elsewhere(all.steps - own.steps, SimTime::ZERO);
        }
        Ok(all.standing)
    }

    /// Writes what goes to the member that is a stride after this one: what is known, and the parcels whose ways have such a part.
    fn pack(&mut self, known: &Knowledge, stride: usize) -> Vec<u8> {
        let (me, members) = (self.cluster.member(), self.cluster.members());
        let mut message = Vec::new();
        known.write(&mut message);
        for distance in (1..members).filter(|distance| distance & stride != 0) {
            let to = (me + distance) % members;
            let parcel = &mut self.parcels[to];
            if !parcel.is_empty() {
                (to as u32, parcel.len() as u32).write(&mut message);
                message.append(parcel);
            }
        }
        message
    }

    /// Takes in what another member knows, delivers the letters that it brings, and keeps those to be handed on; `None` where it
    /// sends something else.
    fn unpack(&mut self, office: &PostOffice<T, M>, phase: u64, mut bytes: &[u8]) -> Option<Knowledge> {
        let bytes = &mut bytes;
        let known = Knowledge::read(bytes)?;
        while !bytes.is_empty() {
            let (to, length): (u32, u32) = Wire::read(bytes)?;
            let (parcel, rest) = bytes.split_at_checked(length as usize)?;
            *bytes = rest;
            if to as usize == self.cluster.member() {
                self.deliver(office, phase, parcel)?;
            } else {
                self.parcels.get_mut(to as usize)?.extend_from_slice(parcel);
            }
        }
        Some(known)
    }

    /// Delivers the letters of a parcel; `None` where it has something else.
    fn deliver(&mut self, office: &PostOffice<T, M>, phase: u64, mut bytes: &[u8]) -> Option<()> {
        let bytes = &mut bytes;
        let here = self.blocks.regions(self.cluster.member());
        let is_elsewhere =
            |region: RegionIndex| !here.contains(&region) && (region as usize) < self.blocks.count();
        let mut receiver = None;
        while !bytes.is_empty() {
            let (from, to): (RegionIndex, RegionIndex) = Wire::read(bytes)?;
            let letter = (self.codec.read)(bytes)?;
            let is_here = match letter {
                Letter::Token(rank, _) => self.seats.get(rank.index()).is_some_and(|seat| seat.home == to),
                Letter::Mail(_) => true,
            };
            if !is_here || !here.contains(&to) || !is_elsewhere(from) {
                return None;
            }
            // Those to one region come one after the other.
            if let Some(before) = receiver.replace(to).filter(|&before| before != to) {
                office.deliver(phase, before, &mut self.letters);
            }
            self.letters.push((from, letter));
        }
        if let Some(last) = receiver {
            office.deliver(phase, last, &mut self.letters);
        }
        Some(())
    }

    /// Returns why the run came to nothing, if it did.
    pub(super) fn take_error(&mut self) -> Option<ClusterError> {
        self.error.take()
    }

    /// Puts together how the run ended for all members.
    pub(super) fn finish(mut self, own: RegionalTally) -> Result<RegionalTally, ClusterError> {
        self.parcels.iter_mut().for_each(|parcel| own.write(parcel));
        self.swap()?;
        let mut all = own;
        for member in self.others() {
            let parcel = self.pieces.take(member);
            let rest = &mut parcel.as_slice();
            let Some(tally) = RegionalTally::read(rest).filter(|_| rest.is_empty()) else {
                return Err(self.refuse());
            };
            all.merge(tally);
        }
        self.cluster.end()?;
        Ok(all)
    }
}

impl Standing {
    fn write(&self, bytes: &mut Vec<u8>) {
        let Self { letters, event, boundary, failure, conditional } = *self;
        (letters, (event, boundary), (failure, conditional)).write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (letters, (event, boundary), (failure, conditional)) = Wire::read(bytes)?;
        Some(Self { letters, event, boundary, failure, conditional })
    }
}

impl Report {
    const OF_NOBODY: Self = Self { standing: Standing::NOTHING, steps: 0 };

    fn with(mut self, other: Self) -> Self {
        self.standing.merge(other.standing);
        Self { steps: self.steps + other.steps, ..self }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.standing.write(bytes);
        self.steps.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { standing: Standing::read(bytes)?, steps: Wire::read(bytes)? })
    }
}

impl Knowledge {
    fn new(own: Report) -> Self {
        Self { recent: own, rest: Report::OF_NOBODY }
    }

    /// Adds what the member knows that is a stride before this one.
    fn learn(&mut self, theirs: Self, stride: usize, members: usize) {
        if members & stride != 0 {
            self.rest = self.recent.with(theirs.rest);
        }
        self.recent = self.recent.with(theirs.recent);
    }

    /// Returns what is known of all members, after all steps.
    fn of_all(&self, members: usize) -> Report {
        if members.is_power_of_two() { self.recent } else { self.rest }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.recent.write(bytes);
        self.rest.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { recent: Report::read(bytes)?, rest: Report::read(bytes)? })
    }
}

impl RegionalTally {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.conditional.write(bytes);
        self.tally.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let conditional = Wire::read(bytes)?;
        Some(Self { tally: Tally::read(bytes)?, conditional })
    }

    fn merge(&mut self, other: Self) {
        self.conditional = self.conditional.into_iter().chain(other.conditional).min();
        self.tally.merge(other.tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_members_stand_comes_back() {
        let [event, boundary, failure, conditional] = [3, 4, 5, 6].map(SimTime::from_picos);
        let standing = Standing { letters: 2, event, boundary, failure, conditional };
        let mut bytes = Vec::new();
        standing.write(&mut bytes);
        assert_eq!(Standing::read(&mut bytes.as_slice()), Some(standing));
    }

    #[test]
    fn every_member_is_counted_once() {
        for members in 1..70_usize {
            let own = |member: usize| {
                let event = SimTime::from_picos(100 + member as u64);
                Report { standing: Standing { letters: 1, event, ..Standing::NOTHING }, steps: member as u64 }
            };
            let mut known: Vec<_> = (0..members).map(|member| Knowledge::new(own(member))).collect();
            let strides = (0..).map(|power| 1 << power).take_while(|&stride| stride < members);
            for stride in strides {
                let before = known.clone();
                for (member, known) in known.iter_mut().enumerate() {
                    known.learn(before[(member + members - stride) % members], stride, members);
                }
            }
            let event = SimTime::from_picos(100);
            let letters = members as u64;
            let standing = Standing { letters, event, ..Standing::NOTHING };
            let all = Report { standing, steps: letters * (letters - 1) / 2 };
            assert!(known.iter().all(|known| known.of_all(members) == all), "{members} members");
        }
    }

    #[test]
    fn tallies_add_up() {
        let at = SimTime::from_picos;
        let [one, other] = [(5, 2), (4, 7)].map(|(picos, rank)| RegionalTally {
            tally: Tally {
                fault: Some((at(picos), Rank::new(rank), 0)),
                steps: picos,
                waiting: vec![Rank::new(rank)],
            },
            conditional: (rank == 7).then_some((at(1), Rank::new(3))),
        });
        let mut bytes = Vec::new();
        other.write(&mut bytes);
        let mut all = one;
        all.merge(RegionalTally::read(&mut bytes.as_slice()).unwrap());
        let expected = RegionalTally {
            tally: Tally {
                fault: Some((at(4), Rank::new(7), 0)),
                steps: 9,
                waiting: vec![Rank::new(2), Rank::new(7)],
            },
            conditional: Some((at(1), Rank::new(3))),
        };
        assert_eq!(all, expected);
        assert_eq!(RegionalTally::read(&mut &bytes[1..]), None);
    }

    #[test]
    fn letters_come_back() {
        let codec = Codec::<u16, u64>::new();
        assert_eq!(codec.letter_bytes, 8);
        let mut bytes = Vec::new();
        (codec.write)(&Letter::Token(Rank::new(4), 5), &mut bytes);
        (codec.write)(&Letter::Mail(6), &mut bytes);
        let rest = &mut bytes.as_slice();
        assert!(matches!((codec.read)(rest), Some(Letter::Token(rank, 5)) if rank == Rank::new(4)));
        assert!(matches!((codec.read)(rest), Some(Letter::Mail(6))));
        assert!((codec.read)(&mut [2, 0, 0].as_slice()).is_none(), "neither token nor mail");
    }
}
