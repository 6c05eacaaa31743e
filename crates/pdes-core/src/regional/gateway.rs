//! The gateway of a member to the other members of its cluster, in a run of the regional engine.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::blocks::RegionBlocks;
use super::contribution::Contribution;
use super::mailboxes::{Mailboxes, RegionMessage, RegionMessages};
use super::{ExchangeCounts, ProcessLocation, RegionIndex};
use crate::cluster::{Cluster, ClusterError, FragmentAssembler, RunParameters, encoding};
use crate::engine::frame::RunSummary;
use crate::{LpId, Progress, SimTime};

/// The gateway through which the first worker of a member communicates with the other members, on behalf of all workers.
///
/// After each barrier of a member's workers, all members that have regions perform a dissemination barrier (Hensgen, Finkel and
/// Manber, "Two algorithms for barrier synchronization", 1988) with reduction: for strides of 1, 2, 4, .. below their number, each
/// sends a message to the member one stride after it, and waits for that of the member one stride before it. A message holds
/// the sender's partial reduction, and the parcels whose distance to their receiver contains the stride as a binary digit;
/// they are forwarded until they arrive (the routing of Bruck's all-to-all algorithm). So all these members go through the same
/// phases, and each gets the reduction over all, for log2(members), rounded up, messages. Members without regions wait for
/// the end of the run.
pub(super) struct RegionGateway<'a, T, M> {
    cluster: &'a mut Cluster,
    blocks: &'a RegionBlocks,
    /// Members that have regions, and the position of this one among them.
    working: Vec<usize>,
    position: usize,
    locations: &'a [ProcessLocation],
    progress: &'a Progress,
    /// Encoded messages for the regions of each member, own and forwarded ones.
    parcels: Box<[Vec<u8>]>,
    assembler: FragmentAssembler,
    messages: RegionMessages<T, M>,
    error: Option<ClusterError>,
}

/// The contribution of the regions of several members, and the steps of their processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MemberContribution {
    contribution: Contribution,
    steps: u64,
}

/// The partial reduction of a member during the dissemination.
///
/// Each member is counted once, for any number of members: `recent` covers twice as many members after each stride, `rest`
/// those of the binary digits of the number of members.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PartialReduction {
    /// Reduction over the last `stride` members up to this one, for the next stride.
    recent: MemberContribution,
    /// Reduction over as many members as the binary digits of `members` below the next stride make up.
    remainder: MemberContribution,
}

/// The summary of a run over the regions of one member, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegionalSummary {
    pub(super) summary: RunSummary,
    /// Earliest conditional event for which a process has paused.
    pub(super) conditional: Option<(SimTime, LpId)>,
    /// Cut at which the run has stopped; none on members without regions.
    pub(super) cut: Option<SimTime>,
    /// Counts of the whole run, the same on all members that have regions; none elsewhere.
    pub(super) exchange_counts: ExchangeCounts,
}

