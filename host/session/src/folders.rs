//! The folders of a Session below `FLOE_HOME/sessions`: made for its first command, removed at its end as far as no later
//! Session wants them, and, where a host was killed before it could, by the next one that starts.
//!
//! Whose Session it is says a lock on a file of its folder, which the kernel takes back when the process is gone, however
//! it ended. A folder without that file is nobody's to sweep. What a Trace refers to (outputs), the journal of edits and a
//! home folder with something in it always stay.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use floe_protocol::{Home, SessionId};
use floe_sandbox::remove_folder;

/// The file whose lock the owner of a Session holds.
const LOCK: &str = "lock";

/// How often the lock is tried for: a sweep that holds it takes the file away.
const ATTEMPTS: usize = 100;

/// What language servers keep for themselves, below a Session's folder.
const LANGUAGE_SERVERS: &str = "language-servers";

/// The folders of a Session below `FLOE_HOME`.
pub(crate) struct Folders {
    session: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) tmp: PathBuf,
    pub(crate) outputs: PathBuf,
    /// Made by each language server that starts, and removed at the end.
    pub(crate) language_servers: PathBuf,
    lock: Mutex<Option<File>>,
}

impl Folders {
    pub(crate) fn new(home: &Home, session: &SessionId) -> Folders {
        Folders {
            session: home.session(session),
            home: home.command_home(session),
            tmp: home.command_tmp(session),
            outputs: home.outputs(session),
            language_servers: home.session(session).join(LANGUAGE_SERVERS),
            lock: Mutex::default(),
        }
    }

    /// Makes the folders that commands are given. What fails here is an error of the command that misses its folder, with the
    /// sandbox's own words.
    pub(crate) fn create(&self) {
        *self.lock() = own(&self.session).ok();
        for folder in [&self.home, &self.tmp, &self.outputs] {
            let _ = make(folder);
        }
    }

    /// Removes what no later Session wants: temporary files, and folders that nothing was put into.
    pub(crate) fn clean_up(&self) {
        let mut lock = self.lock();
        clear(&self.session, lock.is_some());
        *lock = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<File>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes what Sessions have left whose hosts were killed, on a thread of its own that nobody waits for: what it does not
/// get done before this process ends is left to the next.
pub(crate) fn sweep_in_background(home: &Home) {
    let sessions = home.sessions();
    let _ = std::thread::Builder::new()
        .name("floe-sweep".to_owned())
        .spawn(move || sweep(&sessions));
}

fn sweep(sessions: &Path) {
    for entry in fs::read_dir(sessions).into_iter().flatten().flatten() {
        let folder = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(lock) = OpenOptions::new().write(true).open(folder.join(LOCK))
            && lock.try_lock().is_ok()
        {
            clear(&folder, true);
        }
    }
}

/// Empties the folder of a Session that has ended. `locked` says that the lock is held, so that its file may go.
fn clear(session: &Path, locked: bool) {
    let emptied = ["tmp", LANGUAGE_SERVERS].map(|folder| remove_folder(&session.join(folder)));
    for folder in ["home", "outputs"] {
        // Fails where something is in it, which is right.
        let _ = fs::remove_dir(session.join(folder));
    }
    if locked && emptied.iter().all(Result::is_ok) {
        let _ = fs::remove_file(session.join(LOCK));
    }
    let _ = fs::remove_dir(session);
}

/// Takes the lock of a Session, making its folder.
fn own(session: &Path) -> io::Result<File> {
    let path = session.join(LOCK);
    for _ in 0..ATTEMPTS {
        make(session)?;
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let lock = match opened {
            // A sweep has just removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        lock.lock()?;
        // A sweep may have removed the file before its lock was ours; then the lock is nobody's.
        let (ours, there) = (lock.metadata()?, fs::metadata(&path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(lock);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Stage {
        folder: tempfile::TempDir,
        home: Home,
    }

    impl Stage {
        fn new() -> Stage {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path().join("floe"));
            Stage { folder, home }
        }

        /// A Session with something in its `/tmp`.
        fn session(&self) -> Folders {
            let folders = Folders::new(&self.home, &SessionId::generate());
            folders.create();
            fs::write(folders.tmp.join("left"), "x").unwrap();
            folders
        }

        fn sweep(&self) {
            sweep(&self.home.sessions());
        }
    }

    #[test]
    fn what_a_killed_host_has_left_is_swept_by_the_next() {
        let stage = Stage::new();
        let killed = stage.session();
        let folder = killed.session.clone();
        // The kernel does the same with the locks of a process that is killed.
        drop(killed);
        stage.sweep();
        assert!(!folder.exists());
    }

    #[test]
    fn a_session_that_lives_is_left_alone() {
        let stage = Stage::new();
        let lives = stage.session();
        stage.sweep();
        assert!(lives.tmp.join("left").exists());
        lives.clean_up();
        assert!(!lives.session.exists());
    }

    #[test]
    fn outputs_the_journal_and_a_home_with_something_in_it_stay() {
        let stage = Stage::new();
        let killed = stage.session();
        fs::write(killed.outputs.join("full.txt"), "x").unwrap();
        fs::write(killed.home.join("installed"), "x").unwrap();
        fs::create_dir(killed.session.join("journal")).unwrap();
        let folder = killed.session.clone();
        drop(killed);
        stage.sweep();
        let mut left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["home", "journal", "outputs"]);
        assert!(folder.join("outputs/full.txt").exists());
    }

    #[test]
    fn a_folder_that_nobody_ever_owned_is_not_swept() {
        let stage = Stage::new();
        let folder = stage.home.sessions().join("somebody");
        fs::create_dir_all(folder.join("tmp")).unwrap();
        stage.sweep();
        assert!(folder.join("tmp").exists());
    }

    #[test]
    fn read_only_folders_are_removed_and_links_are_not_followed() {
        let stage = Stage::new();
        let outside = stage.folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("mine"), "x").unwrap();
        let killed = stage.session();
        symlink(&outside, killed.tmp.join("link")).unwrap();
        let locked = killed.tmp.join("a/b");
        fs::create_dir_all(&locked).unwrap();
        fs::write(locked.join("file"), "x").unwrap();
        for folder in [locked.as_path(), locked.parent().unwrap()] {
            fs::set_permissions(folder, Permissions::from_mode(0o500)).unwrap();
        }
        symlink(&outside, stage.home.sessions().join("linked")).unwrap();
        let folder = killed.session.clone();
        drop(killed);
        stage.sweep();
        assert!(!folder.exists());
        assert!(outside.join("mine").exists());
    }

    #[test]
    fn a_session_can_be_taken_up_again_after_a_sweep() {
        let stage = Stage::new();
        let id = SessionId::generate();
        for _ in 0..2 {
            let folders = Folders::new(&stage.home, &id);
            folders.create();
            assert!(folders.lock().is_some());
            assert!(folders.tmp.exists());
            drop(folders);
            stage.sweep();
        }
    }
}
