//! What a reader gets, and when.

use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_sandbox::{Event, Signal};

use crate::doubles::{House, LONG, Puppet, Puppets, read_to_end, read_until, registry};
use crate::{Channel, CommandError, CommandHandle, CommandSpec, Status};

const GENEROUS: Duration = Duration::from_secs(5);

async fn puppet(spec: CommandSpec) -> (tempfile::TempDir, CommandHandle, Puppet) {
    let puppets = Arc::new(Puppets::default());
    let (folder, sessions) = registry(Arc::clone(&puppets) as _, |_| {});
    let session = sessions.spawn(spec).await.unwrap();
    let puppet = puppets.next();
    (folder, session, puppet)
}

fn any() -> CommandSpec {
    CommandSpec::shell("anything")
}

#[tokio::test]
async fn output_streams_line_by_line_while_the_command_runs() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("echo one; read x; echo two; exit 3"))
        .await
        .unwrap();
    assert_eq!(read_until(&session, "one\n").await, "one\n");
    assert_eq!(session.status(), Status::Running);
    session.write_stdin(b"\n").await.unwrap();
    assert_eq!(read_to_end(&session).await, ("two\n".into(), 0));
    assert_eq!(session.status(), Status::Exited(3));
}

#[tokio::test]
async fn a_command_that_ends_at_once_does_not_wait_out_the_window() {
    let house = House::new();
    let started = Instant::now();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("echo done"))
        .await
        .unwrap();
    assert_eq!(read_to_end(&session).await, ("done\n".into(), 0));
    assert!(started.elapsed() < GENEROUS);
}

#[tokio::test]
async fn a_command_without_output_ends_a_read_by_its_end() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("true"))
        .await
        .unwrap();
    let batch = session.read_output(1024, LONG).await.unwrap();
    assert!(batch.ended && batch.chunks.is_empty());
    assert_eq!(session.status(), Status::Exited(0));
}

#[tokio::test]
async fn data_that_came_while_nobody_read_is_given_without_waiting_out_the_window() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("echo a; read x; echo b; read x"))
        .await
        .unwrap();
    read_until(&session, "a\n").await;
    session.write_stdin(b"\n").await.unwrap();
    // Long enough for `b` to arrive; if it has not, the read below waits for it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let started = Instant::now();
    assert_eq!(session.read_output(1024, LONG).await.unwrap().text(), "b\n");
    assert!(started.elapsed() < GENEROUS);
}

#[tokio::test]
async fn data_that_comes_during_a_wait_ends_it() {
    let (_folder, session, mut puppet) = puppet(any()).await;
    let read = session.read_output(1024, LONG);
    let print = async {
        tokio::task::yield_now().await;
        puppet.print(b"line\n");
    };
    let (batch, ()) = tokio::join!(read, print);
    assert_eq!(batch.unwrap().text(), "line\n");
}

