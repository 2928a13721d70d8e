//! What exists for the commands of a Session: the system's folders, tool chains, the Session's own folders and the
//! Workspace. Everything else of the machine, the person's home before all, does not.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;
use crate::launch::Sandbox;
use crate::options::SandboxOptions;
use crate::plan::{Access, Bytes, Entry, Fillable};
use crate::policy::{Network, WorkspaceMode};
use crate::secrets;
use crate::toolchains::{self, Toolchains};
use crate::worktree;

/// Where programs and their data live. What a system does not have is left out.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];

/// Folders that the sandbox makes itself, so that nothing of the host is shown in them; a Workspace there is reached as `/workspace` only.
pub const RESERVED: [&str; 5] = ["/workspace", "/floe", "/proc", "/sys", "/dev"];

/// Where programs look for who resolves names; often a link that leads out of the system's folders.
const RESOLVER: &str = "/etc/resolv.conf";

/// The private folder of the view that the whole Session shares.
pub(crate) const TMP: &str = "/tmp";

/// Folders that programs know under another name.
const ALIASES: [(&str, &str); 2] = [("/var/run", "/run"), ("/var/tmp", TMP)];

/// What exists for the commands of a Session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// In the order in which it is put there.
    pub(crate) entries: Vec<Entry>,
    /// Where the Workspace lies in it.
    pub(crate) workspace: PathBuf,
    /// Folders below which commands may write.
    pub(crate) writable: Vec<Bytes>,
    /// Settings of a git directory outside the Workspace that commands may write to: protected where they are there.
    pub(crate) git_settings: Vec<PathBuf>,
}

impl View {
    /// What a command may fill that sees this view.
    pub(crate) fn fillable(&self) -> Fillable {
        Fillable {
            workspace: self.workspace.as_path().into(),
            private: [TMP.into(), Sandbox::HOME.into()],
        }
    }
}

/// Composes the view from what the options say and what this machine has.
pub(crate) fn compose(options: &SandboxOptions, mode: WorkspaceMode) -> Result<View, SandboxError> {
    let access = match mode {
        WorkspaceMode::ReadOnly => Access::Read,
        WorkspaceMode::WorkspaceWrite => Access::Write,
    };
    let tools = toolchains_of(options);
    let mut composer = Composer {
        options,
        entries: Vec::new(),
        writable: Vec::new(),
        shown: Vec::new(),
        hidden: Vec::new(),
        aliases: 0,
    };
    composer.system()?;
    composer.session();
    for folder in &tools.readable {
        composer.show(folder, Access::Read)?;
    }
    composer
        .entries
        .extend(tools.credentials.iter().map(|file| mask(file)));
    if options.policy.network == Network::Host && Path::new(RESOLVER).exists() {
        composer.show(Path::new(RESOLVER), Access::Read)?;
    }
    for (paths, access, what) in [
        (&options.policy.extra_read, Access::Read, "extra_read"),
        (&options.policy.extra_write, Access::Write, "extra_write"),
    ] {
        for path in paths {
            let path = expand(path, options.person_home.as_deref(), what)?;
            refuse_private(&path, options, what)?;
            composer.show(&path, access)?;
        }
    }
    let mut git_settings = Vec::new();
    if let Some(git) = worktree::find(&options.workspace, &options.workspace_path) {
        git_settings.extend(git.fixed());
        git.writable().for_each(|path| composer.hold_in_tmp(&path));
        if access == Access::Write {
            composer.writable.extend(git.writable().map(Bytes::from));
        }
        composer.entries.extend(git.entries(access));
    }
    let workspace = composer.workspace(access);
    composer.alias(&workspace);
    hold_in_masks(&mut composer.entries, &workspace);
    Ok(View {
        entries: composer.entries,
        workspace,
        writable: composer.writable,
        git_settings,
    })
}

/// The tool chains that the options lead to.
pub(crate) fn toolchains_of(options: &SandboxOptions) -> Toolchains {
    let private: Vec<PathBuf> = [
        &options.workspace_path,
        &options.home_dir,
        &options.tmp_dir,
        &options.outputs_dir,
    ]
    .into_iter()
    .chain(&options.person_home)
    .cloned()
    .chain(RESERVED.map(PathBuf::from))
    .collect();
    toolchains::find(
        &options.search_path,
        &private,
        options.person_home.as_deref(),
        |name| std::env::var_os(name),
    )
}

/// Where the Workspace lies in the view.
pub(crate) fn place_of_workspace(options: &SandboxOptions) -> PathBuf {
    let canonical = &options.workspace_path;
    match RESERVED.iter().any(|taken| canonical.starts_with(taken)) {
        true => Sandbox::WORKSPACE.into(),
        false => canonical.clone(),
    }
}

