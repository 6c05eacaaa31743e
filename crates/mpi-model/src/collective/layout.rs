//! Placement of the members of a communicator on nodes.

/// Placement of the members of a communicator on nodes; built once and shared by all of them.
///
/// Nodes are numbered in the order of their leaders; the leader of a node is its lowest member. All queries take O(1);
/// memory is O(members).
///
/// ```
/// use mpi_model::collective::Layout;
/// let layout = Layout::new(&[7, 3, 7, 3, 5]);
/// assert_eq!((layout.nodes(), layout.node_of(3), layout.leader(2)), (3, 1, 4));
/// assert_eq!((layout.member(0, 1), layout.local_rank(2)), (2, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout(Shape);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// One member per node.
    OnePerNode {
        size: u32,
    },
    /// All members on one node.
    SingleNode {
        size: u32,
    },
    Mixed(Mixed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mixed {
    /// Node and local rank of each member.
    positions: Box<[(u32, u32)]>,
    /// Members, sorted by node.
    members: Box<[u32]>,
    /// Offset of each node in `members`, and the number of members at the end.
    starts: Box<[u32]>,
    leaders: Box<Layout>,
    /// Layout of the communicator of each node.
    locals: Box<[Layout]>,
    uniform: bool,
    blocked: bool,
}

static SINGLE_MEMBER: Layout = Layout(Shape::SingleNode { size: 1 });

impl Layout {
    /// Returns the layout of members on these hosts: `hosts[m]` is any id of the host of member `m`.
    pub fn new(hosts: &[u32]) -> Self {
        let size = u32::try_from(hosts.len()).expect("a communicator has fewer than 2^32 members");
        let mut order: Vec<u32> = (0..size).collect();
        order.sort_by_key(|&member| (hosts[member as usize], member));
        let mut groups: Vec<&[u32]> =
            order.chunk_by(|&a, &b| hosts[a as usize] == hosts[b as usize]).collect();
        // Hosts may have any ids; nodes are numbered by their lowest member.
        groups.sort_by_key(|group| group[0]);
        match groups.len() {
            1 => Self(Shape::SingleNode { size }),
            nodes if nodes == hosts.len() => Self::one_per_node(size),
            _ => Self(Shape::Mixed(Mixed::new(&groups, size))),
        }
    }

    /// Returns the layout with one member per node.
    pub fn one_per_node(size: u32) -> Self {
        Self(Shape::OnePerNode { size })
    }

    /// Returns the number of members.
    pub fn size(&self) -> u32 {
        match &self.0 {
            Shape::OnePerNode { size } | Shape::SingleNode { size } => *size,
            Shape::Mixed(mixed) => mixed.members.len() as u32,
        }
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u32 {
        match &self.0 {
            Shape::OnePerNode { size } => *size,
            Shape::SingleNode { .. } => 1,
            Shape::Mixed(mixed) => mixed.locals.len() as u32,
        }
    }

    /// Returns the node of a member.
    pub fn node_of(&self, member: u32) -> u32 {
        match &self.0 {
            Shape::OnePerNode { .. } => member,
            Shape::SingleNode { .. } => 0,
            Shape::Mixed(mixed) => mixed.positions[member as usize].0,
        }
    }

    /// Returns the local rank of a member: its index among the members of its node, from 0.
    pub fn local_rank(&self, member: u32) -> u32 {
        match &self.0 {
            Shape::OnePerNode { .. } => 0,
            Shape::SingleNode { .. } => member,
            Shape::Mixed(mixed) => mixed.positions[member as usize].1,
        }
    }

    /// Returns the number of members on a node.
    pub fn node_size(&self, node: u32) -> u32 {
        match &self.0 {
            Shape::OnePerNode { .. } => 1,
            Shape::SingleNode { size } => *size,
            Shape::Mixed(mixed) => mixed.starts[node as usize + 1] - mixed.starts[node as usize],
        }
    }

    /// Returns the member with a local rank on a node.
    pub fn member(&self, node: u32, place: u32) -> u32 {
        match &self.0 {
            Shape::OnePerNode { .. } => node,
            Shape::SingleNode { .. } => place,
            Shape::Mixed(mixed) => mixed.members[(mixed.starts[node as usize] + place) as usize],
        }
    }

    /// Returns the lowest member on a node.
    pub fn leader(&self, node: u32) -> u32 {
        self.member(node, 0)
    }

    /// Returns whether all nodes have the same number of members.
    pub fn is_uniform(&self) -> bool {
        match &self.0 {
            Shape::OnePerNode { .. } | Shape::SingleNode { .. } => true,
            Shape::Mixed(mixed) => mixed.uniform,
        }
    }

    /// Returns the number of members on each node, if it is the same on all.
    pub(super) fn ranks_per_node(&self) -> Option<u32> {
        self.is_uniform().then(|| self.node_size(0))
    }

    /// Returns whether the members of each node have consecutive ranks (block mapping).
    pub fn is_blocked(&self) -> bool {
        match &self.0 {
            Shape::OnePerNode { .. } | Shape::SingleNode { .. } => true,
            Shape::Mixed(mixed) => mixed.blocked,
        }
    }

    /// Returns the layout of the communicator of the leaders.
    pub fn leader_layout(&self) -> &Layout {
        match &self.0 {
            Shape::OnePerNode { .. } => self,
            Shape::SingleNode { .. } => &SINGLE_MEMBER,
            Shape::Mixed(mixed) => &mixed.leaders,
        }
    }

    /// Returns the layout of the communicator of a node.
    pub fn node_layout(&self, node: u32) -> &Layout {
        match &self.0 {
            Shape::OnePerNode { .. } => &SINGLE_MEMBER,
            Shape::SingleNode { .. } => self,
            Shape::Mixed(mixed) => &mixed.locals[node as usize],
        }
    }
}

impl Mixed {
    fn new(groups: &[&[u32]], size: u32) -> Self {
        let mut places = vec![(0, 0); size as usize];
        let mut members = Vec::with_capacity(size as usize);
        let mut starts = vec![0];
        for (node, group) in groups.iter().enumerate() {
            for (place, &member) in group.iter().enumerate() {
                places[member as usize] = (node as u32, place as u32);
            }
            members.extend_from_slice(group);
            starts.push(members.len() as u32);
        }
        let local = |group: &&[u32]| Layout(Shape::SingleNode { size: group.len() as u32 });
        Self {
            positions: places.into(),
            members: members.into(),
            starts: starts.into(),
            leaders: Box::new(Layout::one_per_node(groups.len() as u32)),
            locals: groups.iter().map(local).collect(),
            uniform: groups.iter().all(|group| group.len() == groups[0].len()),
            blocked: groups.iter().all(|group| group.windows(2).all(|pair| pair[1] == pair[0] + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_local_ranks_agree() {
        for hosts in [&[0, 0, 0][..], &[4], &[3, 2, 1], &[1, 0, 1, 0], &[5, 5, 2, 2, 2, 9]] {
            let layout = Layout::new(hosts);
            assert_eq!(layout.size() as usize, hosts.len());
            for member in 0..layout.size() {
                let node = layout.node_of(member);
                assert_eq!(layout.member(node, layout.local_rank(member)), member);
                assert_eq!(hosts[layout.leader(node) as usize], hosts[member as usize]);
                assert_eq!(layout.node_layout(node).size(), layout.node_size(node));
            }
            assert_eq!(layout.leader_layout().size(), layout.nodes());
            assert!((1..layout.nodes()).all(|node| layout.leader(node - 1) < layout.leader(node)));
        }
    }

    #[test]
    fn uniform_and_blocked_are_distinguished() {
        let of = |hosts: &[u32]| (Layout::new(hosts).is_uniform(), Layout::new(hosts).is_blocked());
        assert_eq!(of(&[0, 0, 1, 1]), (true, true));
        assert_eq!(of(&[0, 1, 0, 1]), (true, false));
        assert_eq!(of(&[0, 0, 1]), (false, true));
        assert_eq!(of(&[0, 1, 0]), (false, false));
    }
}
