//! Writes the table of built-in tools. With the feature `embed` it holds every `NAME.wasm`, `NAME.cwasm` and `NAME.json` of
//! the folder that `floe precompile` filled (`target/components`, or FLOE_COMPONENTS); without it the table is empty.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=FLOE_COMPONENTS");
    let table = if env::var_os("CARGO_FEATURE_EMBED").is_some() {
        table_of(&components())
    } else {
        "&[]".to_owned()
    };
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("built_in.rs");
    fs::write(&out, table)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", out.display()));
}

/// The folder with the tools.
fn components() -> PathBuf {
    match env::var_os("FLOE_COMPONENTS") {
        Some(folder) => folder.into(),
        None => {
            let manifest =
                env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
            Path::new(&manifest).join("../../target/components")
        }
    }
}

fn table_of(folder: &Path) -> String {
    println!("cargo::rerun-if-changed={}", folder.display());
    let missing = |what: &str| -> ! {
        panic!(
            "{what} in {}: run `make components` before a build with the feature `embed`",
            folder.display()
        )
    };
    let entries = fs::read_dir(folder).unwrap_or_else(|_| missing("no built-in tools"));
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".json")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    if names.is_empty() {
        missing("no built-in tools");
    }
    let mut table = String::from("&[\n");
    for name in names {
        let file = |extension: &str| {
            let path = folder.join(format!("{name}.{extension}"));
            let path = path
                .canonicalize()
                .unwrap_or_else(|_| missing(&format!("no {name}.{extension}")));
            println!("cargo::rerun-if-changed={}", path.display());
            path
        };
        writeln!(
            table,
            "    BuiltIn {{ description: include_str!({:?}), wasm: include_bytes!({:?}), compiled: include_bytes!({:?}) }},",
            file("json"),
            file("wasm"),
            file("cwasm")
        )
        .expect("writing to a String cannot fail");
    }
    table.push(']');
    table
}
