//! Which addresses belong to everybody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public network: not of this machine, of a private network, of a
/// link, or set aside for something else. What carries another address inside is judged by that.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_for_protocols = first == 192 && second == 0 && third == 0;
    let is_for_measuring = first == 198 && (18..20).contains(&second);
    !(first == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || is_shared
        || is_for_protocols
        || is_for_measuring
        || first >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inside) = address.to_ipv4_mapped() {
        return is_public_v4(inside);
    }
    let [first, second, third, .., seventh, eighth] = address.segments();
    let inside = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    // Translated, and carried, to and from the older network.
    if first == 0x64 && second == 0xff9b {
        return third == 0 && is_public_v4(inside(seventh, eighth));
    }
    if first == 0x2002 {
        return is_public_v4(inside(second, third));
    }
    let is_teredo = first == 0x2001 && second == 0;
    let is_documentation = (first == 0x2001 && second == 0xdb8) || first == 0x3fff;
    // What is given out to be public begins with these three bits.
    first & 0xe000 == 0x2000 && !is_teredo && !is_documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_everybody_are_public() {
        for address in
            ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2002:808:808::1", "64:ff9b::808:808"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:192.168.0.1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "::8.8.8.8",
            "100::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
