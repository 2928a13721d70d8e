//! Real programs in the ways in which they wait for input, and in ways that only look like it.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A program with a pipe as its input.
struct Program {
    child: Child,
    input: InputKind,
}

impl Program {
    fn start(program: &str, arguments: &[&str]) -> Program {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.as_ref().unwrap().as_raw_fd();
        let inode = fs::metadata(format!("/proc/self/fd/{stdin}"))
            .unwrap()
            .ino();
        Program {
            child,
            input: InputKind::Pipe(inode),
        }
    }

    fn comes_to_wait(&self) -> bool {
        let limit = Instant::now() + Duration::from_secs(60);
        while Instant::now() < limit {
            if waits_for_input(self.child.id(), self.input) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// False wherever it is looked at while it gets to what it is to do, and for a while after that.
    fn never_seems_to_wait(&self) -> bool {
        let limit = Instant::now() + Duration::from_secs(1);
        while Instant::now() < limit {
            if waits_for_input(self.child.id(), self.input) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exists(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("passed over: there is no {program} here");
    }
    found
}

#[test]
fn programs_that_are_blocked_in_a_read_wait_also_below_a_shell() {
    for script in [
        "cat",
        "read line",
        "cat | wc -l",
        "sleep 300 & cat",
        "( read line )",
    ] {
        let program = Program::start("bash", &["-c", script]);
        assert!(program.comes_to_wait(), "{script}");
    }
}

#[test]
fn what_reads_another_pipe_or_nothing_does_not_wait() {
    for script in [
        "sleep 300",
        "sleep 300 | cat",
        "read -t 300 line",
        "cat < <(sleep 300)",
    ] {
        let program = Program::start("bash", &["-c", script]);
        assert!(program.never_seems_to_wait(), "{script}");
    }
}

#[test]
fn python_waits_in_input_and_in_every_call_that_watches_its_input_alone() {
    if !exists("python3") {
        return;
    }
    for script in [
        "input('name? ')",
        "import select, sys; select.select([sys.stdin], [], [])",
        "import select, sys; p = select.poll(); p.register(sys.stdin, select.POLLIN); p.poll()",
        "import select, sys; p = select.epoll(); p.register(sys.stdin, select.EPOLLIN); p.poll()",
    ] {
        let program = Program::start("python3", &["-c", script]);
        assert!(program.comes_to_wait(), "{script}");
    }
}

#[test]
fn what_also_waits_for_a_socket_another_program_or_a_clock_is_not_known_to_wait() {
    if !exists("python3") {
        return;
    }
    for script in [
        "import select, socket, sys; s = socket.create_server(('127.0.0.1', 0)); select.select([sys.stdin, s], [], [])",
        "import select, subprocess, sys; c = subprocess.Popen(['sleep', '300'], stdin=-3, stdout=-1); select.select([sys.stdin, c.stdout], [], [])",
        "import select, sys; select.select([sys.stdin], [], [], 300)",
        "import select, sys; p = select.poll(); p.register(sys.stdin, select.POLLIN); p.poll(300000)",
    ] {
        let program = Program::start("python3", &["-c", script]);
        assert!(program.never_seems_to_wait(), "{script}");
    }
}

#[test]
fn a_prompt_of_node_waits_and_a_server_that_also_reads_its_input_does_not() {
    if !exists("node") {
        return;
    }
    let prompt =
        "require('readline').createInterface({input: process.stdin}).question('name? ', () => {})";
    let program = Program::start("node", &["-e", prompt]);
    assert!(program.comes_to_wait());
    let server = "require('http').createServer().listen(0, '127.0.0.1'); process.stdin.resume()";
    let program = Program::start("node", &["-e", server]);
    assert!(program.never_seems_to_wait());
}
