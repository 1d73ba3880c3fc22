//! Module `math`: functions that the language's own numbers lack. A result that is not a finite number is an error.

use std::cmp::Ordering;

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::float::UnpackFloat;
use starlark::values::none::NoneOr;
use starlark::values::tuple::UnpackTuple;
use starlark::values::{Heap, Value};

use super::error;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    const pi: f64 = std::f64::consts::PI;
    const e: f64 = std::f64::consts::E;

    /// Largest integer that is not above a number.
    fn floor<'v>(x: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        whole("math.floor", x, f64::floor, heap)
    }

    /// Smallest integer that is not below a number.
    fn ceil<'v>(x: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        whole("math.ceil", x, f64::ceil, heap)
    }

    /// Rounds to the nearest integer, or to a number of digits after the point; halves are rounded away from zero.
    fn round<'v>(
        x: Value<'v>,
        #[starlark(default = NoneOr::None)] digits: NoneOr<i32>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        let Some(digits) = digits.into_option() else { return whole("math.round", x, f64::round, heap) };
        let scale = 10f64.powi(digits.clamp(-300, 300));
        let scaled = number("math.round", x)? * scale;
        // A number so large that scaling leaves the range has no digits there.
        let rounded = if scaled.is_finite() { scaled.round() / scale } else { number("math.round", x)? };
        Ok(heap.alloc(finite("math.round", rounded)?))
    }

    /// Square root.
    fn sqrt(x: UnpackFloat) -> starlark::Result<f64> {
        finite("math.sqrt", x.0.sqrt())
    }

    /// Power of a number.
    fn pow(x: UnpackFloat, y: UnpackFloat) -> starlark::Result<f64> {
        finite("math.pow", x.0.powf(y.0))
    }

    /// Power of e.
    fn exp(x: UnpackFloat) -> starlark::Result<f64> {
        finite("math.exp", x.0.exp())
    }

    /// Logarithm, to the base e by default.
    fn log(x: UnpackFloat, #[starlark(default = NoneOr::None)] base: NoneOr<UnpackFloat>) -> starlark::Result<f64> {
        finite("math.log", base.into_option().map_or(x.0.ln(), |base| x.0.log(base.0)))
    }

    /// Sine of an angle in radians.
    fn sin(x: UnpackFloat) -> starlark::Result<f64> {
        finite("math.sin", x.0.sin())
    }

    /// Cosine of an angle in radians.
    fn cos(x: UnpackFloat) -> starlark::Result<f64> {
        finite("math.cos", x.0.cos())
    }

    /// Tangent of an angle in radians.
    fn tan(x: UnpackFloat) -> starlark::Result<f64> {
        finite("math.tan", x.0.tan())
    }

    /// Absolute value.
    fn abs<'v>(x: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        if number("math.abs", x)? < 0.0 { x.minus(heap) } else { Ok(x) }
    }

    /// Minimum of the numbers.
    fn min<'v>(#[starlark(args)] numbers: UnpackTuple<Value<'v>>) -> starlark::Result<Value<'v>> {
        extreme("math.min", numbers.items, Ordering::Less)
    }

    /// Maximum of the numbers.
    fn max<'v>(#[starlark(args)] numbers: UnpackTuple<Value<'v>>) -> starlark::Result<Value<'v>> {
        extreme("math.max", numbers.items, Ordering::Greater)
    }
}

fn number(function: &str, value: Value) -> starlark::Result<f64> {
    use starlark::values::UnpackValue;
    let number = UnpackFloat::unpack_value_opt(value).map(|number| number.0);
    number.ok_or_else(|| error(function, format!("expected a number, found {}", value.get_type())))
}

fn finite(function: &str, number: f64) -> starlark::Result<f64> {
    if number.is_finite() { Ok(number) } else { Err(error(function, "the result is not a finite number")) }
}

/// Returns an integer unchanged, and rounds a float by `round`.
fn whole<'v>(function: &str, value: Value<'v>, round: fn(f64) -> f64, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
    let rounded = round(number(function, value)?);
    if value.get_type() == "int" {
        return Ok(value);
    }
    // Every float of this size is an integer that an i64 holds.
    if rounded.abs() < 9e18 {
        return Ok(heap.alloc(rounded as i64));
    }
    Err(error(function, format!("{rounded} is out of range for an int")))
}

fn extreme<'v>(function: &str, numbers: Vec<Value<'v>>, wanted: Ordering) -> starlark::Result<Value<'v>> {
    let mut numbers = numbers.into_iter();
    let mut found = numbers.next().ok_or_else(|| error(function, "expected at least one number"))?;
    number(function, found)?;
    for other in numbers {
        number(function, other)?;
        if other.compare(found)? == wanted {
            found = other;
        }
    }
    Ok(found)
}