#[tokio::test]
async fn an_unfinished_line_is_given_when_the_wait_is_over() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("printf x; sleep 60"))
        .await
        .unwrap();
    let mut text = String::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while text.is_empty() && Instant::now() < deadline {
        text += &session
            .read_output(1024, Duration::from_millis(250))
            .await
            .unwrap()
            .text();
    }
    assert_eq!(text, "x");
    assert_eq!(session.status(), Status::Running);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_given_after_a_moment_of_quiet_and_a_progress_line_only_at_the_end_of_the_wait()
{
    let (_folder, session, mut puppet) = puppet(any()).await;
    puppet.print(b"Name: ");
    let asked = tokio::time::Instant::now();
    assert_eq!(
        session.read_output(1024, LONG).await.unwrap().text(),
        "Name: "
    );
    assert!(asked.elapsed() < Duration::from_secs(1));
    puppet.print(b"Ada\n\r10%");
    assert_eq!(
        session.read_output(1024, LONG).await.unwrap().text(),
        "Ada\n"
    );
    let asked = tokio::time::Instant::now();
    assert_eq!(session.read_output(1024, LONG).await.unwrap().text(), "10%");
    assert!(asked.elapsed() >= LONG);
    puppet.print(b"\r20%\r30%\n");
    assert_eq!(
        session.read_output(1024, LONG).await.unwrap().text(),
        "\n30%\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_anything_to_tell_ends_on_time() {
    let (_folder, session, _puppet) = puppet(any()).await;
    let asked = tokio::time::Instant::now();
    let batch = session
        .read_output(1024, Duration::from_millis(250))
        .await
        .unwrap();
    assert_eq!((batch.chunks.len(), batch.ended), (0, false));
    assert_eq!(asked.elapsed(), Duration::from_millis(250));
}

#[tokio::test]
async fn text_read_at_the_end_does_not_depend_on_how_it_arrived() {
    let printed = "10%\r20%\r\u{1B}[Kdone €\r\nnext\u{1B}]0;t\u{7}\nlast".as_bytes();
    for piece in [1, 2, 3, 7, printed.len()] {
        let (_folder, session, mut puppet) = puppet(any()).await;
        for bytes in printed.chunks(piece) {
            puppet.print(bytes);
            tokio::task::yield_now().await;
        }
        puppet.end(Event::Exited(0));
        session.ended().await;
        assert_eq!(
            read_to_end(&session).await.0,
            "done €\r\nnext\nlast",
            "{piece}"
        );
    }
}

#[tokio::test]
async fn a_character_whose_bytes_come_apart_is_whole_and_an_unfinished_one_at_the_end_is_one_replacement()
 {
    let house = House::new();
    let script = r"printf '\xe2'; sleep 0.2; printf '\x89\xa4\n\xf0\x9f'; printf '\xc3\xa9' >&2";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    session.ended().await;
    let batch = session.read_output(1024, LONG).await.unwrap();
    let of = |wanted: Channel| -> String {
        let chunks = batch.chunks.iter().filter(|chunk| chunk.channel == wanted);
        chunks
            .map(|chunk| std::str::from_utf8(&chunk.data).unwrap())
            .collect()
    };
    assert_eq!(of(Channel::Stdout), "≤\n\u{FFFD}");
    assert_eq!(of(Channel::Stderr), "é");
}

#[tokio::test]
async fn channels_that_interleave_bytes_of_characters_have_a_decoder_each() {
    use std::io::Write;
    let (_folder, session, mut puppet) = puppet(any()).await;
    let (out, err) = ("äöü€😀\n".as_bytes(), "ßé∑\n".as_bytes());
    for position in 0..out.len().max(err.len()) {
        if let Some(byte) = out.get(position) {
            puppet.print(&[*byte]);
        }
        if let Some(byte) = err.get(position) {
            puppet.stderr.write_all(&[*byte]).unwrap();
        }
        tokio::task::yield_now().await;
    }
    puppet.end(Event::Exited(0));
    session.ended().await;
    let batch = session.read_output(1024, LONG).await.unwrap();
    assert!(!batch.text().contains('\u{FFFD}'), "{batch:?}");
    assert_eq!(
        batch.text().chars().count(),
        "äöü€😀\nßé∑\n".chars().count()
    );
}

#[tokio::test]
async fn raw_output_is_the_bytes_as_they_came() {
    let printed = b"a\0\x1B[1m\xFF\rb\xE2\x82";
    let (_folder, session, mut puppet) = puppet(CommandSpec {
        raw_output: true,
        ..any()
    })
    .await;
    puppet.print(printed);
    assert_eq!(
        session.read_output(1024, LONG).await.unwrap().chunks[0].data,
        printed
    );
}

#[tokio::test]
async fn two_hundred_thousand_lines_and_then_an_error_keep_the_error_and_the_code() {
    let house = House::new();
    let script = "seq 1 200000; echo 'error: THE REASON'; exit 1";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    session.ended().await;
    let (text, dropped) = read_to_end(&session).await;
    assert!(text.starts_with("1\n2\n") && text.ends_with("200000\nerror: THE REASON\n"));
    let printed: usize = (1..=200_000)
        .map(|number: u32| number.to_string().len() + 1)
        .sum::<usize>()
        + 18;
    assert_eq!(text.len() as u64 + dropped, printed as u64);
    assert_eq!(session.status(), Status::Exited(1));
}

#[tokio::test]
async fn a_flood_loses_nothing_that_is_not_counted() {
    let house = House::new();
    let script = "head -c 8000000 /dev/zero | tr '\\0' 'x'";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    let (text, dropped) = read_to_end(&session).await;
    assert_eq!(text.len() as u64 + dropped, 8_000_000);
}

#[tokio::test]
async fn one_line_of_fifty_mebibytes_is_bounded_and_what_follows_it_arrives() {
    let house = House::new();
    let script = "head -c 52428800 /dev/zero | tr '\\0' 'x'; echo; echo ok";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    session.ended().await;
    let (text, dropped) = read_to_end(&session).await;
    assert!(text.ends_with("x\nok\n"));
    assert!(text.len() <= 1024 * 1024);
    assert_eq!(text.len() as u64 + dropped, 52_428_800 + 4);
}

#[tokio::test]
async fn random_bytes_come_out_as_text_without_controls() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("head -c 1000000 /dev/urandom"))
        .await
        .unwrap();
    let (text, _) = read_to_end(&session).await;
    assert!(!text.contains(['\u{1B}', '\0']));
    assert!(!text.is_empty());
}

