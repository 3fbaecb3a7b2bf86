// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counters of the network stack (RFC 4293 and others) as `/proc/net/snmp` and
//! `/proc/net/netstat` of a namespace show them.

/// The counter `name` of a protocol in the text of such a file.
#[must_use]
pub fn value(text: &str, protocol: &str, name: &str) -> Option<u64> {
    // Lines come in pairs: the names, and then the numbers.
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let names = lines.next()?.split_whitespace();
    let (_, value) = names
        .zip(lines.next()?.split_whitespace())
        .find(|(of, _)| *of == name)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn counters_are_found_by_protocol_and_name() {
        let text = "Udp: InDatagrams NoPorts\nUdp: 7 1\nUdpLite: InDatagrams\nUdpLite: 3\n\
                    Tcp: MaxConn OutRsts\nTcp: -1 5\n";
        assert_eq!(value(text, "Udp", "NoPorts"), Some(1));
        assert_eq!(value(text, "UdpLite", "InDatagrams"), Some(3));
        assert_eq!(value(text, "Tcp", "OutRsts"), Some(5));
        assert_eq!(value(text, "Tcp", "InDatagrams"), None);
        assert_eq!(value(text, "Icmp", "OutRsts"), None);
    }
}
