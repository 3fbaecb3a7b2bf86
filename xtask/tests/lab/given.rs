// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool of devmem-tcp receives into a dma-buf that another program made.

use crate::recipe;
use crate::tool::parts;

#[test]
fn a_dma_buf_that_is_given_is_mapped_only_to_be_validated() {
    let script = r#"
        receive() {
            : > /tmp/errors
            python3 RECIPE 32 "$0" listen $NOBOUNCE_ADDRESS:5201 --queue 1 --steer none --format json "$@" \
                --memory > /tmp/received 2> /tmp/errors &
            until grep -q listening /tmp/errors; do kill -0 $! || break; sleep 0.1; done
            echo "-- maps 0"
            grep -c dmabuf /proc/$!/maps
            ip netns exec $NOBOUNCE_PEER_NETNS "$0" connect $NOBOUNCE_ADDRESS:5201 --mode ordinary --memory ram \
                --bytes 4M --validate 7 > /tmp/sent
            wait $!
            echo "-- listen $?"
            cat /tmp/received
            cat /tmp/errors >&2
        }
        receive
        receive --validate 7
    "#;
    let script = script.replace("RECIPE", &recipe("dmabuf.py"));
    let ends = parts(&[], &script);
    let [maps, received, validated_maps, validated] = &ends[..] else {
        panic!("{ends:?}");
    };
    assert_eq!(maps.text.trim(), "0");
    assert_ne!(validated_maps.text.trim(), "0");
    for end in [received, validated] {
        assert_eq!(end.json()["ways"]["direct"], 4 << 20, "{end:?}");
    }
}
