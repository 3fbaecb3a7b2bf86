// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the running kernel answers about the loopback interface, which every machine has.

use std::fs::File;
use std::net::{TcpListener, TcpStream};

use devmem::ethtool::{ChannelChange, Ethtool, RingChange, TcpDataSplit, driver_stats};
use devmem::netdev::{self, Netdev, QueueKind};
use devmem::rx::{Receiver, Token};
use devmem::{BindError, Error, MemoryError};
use devmem::{Result, interface, udmabuf};

/// An index that no interface has: the largest that the kernel can give.
const NOBODY: u32 = i32::MAX as u32;

fn loopback() -> u32 {
    interface::index("lo").expect("every network namespace has a loopback interface")
}

/// The value, or none if the running kernel is too old for the question.
fn known<T>(answer: Result<T>) -> Option<T> {
    match answer {
        Ok(value) => Some(value),
        Err(Error::KernelTooOld { .. }) => None,
        Err(error) => panic!("the kernel knows the operation, yet: {error}"),
    }
}

#[test]
fn names_and_indices_belong_together() {
    assert_eq!(interface::name(loopback()).expect("it exists"), "lo");
    let error = interface::index("no-such-if").expect_err("nobody has that name");
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
            Err(Error::NoSuchInterface { interface, .. }) => {
                assert!(
                    interface.contains(&NOBODY.to_string()),
                    "unclear name: {interface}"
                );
            }
            Err(Error::KernelTooOld { .. }) => {}
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
            matches!(&refused, Err(Error::FeatureLacking { feature, .. }) if feature == "rx-gro-hw"),
            "got {refused:?}"
        );
    }
    let refused = ethtool.set_features(loopback(), &[("no-such-feature", false)]);
    assert!(
        matches!(&refused, Err(Error::NoSuchFeature { feature }) if feature == "no-such-feature"),
        "got {refused:?}"
    );
}

#[test]
fn the_loopback_interface_has_link_queues_and_known_features() {
    let ifindex = loopback();
    let mut ethtool = Ethtool::new();
    if let Some(features) = known(ethtool.features(ifindex)) {
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
    if let Some(Some(link)) = known(ethtool.link(ifindex)) {
        // An isolated network namespace may have it down.
        let flags = std::fs::read_to_string("/sys/class/net/lo/carrier").unwrap_or_default();
        assert_eq!(link, flags.trim() == "1");
    }
    if let Some(queues) = known(Netdev::new().queues(ifindex)) {
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
    let ifindex = loopback();
    let mut ethtool = Ethtool::new();
    let answers = [
        ("rings", ethtool.rings(ifindex).map(drop)),
        ("channels", ethtool.channels(ifindex).map(drop)),
        ("RSS", ethtool.rss(ifindex).map(drop)),
        ("driver statistics", driver_stats(ifindex).map(drop)),
        (
            "queue statistics",
            Netdev::new().queue_stats(ifindex).map(drop),
        ),
    ];
    for (what, answer) in answers {
        match answer {
            Err(error @ Error::Unsupported { .. }) => {
                assert_eq!(error.errno(), Some(libc::EOPNOTSUPP), "{what}: {error}");
                assert!(
                    error.to_string().starts_with("lo ("),
                    "{what}: unclear message: {error}"
                );
            }
            Err(Error::KernelTooOld { .. }) => {}
            other => panic!("{what}: expected Unsupported, got {other:?}"),
        }
    }
}

#[test]
fn changes_that_the_loopback_driver_cannot_make_are_refused() {
    let ifindex = loopback();
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
        ethtool.set_rings(ifindex, split),
        ethtool.set_channels(ifindex, channels),
    ];
    for answer in answers {
        match answer {
            Err(Error::Unsupported { .. } | Error::NotPrivileged { .. }) => {}
            Err(Error::KernelTooOld { .. }) => {}
            other => panic!("expected Unsupported or NotPrivileged, got {other:?}"),
        }
    }
}

#[test]
fn a_descriptor_that_is_not_a_dma_buf_is_refused_before_the_kernel_is_asked() {
    let file = File::open("/dev/null").expect("open");
    for answer in [
        netdev::bind_rx(loopback(), &file, &[0]).map(drop),
        netdev::bind_tx(loopback(), &file).map(drop),
    ] {
        assert!(
            matches!(answer, Err(Error::Memory(MemoryError::NotADmaBuf { .. }))),
            "got {answer:?}"
        );
    }
}

#[test]
fn the_loopback_interface_takes_no_dma_buf() {
    let memory = match udmabuf::create(1 << 20) {
        Ok(memory) => memory,
        // Many kernels have no udmabuf; then the error must say so.
        Err(error) => {
            assert!(
                matches!(error, Error::Memory(MemoryError::NoUdmabuf { .. })),
                "got {error:?}"
            );
            assert!(
                error.to_string().contains("CONFIG_UDMABUF"),
                "unclear message: {error}"
            );
            return;
        }
    };
    match netdev::bind_rx(loopback(), &memory, &[0]) {
        Err(
            Error::Bind(BindError::NoQueueManagement { .. })
            | Error::NotPrivileged { .. }
            | Error::KernelTooOld { .. },
        ) => {}
        other => panic!("expected NoQueueManagement, got {other:?}"),
    }
    match netdev::bind_tx(loopback(), &memory) {
        Err(Error::Bind(BindError::NoDeviceMemoryTx { .. }) | Error::KernelTooOld { .. }) => {}
        other => panic!("expected NoDeviceMemoryTx, got {other:?}"),
    }
}

#[test]
fn tokens_that_the_socket_never_gave_are_not_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let _peer = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (stream, _) = listener.accept().expect("accept");
    let mut receiver = Receiver::new(stream);
    receiver.return_tokens(&[]).expect("nothing to return");
    match receiver.return_tokens(&[Token(3), Token(4)]) {
        Err(Error::TokensNotTaken { taken: 0, given: 2 }) => {}
        // A kernel without device memory TCP does not know the option.
        Err(error) if error.errno() == Some(libc::ENOPROTOOPT) => {}
        other => panic!("expected TokensNotTaken, got {other:?}"),
    }
}
