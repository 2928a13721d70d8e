//! Names become addresses here, on the host's side: once for a Session, so that no answer that comes later can lead a
//! granted name elsewhere.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::address::{is_of_this_machine, is_public};

/// Names that are remembered at once: a hostile command can make up any number below a granted `*.NAME`.
const MOST_NAMES: usize = 1024;
/// Addresses of one name that are used.
const MOST_ADDRESSES: usize = 8;

/// Asks for the addresses of a name.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `name`, best first.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Why a name leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAddress {
    /// It leads to an address that is not public.
    NotPublic(IpAddr),
    /// It is not known, or the answer did not come.
    Unknown,
    /// Too many names were asked for in this Session.
    TooMany,
}

/// The names of a Session, each with the addresses that it had when it was first asked for.
pub(crate) struct Pins {
    resolver: Arc<dyn Resolve>,
    patience: Duration,
    names: Mutex<HashMap<String, Arc<OnceCell<Vec<IpAddr>>>>>,
}

impl Pins {
    pub(crate) fn new(resolver: Arc<dyn Resolve>, patience: Duration) -> Pins {
        Pins {
            resolver,
            patience,
            names: Mutex::default(),
        }
    }

    /// The addresses of `name`: all of them are public, and there is at least one. A failure is not remembered.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NoAddress> {
        let cell = {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            if !names.contains_key(name) && names.len() >= MOST_NAMES {
                // Those that led nowhere make room.
                names.retain(|_, cell| cell.initialized() || Arc::strong_count(cell) > 1);
                if names.len() >= MOST_NAMES {
                    return Err(NoAddress::TooMany);
                }
            }
            Arc::clone(names.entry(name.to_owned()).or_default())
        };
        cell.get_or_try_init(|| self.ask(name)).await.cloned()
    }

    async fn ask(&self, name: &str) -> Result<Vec<IpAddr>, NoAddress> {
        let answer = tokio::time::timeout(self.patience, self.resolver.resolve(name)).await;
        let mut addresses = answer.ok().and_then(Result::ok).ok_or(NoAddress::Unknown)?;
        // One that is not public among others is how a name is made to lead inside on a second try.
        let leads_inside =
            |address: &&IpAddr| !is_public(**address) || is_of_this_machine(**address);
        if let Some(address) = addresses.iter().find(leads_inside) {
            return Err(NoAddress::NotPublic(*address));
        }
        addresses.truncate(MOST_ADDRESSES);
        if addresses.is_empty() {
            return Err(NoAddress::Unknown);
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Gives one answer after the other.
    struct Script {
        answers: Vec<Vec<&'static str>>,
        asked: AtomicUsize,
    }

    impl Resolve for Script {
        fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let number = self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = self
                .answers
                .get(number)
                .ok_or(io::ErrorKind::NotFound.into());
            Box::pin(std::future::ready(answer.map(|addresses| {
                addresses
                    .iter()
                    .map(|address| address.parse().unwrap())
                    .collect()
            })))
        }
    }

    fn pins(answers: &[&[&'static str]]) -> Pins {
        let script = Script {
            answers: answers.iter().map(|answer| answer.to_vec()).collect(),
            asked: AtomicUsize::new(0),
        };
        Pins::new(Arc::new(script), Duration::from_secs(60))
    }

    #[tokio::test]
    async fn a_name_keeps_the_addresses_that_it_had_first() {
        let pins = pins(&[&["8.8.8.8"], &["127.0.0.1"]]);
        let first = pins.addresses("a.test").await.unwrap();
        assert_eq!(pins.addresses("a.test").await.unwrap(), first);
    }

    #[tokio::test]
    async fn one_address_that_is_not_public_refuses_them_all() {
        let pins = pins(&[&["8.8.8.8", "127.0.0.1"], &["::ffff:10.0.0.1"]]);
        for address in ["127.0.0.1", "::ffff:10.0.0.1"] {
            let expected = NoAddress::NotPublic(address.parse().unwrap());
            assert_eq!(pins.addresses("a.test").await, Err(expected));
        }
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let pins = pins(&[&[], &["8.8.8.8"]]);
        assert_eq!(pins.addresses("a.test").await, Err(NoAddress::Unknown));
        assert!(pins.addresses("a.test").await.is_ok());
    }

    #[tokio::test]
    async fn the_number_of_names_is_bounded_and_those_that_led_nowhere_make_room() {
        let one: &[&str] = &["8.8.8.8"];
        let pins = pins(&vec![one; MOST_NAMES + 2]);
        for number in 0..MOST_NAMES {
            pins.addresses(&format!("{number}.a.test")).await.unwrap();
        }
        assert_eq!(pins.addresses("more.a.test").await, Err(NoAddress::TooMany));
        assert!(pins.addresses("7.a.test").await.is_ok());

        let pins = self::pins(&[]);
        for number in 0..2 * MOST_NAMES {
            let end = pins.addresses(&format!("{number}.a.test")).await;
            assert_eq!(end, Err(NoAddress::Unknown));
        }
    }
}
