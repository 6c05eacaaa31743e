//! Communicators of ranks that were recorded apart: each rank knows its own calls and its own names, and the members of a new
//! communicator follow from the calls of all.

use std::path::PathBuf;
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, CommunicatorCall, Group, Location, TraceError};

/// Name of a communicator, a group or a request in the recording of a rank; may be used again.
pub(crate) type Handle = u64;

/// A call of a rank that makes a communicator or a group.
#[derive(Debug)]
pub(crate) struct Creation {
    /// Name of the function.
    pub(crate) name: &'static str,
    /// Number of the line or record.
    pub(crate) line: u64,
    pub(crate) made: Made,
}

/// What a call makes.
#[derive(Debug)]
pub(crate) enum Made {
    /// A communicator, or `MPI_COMM_NULL`.
    Communicator { parent: Handle, new: Option<Handle>, by: Split },
    /// A group.
    Group { new: Handle, of: GroupOf },
}

/// How a call makes communicators of one.
#[derive(Clone, Debug)]
pub(crate) enum Split {
    /// `MPI_Comm_dup`.
    Dup,
    /// `MPI_Comm_split`.
    Color { color: i64, key: i64 },
    /// `MPI_Comm_create`.
    Group(Handle),
    /// `MPI_Cart_create`, `MPI_Graph_create`: those that get one, in the order of the parent.
    SameOrder,
    /// `MPI_Cart_sub`: the extents of the parent, and which of them the new communicators have.
    Grid { extents: Vec<u64>, remain: Vec<bool> },
}

impl Split {
    /// Returns the call that a replay models.
    pub(super) fn call(&self) -> CommunicatorCall {
        match self {
            Self::Dup => CommunicatorCall::Dup,
            Self::Color { .. } | Self::Grid { .. } => CommunicatorCall::Split,
            Self::Group(_) | Self::SameOrder => CommunicatorCall::Create,
        }
    }
}

/// How a call makes a group.
#[derive(Debug)]
pub(crate) enum GroupOf {
    Communicator(Handle),
    /// The ranks of a group, in this order.
    Included(Handle, Vec<u32>),
    /// The other ranks of a group.
    Excluded(Handle, Vec<u32>),
    Union(Handle, Handle),
    Intersection(Handle, Handle),
    Difference(Handle, Handle),
}

/// A communicator with its number in the trace.
pub(crate) type Resolved = (CommId, Arc<Group>);

/// The communicators of a trace.
#[derive(Debug)]
pub(crate) struct Communicators {
    /// The communicators that no call of the trace makes.
    pub(super) given: FxHashMap<Handle, Given>,
    pub(super) all: Arc<Group>,
    /// For each rank, what its calls that make communicators return.
    pub(super) created: Vec<Vec<Option<Resolved>>>,
    /// Number of communicators other than those of single ranks.
    count: u32,
}

/// A communicator that no call of the trace makes.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    World,
    /// `MPI_COMM_SELF`.
    Own,
    /// Made right before its first use.
    Group(Resolved),
}

/// Calls that make communicators do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommunicatorError {
    /// A rank uses a communicator or a group that no recorded call has made.
    #[error("{name} uses the {object} {handle}, which no recorded call has made")]
    Unknown {
        /// The function.
        name: &'static str,
        /// `communicator` or `group`.
        object: &'static str,
        /// Its name in the recording.
        handle: u64,
    },
    /// Ranks of a communicator call different functions that make communicators.
    #[error("rank {rank} calls {name}, where rank {other} of the same communicator calls {expected}")]
    Differ {
        /// A rank.
        rank: Rank,
        /// Its call.
        name: &'static str,
        /// Another rank.
        other: Rank,
        /// Its call.
        expected: &'static str,
    },
    /// Not all ranks of a communicator make a call.
    #[error("{name} on a communicator of which rank {rank} never makes this call")]
    Missing {
        /// The function.
        name: &'static str,
        /// A rank that does not call it.
        rank: Rank,
    },
    /// A rank of a group is not there, or is there twice.
    #[error("{name} has rank {rank} in a group, which is not there, or there twice")]
    Member {
        /// The function.
        name: &'static str,
        /// The number of the rank.
        rank: u32,
    },
}

