//! The frames that members of a cluster exchange during a run, and their encoding.

use crate::cluster::RunParameters;
use crate::{Rank, SimTime, Wire};

/// A control or data unit from one member to another. Counted frames may activate the receiver; an idle member reports how
/// many of them it has sent and received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// Parameters of the sender's run; the first frame of a run.
    Parameters(RunParameters),
    /// Counted: tokens for this worker of the receiver.
    Tokens { worker: u32, packets: &'a [u8] },
    /// Counted: the conditional event of this process is committed.
    Commit(Rank),
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Number of counted frames to each member.
    pub(crate) sent: Vec<u64>,
    /// Number of counted frames from each member.
    pub(crate) received: Vec<u64>,
    /// Earliest conditional event.
    pub(crate) candidate: Option<(SimTime, Rank)>,
    /// Time of the earliest failure.
    pub(crate) cutoff: SimTime,
}

/// The summary of a run, over some or all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSummary {
    /// Time, rank and order of the earliest failure.
    pub(crate) fault: Option<(SimTime, Rank, u64)>,
    pub(crate) steps: u64,
    /// Processes that have not finished.
    pub(crate) waiting: Vec<Rank>,
}

impl RunSummary {
    /// Adds the summary of other processes.
    pub(crate) fn merge(&mut self, other: Self) {
        // The earliest fault by (time, rank, order).
        self.fault = self.fault.into_iter().chain(other.fault).min();
        self.steps += other.steps;
        self.waiting.extend(other.waiting);
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        (self.fault, self.steps).write(bytes);
        write_list(&self.waiting, bytes);
    }

    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { fault: Wire::read(bytes)?, steps: Wire::read(bytes)?, waiting: read_list(bytes)? })
    }
}

const PARAMETERS: u8 = 0;
const TOKENS: u8 = 1;
const COMMIT: u8 = 2;
const IDLE: u8 = 3;
const CUTOFF: u8 = 4;
const REQUEST_BOUND: u8 = 5;
const STOP: u8 = 6;
const SUMMARY: u8 = 7;
const PROGRESS: u8 = 8;

impl<'a> Frame<'a> {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Parameters(RunParameters { ranks, workers, token_bytes }) => {
                (PARAMETERS, *ranks, (*workers, *token_bytes)).write(&mut bytes);
            }
            Self::Tokens { worker, packets } => {
                (TOKENS, *worker).write(&mut bytes);
                bytes.extend_from_slice(packets);
            }
            Self::Commit(rank) => (COMMIT, *rank).write(&mut bytes),
            Self::Idle(report) => {
                IDLE.write(&mut bytes);
                write_list(&report.sent, &mut bytes);
                write_list(&report.received, &mut bytes);
                report.candidate.write(&mut bytes);
                report.cutoff.write(&mut bytes);
            }
            Self::Cutoff(at) => (CUTOFF, *at).write(&mut bytes),
            Self::RequestBound(floor) => (REQUEST_BOUND, *floor).write(&mut bytes),
            Self::Progress(steps, reached) => (PROGRESS, *steps, *reached).write(&mut bytes),
            Self::Stop => STOP.write(&mut bytes),
            Self::Summary(summary) => {
                SUMMARY.write(&mut bytes);
                summary.write(&mut bytes);
            }
        }
        bytes
    }

    pub(crate) fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(match u8::read(rest)? {
            PARAMETERS => {
                let (ranks, (workers, token_bytes)) = Wire::read(rest)?;
                Self::Parameters(RunParameters { ranks, workers, token_bytes })
            }
            TOKENS => Self::Tokens { worker: Wire::read(rest)?, packets: rest },
            COMMIT => Self::Commit(Wire::read(rest)?),
            IDLE => Self::Idle(Report {
                sent: read_list(rest)?,
                received: read_list(rest)?,
                candidate: Wire::read(rest)?,
                cutoff: Wire::read(rest)?,
            }),
            CUTOFF => Self::Cutoff(Wire::read(rest)?),
            REQUEST_BOUND => Self::RequestBound(Wire::read(rest)?),
            PROGRESS => {
                let (steps, reached) = Wire::read(rest)?;
                Self::Progress(steps, reached)
            }
            STOP => Self::Stop,
            SUMMARY => Self::Summary(RunSummary::read(rest)?),
            _ => return None,
        })
    }
}