/// The variables that a command needs in this view.
pub(crate) fn environment(options: &SandboxOptions) -> Vec<(OsString, OsString)> {
    let (home, tmp) = if options.unconfined {
        (options.home_dir.clone(), options.tmp_dir.clone())
    } else {
        (PathBuf::from(Sandbox::HOME), PathBuf::from(TMP))
    };
    let own = [("HOME".into(), home.into()), ("TMPDIR".into(), tmp.into())];
    own.into_iter()
        .chain(toolchains_of(options).environment)
        .collect()
}

/// A further file of the host, readable at its own path; nothing where there is no such file.
pub(crate) fn readable_file(path: &Path) -> Option<Entry> {
    let source = path.canonicalize().ok().filter(|source| source.is_file())?;
    // Links on the way to it need not exist in the view; what they lead to would.
    let target = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    Some(Entry::Bind {
        source: source.into(),
        target: target.into(),
        access: Access::Read,
    })
}

/// The folder of `/tmp` that holds a path which lies deeper in it.
pub(crate) fn uppermost_in_tmp(path: &Path) -> Option<PathBuf> {
    let mut parts = path.strip_prefix(TMP).ok()?.components();
    let (first, _deeper) = (parts.next()?, parts.next()?);
    Some(Path::new(TMP).join(first))
}

/// A small file system of one command's own.
pub(crate) fn held(folder: &Path) -> Entry {
    Entry::Memory {
        target: folder.into(),
        size: 1024 * 1024,
    }
}

struct Composer<'a> {
    options: &'a SandboxOptions,
    entries: Vec<Entry>,
    writable: Vec<Bytes>,
    /// Host paths that are in the view already, with all below them.
    shown: Vec<PathBuf>,
    /// What of the system's folders is masked.
    hidden: Vec<PathBuf>,
    /// Where among the entries the aliases of private folders belong: before all that could cover them.
    aliases: usize,
}

impl Composer<'_> {
    fn system(&mut self) -> Result<(), SandboxError> {
        for path in SYSTEM.map(Path::new) {
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_symlink() {
                let to = fs::read_link(path)
                    .map_err(|error| unusable("system folders", path, &error))?;
                self.entries.push(Entry::Link {
                    target: path.into(),
                    to: to.into(),
                });
            } else {
                self.bind(path, path, Access::Read);
            }
            self.shown.push(path.to_owned());
        }
        self.hidden = secrets::find()?;
        self.entries
            .extend(self.hidden.iter().map(|path| mask(path)));
        if let Some(home) = self
            .options
            .person_home
            .as_deref()
            .filter(|home| self.is_shown(home))
        {
            self.entries.push(Entry::Memory {
                target: home.into(),
                size: 64 * 1024,
            });
        }
        Ok(())
    }

    fn session(&mut self) {
        let options = self.options;
        let shared_memory = options
            .policy
            .limits
            .shared_memory_mb
            .saturating_mul(1024 * 1024);
        self.entries.push(Entry::Devices { shared_memory });
        self.entries.push(Entry::Proc);
        self.entries.push(Entry::Folder {
            target: "/run".into(),
        });
        self.aliases = self.entries.len();
        self.bind(&options.tmp_dir, Path::new(TMP), Access::Write);
        self.bind(&options.home_dir, Path::new(Sandbox::HOME), Access::Write);
        self.bind(
            &options.outputs_dir,
            Path::new(Sandbox::OUTPUTS),
            Access::Read,
        );
        self.writable
            .extend([TMP, Sandbox::HOME, "/dev/shm"].map(Bytes::from));
    }

    /// Other names of the private folders, where nothing of the host has to lie below them.
    fn alias(&mut self, workspace: &Path) {
        for (name, to) in ALIASES {
            let taken = self.entries.iter().any(|entry| {
                matches!(entry, Entry::Bind { target, .. } if target.as_path().starts_with(name))
            });
            if !taken && !workspace.starts_with(name) {
                let link = Entry::Link {
                    target: name.into(),
                    to: to.into(),
                };
                self.entries.insert(self.aliases, link);
            }
        }
    }

    fn bind(&mut self, source: &Path, target: &Path, access: Access) {
        // Links on the way are followed now and never again: see `open_shown`.
        let source = source.canonicalize().unwrap_or_else(|_| source.to_owned());
        self.entries.push(Entry::Bind {
            source: source.into(),
            target: target.into(),
            access,
        });
    }

    fn is_shown(&self, path: &Path) -> bool {
        let within = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        within(&self.shown) && !within(&self.hidden)
    }

    /// Shows a path of the host at the same path, and where links led to it as well.
    fn show(&mut self, path: &Path, access: Access) -> Result<(), SandboxError> {
        let real = path
            .canonicalize()
            .map_err(|error| unusable("readable folders", path, &error))?;
        let in_workspace = real.starts_with(&self.options.workspace_path);
        if !in_workspace && (access == Access::Write || !self.is_shown(&real)) {
            self.hold_in_tmp(&real);
            self.bind(&real, &real, access);
            self.shown.push(real.clone());
            if access == Access::Write {
                self.writable.push(real.as_path().into());
            }
        }
        let is_link = path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_symlink());
        if path != real && is_link && !self.is_shown(path) {
            self.entries.push(Entry::Link {
                target: path.into(),
                to: real.into(),
            });
        }
        Ok(())
    }

    /// Keeps a mount below the private `/tmp` from depending on folders that an earlier command could have replaced: the
    /// uppermost of them becomes a file system of this command's own.
    fn hold_in_tmp(&mut self, path: &Path) {
        let Some(first) = uppermost_in_tmp(path) else {
            return;
        };
        let held = held(&first);
        if !self.is_shown(&first) && !self.entries.contains(&held) {
            self.entries.push(held);
        }
    }

    fn workspace(&mut self, access: Access) -> PathBuf {
        let alias = Path::new(Sandbox::WORKSPACE);
        let place = place_of_workspace(self.options);
        self.hold_in_tmp(&place);
        self.entries.push(Entry::Workspace { access });
        if place != alias {
            self.entries.push(Entry::WorkspaceAlias {
                target: alias.into(),
            });
        }
        if access == Access::Write {
            self.writable.push(place.as_path().into());
        }
        place
    }
}

