//! Places, ids and time.

use std::sync::Arc;
use std::time::Duration;

use floe_sandbox::Event;

use crate::doubles::{Notes, Puppets, registry};
use crate::{CommandError, CommandHandle, CommandLimits, CommandSessions, CommandSpec};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

struct Stage {
    _folder: tempfile::TempDir,
    puppets: Arc<Puppets>,
    sessions: Arc<CommandSessions>,
}

fn stage(places: usize) -> Stage {
    let puppets = Arc::new(Puppets::default());
    let (folder, sessions) = registry(Arc::clone(&puppets) as _, |options| {
        options.limits.sessions = places
    });
    Stage {
        _folder: folder,
        puppets,
        sessions,
    }
}

impl Stage {
    async fn spawn(&self) -> Result<CommandHandle, CommandError> {
        self.sessions.spawn(CommandSpec::shell("sleep")).await
    }

    /// Starts a session, keeps it, and lets go of it.
    async fn keep_one(&self) -> String {
        let session = self.spawn().await.unwrap();
        session.keep(false);
        session.process_id().to_owned()
    }

    fn ids(&self) -> Vec<String> {
        self.sessions
            .list()
            .into_iter()
            .map(|summary| summary.process_id)
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn ids_are_proc_and_eight_hexadecimal_digits_and_differ() {
    let stage = stage(64);
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..64 {
        ids.push(stage.keep_one().await);
    }
    for id in &ids {
        let digits = id.strip_prefix("proc-").unwrap();
        assert!(
            digits.len() == 8
                && digits
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
            "{id}"
        );
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 64);
}

#[test]
fn the_default_bounds_are_those_of_the_contract() {
    let limits = CommandLimits::default();
    assert_eq!((limits.sessions, limits.unread_output), (64, 1024 * 1024));
    assert_eq!(
        (limits.evictable_after, limits.idle),
        (10 * MINUTE, 10 * DAY)
    );
}

#[tokio::test(start_paused = true)]
async fn the_65th_session_takes_the_place_of_the_exited_one_that_was_named_first() {
    let stage = stage(3);
    let running = stage.keep_one().await;
    let _running = stage.puppets.next();
    let mut exited = Vec::new();
    for _ in 0..2 {
        let id = stage.keep_one().await;
        stage.puppets.next().end(Event::Exited(0));
        stage.sessions.attach(&id).unwrap().ended().await;
        tokio::time::advance(MINUTE).await;
        exited.push(id);
    }
    let new = stage.spawn().await.unwrap();
    assert_eq!(new.note(), None);
    let ids = stage.ids();
    assert!(ids.contains(&running) && !ids.contains(&exited[0]) && ids.contains(&exited[1]));
    let error = stage.sessions.attach(&exited[0]).unwrap_err();
    assert_eq!(error.code(), "not-found");
    assert!(error.hint().unwrap().contains("make room"));
    let error = stage.sessions.attach("proc-never").unwrap_err();
    assert_eq!((error.code(), error.hint()), ("not-found", None));
}

#[tokio::test(start_paused = true)]
async fn the_report_of_a_session_that_made_room_is_still_given() {
    let stage = stage(1);
    let session = stage.spawn().await.unwrap();
    session.keep(true);
    let id = session.process_id().to_owned();
    stage.puppets.next().end(Event::Exited(0));
    session.ended().await;
    drop(session);
    let _new = stage.spawn().await.unwrap();
    assert!(stage.sessions.report_due().await);
    let reports = stage.sessions.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].process_id, id);
    assert_eq!(stage.sessions.take_reports(), []);
}

