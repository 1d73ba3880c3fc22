//! A person's part in what may run: being asked on a terminal, what was agreed to for always, and what can be done about
//! a refusal. It decides nothing by itself: the rules and the record of the tool say what is asked.

mod keyboard;
mod person;
mod refusal;
mod sheet;

pub(crate) use person::Person;
pub(crate) use refusal::hint;
