//! Contract of `toolcrib run`, through the built program: requests, handling of unusual responses, retries, output, and
//! the end. Servers are local and scripted; nothing reaches a network.

mod answers;
mod context;
mod conversation;
mod ending;
mod events;
mod patching;
mod place;
mod requests;
mod responses;
mod retries;
mod scripts;
