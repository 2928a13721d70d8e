//! Ways out of the Workspace by path: working directories, links, races, descriptors.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};

use floe_command::{CommandSpec, Status};
use floe_workspace::Workspace;
use rustix::fs::{Mode, OFlags};

use crate::row::Row;
use crate::stage::{ORACLE, Stage, finish, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E1",
        "a working directory outside the Workspace is refused before anything is started",
        working_directory_outside,
    ),
    Row::new(
        "E1",
        "a working directory never widens what a command may write",
        working_directory_widens_nothing,
    ),
    Row::new(
        "E2",
        "a link of the Workspace that leads out changes and tells nothing there",
        links_lead_nowhere,
    ),
    Row::new(
        "E3",
        "a folder that is swapped with a link out while others write through it lets no byte out",
        swapped_folder,
    ),
    Row::new(
        "E4",
        "a Workspace that is reached through a link works in the real folder",
        linked_workspace,
    ),
    Row::new(
        "E5",
        "a file outside cannot be given a name in the Workspace",
        hard_link_to_outside,
    ),
    Row::new(
        "E7",
        "a descriptor that the host leaks is not there",
        leaked_descriptors,
    ),
    Row::new(
        "E8",
        "what /proc tells of the helper leads to no file of the host, and the helper is not writable",
        helper_in_proc,
    ),
    Row::new(
        "E30",
        "a part of the Workspace that the policy protects cannot be changed, by whatever name",
        protected_part,
    ),
];

fn working_directory_outside(stage: &Stage) {
    symlink(&stage.outside, stage.workspace.join("l")).unwrap();
    symlink("l/folder", stage.workspace.join("l2")).unwrap();
    symlink("/proc/self/cwd/..", stage.workspace.join("up")).unwrap();
    fs::create_dir(stage.workspace.join("sub")).unwrap();
    let outside = stage.outside.to_str().unwrap();
    let beside = format!("{}-other", stage.workspace.display());
    fs::create_dir(&beside).unwrap();
    let session = stage.session();
    for directory in [
        outside,
        &beside,
        "..",
        "../outside",
        "sub/../../outside",
        "/workspace/../outside",
        "/workspace/sub/../..",
        &format!("{}/../outside", stage.workspace.display()),
        "/",
        "/tmp",
        "/proc/self/root",
        "l",
        "l/folder",
        "l2",
        "up",
        "up/outside",
        "",
        "sub\0/../..",
        "~",
    ] {
        let spec = CommandSpec {
            working_directory: Some(directory.into()),
            ..CommandSpec::shell("touch here; echo started")
        };
        let refused = stage.wait(session.try_start(spec));
        assert!(refused.is_err(), "{directory:?} was accepted");
    }
    assert!(fs::read_dir(&beside).unwrap().next().is_none());
}

fn working_directory_widens_nothing(stage: &Stage) {
    fs::create_dir(stage.workspace.join("sub")).unwrap();
    let session = stage.session();
    let outside = stage.outside.display();
    for directory in ["sub", "/workspace/sub", "sub/..", "."] {
        let outcome = session.run_spec(CommandSpec {
            working_directory: Some(directory.into()),
            ..CommandSpec::shell(format!(
                "touch {outside}/f && echo evil; cd .. && touch outside/g && echo evil; echo x > /workspace/x"
            ))
        });
        assert!(!outcome.text.contains("evil\n"), "{outcome:?}");
        assert!(outcome.is_success(), "{outcome:?}");
    }
}

