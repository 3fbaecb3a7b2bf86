// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the running kernel answers about the loopback interface, which every machine has.

use std::fs::File;
use std::net::{TcpListener, TcpStream};

use devmem_tcp::ethtool::{ChannelChange, Ethtool, RingChange, TcpDataSplit, driver_stats};
use devmem_tcp::interface::Interface;
use devmem_tcp::netdev::{Netdev, QueueKind, RxBinding, TxBinding};
use devmem_tcp::rx::{Fragment, RawFragment, Receiver};
use devmem_tcp::udmabuf::Udmabuf;
use devmem_tcp::{BindError, MemoryError, ReceiveError, RequestError};

/// An index that no interface has: the largest that the kernel can give.
const NOBODY: Interface = Interface::from_index(i32::MAX as u32);

fn loopback() -> Interface {
    Interface::by_name("lo").expect("every network namespace has a loopback interface")
}

/// The value, or none if the running kernel is too old for the question.
fn known<T>(answer: Result<T, RequestError>) -> Option<T> {
    match answer {
        Ok(value) => Some(value),
        Err(RequestError::KernelTooOld { .. }) => None,
        Err(error) => panic!("the kernel knows the operation, yet: {error}"),
    }
}

#[test]
fn names_and_indices_belong_together() {
    assert_eq!(loopback().name().expect("it exists"), "lo");
    let error = Interface::by_name("no-such-if").expect_err("nobody has that name");
    assert!(
        error.to_string().starts_with("no-such-if does not exist"),
        "unclear message: {error}"
    );
    assert_eq!(error.errno(), Some(libc::ENODEV));
}

#[test]
fn an_interface_that_does_not_exist_is_an_error_of_its_own() {
    let mut netdev = Netdev::new();
    let mut ethtool = Ethtool::new();
    let answers = [
        netdev.queues(NOBODY).map(drop),
        netdev.device_stats(NOBODY).map(drop),
        ethtool.rings(NOBODY).map(drop),
        ethtool.link(NOBODY).map(drop),
        ethtool.features(NOBODY).map(drop),
    ];
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Err(RequestError::NoSuchInterface { interface, .. }) => {
                assert!(
                    interface.contains(&NOBODY.index().to_string()),
                    "unclear name: {interface}"
                );
            }
            Err(RequestError::KernelTooOld { .. }) => {}
            other => panic!("answer {index}: expected NoSuchInterface, got {other:?}"),
        }
    }
}

#[test]
fn a_feature_that_an_interface_lacks_cannot_be_set_to_anything() {
    let mut ethtool = Ethtool::new();
    if known(ethtool.features(loopback())).is_none() {
        return;
    }
    // The loopback has no hardware that could aggregate packets.
    for on in [true, false] {
        let refused = ethtool.set_features(loopback(), &[("rx-gro-hw", on)]);
        assert!(
            matches!(&refused, Err(RequestError::FeatureLacking { feature, .. }) if feature == "rx-gro-hw"),
            "got {refused:?}"
        );
    }
    let refused = ethtool.set_features(loopback(), &[("no-such-feature", false)]);
    assert!(
        matches!(&refused, Err(RequestError::NoSuchFeature { feature }) if feature == "no-such-feature"),
        "got {refused:?}"
    );
}

#[test]
fn the_loopback_interface_has_link_queues_and_known_features() {
    let interface = loopback();
    let mut ethtool = Ethtool::new();
    if let Some(features) = known(ethtool.features(interface)) {
        // drivers/net/loopback.c: local to its network namespace for ever, and scatter-gather on.
        assert!(
            features.active.contains("tx-scatter-gather"),
            "got {:?}",
            features.active
        );
        assert!(
            features.active.contains("loopback"),
            "got {:?}",
            features.active
        );
        assert!(
            !features.changeable.contains("loopback"),
            "got {:?}",
            features.changeable
        );
    }
    if let Some(Some(link)) = known(ethtool.link(interface)) {
        // An isolated network namespace may have it down.
        let flags = std::fs::read_to_string("/sys/class/net/lo/carrier").unwrap_or_default();
        assert_eq!(link, flags.trim() == "1");
    }
    if let Some(queues) = known(Netdev::new().queues(interface)) {
        if !queues.is_empty() {
            assert!(
                queues
                    .iter()
                    .any(|queue| queue.kind == QueueKind::Rx && queue.id == 0)
            );
            assert!(
                queues
                    .iter()
                    .all(|queue| queue.dmabuf.is_none() && !queue.io_uring)
            );
        }
    }
}

