//! A member's side of a run on a cluster.

use super::blocks::RegionBlocks;
use super::meeting::Standing;
use super::post::{Letter, Letters, PostOffice};
use super::{RegionIndex, Seat};
use crate::cluster::{Cluster, ClusterError, Pieces, Terms};
use crate::engine::frame::Tally;
use crate::{Progress, Rank, SimTime, Wire};

/// What the first worker of a member uses to speak for all of them with the other members.
///
/// Whenever the workers of a member have met, it sends each other member a message: how its regions stand, and their letters
/// to regions there; and waits for those of the others. So all members go through the same phases, and each learns
/// what all together have found.
pub(super) struct Gateway<'a, T, M> {
    cluster: &'a mut Cluster,
    blocks: &'a RegionBlocks,
    seats: &'a [Seat],
    progress: &'a Progress,
    codec: Codec<T, M>,
    /// What goes to each member next.
    parcels: Box<[Vec<u8>]>,
    pieces: Pieces,
    letters: Letters<T, M>,
    error: Option<ClusterError>,
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

    /// Sends the parcels, and waits for one of each other member.
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
        let steps = self.progress.steps();
        for member in self.others() {
            let parcel = &mut self.parcels[member];
            here.write(parcel);
            steps.write(parcel);
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
        self.swap()?;
        let (mut all, mut steps_elsewhere) = (here, 0);
        for member in self.others() {
            let parcel = self.pieces.take(member);
            let Some((standing, steps)) = self.unpack(office, phase, member, &parcel) else {
                return Err(self.refuse());
            };
            all.merge(standing);
            steps_elsewhere += steps;
        }
        if self.cluster.member() == 0 {
            self.progress.publish_elsewhere(steps_elsewhere, SimTime::ZERO);
        }
        Ok(all)
    }

    /// Delivers the letters of another member, and returns how its regions stand, and their steps; `None` where it sends
    /// something else.
    fn unpack(
        &mut self,
        office: &PostOffice<T, M>,
        phase: u64,
        member: usize,
        mut bytes: &[u8],
    ) -> Option<(Standing, u64)> {
        let bytes = &mut bytes;
        let (standing, steps) = (Standing::read(bytes)?, u64::read(bytes)?);
        let (here, there) = (self.blocks.regions(self.cluster.member()), self.blocks.regions(member));
        let mut receiver = None;
        while !bytes.is_empty() {
            let (from, to): (RegionIndex, RegionIndex) = Wire::read(bytes)?;
            let letter = (self.codec.read)(bytes)?;
            let is_here = match letter {
                Letter::Token(rank, _) => self.seats.get(rank.index()).is_some_and(|seat| seat.home == to),
                Letter::Mail(_) => true,
            };
            if !is_here || !here.contains(&to) || !there.contains(&from) {
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
        Some((standing, steps))
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
