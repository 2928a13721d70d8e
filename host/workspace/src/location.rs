//! Which folders may be a Workspace at all.

use std::path::{Path, PathBuf};

use crate::OpenError;

/// File systems that hold no files: a Workspace there would show a tool the host's memory, environment and devices.
const MACHINE: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Refuses folders that no Session should work in: `/`; what is the machine itself (`/proc`, `/sys` and `/dev`, but not
/// `/dev/shm`); the person's home folder, unless it was named on purpose; and
/// any folder that contains or lies in `home_root` (`FLOE_HOME`), always, since a tool could then rewrite its own settings and Traces.
///
/// Links in all three paths are followed as far as they exist; `home_root` need not exist yet.
pub fn check_location(
    path: &Path,
    home_root: &Path,
    person_home: Option<&Path>,
    named_explicitly: bool,
) -> Result<(), OpenError> {
    let path = canonical(path);
    let home = canonical(home_root);
    if path.parent().is_none() {
        return Err(OpenError::FileSystemRoot);
    }
    if let Some(below) = MACHINE.into_iter().find(|below| path.starts_with(below))
        && !path.starts_with("/dev/shm/")
    {
        return Err(OpenError::Machine { path, below });
    }
    if path.starts_with(&home) || home.starts_with(&path) {
        return Err(OpenError::OverlapsHome { path, home });
    }
    if !named_explicitly && person_home.is_some_and(|home| canonical(home) == path) {
        return Err(OpenError::PersonHome { path });
    }
    Ok(())
}

/// The path without links and dots as far as it exists, and the rest as it was given.
fn canonical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut existing = path.as_path();
    loop {
        if let Ok(canonical) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => canonical.join(rest),
                _ => canonical,
            };
        }
        match existing.parent() {
            Some(parent) => existing = parent,
            None => return path,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_root_of_the_file_system_is_refused_whatever_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/", &link).unwrap();
        let home = folder.path().join("home");
        for path in [Path::new("/"), Path::new("/usr/.."), &link] {
            assert_eq!(
                check_location(path, &home, None, true),
                Err(OpenError::FileSystemRoot)
            );
        }
    }

    #[test]
    fn what_is_the_machine_itself_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/proc/self", &link).unwrap();
        let home = folder.path().join("home");
        for path in [
            Path::new("/proc"),
            Path::new("/sys/kernel"),
            Path::new("/dev"),
            &link,
        ] {
            assert!(
                matches!(
                    check_location(path, &home, None, true),
                    Err(OpenError::Machine { .. })
                ),
                "{}",
                path.display()
            );
        }
        let shared_memory = Path::new("/dev/shm/project");
        assert_eq!(check_location(shared_memory, &home, None, true), Ok(()));
    }

    #[test]
    fn the_home_folder_is_refused_unless_it_was_named() {
        let folder = tempfile::tempdir().unwrap();
        let person = folder.path().canonicalize().unwrap().join("person");
        fs::create_dir_all(person.join("project")).unwrap();
        let state = folder.path().join("state");
        let check = |path: &Path, named| check_location(path, &state, Some(&person), named);
        assert_eq!(
            check(&person, false),
            Err(OpenError::PersonHome {
                path: person.clone()
            })
        );
        assert_eq!(check(&person, true), Ok(()));
        assert_eq!(check(&person.join("project"), false), Ok(()));
    }

    #[test]
    fn a_folder_that_contains_or_lies_in_the_state_is_refused_even_where_it_was_named() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let state = base.join("a/state");
        fs::create_dir_all(state.join("agents/x")).unwrap();
        fs::create_dir_all(base.join("a/state-beside")).unwrap();
        let link = base.join("link");
        symlink(&state, &link).unwrap();
        for path in [
            &base,
            &base.join("a"),
            &state,
            &state.join("agents/x"),
            &link,
        ] {
            assert!(
                matches!(
                    check_location(path, &state, None, true),
                    Err(OpenError::OverlapsHome { .. })
                ),
                "{path:?}"
            );
        }
        assert_eq!(
            check_location(&base.join("a/state-beside"), &state, None, false),
            Ok(())
        );
    }

    #[test]
    fn a_state_folder_that_does_not_exist_yet_is_compared_where_it_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let link = base.join("link");
        symlink(&base, &link).unwrap();
        let state = link.join("later/state");
        assert!(matches!(
            check_location(&base, &state, None, true),
            Err(OpenError::OverlapsHome { .. })
        ));
    }
}