/// The call of a rank that is wrong, and why.
pub(crate) struct BadCreation {
    rank: Rank,
    line: u64,
    error: CommunicatorError,
}

impl BadCreation {
    /// Locates the call in the file of its rank.
    pub(crate) fn locate(self, file: impl FnOnce(usize) -> PathBuf) -> TraceError {
        let location = Location { file: file(self.rank.index()), line: self.line };
        TraceError::Action { location, kind: self.error.into() }
    }
}

impl Communicators {
    /// Resolves the calls of all ranks, given the names of `MPI_COMM_WORLD` and `MPI_COMM_SELF`. Cost: O(members of all communicators).
    pub(crate) fn resolve([world, own]: [Handle; 2], calls: &[Vec<Creation>]) -> Result<Self, BadCreation> {
        let all = Arc::new(Group::world(calls.len() as u32));
        let rank = |(rank, calls)| RankState {
            rank: Rank::new(rank),
            calls,
            next: 0,
            communicators: FxHashMap::from_iter([(world, 0)]),
            groups: FxHashMap::default(),
            created: Vec::new(),
        };
        let ranks = (0..).zip(calls.iter().map(|calls| &calls[..])).map(rank).collect();
        let communicators = vec![CommunicatorState { group: Arc::clone(&all), arrived: 0 }];
        let mut resolver = Resolver { own, ranks, communicators, ready: (0..calls.len()).rev().collect() };
        while let Some(rank) = resolver.ready.pop() {
            resolver.advance(rank)?;
        }
        resolver.check_ends()?;
        let Resolver { ranks, communicators, .. } = resolver;
        let count = communicators.len() as u32;
        let resolved = |of: Option<u32>, me: Rank| match of? {
            OWN => Some((own_id(count, me), Arc::new(own_group(me)))),
            index => Some((CommId::new(index), Arc::clone(&communicators[index as usize].group))),
        };
        let created = ranks.into_iter().map(|RankState { rank, created, .. }| {
            created.into_iter().map(|index| resolved(index, rank)).collect()
        });
        let given = FxHashMap::from_iter([(world, Given::World), (own, Given::Own)]);
        Ok(Self { given, all, created: created.collect(), count })
    }

    /// Takes the communicators that the trace itself defines, numbered below `count`, of so many ranks.
    pub(crate) fn new(given: FxHashMap<Handle, Given>, ranks: u32, count: u32) -> Self {
        Self { given, all: Arc::new(Group::world(ranks)), created: Vec::new(), count }
    }

    /// Returns the number of ranks.
    #[cfg(feature = "otf2")]
    pub(crate) fn ranks(&self) -> u32 {
        self.all.len()
    }

    /// Returns a communicator that no call of the trace makes.
    #[cfg(feature = "otf2")]
    pub(crate) fn given(&self, handle: Handle) -> Option<&Given> {
        self.given.get(&handle)
    }

    /// Yields the communicators that no call of the trace makes, in any order.
    #[cfg(feature = "otf2")]
    pub(crate) fn all_given(&self) -> impl Iterator<Item = (Handle, &Given)> {
        self.given.iter().map(|(handle, given)| (*handle, given))
    }

    /// Returns the communicator `MPI_COMM_SELF` of a rank.
    pub(super) fn own_of(&self, rank: Rank) -> Resolved {
        (own_id(self.count, rank), Arc::new(own_group(rank)))
    }
}

/// Stands for `MPI_COMM_SELF` and its duplicates among the indices of communicators.
const OWN: u32 = u32::MAX;

fn own_id(count: u32, rank: Rank) -> CommId {
    CommId::new(count + rank.get())
}

fn own_group(rank: Rank) -> Group {
    Group::new([rank]).expect("one rank is there once")
}

struct Resolver<'a> {
    own: Handle,
    ranks: Vec<RankState<'a>>,
    communicators: Vec<CommunicatorState>,
    /// Ranks whose next call may be looked at.
    ready: Vec<usize>,
}

