//! What can go wrong: one type for what a model reads, one for what the person who starts a Session reads.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why a path of the Workspace could not be used. Shown to models: it names paths as the tools see them, never as the
/// host does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// The path leaves the Workspace, or is none.
    #[error("Path \"{path}\" is outside the Workspace.")]
    Outside {
        /// As it was given.
        path: String,
    },
    /// There is nothing at the path.
    #[error("\"{path}\" does not exist.")]
    NotFound {
        /// Relative to the Workspace.
        path: String,
    },
    /// The operating system does not let the host read it.
    #[error("\"{path}\" may not be read: its permissions do not allow it.")]
    Denied {
        /// Relative to the Workspace.
        path: String,
    },
    /// The operator keeps its content from tools.
    #[error("The content of \"{path}\" is hidden from tools by the setting deny_read.")]
    Hidden {
        /// Relative to the Workspace.
        path: String,
    },
    /// The operator, or Floe itself, keeps it from being changed.
    #[error(
        "\"{path}\" is protected: what is there is executed or obeyed outside the sandbox, so tools may not change it."
    )]
    Protected {
        /// Relative to the Workspace.
        path: String,
    },
    /// A link stands where a file is to be changed.
    #[error(
        "Refusing to edit through symlink: \"{path}\" is a symbolic link; edit the file that it leads to."
    )]
    Link {
        /// Relative to the Workspace.
        path: String,
    },
    /// There is something where a new file is to be made.
    #[error("\"{path}\" exists already.")]
    Exists {
        /// Relative to the Workspace.
        path: String,
    },
    /// It is not what the tool took it to be.
    #[error("\"{path}\" has changed since it was read{}.", sizes(*then, *now))]
    Stale {
        /// Relative to the Workspace.
        path: String,
        /// Bytes when it was read, where that is known.
        then: Option<u64>,
        /// Bytes now; none where it is gone.
        now: Option<u64>,
    },
    /// The operating system did not let a change be made.
    #[error("\"{path}\" could not be changed: {}.", describe(*errno))]
    NotChanged {
        /// Relative to the Workspace.
        path: String,
        /// What it answered.
        errno: Errno,
    },
    /// A file was needed.
    #[error("\"{path}\" is a directory; name a file.")]
    IsDirectory {
        /// Relative to the Workspace.
        path: String,
    },
    /// A directory was needed.
    #[error("\"{path}\" is not a directory.")]
    NotDirectory {
        /// Relative to the Workspace.
        path: String,
    },
    /// Neither a file nor a directory.
    #[error("\"{path}\" is a {kind}; only regular files can be read.")]
    SpecialFile {
        /// Relative to the Workspace.
        path: String,
        /// `FIFO`, `socket`, `device`.
        kind: &'static str,
    },
    /// The file is larger than the caller takes.
    #[error("\"{path}\" has {size} bytes, more than the {limit} that are read here.")]
    TooLarge {
        /// Relative to the Workspace.
        path: String,
        /// Bytes.
        size: u64,
        /// Bytes.
        limit: u64,
    },
    /// With this file the transactions of the Session would hold more than they may.
    #[error("\"{path}\" is one file too many: the edits under way may hold {limit} bytes in all.")]
    TooMuch {
        /// Relative to the Workspace.
        path: String,
        /// Bytes.
        limit: u64,
    },
    /// As many walks are under way as there may be.
    #[error("\"{path}\" cannot be walked now: {limit} walks are under way already.")]
    Busy {
        /// Relative to the Workspace.
        path: String,
        /// How many there may be.
        limit: usize,
    },
    /// A directory holds more names than a walk looks at.
    #[error("\"{path}\" has more than {limit} entries; only {limit} of them were looked at.")]
    TooMany {
        /// Relative to the Workspace.
        path: String,
        /// How many were looked at.
        limit: u64,
    },
    /// The path of a directory is so long that no path leads to what it holds.
    #[error(
        "\"{path}\" lies too deep: the system opens no path as long as this or those below it."
    )]
    TooDeep {
        /// Relative to the Workspace.
        path: String,
    },
    /// A glob that cannot be read.
    #[error("Invalid glob pattern \"{glob}\": {reason}.")]
    Glob {
        /// As it was given.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Links that lead round in a circle, or more than the system follows.
    #[error("\"{path}\" goes through too many symbolic links.")]
    TooManyLinks {
        /// Relative to the Workspace.
        path: String,
    },
    /// A part of the path is longer than any file's name can be.
    #[error("\"{path}\" has a part that is too long for a file name (255 bytes at most).")]
    NameTooLong {
        /// Relative to the Workspace.
        path: String,
    },
    /// The operating system failed in another way.
    #[error("\"{path}\" could not be read: {}.", describe(*errno))]
    Io {
        /// Relative to the Workspace.
        path: String,
        /// What it answered.
        errno: Errno,
    },
}

