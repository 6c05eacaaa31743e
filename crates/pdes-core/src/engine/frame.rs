//! The frames that members of a cluster exchange during a run, and their encoding.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::conditional_events::Candidate;
use crate::cluster::{RunParameters, encoding};
use crate::{LpId, SimTime};

/// A control or data unit from one member to another. Counted frames may activate the receiver; an idle member reports how
/// many of them it has sent and received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// Parameters of the sender's run; the first frame of a run.
    Parameters(RunParameters),
    /// Counted: tokens for this worker of the receiver, which [follow](decode_tokens) the frame.
    Tokens { worker: usize },
    /// Counted: the conditional event of this process is committed.
    Commit(LpId),
    /// To member 0: no worker of the sender can run.
    Idle(Report),
    /// A process has failed at this instant; events past it do not matter any more.
    Cutoff(SimTime),
    /// Requests a message as soon as the receiver's least clock has reached this instant, or all its workers are idle.
    RequestBound(SimTime),
    /// To member 0: number of steps of the sender, and the time that it has reached.
    Progress(u64, SimTime),
    /// From member 0: the run is over.
    Stop,
    /// Summary of the sender's processes, to member 0; summary of all processes, from member 0.
    Summary(RunSummary),
}

/// The report of an idle member, for termination detection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Number of counted frames to each member.
    pub(crate) sent: Vec<u64>,
    /// Number of counted frames from each member.
    pub(crate) received: Vec<u64>,
    /// Earliest candidate.
    pub(crate) candidate: Option<Candidate>,
    /// Time of the earliest failure.
    pub(crate) cutoff: SimTime,
}

/// The summary of a run, over some or all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunSummary {
    /// Time, process and order of the earliest failure.
    pub(crate) fault: Option<(SimTime, LpId, u64)>,
    pub(crate) steps: u64,
    /// Processes that have not finished.
    pub(crate) waiting: Vec<LpId>,
    /// The run was interrupted.
    pub(crate) is_stopped: bool,
}

impl RunSummary {
    /// Adds the summary of other processes.
    pub(crate) fn merge(&mut self, other: Self) {
        // The earliest fault by (time, process, order).
        self.fault = self.fault.into_iter().chain(other.fault).min();
        self.steps += other.steps;
        self.waiting.extend(other.waiting);
        self.is_stopped |= other.is_stopped;
    }
}

impl Frame {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        encoding::append(self, &mut bytes);
        bytes
    }
}

/// Encodes a frame with these tokens and their receivers, for a worker of another member.
pub(crate) fn encode_tokens<T: Serialize>(worker: usize, packets: &[(LpId, T)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<Frame>() + size_of_val(packets));
    encoding::append(&Frame::Tokens { worker }, &mut bytes);
    packets.iter().for_each(|packet| encoding::append(packet, &mut bytes));
    bytes
}

/// Decodes the tokens of a frame; `None` if that is impossible because the members run different programs.
pub(crate) fn decode_tokens<T: DeserializeOwned>(mut bytes: &[u8]) -> Option<Vec<(LpId, T)>> {
    std::iter::from_fn(|| (!bytes.is_empty()).then(|| encoding::take(&mut bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::conditional_events::CandidateKind;
    use super::*;

    #[test]
    fn frames_come_back() {
        let at = SimTime::from_picos;
        let candidate = Some(Candidate { at: at(5), kind: CandidateKind::Held, lp: LpId::new(6) });
        let frames = [
            Frame::Parameters(RunParameters { lps: 1, workers: 2, token_bytes: 3 }),
            Frame::Tokens { worker: 4 },
            Frame::Commit(LpId::new(9)),
            Frame::Idle(Report { sent: vec![1, 2], received: vec![3, 4], candidate, cutoff: at(7) }),
            Frame::Cutoff(at(10)),
            Frame::RequestBound(at(11)),
            Frame::Progress(12, at(13)),
            Frame::Stop,
            Frame::Summary(RunSummary {
                fault: None,
                steps: 12,
                waiting: vec![LpId::new(13)],
                is_stopped: true,
            }),
        ];
        for frame in frames {
            assert_eq!(encoding::take(&mut frame.to_bytes().as_slice()), Some(frame));
        }
        assert_eq!(encoding::take::<Frame>(&mut [99].as_slice()), None);
    }

    #[test]
    fn tokens_come_back() {
        let packets = [(LpId::new(1), 2_u16), (LpId::new(3), 4)];
        let frame = encode_tokens(5, &packets);
        let rest = &mut frame.as_slice();
        assert_eq!(encoding::take(rest), Some(Frame::Tokens { worker: 5 }));
        assert_eq!(decode_tokens(rest).as_deref(), Some(&packets[..]));
        assert_eq!(decode_tokens::<u16>(&rest[1..]), None);
    }
}
