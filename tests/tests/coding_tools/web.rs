//! The tools that speak HTTP: `web_search`, `web_fetch`, `http_request`, `curl`, and `read_image` where it is given an address. Every server is
//! the test's own, on the loopback; a grant says that a name stands for it, which is the only way to reach one there.

mod curl;
mod http_request;
mod images;
mod web_fetch;
mod web_search;

use floe_network::HostGrants;
use floe_session::SessionOptions;

use crate::rig::Rig;
use crate::site::Site;

/// A Rig whose tools reach the site as `http://site.test/`.
fn rig(site: &Site) -> Rig {
    rig_with(site, |_| {})
}

/// The same, with options changed.
fn rig_with(site: &Site, change: impl FnOnce(&mut SessionOptions)) -> Rig {
    let grants = HostGrants::parse(&[site.grant("site.test", 80)]).unwrap();
    Rig::with(|options| {
        options.gate.grants = grants;
        change(options);
    })
}
