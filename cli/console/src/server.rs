//! Connections, limits, and the checks of each request: the host that it names, the page that sent it, its session and its form.
//! Only then a view is made, on a thread of its own.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_base::http_server::{
    self, Connections, Hosts, Origins, RequestLimits, Use, WriteLimit, accept, head_size,
};
use toolcrib_base::interrupt;
use toolcrib_base::render::{self, Advice};

use super::events::Events;
use super::launcher::Launcher;
use super::layout;
use super::query::Query;
use super::response::{self, Answer, Refusal};
use super::revision::Subject;
use super::session::{Rights, Sessions};
use super::start;
use super::trial;
use super::view::Views;
use super::visit::Visit;

/// Names of this machine in a page's address.
const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];
/// Maximum connections at once; a further one ends the longest idle.
const MAX_CONNECTIONS: usize = 64;
/// Maximum views that are made at once; further ones wait.
const MAX_VIEWS: usize = 4;
/// Maximum size of a request's head in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Maximum form size in bytes, except on the pages of a call that is tried.
const MAX_FORM: usize = 16 << 10;
/// Time for a request's head, for its body, and for a browser to take a part of an answer.
const ARRIVAL: Duration = Duration::from_secs(10);
/// Time in which the last answers are sent when the program ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Page of the events, and its parameter with the page that listens.
const EVENTS: &str = "events";
const LISTENING: &str = "page";
/// Field of a form with its token.
const FORM_TOKEN: &str = "token";
/// Destinations of a request, as a browser states them, that show one page inside another.
const INSIDE: [&str; 5] = ["iframe", "frame", "embed", "object", "fencedframe"];

/// Listening console.
pub struct Console {
    listener: TcpListener,
    shares: Shares,
}

/// Addresses beside the one that decides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shares {
    /// An address that can only look.
    pub read: bool,
    /// An address that decides and starts runs.
    pub start: bool,
}

/// State of all connections.
struct Server {
    views: Arc<Views>,
    events: Arc<Events>,
    /// End of the program, which ends events.
    stop: CancellationToken,
    sessions: Sessions,
    connections: Connections,
    hosts: Hosts,
    origins: Origins,
    running: Arc<Semaphore>,
}

