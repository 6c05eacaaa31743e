//! The gateway of a member to the other members of its cluster, in a run of the regional engine.

use super::blocks::RegionBlocks;
use super::post::{Letter, Letters, PostOffice};
use super::standing::Standing;
use super::{RegionIndex, Seat};
use crate::cluster::{Cluster, ClusterError, Pieces, Terms};
use crate::engine::frame::Tally;
use crate::{Progress, Rank, SimTime, Wire};

/// The gateway through which the first worker of a member communicates with the other members, on behalf of all workers.
///
/// After each barrier of a member's workers, all members perform a dissemination barrier (Hensgen, Finkel and Manber, "Two
/// algorithms for barrier synchronization", 1988) with reduction: for strides of 1, 2, 4, .. below the number of members, each
/// sends a message to the member one stride after it, and waits for that of the member one stride before it. A message holds
/// the sender's partial reduction, and the parcels whose distance to their receiver contains the stride as a binary digit;
/// they are forwarded until they arrive (the routing of Bruck's all-to-all algorithm). So all members go through the same
/// phases, and each gets the reduction over all, for log2(members), rounded up, messages.
pub(super) struct Gateway<'a, T, M> {
    cluster: &'a mut Cluster,
    blocks: &'a RegionBlocks,
    seats: &'a [Seat],
    progress: &'a Progress,
    codec: Codec<T, M>,
    /// Encoded messages for the regions of each member, own and forwarded ones.
    parcels: Box<[Vec<u8>]>,
    pieces: Pieces,
    letters: Letters<T, M>,
    error: Option<ClusterError>,
}

/// The contribution of the regions of several members, and the steps of their processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    standing: Standing,
    steps: u64,
}

/// The partial reduction of a member during the dissemination.
///
/// Each member is counted once, for any number of members: `recent` covers twice as many members after each stride, `rest`
/// those of the binary digits of the number of members.
#[derive(Clone, Copy, Debug)]
struct Knowledge {
    /// Reduction over the last `stride` members up to this one, for the next stride.
    recent: Report,
    /// Reduction over as many members as the binary digits of `members` below the next stride make up.
    rest: Report,
}

/// The summary of a run over the regions of one member, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RegionalTally {
    pub(super) tally: Tally,
    /// Earliest conditional event for which a process has paused.
    pub(super) conditional: Option<(SimTime, Rank)>,
}

/// The encoder and decoder of messages between regions. They are function pointers, so that a run on one member does not
/// require messages that implement [`Wire`].
pub(super) struct Codec<T, M> {
    /// Maximum size of a token with its receiver, or of a region's message \[B\].
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
    /// Begins a run, and checks that all members have the same parameters.
    ///
    /// # Errors
    /// If a member has left, or has other parameters.
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

    /// Fails the run for all members because this one received data that it cannot decode.
    fn refuse(&mut self) -> ClusterError {
        self.cluster.fail(None);
        ClusterError::Garbled { receiver: self.cluster.member() }
    }

    /// Reduces the contributions of all members, of which `here` is that of this one, and exchanges the messages that their
    /// regions read in a phase. Returns `None` if the run has failed; [`take_error`](Self::take_error) returns the cause.
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

    /// Encodes the message to the member one stride after this one: the partial reduction, and the parcels for members whose
    /// distance contains the stride.
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

    /// Decodes a message: delivers the parcel for this member, keeps those to be forwarded, and returns the sender's partial
    /// reduction; `None` if it cannot be decoded.
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

    /// Delivers the messages of a parcel; `None` if it cannot be decoded.
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
            // Messages to one region are adjacent, so that each inbox is locked once for each sender.
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

    /// Takes the error with which the run has failed, if it has.
    pub(super) fn take_error(&mut self) -> Option<ClusterError> {
        self.error.take()
    }

    /// Exchanges the summaries of all members; returns their sum.
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

    /// Combines this partial reduction with that of the member one stride before this one.
    fn learn(&mut self, theirs: Self, stride: usize, members: usize) {
        if members & stride != 0 {
            self.rest = self.recent.with(theirs.rest);
        }
        self.recent = self.recent.with(theirs.recent);
    }

    /// Returns the reduction over all members, after all strides.
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
