//! Schedules that react to answers.

use pdes_core::Rank;

use crate::collective::{Answer, Schedule, Step, Steps};

/// Returns a schedule that is created part by part: `talk` gets the answer to the last step of a part and returns the next
/// part.
pub(super) fn reactive<'a>(talk: impl FnMut(Answer) -> Option<Schedule<'a>> + Send + 'a) -> Schedule<'a> {
    Box::new(Reactive { part: None, next_part: talk })
}

struct Reactive<'a, F> {
    part: Option<Schedule<'a>>,
    next_part: F,
}

impl<'a, F: FnMut(Answer) -> Option<Schedule<'a>>> Steps for Reactive<'a, F> {
    fn next_step(&mut self, mut answer: Answer) -> Option<Step> {
        loop {
            let step = self.part.as_mut().and_then(|part| part.next_step(answer));
            if step.is_some() {
                return step;
            }
            self.part = Some((self.next_part)(std::mem::take(&mut answer))?);
        }
    }
}

/// Receives two numbers from rank 0 out of band, then continues with the schedule that `go_on` returns for them.
pub(in crate::collective) fn with_received_numbers<'a>(
    go_on: impl FnOnce([u32; 2]) -> Schedule<'a> + Send + 'a,
) -> Schedule<'a> {
    let mut go_on = Some(go_on);
    reactive(move |answer| match answer {
        Answer::Numbers(numbers) => go_on.take().map(|go_on| go_on(numbers)),
        Answer::Nothing | Answer::Found(_) => go_on.as_ref().map(|_| recv_numbers()),
    })
}

fn recv_numbers<'a>() -> Schedule<'a> {
    Box::new(std::iter::once(Step::RecvOutOfBand { from: Rank::new(0) }))
}