fn links_lead_nowhere(stage: &Stage) {
    let link = |to: &std::path::Path, name: &str| symlink(to, stage.workspace.join(name)).unwrap();
    link(&stage.outside, "absolute");
    link("../outside".as_ref(), "relative");
    link("relative".as_ref(), "twice");
    link(&stage.outside.join("file"), "file");
    link(&stage.outside.join("new"), "dangling");
    let root = format!("/proc/self/root{}", stage.outside.display());
    link(root.as_ref(), "magic");
    link("/proc/1/cwd".as_ref(), "init");
    let session = stage.session();
    let mut attacks = Vec::new();
    for folder in ["absolute", "relative", "twice", "magic", "init/../outside"] {
        attacks.extend([
            format!("echo a > {folder}/f"),
            format!("echo a >> {folder}/file"),
            format!("cat {folder}/file"),
            format!("rm {folder}/file"),
            format!("rm -r {folder}/folder"),
            format!("mv {folder}/file stolen"),
            format!("touch mine; mv mine {folder}/mine"),
            format!("touch mine; cp -f mine {folder}/file"),
            format!("touch mine; ln mine {folder}/mine"),
            format!("chmod 600 {folder}/file"),
            format!("chown 1:1 {folder}/file"),
            format!("truncate -s 0 -c {folder}/file && test -e {folder}/file"),
            format!("mkdir {folder}/d"),
            format!("mkfifo {folder}/p"),
            format!("ln -s x {folder}/s"),
            format!("touch -c -d 2000-01-01 {folder}/file && test -e {folder}/file"),
            format!("python3 -c \"import os; os.setxattr('{folder}/file', 'user.x', b'y')\""),
            format!("python3 -c \"import os; os.open('{folder}', os.O_TMPFILE | os.O_RDWR)\""),
            format!("ls {folder}/"),
            format!("cd {folder}"),
        ]);
    }
    attacks.extend(
        [
            "echo a > file",
            "cat file",
            "echo a > dangling",
            "chmod 600 file",
        ]
        .map(str::to_owned),
    );
    session.all_refused(&attacks);
    // The links themselves are the Workspace's own, and may go.
    session.ok("rm absolute relative twice file dangling magic init");
}

/// Swaps `d` between a folder and a link to the folder outside, as fast as it can.
const SWAP: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs('d/sub', exist_ok=True)
os.path.lexists('l') or os.symlink(sys.argv[1], 'l')
print('up', flush=True)
for _ in range(10000):
    assert libc.renameat2(-100, b'd', -100, b'l', 2) == 0, ctypes.get_errno()
print('swapped', flush=True)
"#;

fn swapped_folder(stage: &Stage) {
    fs::create_dir(stage.outside.join("sub")).unwrap();
    fs::set_permissions(stage.outside.join("sub"), fs::Permissions::from_mode(0o777)).unwrap();
    stage.put("swap.py", SWAP);
    let session = stage.session();
    let outside = stage.outside.display();
    stage.wait(async {
        let swapper = session.start(&format!("python3 swap.py {outside}")).await;
        read_until(&swapper, "up\n").await;
        let writer = session
            .start("while test ! -e /tmp/over; do echo evil > d/f; echo evil > d/sub/f; mkdir d/m; rmdir d/m; cat d/file; done 2>/dev/null")
            .await;
        // Working directories below it are looked up by the host and entered by the helper.
        let mut entered = 0;
        while swapper.status() == Status::Running && entered < 400 {
            let spec = CommandSpec {
                working_directory: Some("d/sub".into()),
                ..CommandSpec::shell("echo evil > here; ls")
            };
            if let Ok(command) = session.try_start(spec).await {
                finish(&command).await;
                entered += 1;
            }
        }
        let swapped = finish(&swapper).await;
        assert!(swapped.text.ends_with("swapped\n"), "{swapped:?}");
        finish(&session.start("touch /tmp/over").await).await;
        let written = finish(&writer).await;
        assert!(!written.text.contains(ORACLE), "{written:?}");
    });
}