#[test]
fn what_the_loopback_driver_lacks_is_reported_as_unsupported() {
    let interface = loopback();
    let mut ethtool = Ethtool::new();
    let answers = [
        ("rings", ethtool.rings(interface).map(drop)),
        ("channels", ethtool.channels(interface).map(drop)),
        ("RSS", ethtool.rss(interface).map(drop)),
        ("driver statistics", driver_stats(interface).map(drop)),
        (
            "queue statistics",
            Netdev::new().queue_stats(interface).map(drop),
        ),
    ];
    for (what, answer) in answers {
        match answer {
            Err(error @ RequestError::Unsupported { .. }) => {
                assert_eq!(error.errno(), Some(libc::EOPNOTSUPP), "{what}: {error}");
                assert!(
                    error.to_string().starts_with("lo ("),
                    "{what}: unclear message: {error}"
                );
            }
            Err(RequestError::KernelTooOld { .. }) => {}
            other => panic!("{what}: expected Unsupported, got {other:?}"),
        }
    }
}

#[test]
fn changes_that_the_loopback_driver_cannot_make_are_refused() {
    let interface = loopback();
    let mut ethtool = Ethtool::new();
    let split = RingChange {
        tcp_data_split: Some(TcpDataSplit::On),
        ..RingChange::default()
    };
    let channels = ChannelChange {
        combined: Some(2),
        ..ChannelChange::default()
    };
    let answers = [
        ethtool.set_rings(interface, split),
        ethtool.set_channels(interface, channels),
    ];
    for answer in answers {
        match answer {
            Err(RequestError::Unsupported { .. } | RequestError::NotPrivileged { .. }) => {}
            Err(RequestError::KernelTooOld { .. }) => {}
            other => panic!("expected Unsupported or NotPrivileged, got {other:?}"),
        }
    }
}

#[test]
fn a_descriptor_that_is_not_a_dma_buf_is_refused_before_the_kernel_is_asked() {
    let file = File::open("/dev/null").expect("open");
    for answer in [
        RxBinding::to(loopback()).queue(0).bind(&file).map(drop),
        TxBinding::to(loopback()).bind(&file).map(drop),
    ] {
        assert!(
            matches!(
                answer,
                Err(BindError::Memory(MemoryError::NotADmaBuf { .. }))
            ),
            "got {answer:?}"
        );
    }
}

#[test]
fn the_loopback_interface_takes_no_dma_buf() {
    let memory = match Udmabuf::new().create(1 << 20) {
        Ok(memory) => memory,
        // Many kernels have no udmabuf; then the error must say so.
        Err(error) => {
            assert!(
                matches!(error, MemoryError::NoUdmabuf { .. }),
                "got {error:?}"
            );
            assert!(
                error.to_string().contains("CONFIG_UDMABUF"),
                "unclear message: {error}"
            );
            return;
        }
    };
    match RxBinding::to(loopback()).queue(0).bind(&memory) {
        Err(
            BindError::NoQueueManagement { .. }
            | BindError::Request(
                RequestError::NotPrivileged { .. } | RequestError::KernelTooOld { .. },
            ),
        ) => {}
        other => panic!("expected NoQueueManagement, got {other:?}"),
    }
    match TxBinding::to(loopback()).bind(&memory) {
        Err(
            BindError::NoDeviceMemoryTx { .. }
            | BindError::Request(RequestError::KernelTooOld { .. }),
        ) => {}
        other => panic!("expected NoDeviceMemoryTx, got {other:?}"),
    }
}

#[test]
fn tokens_that_the_socket_never_gave_are_not_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let _peer = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (stream, _) = listener.accept().expect("accept");
    let own = rustix::net::sockopt::socket_cookie(&stream).expect("each socket has one");
    let mut receiver = Receiver::new(stream);
    receiver.recycle([]).expect("nothing to recycle");
    let fragment = |token, socket| {
        Fragment::from_raw(RawFragment {
            offset: 0,
            len: 1,
            token,
            dmabuf_id: 1,
            socket,
        })
    };
    // The token may well be one of this socket's.
    let elsewhere = receiver.recycle([fragment(3, own + 1)]);
    assert!(
        matches!(
            elsewhere,
            Err(ReceiveError::FragmentsElsewhere { count: 1 })
        ),
        "{elsewhere:?}"
    );
    match receiver.recycle([fragment(3, own), fragment(4, own)]) {
        Err(ReceiveError::TokensNotTaken { taken: 0, given: 2 }) => {}
        // A kernel without device memory TCP does not know the option.
        Err(error) if error.errno() == Some(libc::ENOPROTOOPT) => {}
        other => panic!("expected TokensNotTaken, got {other:?}"),
    }
}

#[test]
fn an_interface_is_found_by_its_name_its_index_and_its_address() {
    for text in ["lo".to_owned(), loopback().index().to_string()] {
        assert_eq!(text.parse::<Interface>().expect(&text), loopback());
    }
    // An isolated network namespace may have it down, without an address.
    if let Ok(found) = "127.0.0.1".parse::<Interface>() {
        assert_eq!(found, loopback());
    }
    for nobody in ["no-such-if", "2147483647", "192.0.2.77", "2001:db8::77"] {
        let error = nobody.parse::<Interface>().expect_err(nobody);
        assert!(
            matches!(error, RequestError::NoSuchInterface { .. })
                && error.to_string().contains(nobody),
            "unclear message: {error}"
        );
    }
}
