//! How commands start, end and are ended, and that nothing of them stays.

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use floe_sandbox::{DirectoryFault, Event, Program, SandboxError, Signal, Streams};
use support::{
    Running, Session, again_within_bwrap, again_without_privileges, eventually, host,
    processes_with, wait,
};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

#[test]
fn all_of_this_holds_within_walls_that_bubblewrap_builds() {
    again_within_bwrap();
}

/// A word that marks one test's processes.
fn mark(name: &str) -> String {
    format!("floe-test-{name}-{}", std::process::id())
}

#[test]
fn exit_codes_and_signals_are_reported_as_they_are() {
    let session = Session::new();
    for code in [0, 1, 3, 126, 127, 128, 255] {
        assert_eq!(
            session.run(&format!("exit {code}")).event,
            Event::Exited(code)
        );
    }
    assert_eq!(session.run("no-such-program").event, Event::Exited(127));
    assert_eq!(session.run("/etc/passwd").event, Event::Exited(126));
    for name in [
        "SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "SIGHUP", "SIGPIPE",
    ] {
        let signal = Signal::from_name(name).unwrap();
        let event = session
            .run(&format!("kill -{} $$; sleep 5", signal.number()))
            .event;
        assert_eq!(event, Event::Signaled(signal), "{name}");
    }
}

#[test]
fn a_program_runs_without_a_shell_and_a_missing_one_is_an_error() {
    let session = Session::new();
    let run = |program: &str, args: &[&str]| {
        let mut command = session.command("");
        command.program = Program::Exec {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
        };
        session
            .sandbox
            .spawn(&command)
            .map(|child| Running::new(child).finish())
    };
    assert_eq!(
        run("printf", &["%s|", "a b", "$x", "*"]).unwrap().stdout,
        "a b|$x|*|"
    );
    assert_eq!(run("/bin/echo", &["hi"]).unwrap().stdout, "hi\n");
    let missing = run("no-such-program", &[]).unwrap_err();
    assert_eq!(
        missing,
        SandboxError::Program {
            program: "no-such-program".into(),
            errno: libc::ENOENT
        }
    );
    let denied = run("/etc/passwd", &[]).unwrap_err();
    assert_eq!(
        denied,
        SandboxError::Program {
            program: "/etc/passwd".into(),
            errno: libc::EACCES
        }
    );
}

#[test]
fn a_script_reaches_the_shell_byte_for_byte_at_any_length() {
    let session = Session::new();
    assert_eq!(
        session.ok("echo '!\\\"$'\"$((1+1))\"$'\\t'x; cat <<'E'\n!\\$x\nE"),
        "!\\\"$2\tx\n!\\$x\n"
    );
    for length in [90 * 1024, 97 * 1024, 129 * 1024, 3 * 1024 * 1024] {
        let script = format!("# {}\nread line; echo \"got $line\"", "x".repeat(length));
        let running = session.spawn(&script);
        running.write("input\n");
        assert_eq!(running.finish().stdout, "got input\n", "{length}");
    }
    let error = session.try_spawn("echo a\0b").unwrap_err();
    assert_eq!(
        error,
        SandboxError::NulByte {
            what: "script".into()
        }
    );
}

#[test]
fn a_working_directory_is_resolved_beneath_the_workspace() {
    let session = Session::with(|workspace, _| {
        fs::create_dir_all(workspace.join("a/b c\n\u{e9}")).unwrap();
        fs::write(workspace.join("file"), "").unwrap();
        std::os::unix::fs::symlink("a", workspace.join("in")).unwrap();
        std::os::unix::fs::symlink("..", workspace.join("out")).unwrap();
        std::os::unix::fs::symlink("/tmp", workspace.join("absolute")).unwrap();
    });
    let pwd = |directory: &str| {
        let mut command = session.command("pwd -P");
        command.working_directory = directory.into();
        session
            .sandbox
            .spawn(&command)
            .map(|child| Running::new(child).finish().stdout)
    };
    let workspace = session.workspace.display();
    assert_eq!(pwd("").unwrap(), format!("{workspace}\n"));
    assert_eq!(pwd("a/../a").unwrap(), format!("{workspace}/a\n"));
    assert_eq!(
        pwd("in/b c\n\u{e9}").unwrap(),
        format!("{workspace}/a/b c\n\u{e9}\n")
    );
    for (directory, fault) in [
        ("missing", DirectoryFault::Missing),
        ("file", DirectoryFault::NotDirectory),
        ("..", DirectoryFault::Outside),
        ("a/../../outside", DirectoryFault::Outside),
        ("out", DirectoryFault::Outside),
        ("absolute", DirectoryFault::Outside),
        ("/etc", DirectoryFault::Outside),
    ] {
        let error = pwd(directory).unwrap_err();
        assert_eq!(
            error,
            SandboxError::Directory {
                path: directory.into(),
                fault
            },
            "{directory}"
        );
    }
    let error = pwd("..").unwrap_err();
    assert_eq!(error.to_string(), "Path \"..\" is outside the Workspace.");
}

