//! What the figures were measured on, in one line.

use std::fs;
use std::process::Command;

/// Date, kernel, processor, memory, compiler, and how busy the machine was before the run.
pub(crate) fn line() -> String {
    let today = floe_protocol::now();
    let date = today.split('T').next().unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = field("/proc/cpuinfo", "model name");
    let memory: u64 = field("/proc/meminfo", "MemTotal")
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or_default();
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let gibibytes = memory as f64 / f64::from(1 << 20);
    format!(
        "{date}, Linux {kernel}, {processors} × {processor}, {gibibytes:.1} GiB, {}, load before the run {load}",
        compiler()
    )
}

fn compiler() -> String {
    let version = Command::new("rustc").arg("--version").output();
    version.map_or_else(
        |_| "rustc unknown".to_owned(),
        |output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split(" (")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        },
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// What stands after a name and a colon.
fn field(path: &str, name: &str) -> String {
    let text = read(path);
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_else(|| "unknown".to_owned())
}
