//! The section `[online]`.

use netmodel::quantity::{Seconds, Size, Speed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Settings of a program that runs online.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OnlineSection {
    /// Time of computations: the processor time that they take here (`measured`), their `instructions`, none, or `fixed_s` for each.
    #[schemars(extend("default" = OnlineComputation::default(), "x-page" = "online.md#time"))]
    pub computation: Option<OnlineComputation>,
    /// Speed of this machine, where computations take as long as on a host of it; `calibrate` writes it.
    #[schemars(extend("exclusiveMinimum" = 0, "x-default" = "`trace.speed`, else 1 Gf", "x-page" = "online.md#time"))]
    pub speed: Option<Speed>,
    /// Clocks that show simulated time: `MPI_Wtime`, or `all`, also those of the C library, and its sleeps.
    #[schemars(extend("default" = OnlineClock::default(), "x-page" = "online.md#time"))]
    pub clock: Option<OnlineClock>,
    /// Time of each computation, on a host as fast as this machine.
    #[schemars(extend("x-default" = "required with `fixed`"))]
    pub fixed_s: Option<Seconds>,
    /// Smallest allocation that is [folded](online.md#folded-memory): the same memory for all ranks.
    #[schemars(extend("x-default" = "none"))]
    pub fold_bytes: Option<Size>,
    /// Part of the time since the first failed [poll](online.md#time) of a row for which further ones fail unasked, at most 1 ms.
    #[schemars(extend("default" = 0))]
    pub poll_tolerance: Option<f64>,
    /// Warnings of buffers that the program changes while a nonblocking operation is [pending](online.md#errors), or that a message being received shares with another.
    #[schemars(extend("default" = false))]
    pub check_buffers: Option<bool>,
}

/// Time of computations of a program that runs online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnlineComputation {
    /// Processor time.
    #[default]
    Measured,
    /// None.
    None,
    /// Instructions.
    Instructions,
    /// The same for each.
    Fixed,
}

/// Clocks of a program that runs online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnlineClock {
    /// `MPI_Wtime`.
    #[default]
    Wtime,
    /// All clocks.
    All,
}

impl OnlineSection {
    /// Returns the speed of this machine [flop/s].
    ///
    /// # Errors
    /// It is not above zero.
    pub fn speed(&self) -> Result<Option<f64>, ConfigError> {
        match self.speed {
            Some(Speed(speed)) if speed <= 0.0 => Err(ConfigError::Value {
                section: "online",
                key: "speed",
                message: format!("found {speed}, expected more than zero"),
            }),
            speed => Ok(speed.map(|Speed(speed)| speed)),
        }
    }

    /// Returns the part of the time of failed polls in a row during which further ones fail unasked.
    ///
    /// # Errors
    /// It is no part.
    pub fn poll_tolerance(&self) -> Result<f64, ConfigError> {
        let tolerance = self.poll_tolerance.unwrap_or(0.0);
        let message = format!("found {tolerance}, expected a part from 0 to 1, such as 0.1");
        let is_valid = (0.0..=1.0).contains(&tolerance);
        let error = ConfigError::Value { section: "online", key: "poll_tolerance", message };
        if is_valid { Ok(tolerance) } else { Err(error) }
    }

    /// Returns the size of the smallest allocation that is folded \[B\].
    ///
    /// # Errors
    /// It is smaller than a page, whose parts ranks cannot share.
    pub fn fold_bytes(&self) -> Result<Option<u64>, ConfigError> {
        const PAGE: f64 = 4096.0;
        match self.fold_bytes {
            Some(Size(bytes)) if bytes < PAGE => Err(ConfigError::Value {
                section: "online",
                key: "fold_bytes",
                message: format!("found {bytes} B, expected at least {PAGE}, a page"),
            }),
            bytes => Ok(bytes.map(|Size(bytes)| bytes as u64)),
        }
    }

    /// Returns the time of each computation \[s\], zero unless they are fixed.
    ///
    /// # Errors
    /// It is missing, negative or not finite, or computations are not fixed.
    pub fn fixed_s(&self) -> Result<f64, ConfigError> {
        let error = |message| ConfigError::Value { section: "online", key: "fixed_s", message };
        let is_fixed = self.computation == Some(OnlineComputation::Fixed);
        match self.fixed_s {
            None if !is_fixed => Ok(0.0),
            Some(_) if !is_fixed => {
                let remedy =
                    "computations do not take it: set online.computation = \"fixed\", or leave fixed_s out";
                Err(error(remedy.to_owned()))
            }
            Some(Seconds(seconds)) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
            Some(Seconds(found)) => Err(error(format!("found {found}, expected a time from 0"))),
            None => Err(error("is missing: computation = \"fixed\" needs it".to_owned())),
        }
    }
}
