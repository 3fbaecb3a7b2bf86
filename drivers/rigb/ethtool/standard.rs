// SPDX-License-Identifier: GPL-2.0

//! Standard statistics, from the device's counters.

use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        ControlStats,
        MacStats,
        PauseStats,
        SizeErrors,
        SizeStats,
        Sizes,
        StandardStatistics, //
    },
};

use crate::{
    counters::{
        Counters,
        SIZES, //
    },
    netdev::{
        Adapter,
        Control, //
    }, //
};

/// The counters as they are now.
fn counters<'a>(dev: Locked<'_, Adapter<'_>>, control: &'a mut Control) -> &'a Counters {
    control.counters.update(&dev.device().driver().hw);
    &control.counters
}

#[vtable]
impl<'bound> StandardStatistics for Adapter<'bound> {
    const SIZES: &'static Sizes = &Sizes::new(&SIZES);

    fn mac_stats(dev: Locked<'_, Self>, control: &mut Control) -> MacStats {
        let counters = counters(dev, control);

        MacStats {
            tx_frames: Some(counters.tx_frames),
            single_collisions: Some(counters.single_collisions),
            multiple_collisions: Some(counters.multiple_collisions),
            rx_frames: Some(counters.rx_frames),
            frame_check_errors: Some(counters.crc_errors),
            alignment_errors: Some(counters.alignment_errors),
            tx_octets: Some(counters.tx_octets),
            deferred: Some(counters.deferred),
            late_collisions: Some(counters.late_collisions),
            excessive_collisions: Some(counters.excessive_collisions),
            carrier_sense_errors: Some(counters.no_carrier_sense),
            rx_octets: Some(counters.rx_octets),
            tx_multicast: Some(counters.tx_multicast),
            tx_broadcast: Some(counters.tx_broadcast),
            rx_multicast: Some(counters.rx_multicast),
            rx_broadcast: Some(counters.rx_broadcast),
            length_errors: Some(counters.length_errors),
            too_long: Some(counters.oversize),
        }
    }

    fn control_stats(dev: Locked<'_, Self>, control: &mut Control) -> ControlStats {
        let counters = counters(dev, control);

        ControlStats {
            tx_frames: Some(counters.xon_sent + counters.xoff_sent),
            rx_frames: Some(counters.xon_received + counters.xoff_received),
            unsupported: Some(counters.unsupported_control),
        }
    }

    fn pause_stats(dev: Locked<'_, Self>, control: &mut Control) -> PauseStats {
        let counters = counters(dev, control);

        PauseStats {
            tx_frames: Some(counters.xon_sent + counters.xoff_sent),
            rx_frames: Some(counters.xon_received + counters.xoff_received),
        }
    }

    fn size_stats<'a>(dev: Locked<'_, Self>, control: &'a mut Control) -> SizeStats<'a> {
        let counters = counters(dev, control);

        SizeStats {
            errors: SizeErrors {
                undersize: Some(counters.undersize),
                oversize: Some(counters.oversize),
                fragments: Some(counters.fragments),
                jabbers: Some(counters.jabbers),
            },
            rx: &counters.rx_sizes,
            tx: &counters.tx_sizes,
        }
    }
}
