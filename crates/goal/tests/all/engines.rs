//! The windowed engine gives the result of the ordered engine for every schedule.

use goal::pattern::{Stencil, dissemination, linear_alltoall, recursive_doubling_allreduce};
use goal::{EmptyMessage, Engine, LogGops, simulate};
use proptest::prelude::*;

use crate::random::{Limits, schedule};

prop_compose! {
    fn parameters(least: u64)(
        latency in prop_oneof![Just(0), 0..4000_u64], overhead in least..3000_u64, gap in 7..2000_u64,
        gap_per_byte in 0..7_u64, overhead_per_byte in 0..3_u64, empty in any::<bool>(),
    ) -> LogGops {
        let empty = if empty { EmptyMessage::Wraps } else { EmptyMessage::OneByte };
        LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_up_to: 1000, empty }
    }
}

/// Returns what engines must agree on: the outcome, or the error message.
fn outcome(
    schedule: &goal::Schedule,
    parameters: &LogGops,
    engine: Engine,
    threads: usize,
) -> Result<goal::Outcome, String> {
    simulate(schedule, parameters, engine, threads).map_err(|error| error.to_string())
}

fn agree(schedule: &goal::Schedule, parameters: &LogGops) -> Result<(), TestCaseError> {
    let ordered = outcome(schedule, parameters, Engine::Ordered, 1);
    for threads in [1, 2, 3] {
        prop_assert_eq!(&outcome(schedule, parameters, Engine::Windows, threads), &ordered);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 6000 }))]

    #[test]
    fn windows_agree_with_the_order_of_time(
        schedule in schedule(Limits { cpus: 1, nics: 1, bytes: 900, open: false }), parameters in parameters(7),
    ) {
        agree(&schedule, &parameters)?;
    }

    /// Half of the messages are above S.
    #[test]
    fn windows_agree_where_sends_wait(
        schedule in schedule(Limits { cpus: 1, nics: 1, bytes: 2000, open: false }), parameters in parameters(7),
    ) {
        agree(&schedule, &parameters)?;
    }

    #[test]
    fn windows_agree_where_hosts_have_several_interfaces(
        schedule in schedule(Limits { cpus: 1, nics: 5, bytes: 1100, open: true }), parameters in parameters(7),
    ) {
        agree(&schedule, &parameters)?;
    }

    /// Few different costs make many events happen at one time.
    #[test]
    fn windows_agree_where_many_events_happen_at_once(
        schedule in schedule(Limits { cpus: 1, nics: 1, bytes: 2, open: true }), overhead in 7..9_u64, eager_up_to in 0..3_u64,
    ) {
        let parameters = LogGops {
            latency: 0, overhead, gap: 7, gap_per_byte: 0, overhead_per_byte: 0, eager_up_to, ..LogGops::default()
        };
        agree(&schedule, &parameters)?;
    }
}

/// Hundreds of events in one window, all at the same few times or all at different ones.
#[test]
fn windows_agree_on_many_hosts() {
    let stencil =
        |jitter| Stencil { ranks: [20, 20], iterations: 3, bytes: 800, nanos: 5_000, jitter }.schedule();
    let patterns = [
        stencil(0),
        stencil(3_000),
        dissemination(500, 8),
        linear_alltoall(40, 1024),
        recursive_doubling_allreduce(128, 1 << 20),
    ];
    for schedule in patterns {
        let schedule = schedule.expect("the schedule is small");
        let parameters = LogGops::default();
        let ordered = simulate(&schedule, &parameters, Engine::Ordered, 1);
        for threads in [1, 2, 4, 64] {
            let windows = simulate(&schedule, &parameters, Engine::Windows, threads);
            assert_eq!(windows, ordered, "{}, {threads} threads", schedule.extent());
        }
    }
}

/// Two ranks compute beyond the range of time; every engine names the first of them.
#[test]
fn the_first_rank_is_named_where_time_leaves_its_range() {
    let long = "{\n a: calc 4000000000000000\n b: calc 4000000000000000\n b requires a\n c: calc 1\n c requires b\n}\n";
    let text = format!("num_ranks 4\nrank 0 {{\n}}\nrank 1 {{\n calc 5\n}}\nrank 2 {long}rank 3 {long}");
    let schedule = goal::read_text(text.as_bytes()).expect("the text is good");
    for (engine, threads) in
        [(Engine::Windows, 1), (Engine::Windows, 2), (Engine::Windows, 4), (Engine::Ordered, 1)]
    {
        let found = simulate(&schedule, &LogGops::default(), engine, threads);
        assert_eq!(found, Err(goal::SimulationError::Time { rank: 2 }), "{engine:?}, {threads} threads");
    }
}
