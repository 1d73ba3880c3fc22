//! References of a schema to its own parts. A reference to another schema is refused and never followed.

use serde_json::Value;

use super::Unsupported;

/// Keywords that reference a schema.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Checks that a schema references only itself.
///
/// # Errors
///
/// [`Unsupported`] with the first reference to another schema.
pub(super) fn check(schema: &Value) -> Result<(), Unsupported> {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let mut found = REFERENCES.iter().filter_map(|keyword| fields.get(*keyword)?.as_str());
                if let Some(outside) = found.find(|reference| !reference.starts_with('#')) {
                    let reason = format!("`$ref` {outside:?} leads outside the schema; only `#…` is followed");
                    return Err(Unsupported::new(reason));
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the target of a reference within a schema, which is a JSON pointer or an anchor.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = percent_decode(reference.strip_prefix('#')?)?;
    match fragment.is_empty() || fragment.starts_with('/') {
        true => root.pointer(&fragment),
        false => anchored(root, &fragment),
    }
}

/// Returns the first object with this anchor.
fn anchored<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                if ["$anchor", "$dynamicAnchor"].iter().any(|keyword| fields.get(*keyword).is_some_and(|it| it == name))
                {
                    return Some(value);
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    None
}

/// Decodes the percent-encoding of a URI fragment.
fn percent_decode(fragment: &str) -> Option<String> {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Prefixes every reference by pointer, for a schema that becomes a part of another at that place.
pub(super) fn relocate(schema: &mut Value, place: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| relocate(item, place)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(reference) if REFERENCES.contains(&name.as_str()) => {
                        let pointer =
                            reference.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
                        if let Some(pointer) = pointer {
                            *reference = format!("#{place}{pointer}");
                        }
                    }
                    value => relocate(value, place),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_within_the_schema_alone() {
        let schema = json!({"$defs": {"a b": {"title": "one"}, "c": {"$anchor": "two", "title": "two"}}});
        assert_eq!(resolve(&schema, "#/$defs/a%20b").unwrap()["title"], "one");
        assert_eq!(resolve(&schema, "#two").unwrap()["title"], "two");
        assert_eq!(resolve(&schema, "#"), Some(&schema));
        for absent in ["#/$defs/x", "#three", "#/%zz", "other.json"] {
            assert_eq!(resolve(&schema, absent), None, "{absent}");
        }
        for keyword in REFERENCES {
            let error = check(&json!({"properties": {"a": {keyword: "https://example.org/x"}}})).unwrap_err();
            assert!(error.to_string().contains("https://example.org/x"), "{error}");
        }
        assert_eq!(check(&schema), Ok(()));
    }

    #[test]
    fn a_moved_schema_keeps_its_references() {
        let mut schema = json!({"items": {"$ref": "#/$defs/a"}, "not": {"$ref": "#"}, "if": {"$ref": "#name"}});
        relocate(&mut schema, "/properties/result");
        let moved = json!({
            "items": {"$ref": "#/properties/result/$defs/a"}, "not": {"$ref": "#/properties/result"},
            "if": {"$ref": "#name"},
        });
        assert_eq!(schema, moved);
    }
}
