//! The JSON schema of hypotheses.

use serde_json::{Map, Value, json};
use trace_tools::transform::{Key, KeyValues, ORIGINAL, TRANSFORMS, TransformKind};

/// Returns the JSON schema (draft 7) of files of hypotheses, made from the table of transformations.
///
/// The program checks more than a schema can say: names that occur twice, keys that exclude each other, ranges that end before they
/// begin.
pub fn hypotheses_schema() -> Value {
    let name = json!({
        "type": "string",
        "description": "Name in the results, also that of files.",
        "pattern": "^[^./\\\\\\x00-\\x1f\\x7f][^/\\\\\\x00-\\x1f\\x7f]*$",
        "maxLength": 100,
        "not": { "const": ORIGINAL },
    });
    let set = json!({
        "type": "array",
        "description": "Other values of the configuration, section.key=value.",
        "items": { "type": "string", "pattern": "^[^.=]+\\.[^=]+=" },
    });
    let kinds: Vec<Value> = TRANSFORMS.iter().map(of_kind).collect();
    let transform = json!({
        "type": "array",
        "description": "Transformations, each of which changes what the ones before it leave.",
        "items": { "oneOf": kinds },
    });
    let hypothesis = json!({
        "type": "object",
        "properties": { "name": name, "set": set, "transform": transform },
        "required": ["name"],
        "additionalProperties": false,
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pdes-replay hypotheses",
        "type": "object",
        "properties": {
            "hypothesis": {
                "type": "array",
                "description": "How the program would be different.",
                "minItems": 1,
                "items": hypothesis,
            },
        },
        "required": ["hypothesis"],
        "additionalProperties": false,
    })
}

/// Returns the schema of the transformations of a kind.
fn of_kind(kind: &TransformKind) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({ "const": kind.key, "description": kind.semantics }));
    let keys = kind.keys.iter().copied().chain(kind.subject.described_keys());
    properties.extend(keys.map(|key| (key.name.to_owned(), of_key(&key))));
    let required = kind.keys.iter().filter(|key| key.is_required).map(|key| key.name);
    let required: Vec<&str> = ["kind"].into_iter().chain(required).collect();
    json!({
        "type": "object",
        "description": kind.semantics,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn of_key(key: &Key) -> Value {
    let mut schema = match key.values {
        KeyValues::Amount(f64::MAX) => json!({ "type": "number", "minimum": 0 }),
        KeyValues::Amount(most) => json!({ "type": "number", "minimum": 0, "maximum": most }),
        KeyValues::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
        KeyValues::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        KeyValues::Choice(names) => json!({ "enum": names }),
        KeyValues::Reach => json!({ "anyOf": [whole_number(), { "const": "place" }] }),
        KeyValues::Flag => json!({ "type": "boolean" }),
        KeyValues::Names => one_or_list(&json!({ "type": "string", "minLength": 1 })),
        KeyValues::Numbers => numbers(),
        KeyValues::Ranks => json!({ "type": "array", "items": whole_number(), "uniqueItems": true }),
    };
    schema["description"] = json!(key.meaning);
    schema
}

fn whole_number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn numbers() -> Value {
    let range = r"\s*\d+\s*(-\s*(\d+)?\s*)?";
    let text = json!({ "type": "string", "pattern": format!("^{range}(,{range})*$") });
    one_or_list(&json!({ "anyOf": [whole_number(), text] }))
}

fn one_or_list(one: &Value) -> Value {
    json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}
