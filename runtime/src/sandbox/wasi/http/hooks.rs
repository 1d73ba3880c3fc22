//! Hooks of `wasi:http`: requests in the engine's types, converted to the egress types and back. A guest receives an
//! error code; the receipt contains the reason.

use std::sync::Arc;

use http::uri::Scheme;
use http::{HeaderName, Request, Response};
use http_body_util::BodyExt;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks};

use crate::policy::FlagHints;
use crate::sandbox::usage::{RequestError, RequestPhase, Usage};
use crate::tool::Limits;

use super::egress::{HttpEgress, Timeouts, refuse};
use super::headers::is_own;

/// Hooks of one call.
pub(in crate::sandbox) struct HttpHooks {
    usage: Arc<Usage>,
    limits: Limits,
    access: HttpAccess,
}

/// Network access of a call.
pub(in crate::sandbox) enum HttpAccess {
    /// No access; a flag may allow it.
    Closed(FlagHints),
    /// Access through the egress.
    Open(Arc<HttpEgress>),
}

impl HttpHooks {
    pub(in crate::sandbox) fn new(access: HttpAccess, limits: &Limits, usage: &Arc<Usage>) -> Self {
        Self { usage: usage.clone(), limits: *limits, access }
    }

    /// Returns the usage of the call.
    pub(in crate::sandbox) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }
}

type SendResult = Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for HttpHooks {
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        is_own(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_own)
    }

    /// Passes every scheme to the egress, which logs those that it refuses.
    fn is_supported_scheme(&mut self, _: &Scheme) -> bool {
        true
    }

    /// Leaves the `Host` header to the egress.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        64 << 10
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = SendResult> + Send> {
        let egress = match &self.access {
            HttpAccess::Open(egress) => egress.clone(),
            HttpAccess::Closed(hints) => {
                let method = request.method().as_str();
                let error = refuse(request.uri(), method, hints, &self.limits, &self.usage);
                return Box::new(async move { Err(code(&error)) });
            }
        };
        Box::new(async move {
            let exchange = egress.exchange(request, timeouts(options.unwrap_or_default())).await;
            let (response, driver) = exchange.map_err(|error| code(&error))?;
            let response = response.map(|body| body.map_err(|error| code(&error)).boxed_unsync());
            let driver: Box<dyn Future<Output = _> + Send> = Box::new(async move {
                driver.await;
                Ok(())
            });
            Ok((response, driver))
        })
    }
}

/// Returns the timeouts that a guest requests, up to the maximum.
fn timeouts(options: RequestOptions) -> Timeouts {
    let RequestOptions { connect_timeout, first_byte_timeout, between_bytes_timeout } = options;
    let Timeouts { connect, first_byte, between_bytes } = Timeouts::MAX;
    Timeouts {
        connect: connect_timeout.map_or(connect, |requested| requested.min(connect)),
        first_byte: first_byte_timeout.map_or(first_byte, |requested| requested.min(first_byte)),
        between_bytes: between_bytes_timeout.map_or(between_bytes, |requested| requested.min(between_bytes)),
    }
}

/// Returns the error code for the guest.
fn code(error: &RequestError) -> Error {
    match error {
        RequestError::Denied(_) | RequestError::TooMany(_) => Error::HttpRequestDenied,
        RequestError::Prohibited(_) => Error::DestinationIpProhibited,
        RequestError::Rejected(reason) => Error::InternalError(Some(format!("rejected: {reason}"))),
        RequestError::TooManyHeld => Error::InternalError(Some(error.to_string())),
        RequestError::TooManyAtOnce(_) | RequestError::NoDescriptors => Error::ConnectionLimitReached,
        RequestError::RequestTooLarge(max) => Error::HttpRequestBodySize(Some(*max as u64)),
        RequestError::ResponseTooLarge(max) => Error::HttpResponseBodySize(Some(*max as u64)),
        RequestError::HeadTooLarge(max) => Error::HttpResponseHeaderSectionSize(u32::try_from(*max).ok()),
        RequestError::Name(reason) => Error::DnsError { rcode: Some((*reason).to_owned()), info_code: None },
        RequestError::Connect(_) => Error::ConnectionRefused,
        RequestError::Unreachable(_) => Error::DestinationUnavailable,
        RequestError::Untrusted(_) => Error::TlsCertificateError,
        RequestError::Tls(_) => Error::TlsProtocolError,
        RequestError::Slow(RequestPhase::Name, _) => Error::DnsTimeout,
        RequestError::Slow(RequestPhase::Connection, _) => Error::ConnectionTimeout,
        RequestError::Slow(RequestPhase::Head, _) => Error::HttpResponseTimeout,
        RequestError::Slow(RequestPhase::Body, _) => Error::ConnectionReadTimeout,
        RequestError::Secret(_) => Error::InternalError(Some("the response held a secret".to_owned())),
        RequestError::Protocol(_) => Error::HttpProtocolError,
        RequestError::Host(_) => Error::ConfigurationError,
    }
}