/// A hidden folder in which something else is to be seen becomes an empty one of the command's own, where that finds a
/// place.
pub(crate) fn hold_in_masks(entries: &mut [Entry], workspace: &Path) {
    let mut below = vec![workspace.to_owned()];
    for entry in entries.iter_mut().rev() {
        match entry {
            Entry::Bind { target, .. } => below.push(target.as_path().to_owned()),
            Entry::Mask { target } => {
                let target = target.clone();
                let holds = |path: &PathBuf| {
                    path.ancestors()
                        .skip(1)
                        .any(|above| above == target.as_path())
                };
                if below.iter().any(holds) {
                    *entry = Entry::Memory {
                        target,
                        size: 64 * 1024,
                    };
                }
            }
            _ => {}
        }
    }
}

fn mask(path: &Path) -> Entry {
    Entry::Mask {
        target: path.into(),
    }
}

/// `~` and `~/…` are the person's home; anything else must be absolute.
fn expand(path: &Path, home: Option<&Path>, what: &str) -> Result<PathBuf, SandboxError> {
    let expanded = match (path.strip_prefix("~"), home) {
        (Ok(inside), Some(home)) => home.join(inside),
        _ => path.to_owned(),
    };
    if expanded.is_absolute() {
        return Ok(expanded);
    }
    Err(SandboxError::Setting {
        what: format!("`{what}` path \"{}\"", path.display()),
        reason: "it must be absolute or start with `~/`.".to_owned(),
    })
}

/// Floe's own folder holds what decides about commands and what is told of them.
fn refuse_private(path: &Path, options: &SandboxOptions, what: &str) -> Result<(), SandboxError> {
    let real = path.canonicalize();
    let real = real.as_deref().unwrap_or(path);
    let mut private = options.private.iter();
    if private.any(|private| real.starts_with(private) || private.starts_with(real)) {
        return Err(SandboxError::Setting {
            what: format!("`{what}` path \"{}\"", path.display()),
            reason:
                "it is, holds or lies in the folder where Floe keeps its own files; name another."
                    .to_owned(),
        });
    }
    Ok(())
}

