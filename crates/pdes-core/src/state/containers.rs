//! States of containers of values.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{State, StateVisitor};

impl<T: State + ?Sized> State for &mut T {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        (**self).visit(visitor);
    }
}

impl<T: State> State for Box<T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        (**self).visit(visitor);
    }
}

impl<T: State + Serialize + DeserializeOwned> State for Option<T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        visitor.compare(&self.is_some());
        self.iter_mut().for_each(|value| value.visit(visitor));
    }
}

macro_rules! lists {
    ($($list:ty)*) => {
        $(impl<T: State + Serialize + DeserializeOwned> State for $list {
            fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
                if visitor.saves_whole(self) {
                    return;
                }
                visitor.compare(&self.len());
                self.iter_mut().for_each(|value| value.visit(visitor));
            }
        })*
    };
}

lists!(Vec<T> VecDeque<T> Box<[T]>);

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: State),*> State for ($($name,)*) {
            #[expect(non_snake_case, reason = "one variable for each type")]
            fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
                let ($($name,)*) = self;
                $($name.visit(visitor);)*
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);

/// Keys are the same in equal states, and after a repetition.
impl<K: Ord + Serialize + DeserializeOwned, V: State + Serialize + DeserializeOwned> State
    for BTreeMap<K, V>
{
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        visitor.compare(&self.len());
        for (key, value) in self {
            visitor.compare(key);
            value.visit(visitor);
        }
    }
}

impl<K: Ord + Serialize + DeserializeOwned> State for BTreeSet<K> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.plain(self);
    }
}

/// Visited in the order of keys, which are the same in equal states, and after a repetition.
impl<K, V, S> State for HashMap<K, V, S>
where
    K: Ord + Hash + Eq + Serialize + DeserializeOwned,
    V: State + Serialize + DeserializeOwned,
    S: BuildHasher + Default,
{
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let mut values: Vec<(&K, &mut V)> = self.iter_mut().collect();
        values.sort_unstable_by_key(|(key, _)| *key);
        visitor.compare(&values.len());
        for (key, value) in values {
            visitor.compare(key);
            value.visit(visitor);
        }
    }
}

/// Visited in order. What is visited may change as long as the order stays.
impl<T: State + Ord + Serialize + DeserializeOwned> State for BinaryHeap<Reverse<T>> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        // Ascending order is a heap, and sorting the greatest first makes it one of `Reverse`.
        let mut entries = std::mem::take(self).into_sorted_vec();
        visitor.compare(&entries.len());
        entries.iter_mut().rev().for_each(|Reverse(entry)| entry.visit(visitor));
        *self = entries.into();
    }
}
