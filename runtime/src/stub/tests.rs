//! Tests of whole stubs.

use serde_json::{Value, json};

use super::StubLanguage::{Python, Typescript};
use super::*;

fn tool<'a>(name: &'a str, input: &'a Value) -> StubTool<'a> {
    StubTool { name, description: "", input, output: None }
}

fn both(input: Value) -> [String; 2] {
    [Python, Typescript].map(|language| signature(language, &tool("t", &input)))
}

#[test]
fn the_stubs_of_two_tools_in_their_order() {
    let input = json!({"type": "object", "required": ["pattern"], "additionalProperties": false, "properties": {
        "pattern": {"type": "string", "description": "Regular expression"},
        "kind": {"enum": ["file", "folder", null], "default": "file"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
    }});
    let output = json!({"type": "array", "items": {"type": "object", "properties": {"line": {"type": "integer"}}}});
    let find = StubTool { name: "find", description: "Find a\nfile.", input: &input, output: Some(&output) };
    let empty = json!({"type": "object", "properties": {}});
    let python = "\
from typing import Any, Literal, NotRequired, TypedDict
class ToolError(Exception): ...
class Find_Result(TypedDict):
  line: NotRequired[int]
# A call returns its result. It can also be awaited.
class Tools:
  def find(self, *,
    pattern: str,  # Regular expression
    kind: Literal[\"file\", \"folder\"] | None = \"file\",
    limit: int = 10,  # 1..50
  ) -> list[Find_Result]:
    \"\"\"Find a file.\"\"\"
  def ask(self) -> Any: ...
tools: Tools
";
    assert_eq!(stubs(Python, &[find, tool("ask", &empty)]), python);
    let typescript = "\
declare class ToolError extends Error {}
declare const tools: {
  /** Find a file. */
  find(args: {
    pattern: string; // Regular expression
    kind?: \"file\" | \"folder\" | null; // = \"file\"
    limit?: number; // = 10; 1..50
  }): Promise<{ line?: number }[]>;
  ask(): Promise<any>;
};
";
    assert_eq!(stubs(Typescript, &[find, tool("ask", &empty)]), typescript);
}

#[test]
fn an_argument_that_is_no_keyword_is_given_in_an_object() {
    let [python, typescript] = both(json!({"properties": {"from": {"type": "string"}, "a b": {"type": "integer"}},
        "required": ["from"]}));
    let expected = "T_Arguments = TypedDict(\"T_Arguments\", {\n  \"from\": str,\n  \"a b\": NotRequired[int],\n})\n\
        def t(arguments: T_Arguments, /) -> Any: ...\n";
    assert_eq!(python, expected);
    assert_eq!(typescript, "t(args: { from: string; \"a b\"?: number }): Promise<any>;\n");
    // A dict by position would be the first argument.
    let [python, _] = both(json!({"properties": {"from": {"type": "object"}}}));
    assert!(python.ends_with("def t(\n  **arguments: Any  # **T_Arguments\n) -> Any: ...\n"), "{python}");
}

#[test]
fn a_recursive_reference_is_a_named_type() {
    let [python, typescript] = both(json!({"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node":
        {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}}]}}}));
    let expected = "type T_Node = str | dict[str, T_Node]\ndef t(*, tree: T_Node = ...) -> Any: ...\n";
    assert_eq!(python, expected);
    let expected = "type T_Node = string | { [key: string]: T_Node };\nt(args?: { tree?: T_Node }): Promise<any>;\n";
    assert_eq!(typescript, expected);
    let [python, typescript] = both(json!({"properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}}));
    assert_eq!(python, "def t(*, a: Any = ...) -> Any: ...\n", "it is an alternative of itself");
    assert_eq!(typescript, "t(args?: { a?: any }): Promise<any>;\n");
}

#[test]
fn all_of_is_merged_and_any_of_is_a_union() {
    let [python, typescript] = both(json!({"properties": {"a": {
        "allOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"$ref": "#/$defs/named"}]},
        "b": {"properties": {"k": {"const": 1}}, "anyOf": [{"$ref": "#/$defs/named"}, {"properties": {"z": true}}]},
        "c": {"properties": {"k": {"const": 1}}, "anyOf": [{"required": ["k"]}, {"required": ["l"]}]}},
        "$defs": {"named": {"type": "object", "properties": {"y": {"type": ["number", "null"]}}}}}));
    let expected = "t(args?: { a?: { x: number; y?: number | null }; b?: { k?: 1; y?: number | null } | \
        { k?: 1; z?: any }; c?: { k?: 1 } }): Promise<any>;\n";
    assert_eq!(typescript, expected);
    assert!(python.contains("class T_A(TypedDict):\n  x: int\n  y: NotRequired[float | None]\n"), "{python}");
    assert!(python.contains("b: T_B | T_B2 = ..."), "{python}");
}

#[test]
fn lists_maps_tuples_and_open_objects() {
    let [python, typescript] = both(json!({"additionalProperties": {"type": "integer"}, "properties": {
        "a": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 1, "items": {"type": "null"}},
        "b": {"type": "object", "patternProperties": {"^x": {"type": "boolean"}}},
        "c": {"type": "object", "properties": {"d": false, "e": {}}, "additionalProperties": true},
        "f": false, "g": {"type": "string", "nullable": true}, "h": {"type": "array"}}}));
    let expected = "t(args?: {\n  a?: [string, number?, ...null[]];\n  b?: Record<string, boolean>;\n  \
        c?: { e?: any; [key: string]: any };\n  g?: string | null;\n  h?: any[];\n  [key: string]: any;\n}): Promise<any>;\n";
    assert_eq!(typescript, expected);
    let expected = "def t(*, a: list[str | int | None] = ..., b: dict[str, bool] = ..., c: T_C | dict[str, Any] = ..., \
        g: str | None = ..., h: list[Any] = ..., **extra: int) -> Any: ...\n";
    assert!(python.ends_with(expected), "{python}");
}

#[test]
fn a_tool_with_the_name_of_a_type_hides_no_type() {
    let input = json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}});
    let text = stubs(Python, &["list", "import", "__init__", "new"].map(|name| tool(name, &input)));
    assert!(text.contains("import builtins\n") && text.contains("def new(self, *, a: builtins.list[str] = ...)"));
    assert!(text.contains("  # no stub: import\n  # no stub: __init__\n"), "{text}");
    let text = stubs(Typescript, &["new", "a b"].map(|name| tool(name, &input)));
    assert!(text.contains("\n  \"new\"(args?: {") && text.contains("\n  \"a b\"(args?: {"), "{text}");
}

