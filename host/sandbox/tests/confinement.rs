//! What a command cannot see, reach or change, and what it can: the walls, tried from within.
//!
//! Everything that is attacked here was made by the test that attacks it, or is only opened, never written.

mod support;

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};

use floe_sandbox::{Event, Policy, Sandbox, WorkspaceMode};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{Mode, OFlags};
use support::{Session, again_within_bwrap, again_without_privileges, eventually};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

#[test]
fn all_of_this_holds_within_walls_that_bubblewrap_builds() {
    again_within_bwrap();
}

#[test]
fn a_file_outside_the_workspace_can_neither_be_read_nor_changed() {
    let session = Session::new();
    let canary = session.canary();
    let path = canary.path();
    fs::create_dir(session.workspace.join("inside")).unwrap();
    std::os::unix::fs::symlink(&session.outside, session.workspace.join("link")).unwrap();
    for reach in [
        path.to_owned(),
        "link/canary".to_owned(),
        "../outside/canary".to_owned(),
        "inside/../../outside/canary".to_owned(),
        format!("/proc/self/root{path}"),
        format!("/proc/1/root{path}"),
        "/proc/1/cwd/../outside/canary".to_owned(),
        "/proc/self/cwd/../outside/canary".to_owned(),
    ] {
        for attack in [
            "cat",
            "echo evil >",
            "echo evil >>",
            "rm -f --",
            "chmod 777",
            "truncate -s0 -c",
        ] {
            let outcome = session.run(&format!("{attack} {reach}"));
            canary.assert_untouched();
            canary.assert_unread(&outcome);
        }
        session.refused(&format!("ln {reach} hard"));
        session.refused(&format!("mv {reach} stolen"));
    }
    canary.assert_untouched();
}

#[test]
fn what_a_command_sees_of_the_system_cannot_be_changed_or_linked_into_the_workspace() {
    let session = Session::new();
    for script in [
        "ln /etc/passwd hard",
        "echo >> /etc/passwd",
        "touch /usr/evil",
        "touch /evil",
        "mkdir /floe/evil",
        "touch /dev/evil",
        "touch /floe/outputs/evil",
        "rm -rf /floe/outputs",
        "mv /tmp /tmp2",
    ] {
        session.refused(script);
    }
}

#[test]
fn secrets_of_the_system_and_the_home_of_the_person_are_not_there() {
    let home = tempfile::tempdir().unwrap();
    for (file, content) in [
        (".ssh/id_rsa", "KEY"),
        (".cargo/credentials.toml", "TOKEN"),
        (".netrc", "LOGIN"),
    ] {
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(home.path().join(".cargo/bin")).unwrap();
    fs::write(home.path().join(".cargo/config.toml"), "[net]").unwrap();
    let session = Session::with(|_, options| {
        options.person_home = Some(home.path().to_owned());
        options.search_path = home.path().join(".cargo/bin").into();
    });
    let home = home.path().display();
    assert_eq!(session.ok(&format!("ls -A {home}")), ".cargo\n");
    assert_eq!(
        session.ok(&format!("cat {home}/.cargo/config.toml")),
        "[net]"
    );
    session.refused(&format!("cat {home}/.cargo/credentials.toml"));
    session.refused(&format!("echo > {home}/.cargo/config.toml"));
    for secret in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"] {
        session.refused(&format!("cat {secret}"));
    }
    assert_eq!(session.ok("ls -A /run; ls -d /sys 2>/dev/null || true"), "");
}

#[test]
fn mounts_devices_and_namespaces_are_refused() {
    let session = Session::new();
    for script in [
        "mount -o remount,rw /",
        "mount -o remount,rw,bind /usr",
        "mount -t tmpfs none /tmp",
        "mount --bind /tmp /usr",
        "umount /proc/sys",
        "umount -l /usr",
        "mknod null c 1 3",
        "unshare -Urm true",
        "unshare -m true",
        "unshare -n true",
        "nsenter -t 1 -m true",
        "chroot / true",
    ] {
        let complaint = session.refused(script);
        assert!(
            complaint.contains("not permitted")
                || complaint.contains("ermission denied")
                || complaint.contains("must be superuser"),
            "{script}: {complaint}"
        );
    }
}

