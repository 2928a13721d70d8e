//! The two streams that a person sees as one: results on standard output, everything else on standard error.
//!
//! Writing goes through here so that a question is never torn apart by output, a line of one stream never ends in the
//! middle of one of the other, and a reader that went away ends the work instead of killing the program.

use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use super::{Keep, Paint, visible};

/// Why results of this process were lost, where their reader did not just go away.
static LOST: OnceLock<String> = OnceLock::new();

/// Why results of this process were lost: a full disk, say. None where all were written, or nobody wanted more of them.
pub(crate) fn lost_results() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Where text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Result,
    Aside,
}

/// Both streams. Shared by everything that prints.
pub(crate) struct Screen {
    state: Mutex<State>,
    result_is_terminal: bool,
    aside_is_terminal: bool,
    /// True where both streams lead to the same place, so that they share lines.
    shared: bool,
    reader_gone: CancellationToken,
}

struct State {
    result: Box<dyn Write + Send>,
    aside: Box<dyn Write + Send>,
    /// False where the last character of the stream was no line feed.
    result_at_line_start: bool,
    aside_at_line_start: bool,
    /// What is to be written once the question is closed.
    held: Option<Vec<(Stream, String)>>,
    /// True while a line of progress is shown.
    progress_shown: bool,
}

impl Screen {
    /// The streams of this process.
    pub(crate) fn of_process() -> Screen {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        Screen {
            result_is_terminal: stdout.is_terminal(),
            aside_is_terminal: stderr.is_terminal(),
            shared: same_file(&stdout, &stderr),
            ..Screen::over(Box::new(stdout), Box::new(stderr))
        }
    }

    /// Other streams, neither of them a terminal.
    fn over(result: Box<dyn Write + Send>, aside: Box<dyn Write + Send>) -> Screen {
        Screen {
            state: Mutex::new(State {
                result,
                aside,
                result_at_line_start: true,
                aside_at_line_start: true,
                held: None,
                progress_shown: false,
            }),
            result_is_terminal: false,
            aside_is_terminal: false,
            shared: false,
            reader_gone: CancellationToken::new(),
        }
    }

    /// Cancelled when nobody reads the results any more.
    pub(crate) fn reader_gone(&self) -> &CancellationToken {
        &self.reader_gone
    }

    /// True where a person can be asked on standard error.
    pub(crate) fn aside_is_terminal(&self) -> bool {
        self.aside_is_terminal
    }

    /// The colours of results.
    pub(crate) fn result_paint(&self) -> Paint {
        Paint::for_stream(self.result_is_terminal)
    }

    /// The colours of everything else.
    pub(crate) fn aside_paint(&self) -> Paint {
        Paint::for_stream(self.aside_is_terminal)
    }

    /// Text of a tool or a model, to standard output: as it is, or made visible where that is a terminal.
    pub(crate) fn untrusted_result(&self, text: &str) {
        if self.result_is_terminal {
            self.result(&visible(text, Keep::LinesAndTabs));
        } else {
            self.result(text);
        }
    }

    /// JSON, to standard output: as it is, or with the same value made visible where that is a terminal.
    pub(crate) fn json_result(&self, json: &str) {
        if self.result_is_terminal {
            self.result(&floe_protocol::visible_json(json));
        } else {
            self.result(json);
        }
    }

    /// Text that is safe to show, to standard output.
    pub(crate) fn result(&self, text: &str) {
        self.write(Stream::Result, text);
    }

    /// Ends the line of standard output, where one is open.
    pub(crate) fn end_result_line(&self) {
        let mut state = self.lock();
        if state.held.is_none() && !state.result_at_line_start {
            self.put(&mut state, Stream::Result, "\n");
        }
    }

    /// Whole lines that are safe to show, to standard error.
    pub(crate) fn aside(&self, lines: &str) {
        self.write(Stream::Aside, lines);
        if !lines.is_empty() && !lines.ends_with('\n') {
            self.write(Stream::Aside, "\n");
        }
    }

    /// Shows a line of progress in place of the last one; nothing where standard error is no terminal.
    pub(crate) fn progress(&self, line: &str) {
        if !self.aside_is_terminal {
            return;
        }
        let mut state = self.lock();
        let free = state.aside_at_line_start && (state.result_at_line_start || !self.shared);
        if state.held.is_some() || !free {
            return;
        }
        // A progress line is never wrapped, never scrolled, and gone before anything else is written.
        let shown: String = line.chars().take(72).collect();
        let _ = write!(state.aside, "\r\x1b[K{shown}\r");
        let _ = state.aside.flush();
        state.progress_shown = true;
    }

