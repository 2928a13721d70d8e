//! What a server that behaves is asked, and what comes of it.

mod support;

use std::time::Duration;

use floe_language::Kind;

use support::{SERVER, Stage, at, named, query, shown};

const TEXT: &str = "def area(size) 😀 size\nuse area(😀 é€ radius)\n";

#[tokio::test]
async fn the_seven_kinds_are_answered() {
    let stage = Stage::new("");
    stage.write("a.txt", TEXT);
    let ask = async |query| stage.ask(query).await.unwrap();
    let found = ask(at(Kind::Definition, "a.txt", 2, 5)).await;
    assert_eq!(shown(&found), ["a.txt:1:5: def area(size) 😀 size"]);
    let found = ask(named(Kind::References, "a.txt", "area")).await;
    assert_eq!(
        shown(&found),
        [
            "a.txt:1:5: def area(size) 😀 size",
            "a.txt:2:5: use area(😀 é€ radius)"
        ]
    );
    let found = ask(at(Kind::Hover, "/workspace/a.txt", 2, 1)).await;
    assert_eq!(found.text.as_deref(), Some("the word `use`"));
    let found = ask(at(Kind::Completion, "a.txt", 1, 1)).await;
    assert!(found.text.unwrap().starts_with("area (text)\ndef (text)"));
    let found = ask(query(Kind::DocumentSymbols, "a.txt", None)).await;
    assert_eq!(shown(&found), ["a.txt:1:5: function area"]);
    let found = ask(named(Kind::WorkspaceSymbols, "a.txt", "radi")).await;
    assert_eq!(shown(&found), ["a.txt:2:15: function radius"]);
    stage.write("a.txt", "BAD\n😀 BAD\n");
    let found = ask(query(Kind::Diagnostics, "a.txt", None)).await;
    assert_eq!(
        shown(&found),
        ["a.txt:1:1: error: bad word", "a.txt:2:3: error: bad word"]
    );
}

#[tokio::test]
async fn places_behind_characters_of_several_units_are_those_of_the_tools() {
    let stage = Stage::new("");
    stage.write("a.txt", TEXT);
    // Behind a surrogate pair, a letter of two bytes and a sign of three.
    let found = stage
        .ask(at(Kind::Definition, "a.txt", 2, 15))
        .await
        .unwrap();
    assert_eq!(shown(&found)[0].split(": ").next(), Some("a.txt:2:15"));
    let found = stage.ask(named(Kind::References, "a.txt", "size")).await;
    let places: Vec<_> = found
        .unwrap()
        .locations
        .iter()
        .map(|place| (place.start.character, place.end.character))
        .collect();
    assert_eq!(places, [(10, 14), (18, 22)]);
}

#[tokio::test]
async fn one_server_answers_all_questions_and_is_told_only_of_what_changed() {
    let stage = Stage::new("");
    stage.write("a.txt", "one");
    stage.write("b.txt", "two");
    for _ in 0..2 {
        for file in ["a.txt", "b.txt"] {
            stage.ask(at(Kind::Hover, file, 1, 1)).await.unwrap();
        }
    }
    stage.write("a.txt", "three");
    let found = stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap();
    assert_eq!(found.text.as_deref(), Some("the word `three`"));
    let count = |word: &str| stage.log().iter().filter(|line| *line == word).count();
    assert_eq!(count("initialize"), 1);
    assert_eq!(count("textDocument/didOpen"), 2);
    assert_eq!(count("textDocument/didChange"), 1);
    assert_eq!(count("workspace/didChangeWatchedFiles"), 1);
}

