//! Base of the command line: terminal output and progress, parsing, files that commands read, signals, the user's
//! folders, HTTP requests and server connections. It knows no command and no setting.

pub mod async_runtime;
pub mod event_stream;
pub mod file_version;
pub mod folders;
pub mod headings;
pub mod http;
pub mod http_server;
pub mod input;
pub mod interrupt;
pub mod markdown;
pub mod oauth;
pub mod otlp;
pub mod parse;
pub mod progress;
pub mod render;
pub mod retry;
pub mod short_id;
pub mod source_files;
pub mod store_address;
pub mod suggestion;
pub mod terminal_mode;
pub mod whole_file;
#[cfg(windows)]
pub mod windows;
