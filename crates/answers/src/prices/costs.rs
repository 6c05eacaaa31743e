//! Costs of better links and hosts.

use std::path::{Path, PathBuf};

use netmodel::{Layout, Platform};
use serde::Deserialize;

use super::{Price, name};
use crate::link_group::LinkGroup;
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
    /// Money to spend on cables, beside what is saved by taking some away.
    #[serde(default)]
    pub budget: f64,
    /// Costs of single parameters.
    #[serde(default)]
    cost: Vec<Cost>,
    /// Costs of cables.
    #[serde(default)]
    cable: Vec<CableCost>,
}

/// Cost of a cable.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CableCost {
    /// Cables that have the cost, as links in the table of prices.
    place: String,
    /// Cost of one cable of the bandwidth of the topology, with its ports.
    each: f64,
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
            None => Ok(()),
        }?;
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        match costs.cable.iter().find(|cable| !is_price(cable.each)) {
            Some(cable) => Err(format(format!(
                "cables {}: each = {}, expected a number of 0 or more",
                cable.place, cable.each
            ))),
            None if !is_price(costs.budget) => {
                Err(format(format!("budget = {}, expected a number of 0 or more", costs.budget)))
            }
            None => Ok(costs),
        }
    }

    /// Returns the cost of all cables of a platform. A cable of several times the bandwidth of a cable counts as so many.
    pub(crate) fn of_cables(&self, platform: &Platform, bandwidth: f64) -> Result<f64, CostsError> {
        let groups = LinkGroup::groups(platform);
        if let Some(cable) =
            self.cable.iter().find(|cable| groups.iter().all(|group| group.name != cable.place))
        {
            let (found, known) = (cable.place.clone(), groups.into_iter().map(|group| group.name).collect());
            return Err(CostsError::Unknown { found, known });
        }
        let directions =
            if Layout::of(platform).is_some_and(|layout| layout.split_duplex) { 2.0 } else { 1.0 };
        let number = |group: &LinkGroup| {
            group.of(platform).map(|link| link.bandwidth / bandwidth / directions).sum::<f64>()
        };
        let of = |cable: &CableCost| {
            groups
                .iter()
                .filter(|group| group.name == cable.place)
                .map(|group| cable.each * number(group))
                .sum::<f64>()
        };
        Ok(self.cable.iter().map(of).sum())
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
