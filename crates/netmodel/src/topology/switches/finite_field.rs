//! Finite fields.

/// A field whose number of elements, the order, is a power of a prime. The digits of an element, to the base of the prime, are the
/// coefficients of a polynomial, the lowest first; zero and one are 0 and 1.
#[derive(Debug)]
pub(super) struct FiniteField {
    order: u32,
    prime: u32,
    /// Powers of an element that generates all but zero.
    powers: Vec<u32>,
    /// Exponent of each element but zero among them.
    exponents: Vec<u32>,
}

impl FiniteField {
    /// Makes the field, or returns `None` if the order is no power of a prime. `O(order^2)` at worst.
    pub(super) fn new(order: u32) -> Option<Self> {
        let prime = (2..=order).find(|divisor| order.is_multiple_of(*divisor))?;
        let mut rest = order;
        while rest.is_multiple_of(prime) {
            rest /= prime;
        }
        if rest > 1 {
            return None;
        }
        let mut field = Self { order, prime, powers: Vec::new(), exponents: vec![0; order as usize] };
        // Of the polynomials one is primitive: the powers of its root are all elements.
        field.powers = (1..order).find_map(|remainder| field.powers_of_root(remainder))?;
        for (exponent, &element) in (0..).zip(&field.powers) {
            field.exponents[element as usize] = exponent;
        }
        Some(field)
    }

    /// Returns the powers of the root of a polynomial, of which `remainder` is the negative without the highest power, if they are
    /// all elements but zero.
    fn powers_of_root(&self, remainder: u32) -> Option<Vec<u32>> {
        let highest = self.order / self.prime;
        let times_root = |element: u32| {
            let shifted = element % highest * self.prime;
            let factor = element / highest;
            self.digits([shifted, remainder], |[shifted, remainder]| shifted + factor * remainder)
        };
        let mut powers = vec![1];
        loop {
            match times_root(*powers.last()?) {
                0 => return None,
                1 => return (powers.len() as u32 == self.order - 1).then_some(powers),
                // Without one among them the powers would go in a circle.
                _ if powers.len() as u32 == self.order - 1 => return None,
                power => powers.push(power),
            }
        }
    }

    /// Computes each digit from those of two elements.
    fn digits(&self, [mut one, mut other]: [u32; 2], digit: impl Fn([u32; 2]) -> u32) -> u32 {
        let (mut result, mut place) = (0, 1);
        while place < self.order {
            result += digit([one % self.prime, other % self.prime]) % self.prime * place;
            (one, other, place) = (one / self.prime, other / self.prime, place * self.prime);
        }
        result
    }

    /// Returns the sum of two elements.
    pub(super) fn sum(&self, one: u32, other: u32) -> u32 {
        self.digits([one, other], |[one, other]| one + other)
    }

    /// Returns the product of two elements.
    pub(super) fn product(&self, one: u32, other: u32) -> u32 {
        if one == 0 || other == 0 {
            return 0;
        }
        self.power(self.exponents[one as usize] + self.exponents[other as usize])
    }

    /// Returns a power of the element whose powers are all elements but zero.
    pub(super) fn power(&self, exponent: u32) -> u32 {
        self.powers[exponent as usize % self.powers.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_obey_the_laws_of_fields() {
        for order in [2, 3, 4, 5, 8, 9, 16, 25, 27] {
            let field = FiniteField::new(order).unwrap();
            for one in 0..order {
                assert_eq!((field.sum(one, 0), field.product(one, 1)), (one, one));
                assert!((0..order).any(|other| field.sum(one, other) == 0), "{order}: {one} has a negative");
                let inverses = (0..order).filter(|&other| field.product(one, other) == 1).count();
                assert_eq!(inverses, usize::from(one > 0), "{order}: {one}");
                for (other, third) in (0..order).flat_map(|other| (0..order).map(move |third| (other, third)))
                {
                    let sum = field.product(one, field.sum(other, third));
                    assert_eq!(
                        sum,
                        field.sum(field.product(one, other), field.product(one, third)),
                        "{order}"
                    );
                }
            }
        }
        for order in [0, 1, 6, 12, 100] {
            assert!(FiniteField::new(order).is_none(), "{order}");
        }
    }
}
