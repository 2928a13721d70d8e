//! What a command leaves running when it ends, is killed, or loses its host.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use floe_command::{CommandHandle, Status};

use super::{doors, gone, mark};
use crate::row::Row;
use crate::stage::{Session, Stage, eventually, finish, processes_with, read_until};

/// What the rows that must not wait for a process of hours call soon.
const SOON: Duration = Duration::from_secs(20);

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S1",
        "a child left behind does not hold the command and ends with it",
        child_left_behind,
    ),
    Row::new(
        "S2",
        "a daemon that left the session and its terminal is gone with the command, whose code is told",
        disowned_daemon,
    ),
    Row::new(
        "S3",
        "double forks, twenty levels, and one that forks forever are gone after kill, drop and dispose",
        daemons_of_all_kinds,
    ),
    Row::new(
        "S4",
        "process substitution does not hold the command and its output is complete",
        process_substitution,
    ),
    Row::new(
        "S5",
        "nothing survives a host that was killed",
        host_is_killed,
    ),
    Row::new(
        "S14",
        "output of a child is complete where it came before the end or in the moment after, and lost to nobody's surprise later",
        late_output,
    ),
    Row::new(
        "S32",
        "orphans are collected while the command runs",
        orphans,
    ),
    Row::new(
        "S46",
        "a job is killed by its number, and one that is not ends with the shell",
        jobs,
    ),
];

fn child_left_behind(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    let started = Instant::now();
    let outcome = session.run(&format!("sleep {mark} & echo done"));
    assert_eq!(
        (outcome.status, outcome.text.as_str()),
        (Status::Exited(0), "done\n")
    );
    assert!(started.elapsed() < SOON);
    gone(&mark);
    assert!(session.commands.list().is_empty());
    // Nor does one that prints without end.
    let started = Instant::now();
    let outcome = session.run(&format!("(yes; sleep {mark}) & echo done; exit 3"));
    assert_eq!(outcome.status, Status::Exited(3));
    assert!(outcome.text.contains("done\n"));
    assert!(started.elapsed() < SOON);
    gone(&mark);
    // The model is told what it can rely on.
    stage.wait(async {
        let tools = doors::open(stage, &session).await.environment.tools();
        let exec = tools.iter().find(|tool| tool.name == "exec_command");
        let description = serde_json::to_value(exec).unwrap()["description"].to_string();
        assert!(
            description.contains("every process it started ends"),
            "{description}"
        );
    });
}

fn disowned_daemon(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    let script = format!("setsid nohup sleep {mark} >/dev/null 2>&1 & disown; exit 3");
    let outcome = session.run(&script);
    assert_eq!(
        (outcome.status, outcome.text.as_str()),
        (Status::Exited(3), "")
    );
    gone(&mark);
}

/// Twenty generations, each in a session of its own, each with something to do.
const GENERATIONS: &str = r#"[ "$1" = 0 ] || setsid bash generations $(($1 - 1)) $2 &
exec sleep $2"#;

/// A process that is never the same twice.
const HOPPER: &str = "setsid -f bash hopper $1\nexit";

