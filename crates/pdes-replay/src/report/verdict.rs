//! Verdict on a run: what its time is made of, in sentences, as far as the report says.

use figures::quantity::percent;

use super::{Parts, RunTimePart, SavedReport};

/// Smallest part of the run time that is named.
const LEAST_NAMED: f64 = 0.001;
/// Part of the run time for which a link has to hold messages back to be named.
const CONTENDED: f64 = 0.05;

/// Advice for the parts of a critical path, by their names.
const ADVICE: [(&str, &str, &str); 6] = [
    (
        "compute",
        "computation",
        "the run ends earlier with faster hosts, less work, or work that is spread better",
    ),
    ("sleep", "sleep", "the program itself waits there"),
    ("library", "the MPI library", "the run ends earlier with fewer calls, or less overhead of each"),
    (
        "latency",
        "latency",
        "the run ends earlier with fewer messages after each other, or a network of less latency",
    ),
    ("bandwidth", "bandwidth", "the run ends earlier with less data, or wider links"),
    (
        "waiting",
        "contention",
        "the run ends earlier with other routes or another placement of ranks, more links, or less data at the same time",
    ),
];

impl SavedReport {
    /// Returns the verdict: first the largest part of the time, then all parts of the run time, then what else stands out.
    pub fn verdict(&self) -> Vec<String> {
        let mut verdict: Vec<String> = Vec::new();
        match (&self.sections.critical_path, &self.sections.breakdown) {
            (Some(path), _) if path.time_ps > 0 => {
                // At a tie, the first.
                let parts = path.parts.named();
                let most = parts.iter().rev().max_by_key(|(_, time)| *time);
                if let Some((name, time)) = most
                    && let Some((_, shown, advice)) = ADVICE.iter().find(|(part, ..)| part == name)
                {
                    let share = percent(*time as f64, path.time_ps as f64);
                    verdict.push(format!("{share} of the critical path is {shown}: {advice}."));
                }
                verdict.extend(self.parts_of_path(&parts.map(|(name, time)| (name, time as f64 / 1e12))));
            }
            (_, Some(breakdown)) if breakdown.total.time_s > 0.0 => {
                let hint = match self.sections.ideal_machines {
                    Some(_) => "",
                    None => {
                        " With analysis.critical_path = true the report says which of it makes the run longer."
                    }
                };
                verdict.push(by_breakdown(&breakdown.total) + hint)
            }
            _ => verdict.extend(self.by_actions()),
        }
        if let Some(machines) = &self.sections.ideal_machines {
            // At a tie, the first.
            let parts = machines.parts();
            let most = parts.iter().rev().max_by(|one, other| one.time_s.total_cmp(&other.time_s));
            if let Some(RunTimePart { name, time_s, advice }) = most {
                let share = percent(*time_s, self.simulated_time_s);
                verdict.insert(0, format!("{share} of the run time is {name}: it is shorter with {advice}."));
            }
            let named = parts.map(|part| (part.name, part.time_s));
            verdict.insert(1, self.of_run_time(&named));
        }
        let contended = self.sections.links.iter().flat_map(|links| links.top.first());
        verdict.extend(contended.filter_map(|link| {
            let share = link.saturated_ps as f64 / 1e12 / self.simulated_time_s;
            let name = link.connects.as_ref().unwrap_or(&link.name);
            (share >= CONTENDED).then(|| {
                format!(
                    "The link {name} is full and holds messages back for {} of the run time.",
                    percent(share, 1.0)
                )
            })
        }));
        verdict
    }

    /// Splits the run time by the parts of the critical path \[s\]: the computation there is that of the mean rank, what the rank that computes
    /// longest has more (imbalance), and computations of several ranks after each other (serialization).
    fn parts_of_path(&self, path: &[(&str, f64)]) -> Option<String> {
        if self.sections.ideal_machines.is_some() {
            return None;
        }
        let of = |name: &str| path.iter().find(|(part, _)| *part == name).map_or(0.0, |(_, time)| *time);
        let compute = of("compute");
        let [mean, most] = self.imbalance.as_ref().map_or([compute; 2], |ranks| [ranks.mean_s, ranks.max_s]);
        let (mean, most) = (mean.min(compute), most.min(compute));
        let own = [("computation", mean), ("imbalance", most - mean), ("serialization", compute - most)];
        let rest = ADVICE[1..].iter().map(|(name, shown, _)| (*shown, of(name)));
        Some(self.of_run_time(&own.into_iter().chain(rest).collect::<Vec<_>>()))
    }

    /// Names the parts of the run time \[s\] that are not too small.
    fn of_run_time(&self, parts: &[(&str, f64)]) -> String {
        let whole = self.simulated_time_s;
        let named = parts.iter().filter(|(_, time)| time.abs() >= LEAST_NAMED * whole);
        let named: Vec<String> =
            named.map(|(name, time)| format!("{name} {}", percent(*time, whole))).collect();
        format!("Of the run time: {}.", named.join(", "))
    }

    /// Names the kind of action that takes most time.
    fn by_actions(&self) -> Option<String> {
        let whole: f64 = self.time_by_action.iter().map(|action| action.time_s).sum();
        let most = self.time_by_action.iter().max_by(|one, other| one.time_s.total_cmp(&other.time_s))?;
        (whole > 0.0).then(|| {
            format!(
                "{} of the time of all ranks is in {}, waiting included.",
                percent(most.time_s, whole),
                most.action
            )
        })
    }
}

/// Names the largest part of the time of all ranks, and the others.
fn by_breakdown(total: &Parts) -> String {
    let parts = [
        ("computation", total.compute_s),
        ("waiting for other ranks", total.waiting_s),
        ("transfer of data", total.transfer_s),
        ("the MPI library", total.library_s),
        ("sleep", total.sleep_s),
    ];
    let mut named: Vec<_> =
        parts.into_iter().filter(|(_, time)| *time >= LEAST_NAMED * total.time_s).collect();
    // The sort is stable: of equal parts the first one comes first.
    named.sort_by(|one, other| other.1.total_cmp(&one.1));
    let states = total.named().into_iter().skip(4);
    let state = states.reduce(|most, state| if state.1 > most.1 { state } else { most });
    let share = |time: f64| percent(time, total.time_s);
    let describe = |&(name, time): &(&str, f64)| match state {
        Some((state, most)) if name.starts_with("waiting") => {
            format!("{} {name} (most of it {}, {})", share(time), state.replace('_', " "), share(most))
        }
        _ => format!("{} {name}", share(time)),
    };
    let named: Vec<String> = named.iter().map(describe).collect();
    format!("The time of all ranks is {}.", named.join(", "))
}
