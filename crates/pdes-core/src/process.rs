//! Logical processes: what the engine runs.

use std::convert::Infallible;

use crate::{Filed, Rank, SimTime};

/// A sequential program with its own clock that reads and writes timestamped tokens.
///
/// # Laws
/// The engine calls [`deliver`](Process::deliver) when a token happens to arrive in wall-clock time and
/// [`resume`](Process::resume) when it happens to have a thread for the process. The answer is the same for every
/// schedule exactly if
/// 1. tokens from one sender are consumed in the order in which they were sent (the engine delivers them so);
/// 2. what `deliver` computes depends on tokens and on what the process had asked for, never on how far the process
///    has run meanwhile;
/// 3. `resume` never takes one way where a token is there and another where it is not: a missing token always means
///    [`Pause::Blocked`]. The only exception is a turn with [`Turn::granted`].
pub trait Process: Send {
    /// What processes send to each other.
    type Token: Copy + Send;
    /// What processes ask of the part of the simulation that runs in the order of time, an
    /// [`Arbiter`](crate::Arbiter); [`Infallible`] where there is none.
    type Order: Copy + Send;
    /// Why a process may fail.
    type Error: Send;

    /// Takes in a token that was sent to this process; returns what that changes for the process.
    ///
    /// Called at any moment between two turns, also after the process has finished or failed; the answer matters where
    /// it is blocked.
    ///
    /// # Errors
    /// Where the token shows that the program is wrong. The process goes on as if the token had not come, because
    /// what it does before the failure's time may lead to an earlier failure, its own or another's.
    fn deliver(
        &mut self,
        token: Self::Token,
        outbox: &mut Outbox<Self::Token, Self::Order>,
    ) -> Result<Wake, Fault<Self::Error>>;

    /// Runs until the process must pause, or the turn is over.
    ///
    /// # Errors
    /// Where the program is wrong at [`clock`](Process::clock), so that nothing which the process would have done
    /// before the failure's time is lost. The process is not resumed again; tokens are still delivered, because an
    /// answer to them may lie before the failure.
    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Self::Token, Self::Order>,
    ) -> Result<Pause, Fault<Self::Error>>;

    /// Returns the process's own simulated time; it never decreases.
    fn clock(&self) -> SimTime;
}

/// How far a process may run before it hands its thread back. A process that runs shorter or longer than it was
/// asked to still computes the same.
#[derive(Debug)]
pub struct Turn {
    /// Past this instant the process returns [`Pause::Horizon`].
    pub horizon: SimTime,
    /// Steps (actions, in a replay) left in this turn; the process counts down and returns [`Pause::TurnOver`] at
    /// zero.
    pub steps: u32,
    /// Whether the conditional event for which the process paused is committed: everything that any process does
    /// from now on lies at or after the event's time. The grant is for that event only, not for the next one of the same
    /// turn.
    pub granted: bool,
}

/// Why a process handed its thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// A token is missing.
    Blocked,
    /// The clock is past the horizon.
    Horizon,
    /// The steps of the turn are used up.
    TurnOver,
    /// The next step depends on what all processes did before this instant (Chandy and Sherman's conditional event).
    ///
    /// The engine commits conditional events one at a time, in the order of (time, rank), and only when no process
    /// can run and no token is under way. The process then gets a turn with [`Turn::granted`]. A process has one
    /// conditional event at most: a token may bring it forward, or let the process go on without it, by what
    /// [`Process::deliver`] returns. When it is due must depend on the tokens that have arrived, not on their order.
    Conditional(SimTime),
    /// The process halts until another run goes on with it.
    ///
    /// A run ends, as [`Ending::Halted`](crate::Ending::Halted), where nothing else can happen before the clock of a process
    /// that halts; tokens are still delivered to it. Where nobody can go on with it, on a cluster of several members and in
    /// an [`OrderedEngine`](crate::OrderedEngine), the process gets its next turn at once.
    Halted,
    /// The program has ended.
    Finished,
}

/// What a token changes for a process that is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Nothing.
    No,
    /// It can go on.
    Ready,
    /// Its conditional event is due at this instant, whether or not it had one before; see [`Pause::Conditional`].
    Conditional(SimTime),
}

/// The failure of one process at an instant of simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<E> {
    /// When the process failed; of several failures the engine reports the one with the smallest (time, rank, order).
    pub at: SimTime,
    /// Tells failures of one process at one instant apart, such as by the index of an action.
    pub order: u64,
    /// What went wrong.
    pub error: E,
}

/// Tokens and orders on their way out of a process.
#[derive(Debug)]
pub struct Outbox<T, O = Infallible> {
    packets: Vec<(Rank, T)>,
    /// The process that the engine has called.
    pub(crate) sender: Rank,
    pub(crate) orders: Vec<Filed<O>>,
}

impl<T: Copy, O: Copy> Outbox<T, O> {
    pub(crate) fn new() -> Self {
        Self { packets: Vec::new(), sender: Rank::new(0), orders: Vec::new() }
    }

    /// Sends a token. Tokens of one sender reach one receiver in the order of these calls.
    #[inline]
    pub fn send(&mut self, to: Rank, token: T) {
        self.packets.push((to, token));
    }

    /// Files an order that is to be carried out at an instant; among those of one instant, by growing `place`.
    #[inline]
    pub fn file(&mut self, at: SimTime, place: u64, order: O) {
        self.orders.push(Filed { at, place, from: self.sender, order });
    }

    /// Returns packet number `index`, while there are as many.
    #[inline]
    pub(crate) fn packet(&self, index: usize) -> Option<(Rank, T)> {
        self.packets.get(index).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.packets.clear();
    }
}
