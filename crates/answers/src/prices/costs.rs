//! Costs of better links and hosts.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Price, name};
use crate::parameter::Parameter;

/// Costs of better links and hosts.
///
/// ```
/// use answers::Costs;
///
/// let text = "currency = 'EUR'\n[[cost]]\nparameter = 'latency'\nplace = 'leaf to spine'\neach = 12.5\n";
/// let costs = Costs::from_text(text, "costs.toml".as_ref())?;
/// assert_eq!(costs.currency, "EUR");
/// # Ok::<(), answers::CostsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Unit of money.
    pub currency: String,
    /// Costs of single parameters.
    #[serde(default)]
    cost: Vec<Cost>,
}

/// Cost of one percent less of a parameter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    /// Name of the parameter.
    parameter: String,
    /// Links that have the parameter; without it, a parameter of the whole machine.
    place: Option<String>,
    /// Cost of one percent less for each of the links or hosts.
    each: f64,
}

/// The reason why costs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CostsError {
    /// The file cannot be read.
    #[error("the costs {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file has no costs.
    #[error("the costs {}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Error message, with the line if it is known.
        message: String,
    },
    /// The machine does not have the parameter.
    #[error("a cost is of {found:?}, expected one of {}", known.join("; "))]
    Unknown {
        /// The parameter and its place.
        found: String,
        /// Those of the machine.
        known: Vec<String>,
    },
}

impl Costs {
    /// Reads a file of costs.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or has no costs.
    pub fn from_path(path: &Path) -> Result<Self, CostsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CostsError::Read { path: path.to_owned(), source })?;
        Self::from_text(&text, path)
    }

    /// Reads the text of a file of costs; `path` is its name in messages.
    ///
    /// # Errors
    /// Returns an error if the text has no costs, or one that is not above 0.
    pub fn from_text(text: &str, path: &Path) -> Result<Self, CostsError> {
        let format = |message: String| CostsError::Format { path: path.to_owned(), message };
        let costs: Self =
            toml::from_str(text).map_err(|error| format(error.to_string().trim_end().to_owned()))?;
        match costs.cost.iter().find(|cost| !(cost.each.is_finite() && cost.each > 0.0)) {
            Some(cost) => {
                let name = name(&cost.parameter, cost.place.as_deref());
                Err(format(format!("{name}: each = {}, expected a number above 0", cost.each)))
            }
            None => Ok(costs),
        }
    }

    /// Checks that the machine has all parameters that have costs.
    pub(super) fn check(&self, parameters: &[Parameter]) -> Result<(), CostsError> {
        let known = || parameters.iter().map(|parameter| name(parameter.name(), parameter.place()));
        let costs = self.cost.iter().map(|cost| name(&cost.parameter, cost.place.as_deref()));
        match costs.into_iter().find(|cost| known().all(|known| known != *cost)) {
            Some(found) => Err(CostsError::Unknown { found, known: known().collect() }),
            None => Ok(()),
        }
    }

    /// Adds the cost to a price.
    pub(super) fn apply(&self, price: &mut Price) {
        let is_of = |cost: &&Cost| cost.parameter == price.parameter && cost.place == price.place;
        if let Some(cost) = self.cost.iter().find(is_of) {
            let cost = cost.each * price.count as f64;
            (price.cost, price.saved_s_per_cost) = (Some(cost), Some(price.saved_s / cost));
        }
    }
}
