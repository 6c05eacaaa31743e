//! Folded sequences: lists with repeated parts, and what walks over them.
//!
//! A [`Recurrent`] takes the items of a folded sequence one by one. [`walk`] compares its [`State`] after iterations of a loop: where a
//! state comes again, the iterations between the two have come full circle, and what is left of the loop is not walked.

mod cursor;
mod sequence;
mod state;

pub use cursor::FoldedCursor;
pub use sequence::FoldedSequence;
pub use state::State;

use state::Mark;

/// A part of a folded sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded<T> {
    /// Items, one after the other.
    Items(Vec<T>),
    /// Parts that are repeated so many times.
    Loop(u64, Vec<Self>),
}

/// A machine that takes the items of a sequence, one by one.
///
/// # Laws
/// The items and the [state](Self::state) determine the machine: from equal states, equal items lead to equal states, and append equal
/// items to its outputs.
pub trait Recurrent<T> {
    /// Reason to stop.
    type Stop;

    /// Takes the next item.
    ///
    /// # Errors
    /// Fails with a reason to stop the walk.
    fn step(&mut self, item: &T) -> Result<(), Self::Stop>;

    /// Describes the state, always in the same order.
    fn state(&mut self, state: &mut State<'_>);
}

/// Passes all items of a sequence to a machine, but those of iterations whose effects are known from earlier ones.
///
/// The cost is that of a few iterations of each loop if states come again, and else that of all items.
///
/// # Errors
/// Fails as the machine does.
pub fn walk<T, R: Recurrent<T>>(parts: &[Folded<T>], machine: &mut R) -> Result<(), R::Stop> {
    walk_at(0, parts, machine)
}

fn walk_at<T, R: Recurrent<T>>(depth: usize, parts: &[Folded<T>], machine: &mut R) -> Result<(), R::Stop> {
    parts.iter().try_for_each(|part| match part {
        Folded::Items(items) => items.iter().try_for_each(|item| machine.step(item)),
        Folded::Loop(count, body) => walk_loop(depth, *count, body, machine),
    })
}

/// Walks over a loop. States are compared with that after the last iteration whose number is a power of two, as in Brent's search for
/// cycles: it finds any period, at the cost of one state that is kept.
fn walk_loop<T, R: Recurrent<T>>(
    depth: usize,
    count: u64,
    body: &[Folded<T>],
    machine: &mut R,
) -> Result<(), R::Stop> {
    let mark = |machine: &mut R| Mark::of(|state| machine.state(state));
    let mut earlier = Mark::at_begin(depth, |state| machine.state(state));
    let (mut marked_at, mut reach, mut done) = (0, 1, 0);
    while done < count {
        walk_at(depth + 1, body, machine)?;
        done += 1;
        if done == count || !earlier.can_recur() {
            continue;
        }
        let now = mark(machine);
        let period = done - marked_at;
        let times = now.repetitions(&earlier).min((count - done) / period);
        if times > 0 {
            now.repeat(depth, &earlier, times, |state| machine.state(state));
            done += times * period;
            (earlier, marked_at, reach) = (mark(machine), done, 1);
        } else if period == reach {
            (earlier, marked_at, reach) = (now, done, 2 * reach);
        }
    }
    State::end(depth, |state| machine.state(state));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn parts() -> impl Strategy<Value = Vec<Folded<u64>>> {
        let items = prop::collection::vec(0_u64..3, 1..4).prop_map(Folded::Items);
        let part = items.prop_recursive(3, 24, 4, |inner| {
            (1_u64..40, prop::collection::vec(inner, 1..4))
                .prop_map(|(count, body)| Folded::Loop(count, body))
        });
        prop::collection::vec(part, 0..4)
    }

    fn sequence(parts: &[Folded<u64>]) -> FoldedSequence<u64> {
        let mut copy = Copy(FoldedSequence::default());
        let Ok(()) = walk(parts, &mut copy);
        copy.0
    }

    fn unfolded(parts: &[Folded<u64>]) -> Vec<u64> {
        FoldedCursor::new(parts).copied().collect()
    }

    /// Appends what it takes.
    struct Copy(FoldedSequence<u64>);

    impl Recurrent<u64> for Copy {
        type Stop = Infallible;

        fn step(&mut self, item: &u64) -> Result<(), Infallible> {
            self.0.push(*item);
            Ok(())
        }

        fn state(&mut self, state: &mut State<'_>) {
            state.output(&mut self.0);
        }
    }

    /// Adds up items and those of another sequence, modulo 7, and appends the sum to one of two sequences; counts the items that it is
    /// given, and those that it takes.
    struct Sums<'p> {
        other: FoldedCursor<'p, u64>,
        sum: u64,
        outputs: [FoldedSequence<u64>; 2],
        given: u64,
        steps: u64,
    }

