//! Lists in pages: tags, and the walk over `Link` headers that tags and referrers share.

use bytes::Bytes;
use reqwest::header::{HeaderValue, LINK};
use reqwest::{Method, Url};
use serde::Deserialize;

use crate::authorization::Scope;
use crate::client::Client;
use crate::error::{Error, What};
use crate::exchange::Exchange;
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_URL_BYTES};
use crate::reference::{Repository, Tag};
use crate::reply::Reply;
use crate::retry::Retry;
use crate::session::Session;

#[derive(Deserialize)]
struct TagPage {
    tags: Option<Vec<String>>,
}

impl Client {
    /// Lists the tags of a repository in registry order.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] over [`Limits::pages`](crate::Limits::pages) or [`Limits::entries`](crate::Limits::entries):
    /// a list is complete or an error. [`Error::Malformed`] if a tag breaks the grammar, or a page leads elsewhere.
    pub async fn tags(&self, repository: &Repository) -> Result<Vec<Tag>, Error> {
        let session = self.session(repository.registry())?;
        let limit = self.limits().entries;
        let scope = Scope::pull(repository);
        let mut tags = Vec::new();
        let take = |page: Page| {
            let page: TagPage = serde_json::from_slice(&page.body).map_err(|error| Error::json(What::Tags, &error))?;
            for tag in page.tags.unwrap_or_default() {
                if tags.len() >= limit {
                    return Err(Error::TooMany { what: What::Tags, limit });
                }
                tags.push(tag.parse().map_err(|_| Error::malformed(What::Tags, "a tag breaks the grammar of tags"))?);
            }
            Ok(())
        };
        let url = session.url(repository.path(), ["tags", "list"]);
        match self.within_deadline(session.walk(url, &scope, What::Tags, None, take)).await? {
            Walk::Complete => Ok(tags),
            Walk::Missing => Err(Error::NotFound { what: What::Tags }),
        }
    }
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) body: Bytes,
    pub(crate) media_type: String,
}

/// Result of a walk.
pub(crate) enum Walk {
    /// All pages were taken.
    Complete,
    /// The registry answered 404 to the first page.
    Missing,
}

impl Session {
    /// Fetches all pages of a list.
    pub(crate) async fn walk(
        &self,
        first: Url,
        scope: &Scope,
        what: What,
        accept: Option<&'static str>,
        mut take: impl FnMut(Page) -> Result<(), Error>,
    ) -> Result<Walk, Error> {
        let limit = self.limits().pages;
        let path = first.path().to_owned();
        let mut next = Some(first);
        let mut pages = 0;
        while let Some(url) = next {
            if pages >= limit {
                return Err(Error::TooMany { what, limit });
            }
            let reply = self.page(&url, scope, what, accept).await?;
            if reply.status() == 404 && pages == 0 {
                return Ok(Walk::Missing);
            }
            if reply.status() == 404 {
                return Err(Error::NotFound { what });
            }
            pages += 1;
            next = next_page(&url, &reply, what)?;
            if next.as_ref().is_some_and(|next| !self.is_own(next) || next.path() != path) {
                return Err(Error::malformed(what, "the next page is not in the same list of the same registry"));
            }
            let media_type = reply.media_type().unwrap_or_default().to_owned();
            take(Page { body: reply.body(what, MAX_DOCUMENT_BYTES, self.limits()).await?, media_type })?;
        }
        Ok(Walk::Complete)
    }

    async fn page(&self, url: &Url, scope: &Scope, what: What, accept: Option<&'static str>) -> Result<Reply, Error> {
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        loop {
            let mut exchange = Exchange::new(Method::GET, url.clone(), scope, what);
            if let Some(accept) = accept {
                exchange = exchange.header(reqwest::header::ACCEPT, HeaderValue::from_static(accept));
            }
            match self.checked(&exchange, &[200, 404]).await {
                Ok(reply) => return Ok(reply),
                Err(error) => retry.pause(error).await?,
            }
        }
    }
}

/// Returns the address of the next page. Source: RFC 8288, with the one relation that registries use.
fn next_page(current: &Url, reply: &Reply, what: What) -> Result<Option<Url>, Error> {
    for value in reply.header_values(LINK.as_str()) {
        if let Some(target) = next_target(value) {
            let url = Some(target).filter(|target| target.len() <= MAX_URL_BYTES).and_then(|t| current.join(t).ok());
            return url.map(Some).ok_or_else(|| Error::malformed(what, "the header `Link` has no valid address"));
        }
    }
    Ok(None)
}

fn next_target(value: &str) -> Option<&str> {
    let (target, parameters) = value.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        name.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"').eq_ignore_ascii_case("next")
    };
    parameters.split(';').any(is_next).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_in_a_link_header() {
        assert_eq!(next_target(r#"</v2/a/tags/list?last=b>; rel="next""#), Some("/v2/a/tags/list?last=b"));
        assert_eq!(next_target("<x>;rel=next"), Some("x"));
        assert_eq!(next_target(r#"<x>; rel="prev""#), None);
        assert_eq!(next_target("x; rel=next"), None);
    }
}