#[tokio::test(start_paused = true)]
async fn a_running_session_makes_room_only_after_ten_minutes_and_the_new_one_says_so() {
    let stage = stage(2);
    let oldest = stage.keep_one().await;
    let used = stage.keep_one().await;
    tokio::time::advance(10 * MINUTE).await;
    let error = stage.spawn().await.unwrap_err();
    assert_eq!(error.code(), "limit");
    assert!(error.to_string().contains("end one first"), "{error}");
    tokio::time::advance(2 * MINUTE).await;
    drop(stage.sessions.attach(&used).unwrap());
    let new = stage.spawn().await.unwrap();
    let wanted = format!(
        "[process {oldest} ended to make room: it was still running and had not been used for 12 minutes]"
    );
    assert_eq!(new.note(), Some(wanted.as_str()));
    assert_eq!(stage.puppets.count_killed(), 1);
    assert!(!stage.ids().contains(&oldest) && stage.ids().contains(&used));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_somebody_waits_on_never_makes_room() {
    let stage = stage(1);
    let held = stage.spawn().await.unwrap();
    held.keep(false);
    tokio::time::advance(DAY).await;
    assert!(matches!(
        stage.spawn().await,
        Err(CommandError::Full {
            limit: 1,
            minutes: 10
        })
    ));
    drop(held);
    assert!(
        stage.spawn().await.is_err(),
        "it was named when it was let go of"
    );
    tokio::time::advance(11 * MINUTE).await;
    assert!(stage.spawn().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_gives_its_place_back() {
    let stage = stage(1);
    for _ in 0..3 {
        let outside = CommandSpec {
            working_directory: Some("/etc".into()),
            ..CommandSpec::shell("x")
        };
        assert_eq!(
            stage.sessions.spawn(outside).await.unwrap_err().code(),
            "outside-workspace"
        );
    }
    assert!(stage.spawn().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_reaped_after_ten_days_and_those_used_since_are_kept() {
    let stage = stage(64);
    let idle = stage.keep_one().await;
    let used = stage.keep_one().await;
    tokio::time::sleep(9 * DAY).await;
    drop(stage.sessions.attach(&used).unwrap());
    stage.sessions.list();
    tokio::time::sleep(DAY + Duration::from_secs(2 * 3600)).await;
    assert_eq!(stage.ids(), [used]);
    let error = stage.sessions.attach(&idle).unwrap_err();
    assert!(error.hint().unwrap().contains("for days"));
    assert_eq!(stage.puppets.count_killed(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_timer_stops_on_dispose_and_with_the_registry() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for dispose in [true, false] {
        let stage = stage(4);
        drop(stage.spawn().await.unwrap());
        if dispose {
            stage.sessions.dispose().await;
        }
        drop(stage);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(tasks(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_environment_is_the_allowed_part_then_the_call_then_the_sandbox_then_what_is_hardened()
{
    let puppets = Arc::new(Puppets::default());
    let notes = Arc::new(Notes::default());
    let (_folder, sessions) = registry(Arc::clone(&puppets) as _, |options| {
        options.observer = Arc::clone(&notes) as _;
        let host = [
            ("PATH", "/bin"),
            ("LC_TIME", "C"),
            ("SECRET", "s"),
            ("BASH_ENV", "/evil"),
            ("TERM", "xterm"),
        ];
        options.environment.host = host
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        options
            .environment
            .host
            .push(("TZ".into(), "x".repeat(200 * 1024).into()));
        options.environment.vault = vec![
            ("TOKEN".into(), "t".into()),
            ("PAGER".into(), "less".into()),
        ];
    });
    let spec = CommandSpec {
        environment: [
            ("HOME", "/x"),
            ("MINE", "1"),
            ("NO_COLOR", ""),
            ("ENV", "/evil"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        ..CommandSpec::shell("x")
    };
    let _session = sessions.spawn(spec).await.unwrap();
    let seen: Vec<String> = puppets
        .environment
        .lock()
        .unwrap()
        .iter()
        .map(|(name, value)| format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap()))
        .collect();
    let wanted = [
        "GIT_EDITOR=true",
        "GIT_PAGER=cat",
        "GIT_TERMINAL_PROMPT=0",
        "HOME=/floe/home",
        "LANG=C.UTF-8",
        "LC_TIME=C",
        "MINE=1",
        "NO_COLOR=1",
        "PAGER=cat",
        "PATH=/bin",
        "TERM=dumb",
        "TOKEN=t",
    ];
    assert_eq!(seen, wanted);
    assert!(notes.warnings.lock().unwrap().is_empty());
}
