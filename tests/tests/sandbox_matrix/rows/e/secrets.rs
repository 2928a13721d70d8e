//! What a command may not learn: files of the person and of the system, the environment of the host.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use floe_command::CommandSpec;

use crate::row::Row;
use crate::stage::{ORACLE, PRIVATE, SECRET, SECRET_NAME, Stage};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E15",
        "no profile of the Workspace is sourced, whatever the variables say",
        profiles_of_the_workspace,
    ),
    Row::new(
        "E16",
        "the person's keys and the system's passwords are not there",
        private_files,
    ),
    Row::new(
        "E16",
        "tool chains in the person's home are there, their credentials are not",
        credentials_of_tool_chains,
    ),
    Row::new(
        "E17",
        "the environment and the processes of the host are not there",
        environment_of_the_host,
    ),
    Row::new(
        "E18",
        "no socket of the machine is there, and its services start nothing",
        sockets_by_path,
    ),
    Row::new(
        "E19",
        "an abstract socket of the host is not reached",
        abstract_sockets,
    ),
];

fn profiles_of_the_workspace(stage: &Stage) {
    for name in [
        ".bashrc",
        ".profile",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".inputrc",
        "x",
        ".zshenv",
    ] {
        stage.put(name, "echo SOURCED\n");
    }
    let workspace = stage.workspace.to_str().unwrap();
    let script = format!("{workspace}/x");
    let variables = [
        ("HOME", workspace),
        ("BASH_ENV", &script),
        ("ENV", &script),
        ("ZDOTDIR", workspace),
        ("BASH_FUNC_ls%%", "() { echo SOURCED; }"),
    ];
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let of_host = |(name, value): (&str, &str)| (name.into(), value.into());
    // As the call says it, as the host has it, and as the person's own settings say it.
    let session = stage.session_with(|setup| {
        setup
            .commands
            .environment
            .host
            .extend(variables[..4].iter().copied().map(of_host));
        setup
            .commands
            .environment
            .allow
            .extend(variables.map(|(name, _)| name.to_owned()));
    });
    let vault = stage.session_with(|setup| {
        setup.commands.environment.vault = variables[..4].iter().copied().map(owned).collect();
    });
    for session in [&session, &vault] {
        for script in [
            "true",
            "bash -c true",
            "bash -lc true",
            "bash -lic true </dev/null 2>/dev/null",
            "sh -c true",
            "sh -lic true </dev/null 2>/dev/null",
            "bash --login -c 'echo $HOME $BASH_ENV$ENV'",
        ] {
            let outcome = session.run_spec(CommandSpec {
                environment: variables[..4].iter().copied().map(owned).collect(),
                ..CommandSpec::shell(script)
            });
            assert!(!outcome.text.contains("SOURCED"), "{script}: {outcome:?}");
            if script.contains("echo") {
                assert_eq!(outcome.text, "/floe/home\n", "{script}");
            }
        }
    }
}

/// Looks for a word in everything that there is, but what every system has.
fn search(word: &str) -> String {
    format!(
        "grep -rIls --exclude-dir=proc --exclude-dir=usr --exclude-dir=lib --exclude-dir=opt -e '{word}' / /opt/* 2>/dev/null; \
         cat /proc/[0-9]*/{{environ,cmdline,comm,status,maps,mountinfo,stat}} 2>/dev/null | grep -a -c '{word}'"
    )
}

