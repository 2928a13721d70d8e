//! The programs that developers use find their way through the proxy by themselves.

use floe_sandbox::Network;
use sha2::{Digest, Sha256};

use crate::fixture::{Web, is_installed, make};

pub(crate) async fn curl_reaches_an_allowed_host_over_every_way_there_is() {
    let web = Web::new().await;
    web.write("web.test/hello", "hello from the host\n");
    web.write("xn--bcher-kva.test/hello", "hello from the books\n");
    let house = web.house();
    let seen = house
        .run(concat!(
            "curl -sS https://web.test/hello http://web.test/hello HTTPS://WEB.test./hello\n",
            "env -u HTTPS_PROXY -u https_proxy curl -sS https://web.test/hello\n",
            "curl -sS -x $ALL_PROXY http://web.test/hello\n",
            "curl -sS --socks5-hostname ${ALL_PROXY#socks5h://} https://web.test/hello\n",
            "curl -sS https://xn--bcher-kva.test/hello\n",
        ))
        .await;
    let expected = "hello from the host\n".repeat(6) + "hello from the books\n";
    assert_eq!(seen, expected);
    assert!(house.warnings("host_refused").is_empty());
    let own = house.run("cd /tmp && echo own > own && (python3 -m http.server 8000 2>&1 >/dev/null &) ; for i in $(seq 200); do curl -sS http://127.0.0.1:8000/own 2>/dev/null && break; sleep 0.05; done").await;
    assert!(
        own.contains("own\n"),
        "the Session's own servers need no proxy: {own}"
    );
    house.session.close().await;
}

pub(crate) async fn git_clones_over_https() {
    let web = Web::new().await;
    let root = web.files.path();
    make(root, "git", &["init", "-q", "-b", "main", "made"]);
    web.write("made/file", "from the repository\n");
    let made = root.join("made");
    make(&made, "git", &["add", "file"]);
    make(&made, "git", &["commit", "-q", "-m", "One file"]);
    make(
        root,
        "git",
        &["clone", "-q", "--bare", "made", "git.test/project.git"],
    );
    make(
        &root.join("git.test/project.git"),
        "git",
        &["update-server-info"],
    );
    let house = web.house();
    let seen = house
        .run("git clone -q https://git.test/project.git && cat project/file && git -C project log --format=%s")
        .await;
    assert_eq!(seen, "from the repository\nOne file\n");
    house.session.close().await;
}

/// Makes a wheel with one module.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile('demo-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('demo.py', 'word = "from the wheel"\n')
    wheel.writestr('demo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n')
    wheel.writestr('demo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('demo-1.0.dist-info/RECORD', 'demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n')
"#;

pub(crate) async fn pip_installs_from_an_index_over_https() {
    let web = Web::new().await;
    let packages = web.files.path().join("files.pythonhosted.org/packages");
    std::fs::create_dir_all(&packages).unwrap();
    make(&packages, "python3", &["-c", WHEEL]);
    web.write(
        "pypi.org/simple/demo/index.html",
        "<!DOCTYPE html><a href=\"https://files.pythonhosted.org/packages/demo-1.0-py3-none-any.whl\">demo-1.0-py3-none-any.whl</a>",
    );
    let house = web.house();
    let seen = house
        .run(concat!(
            // What some version managers put before the program itself wants to write to its own folder afterwards.
            "python=$(python3 -c 'import sys; print(sys.executable)')\n",
            "$python -m pip install -q --user --root-user-action=ignore demo && python3 -c 'import demo; print(demo.word)'"
        ))
        .await;
    assert!(seen.ends_with("from the wheel\n"), "{seen}");
    let later = house
        .run("python3 -c 'import demo; print(demo.word)'")
        .await;
    assert_eq!(
        later, "from the wheel\n",
        "it is there for the next command"
    );
    house.session.close().await;
}

pub(crate) async fn cargo_builds_with_a_package_of_its_registry() {
    let web = Web::new().await;
    web.write(
        "made/demo-0.1.0/Cargo.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    web.write(
        "made/demo-0.1.0/src/lib.rs",
        "pub fn word() -> &'static str { \"from the registry\" }\n",
    );
    let made = web.files.path().join("made");
    make(&made, "tar", &["-czf", "demo.crate", "demo-0.1.0"]);
    let package = std::fs::read(made.join("demo.crate")).unwrap();
    let digest: String = Sha256::digest(&package)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    web.write("static.crates.io/crates/demo/0.1.0/download", &package);
    web.write(
        "index.crates.io/config.json",
        "{\"dl\": \"https://static.crates.io/crates\", \"api\": \"https://crates.io\"}",
    );
    web.write(
        "index.crates.io/de/mo/demo",
        format!("{{\"name\":\"demo\",\"vers\":\"0.1.0\",\"deps\":[],\"cksum\":\"{digest}\",\"features\":{{}},\"yanked\":false}}\n"),
    );
    let house = web.house();
    let project = house.workspace.join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(
        project.join("Cargo.toml"),
        "[package]\nname = \"project\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndemo = \"0.1\"\n[workspace]\n",
    )
    .unwrap();
    std::fs::write(
        project.join("src/main.rs"),
        "fn main() { println!(\"{}\", demo::word()); }\n",
    )
    .unwrap();
    let seen = house.run("cd project && cargo run -q").await;
    assert_eq!(seen, "from the registry\n");
    house.session.close().await;
}

pub(crate) async fn npm_installs_from_its_registry() {
    if !is_installed("npm") {
        println!("not run: there is no npm here");
        return;
    }
    let web = Web::new().await;
    web.write(
        "made/package/package.json",
        "{\"name\": \"demo\", \"version\": \"1.0.0\"}",
    );
    web.write(
        "made/package/index.js",
        "module.exports = 'from the registry';\n",
    );
    web.write("registry.npmjs.org/demo/-/README", "");
    let made = web.files.path().join("made");
    let archive = web
        .files
        .path()
        .join("registry.npmjs.org/demo/-/demo-1.0.0.tgz");
    make(
        &made,
        "tar",
        &["-czf", archive.to_str().unwrap(), "package"],
    );
    web.write(
        "registry.npmjs.org/demo/index.html",
        serde_json::json!({
            "name": "demo",
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {
                "name": "demo",
                "version": "1.0.0",
                "dist": {"tarball": "https://registry.npmjs.org/demo/-/demo-1.0.0.tgz"},
            }},
        })
        .to_string(),
    );
    let house = web.house();
    let seen = house
        .run(concat!(
            "mkdir project && cd project && echo '{}' > package.json && ",
            "npm install --no-audit --no-fund --no-update-notifier --registry https://registry.npmjs.org demo > log 2>&1 || cat log; ",
            "node -e 'console.log(require(\"demo\"))'"
        ))
        .await;
    assert_eq!(seen, "from the registry\n");
    house.session.close().await;
}

pub(crate) async fn with_the_network_of_the_machine_commands_reach_its_servers() {
    let web = Web::new().await;
    let address = web.plain;
    web.write(&format!("{address}/hello"), "hello from the machine\n");
    let house = web.house_with(Network::Host, Vec::new());
    let seen = house
        .run(&format!(
            "curl -sS http://{address}/hello; env | grep -ci _proxy= ; echo $CARGO_HOME; cat /etc/resolv.conf | wc -l"
        ))
        .await;
    let lines = std::fs::read_to_string("/etc/resolv.conf")
        .unwrap_or_default()
        .lines()
        .count();
    assert_eq!(
        seen,
        format!("hello from the machine\n0\n/floe/home/.cargo\n{lines}\n")
    );
    house.session.close().await;
}
