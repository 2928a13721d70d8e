//! What a call asks to reach beyond the sandbox, judged by what there is: paths by the sandbox, hosts by the network. Nothing is
//! granted here.

use floe_environment::WideningRequest;
use floe_network::{Gate, HostGrants, Standing};
use floe_sandbox::{Network, Sandbox, Tier, Widening, WideningFault};

/// Hosts of one request.
const MOST_HOSTS: usize = 16;

/// What of a request a person is to be asked about. Blocks for some milliseconds.
pub(crate) fn judge(
    request: &WideningRequest,
    sandbox: &Sandbox,
    mode: Network,
    granted: &HostGrants,
) -> Result<Widening, WideningFault> {
    let WideningRequest {
        reason: _,
        read,
        write,
        hosts,
    } = request;
    let asked = parse(hosts)?;
    let widening = sandbox.widening(read, write)?;
    Ok(Widening {
        hosts: further(asked, mode, granted, sandbox.settled_tier()?)?,
        ..widening
    })
}

/// The same for a tool that reaches hosts itself and runs no command.
pub(crate) fn of_http(
    request: &WideningRequest,
    gate: &Gate,
    reads_only: bool,
) -> Result<Widening, WideningFault> {
    let WideningRequest {
        reason: _,
        read,
        write,
        hosts,
    } = request;
    for (place, paths) in [("read", read), ("write", write)] {
        if !paths.is_empty() {
            return Err(WideningFault::Mistake {
                place: place.into(),
                reason: "this tool reaches hosts, and no paths beyond the Workspace".into(),
            });
        }
    }
    let mut widening = Widening::default();
    for grant in parse(hosts)?.iter().flat_map(HostGrants::iter) {
        let name = grant.to_string();
        match gate.standing(grant, reads_only) {
            Standing::Reached => {}
            Standing::Blocked => return Err(never(&name, "is in network.blocked_domains")),
            Standing::Inside => return Err(never(&name, "lies inside, where no widening leads")),
            Standing::Beyond if widening.hosts.contains(&name) => {}
            Standing::Beyond => widening.hosts.push(name),
        }
    }
    Ok(widening)
}

fn never(host: &str, why: &str) -> WideningFault {
    WideningFault::Forbidden(format!(
        "The call asks to reach {host}, which {why}. Only the person's own configuration can change that."
    ))
}

/// The hosts that are asked for, each for itself, so that a mistake has its place.
fn parse(hosts: &[String]) -> Result<Vec<HostGrants>, WideningFault> {
    if hosts.len() > MOST_HOSTS {
        return Err(WideningFault::Mistake {
            place: "hosts".into(),
            reason: format!("at most {MOST_HOSTS} hosts in one call"),
        });
    }
    hosts
        .iter()
        .enumerate()
        .map(|(index, host)| {
            HostGrants::parse_names(&[host]).map_err(|error| WideningFault::Mistake {
                place: format!("hosts/{index}"),
                reason: error.to_string().trim_end_matches('.').to_owned(),
            })
        })
        .collect()
}

/// Those that commands do not reach anyway, in their normal form.
fn further(
    asked: Vec<HostGrants>,
    mode: Network,
    granted: &HostGrants,
    tier: Tier,
) -> Result<Vec<String>, WideningFault> {
    let all_is_reached = mode == Network::Host || tier == Tier::Unconfined;
    let mut further: Vec<String> = Vec::new();
    for host in asked {
        if all_is_reached || granted.covers(&host) {
            continue;
        }
        if tier == Tier::Landlock {
            return Err(WideningFault::Forbidden(
                "The call asks to reach hosts; on this machine commands are confined by Landlock alone, and have no network of \
                 their own through which single hosts could be reached. Do without, or tell the person: with namespaces \
                 (`floe doctor` says what stands in their way) hosts can be allowed."
                    .into(),
            ));
        }
        let names = host.iter().map(ToString::to_string);
        let new: Vec<String> = names.filter(|name| !further.contains(name)).collect();
        further.extend(new);
    }
    Ok(further)
}

#[cfg(test)]
mod tests {
    use floe_network::{DomainList, GateOptions, Scope};

    use super::*;

    fn asked(hosts: &[&str]) -> Result<Vec<HostGrants>, WideningFault> {
        parse(
            &hosts
                .iter()
                .map(|host| (*host).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    fn beyond(hosts: &[&str], mode: Network, tier: Tier) -> Result<Vec<String>, WideningFault> {
        let granted = HostGrants::parse(&["*.known.example"]).unwrap();
        further(asked(hosts).unwrap(), mode, &granted, tier)
    }

    #[test]
    fn hosts_are_asked_for_in_their_normal_form_and_what_is_reached_anyway_is_not() {
        assert_eq!(
            beyond(
                &[
                    "Crates.IO",
                    "a.known.example",
                    "crates.io:443",
                    "b.known.example:80"
                ],
                Network::Proxy,
                Tier::Native
            )
            .unwrap(),
            ["crates.io:443", "b.known.example:80"]
        );
        for (mode, tier) in [
            (Network::Host, Tier::Native),
            (Network::Off, Tier::Unconfined),
        ] {
            assert!(beyond(&["crates.io"], mode, tier).unwrap().is_empty());
        }
    }

    #[test]
    fn a_host_that_is_none_is_a_mistake_with_its_place() {
        for host in [
            "https://crates.io",
            "a b",
            "*",
            "crates.io:0",
            "crates.io=127.0.0.1",
            "127.0.0.1",
            "",
        ] {
            let fault = asked(&["crates.io", host]).unwrap_err();
            let WideningFault::Mistake { place, reason } = fault else {
                panic!("{host}: {fault:?}")
            };
            assert_eq!(place, "hosts/1");
            assert!(!reason.ends_with('.'), "{reason}");
        }
    }

    #[test]
    fn a_tool_that_speaks_http_asks_for_hosts_that_it_does_not_reach_and_for_nothing_else() {
        let gate = Gate::new(GateOptions {
            scope: Scope {
                blocked: DomainList::parse(&["bad.example"]).unwrap(),
                ..Scope::default()
            },
            ..GateOptions::default()
        });
        let asked = |hosts: &[&str], read: &[&str]| {
            let texts = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
            let request = WideningRequest {
                reason: "because".into(),
                read: texts(read),
                hosts: texts(hosts),
                ..WideningRequest::default()
            };
            [true, false].map(|reads_only| of_http(&request, &gate, reads_only))
        };
        let [reads, writes] = asked(&["a.example", "A.example:443", "b.example:8080"], &[]);
        assert_eq!(reads.unwrap().hosts, ["b.example:8080"]);
        assert_eq!(writes.unwrap().hosts, ["a.example:443", "b.example:8080"]);
        for host in ["bad.example", "localhost:80"] {
            for fault in asked(&[host], &[]) {
                assert!(matches!(fault, Err(WideningFault::Forbidden(_))), "{host}");
            }
        }
        for fault in asked(&["a.example"], &["/etc"]) {
            let Err(WideningFault::Mistake { place, .. }) = fault else {
                panic!("{fault:?}")
            };
            assert_eq!(place, "read");
        }
    }

    #[test]
    fn where_no_network_can_be_given_nobody_is_asked() {
        let fault = beyond(&["crates.io"], Network::Off, Tier::Landlock).unwrap_err();
        assert!(matches!(fault, WideningFault::Forbidden(_)));
        assert!(fault.to_string().contains("`floe doctor`"));
    }
}
