//! Shapley values: the parts of a difference that are due to each of several changes.

use std::collections::BTreeMap;

/// Largest number of changes of which all combinations are replayed.
pub(crate) const MAX_EXACT: usize = 7;
/// Number of orders of more changes that are sampled; each also backwards.
const ORDERS: usize = 32;
/// Seed of the sampled orders.
const SEED: u64 = 0x5ba9;

/// A set of changes: bit `i` is that of change `i`.
pub(crate) type Changes = u32;

/// How the parts of changes are found.
pub(crate) enum Plan {
    /// From all combinations.
    Exact(usize),
    /// From orders in which the changes are made one after the other.
    Sampled(Vec<Vec<usize>>),
}

impl Plan {
    pub(crate) fn new(changes: usize) -> Self {
        if changes <= MAX_EXACT {
            return Self::Exact(changes);
        }
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut orders = Vec::new();
        for _ in 0..ORDERS {
            let mut order: Vec<usize> = (0..changes).collect();
            random.shuffle(&mut order);
            orders.push(order.iter().rev().copied().collect());
            orders.push(order);
        }
        Self::Sampled(orders)
    }

    /// Returns the number of sampled orders; `None` if there are none.
    pub(crate) fn orders(&self) -> Option<usize> {
        match self {
            Self::Exact(_) => None,
            Self::Sampled(orders) => Some(orders.len()),
        }
    }

    /// Returns the combinations of changes whose values are needed, in ascending order: none, all, and each change alone or left out, too.
    pub(crate) fn combinations(&self) -> Vec<Changes> {
        let mut needed: Vec<Changes> = match self {
            Self::Exact(changes) => (0..1 << changes).collect(),
            Self::Sampled(orders) => {
                let prefixes = orders.iter().flat_map(|order| {
                    order.iter().scan(0, |set, change| {
                        *set |= 1 << change;
                        Some(*set)
                    })
                });
                let changes = orders[0].len();
                let all = (1 << changes) - 1;
                let single = (0..changes).flat_map(|change| [1 << change, all & !(1 << change)]);
                prefixes.chain(single).chain([0]).collect()
            }
        };
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Returns the part of each change in the difference between the values of all changes and of none, and the standard error of parts that
    /// are sampled. Parts are whole numbers, rounded such that they add up to the difference.
    ///
    /// The part of a change is the mean, over all orders, of what it adds to the value when it is made (Shapley, "A Value for n-Person
    /// Games", 1953).
    pub(crate) fn parts(&self, values: &BTreeMap<Changes, i128>) -> (Vec<i128>, Option<Vec<f64>>) {
        match self {
            Self::Exact(changes) => {
                let factorial = |number: usize| (1..=number as i128).product::<i128>();
                let (count, orders) = (*changes, factorial(*changes));
                let part = |change: usize| {
                    let others = (0..1_u32 << count).filter(|set| set & (1 << change) == 0);
                    let added = others.map(|set| {
                        let before = set.count_ones() as usize;
                        let weight = factorial(before) * factorial(count - before - 1);
                        weight * (values[&(set | 1 << change)] - values[&set])
                    });
                    added.sum::<i128>()
                };
                (rounded(&(0..count).map(part).collect::<Vec<_>>(), orders), None)
            }
            Self::Sampled(orders) => {
                let changes = orders[0].len();
                // An order and its reverse are one sample.
                let sample = |pair: &[Vec<usize>]| {
                    let mut added = vec![0_i128; changes];
                    for order in pair {
                        let mut set = 0;
                        for &change in order {
                            let next = set | 1 << change;
                            added[change] += values[&next] - values[&set];
                            set = next;
                        }
                    }
                    added
                };
                let samples: Vec<Vec<i128>> = orders.chunks(2).map(sample).collect();
                let sum = |change: usize| samples.iter().map(|added| added[change]).sum::<i128>();
                let sums: Vec<i128> = (0..changes).map(sum).collect();
                let count = samples.len();
                let error = |change: usize| {
                    let deviations = samples.iter().map(|added| added[change] * count as i128 - sums[change]);
                    let squares: f64 =
                        deviations.map(|deviation| (deviation as f64 / (2 * count) as f64).powi(2)).sum();
                    (squares / (count * (count - 1)) as f64).sqrt()
                };
                let errors = (0..changes).map(error).collect();
                (rounded(&sums, orders.len() as i128), Some(errors))
            }
        }
    }
}

/// Divides numbers by one number, which divides their sum, and rounds them such that their sum is the quotient: those with the largest
/// remainders up, the first ones at a tie.
fn rounded(numerators: &[i128], denominator: i128) -> Vec<i128> {
    let mut parts: Vec<i128> = numerators.iter().map(|number| number.div_euclid(denominator)).collect();
    let missing = numerators.iter().sum::<i128>().div_euclid(denominator) - parts.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(numerators[index].rem_euclid(denominator)));
    order.into_iter().take(missing as usize).for_each(|index| parts[index] += 1);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(changes: usize, value: impl Fn(Changes) -> i128) -> (Vec<i128>, Option<Vec<f64>>) {
        let plan = Plan::new(changes);
        plan.parts(&plan.combinations().into_iter().map(|set| (set, value(set))).collect())
    }

    /// Two changes that only help together share what they add; a change without effect gets nothing.
    #[test]
    fn parts_of_a_small_game() {
        let value = |set: Changes| match set & 3 {
            0 => 100,
            1 => 107,
            2 => 100,
            _ => 120,
        };
        // (7 + 20) / 2 and (0 + 13) / 2, rounded to the sum of 20: the remainders are equal, and the first one is rounded up.
        assert_eq!(parts(3, value).0, [14, 6, 0]);
    }

    #[test]
    fn sampled_parts_add_up_and_are_exact_without_interaction() {
        let weights: [i128; 9] = [5, -3, 0, 1_000_000_000_007, 17, 2, 0, 9, -40];
        let sum = |set: Changes| {
            (0..9).filter(|change| set & (1 << change) != 0).map(|change| weights[change as usize]).sum()
        };
        assert_eq!(parts(9, sum), (weights.to_vec(), Some(vec![0.0; 9])));
        // With interaction they still add up.
        let (found, errors) =
            parts(9, |set| i128::from(set.count_ones()).pow(3) * 1001 + i128::from(set % 5));
        assert_eq!(found.iter().sum::<i128>(), 729 * 1001 + 511 % 5);
        assert!(errors.unwrap().iter().any(|error| *error > 0.0));
    }
}
