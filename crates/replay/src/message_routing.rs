//! Choices of the routes of messages: what they need of a platform.

use netmodel::{MessageRouting, Platform};
use thiserror::Error;

use crate::models::Parallelism;
use crate::simulation::RunError;
use crate::spec::RunSpec;

/// The reason why messages cannot choose their routes.
#[derive(Debug, Error)]
enum RoutingError {
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

/// Checks that messages can choose their routes on the platform, if they are to with the model.
///
/// # Errors
/// If the platform has one route for each pair of hosts.
pub(crate) fn check(spec: &RunSpec, platform: &Platform) -> Result<(), RunError> {
    let routing = spec.network.routing;
    if routing == MessageRouting::Minimal || spec.model.parallelism != Parallelism::Windows {
        return Ok(());
    }
    let lacking_routes = match routing {
        MessageRouting::Spray => (!platform.has_several_routes(), RoutingError::OneRoute),
        _ => (!platform.has_indirect_routes(), RoutingError::NoChoice),
    };
    let why = [lacking_routes, (platform.has_detours(), RoutingError::Detours)];
    match why.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(RunError::Network(Box::new(why))),
        None => Ok(()),
    }
}