fn write_list<T: Wire>(list: &[T], bytes: &mut Vec<u8>) {
    (list.len() as u32).write(bytes);
    list.iter().for_each(|item| item.write(bytes));
}

fn read_list<T: Wire>(bytes: &mut &[u8]) -> Option<Vec<T>> {
    (0..u32::read(bytes)?).map(|_| T::read(bytes)).collect()
}

/// The encoder and decoder of tokens with their receivers. They are function pointers, so that a run on threads only does
/// not require tokens that implement [`Wire`].
pub(crate) struct TokenCodec<T> {
    pub(crate) token_bytes: u32,
    encode: fn(&[(Rank, T)], &mut Vec<u8>),
    decode: fn(&[u8]) -> Option<AddressedTokens<T>>,
}

/// Tokens with their receivers.
type AddressedTokens<T> = Vec<(Rank, T)>;

impl<T> Clone for TokenCodec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TokenCodec<T> {}

impl<T: Copy + Wire> TokenCodec<T> {
    pub(crate) fn new() -> Self {
        Self {
            token_bytes: T::SIZE as u32,
            encode: |packets, bytes| {
                bytes.reserve(packets.len() * <(Rank, T)>::SIZE);
                packets.iter().for_each(|packet| packet.write(bytes));
            },
            decode: |mut bytes| {
                let mut packets = Vec::with_capacity(bytes.len() / <(Rank, T)>::SIZE);
                while !bytes.is_empty() {
                    packets.push(Wire::read(&mut bytes)?);
                }
                Some(packets)
            },
        }
    }
}

impl<T> TokenCodec<T> {
    /// Encodes a frame with these tokens for a worker of another member.
    pub(crate) fn frame(&self, worker: usize, packets: &[(Rank, T)]) -> Vec<u8> {
        let mut bytes = Frame::Tokens { worker: worker as u32, packets: &[] }.to_bytes();
        (self.encode)(packets, &mut bytes);
        bytes
    }

    /// Decodes the tokens of a frame; `None` if that is impossible because the members run different programs.
    pub(crate) fn packets(&self, bytes: &[u8]) -> Option<AddressedTokens<T>> {
        (self.decode)(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let at = SimTime::from_picos;
        let candidate = Some((at(5), Rank::new(6)));
        let frames = [
            Frame::Parameters(RunParameters { ranks: 1, workers: 2, token_bytes: 3 }),
            Frame::Tokens { worker: 4, packets: &[5, 6, 7] },
            Frame::Commit(Rank::new(9)),
            Frame::Idle(Report { sent: vec![1, 2], received: vec![3, 4], candidate, cutoff: at(7) }),
            Frame::Cutoff(at(10)),
            Frame::RequestBound(at(11)),
            Frame::Progress(12, at(13)),
            Frame::Stop,
            Frame::Summary(RunSummary { fault: None, steps: 12, waiting: vec![Rank::new(13)] }),
        ];
        for frame in frames {
            assert_eq!(Frame::read(&frame.to_bytes()), Some(frame));
        }
        assert_eq!(Frame::read(&[99]), None);
    }

    #[test]
    fn tokens_come_back() {
        let codec = TokenCodec::<u16>::new();
        let packets = [(Rank::new(1), 2_u16), (Rank::new(3), 4)];
        let frame = codec.frame(5, &packets);
        let Some(Frame::Tokens { worker: 5, packets: bytes }) = Frame::read(&frame) else {
            panic!("no tokens")
        };
        assert_eq!(codec.packets(bytes).as_deref(), Some(&packets[..]));
        assert_eq!(codec.packets(&bytes[1..]), None);
    }
}