#[test]
fn the_kernel_settings_of_the_machine_cannot_be_opened_for_writing() {
    let session = Session::new();
    for file in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sysrq-trigger",
        "/proc/1/mem",
        "/proc/1/oom_score_adj",
        "/sys/kernel/uevent_helper",
    ] {
        // Opened for appending and closed again: nothing is written even where this goes through.
        session.refused(&format!("exec 3>>{file}"));
    }
}

#[test]
fn processes_and_environment_of_the_host_are_invisible() {
    let session = Session::new();
    let mark = "floe-test-host-process";
    let mut neighbour = Command::new("sleep")
        .arg("60")
        .env("MARK", mark)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // Something that every host of these tests has in its environment.
    let secret = std::env::current_exe().unwrap();
    let seen = session
        .ok("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; echo; ls /proc");
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    assert!(!seen.contains(mark), "{seen}");
    assert!(!seen.contains(secret.to_str().unwrap()), "{seen}");
    assert!(!seen.contains("CARGO_MANIFEST"), "{seen}");
    let processes = seen
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .count();
    assert!(processes <= 4, "{seen}");
    for file in ["environ", "exe", "root/", "cwd/", "maps"] {
        session.refused(&format!("ls /proc/1/{file} && cat /proc/1/{file}"));
    }
    session.refused("kill -0 $PPID && kill -9 1 && kill -0 1 && exit 1");
}

#[test]
fn exactly_the_given_environment_arrives() {
    let session = Session::new();
    let mut command = session.command("cat /proc/self/environ | tr '\\0' '\\n'");
    command.environment = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("A".into(), "b c".into()),
    ];
    let outcome = support::Running::new(session.sandbox.spawn(&command).unwrap()).finish();
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    // What bash itself adds for its children.
    lines.retain(|line| {
        !["PWD=", "SHLVL=", "_=", "OLDPWD"]
            .iter()
            .any(|own| line.starts_with(own))
    });
    lines.sort_unstable();
    assert_eq!(lines, ["A=b c", "PATH=/usr/bin:/bin"]);
}

