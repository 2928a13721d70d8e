//! What wasmtime generates from wit/: the host traits, the records and the typed export. Generated names stay inside this
//! crate; the records that callers need are re-exported beside the trait that uses them.

#![allow(missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "tool",
    imports: { default: async | trappable },
    exports: { default: async },
    with: {
        "floe:tool/workspace.walk": crate::capability::workspace::WalkHandle,
        "floe:tool/edits.transaction": crate::capability::edits::TransactionHandle,
        "floe:tool/commands.command-session": crate::capability::commands::CommandHandle,
        "floe:tool/http.response-body": crate::capability::http::BodyHandle,
        "floe:tool/vision.vision-answer": crate::capability::vision::AnswerHandle,
        "floe:tool/subagents.subagent": crate::capability::subagents::SubagentHandle,
    },
});
