//! Responses that are kept for a while, for a tool that reads a long page in parts and says with `Cache-Control: max-age` that an
//! older one will do. Nothing is kept that was asked for with a secret, and whether a call may reach where a kept response came
//! from is judged anew each time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use tokio::time::Instant;

use super::address::Address;

/// How long a response is kept at most.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Bytes that one Session keeps.
const MOST_BYTES: usize = 16 << 20;
/// Bytes of one response.
pub(super) const MOST_OF_ONE: usize = 4 << 20;
/// What one response costs beside the texts that it holds, and what each of these does.
const COST: usize = 4 << 10;
const COST_OF_A_TEXT: usize = 64;

/// What a response was the answer to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    url: String,
    fields: Vec<(String, Vec<u8>)>,
    max_redirects: u32,
}

impl Key {
    pub(super) fn new(address: &Address, headers: &HeaderMap, max_redirects: u32) -> Key {
        let mut fields: Vec<_> = headers
            .iter()
            .filter(|(name, _)| **name != header::CACHE_CONTROL)
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
            .collect();
        fields.sort();
        Key {
            url: address.url.to_string(),
            fields,
            max_redirects,
        }
    }
}

/// A kept response.
#[derive(Clone)]
pub(super) struct Kept {
    /// All that was asked on the way to it.
    pub(super) way: Vec<Address>,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Bytes,
}

/// What a response and what it was the answer to cost, at least. Everything but the number of responses is as long as the other side
/// likes.
fn cost(key: &Key, response: &Kept) -> usize {
    let fields = key.fields.iter().chain(&response.headers);
    let fields = fields.map(|(name, value)| name.len() + value.len() + 2 * COST_OF_A_TEXT);
    let way = response.way.iter();
    let way = way.map(|address| address.url.as_str().len() + 4 * COST_OF_A_TEXT);
    let texts: usize = fields.chain(way).sum();
    COST + key.url.len() + texts + response.body.len()
}

/// The kept responses of one Session, the oldest first.
#[derive(Default)]
pub(super) struct Memory(Mutex<VecDeque<(Key, Instant, Arc<Kept>)>>);

impl Memory {
    /// The response to `key`, if it is not older than `max_age`, and its age.
    pub(super) fn recall(&self, key: &Key, max_age: Duration) -> Option<(Arc<Kept>, Duration)> {
        let mut kept = self.kept();
        kept.retain(|(_, since, _)| since.elapsed() <= LONGEST);
        let (_, since, response) = kept.iter().find(|(known, _, _)| known == key)?;
        let age = since.elapsed();
        (age <= max_age).then(|| (Arc::clone(response), age))
    }

    /// Keeps a response in the place of an older one to the same request.
    pub(super) fn keep(&self, key: Key, response: Kept) {
        let mut kept = self.kept();
        kept.retain(|(known, since, _)| *known != key && since.elapsed() <= LONGEST);
        kept.push_back((key, Instant::now(), Arc::new(response)));
        let costs = kept.iter().map(|(key, _, response)| cost(key, response));
        let mut all: usize = costs.sum();
        while all > MOST_BYTES
            && let Some((key, _, response)) = kept.pop_front()
        {
            all -= cost(&key, &response);
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(Key, Instant, Arc<Kept>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