#[tokio::test]
async fn twenty_sessions_answer_while_one_floods() {
    let house = House::new();
    let flood = house
        .sessions
        .spawn(CommandSpec::shell("yes"))
        .await
        .unwrap();
    let mut quiet = Vec::new();
    for number in 0..20 {
        quiet.push(
            house
                .sessions
                .spawn(CommandSpec::shell(format!("read x; echo {number} $x")))
                .await
                .unwrap(),
        );
    }
    let started = Instant::now();
    for (number, session) in quiet.iter().enumerate() {
        session.write_stdin(b"hi\n").await.unwrap();
        assert_eq!(read_to_end(session).await.0, format!("{number} hi\n"));
    }
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(flood.status(), Status::Running);
}

#[tokio::test]
async fn of_several_readers_the_first_is_served_first() {
    let (_folder, session, mut puppet) = puppet(any()).await;
    let first = session.read_output(1024, LONG);
    let second = session.read_output(1024, Duration::from_millis(100));
    let print = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        puppet.print(b"line\n");
    };
    let (first, second, ()) = tokio::join!(first, second, print);
    assert_eq!(first.unwrap().text(), "line\n");
    assert_eq!(second.unwrap().text(), "");
}

#[tokio::test]
async fn a_read_that_is_given_up_loses_nothing() {
    let (_folder, session, mut puppet) = puppet(any()).await;
    {
        let read = session.read_output(1024, LONG);
        let given_up = tokio::time::timeout(Duration::from_millis(20), read).await;
        assert!(given_up.is_err());
    }
    puppet.print(b"line\n");
    assert_eq!(
        session.read_output(1024, LONG).await.unwrap().text(),
        "line\n"
    );
}

#[tokio::test]
async fn what_is_in_the_pipes_at_the_end_is_collected_even_if_they_stay_open() {
    let (_folder, session, mut puppet) = puppet(any()).await;
    puppet.print(b"early\nunfinished");
    puppet.say(Event::Exited(0));
    assert_eq!(read_to_end(&session).await.0, "early\nunfinished");
    assert_eq!(session.status(), Status::Exited(0));
    drop(puppet);
}

#[tokio::test]
async fn an_end_is_told_only_after_everything_was_read() {
    let (_folder, session, mut puppet) = puppet(any()).await;
    puppet.print(b"abcdef");
    puppet.end(Event::Signaled(Signal::from_name("SEGV").unwrap()));
    assert_eq!(session.ended().await, Status::Signaled("SIGSEGV".into()));
    let first = session.read_output(4, LONG).await.unwrap();
    assert_eq!((first.text().as_str(), first.ended), ("abcd", false));
    let second = session.read_output(4, LONG).await.unwrap();
    assert_eq!((second.text().as_str(), second.ended), ("ef", true));
}

#[tokio::test]
async fn a_sandbox_that_went_away_is_an_error_of_its_own_after_the_output() {
    let (_folder, session, mut puppet) = puppet(any()).await;
    puppet.print(b"last words");
    puppet.end(Event::SandboxEnded);
    session.ended().await;
    let batch = session.read_output(1024, LONG).await.unwrap();
    assert_eq!((batch.text().as_str(), batch.ended), ("last words", false));
    assert_eq!(
        session.read_output(1024, LONG).await,
        Err(CommandError::SandboxEnded)
    );
    assert_eq!(session.status(), Status::Lost(CommandError::SandboxEnded));
}
