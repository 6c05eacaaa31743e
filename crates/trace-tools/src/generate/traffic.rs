//! Patterns of traffic by which networks are judged.

use std::fmt;
use std::str::FromStr;

use pdes_core::{Bytes, Rank};

use super::Generator;
use super::error::{
    GenerateError, check_amount, check_at_most, check_message_size, check_min_ranks, check_positive,
};
use super::program::ProgramBuilder;
use super::random::{Permutation, fraction, hash};
use trace_mmap::{Item, Op, Tag};

/// Largest number of messages of a round: each has its own tag.
const MAX_MESSAGES: u64 = 1 << 16;
/// Purpose of a random number, the first word of its position.
const PARTNER: u64 = 0;
const HOT: u64 = 1;

/// Who sends to whom (Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficPattern {
    /// All ranks send to rank 0.
    Incast,
    /// Rank 0 sends to all others.
    Outcast,
    /// Each rank sends to one other rank and receives from one, at random.
    Permutation,
    /// Each rank sends to other ranks and receives from as many, at random, another one with each message.
    Uniform,
    /// All ranks of a group send to those of the next group, at random: the worst case of dragonflies.
    Adversarial,
    /// Rank `r` of `n` sends to rank `r + ceil(n / 2) - 1`: the worst case of rings.
    Tornado,
    /// As `permutation`, but some messages, chosen at random, go to rank 0.
    HotSpot,
}

impl TrafficPattern {
    /// All patterns.
    pub const ALL: [Self; 7] = [
        Self::Incast,
        Self::Outcast,
        Self::Permutation,
        Self::Uniform,
        Self::Adversarial,
        Self::Tornado,
        Self::HotSpot,
    ];
}

impl fmt::Display for TrafficPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incast => "incast",
            Self::Outcast => "outcast",
            Self::Permutation => "permutation",
            Self::Uniform => "uniform",
            Self::Adversarial => "adversarial",
            Self::Tornado => "tornado",
            Self::HotSpot => "hot-spot",
        })
    }
}

impl FromStr for TrafficPattern {
    type Err = GenerateError;

    fn from_str(text: &str) -> Result<Self, GenerateError> {
        let pattern = Self::ALL.into_iter().find(|pattern| pattern.to_string() == text);
        pattern.ok_or_else(|| GenerateError::Pattern { found: text.to_owned() })
    }
}

/// Parameters of [`Traffic`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrafficParameters {
    /// Who sends to whom; default: a permutation.
    pub pattern: TrafficPattern,
    /// Seed of partners and of messages to the hot spot; default: 1.
    pub seed: u64,
    /// Number of ranks, 3 or more; default: 16.
    pub ranks: u32,
    /// Number of rounds; default: 1.
    pub rounds: u64,
    /// Number of messages to each partner in a round, at most 65,536; default: 1. Those of `uniform`, `adversarial` and `hot-spot` go to different
    /// ranks.
    pub messages: u32,
    /// Size of a message \[B\], at most 2^48; default: 1,048,576.
    pub bytes: Bytes,
    /// Ranks of a group of `adversarial`, a divisor of the ranks; default: 4.
    pub group: u32,
    /// Share of the messages of `hot-spot` that go to rank 0, from 0 to 1; default: 0.1.
    pub hot_share: f64,
    /// Computation of a rank after each round \[flop\]; default: 0.
    pub flops: f64,
}

impl Default for TrafficParameters {
    fn default() -> Self {
        Self {
            pattern: TrafficPattern::Permutation,
            seed: 1,
            ranks: 16,
            rounds: 1,
            messages: 1,
            bytes: Bytes::new(1 << 20),
            group: 4,
            hot_share: 0.1,
            flops: 0.0,
        }
    }
}

/// In each round a rank posts its receives, posts its sends, waits for all and computes.
///
/// All rounds are equal. Partners are permutations, invertible point by point, so that a rank finds its senders without scanning all
/// ranks; the receiver of many is an exception. Messages of a rank to itself are omitted.
///
/// ```
/// use pdes_core::Rank;
/// use trace_tools::generate::{Generator, Traffic, TrafficParameters, TrafficPattern};
/// let incast = TrafficParameters { pattern: TrafficPattern::Incast, ranks: 8, ..TrafficParameters::default() };
/// let incast = Traffic::new(incast)?;
/// // Init, a loop of one round, finalize; each of seven senders sends and waits, the receiver has seven receives and waits.
/// assert_eq!(incast.rank(Rank::new(0)).len(), 3);
/// assert_eq!(incast.actions(), 8 * 2 + 7 * 2 + 8);
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Traffic(TrafficParameters);