impl Console {
    /// Listens on a port of the loopback address; 0 is a free one.
    ///
    /// # Errors
    ///
    /// The port is in use, or may not be used.
    pub async fn listen(port: u16, shares: Shares) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
            let hint = "choose another port, or leave --port out for a free one";
            anyhow::Error::from(error).context(Advice::new(format!("cannot listen on 127.0.0.1:{port}"), hint))
        })?;
        Ok(Self { listener, shares })
    }

    /// Prints the addresses, and serves pages until the program is interrupted.
    ///
    /// # Errors
    ///
    /// The listener has no address, or standard output is closed.
    pub async fn serve(self, views: Views) -> anyhow::Result<ExitCode> {
        let _guard = interrupt::server();
        let port = self.listener.local_addr()?.port();
        let Shares { read, start } = self.shares;
        let further = [(Rights::Read, read), (Rights::Start, start)];
        let further = further.into_iter().filter(|(_, is_shared)| *is_shared).map(|(rights, _)| rights);
        let rights: Vec<Rights> = [Rights::Decide].into_iter().chain(further).collect();
        let (sessions, tokens) = Sessions::new(&rights);
        for token in tokens {
            render::print(&format!("http://127.0.0.1:{port}/?token={token}"))?;
        }
        render::aside(match (read, start) {
            (true, false) => {
                "open a link in a browser: the first can approve, the second is read-only; Ctrl-C stops the console"
            }
            (false, true) => {
                "open a link in a browser: the first can approve, the second also starts runs; Ctrl-C stops the console"
            }
            (true, true) => {
                "open a link in a browser: the first can approve, the second is read-only, the third also starts runs; \
                 Ctrl-C stops the console"
            }
            (false, false) => "open the link in a browser; Ctrl-C stops the console",
        });
        let hosts = HOSTS.iter().filter_map(|host| format!("{host}:{port}").parse().ok()).collect();
        let origins = HOSTS.iter().filter_map(|host| format!("http://{host}:{port}").parse().ok()).collect();
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let server = Arc::new(Server {
            views: Arc::new(views),
            events: Events::new(),
            stop: stop.clone(),
            sessions,
            connections: Connections::new(MAX_CONNECTIONS),
            hosts: Hosts::new(hosts),
            origins: Origins::new(origins),
            running: Arc::new(Semaphore::new(MAX_VIEWS)),
        });
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &server.connections) => accepted,
                () = interrupt::soft_stop() => break,
            };
            if let Some((stream, room)) = accepted {
                tasks.spawn(server.clone().connect(stream, room));
            }
        }
        tasks.close();
        stop.cancel();
        let views = server.views.clone();
        let runs = tokio::task::spawn_blocking(move || views.launcher.iter().for_each(Launcher::end));
        let last = tokio::time::timeout(LAST_ANSWERS, tasks.wait());
        let ended = async { tokio::join!(server.views.trials.end(), last, runs) };
        tokio::select! {
            _ = ended => {}
            () = interrupt::hard_stop() => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Server {
    /// Serves the requests of one connection, until its browser leaves, it makes room for another, or the program ends.
    async fn connect(self: Arc<Self>, stream: TcpStream, room: OwnedSemaphorePermit) {
        let client = self.connections.begin(room);
        let limits = RequestLimits { arrival: ARRIVAL, head: MAX_HEAD };
        let answer = |request: Request<Incoming>, used: Arc<Use>| {
            let server = self.clone();
            async move { server.answer(request, &used).await.unwrap_or_else(Refusal::answer) }
        };
        tokio::select! {
            () = http_server::serve(WriteLimit::new(stream, ARRIVAL), &client, limits, &self.stop, answer) => {}
            () = client.makes_room() => {}
        }
    }

    async fn answer(self: &Arc<Self>, request: Request<Incoming>, used: &Use) -> Result<Answer, Refusal> {
        if head_size(&request) > MAX_HEAD {
            return Err(Refusal::Head);
        }
        let (parts, body) = request.into_parts();
        if !self.hosts.includes(&parts.uri, &parts.headers) {
            return Err(Refusal::Host);
        }
        if is_inside(&parts.headers) {
            return Err(Refusal::Page);
        }
        let (path, query) = (parts.uri.path(), Query::read(parts.uri.query().unwrap_or_default().as_bytes()));
        match (&parts.method, path) {
            (&Method::GET, "/style.css") => return Ok(response::style()),
            (&Method::GET, "/live.js") => return Ok(response::script()),
            (&Method::GET, "/") => return self.begin(&query),
            (&Method::GET | &Method::POST, _) => {}
            _ => return Err(Refusal::Method),
        }
        let (name, page) = path.trim_start_matches('/').split_once('/').ok_or(Refusal::Session)?;
        let session = self.sessions.find(name, &parts.headers).ok_or(Refusal::Session)?;
        used.admit();
        if parts.method == Method::GET && page == EVENTS {
            let subject = Subject::of(query.get(LISTENING).unwrap_or_default());
            let events = self.events.listen(&self.views, &session, subject).ok_or(Refusal::Listeners)?;
            return Ok(response::events(events.take_until(self.stop.clone().cancelled_owned())));
        }
        let visit = Visit::new(session, page.to_owned(), query);
        if visit.is_of_trial() && !visit.session.decides() {
            return Err(Refusal::ReadOnly);
        }
        if parts.method == Method::GET {
            self.views.trials.settle(visit.page(), visit.query.get("id")).await;
            return self.show(visit, |views, visit| views.page(visit)).await;
        }
        if !self.is_own(&parts.headers) {
            return Err(Refusal::Page);
        }
        let form = match visit.is_of_trial() {
            true => Query::read_most(&read(body, trial::MAX_FORM).await?, trial::MAX_FIELDS),
            false => Query::read(&read(body, MAX_FORM).await?),
        };
        if !visit.session.sent(form.get(FORM_TOKEN)) {
            return Err(Refusal::Form);
        }
        if !visit.session.decides() {
            return Err(Refusal::ReadOnly);
        }
        if start::is_of_start(visit.page()) && !visit.session.starts() {
            return Err(Refusal::NoRuns);
        }
        self.show(visit, move |views, visit| views.act(visit, &form)).await
    }

    /// Begins a session with a token, and leads to an address without it.
    fn begin(&self, query: &Query) -> Result<Answer, Refusal> {
        let token = query.get(FORM_TOKEN).ok_or(Refusal::Session)?;
        let (session, cookie) = self.sessions.begin(token).ok_or(Refusal::Token)?;
        let mut answer = response::lead(&session.path(""));
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
        Ok(answer)
    }

    /// Returns `true` if a page of the console sent the request, as far as a browser says so.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let site = headers.get("sec-fetch-site");
        self.origins.allowed(headers).is_some() && site.is_none_or(|site| site == "same-origin")
    }

    /// Makes an answer on a thread of its own: a view reads files.
    async fn show(
        self: &Arc<Self>,
        visit: Visit,
        make: impl FnOnce(&Views, &Visit) -> Answer + Send + 'static,
    ) -> Result<Answer, Refusal> {
        let server = self.clone();
        let running = self.running.clone().acquire_owned().await.map_err(|_| Refusal::Late)?;
        let make = move || {
            // The thread goes on after a browser has left.
            let _running = running;
            make(&server.views, &visit)
        };
        let made = tokio::task::spawn_blocking(make).await;
        Ok(made.unwrap_or_else(|_| {
            let advice = "This is a bug in toolcrib; please report it.";
            response::page(StatusCode::INTERNAL_SERVER_ERROR, layout::notice("Internal error", advice))
        }))
    }
}

/// Returns `true` if a browser states that it would show the answer inside another page.
fn is_inside(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-dest").is_some_and(|dest| INSIDE.iter().any(|inside| dest == inside))
}

/// Reads a form of at most `max` bytes.
async fn read(body: Incoming, max: usize) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(ARRIVAL, Limited::new(body, max).collect()).await {
        Ok(Ok(form)) => Ok(form.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::Body),
        Ok(Err(_)) | Err(_) => Err(Refusal::Late),
    }
}
