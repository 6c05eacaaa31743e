//! Verification that an allocation is max-min fair.

use std::fmt;

use super::{FlowIndex, Link, MaxMin, Member};
use crate::Sharing;

/// Relative tolerance for rounding errors of sums.
const RELATIVE_SLACK: f64 = 1e-9;

/// Violation of max-min fairness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Violation {
    /// A link carries more than its capacity.
    Overload {
        /// The number of the link.
        link: u32,
        /// Load.
        load: f64,
        /// Capacity.
        capacity: f64,
    },
    /// A flow has no bottleneck: it is below its own limit, and each of its links has room or a flow of a higher
    /// level.
    Starved {
        /// The number of the flow.
        flow: u32,
        /// Its level.
        level: f64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload { link, load, capacity } => {
                write!(f, "link {link} carries {load} of {capacity}")
            }
            Self::Starved { flow, level } => write!(f, "flow {flow} has level {level} and no bottleneck"),
        }
    }
}

impl std::error::Error for Violation {}

/// Load of a link, and the highest level of its flows.
struct Load {
    carried: f64,
    highest: f64,
}

impl MaxMin {
    /// Checks the allocation by definition: no link is overloaded, and every flow is at its own limit or has a
    /// bottleneck, a full link on which no flow has a higher level (Bertsekas and Gallager, "Data Networks", 6.5.2).
    ///
    /// Costs the number of usages of all flows.
    ///
    /// # Errors
    /// The first violation, links before flows.
    pub fn check(&self) -> Result<(), Violation> {
        let loads: Vec<Load> = self.links.iter().map(|link| self.load(link)).collect();
        for (index, (link, load)) in self.links.iter().zip(&loads).enumerate() {
            if load.carried > link.capacity * (1.0 + RELATIVE_SLACK) {
                let (link, load, capacity) = (index as u32, load.carried, link.capacity);
                return Err(Violation::Overload { link, load, capacity });
            }
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let level = self.level(FlowIndex(index as u32));
            let is_bottleneck = |link: u32| {
                let (load, link) = (&loads[link as usize], &self.links[link as usize]);
                load.carried >= link.capacity * (1.0 - RELATIVE_SLACK)
                    && level >= load.highest * (1.0 - RELATIVE_SLACK)
            };
            let at_ceiling = level >= flow.ceiling * (1.0 - RELATIVE_SLACK);
            if !flow.uses.is_empty() && !at_ceiling && !flow.uses.iter().any(|link| is_bottleneck(link.link))
            {
                return Err(Violation::Starved { flow: index as u32, level });
            }
        }
        Ok(())
    }

    fn load(&self, link: &Link) -> Load {
        let level = |member: &Member| self.level(FlowIndex(member.flow));
        let rates = link.members.iter().map(|member| member.share * level(member));
        let carried = match link.sharing {
            Sharing::Shared => rates.sum(),
            Sharing::FatPipe => rates.fold(0.0, f64::max),
        };
        Load { carried, highest: link.members.iter().map(level).fold(0.0, f64::max) }
    }
}
