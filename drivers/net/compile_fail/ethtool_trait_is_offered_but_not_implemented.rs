// SPDX-License-Identifier: GPL-2.0

//! A driver offers to ethtool what it implements, and nothing else.
//~ error[E0277]: the trait bound `Nic: net::ethtool::RingParams` is not satisfied

include!("nic.rs");

#[cfg(fixed)]
#[vtable]
impl net::ethtool::RingParams for Nic {
    const HEADER_SPLIT: bool = false;

    fn rings(_control: &()) -> net::ethtool::Rings {
        net::ethtool::Rings {
            rx: 64,
            tx: 64,
            rx_max: 64,
            tx_max: 64,
            header_split: net::ethtool::HeaderSplit::Auto,
            hds_thresh: 0,
            hds_thresh_max: 0,
        }
    }
}

/// What probe does.
pub fn probe() -> Result {
    let config = net::registration::Config::new(1, 1);
    let nic = net::registration::Unregistered::<Nic>::new_virtual(config)?;

    drop(nic.with_rings());
    Ok(())
}
