//! Any file can be verified and shown: it holds or it has faults, and nothing panics.
#![no_main]

use floe_trace::{VerifyTarget, verify};
use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(bytes).expect("it can be written");
    let _ = verify(&VerifyTarget::File(file.path().to_path_buf()), None);
});
