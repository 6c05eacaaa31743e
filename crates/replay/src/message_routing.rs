//! Choices of the routes of messages: what they need.

use netmodel::{MessageRouting, Platform};
use thiserror::Error;

use crate::execution::Obstacle;
use crate::models::{Model, Parallelism};
use crate::simulation::RunError;
use crate::spec::{Epoch, RunSpec};

/// The reason why messages cannot choose their routes.
#[derive(Debug, Error)]
enum RoutingError {
    #[error(
        "network.routing: the model {0:?} gives messages the routes of the platform{advice}; set network.model = \"flow\", or leave the key out",
        advice = if *.0 == "packets" { ", or packets those of packets.routing" } else { "" }
    )]
    Model(&'static str),
    #[error(
        "network.routing: with epochs messages have one route for each pair of hosts, because regions know each other's loads at \
         boundaries only: set network.epoch_s = 0"
    )]
    Epochs,
    #[error(
        "network.routing: the platform has no ways over third groups, switches or hosts: expected one dragonfly of three groups or more, \
         torus, HyperX, Slim Fly, PolarFly, Jellyfish or dragonfly+, without backbone and limiters; for a fat tree set platform.routing = \
         \"random\", or network.routing = \"spray\""
    )]
    NoChoice,
    #[error(
        "network.routing: messages between the hosts that are farthest from each other have one route: expected one fat tree with several \
         parents or cables, rail-optimised fabric of several spines, dragonfly of three groups or more, torus, HyperX, Slim Fly, PolarFly, \
         Jellyfish or dragonfly+"
    )]
    OneRoute,
    #[error(
        "network.routing: messages go around links that are off by routes of the platform: leave one of the two out"
    )]
    Detours,
}

/// Checks that messages can choose their routes, if they are to.
///
/// # Errors
/// If the model, the platform or a certificate has one route for each pair of hosts.
pub(crate) fn check(spec: &RunSpec, platform: &Platform) -> Result<(), RunError> {
    if spec.network.routing == MessageRouting::Minimal {
        return Ok(());
    }
    if spec.certificate.is_some() {
        let why = "the checker knows one route for each pair of hosts: leave network.routing out";
        return Err(RunError::Network(Box::new(Obstacle::NotCertified(why))));
    }
    let Model { key, parallelism, .. } = spec.model;
    let lacking_routes = match spec.network.routing {
        MessageRouting::Spray => (!platform.has_several_routes(), RoutingError::OneRoute),
        _ => (!platform.has_indirect_routes(), RoutingError::NoChoice),
    };
    let why = [
        (*parallelism != Parallelism::Windows, RoutingError::Model(key)),
        (spec.epoch != Epoch::Exact, RoutingError::Epochs),
        lacking_routes,
        (platform.has_detours(), RoutingError::Detours),
    ];
    match why.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(RunError::Network(Box::new(why))),
        None => Ok(()),
    }
}