#[test]
fn a_command_starts_with_standard_signals_and_limits() {
    let session = Session::new();
    let status = session.ok("exec cat /proc/self/status");
    for line in [
        "SigBlk:\t0000000000000000",
        "SigIgn:\t0000000000000000",
        "SigCgt:\t0000000000000000",
    ] {
        assert!(status.contains(line), "{status}");
    }
    assert_eq!(
        session.ok("umask; ulimit -c; ulimit -n; ulimit -f"),
        "0022\n0\n4096\n4194304\n"
    );
    assert_eq!(
        session.ok("yes | head -1; echo ${PIPESTATUS[@]}"),
        "y\n141 0\n"
    );
    assert!(
        session
            .ok("cat /proc/self/oom_score_adj")
            .trim()
            .parse::<i32>()
            .unwrap()
            >= 500
    );
    session.refused("head -c 100 /dev/zero > small && ulimit -f 0 && echo x > small");
}

#[test]
fn input_is_read_until_its_end() {
    let session = Session::new();
    let running = session.spawn("read a; echo \"1 $a\"; cat");
    running.write("one\ntwo\nthree");
    assert_eq!(running.finish().stdout, "1 one\ntwo\nthree");
}

#[test]
fn a_signal_reaches_the_whole_group_of_the_command() {
    let session = Session::new();
    let running = session.spawn("trap 'echo INT; exit 9' INT; : > ready; while :; do :; done");
    eventually("the trap is set", || {
        session.workspace.join("ready").exists()
    });
    running.control.signal(Signal::INTERRUPT).unwrap();
    let outcome = running.finish();
    assert_eq!(
        (outcome.event, outcome.stdout.as_str()),
        (Event::Exited(9), "INT\n")
    );

    let running = session.spawn("touch piped; sleep 100 | sleep 100");
    eventually("the pipeline runs", || {
        session.workspace.join("piped").exists()
    });
    running.control.signal(Signal::TERMINATE).unwrap();
    assert_eq!(running.finish().event, Event::Signaled(Signal::TERMINATE));
}

#[test]
fn a_signal_after_the_end_is_no_error() {
    let session = Session::new();
    let running = session.spawn("true");
    assert_eq!(wait(&running.control), Event::Exited(0));
    running.control.signal(Signal::TERMINATE).unwrap();
    assert_eq!(running.control.try_event(), Some(Event::Exited(0)));
}

#[test]
fn daemons_end_with_the_command_that_started_them() {
    let session = Session::new();
    let mark = mark("daemon");
    let started = Instant::now();
    let outcome = session.run(&format!(
        "setsid nohup sh -c 'exec -a {mark} sleep 600' >/dev/null 2>&1 & disown
         perl -e 'for (1..20) {{ exit if fork; use POSIX; setsid() }} $0 = \"{mark}\"; close $_ for *STDIN, *STDOUT, *STDERR; chdir \"/\"; sleep 600' &
         sleep 0.2; exit 3"
    ));
    assert_eq!(outcome.event, Event::Exited(3));
    assert!(started.elapsed() < Duration::from_secs(20));
    eventually("the daemons are gone", || processes_with(&mark).is_empty());
}

#[test]
fn orphans_are_collected_while_the_command_runs() {
    let session = Session::new();
    let zombies = session.ok("for i in 1 2 3 4 5; do (true &) ; done; sleep 0.2; cat /proc/[0-9]*/stat | grep -c ' Z ' || true");
    assert_eq!(zombies.trim(), "0");
}