impl Traffic {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Zero`], [`GenerateError::TooLarge`], [`GenerateError::Indivisible`],
    /// [`GenerateError::Share`], [`GenerateError::Amount`].
    pub fn new(parameters: TrafficParameters) -> Result<Self, GenerateError> {
        let TrafficParameters { pattern, ranks, messages, bytes, group, hot_share, flops, .. } = parameters;
        check_min_ranks("traffic", ranks, 3)?;
        check_positive("messages", messages.into())?;
        check_at_most("messages", messages.into(), MAX_MESSAGES)?;
        check_message_size("bytes", bytes)?;
        check_amount("flops", flops)?;
        if pattern == TrafficPattern::Adversarial {
            check_positive("group", group.into())?;
            if !ranks.is_multiple_of(group) {
                let (whole, part) = (ranks.into(), group.into());
                return Err(GenerateError::Indivisible { parameter: "ranks", whole, part });
            }
        }
        if !(0.0..=1.0).contains(&hot_share) {
            return Err(GenerateError::Share { parameter: "hot_share", value: hot_share });
        }
        Ok(Self(parameters))
    }

    /// Returns whether a message of a rank goes to the hot spot.
    fn is_hot(&self, message: u32, rank: u32) -> bool {
        fraction(self.0.seed, &[HOT, message.into(), rank.into()]) < self.0.hot_share
    }

    /// Returns the permutation of so many ranks by which partners are found.
    fn permutation(&self, size: u32, position: &[u64]) -> Permutation {
        Permutation::new(size, hash(self.0.seed, position))
    }

    /// Returns the ranks to which a rank sends a message.
    fn receivers(&self, message: u32, rank: u32) -> Vec<u32> {
        let TrafficParameters { pattern, ranks, group, .. } = self.0;
        let to = match pattern {
            TrafficPattern::Incast => 0,
            TrafficPattern::Outcast => return if rank == 0 { (1..ranks).collect() } else { Vec::new() },
            TrafficPattern::Permutation => self.permutation(ranks, &[PARTNER]).image(rank),
            TrafficPattern::Uniform => self.permutation(ranks, &[PARTNER, message.into()]).image(rank),
            TrafficPattern::Adversarial => {
                let (own, place) = (rank / group, rank % group);
                let next = (own + 1) % (ranks / group);
                next * group + self.permutation(group, &[PARTNER, message.into(), own.into()]).image(place)
            }
            TrafficPattern::Tornado => {
                ((u64::from(rank) + u64::from(ranks.div_ceil(2)) - 1) % u64::from(ranks)) as u32
            }
            TrafficPattern::HotSpot if self.is_hot(message, rank) => 0,
            TrafficPattern::HotSpot => self.permutation(ranks, &[PARTNER, message.into()]).image(rank),
        };
        if to == rank { Vec::new() } else { vec![to] }
    }

    /// Returns the ranks from which a rank receives a message.
    fn senders(&self, message: u32, rank: u32) -> Vec<u32> {
        let TrafficParameters { pattern, ranks, group, .. } = self.0;
        let from = match pattern {
            TrafficPattern::Incast => return if rank == 0 { (1..ranks).collect() } else { Vec::new() },
            TrafficPattern::Outcast => 0,
            TrafficPattern::Permutation => self.permutation(ranks, &[PARTNER]).preimage(rank),
            TrafficPattern::Uniform => self.permutation(ranks, &[PARTNER, message.into()]).preimage(rank),
            TrafficPattern::Adversarial => {
                let groups = ranks / group;
                let before = (rank / group + groups - 1) % groups;
                let places = self.permutation(group, &[PARTNER, message.into(), before.into()]);
                before * group + places.preimage(rank % group)
            }
            TrafficPattern::Tornado => {
                let step = u64::from(ranks.div_ceil(2)) - 1;
                ((u64::from(rank) + u64::from(ranks) - step) % u64::from(ranks)) as u32
            }
            TrafficPattern::HotSpot => {
                let partner = self.permutation(ranks, &[PARTNER, message.into()]).preimage(rank);
                let hot = (1..ranks).filter(|&sender| rank == 0 && self.is_hot(message, sender));
                let partner =
                    Some(partner).filter(|&partner| partner != rank && !self.is_hot(message, partner));
                return hot.chain(partner).collect();
            }
        };
        if from == rank { Vec::new() } else { vec![from] }
    }
}

impl Generator for Traffic {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let TrafficParameters { ranks, rounds, messages, bytes, flops, .. } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        ProgramBuilder::build(|program| {
            program.repeat(rounds, |body| {
                for message in 0..messages {
                    for sender in self.senders(message, rank.get()) {
                        body.irecv(Rank::new(sender), Tag::new(message as i32), bytes);
                    }
                }
                for message in 0..messages {
                    for receiver in self.receivers(message, rank.get()) {
                        body.isend(Rank::new(receiver), Tag::new(message as i32), bytes);
                    }
                }
                body.op(Op::WaitAll);
                body.compute(flops);
            });
        })
    }
}
