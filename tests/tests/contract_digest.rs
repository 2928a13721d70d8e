//! Keeps the contract with tools from changing by accident: a record that grows by a field breaks every component that was
//! built before.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// SHA-256 over the files of `wit/` by name: name, NUL, length as decimal, NUL, contents.
fn digest(folder: &Path) -> String {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("wit/ can be read")
        .map(|entry| entry.expect("wit/ can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wit"))
        .collect();
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let contents = std::fs::read(&file).expect("a file of wit/ can be read");
        hash.update(
            file.file_name()
                .expect("a file has a name")
                .as_encoded_bytes(),
        );
        hash.update(format!("\0{}\0", contents.len()));
        hash.update(contents);
    }
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[test]
fn the_contract_is_the_one_that_was_frozen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let frozen = std::fs::read_to_string(folder.join("DIGEST")).expect("wit/DIGEST can be read");
    let found = digest(&folder);
    assert!(
        frozen.trim() == found,
        "wit/ is not what was frozen in wit/DIGEST.\n\
         Components that were built against the contract may no longer load: records and enums can never change; a new interface, or a \
         new function in one, can come with a new minor version.\n\
         If the change is deliberate, run `make test-contract`, put this digest into wit/DIGEST and say in the commit what it breaks:\n{found}\n"
    );
}
