//! Which addresses are public: those that a name may lead to without anybody having named the address.
//!
//! Everything that belongs to the machine itself, to its own networks, to a provider's metadata service, or to a
//! translation of IPv4 that could hide one of these is not. The blocks are those of the IANA registries of special-purpose
//! addresses; what is not listed there as reachable from everywhere is listed here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Blocks of IPv4 that are not public, as the address and the length of its prefix.
const NOT_PUBLIC_4: [([u8; 4], u32); 18] = [
    // This network; the unspecified address.
    ([0, 0, 0, 0], 8),
    // Private.
    ([10, 0, 0, 0], 8),
    // Shared by the customers of a provider.
    ([100, 64, 0, 0], 10),
    // Loopback.
    ([127, 0, 0, 0], 8),
    // Link-local, the metadata services of clouds among it.
    ([169, 254, 0, 0], 16),
    // The metadata service of another cloud, in a block that is public otherwise.
    ([168, 63, 129, 16], 32),
    // Private.
    ([172, 16, 0, 0], 12),
    // Protocol assignments.
    ([192, 0, 0, 0], 24),
    // Documentation.
    ([192, 0, 2, 0], 24),
    // Anycast relays of the retired 6to4, and of other services that are their network's own.
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    // Private.
    ([192, 168, 0, 0], 16),
    ([192, 175, 48, 0], 24),
    // Benchmarks.
    ([198, 18, 0, 0], 15),
    // Documentation.
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, and all that is reserved above it, broadcast too.
    ([224, 0, 0, 0], 3),
];

/// The one block of IPv6 that is given out: global unicast.
const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks within it that are not public.
const NOT_PUBLIC_6: [([u16; 3], u32); 5] = [
    // Protocol assignments; Teredo, which holds an IPv4 address, is one.
    ([0x2001, 0, 0], 23),
    // Documentation.
    ([0x2001, 0xdb8, 0], 32),
    // 6to4, which holds an IPv4 address.
    ([0x2002, 0, 0], 16),
    // A service that is its network's own.
    ([0x2620, 0x4f, 0x8000], 48),
    // Documentation.
    ([0x3fff, 0, 0], 20),
];

/// Whether `address` can be reached from everywhere and means the same everywhere.
pub fn is_public(address: IpAddr) -> bool {
    // An IPv4 address in IPv6's clothes connects to the IPv4 address.
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let within = |(block, length): &([u8; 4], u32)| {
                let differing = address.to_bits() ^ Ipv4Addr::from(*block).to_bits();
                differing.leading_zeros() >= *length
            };
            !NOT_PUBLIC_4.iter().any(within)
        }
        IpAddr::V6(address) => {
            let within = |block: Ipv6Addr, length: u32| {
                (address.to_bits() ^ block.to_bits()).leading_zeros() >= length
            };
            let (given_out, length) = GLOBAL_UNICAST;
            within(given_out, length)
                && !NOT_PUBLIC_6
                    .iter()
                    .any(|&([first, second, third], length)| {
                        within(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0), length)
                    })
                && !is_isatap(address)
        }
    }
}

/// Whether an address holds an IPv4 address as ISATAP does, behind any prefix. With or without the bit that says that the IPv4
/// address is unique.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, first, second, _, _] = address.segments();
    first & !0x0200 == 0 && second == 0x5efe
}

/// Whether `address` is one of this machine: a machine that is open to the world has public ones, and behind them the same
/// services as behind its loopback. Nothing is sent; the kernel only says where it would send from.
pub(crate) fn is_of_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        // The port says nothing here, but it must be one.
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip().to_canonical() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_known_by_where_its_answers_would_come_from() {
        for (address, is_own) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("8.8.8.8", false),
            ("2001:4860:4860::8888", false),
        ] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), is_own);
        }
    }

    /// Both ends of every block, and its neighbours.
    const CASES: [(&str, bool); 77] = [
        ("0.0.0.0", false),
        ("0.255.255.255", false),
        ("1.0.0.0", true),
        ("9.255.255.255", true),
        ("10.0.0.0", false),
        ("10.255.255.255", false),
        ("11.0.0.0", true),
        ("100.63.255.255", true),
        ("100.64.0.0", false),
        ("100.127.255.255", false),
        ("100.128.0.0", true),
        ("126.255.255.255", true),
        ("127.0.0.1", false),
        ("127.255.255.255", false),
        ("128.0.0.0", true),
        ("168.63.129.15", true),
        ("168.63.129.16", false),
        ("168.63.129.17", true),
        ("169.253.255.255", true),
        ("169.254.169.254", false),
        ("169.255.0.0", true),
        ("172.15.255.255", true),
        ("172.16.0.0", false),
        ("172.31.255.255", false),
        ("172.32.0.0", true),
        ("192.0.0.8", false),
        ("192.0.1.0", true),
        ("192.0.2.1", false),
        ("192.0.3.0", true),
        ("192.31.196.1", false),
        ("192.52.193.1", false),
        ("192.88.99.1", false),
        ("192.167.255.255", true),
        ("192.168.0.1", false),
        ("192.169.0.0", true),
        ("192.175.48.1", false),
        ("198.17.255.255", true),
        ("198.18.0.0", false),
        ("198.19.255.255", false),
        ("198.20.0.0", true),
        ("198.51.100.1", false),
        ("203.0.113.1", false),
        ("203.0.114.0", true),
        ("223.255.255.255", true),
        ("224.0.0.1", false),
        ("239.255.255.250", false),
        ("240.0.0.1", false),
        ("255.255.255.255", false),
        ("8.8.8.8", true),
        ("::", false),
        ("::1", false),
        ("::ffff:127.0.0.1", false),
        ("::ffff:8.8.8.8", true),
        ("::127.0.0.1", false),
        ("::8.8.8.8", false),
        ("64:ff9b::7f00:1", false),
        ("64:ff9b:1::7f00:1", false),
        ("100::1", false),
        ("1fff:ffff::1", false),
        ("2001::1", false),
        ("2001:1ff:ffff::1", false),
        ("2001:200::1", true),
        ("2001:db8::1", false),
        ("2001:4860:4860::8888", true),
        ("2002:7f00:1::1", false),
        ("2620:4f:8000::1", false),
        ("2a00:1450:4001::1", true),
        ("2a00:1450:4001::5efe:7f00:1", false),
        ("2a00:1450:4001:0:200:5efe:a00:1", false),
        ("2a00:1450:4001:0:100:5efe:a00:1", true),
        ("2a00:1450:4001::5eff:7f00:1", true),
        ("3ffe:ffff::1", true),
        ("3fff:fff::1", false),
        ("4000::1", false),
        ("fc00::1", false),
        ("fe80::1", false),
        ("ff02::1", false),
    ];

    #[test]
    fn an_address_is_public_or_not_as_this_table_says() {
        for (address, public) in CASES {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_the_standard_library_calls_local_is_never_public(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let local = address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_unspecified() || address.is_broadcast();
            proptest::prop_assert!(!(local && is_public(address.into())));
            proptest::prop_assert_eq!(is_public(address.into()), is_public(address.to_ipv6_mapped().into()));
        }
    }
}