fn unusable(what: &str, path: &Path, error: &std::io::Error) -> SandboxError {
    SandboxError::Setting {
        what: format!("{what} (\"{}\")", path.display()),
        reason: crate::error::errno_text(error.raw_os_error().unwrap_or(libc::EIO)) + ".",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::tests::{file, workspace};

    /// The entries that do not depend on the machine, one a line.
    fn own_entries(view: &View) -> String {
        let from = view
            .entries
            .iter()
            .position(|entry| matches!(entry, Entry::Devices { .. }))
            .unwrap();
        let lines = view.entries[from..].iter().map(|entry| match entry {
            Entry::Bind {
                source,
                target,
                access,
            } => {
                format!("{access:?} {} at {}", source.to_text(), target.to_text())
            }
            Entry::Link { target, to } => format!("Link {} to {}", target.to_text(), to.to_text()),
            Entry::Folder { target } => format!("Folder {}", target.to_text()),
            Entry::Mask { target } => format!("Mask {}", target.to_text()),
            Entry::Memory { target, .. } => format!("Memory {}", target.to_text()),
            Entry::WorkspaceAlias { target } => format!("Workspace at {}", target.to_text()),
            other => format!("{other:?}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn options(root: &Path, opened: std::os::fd::OwnedFd, workspace: &str) -> SandboxOptions {
        let path = |name: &str| root.join(name);
        let mut options = SandboxOptions::new(
            opened,
            workspace.into(),
            path("session/home"),
            path("session/tmp"),
            path("session/outputs"),
        );
        options.person_home = Some(path("person"));
        options.search_path = path("person/tools").into();
        options
    }

    fn composed(options: &SandboxOptions) -> Result<View, SandboxError> {
        compose(options, options.policy.workspace)
    }

    #[test]
    fn the_view_of_a_workspace_is_as_written_here() {
        let (folder, opened) = workspace(|root| {
            file(root, "person/tools/program");
            file(root, "person/tools/.netrc");
            file(root, "person/.ssh/id_rsa");
        });
        let root = folder.path().canonicalize().unwrap();
        let view = composed(&options(&root, opened, "/home/me/project")).unwrap();
        let shown = own_entries(&view).replace(root.to_str().unwrap(), "/ROOT");
        let held = format!("Memory {}", root.display());
        expect_test::expect![[r#"
            Devices { shared_memory: 1073741824 }
            Proc
            Folder /run
            Link /var/tmp to /tmp
            Link /var/run to /run
            Write /ROOT/session/tmp at /tmp
            Write /ROOT/session/home at /floe/home
            Read /ROOT/session/outputs at /floe/outputs
            HELD
            Read /ROOT/person/tools at /ROOT/person/tools
            Mask /ROOT/person/tools/.netrc
            Workspace { access: Write }
            Workspace at /workspace"#]]
        .assert_eq(&shown.replace(&held, "HELD").replace("Memory /ROOT", "HELD"));
        assert_eq!(view.workspace, Path::new("/home/me/project"));
        let writable: Vec<_> = view.writable.iter().map(Bytes::to_text).collect();
        assert_eq!(
            writable,
            ["/tmp", "/floe/home", "/dev/shm", "/home/me/project"]
        );
    }

    #[test]
    fn a_workspace_whose_path_is_taken_inside_lies_at_workspace_only() {
        for taken in ["/workspace", "/workspace/project", "/floe/w", "/dev/shm/w"] {
            let (folder, opened) = workspace(|_| {});
            let view = composed(&options(folder.path(), opened, taken)).unwrap();
            assert_eq!(view.workspace, Path::new("/workspace"));
            assert!(!own_entries(&view).contains("Workspace at"));
        }
    }

    #[test]
    fn no_other_name_of_a_private_folder_stands_in_the_way_of_a_workspace() {
        for (place, expected) in [("/var/tmp/w", false), ("/var", true), ("/home/w", true)] {
            let (folder, opened) = workspace(|root| file(root, "person/x"));
            let view = composed(&options(folder.path(), opened, place)).unwrap();
            let aliased = own_entries(&view).contains("Link /var/tmp to /tmp");
            assert_eq!(aliased, expected, "{place}");
        }
    }

    #[test]
    fn what_lies_in_a_hidden_folder_finds_a_place_there() {
        let masks = ["/opt/a", "/opt/b", "/opt/c"].map(|path| mask(Path::new(path)));
        let bind = Entry::Bind {
            source: "/opt/b/bin".into(),
            target: "/opt/b/bin".into(),
            access: Access::Read,
        };
        let mut entries: Vec<Entry> = masks.into_iter().chain([bind]).collect();
        hold_in_masks(&mut entries, Path::new("/opt/a/w"));
        let held: Vec<_> = entries
            .iter()
            .map(|entry| matches!(entry, Entry::Memory { .. }))
            .collect();
        assert_eq!(held, [true, true, false, false]);
    }

    #[test]
    fn a_path_of_the_policy_must_be_there_and_absolute() {
        for (odd, expected) in [
            ("relative", "absolute"),
            ("/nonexistent/floe", "No such file"),
        ] {
            let (folder, opened) = workspace(|_| {});
            let mut options = options(folder.path(), opened, "/w");
            options.policy.extra_read = vec![odd.into()];
            let refusal = composed(&options).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
