//! Files as the protocol names them, and texts of a server without the host's paths in them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use floe_sandbox::Sandbox;
use floe_workspace::Workspace;

/// What is said of a file that is not of the Workspace, behind its name.
const OUTSIDE: &str = "(outside the Workspace)";

/// Where the Workspace and the person's home lie.
#[derive(Debug)]
pub(crate) struct Places {
    workspace: Workspace,
    /// Where the server sees the Workspace.
    root: String,
    /// What is written instead of paths of the host.
    hidden: Vec<(String, &'static str)>,
}

impl Places {
    /// `root` is where the server sees the Workspace.
    pub(crate) fn new(workspace: Workspace, root: &Path, person_home: Option<&Path>) -> Places {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut hidden = vec![(text(workspace.canonical_path()), Sandbox::WORKSPACE)];
        if let Some(home) = person_home.filter(|home| home.parent().is_some()) {
            hidden.push((text(home), "~"));
        }
        Places {
            root: text(root),
            workspace,
            hidden,
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Where the server sees a file of the Workspace.
    pub(crate) fn path(&self, relative: &str) -> String {
        match relative {
            "" | "." => self.root.clone(),
            relative => format!("{}/{relative}", self.root.trim_end_matches('/')),
        }
    }

    /// The address of a file of the Workspace.
    pub(crate) fn uri(&self, relative: &str) -> String {
        to_uri(self.path(relative).as_bytes())
    }

    /// The file of the Workspace that has this address, relative to it.
    pub(crate) fn relative(&self, uri: &str) -> Option<String> {
        let path = from_uri(uri)?;
        let path = path.to_str()?;
        let inside = Path::new(path).strip_prefix(&self.root).ok();
        let resolved = match inside {
            Some(inside) if inside.as_os_str().is_empty() => return None,
            Some(inside) => self.workspace.resolve(inside.to_str()?),
            None => self.workspace.resolve(path),
        };
        Some(resolved.ok()?.as_str().to_owned())
    }

    /// How a place elsewhere is named: not where it lies on this machine.
    pub(crate) fn outside(uri: &str) -> String {
        let path = from_uri(uri).unwrap_or_else(|| PathBuf::from(uri));
        let name = path.file_name().map(|name| name.to_string_lossy());
        let name = name.as_deref().unwrap_or("a file");
        format!("{} {OUTSIDE}", one_line(name))
    }

    /// A text of the server with the Workspace and the person's home under other names.
    pub(crate) fn shown(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for (path, instead) in &self.hidden {
            if shown.contains(path.as_str()) {
                shown = shown.replace(path.as_str(), instead);
            }
        }
        shown
    }
}

/// A text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn to_uri(path: &[u8]) -> String {
    let mut uri = String::from("file://");
    for &byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(byte.into());
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// The path of a `file:` address. Servers differ in which characters they escape.
fn from_uri(uri: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let rest = rest.split(['?', '#']).next()?;
    if !rest.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::new();
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(left.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(folder: &Path) -> Places {
        let workspace = Workspace::open(folder).unwrap();
        let root = workspace.canonical_path().to_owned();
        Places::new(workspace, &root, Some(Path::new("/home/ann")))
    }

    #[test]
    fn a_file_of_the_workspace_has_an_address_and_is_known_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        for name in ["a b#?%.c", "ü/😀.py", "a"] {
            let uri = places.uri(name);
            assert!(uri.is_ascii() && !uri.contains([' ', '#', '?']), "{uri}");
            assert_eq!(places.relative(&uri).as_deref(), Some(name));
        }
        let uri = places.uri("a%40b").replace("%25", "%");
        assert_eq!(places.relative(&uri).as_deref(), Some("a@b"));
    }

    #[test]
    fn what_leads_out_of_the_workspace_is_no_file_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        let root = places.path(".");
        for uri in [
            "file:///etc/passwd",
            "http://a.test/x",
            "untitled:1",
            "file://host/etc",
            "file:///%",
            "file:///%GG",
            "",
            &format!("file://{root}/../x"),
            &format!("file://{root}x/y"),
            &format!("file://{root}"),
        ] {
            assert_eq!(places.relative(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_file_elsewhere_is_its_name_alone() {
        let shown = Places::outside("file:///home/ann/.rustup/lib/option.rs");
        assert_eq!(shown, "option.rs (outside the Workspace)");
        assert_eq!(
            Places::outside("file:///x/a%0Ab"),
            "a b (outside the Workspace)"
        );
    }

    #[test]
    fn texts_name_neither_the_home_nor_where_the_workspace_lies() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        let text = format!("{}/a.c: /home/ann/x", places.path("."));
        assert_eq!(places.shown(&text), "/workspace/a.c: ~/x");
    }

    proptest! {
        #[test]
        fn every_path_comes_back_from_its_address(path in "/[ -~é😀/]{0,30}") {
            let uri = to_uri(path.as_bytes());
            prop_assert_eq!(from_uri(&uri), Some(PathBuf::from(path)));
        }

        #[test]
        fn whatever_address_a_server_gives_is_taken(uri in "(file://)?(localhost)?/?[ -~%]{0,30}") {
            let _ = from_uri(&uri);
            let _ = Places::outside(&uri);
        }
    }
}
