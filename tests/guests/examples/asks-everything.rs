//! Uses every capability once and writes one line for each: its name and the code of the failure, or `ok`.

use floe_guests::commands::{CommandSession, CommandSpec};
use floe_guests::edits::Transaction;
use floe_guests::subagents::{Subagent, SubagentRequest};
use floe_guests::{
    ExecutionContext, Failure, ToolResult, completed, http, interaction, language_server, output,
    pixel, session_state, tool, vision, web_search, workspace,
};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    say("workspace", workspace::stat("."));
    say("edits", Transaction::begin());
    say(
        "commands",
        CommandSession::spawn(&CommandSpec {
            command: "true".to_owned(),
            args: None,
            working_directory: None,
            environment: Vec::new(),
            tty: false,
            raw_output: false,
        }),
    );
    say(
        "http",
        http::send(&http::Request {
            method: "GET".to_owned(),
            url: "https://example.com/".to_owned(),
            headers: Vec::new(),
            body: None,
            timeout_ms: None,
            max_redirects: None,
        }),
    );
    say("vision", vision::describe(&pixel(), None));
    say(
        "subagents",
        Subagent::start(&SubagentRequest {
            prompt: "hello".to_owned(),
            agent_id: None,
            model: None,
            description: None,
        }),
    );
    say(
        "interaction",
        interaction::ask(&interaction::Question {
            header: None,
            text: "well?".to_owned(),
            choices: Vec::new(),
            multiple: false,
            free_text: true,
            suggested: None,
        }),
    );
    say("session-state", session_state::set_todos(&[]));
    say(
        "language-server",
        language_server::ask(&language_server::Query {
            kind: "hover".to_owned(),
            language: None,
            file: "a.rs".to_owned(),
            target: None,
            max_results: None,
        }),
    );
    say("web-search", web_search::search("floe", 1));
    Ok(completed())
}

fn say<T>(capability: &str, answer: Result<T, Failure>) {
    let code = match answer {
        Ok(_) => "ok".to_owned(),
        Err(failure) => failure.code,
    };
    output::write(&format!("{capability} {code}\n"));
}

tool!("asks-everything", Dangerous, execute);
