//! A terminal of the test's own, with `floe` on it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Place, binary};

/// Far beyond what anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program on a terminal.
pub(crate) struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    /// How much of it was waited for already.
    waited: usize,
    child: Child,
}

impl Terminal {
    /// `floe` with these arguments on a new terminal, which is its controlling one.
    pub(crate) fn floe(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Terminal {
        Terminal::floe_behind("", place, arguments, variables)
    }

    /// The same, where these keys were pressed before it started.
    pub(crate) fn floe_behind(
        keys: &str,
        place: &Place,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Terminal {
        let mut command = Command::new(binary());
        command.args(arguments);
        Terminal::program(keys, place, &command, variables)
    }

    /// Any program on a new terminal, which is its controlling one.
    fn program(
        keys: &str,
        place: &Place,
        program: &Command,
        variables: &[(&str, &str)],
    ) -> Terminal {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || -> Stdio {
            File::options()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap())
                .unwrap()
                .into()
        };
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait"])
            .arg(program.get_program())
            .args(program.get_args());
        place.prepare(&mut command);
        command.envs(variables.iter().copied());
        command.stdin(slave()).stdout(slave()).stderr(slave());
        let mut keyboard = File::from(master);
        keyboard.write_all(keys.as_bytes()).unwrap();
        let child = command.spawn().unwrap();
        drop(command);
        let reader = keyboard.try_clone().unwrap();
        Terminal {
            keyboard,
            screen: follow(reader),
            seen: String::new(),
            waited: 0,
            child,
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows `text`, behind what was waited for before: a second question is not the first.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_for_any(&[text]);
    }

    /// As [`Terminal::wait_for`], for one of several texts. Tells which.
    pub(crate) fn wait_for_any(&mut self, texts: &[&str]) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let unread = &self.seen[self.waited..];
            let found = texts
                .iter()
                .enumerate()
                .filter_map(|(index, text)| Some((unread.find(text)? + text.len(), index)))
                .min();
            if let Some((end, index)) = found {
                self.waited += end;
                return index;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{texts:?} did not appear; the screen shows:\n{}", self.seen),
            }
        }
    }

    /// What the screen has shown so far.
    pub(crate) fn shown(&self) -> &str {
        &self.seen
    }

    /// Waits for the end. Returns the exit status and everything that the screen showed.
    pub(crate) fn end(mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.screen.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status.code().unwrap(), self.seen)
    }
}

/// Reads a terminal until nothing holds its other side.
fn follow(mut screen: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = screen.read(&mut bytes) {
            if sender.send(bytes[..count].to_owned()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[test]
fn a_terminal_gets_colour_unless_no_color_is_set() {
    let place = Place::new();
    let (_, coloured) = Terminal::floe(&place, &["tools"], &[]).end();
    assert!(coloured.contains("\x1b["), "{coloured}");
    let (_, plain) = Terminal::floe(&place, &["tools"], &[("NO_COLOR", "1")]).end();
    assert!(!plain.contains('\x1b'), "{plain}");
}

#[test]
fn control_and_direction_characters_of_a_program_are_written_out_on_a_terminal() {
    let place = Place::new();
    place.workspace_file("hostile.txt", "a\u{202e}b\u{9b}2Jc\u{1b}]0;title\u{7}d\n");
    let arguments = ["call", "file_read", r#"{"path":"hostile.txt"}"#];
    let (status, screen) = Terminal::floe(&place, &arguments, &[]).end();
    assert_eq!(status, 0);
    assert!(
        screen.contains("a\\u{202e}b\\x9b2Jc\\x1b]0;title\\x07d"),
        "{screen:?}"
    );
    let piped = place.floe(&arguments);
    assert_eq!(
        piped.stdout, "a\u{202e}b\u{9b}2Jc\u{1b}]0;title\u{7}d\n",
        "into a pipe the bytes go as they are"
    );
}

#[test]
fn ctrl_c_ends_a_run_whose_reader_stalls() {
    let place = Place::new();
    let text = "x".repeat(1 << 20);
    let script = place.file("script.yaml", format!("turns:\n  - text: {text}\n"));
    let pipe = place.file("pipe", "");
    std::fs::remove_file(&pipe).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    // Held open and never read.
    let stalled = File::options().read(true).write(true).open(&pipe).unwrap();
    let model = format!("script:{}", script.display());
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$@\" > \"$0\""])
        .arg(&pipe)
        .arg(binary())
        .args(["run", "--message", "go", "--model", &model]);
    let mut terminal = Terminal::program("", &place, &command, &[]);
    let deadline = Instant::now() + PATIENCE;
    while rustix::io::ioctl_fionread(&stalled).unwrap() < 1 << 16 {
        assert!(Instant::now() < deadline, "the pipe fills");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Two presses at once count as one, so it is pressed until it ends.
    while terminal.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "Ctrl-C ends it");
        terminal.press("\x03");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(terminal.end().0, 130);
}
