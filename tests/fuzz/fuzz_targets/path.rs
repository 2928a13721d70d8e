//! Whatever a path says, what it resolves to stays inside the Workspace: a file that was put beside it is never read.
#![no_main]

use floe_workspace::Workspace;
use libfuzzer_sys::fuzz_target;
use std::io::Read;
use std::sync::LazyLock;

const SECRET: &str = "outside";

static PLACE: LazyLock<(tempfile::TempDir, Workspace)> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let inside = place.path().join("workspace");
    std::fs::create_dir_all(inside.join("a/b")).expect("the Workspace can be made");
    std::fs::write(place.path().join("c"), SECRET).expect("the secret can be written");
    std::fs::write(inside.join("a/c"), "inside").expect("a file can be written");
    std::os::unix::fs::symlink("../../c", inside.join("a/d")).expect("a link can be made");
    let workspace = Workspace::open(&inside).expect("the Workspace opens");
    (place, workspace)
});

fuzz_target!(|path: &str| {
    if let Ok(mut opened) = PLACE.1.open_file(path) {
        let mut text = String::new();
        let _ = opened.file.read_to_string(&mut text);
        assert_ne!(text, SECRET);
    }
});
