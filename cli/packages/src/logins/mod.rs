//! Logins at remote servers by OAuth 2.1: the authorization by a browser, and tokens that are renewed. Tokens are kept in the store
//! of secrets; the list of logins holds none.

mod authorization;
mod discovery;
mod documents;
mod listener;
mod procedure;
mod record;
mod registration;
mod store;
mod tokens;

pub use procedure::{LoginOptions, log_in, log_out};
pub use record::{Login, Logins};
pub use store::TokenStore;
