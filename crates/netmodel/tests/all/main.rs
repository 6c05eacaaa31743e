//! Platforms and network models, against times derived by hand, SimGrid's answers, and each other.

mod abandonment;
mod accelerators;
mod changes;
mod costs;
mod disk_oracle;
mod epoch;
mod flow;
mod golden_routes;
mod link_loads;
mod maxmin;
mod maxmin_oracle;
mod message_routing;
mod observers;
mod routes;
#[path = "../../../../tests/shared.rs"]
mod shared;
mod spray;
mod storage;
mod storage_state;
mod support;
mod switches;
mod toml;
mod xml;
mod zone_errors;
mod zones;