fn private_files(stage: &Stage) {
    let session = stage.session();
    let person = stage.person.display();
    let mut attacks: Vec<String> = [
        ".ssh/id_rsa",
        ".aws/credentials",
        ".netrc",
        ".config/gh/hosts.yml",
        ".bash_history",
        ".docker/config.json",
        ".gnupg/private-keys-v1.d/key",
        ".cargo/credentials.toml",
    ]
    .iter()
    .flat_map(|file| {
        [
            format!("cat {person}/{file}"),
            format!("cat ../person/{file}"),
            format!("cat ~/{file}"),
            format!("cat /proc/self/root{person}/{file}"),
            format!("echo evil > {person}/{file}"),
            format!("stat {person}/{file}"),
        ]
    })
    .collect();
    attacks.extend(
        [
            "cat /etc/shadow",
            "cat /etc/shadow-",
            "cat /etc/gshadow",
            "cat /etc/sudoers",
            "cat /proc/self/root/etc/shadow",
            "exec 3</etc; cat /proc/self/fd/3/shadow",
            "cat /root/.bash_history",
            "cat /root/.ssh/id_rsa",
            "ls /root | grep .",
            "ls /home | grep .",
            "ls /etc/ssh/ssh_host_ed25519_key && cat /etc/ssh/ssh_host_ed25519_key",
            "cat /etc/sudoers.d/*",
            "ls /var/lib /var/log /srv /mnt /media | grep .",
            "cat /dev/mem /dev/kmsg /proc/kcore /proc/kmsg",
            "find / -xdev -name id_rsa 2>/dev/null | grep .",
        ]
        .map(str::to_owned),
    );
    session.all_refused(&attacks);
    for word in [PRIVATE, ORACLE, SECRET] {
        // The search finds its own script in /proc, and nothing else.
        let found = session.run(&search(&format!(
            "{}[{}]{}",
            &word[..2],
            &word[2..3],
            &word[3..]
        )));
        assert_eq!(found.text, "0\n", "{word}");
    }
}

fn credentials_of_tool_chains(stage: &Stage) {
    stage.place("unused");
    for (file, text) in [
        (".cargo/bin/tool", "#!/bin/sh\necho the tool runs\n"),
        (".cargo/config.toml", "[net]\n"),
        (".cargo/credentials", PRIVATE),
    ] {
        let path = stage.person.join(file);
        crate::stage::put(&path, text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path, mode).unwrap();
    }
    let bin = stage.person.join(".cargo/bin");
    let session = stage.session_with(|setup| {
        let mut path = bin.clone().into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        setup.sandbox.search_path = path;
    });
    let person = stage.person.display();
    assert_eq!(
        session.ok(&format!("{}/tool", bin.display())),
        "the tool runs\n"
    );
    assert_eq!(session.ok(&format!("ls -A {person}")), ".cargo\n");
    session.all_refused(&[
        format!("cat {person}/.cargo/credentials.toml"),
        format!("cat {person}/.cargo/credentials"),
        format!("cat {}/../credentials.toml", bin.display()),
        format!("echo evil > {person}/.cargo/config.toml"),
        format!("echo evil > {person}/.cargo/bin/tool"),
        format!("touch {person}/.cargo/bin/evil"),
        format!("mv {person}/.cargo {person}/c"),
        format!("cat {person}/.netrc"),
    ]);
}

fn environment_of_the_host(stage: &Stage) {
    assert_eq!(std::env::var(SECRET_NAME).as_deref(), Ok(SECRET));
    // Neither what the login shell would add nor a name that is allowed brings it in.
    let session = stage.session_with(|setup| {
        setup.commands.environment.allow.push("FLOE_MATRIX".into());
    });
    let host = std::process::id();
    let seen = session.run(
        "env; export -p; cat /proc/self/environ /proc/1/environ /proc/*/environ /proc/*/task/*/environ; ps eww; ps auxewww; \
         cat /proc/*/cmdline /proc/*/comm /proc/*/stat; strings /proc/1/environ",
    );
    assert!(!seen.text.contains(SECRET), "{seen:?}");
    assert!(!seen.text.contains(SECRET_NAME), "{seen:?}");
    assert!(!seen.text.contains("--trial"), "{seen:?}");
    session.all_refused(&[
        format!("ls /proc/{host}"),
        format!("cat /proc/{host}/environ"),
        format!("kill -0 {host}"),
        format!("kill -0 -{host}"),
        "cat /proc/1/environ".to_owned(),
        "cat /proc/1/mem".to_owned(),
        "cat /proc/1/maps".to_owned(),
        "test \"$(ls -d /proc/[0-9]* | wc -l)\" -gt 12".to_owned(),
        "cat /proc/keys".to_owned(),
    ]);
}

