//! Commands within Landlock and seccomp alone, for which no namespace and no mount is made: what holds there and what its
//! layers admit does not.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;

use floe_sandbox::{
    Event, Layer, LayerName, MinimumTier, Network, Signal, Streams, Tier, WorkspaceMode,
};
use support::{Session, again_without_privileges};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

fn session() -> Session {
    Session::with(|_, options| options.tier = Some(Tier::Landlock))
}

#[test]
fn it_says_what_it_is_and_what_it_lacks() {
    let session = session();
    session.ok("true");
    let confinement = session.sandbox.confinement();
    assert_eq!(confinement.as_str(), "landlock");
    let names: Vec<&str> = confinement
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    assert_eq!(names, LayerName::ALL.map(LayerName::as_str));
    let active = |layer: &&Layer| layer.active;
    let active: Vec<&str> = confinement
        .layers
        .iter()
        .filter(active)
        .map(|layer| layer.name.as_str())
        .collect();
    assert_eq!(active, ["limits", "capabilities", "landlock", "seccomp"]);
    // Nobody gets it without having asked for it.
    assert!(!MinimumTier::default().allows(Tier::Landlock));
}

#[test]
fn a_command_works_in_the_workspace_its_home_and_its_temporary_folder() {
    let session = session();
    let workspace = session.workspace.display();
    assert_eq!(session.ok("pwd -P"), format!("{workspace}\n"));
    let folder = session.folder().canonicalize().unwrap();
    assert_eq!(
        session.ok("echo $HOME $TMPDIR"),
        format!("{0}/home {0}/tmp\n", folder.display())
    );
    session.ok("echo x > a && mkdir b && mv a b/c && ln b/c d && rm d && cat b/c");
    let inode = session.ok("touch e && stat -c %i e && mv e b/f && stat -c %i b/f");
    let inodes: Vec<&str> = inode.lines().collect();
    assert_eq!(inodes[0], inodes[1], "moved, not copied");
    session.ok("echo x > $HOME/a && mv $HOME/a $TMPDIR/a && mv $TMPDIR/a .");
    session.ok("t=$(mktemp) && echo y > $t && cat $t");
    session.ok("echo out > /dev/stdout; echo err 2> /dev/stderr; : > /dev/null; head -c 8 /dev/urandom > /dev/null");
    assert_eq!(session.run("exit 42").event, Event::Exited(42));
    assert_eq!(
        session.run("kill -9 $$").event,
        Event::Signaled(Signal::KILL)
    );
    let script = format!("# {}\necho long", "x".repeat(200 * 1024));
    assert_eq!(session.ok(&script), "long\n");
}

#[test]
fn nothing_outside_is_written_emptied_moved_linked_or_read() {
    let session = session();
    let canary = session.canary();
    let path = canary.path();
    for script in [
        format!("echo x > {path}"),
        format!("echo x >> {path}"),
        format!("truncate -s 0 {path}"),
        format!("rm {path}"),
        format!("mv {path} ."),
        format!("ln {path} linked"),
        format!("touch x; mv x {path}"),
        format!("mkdir {}/new", session.outside.display()),
        format!("cat {path}"),
        format!("ln -s {path} way; cat way"),
        format!("ls {}", session.outside.display()),
        "echo x > /tmp/floe-test-landlock".to_owned(),
        "echo x > /dev/shm/floe-test-landlock".to_owned(),
    ] {
        let outcome = session.run(&script);
        assert_ne!(outcome.event, Event::Exited(0), "{script}");
        canary.assert_unread(&outcome);
        canary.assert_untouched();
    }
}

