use super::*;

fn options() -> EnvironmentOptions {
    EnvironmentOptions {
        host: Vec::new(),
        person_home: None,
        ..EnvironmentOptions::default()
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn compose(login: &[(&str, &str)], added: &[(&str, &str)]) -> BTreeMap<String, String> {
    let base = Base::new(
        pairs(login).into_iter().collect(),
        Vec::new(),
        Vec::new(),
        &options(),
    );
    let composed = base.compose(&pairs(added), &[]).unwrap();
    composed
        .into_iter()
        .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
        .collect()
}

#[test]
fn only_allowed_names_are_taken_and_a_star_stands_for_any_rest() {
    let given = [
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("LANGUAGE", "de"),
        ("AWS_SECRET", "x"),
        ("SHELL", "/bin/bash"),
        ("BASH_FUNC_x%%", "() { :; }"),
    ];
    let taken = options().filter(pairs(&given));
    assert_eq!(
        taken.into_keys().collect::<Vec<_>>(),
        ["LC_ALL", "PATH", "SHELL"]
    );
}

#[test]
fn an_empty_search_path_counts_as_none() {
    assert!(options().filter(pairs(&[("PATH", "")])).is_empty());
}

#[test]
fn a_star_for_everything_still_leaves_out_what_shells_run() {
    let options = EnvironmentOptions {
        allow: vec!["*".into()],
        ..options()
    };
    let taken = options.filter(pairs(&[
        ("ENV", "/x"),
        ("BASH_ENV", "/x"),
        ("ENVY", "1"),
        ("", "x"),
        ("A=B", "x"),
    ]));
    assert_eq!(taken.into_keys().collect::<Vec<_>>(), ["ENVY"]);
}

#[test]
fn a_variable_of_200_kib_is_not_inherited() {
    let large = "x".repeat(200 * 1024);
    assert!(options().filter(pairs(&[("PATH", &large)])).is_empty());
}

#[test]
fn there_is_always_a_path_and_a_utf8_language() {
    let plain = compose(&[], &[]);
    assert_eq!(
        (plain["PATH"].as_str(), plain["LANG"].as_str()),
        (PLAIN_PATH, "C.UTF-8")
    );
    assert_eq!(
        compose(&[("LANG", "de_DE.UTF-8")], &[])["LANG"],
        "de_DE.UTF-8"
    );
    assert!(!compose(&[("LC_ALL", "C")], &[]).contains_key("LANG"));
}

#[test]
fn nothing_overrides_what_is_hardened() {
    let added: Vec<_> = HARDENED.map(|(name, _)| (name, "mine")).to_vec();
    let composed = compose(&added, &added);
    for (name, value) in HARDENED {
        assert_eq!(composed[name], value);
    }
}

#[test]
fn the_vault_wins_over_the_login_shell_and_the_person_and_the_call_over_the_vault() {
    let mut options = options();
    options.vault = pairs(&[
        ("PATH", "/vault"),
        ("GIT_AUTHOR_NAME", "Vault"),
        ("BASH_ENV", "/evil"),
    ]);
    let login = pairs(&[("PATH", "/login")]).into_iter().collect();
    let base = Base::new(
        login,
        pairs(&[("GIT_AUTHOR_NAME", "Ada")]),
        Vec::new(),
        &options,
    );
    assert_eq!(base.variables["PATH"], "/vault");
    assert_eq!(base.variables["GIT_AUTHOR_NAME"], "Vault");
    assert!(!base.variables.contains_key("BASH_ENV"));
    let composed = base.compose(&pairs(&[("PATH", "/call")]), &[]).unwrap();
    assert!(composed.contains(&("PATH".into(), "/call".into())));
}

#[test]
fn what_no_process_can_be_given_is_refused_by_name() {
    let base = Base::new(BTreeMap::new(), Vec::new(), Vec::new(), &options());
    let refusal =
        |added: &[(&str, &str)]| base.compose(&pairs(added), &[]).unwrap_err().to_string();
    assert_eq!(
        refusal(&[("", "x")]),
        "\"\" is no name of an environment variable"
    );
    assert_eq!(
        refusal(&[("A=B", "x")]),
        "\"A=B\" is no name of an environment variable"
    );
    assert_eq!(
        refusal(&[("A", "x\0y")]),
        "the environment variable A holds a NUL byte"
    );
    let large = "x".repeat(128 * 1024);
    assert!(refusal(&[("A", &large)]).starts_with("the environment variable A has 131072 bytes"));
    let many: Vec<(String, String)> = (0..20)
        .map(|number| (format!("V{number}"), "x".repeat(100_000)))
        .collect();
    let error = base.compose(&many, &[]).unwrap_err();
    assert!(
        error.to_string().starts_with("the environment has "),
        "{error}"
    );
    assert_eq!(error.code(), "invalid-argument");
}