/// Tries to connect to every path that is given, by streams and by datagrams.
const CONNECT: &str = r"
import os, socket, sys
for path in sys.argv[1:]:
    address = '\0' + path[1:] if path.startswith('@') else path
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            s = socket.socket(socket.AF_UNIX, kind)
            s.connect(address)
            s.send(b'evil')
            print('REACHED', path, kind)
        except OSError: pass
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.sendto(b'evil', address)
        print('REACHED', path)
    except OSError: pass
print('done')
";

fn connect<S: Into<String>>(paths: impl IntoIterator<Item = S>) -> CommandSpec {
    let arguments = ["-c".to_owned(), CONNECT.to_owned()].into_iter();
    CommandSpec {
        command: "python3".into(),
        args: Some(arguments.chain(paths.into_iter().map(Into::into)).collect()),
        ..CommandSpec::default()
    }
}

fn sockets_by_path(stage: &Stage) {
    let (stream, datagram) = (stage.outside.join("s"), stage.outside.join("d"));
    let listener = UnixListener::bind(&stream).unwrap();
    let receiver = UnixDatagram::bind(&datagram).unwrap();
    listener.set_nonblocking(true).unwrap();
    receiver.set_nonblocking(true).unwrap();
    std::os::unix::fs::symlink(&stream, stage.workspace.join("link")).unwrap();
    let session = stage.session_with(|setup| {
        let variable = ("SSH_AUTH_SOCK".into(), stream.clone().into());
        setup.commands.environment.host.push(variable);
    });
    let root = format!("/proc/self/root{}", stream.display());
    let own = [
        stream.to_str().unwrap(),
        datagram.to_str().unwrap(),
        "../outside/s",
        "link",
        &root,
    ];
    let machine = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/dbus/system_bus_socket",
        "/var/run/dbus/system_bus_socket",
        "/run/user/0/bus",
        "/run/user/1000/bus",
        "/run/user/1000/wayland-0",
        "/run/user/1000/gnupg/S.gpg-agent",
        "/run/systemd/private",
        "/run/systemd/journal/socket",
        "/tmp/.X11-unix/X0",
        "@/tmp/.X11-unix/X0",
        "@/tmp/dbus-session",
        "/dev/log",
        "/var/run/postgresql/.s.PGSQL.5432",
    ];
    let outcome = session.run_spec(connect(own.into_iter().chain(machine)));
    assert_eq!(outcome.text, "done\n");
    assert!(listener.accept().is_err());
    assert!(receiver.recv(&mut [0; 8]).is_err());
    session.all_refused(&[
        "test -n \"$SSH_AUTH_SOCK$DBUS_SESSION_BUS_ADDRESS$DISPLAY$WAYLAND_DISPLAY$XDG_RUNTIME_DIR$DOCKER_HOST\"".to_owned(),
        "ssh-add -l".to_owned(),
        "docker ps".to_owned(),
        format!("systemd-run --user touch {}/f", stage.outside.display()),
        format!("systemd-run touch {}/f", stage.outside.display()),
        format!("echo touch {}/f | at now", stage.outside.display()),
        format!("echo '* * * * * touch {}/f' | crontab -", stage.outside.display()),
        "find / -type s 2>/dev/null | grep .".to_owned(),
    ]);
}

fn abstract_sockets(stage: &Stage) {
    let name = format!("floe-matrix-{}", std::process::id());
    let address = |suffix: &str| SocketAddr::from_abstract_name(format!("{name}{suffix}")).unwrap();
    let listener = UnixListener::bind_addr(&address("")).unwrap();
    let receiver = UnixDatagram::bind_addr(&address("-d")).unwrap();
    listener.set_nonblocking(true).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let session = stage.session();
    let outcome = session.run_spec(connect([format!("@{name}"), format!("@{name}-d")]));
    assert_eq!(outcome.text, "done\n");
    assert!(listener.accept().is_err());
    assert!(receiver.recv(&mut [0; 8]).is_err());
    session.refused(&format!("grep {name} /proc/net/unix"));
    // One of its own is reached.
    let own = session.python(
        "import socket; a = socket.socket(socket.AF_UNIX); a.bind('\\0own'); a.listen(); socket.socket(socket.AF_UNIX).connect('\\0own')",
    );
    assert!(own.is_success(), "{own:?}");
}
