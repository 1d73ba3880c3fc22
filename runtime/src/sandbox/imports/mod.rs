//! Interfaces of the crib that guests import, `toolcrib:tool`, `toolcrib:script` and `toolcrib:code`. Each function passes the request to the
//! services of the call, which judge the permission.

mod cache;
mod code;
mod script;
mod tool;

pub(super) use code::add_to_linker as add_code_imports;
pub(super) use script::add_to_linker as add_script_imports;
pub(super) use tool::add_to_linker as add_tool_imports;