struct RankState<'a> {
    rank: Rank,
    calls: &'a [Creation],
    /// Index of the next call.
    next: usize,
    /// The communicators and groups that the rank has by now; communicators as indices.
    communicators: FxHashMap<Handle, u32>,
    groups: FxHashMap<Handle, Arc<Group>>,
    created: Vec<Option<u32>>,
}

struct CommunicatorState {
    group: Arc<Group>,
    /// Number of members whose next call is on it.
    arrived: u32,
}

impl RankState<'_> {
    fn error(&self, error: CommunicatorError) -> BadCreation {
        BadCreation { rank: self.rank, line: self.calls[self.next].line, error }
    }

    fn unknown(&self, object: &'static str, handle: Handle) -> BadCreation {
        self.error(CommunicatorError::Unknown { name: self.calls[self.next].name, object, handle })
    }

    fn finish(&mut self, new: Option<(Handle, u32)>) {
        self.communicators.extend(new);
        self.created.push(new.map(|(_, index)| index));
        self.next += 1;
    }

    fn group(&self, handle: Handle) -> Result<&Group, BadCreation> {
        self.groups.get(&handle).map(|group| &**group).ok_or_else(|| self.unknown("group", handle))
    }

    fn made_group(&self, of: &GroupOf) -> Result<Group, BadCreation> {
        let (group, (picked, is_included)) = match of {
            GroupOf::Included(group, picked) => (self.group(*group)?, (picked, true)),
            GroupOf::Excluded(group, picked) => (self.group(*group)?, (picked, false)),
            GroupOf::Union(first, second) => {
                let (first, second) = (self.group(*first)?, self.group(*second)?);
                let more = second.members().filter(|rank| first.position(*rank).is_none());
                return Ok(Group::new(first.members().chain(more)).expect("each rank is there once"));
            }
            GroupOf::Intersection(first, second) => {
                let second = self.group(*second)?;
                return Ok(kept(self.group(*first)?, |rank| second.position(rank).is_some()));
            }
            GroupOf::Difference(first, second) => {
                let second = self.group(*second)?;
                return Ok(kept(self.group(*first)?, |rank| second.position(rank).is_none()));
            }
            GroupOf::Communicator(_) => unreachable!("a communicator has its group"),
        };
        let name = self.calls[self.next].name;
        let wrong = |rank| self.error(CommunicatorError::Member { name, rank });
        if let Some(&rank) = picked.iter().find(|rank| **rank >= group.len()) {
            return Err(wrong(rank));
        }
        let members = picked.iter().map(|index| group.member(*index));
        let picked = Group::new(members).map_err(|rank| wrong(rank.get()))?;
        Ok(if is_included { picked } else { kept(group, |rank| picked.position(rank).is_none()) })
    }
}

fn kept(group: &Group, is_kept: impl Fn(Rank) -> bool) -> Group {
    Group::new(group.members().filter(|rank| is_kept(*rank))).expect("each rank is there once")
}

