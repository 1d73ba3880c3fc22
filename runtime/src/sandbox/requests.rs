//! `wasi:http` before the gate: requests of guests in the engine's types, turned into the gate's and back. A guest sees an
//! error code; why it got it stands in the receipt.

use std::sync::Arc;

use http::uri::Scheme;
use http::{HeaderName, Request, Response};
use http_body_util::BodyExt;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks};

use crate::policy::FlagHints;
use crate::tool::Limits;

use super::network::{Fault, Gate, Phase, Times, is_own, refuse};
use super::usage::Usage;

/// The requests of one call.
pub(super) struct Requests {
    pub(super) usage: Arc<Usage>,
    pub(super) limits: Limits,
    pub(super) way: Way,
}

/// Where they go.
pub(super) enum Way {
    /// Nowhere; a flag may or may not help.
    Closed(FlagHints),
    /// Through the gate.
    Open(Arc<Gate>),
}

type Exchanged = Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Requests {
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        is_own(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_own)
    }

    /// Every scheme comes to the gate, so that what it refuses is noted.
    fn is_supported_scheme(&mut self, _: &Scheme) -> bool {
        true
    }

    /// The gate writes it.
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
    ) -> Box<dyn Future<Output = Exchanged> + Send> {
        let gate = match &self.way {
            Way::Open(gate) => gate.clone(),
            Way::Closed(prospect) => {
                let method = request.method().as_str();
                let fault = refuse(request.uri(), method, *prospect, &self.limits, &self.usage);
                return Box::new(async move { Err(code(&fault)) });
            }
        };
        Box::new(async move {
            let exchanged = gate.exchange(request, times(options.unwrap_or_default())).await;
            let (response, driver) = exchanged.map_err(|fault| code(&fault))?;
            let response = response.map(|body| body.map_err(|fault| code(&fault)).boxed_unsync());
            let driver: Box<dyn Future<Output = _> + Send> = Box::new(async move {
                driver.await;
                Ok(())
            });
            Ok((response, driver))
        })
    }
}

/// What a guest asks for, where it is less than the host's own.
fn times(asked: RequestOptions) -> Times {
    let RequestOptions { connect_timeout, first_byte_timeout, between_bytes_timeout } = asked;
    let Times { connect, first_byte, between_bytes } = Times::MAX;
    Times {
        connect: connect_timeout.map_or(connect, |asked| asked.min(connect)),
        first_byte: first_byte_timeout.map_or(first_byte, |asked| asked.min(first_byte)),
        between_bytes: between_bytes_timeout.map_or(between_bytes, |asked| asked.min(between_bytes)),
    }
}

/// What a guest is told of a fault.
fn code(fault: &Fault) -> Error {
    match fault {
        Fault::Denied(_) | Fault::TooMany(_) => Error::HttpRequestDenied,
        Fault::Prohibited(_) => Error::DestinationIpProhibited,
        Fault::Rejected(why) => Error::InternalError(Some(format!("rejected: {why}"))),
        Fault::TooManyAtOnce(_) | Fault::NoPlace => Error::ConnectionLimitReached,
        Fault::RequestTooLarge(most) => Error::HttpRequestBodySize(Some(*most as u64)),
        Fault::ResponseTooLarge(most) => Error::HttpResponseBodySize(Some(*most as u64)),
        Fault::HeadTooLarge(most) => Error::HttpResponseHeaderSectionSize(u32::try_from(*most).ok()),
        Fault::Name(why) => Error::DnsError { rcode: Some((*why).to_owned()), info_code: None },
        Fault::Connect(_) => Error::ConnectionRefused,
        Fault::Unreachable(_) => Error::DestinationUnavailable,
        Fault::Untrusted(_) => Error::TlsCertificateError,
        Fault::Tls(_) => Error::TlsProtocolError,
        Fault::Slow(Phase::Name, _) => Error::DnsTimeout,
        Fault::Slow(Phase::Connection, _) => Error::ConnectionTimeout,
        Fault::Slow(Phase::Head, _) => Error::HttpResponseTimeout,
        Fault::Slow(Phase::Body, _) => Error::ConnectionReadTimeout,
        Fault::Secret(_) => Error::InternalError(Some("the response held a secret".to_owned())),
        Fault::Protocol(_) => Error::HttpProtocolError,
        Fault::Host(_) => Error::ConfigurationError,
    }
}