fn linked_workspace(stage: &Stage) {
    let place = stage.place("links");
    symlink(&stage.workspace, place.join("first")).unwrap();
    symlink("first", place.join("second")).unwrap();
    let session = stage.session_with(|setup| {
        let opened = Workspace::open(&place.join("second")).unwrap();
        setup.sandbox.workspace = opened.fd().try_clone_to_owned().unwrap();
        setup.sandbox.workspace_path = opened.canonical_path().to_owned();
        setup.commands.workspace = opened;
    });
    let text = session.ok("pwd; pwd -P; touch a; mkdir d; cd d; pwd");
    let workspace = stage.workspace.display();
    assert_eq!(text, format!("{workspace}\n{workspace}\n{workspace}/d\n"));
    assert!(stage.has("a"));
    session.refused(&format!("touch {}/b", place.display()));
}

fn hard_link_to_outside(stage: &Stage) {
    symlink(stage.outside.join("file"), stage.workspace.join("l")).unwrap();
    let session = stage.session();
    let outside = stage.outside.display();
    session.all_refused(&[
        format!("ln {outside}/file h"),
        format!("ln -P {outside}/file h"),
        "ln -L l h".to_owned(),
        "cp -lL l h".to_owned(),
        format!("ln /proc/self/root{outside}/file h"),
        "ln ../outside/file h".to_owned(),
        // Everybody may read these, and they are seen inside.
        "ln /etc/passwd h".to_owned(),
        "ln /usr/bin/env h".to_owned(),
        "ln /proc/self/exe h".to_owned(),
        "exec 3</etc/passwd; ln -L /proc/self/fd/3 h".to_owned(),
        format!("python3 -c \"import os; os.link('{outside}/file', 'h')\""),
        "python3 -c \"
import ctypes, os
f = os.open('/etc/passwd', os.O_RDONLY)
libc = ctypes.CDLL(None)
raise SystemExit(0 if libc.linkat(f, b'', -100, b'h', 0x1000) == 0 else 1)\""
            .to_owned(),
    ]);
    assert!(!stage.has("h"));
    // What is the Workspace's own may have two names.
    assert_eq!(
        session.ok("echo x > a; ln a b; echo y >> b; cat a"),
        "x\ny\n"
    );
}

fn leaked_descriptors(stage: &Stage) {
    let session = stage.session();
    let open = |path: &std::path::Path, flags: OFlags| {
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    };
    let leaked = [
        open(&stage.outside, OFlags::RDONLY | OFlags::DIRECTORY),
        open(&stage.outside, OFlags::PATH | OFlags::DIRECTORY),
        open("/etc".as_ref(), OFlags::RDONLY | OFlags::DIRECTORY),
        open(&stage.outside.join("file"), OFlags::RDWR),
    ];
    let numbers: Vec<_> = leaked.iter().map(|leaked| leaked.as_raw_fd()).collect();
    let outcome = session.python(&format!(
        r#"
import os
leaked = {numbers:?}
for fd in set(leaked) | set(range(3, 256)):
    for name in ('', '/file', '/hostname', '/folder/inner', '/../outside/file'):
        try:
            print('READ', fd, name, os.read(os.open(f'/proc/self/fd/{{fd}}{{name}}', os.O_RDONLY), 99))
        except OSError: pass
    for attack in (lambda: os.write(fd, b'evil'), lambda: os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=fd), lambda: os.fchdir(fd), lambda: os.fstat(fd)):
        try:
            attack()
            print('WENT THROUGH', fd)
        except OSError: pass
print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))
"#
    ));
    // The fourth is the listing's own.
    assert_eq!(outcome.text, "[0, 1, 2, 3]\n");
}

