//! Misbehaves in the way that its argument `do` names. `tests/tests/misdeeds` says how each ends.

use std::hint::black_box;

use floe_guests::commands::{CommandSession, CommandSpec};
use floe_guests::workspace::{Walk, WalkOptions};
use floe_guests::{
    ExecutionContext, Failure, Image, ToolResult, cancellation, completed, failure, log, number,
    output, text, tool, workspace,
};

fn execute(arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    let result = completed();
    match text(&arguments, "do").as_str() {
        "spin" => spin(),
        "sleep-in-host" => sleep_in_host(&arguments)?,
        "allocate" => allocate(),
        "recurse" => drop(black_box(recurse(&[1; 512]))),
        "recurse-without-memory" => drop(black_box(recurse_without_memory(1))),
        "flood" => flood(),
        "panic" => panic!("boom at the end"),
        "index" => drop(black_box([1, 2, 3][black_box(7)])),
        "trap" => trap(),
        "exit" => std::process::exit(7),
        "garbage-structured" => {
            return Ok(ToolResult {
                structured: Some("{\"a\": nonsense".to_owned()),
                ..result
            });
        }
        "huge-structured" => {
            return Ok(ToolResult {
                structured: Some("[".repeat(1 << 21)),
                ..result
            });
        }
        "huge-note" => {
            return Ok(ToolResult {
                note: Some("n".repeat(8 << 20)),
                ..result
            });
        }
        "huge-failure" => return Err(failure(&"f".repeat(8 << 20))),
        "huge-images" => {
            let image = Image {
                mime_type: "image/png".to_owned(),
                data: vec![0; 20 << 20],
            };
            return Ok(ToolResult {
                images: vec![image.clone(), image],
                ..result
            });
        }
        "million-deltas" => {
            for _ in 0..1_000_000 {
                output::write("x");
            }
        }
        "huge-string" => drop(output::write(&"h".repeat(48 << 20))),
        "huge-list" => {
            let paths = vec![String::new(); 3 << 20];
            workspace::read_batch(&paths, u32::MAX)?;
        }
        "huge-log" => log::write(log::Level::Info, &"l".repeat(16 << 20), &[]),
        "leak" => leak()?,
        "leak-commands" => leak_commands(&arguments)?,
        "write-until-cancelled" => {
            while !cancellation::is_cancelled() {
                output::write("before ");
            }
            // It knows, and does not care.
            spin();
        }
        "flood-stderr" => {
            for line in 0..2_000 {
                eprintln!("line {line}");
            }
            panic!("drowned");
        }
        "random" => drop(black_box(random())),
        other => return Err(failure(&format!("no such misdeed: {other}"))),
    }
    Ok(completed())
}

fn spin() {
    loop {
        black_box(());
    }
}

/// Waits in the host for a command that prints nothing for as long as a call can ask for.
fn sleep_in_host(arguments: &str) -> Result<(), Failure> {
    let session = CommandSession::spawn(&sleep(arguments))?;
    loop {
        if session.read_output(1024, u32::MAX)?.ended {
            return Ok(());
        }
    }
}

/// A command that sleeps for as many seconds as the arguments say.
fn sleep(arguments: &str) -> CommandSpec {
    CommandSpec {
        command: format!("sleep {}", number(arguments, "seconds")),
        args: None,
        working_directory: None,
        environment: Vec::new(),
        tty: false,
        raw_output: false,
    }
}

fn allocate() {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Each frame takes room in the linear memory.
#[inline(never)]
#[allow(unconditional_recursion)] // That is the misdeed.
fn recurse(above: &[u8; 512]) -> u64 {
    let mut frame = [0_u8; 512];
    frame[usize::from(above[0])] = above[1].wrapping_add(1);
    let frame = black_box(frame);
    recurse(&frame) + u64::from(frame[2])
}

/// Each frame takes room on the engine's stack alone.
#[inline(never)]
fn recurse_without_memory(depth: u64) -> u64 {
    match black_box(depth) {
        0 => 0,
        deeper => recurse_without_memory(deeper + 1).wrapping_mul(3) + black_box(1),
    }
}

fn flood() {
    let line = "all work and no play makes a dull guest\n".repeat(1000);
    loop {
        output::write(&line);
    }
}

fn trap() {
    core::arch::wasm32::unreachable()
}

/// Opens walks and forgets their handles.
fn leak() -> Result<(), Failure> {
    let options = WalkOptions {
        root: String::new(),
        include_globs: Vec::new(),
        exclude_globs: Vec::new(),
        respect_ignore: false,
        hidden: false,
        max_depth: None,
        max_file_size: None,
        containing: Vec::new(),
    };
    loop {
        std::mem::forget(Walk::open(&options)?);
    }
}

/// Starts a few commands and forgets their handles.
fn leak_commands(arguments: &str) -> Result<(), Failure> {
    for _ in 0..4 {
        std::mem::forget(CommandSession::spawn(&sleep(arguments))?);
    }
    Ok(())
}

/// Asks for more random bytes at once than there is memory for.
fn random() -> usize {
    let mut bytes = vec![0_u8; 32 << 20];
    // SAFETY: the buffer is as long as is said.
    unsafe { wasi_random_get(bytes.as_mut_ptr(), bytes.len()) };
    bytes.len()
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    #[link_name = "random_get"]
    fn wasi_random_get(buffer: *mut u8, length: usize) -> u32;
}

tool!("hostile", Execute, execute);
