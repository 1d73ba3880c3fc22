//! Types of `toolcrib:tool`, `toolcrib:script` and `toolcrib:code`, generated from the WIT packages.

/// Package `toolcrib:tool`. Every export of a rich tool but one is optional; the world names them all for their types.
pub(super) mod tool {
    wasmtime::component::bindgen!({
        path: ["../wit/tool"],
        inline: "
            package toolcrib:host;
            world rich-tool {
                import toolcrib:tool/progress@1.1.0;
                import toolcrib:tool/log@1.1.0;
                import toolcrib:tool/model@1.1.0;
                export toolcrib:tool/call@1.1.0;
                export toolcrib:tool/route@1.1.0;
                export toolcrib:tool/present@1.1.0;
            }
        ",
        world: "toolcrib:host/rich-tool",
        ownership: Borrowing { duplicate_if_necessary: false },
    });
}

/// Package `toolcrib:script`.
pub(super) mod script {
    wasmtime::component::bindgen!({
        path: ["../wit/script"],
        world: "toolcrib:script/interpreter-guest",
        ownership: Borrowing { duplicate_if_necessary: false },
    });
}

/// Package `toolcrib:code`.
pub(super) mod code {
    wasmtime::component::bindgen!({
        path: ["../wit/code"],
        world: "toolcrib:code/code",
        ownership: Borrowing { duplicate_if_necessary: false },
    });
}