#[test]
fn killing_ends_even_what_ignores_every_signal() {
    let session = Session::new();
    let mark = mark("stubborn");
    let running = session.spawn(&format!("trap '' TERM INT HUP; touch ready; (setsid bash -c 'exec -a {mark} sleep 600' &); while :; do sleep 1; done"));
    eventually("it runs", || {
        session.workspace.join("ready").exists() && !processes_with(&mark).is_empty()
    });
    running.control.signal(Signal::TERMINATE).unwrap();
    assert_eq!(running.control.try_event(), None);
    running.control.kill();
    running.control.kill();
    assert_eq!(running.finish().event, Event::SandboxEnded);
    eventually("all of it is gone", || processes_with(&mark).is_empty());
}

#[test]
fn dropping_the_hold_ends_the_command() {
    let session = Session::new();
    let mark = mark("dropped");
    let child = session
        .try_spawn(&format!("exec -a {mark} sleep 600"))
        .unwrap();
    eventually("it runs", || !processes_with(&mark).is_empty());
    drop(child);
    eventually("it is gone", || processes_with(&mark).is_empty());
}

#[test]
fn nothing_survives_the_helper_being_killed() {
    let session = Session::new();
    let mark = mark("helper-killed");
    let running = session.spawn(&format!(
        "(setsid bash -c 'exec -a {mark} sleep 600' &); touch ready; sleep 600"
    ));
    eventually("it runs", || {
        session.workspace.join("ready").exists() && !processes_with(&mark).is_empty()
    });
    let helper = rustix::process::Pid::from_raw(running.pid as i32).unwrap();
    rustix::process::kill_process(helper, rustix::process::Signal::KILL).unwrap();
    assert_eq!(running.finish().event, Event::SandboxEnded);
    eventually("all of it is gone", || processes_with(&mark).is_empty());
}

#[test]
#[ignore = "a host that another test starts and kills"]
fn a_host_that_will_be_killed() {
    let Ok(mark) = std::env::var("FLOE_TEST_MARK") else {
        return;
    };
    let session = Session::new();
    let _running = session.spawn(&format!(
        "(setsid bash -c 'exec -a {mark} sleep 600' &); touch ready; exec -a {mark} sleep 600"
    ));
    eventually("it runs", || session.workspace.join("ready").exists());
    println!("\nready {}", session.folder().display());
    std::io::stdout().flush().unwrap();
    std::thread::sleep(support::PATIENCE);
}

