//! The output of a running call on its way to a client that asked for progress. However much a tool writes, a few kilobytes wait, and one
//! notification is under way at a time: what comes meanwhile is put together, and of more than fits the newest is kept.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Bytes that wait at most; so long is the longest message.
const ROOM: usize = 16 << 10;
/// Time between two notifications of one call, at least.
const PAUSE: Duration = Duration::from_millis(50);

/// What is told next.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    /// Characters of output so far; it only grows.
    pub(crate) characters: u64,
    /// What came since the last step.
    pub(crate) text: String,
}

/// Output that waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    characters: u64,
    told: u64,
    text: String,
    left_out: u64,
    closed: bool,
}

impl Progress {
    /// Takes output. Called on the tool's way: it never waits.
    pub(crate) fn wrote(&self, text: &str) {
        let mut waiting = self.lock();
        waiting.characters += text.chars().count() as u64;
        let kept = newest(text, ROOM);
        let excess = (waiting.text.len() + kept.len()).saturating_sub(ROOM);
        if excess > 0 {
            let cut = waiting.text.ceil_char_boundary(excess);
            waiting.left_out += waiting.text[..cut].chars().count() as u64;
            waiting.text.drain(..cut);
        }
        waiting.left_out += text[..text.len() - kept.len()].chars().count() as u64;
        waiting.text.push_str(kept);
        drop(waiting);
        self.news.notify_one();
    }

    /// Takes the count of an output that no longer streams.
    pub(crate) fn counted(&self, characters: u64) {
        let mut waiting = self.lock();
        waiting.characters = waiting.characters.max(characters);
        drop(waiting);
        self.news.notify_one();
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.news.notify_one();
    }

    /// Tells everything through `tell`, until it is closed and all is told, or `tell` says that nobody listens.
    pub(crate) async fn run<T: Future<Output = bool>>(&self, mut tell: impl FnMut(Step) -> T) {
        let mut earliest = Instant::now();
        loop {
            let (step, closed) = self.take(Instant::now() >= earliest);
            match step {
                Some(step) => {
                    if !tell(step).await {
                        return;
                    }
                    earliest = Instant::now() + PAUSE;
                }
                None if closed => return,
                None => {
                    tokio::select! {
                        () = self.news.notified() => {}
                        () = tokio::time::sleep_until(earliest), if Instant::now() < earliest => {}
                    }
                }
            }
        }
    }

    /// The next step, where there is something to tell and it is `due`; what is closed is told at once.
    fn take(&self, due: bool) -> (Option<Step>, bool) {
        let mut waiting = self.lock();
        let closed = waiting.closed;
        if waiting.characters == waiting.told || !(due || closed) {
            return (None, closed);
        }
        waiting.told = waiting.characters;
        let mut text = std::mem::take(&mut waiting.text);
        let left_out = std::mem::take(&mut waiting.left_out);
        if left_out > 0 {
            text.insert_str(0, &format!("[{left_out} characters left out]\n"));
        }
        let step = Step {
            characters: waiting.characters,
            text,
        };
        (Some(step), closed)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a text that fits.
fn newest(text: &str, room: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(room))..]
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    async fn told(progress: &Progress) -> Vec<Step> {
        let steps = RefCell::new(Vec::new());
        progress
            .run(|step| {
                steps.borrow_mut().push(step);
                std::future::ready(true)
            })
            .await;
        steps.into_inner()
    }

    #[tokio::test]
    async fn what_came_together_is_told_together() {
        let progress = Progress::default();
        progress.wrote("one ");
        progress.wrote("twö");
        progress.close();
        let steps = told(&progress).await;
        assert_eq!(
            steps,
            [Step {
                characters: 7,
                text: "one twö".into()
            }]
        );
    }

    #[tokio::test]
    async fn a_flood_keeps_its_newest_and_tells_how_much_was_left_out() {
        let progress = Progress::default();
        for _ in 0..100_000 {
            progress.wrote("é12345678\n");
        }
        progress.wrote(&"z".repeat(3 * ROOM));
        assert!(progress.lock().text.len() <= ROOM);
        progress.close();
        let steps = told(&progress).await;
        assert_eq!(steps.len(), 1);
        let characters = 1_000_000 + 3 * ROOM as u64;
        assert_eq!(steps[0].characters, characters);
        let left_out = characters - ROOM as u64;
        assert_eq!(
            steps[0].text,
            format!("[{left_out} characters left out]\n{}", "z".repeat(ROOM))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn steps_grow_and_have_pauses_between_them() {
        let progress = Progress::default();
        let moments = RefCell::new(Vec::new());
        let telling = progress.run(|step| {
            moments.borrow_mut().push((Instant::now(), step.characters));
            std::future::ready(true)
        });
        let writing = async {
            for _ in 0..40 {
                progress.wrote("x");
                tokio::time::sleep(PAUSE / 10).await;
            }
            progress.counted(1000);
            tokio::time::sleep(PAUSE * 3).await;
            progress.close();
        };
        tokio::join!(telling, writing);
        let moments = moments.into_inner();
        assert!((3..=7).contains(&moments.len()), "{moments:?}");
        assert!(moments.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert!(
            moments
                .windows(2)
                .all(|pair| pair[1].0 - pair[0].0 >= PAUSE)
        );
        assert_eq!(moments.last().unwrap().1, 1000);
    }

    #[tokio::test]
    async fn it_ends_where_nobody_listens() {
        let progress = Progress::default();
        progress.wrote("x");
        progress.run(|_| std::future::ready(false)).await;
    }
}
