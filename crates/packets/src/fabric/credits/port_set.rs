//! Sets of the output ports of a node.

/// Output ports of a node, taken in their order.
#[derive(Debug)]
pub(super) struct PortSet {
    /// First port of the node.
    pub(super) first: u32,
    pub(super) is_empty: bool,
    /// A bit for each port.
    words: Vec<u64>,
}

impl PortSet {
    /// Makes an empty set with room for the ports of a node.
    pub(super) fn new(ports: u32) -> Self {
        Self { first: 0, is_empty: true, words: vec![0; ports.div_ceil(u64::BITS) as usize] }
    }

    #[inline]
    pub(super) fn insert(&mut self, port: u32) {
        let place = port - self.first;
        self.words[(place / u64::BITS) as usize] |= 1 << (place % u64::BITS);
        self.is_empty = false;
    }

    /// Takes the ports of another set into this one, which is empty.
    #[inline]
    pub(super) fn take_all(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.words, &mut other.words);
        self.first = other.first;
        other.is_empty = true;
    }

    /// Returns the number of words, each with a bit for each of so many ports.
    #[inline]
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// Takes the ports of a word out of the set, in their order.
    #[inline]
    pub(super) fn take(&mut self, word: usize) -> impl Iterator<Item = u32> + use<> {
        let first = self.first + word as u32 * u64::BITS;
        super::super::bits(std::mem::take(&mut self.words[word])).map(move |bit| first + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_many_words_are_taken_in_order() {
        let (mut touched, mut granting) = (PortSet::new(200), PortSet::new(200));
        touched.first = 1000;
        for port in [1199, 1064, 1000, 1063, 1064, 1128] {
            touched.insert(port);
        }
        granting.take_all(&mut touched);
        assert!(touched.is_empty);
        // One that is touched meanwhile comes in the next round.
        touched.insert(1001);
        let round = |set: &mut PortSet| (0..set.words()).flat_map(|word| set.take(word)).collect::<Vec<_>>();
        assert_eq!(round(&mut granting), [1000, 1063, 1064, 1128, 1199]);
        granting.take_all(&mut touched);
        assert_eq!(round(&mut granting), [1001]);
    }
}
