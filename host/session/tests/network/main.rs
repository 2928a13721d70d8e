//! What the real commands of a Session reach over the network, through its real sandbox. This test has its own `main`, because the
//! sandbox starts it again as its helper. The servers are the test's own, on the loopback.

#[path = "../doubles/mod.rs"]
mod doubles;
mod fixture;
mod programs;
mod refused;

fn main() {
    floe_sandbox::helper_main();
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    macro_rules! tests {
        ($($module:ident :: $test:ident)*) => { $(
            let name = concat!(stringify!($module), "::", stringify!($test));
            if wanted.as_ref().is_none_or(|wanted| name.contains(wanted)) {
                println!("test {name}");
                runtime.block_on($module::$test());
            }
        )* };
    }
    tests! {
        programs::curl_reaches_an_allowed_host_over_every_way_there_is
        programs::git_clones_over_https
        programs::pip_installs_from_an_index_over_https
        programs::cargo_builds_with_a_package_of_its_registry
        programs::npm_installs_from_its_registry
        programs::with_the_network_of_the_machine_commands_reach_its_servers
        refused::what_is_refused_is_told_once_to_the_call_and_to_the_trace
        refused::without_a_network_there_is_no_proxy_and_no_word_of_one
        refused::e22_a_server_of_the_machine_is_not_reached_past_the_proxy
        refused::e23_a_flood_of_hosts_is_told_in_part_and_an_empty_list_allows_none
        refused::a_host_that_is_none_is_refused_before_anything_runs
    }
    println!("network: all passed");
}