fn helper_in_proc(stage: &Stage) {
    // One of the host's own that anybody may change.
    let helper = stage.place("helper").join("helper");
    fs::copy(&stage.helper, &helper).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o777)).unwrap();
    let before = fs::read(&helper).unwrap();
    let session = stage.session_with(|setup| setup.sandbox.helper = helper.clone());
    let outside = stage.outside.display();
    let path = helper.display();
    let mut attacks = vec![
        "echo evil > /proc/self/exe".to_owned(),
        "exec 3<>/proc/self/exe".to_owned(),
        format!("echo evil > {path}"),
        format!("cat {path}"),
        format!("chmod 777 {path}"),
    ];
    for process in ["1", "self", "$$", "$PPID", "thread-self"] {
        attacks.extend([
            format!("exec 3>>/proc/{process}/exe"),
            format!("cat /proc/{process}/root{outside}/file"),
            format!("ls /proc/{process}/root{outside}"),
            format!("echo evil > /proc/{process}/root{outside}/file"),
            format!("cat /proc/{process}/cwd/../outside/file"),
            format!("echo evil > /proc/{process}/cwd/../outside/file"),
            format!("cat /proc/{process}/root/etc/shadow"),
        ]);
    }
    attacks.extend(["root", "cwd", "map_files"].map(|folder| format!("ls /proc/1/{folder}/")));
    attacks.extend(["exe", "mem", "maps"].map(|file| format!("cat /proc/1/{file}")));
    attacks.push(
        "for fd in /proc/1/fd/*; do readlink $fd || cat $fd; done 2>/dev/null | grep .".to_owned(),
    );
    session.all_refused(&attacks);
    // An executable that waits to be overwritten in the moment when it is executed as the next command's helper.
    let racer = session.python(
        r#"
import os
won = 0
for _ in range(3000):
    for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
        try:
            fd = os.open(f'/proc/{pid}/exe', os.O_PATH)
            os.open(f'/proc/self/fd/{fd}', os.O_WRONLY)
            won += 1
        except OSError: pass
        finally:
            try: os.close(fd)
            except (OSError, NameError): pass
print(won)
"#,
    );
    assert_eq!(racer.text, "0\n");
    assert_eq!(before, fs::read(&helper).unwrap());
}

fn protected_part(stage: &Stage) {
    stage.put("docs/page", "written by people");
    stage.put("a/b/docs/page", "written by people");
    stage.put("a/free", "anybody's");
    let session = stage.session_with(|setup| {
        setup.sandbox.policy.protect = vec!["docs".into(), "a/b/docs".into()];
    });
    let mut attacks = Vec::new();
    for docs in ["docs", "a/b/docs", "/workspace/docs", "/workspace/a/b/docs"] {
        attacks.extend([
            format!("echo evil > {docs}/page"),
            format!("echo evil >> {docs}/page"),
            format!("touch {docs}/new"),
            format!("mkdir {docs}/new"),
            format!("rm {docs}/page"),
            format!("rm -rf {docs}"),
            format!("echo evil > x; mv x {docs}/page"),
            format!("mkdir -p d/page; mv -T d {docs}"),
            format!("mv {docs} elsewhere"),
            format!("mv {docs}/page elsewhere"),
            format!("ln {docs}/page elsewhere"),
            format!("chmod 777 {docs}/page"),
            format!("chmod 777 {docs}"),
            format!("touch -d 2000-01-01 {docs}/page"),
            format!("umount {docs}"),
            format!("mount -o remount,rw {docs}"),
        ]);
    }
    attacks.extend(
        [
            "mv a/b a/c",
            "mv a c",
            "rmdir a/b",
            "rm -rf a",
            "python3 -c \"
import ctypes, os
os.makedirs('evil/docs', exist_ok=True)
libc = ctypes.CDLL(None)
done = [libc.renameat2(-100, a, -100, b'evil', 2) == 0 for a in (b'docs', b'a', b'a/b', b'a/b/docs')]
raise SystemExit(0 if any(done) else 1)\"",
        ]
        .map(str::to_owned),
    );
    session.all_refused(&attacks);
    assert_eq!(stage.read("docs/page"), "written by people");
    assert_eq!(stage.read("a/b/docs/page"), "written by people");
    session.ok("test -w a; echo x > a/new; echo x > a/b/new; cat docs/page a/b/docs/page");
}