impl<'a, T, M> RegionGateway<'a, T, M>
where
    T: Serialize + DeserializeOwned,
    M: Serialize + DeserializeOwned,
{
    /// Begins a run, and checks that all members have the same parameters.
    ///
    /// # Errors
    /// If a member has left, or has other parameters.
    pub(super) fn new(
        cluster: &'a mut Cluster,
        blocks: &'a RegionBlocks,
        locations: &'a [ProcessLocation],
        progress: &'a Progress,
        workers: usize,
    ) -> Result<Self, ClusterError> {
        let ours = RunParameters {
            lps: locations.len() as u32,
            workers: workers as u32,
            token_bytes: size_of::<T>().max(size_of::<M>()) as u32,
        };
        cluster.begin();
        let members = cluster.members();
        let parcels = (0..members).map(|_| Vec::new()).collect();
        let (pieces, messages) = (FragmentAssembler::new(members), Vec::new());
        let working: Vec<usize> = blocks.working_members().collect();
        let position = working.partition_point(|&member| member < cluster.member());
        let mut gateway = Self {
            cluster,
            blocks,
            working,
            position,
            locations,
            progress,
            parcels,
            assembler: pieces,
            messages,
            error: None,
        };
        for parcel in &mut gateway.parcels {
            encoding::append(&ours, parcel);
        }
        gateway.exchange_parcels()?;
        for member in gateway.others() {
            let Some(theirs) = encoding::take(&mut gateway.assembler.take(member).as_slice()) else {
                return Err(gateway.cluster.fail_undecodable());
            };
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
    fn exchange_parcels(&mut self) -> Result<(), ClusterError> {
        for member in self.others() {
            self.cluster.enqueue_fragmented(member, &self.parcels[member]);
            self.parcels[member].clear();
        }
        let members = self.cluster.members();
        self.cluster.receive_from_each(&mut self.assembler, 0..members)
    }

    /// Reduces the contributions of all members, of which `here` is that of this one, and exchanges the messages that their
    /// regions read in a phase. Returns `None` if the run has failed; [`take_error`](Self::take_error) returns the cause.
    pub(super) fn all_reduce(
        &mut self,
        mailboxes: &Mailboxes<T, M>,
        phase: u64,
        here: Contribution,
    ) -> Option<Contribution> {
        self.try_all_reduce(mailboxes, phase, here).map_err(|error| self.error = Some(error)).ok()
    }

    fn try_all_reduce(
        &mut self,
        mailboxes: &Mailboxes<T, M>,
        phase: u64,
        here: Contribution,
    ) -> Result<Contribution, ClusterError> {
        for &member in self.working.iter().filter(|&&member| member != self.cluster.member()) {
            let parcel = &mut self.parcels[member];
            for to in self.blocks.regions(member) {
                if mailboxes.has_messages(phase, to) {
                    mailboxes.take(phase, to, &mut self.messages);
                    for (from, message) in self.messages.drain(..) {
                        encoding::append(&(from, to, message), parcel);
                    }
                }
            }
        }
        let (me, members) = (self.position, self.working.len());
        let own = MemberContribution { contribution: here, steps: self.progress.steps() };
        let mut partial = PartialReduction::new(own);
        let strides = std::iter::successors(Some(1_usize), |stride| Some(2 * stride));
        for stride in strides.take_while(|&stride| stride < members) {
            let [next, before] =
                [me + stride, me + members - stride].map(|position| self.working[position % members]);
            let message = self.encode(&partial, stride);
            self.cluster.enqueue_fragmented(next, &message);
            self.cluster.receive_from_each(&mut self.assembler, before..before + 1)?;
            let message = self.assembler.take(before);
            let Some(theirs) = self.decode(mailboxes, phase, &message) else {
                return Err(self.cluster.fail_undecodable());
            };
            partial.combine(theirs, stride, members);
        }
        let all = partial.result(members);
        if self.cluster.member() == 0 {
            self.progress.publish_other_members(all.steps - own.steps, SimTime::ZERO);
        }
        Ok(all.contribution)
    }

    /// Encodes the message to the member one stride after this one: the partial reduction, and the parcels for members whose
    /// distance contains the stride.
    fn encode(&mut self, partial: &PartialReduction, stride: usize) -> Vec<u8> {
        let (me, members) = (self.position, self.working.len());
        let mut message = Vec::new();
        encoding::append(partial, &mut message);
        for distance in (1..members).filter(|distance| distance & stride != 0) {
            let to = self.working[(me + distance) % members];
            let parcel = &mut self.parcels[to];
            if !parcel.is_empty() {
                // The encoding of a slice follows the receiver.
                encoding::append(&(to, parcel.len()), &mut message);
                message.append(parcel);
            }
        }
        message
    }

    /// Decodes a message: delivers the parcel for this member, keeps those to be forwarded, and returns the sender's partial
    /// reduction; `None` if it cannot be decoded.
    fn decode(
        &mut self,
        mailboxes: &Mailboxes<T, M>,
        phase: u64,
        mut bytes: &[u8],
    ) -> Option<PartialReduction> {
        let bytes = &mut bytes;
        let partial = encoding::take(bytes)?;
        while !bytes.is_empty() {
            let (to, parcel): (usize, &[u8]) = encoding::take(bytes)?;
            if to == self.cluster.member() {
                self.deliver(mailboxes, phase, parcel)?;
            } else {
                self.parcels.get_mut(to)?.extend_from_slice(parcel);
            }
        }
        Some(partial)
    }

    /// Delivers the messages of a parcel; `None` if it cannot be decoded.
    fn deliver(&mut self, mailboxes: &Mailboxes<T, M>, phase: u64, mut bytes: &[u8]) -> Option<()> {
        let bytes = &mut bytes;
        let here = self.blocks.regions(self.cluster.member());
        let is_elsewhere =
            |region: RegionIndex| !here.contains(&region) && (region as usize) < self.blocks.count();
        let mut receiver = None;
        while !bytes.is_empty() {
            let (from, to, message) = encoding::take(bytes)?;
            let is_here = match message {
                RegionMessage::Token(lp, _) => {
                    self.locations.get(lp.index()).is_some_and(|location| location.region == to)
                }
                RegionMessage::Region(_) => true,
            };
            if !is_here || !here.contains(&to) || !is_elsewhere(from) {
                return None;
            }
            // Messages to one region are adjacent, so that each inbox is locked once for each sender.
            if let Some(before) = receiver.replace(to).filter(|&before| before != to) {
                mailboxes.deliver(phase, before, &mut self.messages);
            }
            self.messages.push((from, message));
        }
        if let Some(last) = receiver {
            mailboxes.deliver(phase, last, &mut self.messages);
        }
        Some(())
    }

    /// Takes the error with which the run has failed, if it has.
    pub(super) fn take_error(&mut self) -> Option<ClusterError> {
        self.error.take()
    }

    /// Exchanges the summaries of all members; returns their sum.
    pub(super) fn finish(mut self, own: RegionalSummary) -> Result<RegionalSummary, ClusterError> {
        self.parcels.iter_mut().for_each(|parcel| encoding::append(&own, parcel));
        self.exchange_parcels()?;
        let mut all = own;
        for member in self.others() {
            let parcel = self.assembler.take(member);
            let rest = &mut parcel.as_slice();
            let Some(tally) = encoding::take(rest).filter(|_| rest.is_empty()) else {
                return Err(self.cluster.fail_undecodable());
            };
            all.merge(tally);
        }
        self.cluster.complete_call()?;
        Ok(all)
    }
}

impl MemberContribution {
    const IDENTITY: Self = Self { contribution: Contribution::IDENTITY, steps: 0 };

    fn combined_with(mut self, other: Self) -> Self {
        self.contribution.merge(other.contribution);
        Self { steps: self.steps + other.steps, ..self }
    }
}

impl PartialReduction {
    fn new(own: MemberContribution) -> Self {
        Self { recent: own, remainder: MemberContribution::IDENTITY }
    }

    /// Combines this partial reduction with that of the member one stride before this one.
    fn combine(&mut self, theirs: Self, stride: usize, members: usize) {
        if members & stride != 0 {
            self.remainder = self.recent.combined_with(theirs.remainder);
        }
        self.recent = self.recent.combined_with(theirs.recent);
    }

    /// Returns the reduction over all members, after all strides.
    fn result(&self, members: usize) -> MemberContribution {
        if members.is_power_of_two() { self.recent } else { self.remainder }
    }
}

impl RegionalSummary {
    fn merge(&mut self, other: Self) {
        self.conditional = self.conditional.into_iter().chain(other.conditional).min();
        self.cut = self.cut.max(other.cut);
        self.exchange_counts = self.exchange_counts.max(other.exchange_counts);
        self.summary.merge(other.summary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_counted_once() {
        for members in 1..70_usize {
            let own = |member: usize| {
                let event = SimTime::from_picos(100 + member as u64);
                MemberContribution {
                    contribution: Contribution { messages: 1, event, ..Contribution::IDENTITY },
                    steps: member as u64,
                }
            };
            let mut partial: Vec<_> = (0..members).map(|member| PartialReduction::new(own(member))).collect();
            let strides = (0..).map(|power| 1 << power).take_while(|&stride| stride < members);
            for stride in strides {
                let before = partial.clone();
                for (member, partial) in partial.iter_mut().enumerate() {
                    partial.combine(before[(member + members - stride) % members], stride, members);
                }
            }
            let event = SimTime::from_picos(100);
            let messages = members as u64;
            let contribution = Contribution { messages, event, ..Contribution::IDENTITY };
            let all = MemberContribution { contribution, steps: messages * (messages - 1) / 2 };
            assert!(partial.iter().all(|partial| partial.result(members) == all), "{members} members");
        }
    }

    #[test]
    fn summaries_add_up() {
        let at = SimTime::from_picos;
        let [one, other] = [(5, 2), (4, 7)].map(|(picos, lp)| RegionalSummary {
            summary: RunSummary {
                fault: Some((at(picos), LpId::new(lp), 0)),
                steps: picos,
                waiting: vec![LpId::new(lp)],
                is_stopped: lp == 7,
            },
            conditional: (lp == 7).then_some((at(1), LpId::new(3))),
            cut: (lp == 2).then_some(at(9)),
            exchange_counts: ExchangeCounts { boundaries: picos - 4, ..ExchangeCounts::default() },
        });
        let mut all = one;
        all.merge(other);
        let expected = RegionalSummary {
            summary: RunSummary {
                fault: Some((at(4), LpId::new(7), 0)),
                steps: 9,
                waiting: vec![LpId::new(2), LpId::new(7)],
                is_stopped: true,
            },
            conditional: Some((at(1), LpId::new(3))),
            cut: Some(at(9)),
            exchange_counts: ExchangeCounts { boundaries: 1, ..ExchangeCounts::default() },
        };
        assert_eq!(all, expected);
    }
}
