//! Values of any type survive the conversion to JSON and back, and the schema, the validation and the lowering agree.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Val;

use crate::schema::typed::{arguments, check, output};
use crate::schema::{self, CompiledSchema};
use crate::tool::typed::{Case, Cases, Field, Function, Integer, Record, Type};

use super::{LiftError, lower, to_json};

const INTEGERS: [Integer; 8] =
    [Integer::U8, Integer::U16, Integer::U32, Integer::U64, Integer::S8, Integer::S16, Integer::S32, Integer::S64];

fn field(name: &str, ty: Type) -> Field {
    Field { name: name.to_owned(), docs: None, ty }
}

fn case(name: &str, ty: Option<Type>) -> Case {
    Case { name: name.to_owned(), docs: None, ty }
}

fn record(types: Vec<Type>) -> Type {
    let fields = types.into_iter().enumerate().map(|(index, ty)| field(&format!("field-{index}"), ty)).collect();
    Type::Record(Arc::new(Record { docs: None, fields }))
}

fn cases(count: usize) -> Arc<Cases> {
    Arc::new(Cases::new(None, (0..count).map(|index| case(&format!("case-{index}"), None)).collect()))
}

fn variant(types: Vec<Option<Type>>) -> Type {
    let cases = types.into_iter().enumerate().map(|(index, ty)| case(&format!("case-{index}"), ty)).collect();
    Type::Variant(Arc::new(Cases::new(None, cases)))
}

/// Function with one parameter and a result of this type.
fn function(ty: Type) -> Function {
    Function {
        interface: None,
        name: "f".to_owned(),
        docs: None,
        params: vec![field("value", ty.clone())],
        // Wrapped in a record: a `result` at the top level would mean success or failure.
        result: Some(Type::Record(Arc::new(Record { docs: None, fields: vec![field("value", ty)] }))),
    }
}

/// Any type.
fn types() -> impl Strategy<Value = Type> {
    let simple = prop_oneof![
        Just(Type::Bool),
        proptest::sample::select(INTEGERS.to_vec()).prop_map(Type::Integer),
        Just(Type::F32),
        Just(Type::F64),
        Just(Type::Char),
        Just(Type::String),
        Just(Type::Bytes),
        (1..6_usize).prop_map(|count| Type::Enum(cases(count))),
        (1..40_usize).prop_map(|count| Type::Flags(cases(count))),
    ];
    simple.prop_recursive(4, 24, 4, |inner| {
        let list = inner.clone().prop_map(|item| match item {
            Type::Integer(Integer::U8) => Type::Bytes,
            item => Type::List(Arc::new(item)),
        });
        let key = proptest::sample::select(vec![Type::String, Type::Char, Type::Bool, Type::Integer(Integer::S16)]);
        prop_oneof![
            list,
            (key, inner.clone()).prop_map(|(key, value)| Type::Map(Arc::new((key, value)))),
            vec(inner.clone(), 1..4).prop_map(|items| Type::Tuple(items.into())),
            vec(inner.clone(), 1..5).prop_map(record),
            vec(proptest::option::of(inner.clone()), 1..5).prop_map(variant),
            inner.clone().prop_map(|inner| Type::Option(Arc::new(inner))),
            (proptest::option::of(inner.clone()), proptest::option::of(inner))
                .prop_map(|sides| Type::Result(Arc::new(sides))),
        ]
    })
}

