//! Expressions of rules: arithmetic and comparisons over named numbers.

use exmex::{BinOp, Express, FlatEx, MakeOperators, MatchLiteral, Operator, literal_matcher_from_pattern};

use crate::diagnosis::variables::Variables;

const fn binary(apply: fn(f64, f64) -> f64, prio: i64) -> BinOp<f64> {
    BinOp { apply, prio, is_commutative: false }
}

// Numbers may have an exponent, which those of the library have not.
literal_matcher_from_pattern!(Number, r"^\.?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?");

/// The operators of expressions. All values are numbers: a comparison is 1 where it holds, and 0 elsewhere.
#[derive(Clone, Debug)]
struct RuleOperators;

impl MakeOperators<f64> for RuleOperators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        vec![
            Operator::make_bin("||", binary(|a, b| f64::from(a != 0.0 || b != 0.0), 0)),
            Operator::make_bin("&&", binary(|a, b| f64::from(a != 0.0 && b != 0.0), 1)),
            Operator::make_bin("==", binary(|a, b| f64::from(a == b), 2)),
            Operator::make_bin("!=", binary(|a, b| f64::from(a != b), 2)),
            Operator::make_bin("<=", binary(|a, b| f64::from(a <= b), 2)),
            Operator::make_bin(">=", binary(|a, b| f64::from(a >= b), 2)),
            Operator::make_bin("<", binary(|a, b| f64::from(a < b), 2)),
            Operator::make_bin(">", binary(|a, b| f64::from(a > b), 2)),
            Operator::make_bin("+", binary(|a, b| a + b, 3)),
            Operator::make_bin_unary("-", binary(|a, b| a - b, 3), |a| -a),
            Operator::make_bin("*", binary(|a, b| a * b, 4)),
            Operator::make_bin("/", binary(|a, b| a / b, 4)),
        ]
    }
}

/// An expression over variables.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    text: String,
    parsed: FlatEx<f64, RuleOperators, Number>,
}

impl Expression {
    /// Reads an expression whose variables are among `known`.
    pub(super) fn new(text: &str, known: &[String]) -> Result<Self, String> {
        let parsed = FlatEx::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
        if let Some(name) = parsed.var_names().iter().find(|name| !known.contains(name)) {
            return Err(format!("{text:?}: there is no variable {name:?}; expected of {}", known.join(", ")));
        }
        Ok(Self { text: text.to_owned(), parsed })
    }

    /// Returns the names of the variables.
    pub(super) fn variables(&self) -> &[String] {
        self.parsed.var_names()
    }

    fn value(&self, variables: &Variables) -> Result<f64, String> {
        let find = |name: &String| variables.get(name).copied().unwrap_or_default();
        let values: Vec<f64> = self.parsed.var_names().iter().map(find).collect();
        self.parsed.eval(&values).map_err(|error| format!("{:?}: {error}", self.text))
    }

    /// Returns whether a condition holds.
    pub(super) fn holds(&self, variables: &Variables) -> Result<bool, String> {
        self.value(variables).map(|value| value != 0.0)
    }

    /// Returns the value of an amount.
    pub(super) fn amount(&self, variables: &Variables) -> Result<f64, String> {
        let amount = self.value(variables)?;
        if amount.is_finite() {
            Ok(amount)
        } else {
            Err(format!("{:?} is {amount}, expected a number", self.text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_arithmetic() {
        let values = [("time", 3.0), ("count", 2.0), ("max_time", 4.0)];
        let variables: Variables = values.map(|(name, value)| (name.to_owned(), value)).into();
        let known = values.map(|(name, _)| name.to_owned());
        let value = |text| Expression::new(text, &known).unwrap().value(&variables).unwrap();
        for (text, expected) in [
            ("2 * time + 1", 7.0),
            ("-count + max_time / count", 0.0),
            ("(time - 1) * -2", -4.0),
            ("time - count - 1", 0.0),
            ("12 / time / count", 2.0),
            ("time / count > 1 && count == 2", 1.0),
            ("time < 1 || count != 2 || max_time >= 4.5e0", 0.0),
            ("max_time > 1.05 * time", 1.0),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        let endless = Expression::new("time / (count - 2)", &known).unwrap();
        assert!(endless.amount(&variables).unwrap_err().contains("is inf, expected a number"));
        assert_eq!(endless.holds(&Variables::new()), Ok(false));
    }
}