impl WorkspaceError {
    /// A word for programs, from the contract's list (wit/workspace.wit); it never changes.
    pub fn code(&self) -> &'static str {
        match self {
            WorkspaceError::Outside { .. } => "outside-workspace",
            WorkspaceError::NotFound { .. } => "not-found",
            WorkspaceError::Denied { .. }
            | WorkspaceError::Hidden { .. }
            | WorkspaceError::Protected { .. }
            | WorkspaceError::Link { .. } => "denied",
            WorkspaceError::Exists { .. } => "exists",
            WorkspaceError::Stale { .. } => "conflict",
            WorkspaceError::IsDirectory { .. } => "is-directory",
            WorkspaceError::NotDirectory { .. } => "not-directory",
            WorkspaceError::SpecialFile { .. } => "not-a-file",
            WorkspaceError::TooLarge { .. } | WorkspaceError::TooMuch { .. } => "too-large",
            WorkspaceError::TooMany { .. } | WorkspaceError::Busy { .. } => "too-many",
            WorkspaceError::TooDeep { .. } => "too-deep",
            WorkspaceError::Glob { .. } => "invalid",
            WorkspaceError::TooManyLinks { .. }
            | WorkspaceError::NameTooLong { .. }
            | WorkspaceError::NotChanged { .. }
            | WorkspaceError::Io { .. } => "io",
        }
    }

    /// The path that it is about; the pattern of [`WorkspaceError::Glob`].
    pub fn path(&self) -> &str {
        match self {
            WorkspaceError::Outside { path }
            | WorkspaceError::NotFound { path }
            | WorkspaceError::Denied { path }
            | WorkspaceError::Hidden { path }
            | WorkspaceError::Protected { path }
            | WorkspaceError::Link { path }
            | WorkspaceError::Exists { path }
            | WorkspaceError::Stale { path, .. }
            | WorkspaceError::NotChanged { path, .. }
            | WorkspaceError::IsDirectory { path }
            | WorkspaceError::NotDirectory { path }
            | WorkspaceError::SpecialFile { path, .. }
            | WorkspaceError::TooLarge { path, .. }
            | WorkspaceError::TooMuch { path, .. }
            | WorkspaceError::TooMany { path, .. }
            | WorkspaceError::Busy { path, .. }
            | WorkspaceError::TooDeep { path }
            | WorkspaceError::TooManyLinks { path }
            | WorkspaceError::NameTooLong { path }
            | WorkspaceError::Io { path, .. } => path,
            WorkspaceError::Glob { glob, .. } => glob,
        }
    }

    /// What to do about it, where the message does not say it yet.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            WorkspaceError::Outside { path } if path.is_empty() => {
                Some("It is empty: name a path, or . for the Workspace itself.")
            }
            WorkspaceError::Outside { .. } => Some(
                "Path not allowed by security policy: use one relative to the Workspace, or one that starts with /workspace/.",
            ),
            WorkspaceError::NotFound { .. } => Some("List the directory to see what is there."),
            WorkspaceError::Hidden { .. } => Some("Ask the person for what you need of it."),
            WorkspaceError::IsDirectory { .. } => Some("List it to see its files."),
            WorkspaceError::NotDirectory { path } if path.contains('/') => {
                Some("Perhaps a folder in its path is a file; list the folders above it.")
            }
            WorkspaceError::Stale { .. } => Some("Read it again, then edit what it is now."),
            WorkspaceError::Protected { .. } => Some("Ask the person to change it."),
            _ => None,
        }
    }

    /// True where the same call may succeed a moment later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            WorkspaceError::Busy { .. }
                | WorkspaceError::Io {
                    errno: Errno::AGAIN | Errno::INTR | Errno::MFILE | Errno::NFILE,
                    ..
                }
        )
    }

    /// The error of a failed system call on a path: `given` as the caller wrote it, `shown` relative to the Workspace.
    pub(crate) fn from_errno(errno: Errno, given: &str, shown: &str) -> WorkspaceError {
        let path = shown.to_owned();
        match errno {
            // The kernel's answer of RESOLVE_BENEATH to what would leave the tree.
            Errno::XDEV => WorkspaceError::Outside {
                path: given.to_owned(),
            },
            Errno::NOENT => WorkspaceError::NotFound { path },
            Errno::ACCESS | Errno::PERM => WorkspaceError::Denied { path },
            Errno::ISDIR => WorkspaceError::IsDirectory { path },
            Errno::NOTDIR => WorkspaceError::NotDirectory { path },
            Errno::LOOP => WorkspaceError::TooManyLinks { path },
            Errno::NAMETOOLONG => WorkspaceError::NameTooLong { path },
            errno => WorkspaceError::Io { path, errno },
        }
    }
}

