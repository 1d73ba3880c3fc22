//! `toolcrib run` as a contract, through the built program: what it sends, what it makes of odd answers, when it asks
//! again, what it tells, and how it ends. Servers are local and scripted; nothing reaches a network.

mod answers;
mod conversation;
mod ending;
mod events;
mod patching;
mod place;
mod requests;
mod responses;
mod retries;
mod scripts;
