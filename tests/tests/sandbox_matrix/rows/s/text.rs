//! Bytes to text.

use std::time::Duration;

use floe_command::{Channel, CommandHandle, CommandSpec, Status};
use floe_environment::{EnvironmentOptions, Registry, Selection};

use super::doors;
use crate::row::Row;
use crate::stage::{Outcome, Stage, finish};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S10",
        "a character whose bytes come apart is whole, and an invalid one is one replacement, at every cut",
        characters_in_pieces,
    ),
    Row::new(
        "S10",
        "no character is split where output is dropped and where it is cut for the model",
        characters_at_seams,
    ),
    Row::new(
        "S11",
        "standard output and standard error that interleave bytes of characters have a decoder each",
        channels_in_turns,
    ),
    Row::new(
        "S12",
        "random bytes, control sequences and progress lines come out as plain text",
        controls,
    ),
];

/// Reads a command to its end with waits so short that unfinished lines are asked for again and again.
async fn read_impatiently(command: &CommandHandle) -> (String, String) {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    loop {
        let batch = command
            .read_output(64 * 1024, Duration::from_millis(20))
            .await
            .unwrap();
        for chunk in batch.chunks {
            let text = String::from_utf8(chunk.data).expect("chunks split no character");
            match chunk.channel {
                Channel::Stdout => stdout += &text,
                Channel::Stderr => stderr += &text,
            }
        }
        if batch.ended {
            return (stdout, stderr);
        }
    }
}

fn characters_in_pieces(stage: &Stage) {
    let session = stage.session();
    // Every character of two to four bytes cut at each position, and what stays unfinished before another, before an
    // ordinary one, before the end of a line and at the very end.
    let script = r"p() { for piece; do printf $piece; sleep 0.12; done; }
        p '\xc3' '\xa9\n'
        p '\xe2' '\x89\xa4\n'
        p '\xe2\x89' '\xa4\n'
        p '\xf0' '\x9f\x98\x80\n'
        p '\xf0\x9f' '\x98\x80\n'
        p '\xf0\x9f\x98' '\x80\n'
        p '\xf0' '\x9f' '\x98' '\x80' '\xe2' '\x89' '\xa4\n'
        p '\xe2\x89' '\xe2\x89\xa4\n'
        p '\xe2' 'x\n'
        p '\xf0\x9f\x98' '\n'
        p '\xff' '\xfe' '\x80\n'
        p '\xf0\x9f\x98'";
    let wanted = "é\n≤\n≤\n😀\n😀\n😀\n😀≤\n\u{fffd}≤\n\u{fffd}x\n\u{fffd}\n\u{fffd}\u{fffd}\u{fffd}\n\u{fffd}";
    stage.wait(async {
        let command = session.start(script).await;
        assert_eq!(read_impatiently(&command).await.0, wanted);
        assert_eq!(command.status(), Status::Exited(0));
    });
    // Every single byte that begins nothing or goes on from nothing.
    let bytes: Vec<u8> = (0x80..=0xff).flat_map(|byte| [byte, b'x']).collect();
    std::fs::write(stage.workspace.join("invalid"), &bytes).unwrap();
    assert_eq!(session.run("cat invalid").text, "\u{fffd}x".repeat(128));
    // A megabyte of good and bad sequences in no order, through pipes that cut where they like.
    let mut state = 7_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    };
    let pieces: [&[u8]; 10] = [
        b"plain ",
        "é".as_bytes(),
        "≤".as_bytes(),
        "😀".as_bytes(),
        b"\xe2\x89",
        b"\xf0\x9f\x98",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\n",
    ];
    let mixed: Vec<u8> = (0..200_000)
        .flat_map(|_| pieces[random() % pieces.len()])
        .copied()
        .collect();
    std::fs::write(stage.workspace.join("mixed"), &mixed).unwrap();
    stage.wait(async {
        let command = session
            .start("dd if=mixed bs=4093 status=none | dd bs=997 status=none")
            .await;
        let (mut text, mut dropped) = (String::new(), 0);
        loop {
            let batch = command
                .read_output(1500, Duration::from_secs(60))
                .await
                .unwrap();
            text += &batch.text();
            dropped += batch.dropped;
            if batch.ended {
                break;
            }
        }
        assert_eq!(dropped, 0, "the reader keeps up with a ring of 1 MiB");
        assert!(text == String::from_utf8_lossy(&mixed));
    });
}