/// Any value of a type.
fn values(ty: &Type) -> BoxedStrategy<Val> {
    let some = |ty: &Option<Type>| match ty {
        None => Just(None).boxed(),
        Some(ty) => values(ty).prop_map(|value| Some(Box::new(value))).boxed(),
    };
    match ty {
        Type::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Type::Integer(Integer::U8) => any::<u8>().prop_map(Val::U8).boxed(),
        Type::Integer(Integer::U16) => any::<u16>().prop_map(Val::U16).boxed(),
        Type::Integer(Integer::U32) => any::<u32>().prop_map(Val::U32).boxed(),
        Type::Integer(Integer::U64) => prop_oneof![any::<u64>(), Just(u64::MAX)].prop_map(Val::U64).boxed(),
        Type::Integer(Integer::S8) => any::<i8>().prop_map(Val::S8).boxed(),
        Type::Integer(Integer::S16) => any::<i16>().prop_map(Val::S16).boxed(),
        Type::Integer(Integer::S32) => any::<i32>().prop_map(Val::S32).boxed(),
        Type::Integer(Integer::S64) => prop_oneof![any::<i64>(), Just(i64::MIN)].prop_map(Val::S64).boxed(),
        Type::F32 => {
            use proptest::num::f32::{ANY, NORMAL, SUBNORMAL};
            prop_oneof![ANY, NORMAL, SUBNORMAL, Just(-0.0), Just(f32::INFINITY)].prop_map(Val::Float32).boxed()
        }
        Type::F64 => {
            use proptest::num::f64::{ANY, NORMAL, SUBNORMAL};
            prop_oneof![ANY, NORMAL, SUBNORMAL, Just(-0.0), Just(f64::NEG_INFINITY)].prop_map(Val::Float64).boxed()
        }
        Type::Char => any::<char>().prop_map(Val::Char).boxed(),
        Type::String => any::<String>().prop_map(Val::String).boxed(),
        Type::Bytes => vec(any::<u8>().prop_map(Val::U8), 0..20).prop_map(Val::List).boxed(),
        Type::List(item) => vec(values(item), 0..4).prop_map(Val::List).boxed(),
        Type::Map(sides) if sides.0 == Type::String => btree_map(any::<String>(), values(&sides.1), 0..4)
            .prop_map(|map| Val::Map(map.into_iter().map(|(name, value)| (Val::String(name), value)).collect()))
            .boxed(),
        Type::Map(sides) => vec((values(&sides.0), values(&sides.1)), 0..4).prop_map(Val::Map).boxed(),
        Type::Tuple(types) => types.iter().map(values).collect::<Vec<_>>().prop_map(Val::Tuple).boxed(),
        Type::Record(record) => {
            let fields: Vec<_> =
                record.fields.iter().map(|field| (Just(field.name.clone()), values(&field.ty))).collect();
            fields.prop_map(Val::Record).boxed()
        }
        Type::Variant(cases) => {
            let each = cases.iter().map(|case| {
                let name = case.name.clone();
                some(&case.ty).prop_map(move |carried| Val::Variant(name.clone(), carried)).boxed()
            });
            proptest::strategy::Union::new(each).boxed()
        }
        Type::Enum(cases) => {
            let names: Vec<_> = cases.iter().map(|case| case.name.clone()).collect();
            proptest::sample::select(names).prop_map(Val::Enum).boxed()
        }
        Type::Flags(cases) => {
            let names: Vec<_> = cases.iter().map(|case| case.name.clone()).collect();
            let most = names.len();
            proptest::sample::subsequence(names, 0..=most).prop_map(Val::Flags).boxed()
        }
        Type::Option(inner) => {
            prop_oneof![Just(Val::Option(None)), values(inner).prop_map(|value| Val::Option(Some(Box::new(value))))]
                .boxed()
        }
        Type::Result(sides) => prop_oneof![
            some(&sides.0).prop_map(|carried| Val::Result(Ok(carried))),
            some(&sides.1).prop_map(|carried| Val::Result(Err(carried))),
        ]
        .boxed(),
    }
}

fn typed_values() -> impl Strategy<Value = (Type, Val)> {
    types().prop_flat_map(|ty| {
        let value = values(&ty);
        (Just(ty), value)
    })
}

/// Replaces one place of a JSON value, chosen by its number.
fn broken(value: &mut Value, place: &mut usize, with: &Value) {
    if *place == 0 {
        *value = with.clone();
        *place = usize::MAX;
        return;
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| {
            if *place != usize::MAX {
                broken(item, place, with);
            }
        }),
        Value::Object(members) => members.values_mut().for_each(|member| {
            if *place != usize::MAX {
                broken(member, place, with);
            }
        }),
        _ => {}
    }
}

/// Compares two values; every NaN equals every other.
fn same(left: &Val, right: &Val) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

/// Returns `true` if the schema of a type describes a text that only the validation can check.
fn holds_bytes(ty: &Type) -> bool {
    match ty {
        Type::Bytes => true,
        Type::List(inner) | Type::Option(inner) => holds_bytes(inner),
        Type::Map(sides) => holds_bytes(&sides.0) || holds_bytes(&sides.1),
        Type::Tuple(types) => types.iter().any(holds_bytes),
        Type::Record(record) => record.fields.iter().any(|field| holds_bytes(&field.ty)),
        Type::Variant(cases) => cases.iter().filter_map(|case| case.ty.as_ref()).any(holds_bytes),
        Type::Result(sides) => [&sides.0, &sides.1].into_iter().flatten().any(holds_bytes),
        _ => false,
    }
}

