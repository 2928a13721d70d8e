//! The sandbox's helper as a program of its own, for the tests of this crate.

fn main() {
    floe_sandbox::helper_main();
    eprintln!("This program is started by Floe's sandbox and does nothing by itself.");
    std::process::exit(2);
}
