//! A proxy on the loopback, hosts behind it, and clients that say exactly what a test wants them to say.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_network::{
    HostGrants, ObserveNetwork, Proxy, ProxyLimits, ProxyOptions, Refusal, Resolve,
};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A wait that no test should ever sit out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Everything that was refused.
#[derive(Default)]
pub(crate) struct Refused(Mutex<Vec<Refusal>>);

impl Refused {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

impl ObserveNetwork for Refused {
    fn refused(&self, refusal: &Refusal) {
        self.0.lock().unwrap().push(refusal.clone());
    }
}

/// Knows these names and no others.
pub(crate) struct Names(pub(crate) HashMap<&'static str, &'static str>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let address = self
            .0
            .get(name)
            .map(|address| vec![address.parse().unwrap()]);
        Box::pin(std::future::ready(
            address.ok_or(io::ErrorKind::NotFound.into()),
        ))
    }
}

/// A proxy that serves.
pub(crate) struct House {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) refused: Arc<Refused>,
    pub(crate) address: SocketAddr,
}

impl House {
    pub(crate) async fn new(grants: &[String]) -> House {
        House::with(grants, |_| {}).await
    }

    pub(crate) async fn with(grants: &[String], change: impl FnOnce(&mut ProxyOptions)) -> House {
        let refused = Arc::new(Refused::default());
        let mut options = ProxyOptions {
            grants: HostGrants::parse(grants).unwrap(),
            limits: ProxyLimits::default(),
            resolver: Arc::new(Names(HashMap::new())),
            observer: Arc::clone(&refused) as _,
        };
        change(&mut options);
        let proxy = Proxy::new(options);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        proxy.serve(listener).unwrap();
        House {
            proxy,
            refused,
            address,
        }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// What is answered to these bytes, until the proxy closes.
    pub(crate) async fn answer(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.rest().await
    }

    /// The reply of SOCKS5 to a request for a name.
    pub(crate) async fn socks(&self, name: &[u8], port: u16) -> u8 {
        let mut request = vec![5, 1, 0, 5, 1, 0, 3, name.len() as u8];
        request.extend(name);
        request.extend(port.to_be_bytes());
        let mut client = self.connect().await;
        client.send(request).await;
        let reply = client.exactly(4).await;
        assert_eq!(reply[..3], [5, 0, 5]);
        reply[3]
    }
}

/// One connection.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = tokio::time::timeout(LONG, self.0.read_exact(&mut bytes)).await;
        read.unwrap().unwrap();
        bytes
    }

    /// All that comes until the other side closes, or cuts.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(LONG, self.0.read_to_end(&mut bytes)).await;
        let _ = read.expect("the proxy does not close");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Asks for a tunnel that must be granted.
    pub(crate) async fn tunnel(&mut self, target: &str) {
        self.send(format!("CONNECT {target} HTTP/1.1\r\n\r\n"))
            .await;
        let expected = "HTTP/1.1 200 Connection Established\r\n\r\n";
        assert_eq!(self.exactly(expected.len()).await, expected.as_bytes());
    }
}

/// A host that gives back in one piece all that it got once the client has said its last, in capital letters.
pub(crate) async fn shouter() -> SocketAddr {
    serve(|mut client| async move {
        let mut bytes = Vec::new();
        let _ = client.read_to_end(&mut bytes).await;
        let _ = client.write_all(&bytes.to_ascii_uppercase()).await;
    })
    .await
}

/// A host that gives back every byte as it comes.
pub(crate) async fn echo() -> SocketAddr {
    serve(|mut client| async move {
        let (mut reader, mut writer) = client.split();
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    })
    .await
}

/// A web server that answers with the request that it got, as it came, and with whatever rode behind it.
pub(crate) async fn web() -> SocketAddr {
    serve(|mut client| async move {
        let mut bytes = Vec::new();
        let mut block = [0; 4096];
        while !is_whole(&bytes) {
            match client.read(&mut block).await {
                Ok(count @ 1..) => bytes.extend_from_slice(&block[..count]),
                _ => return,
            }
        }
        let behind = tokio::time::timeout(Duration::from_millis(300), client.read(&mut block));
        if let Ok(Ok(count)) = behind.await {
            bytes.extend_from_slice(&block[..count]);
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len());
        let _ = client.write_all(&[head.as_bytes(), &bytes].concat()).await;
    })
    .await
}

/// Whether a request has come with all of its body.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split("Content-Length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
    if head.contains("Transfer-Encoding: chunked") {
        body.ends_with("0\r\n\r\n")
    } else {
        body.len() >= length.unwrap_or(0)
    }
}

async fn serve<F: Future<Output = ()> + Send + 'static>(
    host: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(host(client));
        }
    });
    address
}
