//! Which paths the ignore files of a tree leave out. The rules are git's; `.ignore` has the last word over `.gitignore`, and among
//! files of one kind the deepest. A repository within another does not obey the outer one's `.gitignore`.

use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};

/// So many bytes of ignore files are in force at once, from the tree's root down to a folder; what is longer is read up to there. Rules take time
/// and memory that a tree must not be able to ask for without end.
const MOST: u64 = 1024 * 1024;

/// The rules in force in one folder.
#[derive(Debug, Default)]
pub(super) struct Rules {
    above: Option<Rc<Rules>>,
    /// `.ignore`.
    own: Option<Gitignore>,
    /// `.gitignore`.
    git: Option<Gitignore>,
    /// `.git/info/exclude`.
    exclude: Option<Gitignore>,
    /// A repository starts here.
    is_repository: bool,
    /// Bytes of the files of these and the rules above.
    bytes: u64,
}

impl Rules {
    /// The rules in `folder`, whose path in the tree is `path`, below those `above`. `has` says whether the folder holds a name.
    pub(super) fn of_folder(
        above: &Rc<Rules>,
        folder: BorrowedFd<'_>,
        path: &Path,
        has: impl Fn(&str) -> bool,
    ) -> Rc<Rules> {
        let (own, git, is_repository) = (has(".ignore"), has(".gitignore"), has(".git"));
        if !(own || git || is_repository) {
            return Rc::clone(above);
        }
        let mut bytes = above.bytes;
        let mut read = |name: &str| {
            let contents = contents(folder, name, MOST - bytes)?;
            bytes += contents.len() as u64;
            rules(&contents, path)
        };
        Rc::new(Rules {
            above: Some(Rc::clone(above)),
            own: own.then(|| read(".ignore")).flatten(),
            git: git.then(|| read(".gitignore")).flatten(),
            exclude: is_repository.then(|| read(".git/info/exclude")).flatten(),
            is_repository,
            bytes,
        })
    }

    /// Whether the path in the tree is left out.
    pub(super) fn leave_out(&self, path: &Path, is_directory: bool) -> bool {
        let path = absolute(path);
        let (mut own, mut git, mut exclude) = (None, None, None);
        let mut outside_repository = false;
        let mut rules = Some(self);
        while let Some(here) = rules {
            let ask = |verdict: &mut Option<bool>, rules: &Option<Gitignore>| {
                if verdict.is_none()
                    && let Some(rules) = rules
                {
                    *verdict = match rules.matched(&path, is_directory) {
                        Match::None => None,
                        Match::Ignore(_) => Some(true),
                        Match::Whitelist(_) => Some(false),
                    };
                }
            };
            ask(&mut own, &here.own);
            if !outside_repository {
                ask(&mut git, &here.git);
                ask(&mut exclude, &here.exclude);
            }
            outside_repository |= here.is_repository;
            rules = here.above.as_deref();
        }
        own.or(git).or(exclude).unwrap_or(false)
    }
}

/// The whole lines among the first bytes, `most` of them, of one ignore file.
fn contents(folder: BorrowedFd<'_>, name: &str, most: u64) -> Option<Vec<u8>> {
    let file = openat(
        folder,
        name,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut contents = Vec::new();
    File::from(file)
        .take(most)
        .read_to_end(&mut contents)
        .ok()?;
    if u64::try_from(stat.st_size).is_ok_and(|size| size > most) {
        // Half a rule may rule out everything.
        let whole = contents.iter().rposition(|byte| *byte == b'\n');
        contents.truncate(whole.unwrap_or(0));
    }
    Some(contents)
}

/// The rules of one ignore file in a folder; what cannot be understood rules nothing out.
fn rules(contents: &[u8], path: &Path) -> Option<Gitignore> {
    let contents = String::from_utf8_lossy(contents);
    let mut builder = GitignoreBuilder::new(absolute(path));
    for line in contents.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// The matcher compares paths as if the tree were the whole file system.
fn absolute(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}