    /// Keeps back what is written until the guard is dropped. The guard writes the question itself.
    pub(crate) fn hold(&self) -> Held<'_> {
        let mut state = self.lock();
        self.clear_progress(&mut state);
        self.separate(&mut state, Stream::Aside);
        state.held.get_or_insert_default();
        Held { screen: self }
    }

    fn write(&self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.lock();
        match &mut state.held {
            Some(held) => held.push((stream, text.to_owned())),
            None => self.put(&mut state, stream, text),
        }
    }

    fn put(&self, state: &mut State, stream: Stream, text: &str) {
        self.clear_progress(state);
        self.separate(state, stream);
        let at_line_start = text.ends_with('\n');
        match stream {
            Stream::Result => {
                state.result_at_line_start = at_line_start;
                let written = state
                    .result
                    .write_all(text.as_bytes())
                    .and_then(|()| state.result.flush());
                if let Err(error) = written {
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        let _ = LOST.set(error.to_string());
                    }
                    self.reader_gone.cancel();
                }
            }
            Stream::Aside => {
                state.aside_at_line_start = at_line_start;
                // There is nowhere left to report that standard error cannot be written.
                let _ = state
                    .aside
                    .write_all(text.as_bytes())
                    .and_then(|()| state.aside.flush());
            }
        }
    }

    /// Ends the other stream's open line, with a line feed that is never part of the results.
    fn separate(&self, state: &mut State, stream: Stream) {
        if stream == Stream::Aside && self.shared && !state.result_at_line_start {
            let _ = state.aside.write_all(b"\n");
            state.result_at_line_start = true;
        }
    }

    fn clear_progress(&self, state: &mut State) {
        if std::mem::take(&mut state.progress_shown) {
            let _ = state
                .aside
                .write_all(b"\r\x1b[K")
                .and_then(|()| state.aside.flush());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, only its owner writes to standard error; dropped, it lets out what was kept back.
pub(crate) struct Held<'screen> {
    screen: &'screen Screen,
}

impl Held<'_> {
    /// Writes at once.
    pub(crate) fn show(&self, text: &str) {
        let mut state = self.screen.lock();
        let _ = state
            .aside
            .write_all(text.as_bytes())
            .and_then(|()| state.aside.flush());
        state.aside_at_line_start = text.ends_with('\n');
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.screen.lock();
        if !state.aside_at_line_start {
            // The answer's own line feed was typed by the person; where none came, the question's line is ended here.
            state.aside_at_line_start = true;
        }
        for (stream, text) in state.held.take().unwrap_or_default() {
            self.screen.put(&mut state, stream, &text);
        }
    }
}

fn same_file(left: &impl AsFd, right: &impl AsFd) -> bool {
    match (rustix::fs::fstat(left), rustix::fs::fstat(right)) {
        (Ok(left), Ok(right)) => (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino),
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// A place for bytes that a test can look at.
    #[derive(Clone, Default)]
    pub(crate) struct Pane(Arc<Mutex<Vec<u8>>>);

    impl Pane {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Pane {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A screen whose streams lead to two panes.
    pub(crate) fn screen() -> (Screen, Pane, Pane) {
        let (result, aside) = (Pane::default(), Pane::default());
        (
            Screen::over(Box::new(result.clone()), Box::new(aside.clone())),
            result,
            aside,
        )
    }

    /// A screen whose streams lead to the same place.
    pub(crate) fn shared_screen() -> (Screen, Pane) {
        let pane = Pane::default();
        let screen = Screen {
            shared: true,
            ..Screen::over(Box::new(pane.clone()), Box::new(pane.clone()))
        };
        (screen, pane)
    }

    #[test]
    fn results_and_asides_go_to_their_own_streams_unchanged() {
        let (screen, result, aside) = screen();
        screen.untrusted_result("a\x1b[1mb");
        screen.aside("note");
        assert_eq!(result.text(), "a\x1b[1mb");
        assert_eq!(aside.text(), "note\n");
    }

    #[test]
    fn a_terminal_sees_controls_written_out() {
        let (mut screen, result, _) = screen();
        screen.result_is_terminal = true;
        screen.untrusted_result("a\x1b[1mb\n");
        assert_eq!(result.text(), "a\\x1b[1mb\n");
    }

    #[test]
    fn an_aside_does_not_start_in_the_middle_of_a_shared_line() {
        let (screen, pane) = shared_screen();
        screen.result("half a line");
        screen.aside("note");
        screen.result("next\n");
        assert_eq!(pane.text(), "half a line\nnote\nnext\n");
    }

    #[test]
    fn what_is_written_during_a_question_comes_after_it_in_order() {
        let (screen, pane) = shared_screen();
        let held = screen.hold();
        screen.result("r1\n");
        screen.aside("a1");
        held.show("Allow? ");
        assert_eq!(pane.text(), "Allow? ");
        drop(held);
        assert_eq!(pane.text(), "Allow? r1\na1\n");
    }

    #[test]
    fn a_reader_that_went_away_is_noticed_and_kills_nothing() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let screen = Screen::over(Box::new(Gone), Box::new(Pane::default()));
        screen.result("x");
        assert!(screen.reader_gone().is_cancelled());
    }

    #[test]
    fn progress_is_for_terminals_and_is_wiped_before_text() {
        let (mut screen, _, aside) = screen();
        screen.progress("working");
        assert_eq!(aside.text(), "");
        screen.aside_is_terminal = true;
        screen.progress("working");
        screen.aside("done");
        assert_eq!(aside.text(), "\r\x1b[Kworking\r\r\x1b[Kdone\n");
    }
}
