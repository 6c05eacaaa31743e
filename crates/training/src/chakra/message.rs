//! The messages of the format (`et_def.proto`), as far as they are read, and its form in JSON.

/// A node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NodeMessage {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "6")]
    pub(super) start_micros: u64,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<AttributeMessage>,
}

/// An attribute: a name and one value. Writers use any kind of integer for an integer.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AttributeMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, optional, tag = "7")]
    pub(super) int32: Option<i32>,
    #[prost(int64, optional, tag = "9")]
    pub(super) int64: Option<i64>,
    #[prost(uint32, optional, tag = "11")]
    pub(super) uint32: Option<u32>,
    #[prost(uint64, optional, tag = "13")]
    pub(super) uint64: Option<u64>,
    #[prost(sint32, optional, tag = "15")]
    pub(super) sint32: Option<i32>,
    #[prost(sint64, optional, tag = "17")]
    pub(super) sint64: Option<i64>,
    #[prost(fixed32, optional, tag = "19")]
    pub(super) fixed32: Option<u32>,
    #[prost(fixed64, optional, tag = "21")]
    pub(super) fixed64: Option<u64>,
    #[prost(sfixed32, optional, tag = "23")]
    pub(super) sfixed32: Option<i32>,
    #[prost(sfixed64, optional, tag = "25")]
    pub(super) sfixed64: Option<i64>,
    #[prost(bool, optional, tag = "27")]
    pub(super) bool: Option<bool>,
    #[prost(string, optional, tag = "29")]
    pub(super) string: Option<String>,
}

impl AttributeMessage {
    /// Returns a value of any kind of integer; `None` if it has none.
    pub(super) fn integer(&self) -> Option<i128> {
        let signed = [self.int32, self.sint32, self.sfixed32].into_iter().flatten().map(i128::from);
        let signed =
            signed.chain([self.int64, self.sint64, self.sfixed64].into_iter().flatten().map(i128::from));
        let unsigned = [self.uint32, self.fixed32].into_iter().flatten().map(i128::from);
        let unsigned = unsigned.chain([self.uint64, self.fixed64].into_iter().flatten().map(i128::from));
        signed.chain(unsigned).chain(self.bool.map(i128::from)).next()
    }
}

/// A file in JSON.
#[derive(serde::Deserialize)]
pub(super) struct JsonFile {
    pub(super) workload_graph: Vec<JsonNode>,
}

/// A node in JSON.
#[derive(serde::Deserialize)]
pub(super) struct JsonNode {
    #[serde(rename = "Id")]
    pub(super) id: u64,
    #[serde(rename = "Name", default)]
    pub(super) name: String,
    #[serde(rename = "NodeType")]
    pub(super) kind: i32,
    #[serde(default)]
    pub(super) ctrl_deps: Vec<u64>,
    #[serde(default)]
    pub(super) data_deps: Vec<u64>,
    /// Begin [us].
    #[serde(default, rename = "start_time_micros")]
    pub(super) start: u64,
    /// Duration [us].
    #[serde(default)]
    pub(super) runtime: u64,
    /// All other fields are attributes.
    #[serde(flatten)]
    pub(super) attributes: serde_json::Map<String, serde_json::Value>,
}
