//! The calls that the pages show, by tool. Each runs in a fresh copy of examples/library.

use serde_json::{Value, json};

/// A call and what is said of it.
pub(super) struct Example {
    pub(super) about: &'static str,
    pub(super) arguments: Value,
    /// How `floe call` ends.
    pub(super) status: i32,
    /// What the person's configuration holds for it.
    pub(super) config: &'static str,
    /// It reads the pages of the example project.
    pub(super) web: bool,
    /// The model of who starts a subagent.
    pub(super) model: Option<&'static str>,
}

impl Example {
    fn new(about: &'static str, arguments: Value) -> Example {
        Example {
            about,
            arguments,
            status: 0,
            config: "",
            web: false,
            model: None,
        }
    }

    fn failing(self) -> Example {
        Example { status: 1, ..self }
    }

    fn on_the_web(self) -> Example {
        Example { web: true, ..self }
    }

    fn with(self, config: &'static str) -> Example {
        Example { config, ..self }
    }
}

/// The configuration of a search engine: a file of the example project that always answers the same.
const SEARCH: &str = "web_search:\n  url: http://127.0.0.1:8000/search.json?q={query}\n";

pub(super) fn of(tool: &str) -> Vec<Example> {
    let one = Example::new;
    match tool {
        "exec_command" => vec![
            one("Both streams come as they were printed, and then the exit code where it is not 0.", json!({"cmd": "cc -Wall *.c -o /tmp/library && /tmp/library; exit 3"})).failing(),
        ],
        "input_command" => vec![
            one("A process that no call has left running is unknown. `floe call` leaves none; [Tools for other agents](../mcp.md#by-hand) has a way to try it.", json!({"process_id": "proc-00000000"})).failing(),
        ],
        "shell" => vec![
            one("What goes to standard error stands apart.", json!({"command": "wc -l < titles.txt; ls nothing", "workdir": "."})).failing(),
        ],
        "read_image" => vec![
            one("The image itself goes to the model; `floe call --output json` shows that too.", json!({"source": "cover.png"})),
        ],
        "file_read" => vec![
            one("A small file comes whole.", json!({"path": "titles.txt"})),
            one("A part, with line numbers. The note says how to go on.", json!({"path": "shelf.c", "offset": 5, "limit": 4, "line_numbers": true})),
            one("What is not there is looked for nearby.", json!({"path": "title.txt"})).failing(),
        ],
        "grep" => vec![
            one("Path, line and text of every match.", json!({"pattern": "shelf_add", "include": "*.c"})),
            one("Only the count of each file.", json!({"pattern": "shelf", "output_mode": "count", "include": "*.{c,h}"})),
        ],
        "glob" => vec![
            one("Newest first; files of one age by name.", json!({"pattern": "**/*.{c,h}"})),
        ],
        "list" => vec![
            one("Kind and name, separated by a tab.", json!({})),
        ],
        "file_write" => vec![
            one("Folders on the way are made.", json!({"path": "notes/todo.md", "content": "# To do\n\n- sort the titles\n"})),
        ],
        "edit" => vec![
            one("What changed is shown as a diff.", json!({"path": "shelf.h", "old_string": "SHELF_ROOM 12", "new_string": "SHELF_ROOM 24"})),
            one("A text that is there several times is not replaced by chance.", json!({"path": "main.c", "old_string": "shelf_add", "new_string": "shelf_put"})).failing(),
        ],
        "apply_patch" => vec![
            one("Several files change, or none of them.", json!({"edits": [
                {"path": "shelf.h", "old_string": "SHELF_ROOM 12", "new_string": "SHELF_ROOM 24"},
                {"path": "titles.txt", "old_string": "Walden\n", "new_string": "Walden\nZuleika Dobson\n"}
            ]})),
            one("The same as a patch, which can move and delete files too.", json!({"patch": "*** Begin Patch\n*** Update File: main.c\n@@ int main(void) {\n-    shelf_add(&shelf, \"Emma\");\n+    shelf_add(&shelf, \"Walden\");\n*** Delete File: compile_flags.txt\n*** End Patch\n"})),
        ],
        "web_fetch" => vec![
            one("A page comes as Markdown.", json!({"url": "http://localhost:8000/"})).on_the_web(),
        ],
        "http_request" => vec![
            one("The status, the header fields and the body.", json!({"url": "http://localhost:8000/hours.json"})).on_the_web(),
            one("An answer that is an error keeps its body.", json!({"url": "http://localhost:8000/nothing"})).on_the_web().failing(),
        ],
        "curl" => vec![
            one("The file goes into the Workspace.", json!({"url": "http://localhost:8000/hours.json", "dest_path": "hours.json"})).on_the_web(),
        ],
        "web_search" => vec![
            one("With a search engine that answers with JSON.", json!({"query": "opening hours"})).with(SEARCH),
            one("Without one the model is told so.", json!({"query": "opening hours"})).failing(),
        ],
        "lsp" => vec![
            one("Where something is defined.", json!({"kind": "definition", "file": "main.c", "symbol": "shelf_find"})),
            one("Where it is used.", json!({"kind": "references", "file": "main.c", "line": 7, "character": 5})),
        ],
        "spawn_subagent" => vec![
            Example {
                model: Some("script:helper.yaml"),
                ..one(
                    "The subagent's model is a script here, so what it does is fixed.",
                    json!({"prompt": "Which titles are there?"}),
                )
            },
        ],
        "todowrite" => vec![
            one("The list as it stands then.", json!({"todos": [
                {"content": "read shelf.c", "status": "completed"},
                {"content": "add shelf_remove", "status": "in_progress"},
                {"content": "test it", "status": "pending"}
            ]})),
        ],
        "plan_exit" => vec![
            one("Outside plan mode nothing follows from it.", json!({"plan": "1. Add shelf_remove.\n2. Test it."})),
        ],
        "ask_clarification" => vec![
            one("Where nobody can answer, as in a script, the model is told so. At a terminal the question waits for an answer.", json!({"question": "Which compiler?", "options": [{"label": "gcc"}, {"label": "clang"}]})).failing(),
        ],
        _ => Vec::new(),
    }
}