#[test]
fn a_server_of_the_host_is_unreachable() {
    let session = Session::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    session.refused(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    session.refused(&format!("exec 3<>/dev/tcp/::ffff:127.0.0.1/{port}"));
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn nothing_outside_is_reached_over_the_network() {
    let session = Session::new();
    for script in [
        "exec 3<>/dev/tcp/192.0.2.1/80",
        "exec 3<>/dev/udp/192.0.2.1/53 && echo x >&3",
        "exec 3<>/dev/tcp/2001:db8::1/80",
        "getent hosts floe.invalid",
    ] {
        session.refused(script);
    }
}

#[test]
fn an_abstract_socket_of_the_host_is_unreachable() {
    let session = Session::new();
    let name = format!(
        "floe-test-{}-{}",
        std::process::id(),
        session.folder().display()
    );
    let listener =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    session.refused(&format!(
        "perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 3; connect(S, pack(\"Sxa*\", AF_UNIX, \"{name}\")) or die $!'"
    ));
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_descriptor_that_the_host_leaks_is_not_inherited() {
    let session = Session::new();
    let canary = session.canary();
    let leaked = rustix::fs::open(
        &session.outside,
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    )
    .unwrap();
    let outcome = session.run("for fd in /proc/self/fd/*; do cat $fd/canary; echo evil > $fd/canary; done; ls -l /proc/self/fd");
    drop(leaked);
    canary.assert_untouched();
    canary.assert_unread(&outcome);
    assert!(!outcome.stdout.contains("outside"), "{}", outcome.stdout);
    let open = session.ok("ls /proc/self/fd");
    // The fourth is the listing's own.
    assert_eq!(open, "0\n1\n2\n3\n");
}

#[test]
fn refused_system_calls_fail_as_for_somebody_without_privileges() {
    let session = Session::new();
    let calls = [
        libc::SYS_mount,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_mount_setattr,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_open_by_handle_at,
        libc::SYS_perf_event_open,
    ];
    for call in calls {
        let answer = session.ok(&format!(
            "perl -e 'syscall({call}, 0, 0, 0, 0, 0); print $!+0'"
        ));
        assert_eq!(answer, libc::EPERM.to_string(), "call {call}");
    }
    for family in [
        libc::AF_PACKET,
        libc::AF_VSOCK,
        libc::AF_ALG,
        libc::AF_BLUETOOTH,
    ] {
        let answer = session.ok(&format!("perl -e 'socket(S, {family}, 1, 0); print $!+0'"));
        assert_eq!(answer, libc::EPERM.to_string(), "family {family}");
    }
    let absent = session.ok(&format!(
        "perl -e 'syscall({}, 0, 0); print $!+0'",
        libc::SYS_clone3
    ));
    assert_eq!(absent, libc::ENOSYS.to_string());
    let namespace = libc::CLONE_NEWUSER | libc::SIGCHLD;
    let clone = session.ok(&format!(
        "perl -e 'syscall({}, {namespace}, 0, 0, 0, 0); print $!+0'",
        libc::SYS_clone
    ));
    assert_eq!(clone, libc::EPERM.to_string());
    if cfg!(target_arch = "x86_64") {
        let other_numbers = session.ok("perl -e 'syscall(0x40000000 | 39); print $!+0'");
        assert_eq!(other_numbers, libc::ENOSYS.to_string());
    }
}

#[test]
fn no_words_can_be_put_into_a_terminal() {
    let session = Session::new();
    let request = libc::TIOCSTI;
    let answer = session.ok(&format!(
        "perl -e 'open(T, \"+<\", \"/dev/ptmx\") or die $!; my $x = \"x\"; ioctl(T, {request}, $x) and exit 1; print $!+0'"
    ));
    assert_eq!(answer, libc::EPERM.to_string());
    session.refused("exec 3<>/dev/tty");
}

#[test]
fn a_command_has_no_privileges_and_cannot_gain_any() {
    let session = Session::new();
    let status = session.ok("cat /proc/self/status; awk '$4 !~ /nosuid/' /proc/self/mounts");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(
            status.contains(&format!("{set}:\t0000000000000000")),
            "{status}"
        );
    }
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.contains("Seccomp:\t2"), "{status}");
    assert!(
        !status.contains(" / "),
        "a mount that honours setuid: {status}"
    );
}

#[test]
fn the_workspace_is_found_under_both_names_and_tmp_and_home_are_kept_between_commands() {
    let session = Session::new();
    let workspace = session.workspace.display();
    assert_eq!(session.ok("pwd -P"), format!("{workspace}\n"));
    session.ok("echo one > a; echo two > /workspace/b; mkdir d; echo t > /tmp/t; echo h > ~/h");
    assert_eq!(
        session.ok(&format!(
            "cat /workspace/a {workspace}/b /tmp/t $HOME/h; echo $HOME $TMPDIR"
        )),
        "one\ntwo\nt\nh\n/floe/home /tmp\n"
    );
    assert_eq!(
        fs::read_to_string(session.workspace.join("b")).unwrap(),
        "two\n"
    );
    assert_eq!(session.ok("cd /workspace/d && pwd -P"), "/workspace/d\n");
    fs::write(session.folder().join("outputs/o"), "whole").unwrap();
    assert_eq!(session.ok("cat /floe/outputs/o"), "whole");
    assert_eq!(Sandbox::OUTPUTS, "/floe/outputs");
}

#[test]
fn the_workspace_is_the_folder_that_was_opened_whatever_becomes_of_its_path() {
    let session = Session::new();
    let canary = session.canary();
    session.ok("echo mine > file");
    let moved = session.workspace.with_file_name("moved");
    fs::rename(&session.workspace, &moved).unwrap();
    std::os::unix::fs::symlink(&session.outside, &session.workspace).unwrap();
    assert_eq!(
        session.ok("cat file; echo evil > canary; ls /workspace"),
        "mine\ncanary\nfile\n"
    );
    canary.assert_untouched();
    assert_eq!(fs::read_to_string(moved.join("canary")).unwrap(), "evil\n");
}

#[test]
fn a_read_only_workspace_is_read_only_and_the_private_folders_are_not() {
    let session = Session::with(|workspace, options| {
        fs::write(workspace.join("file"), "content").unwrap();
        options.policy.workspace = WorkspaceMode::ReadOnly;
    });
    session.refused("echo evil > file");
    session.refused("touch /workspace/new");
    assert_eq!(session.ok("touch /tmp/new ~/new && cat file"), "content");
}

#[test]
fn what_the_policy_adds_is_there_and_what_it_denies_is_not() {
    let (read, write) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(read.path().join("r"), "readable").unwrap();
    let session = Session::with(|workspace, options| {
        fs::write(workspace.join(".env"), "SECRET").unwrap();
        fs::create_dir(workspace.join("service")).unwrap();
        fs::write(workspace.join("service/.env.local"), "SECRET").unwrap();
        options.policy = Policy {
            extra_read: vec![read.path().to_owned()],
            extra_write: vec![write.path().to_owned()],
            ..Policy::default()
        };
    });
    let (read, written) = (read.path().display(), write.path().join("w"));
    assert_eq!(
        session.ok(&format!("cat {read}/r; echo yes > {}", written.display())),
        "readable"
    );
    assert_eq!(fs::read_to_string(written).unwrap(), "yes\n");
    session.refused(&format!("echo evil > {read}/r"));
    for script in [
        "cat .env",
        "cat /workspace/service/.env.local",
        "cp .env x",
        "ln .env x",
        "mv .env x",
        "mv service s && cat s/.env.local",
    ] {
        let outcome = session.run(script);
        assert!(!outcome.stdout.contains("SECRET"), "{script}");
        assert_ne!(outcome.event, Event::Exited(0), "{script}");
    }
}

#[test]
fn ordinary_programs_work() {
    let session = Session::new();
    session.ok(
        "perl -MIO::Socket::INET -e '
            my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die $!;
            if (!fork) { IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $server->sockport)->print(\"hi\\n\"); exit }
            print $server->accept->getline eq \"hi\\n\" ? \"\" : die; wait'",
    );
    session.ok("perl -MIO::Socket::UNIX -e '
            for my $path (\"socket\", \"/tmp/socket\") {
                my $server = IO::Socket::UNIX->new(Listen => 1, Local => $path) or die $!;
                if (!fork) { IO::Socket::UNIX->new(Peer => $path)->print(\"hi\\n\"); exit }
                die unless $server->accept->getline eq \"hi\\n\"; wait }'");
    session.ok("perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; setsockopt(A, SOL_SOCKET, 16, 1) or die'");
    session.ok("getent hosts localhost && test -n \"$(hostname)\" && echo x > /dev/null && head -c 4 /dev/urandom | wc -c");
    session.ok("mkfifo pipe && (echo x > pipe &) && cat pipe && mkdir -p a b && echo y > a/f && mv a/f b/g && ln b/g a/h");
    session.ok("f() { echo $1; }; for i in 1 2 3; do f $i; done | sort -r | tee >(cat >/dev/null) | head -1; wait");
    session.ok("cat /proc/meminfo /proc/cpuinfo >/dev/null && df . >/dev/null && ps >/dev/null && id && date");
}

#[test]
fn python_multiprocessing_works() {
    let session = Session::new();
    if session.run("python3 --version").event != Event::Exited(0) {
        return;
    }
    let printed = session.ok("python3 -c '
import multiprocessing as m
if __name__ == \"__main__\":
    with m.Pool(2) as pool: print(sum(pool.map(abs, [-1, -2, -3])))
    q = m.Queue(); p = m.Process(target=q.put, args=(7,)); p.start(); print(q.get()); p.join()'");
    assert_eq!(printed, "6\n7\n");
}

#[test]
fn a_server_of_one_command_is_reached_by_the_next_of_its_session_and_of_no_other() {
    let (session, other) = (Session::new(), Session::new());
    let server = session.spawn(
        "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => \"127.0.0.1\", LocalPort => 4711) or die $!;
            open(R, \">\", \"/workspace/ready\"); close R; while (my $c = $s->accept) { $c->print(\"served\\n\"); close $c }'",
    );
    eventually("the server listens", || {
        session.workspace.join("ready").exists()
    });
    assert_eq!(
        session.ok("exec 3<>/dev/tcp/127.0.0.1/4711; cat <&3"),
        "served\n"
    );
    other.refused("exec 3<>/dev/tcp/127.0.0.1/4711");
    // Processes, however, are each command's own.
    assert_eq!(
        session
            .ok("ls /proc | grep -c '^[0-9]'")
            .trim()
            .parse::<u32>()
            .unwrap()
            .min(5),
        4
    );
    server.control.kill();
    assert_eq!(server.finish().event, Event::SandboxEnded);
}

#[test]
fn a_folder_that_is_swapped_for_a_link_while_it_is_written_to_leads_nowhere() {
    let session = Session::new();
    let canary = session.canary();
    let outside = session.outside.display();
    let swapping = session.spawn(&format!(
        "mkdir real; for i in $(seq 300); do rm -rf d; ln -s {outside} d; rm -f d; ln -s real d; done"
    ));
    while swapping.control.try_event().is_none() {
        let outcome =
            session.run("for i in $(seq 50); do cat d/canary; echo evil > d/canary; done");
        canary.assert_untouched();
        canary.assert_unread(&outcome);
    }
    swapping.finish();
    canary.assert_untouched();
}

#[test]
fn killing_everything_kills_nothing_of_the_host() {
    let session = Session::new();
    let mut neighbour = Command::new("sleep").arg("60").spawn().unwrap();
    let outcome = session.run("sleep 100 & kill -9 -1; echo still");
    assert_eq!(outcome.stdout, "still\n");
    assert!(neighbour.try_wait().unwrap().is_none());
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
}

#[test]
fn a_workspace_that_is_gone_is_told_as_that() {
    let session = Session::new();
    session.ok("true");
    fs::remove_dir_all(&session.workspace).unwrap();
    let error = session.try_spawn("pwd").unwrap_err();
    assert_eq!(error.code(), "not-found");
    assert!(error.to_string().contains("no longer exists"), "{error}");
}

#[test]
fn what_is_added_below_tmp_and_in_the_workspace_is_where_it_belongs() {
    let added = tempfile::tempdir().unwrap();
    let added = added.path().canonicalize().unwrap();
    fs::create_dir_all(added.join("write")).unwrap();
    fs::write(added.join("r"), "readable").unwrap();
    let session = Session::with(|workspace, options| {
        fs::create_dir(workspace.join("sub")).unwrap();
        options.policy.workspace = WorkspaceMode::ReadOnly;
        options.policy.extra_read = vec![added.clone()];
        options.policy.extra_write = vec![added.join("write"), workspace.join("sub")];
    });
    let added_path = added.display();
    session.ok(&format!(
        "cat {added_path}/r && echo x > {added_path}/write/w"
    ));
    session.refused(&format!("echo x > {added_path}/w"));
    // A Workspace that is read-only has no writable part.
    session.refused("echo x > sub/w");
}

#[test]
fn a_hidden_file_is_found_neither_by_a_link_nor_by_moving_what_is_above_it() {
    let session = Session::with(|workspace, _| {
        fs::create_dir_all(workspace.join("service/deep")).unwrap();
        fs::create_dir(workspace.join("settings")).unwrap();
        fs::write(workspace.join("service/deep/.env"), "SECRET").unwrap();
        fs::write(workspace.join("settings/real"), "SECRET").unwrap();
        std::os::unix::fs::symlink("settings/real", workspace.join(".env")).unwrap();
    });
    session.refused("mv service moved");
    session.refused("mv service/deep service/moved");
    for script in [
        "cat moved/deep/.env",
        "cat service/moved/.env",
        "cat .env",
        "cat settings/real",
    ] {
        let outcome = session.run(script);
        assert!(!outcome.stdout.contains("SECRET"), "{script}");
    }
}

#[test]
fn a_search_path_that_names_a_home_shows_nothing_of_it() {
    let person = tempfile::tempdir().unwrap();
    let home = person.path().join("home");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::create_dir_all(home.join(".local/bin")).unwrap();
    fs::create_dir_all(home.join(".local/share/keyrings")).unwrap();
    let secrets = [".ssh/id_rsa", ".local/share/keyrings/login"].map(|name| home.join(name));
    for secret in &secrets {
        fs::write(secret, "SECRET").unwrap();
    }
    let session = Session::with(|_, options| {
        let system = std::env::var_os("PATH").unwrap_or_default();
        let wide = ["/", "/proc"].map(std::path::PathBuf::from);
        let folders = [person.path().into(), home.clone(), home.join(".local/bin")];
        let path = folders.into_iter().chain(wide);
        options.search_path =
            std::env::join_paths(path.chain(std::env::split_paths(&system))).unwrap();
        options.person_home = Some(home.clone());
    });
    session.ok(&format!("ls {}/.local/bin", home.display()));
    for secret in secrets {
        let outcome = session.run(&format!("cat {}", secret.display()));
        assert!(!outcome.stdout.contains("SECRET"), "{}", secret.display());
    }
}

#[test]
fn a_workspace_below_var_tmp_is_where_it_belongs() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    let session = Session::with(|_, options| {
        options.workspace = support::open(&workspace);
        options.workspace_path.clone_from(&workspace);
    });
    let printed = session.ok("pwd; echo written > f; cat /workspace/f");
    assert_eq!(printed, format!("{}\nwritten\n", workspace.display()));
    assert_eq!(fs::read(workspace.join("f")).unwrap(), b"written\n");
}

#[test]
fn a_workspace_that_may_not_be_entered_is_told_as_that() {
    let session = Session::with(|workspace, _| {
        fs::set_permissions(workspace, fs::Permissions::from_mode(0o000)).unwrap();
    });
    let error = session.try_spawn("true").unwrap_err();
    // A host that is root looks into it all the same, and then its command, which has no such rights, may not enter.
    let code = match rustix::process::geteuid().is_root() {
        true => "denied",
        false => "protection",
    };
    assert_eq!(error.code(), code, "{error}");
}

#[test]
fn a_workspace_in_a_folder_that_others_may_not_read_is_seen_without_its_neighbours() {
    // Only root may put something where programs of the machine lie.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/usr/local").unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(root.join("key"), "SECRET").unwrap();
    let workspace = root.join("w");
    fs::create_dir(&workspace).unwrap();
    let session = Session::with(|_, options| {
        options.workspace = support::open(&workspace);
        options.workspace_path.clone_from(&workspace);
    });
    session.ok("echo written > f");
    assert_eq!(fs::read(workspace.join("f")).unwrap(), b"written\n");
    let outcome = session.run(&format!("cat {}/key", root.display()));
    assert!(!outcome.stdout.contains("SECRET"));
}