#[test]
fn what_the_policy_adds_is_read_and_written_and_a_read_only_workspace_is_not_written() {
    let session = Session::with(|workspace, options| {
        options.tier = Some(Tier::Landlock);
        options.policy.workspace = WorkspaceMode::ReadOnly;
        let outside = workspace.parent().unwrap().join("outside");
        for name in ["read", "write"] {
            fs::create_dir(outside.join(name)).unwrap();
            fs::write(outside.join(name).join("file"), "there").unwrap();
        }
        options.policy.extra_read = vec![outside.join("read")];
        options.policy.extra_write = vec![outside.join("write")];
        fs::write(workspace.join("own"), "own").unwrap();
    });
    let outside = session.outside.display();
    let read = session.ok(&format!("cat {outside}/read/file {outside}/write/file own"));
    assert_eq!(read, "therethereown");
    session.ok(&format!("echo x > {outside}/write/new"));
    session.refused(&format!("echo x > {outside}/read/new"));
    session.refused("echo x > own");
    session.refused("touch new");
    session.ok("echo x > $TMPDIR/new");
}

#[test]
fn no_network_is_reached_and_unix_sockets_of_its_own_work() {
    let session = session();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    session.refused(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    session.refused("exec 3<>/dev/udp/127.0.0.1/9");
    let families = "
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            socket.socket(family, kind)
        except PermissionError:
            continue
        print(family, kind)
server = socket.socket(socket.AF_UNIX)
server.bind('socket')
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect('socket')
a, b = socket.socketpair()
print('done')
";
    fs::write(session.workspace.join("families.py"), families).unwrap();
    assert_eq!(session.ok("python3 families.py"), "done\n");
}

#[test]
fn what_the_machine_reaches_is_reached_where_the_policy_says_so() {
    let session = Session::with(|_, options| {
        options.tier = Some(Tier::Landlock);
        options.policy.network = Network::Host;
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    session.ok(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    let layers = session.sandbox.confinement().layers;
    assert!(layers[1].detail.contains("shell.network"), "{layers:#?}");
    assert_eq!(layers.len(), LayerName::ALL.len());
}

#[test]
fn the_hosts_processes_keep_their_environment_and_are_not_signalled() {
    let session = session();
    let own = std::process::id();
    session.refused(&format!("cat /proc/{own}/environ"));
    session.refused(&format!("head -c 1 /proc/{own}/mem"));
    session.refused(&format!("kill -0 {own}"));
    session.refused(&format!("readlink /proc/{own}/fd/0"));
    session.refused("unshare -r true");
    session.refused("echo 1 > /proc/sys/vm/drop_caches");
}

#[test]
fn the_leader_cannot_be_ended_or_stopped_by_its_command() {
    let session = session();
    let outcome = session.run("kill -STOP $PPID; kill -KILL $PPID; echo still here");
    assert_eq!(outcome.event, Event::Exited(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "still here\n");
}

#[test]
fn no_privilege_is_left_and_none_comes_back() {
    let session = session();
    let status = session.ok("cat /proc/self/status");
    for field in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
    assert!(status.contains("NoNewPrivs:\t1"));
    if rustix::process::geteuid().is_root() {
        let bounding = status.lines().find(|line| line.starts_with("CapBnd"));
        assert!(bounding.unwrap().ends_with("\t0000000000000000"));
    }
}

#[test]
fn its_descendants_are_hunted_down_at_its_end_and_when_it_is_killed() {
    let session = session();
    support::hunts_descendants_down(&session);
}

#[test]
fn a_terminal_works() {
    let session = session();
    let mut command = session.command("tty; stty size; echo to > /dev/tty; echo out > /dev/stdout");
    command.terminal = Some((80, 24));
    let child = session.sandbox.spawn(&command).unwrap();
    let Streams::Terminal(master) = child.streams else {
        panic!("pipes")
    };
    let mut seen = Vec::new();
    let _ = std::io::Read::read_to_end(&mut fs::File::from(master), &mut seen);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("24 80"), "{seen}");
    assert!(
        seen.contains("to\r\n") && seen.contains("out\r\n"),
        "{seen}"
    );
}

#[test]
fn git_commits_and_a_build_of_several_processes_works() {
    let session = session();
    session.ok("git init -q . && echo x > x && git add x && git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline");
    session
        .ok("printf 'all: a b\\na b:\\n\\t@echo $@ > $@\\n' > Makefile && make -j2 -s && cat a b");
    assert_eq!(
        fs::metadata(session.workspace.join("x")).unwrap().nlink(),
        1
    );
}
