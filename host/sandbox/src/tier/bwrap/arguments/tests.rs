use std::collections::BTreeMap;

use super::*;
use crate::plan::{Execution, Fillable, LONGEST_ARGUMENT, Run};
use crate::policy::Limits;

/// A machine that has what is listed, and nothing else.
#[derive(Default)]
struct Listed {
    host: BTreeMap<PathBuf, Kind>,
    workspace: BTreeMap<PathBuf, Kind>,
}

impl Listed {
    fn host(mut self, kind: Kind, paths: &[&str]) -> Listed {
        self.host
            .extend(paths.iter().map(|path| (path.into(), kind)));
        self
    }

    fn workspace(mut self, kind: Kind, paths: &[&str]) -> Listed {
        self.workspace
            .extend(paths.iter().map(|path| (path.into(), kind)));
        self
    }
}

impl Ask for Listed {
    fn on_host(&self, path: &Path) -> Option<Kind> {
        self.host.get(path).copied()
    }

    fn in_workspace(&self, path: &Path) -> Option<Kind> {
        self.workspace.get(path).copied()
    }
}

fn plan(view: Vec<Entry>) -> Confined {
    Confined {
        view,
        workspace: "/home/me/w".into(),
        protected: Vec::new(),
        denied: Vec::new(),
        writable: Vec::new(),
        identities: Vec::new(),
        execution: Execution {
            program: Run::Script("true".into()),
            directory: "".into(),
            environment: Vec::new(),
            terminal: None,
            script_file: "/floe/script".into(),
            limits: Limits::default(),
            fillable: Fillable {
                workspace: "/home/me/w".into(),
                private: ["/tmp".into(), "/floe/home".into()],
            },
        },
    }
}