#[tokio::test]
async fn nothing_runs_before_the_first_question() {
    let stage = Stage::new("");
    stage.write("a.txt", "one");
    assert!(!stage.root().join("servers").exists());
    let missing = stage.ask(at(Kind::Hover, "missing.txt", 1, 1)).await;
    assert_eq!(missing.unwrap_err().code(), "not-found");
    let outside = stage.ask(at(Kind::Hover, "/etc/x.txt", 1, 1)).await;
    assert_eq!(outside.unwrap_err().code(), "outside-workspace");
    let other = stage.ask(at(Kind::Hover, "a.zig", 1, 1)).await.unwrap_err();
    assert_eq!(other.code(), "unsupported");
    assert!(!stage.root().join("servers").exists());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_by_its_command() {
    let stage = Stage::with("", |options| {
        let setting = options.settings.0.get_mut(SERVER).unwrap();
        setting.command = vec!["no-such-language-server".to_owned()];
    });
    stage.write("a.txt", "one");
    let error = stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap_err();
    assert_eq!(error.code(), "unsupported");
    assert_eq!(
        error.to_string(),
        "There is no language server for words here: looked for `no-such-language-server` on PATH."
    );
}

#[tokio::test]
async fn a_place_or_a_name_that_is_not_there_is_refused() {
    let stage = Stage::new("");
    stage.write("a.txt", "one\n");
    let error = stage
        .ask(at(Kind::Definition, "a.txt", 9, 1))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "There is no line 9; the file has 2.");
    let error = stage
        .ask(named(Kind::Definition, "a.txt", "on"))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "There is no `on` in \"a.txt\".");
    assert_eq!(error.code(), "not-found");
}

#[tokio::test]
async fn what_a_server_asks_is_answered() {
    let stage = Stage::new("asks");
    stage.write("a.txt", "one");
    stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap();
    let wanted = [
        "workspace/configuration [{\"depth\":3},{\"fixture\":{\"depth\":3}}]",
        "client/registerCapability null",
        "window/workDoneProgress/create null",
        "no/such/method {\"code\":-32601,\"message\":\"not supported\"}",
    ];
    for line in wanted {
        stage.until(line, |stage| stage.says(line)).await;
    }
}

#[tokio::test]
async fn a_server_that_reads_the_project_is_waited_for() {
    let stage = Stage::new("indexing");
    stage.write("a.txt", "def one");
    let found = stage
        .ask(at(Kind::Definition, "a.txt", 1, 5))
        .await
        .unwrap();
    assert_eq!(shown(&found), ["a.txt:1:5: def one"]);
    assert_eq!(found.text, None);
}

#[tokio::test]
async fn a_server_that_nobody_asks_is_stopped_and_started_for_the_next_question() {
    let stage = Stage::with("", |options| {
        options.waits.idle = Duration::from_millis(50);
    });
    stage.write("a.txt", "one");
    for round in 1..=2 {
        stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap();
        let stopped = |stage: &Stage| stage.log().iter().filter(|line| *line == "exit").count();
        stage
            .until("it is stopped", |stage| stopped(stage) == round)
            .await;
    }
}

#[tokio::test]
async fn a_closed_session_asks_nobody() {
    let stage = Stage::new("");
    stage.write("a.txt", "one");
    stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap();
    stage.servers.close().await;
    assert!(stage.says("exit"));
    let error = stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap_err();
    assert_eq!(error.to_string(), "The Session has ended.");
}

#[tokio::test]
async fn a_server_cannot_write_the_workspace_nor_reach_the_network_nor_read_what_is_hidden() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stage = Stage::with("break-out", |options| {
        // Not even where commands may do both.
        options.policy.network = floe_sandbox::Network::Host;
    });
    let port = listener.local_addr().unwrap().port();
    stage.write("a.txt", &format!("port{port}"));
    stage.write(".env", "SECRET=1");
    let found = stage.ask(at(Kind::Hover, "a.txt", 1, 1)).await.unwrap();
    assert_eq!(
        found.text.as_deref(),
        Some("written: false; connected: false; cached: true; secret: \"\"")
    );
    assert!(!stage.workspace.join("planted").exists());
    assert!(stage.home().join(".cache/x").exists());
}