    impl Recurrent<u64> for Sums<'_> {
        type Stop = Infallible;

        fn step(&mut self, item: &u64) -> Result<(), Infallible> {
            let other = if *item == 1 { 0 } else { self.other.next().copied().unwrap_or(5) };
            self.sum = (self.sum + item + other) % 7;
            self.outputs[(*item % 2) as usize].push(self.sum);
            (self.given, self.steps) = (self.given + 1, self.steps + 1);
            Ok(())
        }

        fn state(&mut self, state: &mut State<'_>) {
            self.other.state(state);
            state.word(self.sum);
            self.outputs.iter_mut().for_each(|output| state.output(output));
            state.counter(&mut self.given, u64::MAX);
        }
    }

    impl<'p> Sums<'p> {
        fn new(other: &'p FoldedSequence<u64>) -> Self {
            Self { other: other.cursor(), sum: 0, outputs: Default::default(), given: 0, steps: 0 }
        }
    }

    proptest! {
        #[test]
        fn walks_do_what_all_items_do(parts in parts(), other in parts()) {
            let other = sequence(&other);
            let (mut folded, mut whole, all) = (Sums::new(&other), Sums::new(&other), unfolded(&parts));
            let Ok(()) = walk(&parts, &mut folded);
            for item in &all {
                let Ok(()) = whole.step(item);
            }
            prop_assert_eq!((folded.given, folded.sum), (whole.given, whole.sum));
            prop_assert_eq!(folded.other.collect::<Vec<_>>(), whole.other.collect::<Vec<_>>());
            for (folded, whole) in folded.outputs.iter().zip(&whole.outputs) {
                prop_assert_eq!(folded.cursor().collect::<Vec<_>>(), whole.cursor().collect::<Vec<_>>());
                prop_assert_eq!(folded.len(), whole.len());
            }
        }

        #[test]
        fn copies_are_copies(parts in parts()) {
            let copy = sequence(&parts);
            prop_assert_eq!(unfolded(copy.parts()), unfolded(&parts));
            prop_assert_eq!(copy.len(), unfolded(&parts).len() as u64);
            prop_assert_eq!(copy.count(|item| *item == 2), unfolded(&parts).iter().filter(|item| **item == 2).count() as u64);
        }
    }

    #[test]
    fn few_iterations_are_walked() {
        // The sum comes again after seven iterations of the inner loop, and the other sequence is a loop of two.
        let body = vec![Folded::Loop(1_000_000_000, vec![Folded::Items(vec![2])]), Folded::Items(vec![1])];
        let other = sequence(&[Folded::Loop(u64::MAX / 4, vec![Folded::Items(vec![0, 1])])]);
        let mut sums = Sums::new(&other);
        let Ok(()) = walk(&[Folded::Loop(1_000_000_000, body)], &mut sums);
        assert_eq!(sums.given, 1_000_000_001 * 1_000_000_000);
        assert!(sums.steps < 2000, "{}", sums.steps);
    }
}
