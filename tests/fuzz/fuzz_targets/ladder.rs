//! Whatever is to be replaced in whatever text: the text changes in as many places as are told, or a fault says why not; what was not
//! meant stays byte for byte at both ends.
#![no_main]

use floe_editing::{Step, replace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str, bool)| {
    let (text, old, new, all) = input;
    let Ok(replaced) = replace(text, old, new, all) else {
        return;
    };
    assert!(replaced.count > 0 && (all || replaced.count == 1));
    if replaced.step == Step::Exact {
        let expected = if all { text.replace(old, new) } else { text.replacen(old, new, 1) };
        // What is put in takes on the line endings of the file.
        assert_eq!(replaced.text.replace('\r', ""), expected.replace('\r', ""));
    }
});
