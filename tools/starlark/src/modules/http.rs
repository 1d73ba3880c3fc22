//! Module `http`: requests to granted hosts. The host decides about each request. A redirect is returned as a response,
//! so that the script requests each hop itself.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::dict::DictRef;
use starlark::values::none::NoneOr;
use starlark::values::{Heap, Value};

use super::url::absolute;
use super::{Fields, error, fields};
use crate::json;
use toolcrib_guest::http::{Answer, Request, exchange};

/// Maximum headers of a request.
const MAX_HEADERS: usize = 100;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Sends a GET request and returns `ok` (the status is 200 to 299), `status`, `headers`, `body` and `url`.
    fn get<'v>(
        url: &'v str,
        headers: Option<DictRef<'v>>,
        #[starlark(default = NoneOr::None)] timeout_ms: NoneOr<u64>,
        heap: Heap<'v>,
    ) -> starlark::Result<Fields<'v>> {
        send("http.get", RequestArguments { method: "GET", url, body: "", json: None, headers, timeout_ms }, heap)
    }

    /// Sends a POST request with a body, or with a value as JSON.
    fn post<'v>(
        url: &'v str,
        #[starlark(default = "")] body: &'v str,
        headers: Option<DictRef<'v>>,
        #[starlark(default = NoneOr::None)] json: NoneOr<Value<'v>>,
        #[starlark(default = NoneOr::None)] timeout_ms: NoneOr<u64>,
        heap: Heap<'v>,
    ) -> starlark::Result<Fields<'v>> {
        let json = json.into_option();
        send("http.post", RequestArguments { method: "POST", url, body, json, headers, timeout_ms }, heap)
    }

    /// Sends a request with any method.
    fn request<'v>(
        method: &'v str,
        url: &'v str,
        #[starlark(default = "")] body: &'v str,
        headers: Option<DictRef<'v>>,
        #[starlark(default = NoneOr::None)] json: NoneOr<Value<'v>>,
        #[starlark(default = NoneOr::None)] timeout_ms: NoneOr<u64>,
        heap: Heap<'v>,
    ) -> starlark::Result<Fields<'v>> {
        let json = json.into_option();
        send("http.request", RequestArguments { method, url, body, json, headers, timeout_ms }, heap)
    }
}

/// Arguments of a request.
struct RequestArguments<'v> {
    method: &'v str,
    url: &'v str,
    body: &'v str,
    json: Option<Value<'v>>,
    headers: Option<DictRef<'v>>,
    timeout_ms: NoneOr<u64>,
}

fn send<'v>(function: &str, arguments: RequestArguments<'v>, heap: Heap<'v>) -> starlark::Result<Fields<'v>> {
    let request = request(&arguments).map_err(|what| error(function, what))?;
    let answer = exchange(&request);
    let answer = answer.map_err(|what| error(function, format!("request to {}: {what}", request.authority)))?;
    Ok(response(answer, arguments.url, heap))
}

fn response<'v>(answer: Answer, url: &str, heap: Heap<'v>) -> Fields<'v> {
    let headers = answer.headers.iter().map(|(name, value)| (name.as_str(), heap.alloc(value)));
    fields([
        ("ok", heap.alloc((200..300).contains(&answer.status))),
        ("status", heap.alloc(i32::from(answer.status))),
        ("headers", heap.alloc(fields(headers))),
        ("body", heap.alloc(String::from_utf8_lossy(&answer.body).as_ref())),
        ("url", heap.alloc(url)),
    ])
}

fn request(arguments: &RequestArguments) -> Result<Request, String> {
    let url = absolute(arguments.url)?;
    let scheme = url.scheme().as_str().to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return Err(format!("the scheme must be http or https, found `{scheme}`"));
    }
    let authority = url.authority().ok_or_else(|| format!("`{}` names no host", arguments.url))?;
    if authority.has_userinfo() {
        return Err("a user's name in the address is not sent; use the header `authorization`".to_owned());
    }
    let path = if url.path().is_empty() { "/" } else { url.path().as_str() };
    let path = match url.query() {
        Some(query) => format!("{path}?{}", query.as_str()),
        None => path.to_owned(),
    };
    let mut headers = headers(arguments.headers.as_ref())?;
    let body = match arguments.json {
        None => arguments.body.to_owned(),
        Some(_) if !arguments.body.is_empty() => return Err("give body or json, not both".to_owned()),
        Some(value) => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            json::encode(value).map_err(|what| format!("json is {what}"))?
        }
    };
    let timeout_ms = arguments.timeout_ms.into_option();
    let method = arguments.method.to_ascii_uppercase();
    Ok(Request {
        method,
        https: scheme == "https",
        authority: authority.as_str().to_owned(),
        path,
        headers,
        body,
        timeout_ms,
    })
}

fn headers(pairs: Option<&DictRef>) -> Result<Vec<(String, String)>, String> {
    let Some(pairs) = pairs else { return Ok(Vec::new()) };
    if pairs.len() > MAX_HEADERS {
        return Err(format!("{} headers, over the limit of {MAX_HEADERS}", pairs.len()));
    }
    let header = |(name, value): (Value, Value)| match (name.unpack_str(), value.unpack_str()) {
        (Some(name), Some(value)) => Ok((name.to_owned(), value.to_owned())),
        (None, _) => Err(format!("the name of a header must be a string, found {}", name.get_type())),
        (Some(name), None) => Err(format!("the header `{name}` must be a string, found {}", value.get_type())),
    };
    pairs.iter().map(header).collect()
}
