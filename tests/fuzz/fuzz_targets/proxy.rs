//! Whatever a client sends to the proxy, it reaches what was granted or nothing: a server beside it, on the same loopback, never
//! sees anybody.
#![no_main]

use floe_network::{HostGrants, Proxy, ProxyLimits, ProxyOptions};
use libfuzzer_sys::fuzz_target;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

struct House {
    _runtime: tokio::runtime::Runtime,
    _proxy: Arc<Proxy>,
    address: SocketAddr,
    forbidden: TcpListener,
}

static HOUSE: LazyLock<House> = LazyLock::new(|| {
    let bind = || TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let (granted, forbidden, listener) = (bind(), bind(), bind());
    forbidden
        .set_nonblocking(true)
        .expect("it can be asked without waiting");
    let grant = |port: u16| {
        format!(
            "a.test:{port}={}",
            granted.local_addr().expect("it is bound")
        )
    };
    let proxy = Proxy::new(ProxyOptions {
        grants: HostGrants::parse(&[grant(80), grant(443)]).expect("they are hosts"),
        limits: ProxyLimits {
            idle: Duration::from_millis(50),
            request: Duration::from_millis(50),
            ..ProxyLimits::default()
        },
        ..ProxyOptions::default()
    });
    std::thread::spawn(move || granted.incoming().for_each(drop));
    let address = listener.local_addr().expect("it is bound");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    {
        let _inside = runtime.enter();
        proxy.serve(listener).expect("it serves");
    }
    House {
        _runtime: runtime,
        _proxy: proxy,
        address,
        forbidden,
    }
});

fuzz_target!(|bytes: &[u8]| {
    let house = &*HOUSE;
    let mut client = TcpStream::connect(house.address).expect("the proxy is there");
    // The port of the forbidden server, for who looks for it.
    let port = house
        .forbidden
        .local_addr()
        .expect("it is bound")
        .port()
        .to_string();
    let text = String::from_utf8_lossy(bytes).replace("PORT", &port);
    let sent = if text.contains(&port) {
        text.as_bytes()
    } else {
        bytes
    };
    let _ = client
        .write_all(sent)
        .and_then(|()| client.shutdown(Shutdown::Write));
    let _ = client.read_to_end(&mut Vec::new());
    assert!(house.forbidden.accept().is_err(), "{sent:?} got through");
});
