//! GOAL schedules: formats, engines, and LogGOPSim's answers.

mod archive;
mod binary;
mod oracle;
mod published;
mod random;
mod text;