impl Resolver<'_> {
    /// Goes on to the next call of a rank for which others are needed, and makes it if they are there.
    fn advance(&mut self, index: usize) -> Result<(), BadCreation> {
        let rank = &mut self.ranks[index];
        while let Some(Creation { made, .. }) = rank.calls.get(rank.next) {
            match made {
                Made::Group { new, of: GroupOf::Communicator(handle) } => {
                    let group = match rank.communicators.get(handle) {
                        Some(&OWN) => Arc::new(own_group(rank.rank)),
                        Some(&communicator) => Arc::clone(&self.communicators[communicator as usize].group),
                        None if *handle == self.own => Arc::new(own_group(rank.rank)),
                        None => return Err(rank.unknown("communicator", *handle)),
                    };
                    rank.groups.insert(*new, group);
                    rank.next += 1;
                }
                Made::Group { new, of } => {
                    let group = rank.made_group(of)?;
                    rank.groups.insert(*new, Arc::new(group));
                    rank.next += 1;
                }
                Made::Communicator { parent, new, .. } => {
                    let found = rank.communicators.get(parent).copied();
                    match found.or((*parent == self.own).then_some(OWN)) {
                        Some(OWN) => rank.finish(new.map(|new| (new, OWN))),
                        Some(communicator) => return self.arrive(communicator),
                        None => return Err(rank.unknown("communicator", *parent)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes that the next call of a member is on a communicator; if all are there, makes it.
    fn arrive(&mut self, communicator: u32) -> Result<(), BadCreation> {
        let state = &mut self.communicators[communicator as usize];
        state.arrived += 1;
        if state.arrived < state.group.len() {
            return Ok(());
        }
        state.arrived = 0;
        let group = Arc::clone(&state.group);
        // Members with one color become one communicator, in the order of keys.
        let (mut members, mut without) = (Vec::with_capacity(group.len() as usize), Vec::new());
        let first = &self.ranks[group.member(0).index()];
        let expected = first.calls[first.next].name;
        for (position, member) in (0..).zip(group.members()) {
            let rank = &self.ranks[member.index()];
            let Creation { name, made: Made::Communicator { new, by, .. }, .. } = &rank.calls[rank.next]
            else {
                unreachable!("the call is on a communicator")
            };
            if *name != expected {
                let other = group.member(0);
                return Err(rank.error(CommunicatorError::Differ { rank: member, name, other, expected }));
            }
            match new {
                Some(new) => members.push((rank.color(by, position)?, position, member, *new)),
                None => without.push(member),
            }
        }
        members.sort_unstable();
        for same in members.chunk_by(|(first, ..), (second, ..)| first.0 == second.0) {
            let index = self.communicators.len() as u32;
            let group =
                Group::new(same.iter().map(|(_, _, member, _)| *member)).expect("members are there once");
            self.communicators.push(CommunicatorState { group: Arc::new(group), arrived: 0 });
            for (_, _, member, new) in same {
                self.ranks[member.index()].finish(Some((*new, index)));
            }
        }
        without.into_iter().for_each(|member| self.ranks[member.index()].finish(None));
        self.ready.extend(group.members().map(Rank::index));
        Ok(())
    }

    fn check_ends(&self) -> Result<(), BadCreation> {
        let Some(rank) = self.ranks.iter().find(|rank| rank.next < rank.calls.len()) else { return Ok(()) };
        let Creation { name, made: Made::Communicator { parent, .. }, .. } = &rank.calls[rank.next] else {
            unreachable!("groups are made at once")
        };
        let communicator = rank.communicators[parent];
        let is_there = |other: &Rank| {
            let other = &self.ranks[other.index()];
            other.calls.get(other.next).is_some_and(|call| {
                matches!(&call.made, Made::Communicator { parent, .. } if other.communicators.get(parent) == Some(&communicator))
            })
        };
        let group = &self.communicators[communicator as usize].group;
        let absent = group.members().find(|member| !is_there(member)).expect("a member is absent");
        Err(rank.error(CommunicatorError::Missing { name, rank: absent }))
    }
}

impl RankState<'_> {
    /// Returns the color and the key of the rank at a position of the parent: members of one color are a communicator.
    fn color(&self, by: &Split, position: u32) -> Result<(i64, i64), BadCreation> {
        let position = i64::from(position);
        Ok(match by {
            Split::Dup | Split::SameOrder => (0, position),
            Split::Color { color, key } => (*color, *key),
            Split::Group(group) => {
                // Disjoint groups make several communicators: the first member tells them apart.
                let group = self.group(*group)?;
                let Some(key) = group.position(self.rank) else {
                    let (name, rank) = (self.calls[self.next].name, self.rank.get());
                    return Err(self.error(CommunicatorError::Member { name, rank }));
                };
                (group.member(0).get().into(), key.into())
            }
            Split::Grid { extents, remain } => {
                // Row-major: the last coordinate is the fastest. The color has those that do not remain.
                let (mut color, mut rest, mut stride) = (0, position as u64, 1);
                for (extent, remains) in extents.iter().zip(remain).rev() {
                    let extent = (*extent).max(1);
                    if !remains {
                        color = (rest % extent).saturating_mul(stride).saturating_add(color);
                    }
                    (rest, stride) = (rest / extent, stride.saturating_mul(extent));
                }
                (color as i64, position)
            }
        })
    }
}
