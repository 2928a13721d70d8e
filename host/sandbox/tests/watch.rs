//! A command that uses more of the machine than the operator allows is ended, with everything in its sandbox, and what it
//! used too much of is told. All limits here are small, so that no machine notices.

mod support;

use std::fs;

use floe_sandbox::{Event, Excess, SandboxOptions};
use support::{
    Outcome, Session, again_within_bwrap, again_without_privileges, eventually, processes_with,
};

fn session(change: impl FnOnce(&mut SandboxOptions)) -> Session {
    Session::with(|_, options| change(options))
}

/// Both with walls and without.
fn with_and_without_walls(change: impl Fn(&mut SandboxOptions), check: impl Fn(&Session)) {
    for unconfined in [false, true] {
        check(&session(|options| {
            options.unconfined = unconfined;
            change(options);
        }));
    }
}

/// The outcome of a script that would run for long; none of its processes is left.
fn stopped(session: &Session, script: &str) -> Outcome {
    let mark = format!("floe-watch-{}", session.folder().display());
    let outcome = session.run(&format!("export MARK={mark}\n{script}\nsleep 600"));
    eventually("all of it is gone", || processes_with(&mark).is_empty());
    outcome
}

#[test]
fn one_process_with_too_much_memory_ends_its_command() {
    with_and_without_walls(
        |options| options.policy.limits.memory_mb = 64,
        |session| {
            // What has no line end is kept whole.
            let outcome = stopped(session, "head -c 300M /dev/zero | tail");
            let expected = Event::Stopped(Excess::Memory { limit_mb: 64 });
            assert_eq!(outcome.event, expected);
        },
    );
}

#[test]
fn many_processes_that_are_too_much_together_end_their_command() {
    with_and_without_walls(
        |options| options.policy.limits.memory_mb = 100,
        |session| {
            let hoard = "(setsid bash -c 'head -c 30M /dev/zero; sleep 600' | tail) &";
            let outcome = stopped(session, &[hoard; 5].join("\n"));
            let expected = Event::Stopped(Excess::Memory { limit_mb: 100 });
            assert_eq!(outcome.event, expected);
        },
    );
}

#[test]
fn what_processes_share_counts_once() {
    with_and_without_walls(
        |options| options.policy.limits.memory_mb = 300,
        |session| {
            // Ten shells that have all of the first one's memory, which they never touch.
            let script = "x=$(head -c 40M /dev/zero | tr '\\0' x)\n\
                 for i in 1 2 3 4 5 6 7 8 9 10; do read -t 1.5 < <(sleep 600) & done\n\
                 wait; echo ${#x}";
            let outcome = session.run(script);
            assert_eq!(outcome.event, Event::Exited(0), "{}", outcome.stderr);
            assert_eq!(outcome.stdout, "41943040\n");
        },
    );
}

#[test]
fn too_much_in_the_temporary_folder_or_the_home_ends_the_command() {
    for place in ["$TMPDIR", "$HOME/deep/er"] {
        with_and_without_walls(
            |options| options.policy.limits.tmp_mb = 16,
            |session| {
                let script = format!("mkdir -p {place}; head -c 40M /dev/zero > {place}/large");
                let expected = Event::Stopped(Excess::Temporary { limit_mb: 16 });
                assert_eq!(stopped(session, &script).event, expected, "{place}");
            },
        );
    }
}

#[test]
fn many_empty_files_are_too_much_as_well() {
    let session = session(|options| options.policy.limits.tmp_mb = 2);
    let outcome = stopped(&session, "cd /tmp; for i in {1..20000}; do : > $i; done");
    let expected = Event::Stopped(Excess::Temporary { limit_mb: 2 });
    assert_eq!(outcome.event, expected);
    assert!(fs::read_dir(session.folder().join("tmp")).unwrap().count() > 5000);
}

#[test]
fn what_the_session_has_left_in_its_folders_counts_for_its_next_command() {
    let session = session(|options| options.policy.limits.tmp_mb = 16);
    fs::write(session.folder().join("tmp/large"), vec![b'x'; 40 << 20]).unwrap();
    assert_eq!(session.ok("echo short"), "short\n");
    let expected = Event::Stopped(Excess::Temporary { limit_mb: 16 });
    assert_eq!(stopped(&session, "").event, expected);
}

#[test]
fn a_folder_that_an_earlier_command_has_closed_is_watched_once_it_is_open_again() {
    with_and_without_walls(
        |options| options.policy.limits.tmp_mb = 16,
        |session| {
            session.ok("chmod 000 $HOME");
            let script = "chmod 700 $HOME; head -c 40M /dev/zero > $HOME/large";
            let expected = Event::Stopped(Excess::Temporary { limit_mb: 16 });
            assert_eq!(stopped(session, script).event, expected);
        },
    );
}

#[test]
fn neither_the_workspace_nor_what_links_lead_to_counts_as_temporary() {
    let session = session(|options| options.policy.limits.tmp_mb = 16);
    // The Workspace of these tests lies below `/tmp`, on the host and within the walls.
    let script = "head -c 40M /dev/zero > large; ln -s /usr \"$PWD/large\" /tmp; mkfifo /tmp/fifo; \
         sleep 1.5; echo alive";
    assert_eq!(session.ok(script), "alive\n");
}

#[test]
fn a_disk_with_too_little_free_space_ends_the_command() {
    with_and_without_walls(
        |options| options.policy.limits.free_mb = u64::MAX / 1024 / 1024,
        |session| {
            let expected = Event::Stopped(Excess::DiskSpace {
                limit_mb: u64::MAX / 1024 / 1024,
            });
            assert_eq!(stopped(session, "").event, expected);
        },
    );
}

#[test]
fn where_memory_runs_out_a_command_goes_before_its_host() {
    let own: i32 = fs::read_to_string("/proc/self/oom_score_adj")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    with_and_without_walls(
        |_| {},
        |session| {
            let of_command = session.ok("cat /proc/self/oom_score_adj");
            let expected = (own + 500).min(1000);
            assert_eq!(of_command.trim().parse(), Ok(expected));
        },
    );
}

#[test]
fn a_command_that_only_waits_is_left_alone_and_its_leader_sleeps() {
    let session = Session::new();
    let running = session.spawn("read x; echo alive");
    let ticks = || {
        let pid = leader(running.pid);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(std::time::Duration::from_secs(2));
    // A tick is ten milliseconds: a twentieth of a processor would be ten of them.
    assert!(ticks() - before < 10, "{} ticks", ticks() - before);
    running.write("\n");
    assert_eq!(running.finish().stdout, "alive\n");
}

/// The first process of the sandbox: the only child of the helper that the host started, or of the bubblewrap in between.
fn leader(helper: u32) -> u32 {
    let children = format!("/proc/{helper}/task/{helper}/children");
    let child = fs::read_to_string(children)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap();
    if name.trim() == "bwrap" {
        leader(child)
    } else {
        child
    }
}

#[test]
fn as_an_ordinary_user_as_well() {
    again_without_privileges();
}

#[test]
fn within_walls_that_bubblewrap_builds_as_well() {
    again_within_bwrap();
}

#[test]
fn all_of_this_holds_within_walls_that_bubblewrap_builds() {
    again_within_bwrap();
}
