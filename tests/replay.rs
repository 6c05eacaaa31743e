//! Tests of the whole program: its answers, its determinism, and its command line.

#[path = "replay/acquisition.rs"]
mod acquisition;
#[path = "replay/agreement.rs"]
mod agreement;
#[path = "replay/answers.rs"]
mod answers;
#[path = "replay/any_source.rs"]
mod any_source;
#[path = "replay/arrivals.rs"]
mod arrivals;
#[path = "replay/calibration.rs"]
mod calibration;
#[path = "replay/certificates.rs"]
mod certificates;
#[path = "replay/changes.rs"]
mod changes;
#[path = "replay/checkpoints.rs"]
mod checkpoints;
#[path = "replay/collectives.rs"]
mod collectives;
#[path = "replay/command_line.rs"]
mod command_line;
#[path = "replay/configuration.rs"]
mod configuration;
#[path = "replay/contention.rs"]
mod contention;
#[path = "replay/critical_paths.rs"]
mod critical_paths;
#[path = "replay/determinism.rs"]
mod determinism;
#[path = "replay/diagnosis.rs"]
mod diagnosis;
#[path = "replay/dimemas.rs"]
mod dimemas;
#[path = "replay/dumpi.rs"]
mod dumpi;
#[path = "replay/energy.rs"]
mod energy;
#[path = "replay/epochs.rs"]
mod epochs;
#[path = "replay/exchanges.rs"]
mod exchanges;
#[path = "replay/explore.rs"]
mod explore;
#[path = "replay/extrapolation.rs"]
mod extrapolation;
#[path = "replay/failures.rs"]
mod failures;
#[path = "replay/files.rs"]
mod files;
#[path = "replay/first_sight.rs"]
mod first_sight;
#[path = "replay/forward.rs"]
mod forward;
#[path = "replay/goal.rs"]
mod goal;
#[path = "replay/goodput.rs"]
mod goodput;
#[path = "replay/ideal_machines.rs"]
mod ideal_machines;
#[path = "replay/jobs.rs"]
mod jobs;
#[path = "replay/launches.rs"]
mod launches;
#[path = "replay/links.rs"]
mod links;
#[path = "replay/manual.rs"]
mod manual;
#[path = "replay/matrix.rs"]
mod matrix;
#[path = "replay/memory.rs"]
mod memory;
#[path = "replay/message_routing.rs"]
mod message_routing;
#[path = "replay/mistakes.rs"]
mod mistakes;
#[path = "replay/network_models.rs"]
mod network_models;
#[path = "replay/noise.rs"]
mod noise;
#[path = "replay/offload.rs"]
mod offload;
#[path = "replay/one_sided.rs"]
mod one_sided;
#[path = "replay/online.rs"]
mod online;
#[path = "replay/optimisation.rs"]
mod optimisation;
#[path = "replay/packets.rs"]
mod packets;
#[path = "replay/pages.rs"]
mod pages;
#[path = "replay/parts.rs"]
mod parts;
#[path = "replay/processes.rs"]
mod processes;
#[path = "replay/programs.rs"]
mod programs;
#[path = "replay/recorded_speed.rs"]
mod recorded_speed;
#[path = "replay/reference.rs"]
mod reference;
#[path = "replay/regional_model.rs"]
mod regional_model;
#[path = "replay/schedules.rs"]
mod schedules;
#[path = "replay/scheduling.rs"]
mod scheduling;
#[path = "replay/schema.rs"]
mod schema;
mod shared;
#[path = "replay/storage.rs"]
mod storage;
#[path = "replay/sweep.rs"]
mod sweep;
#[path = "replay/switch_operations.rs"]
mod switch_operations;
#[path = "replay/tasks.rs"]
mod tasks;
#[path = "replay/timeline.rs"]
mod timeline;
#[path = "replay/trace_commands.rs"]
mod trace_commands;
#[path = "replay/training.rs"]
mod training;
#[path = "replay/validation.rs"]
mod validation;
#[path = "replay/waits.rs"]
mod waits;
#[path = "replay/what_if.rs"]
mod what_if;
#[path = "replay/windows.rs"]
mod windows;