fn sizes(then: Option<u64>, now: Option<u64>) -> String {
    match (then, now) {
        (_, None) => ": it is gone".to_owned(),
        (Some(then), Some(now)) if then != now => format!(": it had {then} bytes, and now {now}"),
        _ => String::new(),
    }
}

/// Why a folder cannot be a Workspace. Shown to the person who named it, so it names the host's paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is nothing.
    #[error("Workspace {} does not exist; create the folder or name another with --workspace", path.display())]
    Missing {
        /// As it was named.
        path: PathBuf,
    },
    /// A symbolic link without a target.
    #[error("Workspace {} is a symbolic link to {}, which does not exist; name a folder that does", path.display(), target.display())]
    DanglingLink {
        /// As it was named.
        path: PathBuf,
        /// Where the link points.
        target: PathBuf,
    },
    /// Not a directory.
    #[error("Workspace {} is not a folder; name the folder that holds it", path.display())]
    NotDirectory {
        /// As it was named.
        path: PathBuf,
    },
    /// No permission to read it or to go into it.
    #[error("Workspace {} may not be read by this user; change its permissions or name another folder", path.display())]
    Denied {
        /// As it was named.
        path: PathBuf,
    },
    /// The root of the file system.
    #[error("Workspace / is refused: a tool could touch the whole machine; name a project folder")]
    FileSystemRoot,
    /// Not files but the machine itself.
    #[error("Workspace {} is refused: what lies in {} is the machine itself and no files; name a project folder", path.display(), below)]
    Machine {
        /// The folder.
        path: PathBuf,
        /// `/proc`, `/sys` or `/dev`.
        below: &'static str,
    },
    /// The person's home folder, not named as such.
    #[error("Workspace {} is your home folder; name a project folder, or this one with --workspace if you mean it", path.display())]
    PersonHome {
        /// The folder.
        path: PathBuf,
    },
    /// The folder and Floe's own state overlap.
    #[error(
        "Workspace {} and Floe's state in {} overlap: a tool could change its own settings and Traces; name a folder apart from it, or move FLOE_HOME",
        path.display(), home.display()
    )]
    OverlapsHome {
        /// The folder.
        path: PathBuf,
        /// `FLOE_HOME`.
        home: PathBuf,
    },
    /// The kernel cannot keep accesses inside.
    #[error(
        "this system does not offer openat2 ({}), without which a Workspace cannot be kept closed; it needs Linux 5.6 or later and, in a container, a seccomp profile that allows openat2",
        describe(*errno)
    )]
    NoOpenat2 {
        /// What it answered.
        errno: Errno,
    },
    /// The operating system failed in another way.
    #[error("Workspace {} could not be opened: {}", path.display(), describe(*errno))]
    Io {
        /// As it was named.
        path: PathBuf,
        /// What it answered.
        errno: Errno,
    },
}

fn describe(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}
