//! Real, confined commands of a Session. This test has its own `main`, because the sandbox starts it again as its helper.

mod doubles;

use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_protocol::{ApprovalMode, Home};
use floe_session::{Session, SessionOptions};
use floe_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use doubles::registry;

fn main() {
    floe_sandbox::helper_main();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        commands_of_a_session_work_in_its_workspace_and_share_a_home().await;
        what_still_runs_ends_with_the_session_and_is_named().await;
        an_interrupt_ends_a_command().await;
    });
    println!("commands: all passed");
}

struct Fixture {
    folder: tempfile::TempDir,
    session: Session,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let options = SessionOptions {
        approval_mode: ApprovalMode::AllowAll,
        ..SessionOptions::new(
            Home::new(folder.path().join("home")),
            Workspace::open(&workspace).unwrap(),
            registry(),
        )
    };
    let session = Session::open(options).unwrap();
    Fixture { folder, session }
}

async fn run(
    session: &Session,
    arguments: serde_json::Value,
    cancel: &CancellationToken,
) -> String {
    let arguments = arguments.to_string();
    session
        .call("exec_command", &arguments, cancel)
        .await
        .output
}

async fn commands_of_a_session_work_in_its_workspace_and_share_a_home() {
    let Fixture { folder, session } = fixture();
    let cancel = CancellationToken::new();
    let command =
        serde_json::json!({"cmd": "echo made > here && touch ~/kept && pwd && echo $HOME"});
    let output = run(&session, command, &cancel).await;
    assert!(output.contains("/floe/home"), "{output}");
    let made = std::fs::read_to_string(folder.path().join("workspace/here")).unwrap();
    assert_eq!(made, "made\n");
    let command = serde_json::json!({"cmd": "ls ~; ls /floe/outputs | wc -l"});
    assert_eq!(run(&session, command, &cancel).await, "kept\n0\n");
    let id = session.id().clone();
    assert!(session.close().await.ended_commands.is_empty());
    let home = Home::new(folder.path().join("home"));
    assert!(home.command_home(&id).join("kept").exists());
    assert!(!home.command_tmp(&id).exists() && !home.outputs(&id).exists());
}

async fn what_still_runs_ends_with_the_session_and_is_named() {
    let Fixture { folder, session } = fixture();
    let command = serde_json::json!({
        "cmd": "echo started; while :; do touch alive; sleep 0.02; done",
        "keep": true,
    });
    let output = run(&session, command, &CancellationToken::new()).await;
    assert_eq!(output, "started\n");
    let closed = session.close().await;
    assert_eq!(closed.ended_commands.len(), 1);
    assert!(closed.ended_commands[0].process_id.starts_with("proc-"));
    let alive = folder.path().join("workspace/alive");
    let _ = std::fs::remove_file(&alive);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!alive.exists(), "nothing of it runs any more");
}

async fn an_interrupt_ends_a_command() {
    let Fixture {
        folder: _folder,
        session,
    } = fixture();
    let session = Arc::new(session);
    let cancel = CancellationToken::new();
    let running = tokio::spawn({
        let (session, cancel) = (Arc::clone(&session), cancel.clone());
        async move { run(&session, serde_json::json!({"cmd": "sleep 60"}), &cancel).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let start = Instant::now();
    cancel.cancel();
    let output = running.await.unwrap();
    assert!(
        output.ends_with("[interrupted: tool aborted by user]"),
        "{output}"
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    let session = Arc::into_inner(session).unwrap();
    assert!(session.close().await.ended_commands.is_empty());
}