fn daemons_of_all_kinds(stage: &Stage) {
    stage.put("generations", GENERATIONS);
    stage.put("hopper", HOPPER);
    let kill: fn(&Session<'_>, CommandHandle) = |_, command| command.kill();
    let drop_it: fn(&Session<'_>, CommandHandle) = |_, command| drop(command);
    let dispose: fn(&Session<'_>, CommandHandle) = |session, command| {
        command.keep(true);
        drop(command);
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| runtime.block_on(session.commands.dispose()));
    };
    for end in [kill, drop_it, dispose] {
        let (session, mark) = (stage.session(), mark());
        let script = format!(
            "(cd / && exec 0<&- 1<&- 2<&- && setsid bash -c 'trap \"\" HUP INT TERM; (sleep {mark} &)') &
            setsid -f bash hopper {mark}
            bash generations 20 {mark} &
            trap '' INT TERM; echo up; while :; do sleep {mark}; done"
        );
        stage.wait(async {
            let command = session.start(&script).await;
            read_until(&command, "up\n").await;
            // The daemon, twenty-one generations, and the command's own.
            let all_there = || processes_with(&format!("sleep\0{mark}")) >= 23;
            tokio::task::block_in_place(|| eventually("all daemons run", all_there));
            end(&session, command);
        });
        gone(&mark);
        // The hopper is between two processes at times, but not fifty times in a row.
        for _ in 0..50 {
            assert_eq!(processes_with(&mark), 0);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn process_substitution(stage: &Stage) {
    let session = stage.session();
    for round in 0..10 {
        let outcome = session.run("exec > >(tee log) 2>&1; echo hi");
        assert_eq!(
            (outcome.status, outcome.text.as_str()),
            (Status::Exited(0), "hi\n"),
            "round {round}"
        );
        assert_eq!(stage.read("log"), "hi\n");
        // Both ways, more than a pipe holds, and the command's own code.
        let script = "exec > >(cat) 2> >(cat >&2); seq 30000; seq 30000 >&2; exit 6";
        let outcome = session.run(script);
        let wanted: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(outcome.status, Status::Exited(6), "round {round}");
        assert!(outcome.stdout == wanted, "{} bytes", outcome.stdout.len());
        assert!(outcome.stderr == wanted, "{} bytes", outcome.stderr.len());
    }
}

fn host_is_killed(stage: &Stage) {
    // A moment before anything runs, while it starts, and when all of it runs.
    for wait_for in [None, Some(1), Some(4)] {
        let mark = mark();
        let script = format!(
            "setsid -f sleep {mark}; (cd / && exec 0<&- && setsid bash -c 'trap \"\" HUP INT TERM; sleep {mark}; :') &
            echo up; sleep {mark}"
        );
        let mut host = stage.host(&script).stdout(Stdio::piped()).spawn().unwrap();
        if let Some(count) = wait_for {
            let mut line = String::new();
            BufReader::new(host.stdout.take().unwrap())
                .read_line(&mut line)
                .unwrap();
            assert_eq!(line, "up\n");
            eventually("its processes run", || processes_with(&mark) > count);
        }
        host.kill().unwrap();
        host.wait().unwrap();
        gone(&mark);
    }
}

fn late_output(stage: &Stage) {
    let session = stage.session();
    let before = "(echo late; touch go) & until [ -e go ]; do sleep 0.01; done; echo early; rm go";
    assert_eq!(session.run(before).text, "late\nearly\n");
    let after = session.run("(sleep 0.03; echo late) & echo early");
    // The moment is 50 ms; how much of it a child gets is the machine's affair.
    assert!(
        ["early\n", "early\nlate\n"].contains(&after.text.as_str()),
        "{after:?}"
    );
    assert_eq!((after.status, after.dropped), (Status::Exited(0), 0));
    let much_later = session.run("(sleep 30; echo late) & echo early");
    assert_eq!(much_later.text, "early\n");
    // What runs on is read by the next.
    stage.wait(async {
        let command = session
            .start("(until [ -e go ]; do sleep 0.01; done; echo late) & echo early; wait")
            .await;
        assert_eq!(read_until(&command, "early\n").await, "early\n");
        stage.put("go", "");
        let outcome = finish(&command).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.status),
            ("late\n", Status::Exited(0))
        );
    });
}

fn orphans(stage: &Stage) {
    // Counted until none is left: a process that the shell itself has yet to collect is one for a moment.
    let script = r#"for i in {1..200}; do (true & (exit 3) &); done
        for i in {1..1000}; do
            left=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ')
            [ "$left" = 0 ] && break
            sleep 0.01
        done
        echo "$left zombies""#;
    let outcome = stage.session().run(script);
    assert_eq!(
        (outcome.text.as_str(), outcome.status),
        ("0 zombies\n", Status::Exited(0))
    );
}

fn jobs(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    let script = format!(
        "sleep {mark} & kill %1; wait %1; echo $?; sleep {mark} & sleep {mark} & jobs -r | wc -l; kill %2; wait %2; echo $?"
    );
    let outcome = session.run(&script);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.status),
        ("143\n2\n143\n", Status::Exited(0)),
        "{}",
        outcome.stderr
    );
    gone(&mark);
}
