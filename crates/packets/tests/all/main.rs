//! Packets against closed forms, htsim and max-min fairness, and in any number of regions.

mod changes;
mod closed_forms;
mod congestion;
mod credits;
mod degraded;
mod driver;
mod htsim;
mod loads;
mod merlin;
mod networks;
mod operations;
mod oracle;
mod queues;
mod refusals;
mod regions;
mod routing;
mod sharing;
mod state;
mod switches;
mod table;
