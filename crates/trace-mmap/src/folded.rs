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
/// What the machine does depends on the items and on what [`state`](Self::state) describes: from equal states, equal items lead to
/// equal states, and append equal items to its outputs.
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
