//! Connections to a storage by the usual HTTP client, with a limit on answers.

use std::future::Future;
use std::pin::Pin;

use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use reqwest::Client;

/// Connector with a client, whose answers have at most a number of bytes.
#[derive(Debug)]
pub(crate) struct BoundedConnector {
    pub(crate) client: Client,
    pub(crate) max_answer: usize,
}

#[derive(Debug)]
struct BoundedClient {
    client: Client,
    max_answer: usize,
}

impl HttpConnector for BoundedConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(BoundedClient { client: self.client.clone(), max_answer: self.max_answer }))
    }
}

impl HttpService for BoundedClient {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (parts, body) = HttpService::call(&self.client, request).await?.into_parts();
            let body = Limited::new(body, self.max_answer).map_err(|error| match error.downcast::<HttpError>() {
                Ok(error) => *error,
                Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
            });
            Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
        })
    }
}
