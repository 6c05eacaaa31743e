//! States of transformations, by which iterations of folded programs are compared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

use pdes_core::{Bytes, Rank};
use trace_mmap::folded::{FoldedCursor, FoldedSequence, State};
use trace_mmap::{CommId, Op, RequestName, Slot, Tag};
use xxhash_rust::xxh3::xxh3_128;

use super::Step;

/// A part of the state of a transformation, or of a check.
pub(super) trait Stateful {
    /// Describes the part.
    fn state(&mut self, state: &mut State<'_>);
}

/// Describes a value by a hash of its text, which is another one for any other value.
pub(super) fn describe(value: &impl Debug, state: &mut State<'_>) {
    let hash = xxh3_128(format!("{value:?}").as_bytes());
    state.word(hash as u64);
    state.word((hash >> 64) as u64);
}

/// A number that grows and makes no difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count(pub(super) u64);

impl Stateful for Count {
    fn state(&mut self, state: &mut State<'_>) {
        state.counter(&mut self.0, u64::MAX);
    }
}

macro_rules! words {
    ($($type:ty: $word:expr;)*) => {
        $(impl Stateful for $type {
            fn state(&mut self, state: &mut State<'_>) {
                let word: fn(&Self) -> u64 = $word;
                state.word(word(self));
            }
        })*
    };
}

words! {
    (): |()| 0;
    bool: |flag| u64::from(*flag);
    u32: |number| u64::from(*number);
    u64: |number| *number;
    f64: |number| number.to_bits();
    Bytes: |bytes| bytes.get();
    Rank: |rank| rank.get().into();
    Tag: |tag| tag.get() as u64;
    CommId: |id| id.get().into();
    RequestName: |name| name.get().into();
    Slot: |slot| slot.get().into();
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: Stateful),*> Stateful for ($($name,)*) {
            #[expect(non_snake_case, reason = "one variable for each type")]
            fn state(&mut self, state: &mut State<'_>) {
                let ($($name,)*) = self;
                $($name.state(state);)*
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);

impl<T: Stateful + ?Sized> Stateful for &mut T {
    fn state(&mut self, state: &mut State<'_>) {
        (**self).state(state);
    }
}

impl<T: Stateful> Stateful for Option<T> {
    fn state(&mut self, state: &mut State<'_>) {
        state.word(self.is_some().into());
        self.iter_mut().for_each(|value| value.state(state));
    }
}

macro_rules! lists {
    ($($list:ident)*) => {
        $(impl<T: Stateful> Stateful for $list<T> {
            fn state(&mut self, state: &mut State<'_>) {
                state.word(self.len() as u64);
                self.iter_mut().for_each(|value| value.state(state));
            }
        })*
    };
}

lists!(Vec VecDeque);

impl<K: Stateful + Copy, V: Stateful> Stateful for BTreeMap<K, V> {
    fn state(&mut self, state: &mut State<'_>) {
        state.word(self.len() as u64);
        for (key, value) in self {
            ({ *key }).state(state);
            value.state(state);
        }
    }
}

impl<K: Stateful + Copy> Stateful for BTreeSet<K> {
    fn state(&mut self, state: &mut State<'_>) {
        state.word(self.len() as u64);
        self.iter().for_each(|key| { *key }.state(state));
    }
}

impl<K: Stateful + Copy + Ord + Hash, V: Stateful, S: BuildHasher> Stateful
    for std::collections::HashMap<K, V, S>
{
    fn state(&mut self, state: &mut State<'_>) {
        let mut values: Vec<(K, &mut V)> = self.iter_mut().map(|(key, value)| (*key, value)).collect();
        values.sort_unstable_by_key(|(key, _)| *key);
        values.state(state);
    }
}

impl<K: Stateful + Copy + Ord + Hash, S: BuildHasher> Stateful for std::collections::HashSet<K, S> {
    fn state(&mut self, state: &mut State<'_>) {
        let mut keys: Vec<K> = self.iter().copied().collect();
        keys.sort_unstable();
        keys.state(state);
    }
}

impl<T: PartialEq + Clone> Stateful for FoldedSequence<T> {
    fn state(&mut self, state: &mut State<'_>) {
        state.output(self);
    }
}

impl<T> Stateful for FoldedCursor<'_, T> {
    fn state(&mut self, state: &mut State<'_>) {
        self.state(state);
    }
}

impl Stateful for Op {
    fn state(&mut self, state: &mut State<'_>) {
        describe(self, state);
    }
}

impl Stateful for Step {
    fn state(&mut self, state: &mut State<'_>) {
        // The index of the action is for messages to the user only.
        let Self { op, posted, awaited, nanos, .. } = self;
        (op, posted, awaited, nanos).state(state);
    }
}
