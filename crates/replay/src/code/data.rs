//! The data of messages: real values, or sizes.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The data of a message: a size, and a value if the receiver is to get one. A clone shares the value.
#[derive(Clone)]
pub struct Data {
    pub(super) bytes: u64,
    value: Option<Arc<dyn Any + Send + Sync>>,
}

impl Data {
    /// Creates data of a size \[B\], with a value.
    pub fn new<T: Any + Send + Sync>(bytes: u64, value: T) -> Self {
        Self { bytes, value: Some(Arc::new(value)) }
    }

    /// Creates data of the size of a value in memory.
    pub fn of<T: Any + Send + Sync>(value: T) -> Self {
        Self::new(size_of::<T>() as u64, value)
    }

    /// Creates data of the size of some elements in memory. The value is a `Vec<T>`.
    pub fn of_vec<T: Any + Send + Sync>(values: Vec<T>) -> Self {
        Self::new(size_of_val(&*values) as u64, values)
    }

    /// Returns the size \[B\].
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the value; `None` if there is only a size, or the value has another type.
    pub fn value<T: Any>(&self) -> Option<&T> {
        self.value.as_deref()?.downcast_ref()
    }

    pub(super) fn has_value(&self) -> bool {
        self.value.is_some()
    }
}

/// Data without a value.
impl From<u64> for Data {
    fn from(bytes: u64) -> Self {
        Self { bytes, value: None }
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, value } = self;
        f.debug_struct("Data").field("bytes", bytes).field("has_value", &value.is_some()).finish()
    }
}

/// A message that a rank has received, or that a probe has found. What is found only has no value yet.
#[derive(Clone, Debug)]
pub struct Message {
    /// The sender, a rank of the communicator.
    pub source: u32,
    /// The tag.
    pub tag: u32,
    /// The data.
    pub data: Data,
}

impl Message {
    /// Returns the value; `None` if there is only a size, or the value has another type.
    pub fn value<T: Any>(&self) -> Option<&T> {
        self.data.value()
    }
}

/// The data of all ranks of a communicator, in their order.
#[derive(Clone, Debug)]
pub struct Values(pub(super) Arc<[OnceLock<Data>]>);

impl Values {
    /// Yields the data of all ranks.
    pub fn iter(&self) -> impl Iterator<Item = &Data> {
        self.0.iter().filter_map(OnceLock::get)
    }

    /// Yields the values of the ranks that have one of this type.
    pub fn values<T: Any>(&self) -> impl Iterator<Item = &T> {
        self.iter().filter_map(Data::value)
    }
}
