//! Stars whose cables a platform lists: zones of routing "Cluster".

use crate::LinkId;

/// Links between one vertex and the middle of a star.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spoke {
    /// Links towards the middle and from it.
    pub(crate) cable: Option<(LinkId, LinkId)>,
    /// Links of the route from the vertex to itself.
    pub(crate) loopback: Option<Box<[LinkId]>>,
}

/// A star by its spokes, one per vertex. A route is up, backbone, down.
///
/// A vertex without cable, such as a router, sits in the middle. No link appears twice on a route (StarZone.cpp): the
/// backbone counts once. A vertex with a listed route to itself and no cable reaches no other vertex, as in SimGrid.
#[derive(Debug)]
pub(crate) struct ListedStar {
    spokes: Vec<Spoke>,
    backbone: Option<LinkId>,
}

impl ListedStar {
    /// Makes the star of these spokes.
    pub(crate) fn new(spokes: Vec<Spoke>, backbone: Option<LinkId>) -> Self {
        Self { spokes, backbone }
    }

    /// Returns whether the cables end at a backbone.
    pub(crate) fn has_backbone(&self) -> bool {
        self.backbone.is_some()
    }

    /// Appends the links from one vertex to another, or returns `None` if there is no route.
    pub(crate) fn route(&self, src: u32, dst: u32, out: &mut Vec<LinkId>) -> Option<()> {
        let (first, last) = (&self.spokes[src as usize], &self.spokes[dst as usize]);
        let start = out.len();
        let mut cross = |link: LinkId| {
            if !out[start..].contains(&link) {
                out.push(link);
            }
        };
        match &first.loopback {
            Some(loopback) if src == dst => loopback.iter().copied().for_each(cross),
            _ if [first, last].iter().any(|spoke| spoke.cable.is_none() && spoke.loopback.is_some()) => {
                return None;
            }
            _ => {
                let up = first.cable.into_iter().flat_map(|(up, _)| [Some(up), self.backbone]);
                let down = last.cable.into_iter().flat_map(|(_, down)| [self.backbone, Some(down)]);
                up.chain(down).flatten().for_each(&mut cross);
            }
        }
        Some(())
    }
}