fn characters_at_seams(stage: &Stage) {
    // A ring that keeps 16 bytes of head and 48 of tail.
    let session = stage.session_with(|setup| setup.commands.limits.unread_output = 64);
    for (character, length) in [("é", 2), ("≤", 3), ("😀", 4)] {
        for shift in 0..length {
            stage.put(
                "text",
                &format!("{}{}", "x".repeat(shift), character.repeat(200)),
            );
            let outcome = stage.wait(async {
                let command = session.start("cat text").await;
                command.ended().await;
                finish(&command).await
            });
            let Outcome { text, dropped, .. } = outcome;
            let tail = text.trim_start_matches('x').replace(character, "");
            assert_eq!((text.len() <= 64, tail.as_str()), (true, ""), "{text:?}");
            let total = (shift + 200) as u64;
            assert_eq!(text.chars().count() as u64 + dropped, total, "{text:?}");
            assert!(dropped > 0 && text.starts_with(&"x".repeat(shift)));
        }
    }
    let exec_of_ten = |registry: &Registry, options: &mut EnvironmentOptions| {
        let mut exec = registry.get("exec_command").unwrap().definition.clone();
        exec.max_output_length = 10;
        options.selection = Selection::Entries(vec![exec]);
        options.outputs = None;
    };
    stage.wait(async {
        let door = doors::open_with(stage, &session, exec_of_ten).await;
        let output = door.exec("printf '😀%.0s' {1..11}").await.output;
        assert_eq!(
            output,
            "😀😀😀😀😀\n[output truncated: kept first 5 and last 5 of 11 chars]\n😀😀😀😀😀"
        );
    });
}

fn channels_in_turns(stage: &Stage) {
    let session = stage.session();
    let script = r"printf '\xe2'; sleep 0.05; printf '\xc3' >&2; sleep 0.05; printf '\x89'; sleep 0.05; printf '\xa9\n' >&2
        printf '\xa4\n'; printf '\xf0\x9f'; printf '\xf0\x9f' >&2; sleep 0.05; printf '\x98\x80\n' >&2; printf '\x98\x81\n'";
    stage.wait(async {
        let command = session.start(script).await;
        let (stdout, stderr) = read_impatiently(&command).await;
        assert_eq!((stdout.as_str(), stderr.as_str()), ("≤\n😁\n", "é\n😀\n"));
    });
}

fn controls(stage: &Stage) {
    let session = stage.session();
    let is_plain = |text: &str| {
        let forbidden = |character: char| {
            character == '\0' || character == '\u{1b}' || ('\u{80}'..='\u{9f}').contains(&character)
        };
        let bare_return = text.replace("\r\n", "\n").contains('\r');
        !text.contains(forbidden) && !bare_return
    };
    let random = session.run("head -c 1M /dev/urandom; echo; echo ok");
    assert_eq!(random.status, Status::Exited(0));
    assert!(is_plain(&random.text) && random.text.ends_with("ok\n"));
    let cases = [
        (r"printf 'a\0b\0\n'", "ab\n"),
        (r"printf '\033]0;title\007name\n'", "name\n"),
        (r"printf '\033]52;c;ZXZpbA==\033\\clip\n'", "clip\n"),
        (r"printf '\033[2J\033[H\033[1;31mred\033[0m\n'", "red\n"),
        (r"printf '\xc2\x9b31mred\xc2\x9d0;t\007\n'", "red\n"),
        (r"printf ' 1%%\r 50%%\r100%%\n'", "100%\n"),
        (
            r"for i in 1 2 3; do printf '\r%s of 3' $i; sleep 0.05; done; echo",
            "3 of 3\n",
        ),
        (r"printf 'dos\r\nunix\n'", "dos\r\nunix\n"),
        (r"printf '\033[3'; sleep 0.2; printf '1mred\n'", "red\n"),
        (
            r"printf '\033]0;never ended\nstill told\n'",
            "\nstill told\n",
        ),
    ];
    for (script, wanted) in cases {
        assert_eq!(session.run(script).text, wanted, "{script}");
        let terminal = session.run_spec(CommandSpec {
            terminal: true,
            ..CommandSpec::shell(script)
        });
        assert!(is_plain(&terminal.text), "{script}: {:?}", terminal.text);
        let last = wanted.lines().last().unwrap();
        assert!(
            terminal.text.contains(last),
            "{script}: {:?}",
            terminal.text
        );
    }
}
