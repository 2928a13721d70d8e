//! The socket that the host has within a Session's network, and commands that have the machine's own network.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

use floe_sandbox::{Network, SandboxOptions, Tier};
use support::{Session, again_without_privileges, has_bwrap};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

/// The walls that give a Session a network of its own, of those that this machine can build.
fn tiers() -> impl Iterator<Item = Tier> {
    let bwrap = has_bwrap().then_some(Tier::Bwrap);
    std::iter::once(Tier::Native).chain(bwrap)
}

fn within(tier: Tier, network: Network) -> impl FnOnce(&std::path::Path, &mut SandboxOptions) {
    move |_, options| {
        options.tier = Some(tier);
        options.policy.network = network;
    }
}

/// Answers one client after the other with what it said.
fn answer(listener: TcpListener) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut line = String::new();
            BufReader::new(&client).read_line(&mut line).unwrap();
            write!(client, "you said {line}").unwrap();
        }
    });
    address
}

fn ask(address: SocketAddr) -> String {
    let port = address.port();
    format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3 && cat <&3")
}

#[test]
fn the_hosts_socket_is_reached_by_commands_and_by_nobody_outside() {
    for tier in tiers() {
        let session = Session::with(within(tier, Network::Proxy));
        // Before any command has run, and again after one has.
        for _ in 0..2 {
            let listener = session.sandbox.proxy_listener().unwrap().unwrap();
            let outside = listener.try_clone().unwrap();
            assert!(listener.local_addr().unwrap().ip().is_loopback());

            outside.set_nonblocking(true).unwrap();
            let _ = TcpStream::connect(listener.local_addr().unwrap());
            let nobody = outside.accept().unwrap_err();
            assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock, "{tier:?}");
            outside.set_nonblocking(false).unwrap();

            let address = answer(listener);
            assert_eq!(session.ok(&ask(address)), "you said hello\n", "{tier:?}");
        }
    }
}

#[test]
fn where_commands_have_no_network_of_their_own_the_host_has_no_socket_in_it() {
    let mut cases = vec![(Tier::Unconfined, Network::Proxy)];
    cases.extend(tiers().map(|tier| (tier, Network::Host)));
    for (tier, network) in cases {
        let session = Session::with(|workspace, options| {
            within(tier, network)(workspace, options);
            options.unconfined = tier == Tier::Unconfined;
        });
        assert!(
            session.sandbox.proxy_listener().unwrap().is_none(),
            "{tier:?}"
        );
    }
}

#[test]
fn with_the_machines_network_commands_reach_what_it_reaches_and_it_is_told() {
    let address = answer(TcpListener::bind("127.0.0.1:0").unwrap());
    for tier in tiers() {
        let session = Session::with(within(tier, Network::Host));
        assert_eq!(session.ok(&ask(address)), "you said hello\n", "{tier:?}");
        if let Ok(resolver) = std::fs::read_to_string("/etc/resolv.conf") {
            assert_eq!(session.ok("cat /etc/resolv.conf"), resolver, "{tier:?}");
        }
        let layers = session.sandbox.confinement().layers;
        let layer = layers
            .iter()
            .find(|layer| layer.name == "network namespace")
            .unwrap();
        assert!(
            !layer.active && layer.detail.contains("network: host"),
            "{layer:?}"
        );

        let closed = Session::with(within(tier, Network::Off));
        closed.refused(&ask(address));
    }
}

#[test]
fn with_the_machines_network_its_abstract_sockets_are_still_out_of_reach() {
    let name = format!("floe-test-{}", std::process::id());
    let _listener =
        UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap();
    for tier in tiers() {
        let session = Session::with(within(tier, Network::Host));
        session.ok("true");
        let layers = session.sandbox.confinement().layers;
        let scoped = |layer: &floe_sandbox::Layer| {
            layer.name == "landlock" && layer.detail.contains("with signal and socket scopes")
        };
        if !layers.iter().any(scoped) {
            eprintln!("not run: this kernel's Landlock has no scopes");
            return;
        }
        let script = format!(
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')\""
        );
        let refused = session.refused(&script);
        assert!(refused.contains("PermissionError"), "{tier:?}: {refused}");
    }
}
