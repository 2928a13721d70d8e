//! Any text is refused with a message or leads to a public host: the gate never panics, looks up no name that lies inside, and never
//! connects. The resolver knows nobody, so that whatever passes ends there.
#![no_main]

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex};

use floe_network::{Gate, GateOptions, GateRequest, Host, Reach, Resolve, is_public};
use libfuzzer_sys::fuzz_target;

/// Keeps the names that it was asked for.
struct Nobody(Mutex<Vec<String>>);

impl Resolve for Nobody {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        self.0.lock().expect("nobody panics").push(name.to_owned());
        Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
    }
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("the async runtime starts")
});

fuzz_target!(|text: &str| {
    // An address that is written out would be connected to; with no port allowed only names get further, by a grant.
    let nobody = Arc::new(Nobody(Mutex::default()));
    let mut options = GateOptions { resolver: Arc::clone(&nobody) as _, ..GateOptions::default() };
    let mut reach = Reach::default();
    if let Some(host) = text.split("//").nth(1).and_then(|rest| rest.split(['/', ':']).next())
        && let Ok(Host::Name(name)) = Host::parse(host)
    {
        reach.hosts = floe_network::HostGrants::parse(&[format!("{name}:80")]).unwrap_or_default();
    }
    options.scope.ports.clear();
    let gate = Gate::new(options);
    let request = GateRequest { method: "GET".into(), url: text.to_owned(), ..GateRequest::default() };
    let error = RUNTIME.block_on(gate.send(request, &reach)).expect_err("nobody is there");
    assert!(!error.to_string().contains(['\n', '\r']), "{error}");
    for name in nobody.0.lock().expect("nobody panics").iter() {
        match Host::parse(name).expect("what is looked up is a host") {
            Host::Name(again) => {
                assert_eq!(&again, name, "in its one spelling");
                assert!(name.contains('.') && !name.ends_with(".local") && !name.ends_with("localhost"));
            }
            Host::Address(address) => panic!("{address} was looked up; public: {}", is_public(address)),
        }
    }
});