#[test]
fn a_deep_schema_ends_in_any() {
    let nested =
        |levels| (0..levels).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let [python, _] = both(json!({"properties": {"a": nested(15)}}));
    assert!(python.contains(&format!("{}str", "list[".repeat(15))), "{python}");
    let [python, typescript] = both(json!({"properties": {"a": nested(100)}}));
    assert!(python.contains(&format!("{}Any", "list[".repeat(16))), "{python}");
    assert!(typescript.contains(&format!("a?: any{}", "[]".repeat(16))), "{typescript}");
    let chain = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"anyOf": [inner]}));
    assert!(both(json!({"properties": {"a": chain}}))[0].contains("a: Any"));
}

#[test]
fn a_long_chain_of_references_ends_in_any() {
    let link = |n: usize| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    let definitions: Map<String, Value> = (0..800).map(link).collect();
    let [python, _] = both(json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}));
    assert_eq!(python, "def t(*, a: Any = ...) -> Any: ...\n");
}

#[test]
fn a_long_tool_loses_its_comments_and_then_its_types() {
    let arguments = |count: usize| {
        let argument = |n| (format!("a{n}"), json!({"type": "string", "description": "x".repeat(100)}));
        json!({"properties": (0..count).map(argument).collect::<Map<_, _>>()})
    };
    for (count, is_described, is_typed) in [(100, true, true), (200, false, true), (2000, false, false)] {
        for text in both(arguments(count)) {
            assert_eq!((text.contains("xxx"), text.contains("a99")), (is_described, is_typed), "{count}");
            assert!(text.len() <= MAX_TOOL, "{}", text.len());
        }
    }
}

#[test]
fn a_schema_beyond_its_limit_states_no_types() {
    let described = |length: usize| {
        let argument = json!({"type": "string", "description": "x".repeat(length)});
        both(json!({"properties": {"a": argument}})).map(|text| text.contains("a:") || text.contains("a?:"))
    };
    assert_eq!(described(MAX_SCHEMA - 100), [true, true]);
    assert_eq!(described(MAX_SCHEMA), [false, false]);
}

#[test]
fn doubling_references_stay_small() {
    let twice = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        (format!("d{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}))
    };
    let definitions: Map<String, Value> = (0..60).map(twice).collect();
    for text in both(json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})) {
        assert!(text.len() < 4096, "{}", text.len());
    }
    let wide: Vec<Value> = (0..5000).map(|n| json!({"properties": {format!("p{n}"): true}})).collect();
    let fields: Map<String, Value> = (0..5000).map(|n| (format!("q{n}"), json!(true))).collect();
    for text in both(json!({"properties": fields, "anyOf": wide})) {
        assert!(text.len() < 300, "{}", text.len());
    }
}

#[test]
fn long_names_and_values_are_open() {
    let long = "n".repeat(1000);
    let [python, _] = both(json!({"properties": {"a": {"const": long}, "b": {"enum": (0..101).collect::<Vec<_>>()},
        long.as_str(): true}}));
    assert_eq!(python, "def t(*, a: str = ..., b: int = ..., **extra: Any) -> Any: ...\n");
    let any = json!(true);
    for language in [Python, Typescript] {
        assert!(signature(language, &tool(&long, &any)).len() < 200);
    }
}

#[test]
fn no_name_or_description_leaves_its_place() {
    let hostile = "\"\"\" */ \u{202e}\n\\ # type: ignore\n// @ts-ignore\nevil()";
    let schema = json!({"properties": {hostile: {"description": hostile, "enum": [hostile, 1], "default": hostile}}});
    let hostile = StubTool { name: "t", description: hostile, input: &schema, output: Some(&schema) };
    let python = stubs(Python, &[hostile]);
    let typescript = stubs(Typescript, &[hostile]);
    for text in [&python, &typescript] {
        assert!(!text.contains('\u{202e}') && !text.lines().any(|line| line.trim_start().starts_with("evil")));
    }
    // The name, the value, the default and the description.
    assert!(python.contains(r#"# = "\"\"\" */ \u202e\n\\ # type : ignore"#), "{python}");
    assert!(python.contains(r#""""\"\"" */ \\ # type: ignore // @ts-ignore evil()""""#), "{python}");
    assert!(typescript.contains(r#"/** """ *\/ \ # type: ignore // @ ts-ignore evil() */"#), "{typescript}");
}
