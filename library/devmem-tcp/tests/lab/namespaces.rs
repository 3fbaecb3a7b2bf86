// SPDX-License-Identifier: MIT OR Apache-2.0

//! An interface of another network namespace than the program's.

use devmem_tcp::ethtool::Ethtool;
use devmem_tcp::interface::Interface;
use devmem_tcp::netdev::{Netdev, QueueKind, RxBinding, TxBinding};
use devmem_tcp::udmabuf::Udmabuf;

use crate::{Lab, MIB, variable};

#[test]
#[ignore = "needs the lab"]
fn a_dma_buf_is_bound_to_an_interface_of_another_namespace_and_released_there() {
    let Lab { peer, queue, .. } = Lab::find();
    let name = variable("PEER_NIC");
    Interface::by_name(&name).expect_err("it is not in this namespace");
    let interface = peer.run(|| Interface::by_name(&name).expect("there it is"));
    let interface = interface.expect("the peer's namespace");
    let bound = || {
        let queues = peer.run(|| Netdev::new().queues(interface));
        let queues = queues.expect("the peer's namespace").expect("queues");
        let mut queues = queues.iter().filter(|it| it.kind == QueueKind::Rx);
        queues.find(|it| it.id == queue).expect("the queue").dmabuf
    };
    peer.run(|| Ethtool::new().split_headers(interface))
        .expect("the peer's namespace")
        .expect("header split");
    let memory = Udmabuf::new().create(MIB).expect("memory");

    let receives = RxBinding::to(interface)
        .queue(queue)
        .namespace(peer.clone());
    let binding = receives.bind(&memory).expect("bind");
    assert_eq!(bound(), Some(binding.id()));
    drop(binding);
    assert_eq!(bound(), None);

    let sends = TxBinding::to(interface).namespace(peer.clone());
    sends.bind(&memory).expect("bind");
    // In this namespace no interface that can send has that index.
    TxBinding::to(interface)
        .bind(&memory)
        .expect_err("a binding in the wrong namespace");
}
