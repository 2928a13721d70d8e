//! The environment that a login shell tells, in the real sandbox, for a person that the test made up.

mod support;

use std::fs;

use support::Session;

#[tokio::test]
async fn what_the_persons_profile_sets_reaches_commands_by_the_allow_list() {
    let session = Session::with(|home, options| {
        fs::write(
            home.join(".profile"),
            "echo noise\nexport PATH=\"$HOME/bin:$PATH\" TZ=Europe/Berlin SECRET=1\n",
        )
        .unwrap();
        fs::write(
            home.join(".gitconfig"),
            "[user]\nname = Ada\nemail = ada@example.org\n",
        )
        .unwrap();
        options
            .environment
            .host
            .push(("BASH_ENV".into(), "/evil".into()));
    });
    let (text, _) = session.run("echo \"$PATH\"; echo $TZ-$SECRET-$BASH_ENV; echo $GIT_AUTHOR_NAME $GIT_COMMITTER_EMAIL; echo $HOME").await;
    assert_eq!(session.notes.warnings(), Vec::<String>::new());
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with(&format!("{}/bin:", session.person_home.display())),
        "{text}"
    );
    assert_eq!(
        lines[1..],
        ["Europe/Berlin--", "Ada ada@example.org", "/floe/home"]
    );
}

#[tokio::test]
async fn the_answer_is_kept_until_a_profile_file_changes() {
    let session =
        Session::with(|home, _| fs::write(home.join(".profile"), "export TZ=One\n").unwrap());
    assert_eq!(session.run("echo $TZ").await.0, "One\n");
    let kept: Vec<_> = fs::read_dir(&session.cache).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    let file = kept[0].path();
    assert_eq!(
        std::os::unix::fs::MetadataExt::mode(&fs::metadata(&file).unwrap()) & 0o777,
        0o600
    );
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("One", "Kept")).unwrap();
    let (home, cache) = (session.person_home.clone(), session.cache.clone());
    let another = |home: std::path::PathBuf, cache: std::path::PathBuf| {
        Session::with(move |_, options| {
            options.environment.person_home = Some(home);
            options.environment.cache = Some(cache);
        })
    };
    assert_eq!(
        another(home.clone(), cache.clone()).run("echo $TZ").await.0,
        "Kept\n"
    );
    fs::write(home.join(".profile"), "export TZ=Two\n").unwrap();
    assert_eq!(another(home, cache).run("echo $TZ").await.0, "Two\n");
}

#[tokio::test]
async fn a_profile_that_waits_or_ends_the_shell_costs_a_warning_and_no_command() {
    for profile in ["sleep 100", "exec cat /dev/zero", "exit 0"] {
        let session = Session::with(|home, options| {
            fs::write(home.join(".bash_profile"), profile).unwrap();
            options.environment.login_wait = std::time::Duration::from_millis(700);
        });
        assert_eq!(session.run("echo fine").await.0, "fine\n");
        let warnings = session.notes.warnings();
        assert_eq!(warnings.len(), 1, "{profile}");
        assert!(warnings[0].starts_with("the login shell "), "{warnings:?}");
        assert!(fs::read_dir(&session.cache).unwrap().next().is_none());
    }
}

#[tokio::test]
async fn a_profile_cannot_touch_the_persons_files() {
    let session = Session::with(|home, _| {
        fs::write(home.join("canary"), "alive").unwrap();
        fs::write(home.join(".profile"), "rm -f ~/canary ~/.profile; echo changed > ~/.profile; export TZ=\"$(cat ~/canary 2>/dev/null)\"\n").unwrap();
    });
    assert_eq!(session.run("echo \"<$TZ>\"").await.0, "<>\n");
    assert_eq!(
        fs::read_to_string(session.person_home.join("canary")).unwrap(),
        "alive"
    );
    assert!(
        fs::read_to_string(session.person_home.join(".profile"))
            .unwrap()
            .starts_with("rm ")
    );
}
