//! Interfaces of the crib that guests import, `toolcrib:tool` and `toolcrib:script`. Each function passes the request to the
//! services of the call, which judge the permission.

mod cache;
mod script;
mod tool;

pub(super) use script::add_to_linker as add_script_imports;
pub(super) use tool::add_to_linker as add_tool_imports;