#[test]
fn nothing_survives_the_host_being_killed() {
    let mark = mark("host-killed");
    let mut host = host("a_host_that_will_be_killed")
        .env("FLOE_TEST_MARK", &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let folder = lines
        .find_map(|line| line.unwrap().strip_prefix("ready ").map(str::to_owned))
        .unwrap();
    let in_sandbox = || {
        processes_with(&mark)
            .into_iter()
            .filter(|&pid| pid != host.id())
            .count()
    };
    eventually("the command runs", || in_sandbox() >= 2);
    let pid = rustix::process::Pid::from_raw(host.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    host.wait().unwrap();
    eventually("all of it is gone", || processes_with(&mark).is_empty());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_command_outlives_the_thread_that_spawned_it() {
    let session = Session::new();
    let running = std::thread::scope(|scope| {
        scope
            .spawn(|| session.spawn("read x; echo alive"))
            .join()
            .unwrap()
    });
    running.write("\n");
    assert_eq!(running.finish().stdout, "alive\n");
}

#[test]
fn a_fork_bomb_is_capped_and_cleaned_up() {
    let session = Session::with(|_, options| options.policy.limits.pids = 100);
    let mark = mark("bomb");
    let running = session.spawn(&format!(
        "export MARK={mark}; touch ready; bomb() {{ bomb | bomb & }}; bomb; sleep 600"
    ));
    eventually("it runs", || session.workspace.join("ready").exists());
    let until = Instant::now() + Duration::from_millis(700);
    let mut most = 0;
    while Instant::now() < until {
        // The host keeps forking meanwhile.
        assert!(Command::new("true").status().unwrap().success());
        most = most.max(processes_with(&mark).len());
    }
    // A fresh process namespace gives numbers from 1, so up to the cap plus the kernel's 300 reserved ones.
    assert!(most <= 400, "{most} processes");
    running.control.kill();
    drop(running.finish());
    eventually("all of it is gone", || processes_with(&mark).is_empty());
}

#[test]
fn two_hundred_commands_leave_nothing_behind() {
    let session = Session::new();
    session.ok("true");
    let count = || {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
        let mounts = fs::read_to_string("/proc/self/mounts")
            .unwrap()
            .lines()
            .count();
        let folders = fs::read_dir(session.folder()).unwrap().count();
        (descriptors, mounts, folders)
    };
    let children = || {
        let own = std::process::id().to_string();
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
            // The name may hold anything, but the fields begin after its last parenthesis.
            .filter(|stat| {
                stat.rsplit_once(") ")
                    .is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&own))
                    && stat.contains("floe-sandbox")
            })
            .count()
    };
    if std::env::var_os("FLOE_TEST_ALONE").is_none() {
        // Other tests of this process open and close things meanwhile.
        let output = host("two_hundred_commands_leave_nothing_behind")
            .env("FLOE_TEST_ALONE", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        return;
    }
    let before = count();
    for number in 0..200 {
        let running = session.spawn("(sleep 60 &); exit 7");
        assert_eq!(wait(&running.control), Event::Exited(7), "{number}");
        running.control.kill();
        running.finish();
    }
    eventually("no helper is left", || children() == 0);
    eventually("nothing else is left", || count() == before);
}

#[test]
fn a_terminal_belongs_to_the_command_alone() {
    let session = Session::new();
    let mut command =
        session.command("tty; stty size; stty -echo; read line; echo \"got $line\"; sleep 100");
    command.terminal = Some((100, 30));
    let child = session.sandbox.spawn(&command).unwrap();
    let Streams::Terminal(master) = child.streams else {
        panic!("pipes")
    };
    let mut terminal = File::from(master);
    let mut seen = String::new();
    let mut read_until = |terminal: &mut File, end: &str| {
        let mut bytes = [0; 1024];
        while !seen.contains(end) {
            let length = terminal.read(&mut bytes).unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
        seen.clone()
    };
    assert!(read_until(&mut terminal, "30 100").contains("/dev/pts/0"));
    terminal.write_all(b"hello\n").unwrap();
    read_until(&mut terminal, "got hello");
    terminal.write_all(b"\x03").unwrap();
    assert_eq!(wait(&child.control), Event::Signaled(Signal::INTERRUPT));
    let mut rest = Vec::new();
    let end = terminal.read_to_end(&mut rest).unwrap_err();
    assert_eq!(end.raw_os_error(), Some(libc::EIO));
}

#[test]
fn job_control_works_in_a_terminal() {
    let session = Session::new();
    let mut command = session.command("bash --norc -ic 'sleep 0.1 & jobs; fg; echo done'");
    command.terminal = Some((80, 24));
    let child = session.sandbox.spawn(&command).unwrap();
    let Streams::Terminal(master) = child.streams else {
        panic!("pipes")
    };
    let mut seen = Vec::new();
    let _ = File::from(master).read_to_end(&mut seen);
    assert_eq!(wait(&child.control), Event::Exited(0));
    let seen = String::from_utf8_lossy(&seen);
    assert!(
        seen.contains("done") && !seen.contains("no job control"),
        "{seen}"
    );
}

#[test]
fn the_control_polls_readable_at_the_end() {
    use rustix::event::{PollFd, PollFlags, poll};
    let session = Session::new();
    let running = session.spawn("read x");
    let ready = |wait: i64| {
        let mut polled = [PollFd::from_borrowed_fd(
            running.control.as_fd(),
            PollFlags::IN,
        )];
        let wait = rustix::event::Timespec {
            tv_sec: wait,
            tv_nsec: 0,
        };
        poll(&mut polled, Some(&wait)).unwrap() > 0
    };
    assert!(!ready(0));
    running.write("\n");
    assert!(ready(20));
    assert_eq!(running.control.try_event(), Some(Event::Exited(0)));
}

#[test]
fn a_program_that_is_no_helper_is_an_error_and_not_a_hang() {
    let session = Session::with(|_, options| options.helper = "/bin/true".into());
    let error = session.try_spawn("true").unwrap_err();
    assert!(
        matches!(
            error,
            SandboxError::Helper { .. } | SandboxError::Host { .. }
        ),
        "{error}"
    );
    let session = Session::with(|_, options| options.helper = "/nonexistent".into());
    let error = session.try_spawn("true").unwrap_err();
    assert!(
        matches!(
            error,
            SandboxError::Host {
                errno: libc::ENOENT,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_helper_program_alone_does_nothing() {
    let output = Command::new(support::HELPER).arg0("x").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