/// One option a line, descriptors in angle brackets.
fn shown(options: &[Told]) -> String {
    let word = |word: &Word| match word {
        Word::Text(text) => text.to_text(),
        Word::Workspace => "<workspace>".to_owned(),
        Word::Shown(path) => format!("<{}>", path.to_text()),
        Word::Nothing => "<nothing>".to_owned(),
        Word::Script => "<script>".to_owned(),
    };
    let line = |told: &Told| told.0.iter().map(word).collect::<Vec<_>>().join(" ");
    options.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The options of the view alone, without what every command has.
fn view_of(plan: &Confined, machine: &Listed) -> String {
    let options = translate(plan, machine).options;
    let from = options
        .iter()
        .position(|told| *told == super::told(["--as-pid-1"]))
        .unwrap();
    shown(&options[from + 1..options.len() - 2])
}

fn entry_bind(source: &str, target: &str, access: Access) -> Entry {
    Entry::Bind {
        source: source.into(),
        target: target.into(),
        access,
    }
}

#[test]
fn every_command_has_namespaces_of_its_own_no_capability_and_a_root_that_is_read_only() {
    let options = translate(&plan(Vec::new()), &Listed::default()).options;
    expect_test::expect![[r#"
        --unshare-user
        --unshare-pid
        --unshare-ipc
        --unshare-uts
        --unshare-cgroup-try
        --hostname floe
        --cap-drop ALL
        --die-with-parent
        --as-pid-1
        --remount-ro /
        --chdir /"#]]
    .assert_eq(&shown(&options));
}

#[test]
fn the_sessions_namespaces_are_made_around_the_machine_as_it_is() {
    expect_test::expect![[r#"
        --unshare-user
        --unshare-net
        --cap-drop ALL
        --die-with-parent
        --dev-bind / /
        --chdir /"#]]
    .assert_eq(&shown(&anchor(true)));
    assert!(!shown(&anchor(false)).contains("net"));
}

#[test]
fn a_view_is_told_in_the_order_in_which_it_is_put_there() {
    let plan = plan(vec![
        entry_bind("/usr", "/usr", Access::Read),
        Entry::Link {
            target: "/bin".into(),
            to: "usr/bin".into(),
        },
        entry_bind("/etc", "/etc", Access::Read),
        Entry::Mask {
            target: "/etc/shadow".into(),
        },
        Entry::Mask {
            target: "/etc/private".into(),
        },
        Entry::Mask {
            target: "/etc/gone".into(),
        },
        Entry::Devices {
            shared_memory: 1 << 20,
        },
        Entry::Proc,
        Entry::Folder {
            target: "/run".into(),
        },
        entry_bind("/sessions/1/tmp", "/tmp", Access::Write),
        Entry::Memory {
            target: "/tmp/w".into(),
            size: 65536,
        },
    ]);
    let machine = Listed::default()
        .host(Kind::File, &["/etc/shadow", "/proc/sysrq-trigger"])
        .host(Kind::File, &["/proc/kcore"])
        .host(Kind::Folder, &["/etc/private", "/proc/sys", "/proc/scsi"]);
    expect_test::expect![[r#"
        --ro-bind-fd </usr> /usr
        --symlink usr/bin /bin
        --ro-bind-fd </etc> /etc
        --perms 0000 --ro-bind-data <nothing> /etc/shadow
        --perms 0555 --size 4096 --tmpfs /etc/private
        --remount-ro /etc/private
        --dev /dev
        --perms 1777 --size 1048576 --tmpfs /dev/shm
        --remount-ro /dev
        --proc /proc
        --ro-bind /proc/sys /proc/sys
        --ro-bind /proc/sysrq-trigger /proc/sysrq-trigger
        --perms 0000 --ro-bind-data <nothing> /proc/kcore
        --perms 0555 --size 4096 --tmpfs /proc/scsi
        --remount-ro /proc/scsi
        --perms 0755 --dir /run
        --bind-fd </sessions/1/tmp> /tmp
        --perms 0755 --size 65536 --tmpfs /tmp/w"#]]
    .assert_eq(&view_of(&plan, &machine));
}

fn workspace_plan(access: Access) -> Confined {
    let paths = |paths: &[&str]| paths.iter().map(|&path| path.into()).collect();
    Confined {
        protected: paths(&[".git/config", ".git/hooks"]),
        denied: paths(&["gone/.env", "service/.env", "service/secrets"]),
        ..plan(vec![
            Entry::Workspace { access },
            Entry::WorkspaceAlias {
                target: "/workspace".into(),
            },
        ])
    }
}

fn workspace_machine() -> Listed {
    Listed::default()
        .workspace(Kind::Folder, &[".git", ".git/hooks", "service"])
        .workspace(Kind::Folder, &["service/secrets"])
        .workspace(Kind::File, &[".git/config", "service/.env"])
}

#[test]
fn the_workspace_lies_at_both_of_its_names_with_what_is_hidden_in_it_and_nothing_of_what_is_protected()
 {
    let plan = workspace_plan(Access::Write);
    expect_test::expect![[r#"
        --bind-fd <workspace> /home/me/w
        --perms 0000 --ro-bind-data <nothing> /home/me/w/service/.env
        --perms 0555 --size 4096 --tmpfs /home/me/w/service/secrets
        --remount-ro /home/me/w/service/secrets
        --bind-fd <workspace> /workspace
        --perms 0000 --ro-bind-data <nothing> /workspace/service/.env
        --perms 0555 --size 4096 --tmpfs /workspace/service/secrets
        --remount-ro /workspace/service/secrets"#]]
    .assert_eq(&view_of(&plan, &workspace_machine()));
    let translation = translate(&plan, &workspace_machine());
    assert_eq!(
        translation.workspaces,
        ["/home/me/w", "/workspace"].map(Bytes::from)
    );
}

#[test]
fn a_workspace_that_is_only_read_is_bound_read_only() {
    let told = view_of(&workspace_plan(Access::Read), &Listed::default());
    assert_eq!(
        told,
        "--ro-bind-fd <workspace> /home/me/w\n--ro-bind-fd <workspace> /workspace"
    );
}

#[test]
fn a_mask_is_of_the_kind_of_what_the_view_shows_there_and_not_the_host() {
    let machine = Listed::default()
        .host(Kind::Folder, &["/srv/tools/key", "/opt/tools/key"])
        .host(Kind::File, &["/srv/key"]);
    let mask = |target: &str| Entry::Mask {
        target: target.into(),
    };
    let told = view_of(
        &plan(vec![
            entry_bind("/srv/tools", "/opt/tools", Access::Read),
            mask("/opt/tools/key"),
            entry_bind("/srv/key", "/opt/tools/key", Access::Read),
            mask("/opt/tools/key"),
            Entry::Memory {
                target: "/opt/tools".into(),
                size: 65536,
            },
            mask("/opt/tools/key"),
            mask("/elsewhere"),
        ]),
        &machine,
    );
    expect_test::expect![[r#"
        --ro-bind-fd </srv/tools> /opt/tools
        --perms 0555 --size 4096 --tmpfs /opt/tools/key
        --remount-ro /opt/tools/key
        --ro-bind-fd </srv/key> /opt/tools/key
        --perms 0000 --ro-bind-data <nothing> /opt/tools/key
        --perms 0755 --size 65536 --tmpfs /opt/tools"#]]
    .assert_eq(&told);
}

#[test]
fn a_script_that_is_too_long_for_an_argument_lies_in_the_view() {
    let mut plan = plan(Vec::new());
    plan.execution.program = Run::Script("x".repeat(LONGEST_ARGUMENT + 1).as_str().into());
    assert_eq!(
        view_of(&plan, &Listed::default()),
        "--perms 0444 --file <script> /floe/script"
    );
}