/// Value that a model could send instead of the correct one.
fn instead() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(-1_i64), Just(255), Just(256), Just(70_000), Just(i64::MIN), any::<i64>()]
            .prop_map(Value::from),
        Just(json!(u64::MAX)),
        Just(json!(0.5)),
        Just(json!(3.0)),
        Just(json!("")),
        Just(json!("case-0")),
        Just(json!("ok")),
        Just(json!("NaN")),
        Just(json!("ab")),
        Just(json!([])),
        Just(json!(["case-1", "case-1"])),
        Just(json!({})),
        Just(json!({"case-0": 1})),
        Just(json!({"field-0": 1, "field-1": "x"})),
        Just(json!({"some": null})),
        Just(json!({"error": "x"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_comes_back_as_it_was((ty, value) in typed_values()) {
        let function = function(ty);
        let result = function.result.clone().unwrap();
        let text = to_json(&result, &Val::Record(vec![("value".to_owned(), value.clone())]), usize::MAX).unwrap();
        let told = schema::parse(&text).unwrap();
        let members = told.as_object().unwrap();
        prop_assert_eq!(check(&function, members), Ok(()), "{}", text);
        let back = lower(&function, members).unwrap();
        prop_assert!(same(&back[0], &value), "{:?}\n{:?}\n{}", value, back[0], text);
        let described = CompiledSchema::compile(output(&function).as_ref()).unwrap();
        prop_assert_eq!(described.violations(&told), None, "{}", text);
        let bound = to_json(&result, &Val::Record(vec![("value".to_owned(), value)]), text.len() - 1);
        prop_assert_eq!(bound, Err(LiftError::TooLong));
    }

    #[test]
    fn the_schema_and_the_check_say_the_same(
        (ty, value) in typed_values(), place in 0..12_usize, with in instead(),
    ) {
        let holds_bytes = holds_bytes(&ty);
        let function = function(ty);
        let result = function.result.clone().unwrap();
        let text = to_json(&result, &Val::Record(vec![("value".to_owned(), value)]), usize::MAX).unwrap();
        let mut told = schema::parse(&text).unwrap();
        let mut place = place;
        broken(&mut told["value"], &mut place, &with);
        let checked = check(&function, told.as_object().unwrap());
        let described = CompiledSchema::compile(output(&function).as_ref()).unwrap().violations(&told);
        match (&checked, &described) {
            (Ok(()), Some(why)) => prop_assert!(false, "the schema refuses {}: {}", told, why),
            (Err(why), None) => prop_assert!(
                holds_bytes || why.contains("does not fit f32"), "the check refuses {}: {}", told, why),
            _ => {}
        }
        // Arguments that pass the validation can be lowered, and the reverse.
        prop_assert!(checked.is_err() || lower(&function, told.as_object().unwrap()).is_some());
        let asked = CompiledSchema::compile(Some(&arguments(&function))).unwrap().violations(&told);
        prop_assert!(asked.is_some() || described.is_none(), "{}", told);
    }
}

/// One readable value of each type: the mapping table.
#[test]
fn each_type_has_the_form_that_is_documented() {
    let unit = |names: &[&str]| Arc::new(Cases::new(None, names.iter().map(|name| case(name, None)).collect()));
    let shape = Type::Variant(Arc::new(Cases::new(None, vec![case("circle", Some(Type::F64)), case("nothing", None)])));
    let optional = |ty| Type::Option(Arc::new(ty));
    let point = Type::Record(Arc::new(Record {
        docs: None,
        fields: vec![field("x", Type::F64), field("label", optional(Type::String))],
    }));
    let integer = |integer| Type::Integer(integer);
    let pair = |value: Val| Some(Box::new(value));
    let map = |key, value| Type::Map(Arc::new((key, value)));
    let result = |ok, error| Type::Result(Arc::new((ok, error)));
    let table = [
        (Type::Bool, Val::Bool(true), json!(true)),
        (integer(Integer::U8), Val::U8(255), json!(255)),
        (integer(Integer::U16), Val::U16(65_535), json!(65_535)),
        (integer(Integer::U32), Val::U32(u32::MAX), json!(u32::MAX)),
        (integer(Integer::U64), Val::U64(u64::MAX), json!(u64::MAX)),
        (integer(Integer::S8), Val::S8(-128), json!(-128)),
        (integer(Integer::S16), Val::S16(-1), json!(-1)),
        (integer(Integer::S32), Val::S32(i32::MIN), json!(i32::MIN)),
        (integer(Integer::S64), Val::S64(i64::MIN), json!(i64::MIN)),
        (Type::F32, Val::Float32(0.1), json!(0.1)),
        (Type::F64, Val::Float64(1e300), json!(1e300)),
        (Type::F64, Val::Float64(f64::NAN), json!("NaN")),
        (Type::F32, Val::Float32(f32::NEG_INFINITY), json!("-Infinity")),
        (Type::Char, Val::Char('é'), json!("é")),
        (Type::String, Val::String("a\n".into()), json!("a\n")),
        (Type::Bytes, Val::List([1, 2, 255].map(Val::U8).into()), json!("AQL/")),
        (Type::List(Arc::new(integer(Integer::U16))), Val::List(vec![Val::U16(7)]), json!([7])),
        (
            Type::Tuple([Type::Bool, Type::String].into()),
            Val::Tuple(vec![Val::Bool(false), Val::String("x".into())]),
            json!([false, "x"]),
        ),
        (
            point,
            Val::Record(vec![("x".into(), Val::Float64(1.5)), ("label".into(), Val::Option(None))]),
            json!({"x": 1.5, "label": null}),
        ),
        (shape.clone(), Val::Variant("circle".into(), pair(Val::Float64(2.0))), json!({"circle": 2.0})),
        (shape, Val::Variant("nothing".into(), None), json!("nothing")),
        (Type::Enum(unit(&["low", "high"])), Val::Enum("high".into()), json!("high")),
        (Type::Flags(unit(&["read", "write"])), Val::Flags(vec!["write".into()]), json!(["write"])),
        (optional(Type::Bool), Val::Option(pair(Val::Bool(true))), json!(true)),
        (optional(optional(Type::Bool)), Val::Option(pair(Val::Option(None))), json!({"some": null})),
        (result(Some(Type::Bool), None), Val::Result(Ok(pair(Val::Bool(true)))), json!({"ok": true})),
        (result(Some(Type::Bool), None), Val::Result(Err(None)), json!("error")),
        (map(Type::String, Type::Bool), Val::Map(vec![(Val::String("k".into()), Val::Bool(true))]), json!({"k": true})),
        (map(integer(Integer::U8), Type::Bool), Val::Map(vec![(Val::U8(1), Val::Bool(true))]), json!([[1, true]])),
    ];
    for (ty, value, expected) in table {
        let text = to_json(&ty, &value, 1000).unwrap();
        assert_eq!(schema::parse(&text).unwrap(), expected, "{text}");
        let function = function(ty);
        let arguments = json!({ "value": expected });
        assert_eq!(check(&function, arguments.as_object().unwrap()), Ok(()), "{text}");
        let back = lower(&function, arguments.as_object().unwrap()).unwrap();
        assert!(same(&back[0], &value), "{back:?}");
    }
}

#[test]
fn what_is_no_value_of_its_type_is_refused_on_the_way_out() {
    let unlike = [
        (Type::Bool, Val::U8(1)),
        (Type::Bytes, Val::List(vec![Val::Bool(true)])),
        (Type::Enum(cases(1)), Val::Enum("other".into())),
        (record(vec![Type::Bool]), Val::Record(vec![("other".into(), Val::Bool(true))])),
        (variant(vec![None]), Val::Variant("case-0".into(), Some(Box::new(Val::Bool(true))))),
    ];
    for (ty, value) in unlike {
        assert_eq!(to_json(&ty, &value, 1000), Err(LiftError::TypeMismatch), "{ty:?}");
    }
}

/// Documented cost of a value on the host while it is passed.
#[test]
fn a_value_costs_no_more_than_forty_bytes() {
    assert!(size_of::<Val>() <= 40, "{}", size_of::<Val>());
}
