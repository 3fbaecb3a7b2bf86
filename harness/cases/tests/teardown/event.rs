// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is removed, and how it is restored.

use std::fmt::{self, Display, Formatter};

use cases::{KernelFault, Refusal, Result, Testbed};
use libc::ENODEV;
use protocol::{Command, Memory, kernel::UnloadModule, rings::TcpDataSplit};

use crate::{
    PAIRS,
    state::{MIB, QUEUE, Scene, State},
};

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The netlink socket that holds the binding is closed, or the ring is.
    CloseBinding,
    /// The owner is killed.
    KillOwner,
    /// The owner closes the dma-buf, but keeps its mapping.
    CloseDmaBuf,
    /// The cable is unplugged, and plugged in again.
    LinkDown,
    /// The interface is taken down, and up again.
    InterfaceDown,
    /// Header split is turned off.
    SplitOff,
    /// Fewer channels, but the queue keeps its own.
    ChannelsFewer,
    /// Fewer channels, and the queue loses its own.
    ChannelsFewest,
    /// Rings of other sizes.
    RingSizes,
    /// Another MTU, at both ends of the wire.
    Mtu,
    /// A queue is bound and unbound, and so restarted twice: the one of the pair that is sent on,
    /// or one other than the bound queue, which cannot be restarted.
    QueueRestart,
    /// The driver is unloaded.
    Unload,
    /// The host unplugs the NIC, and the guest releases it first.
    Removal,
    /// The NIC is pulled out of its slot, and the guest notices later.
    SurpriseRemoval,
}

/// The result of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// It was done, and the NIC is there.
    Done,
    /// It was refused with this errno.
    Refused(i32),
    /// There is no interface any more, since the driver is gone.
    DriverGone,
    /// There is no NIC any more.
    NicGone,
    /// There is no owner any more.
    OwnerGone,
}

impl Event {
    pub(crate) const ALL: [Self; 14] = [
        Self::CloseBinding,
        Self::KillOwner,
        Self::CloseDmaBuf,
        Self::LinkDown,
        Self::InterfaceDown,
        Self::SplitOff,
        Self::ChannelsFewer,
        Self::ChannelsFewest,
        Self::RingSizes,
        Self::Mtu,
        Self::QueueRestart,
        Self::Unload,
        Self::Removal,
        Self::SurpriseRemoval,
    ];

    /// Makes it happen.
    pub(crate) fn happen(self, bed: &Testbed, scene: &mut Scene<'_>) -> Result<Happened> {
        let station = bed.local;
        match self {
            Self::CloseBinding => scene.tell_owner(Command::CloseBinding)?,
            Self::CloseDmaBuf => scene.tell_owner(Command::CloseDmaBuf)?,
            Self::KillOwner => {
                scene.tell_owner(Command::Kill)?;
                return Ok(Happened::OwnerGone);
            }
            Self::LinkDown => {
                bed.set_link(station, false)?;
                bed.wait_carrier_of(station, false)?;
                bed.set_link(station, true)?;
                bed.wait_carrier_of(station, true)?;
            }
            Self::InterfaceDown => bed.down_and_up(station)?,
            Self::SplitOff => {
                return done_or_refused(bed.set_header_split(station, TcpDataSplit::Off));
            }
            Self::ChannelsFewer => return done_or_refused(bed.set_channels(station, PAIRS - 1)),
            Self::ChannelsFewest => return done_or_refused(bed.set_channels(station, QUEUE)),
            Self::RingSizes => return done_or_refused(bed.set_rings(station, 256, 128)),
            Self::Mtu => {
                for mtu in [1500, 4000] {
                    bed.set_mtu(bed.peer, mtu)?;
                    bed.set_mtu(station, mtu)?;
                }
            }
            Self::QueueRestart => {
                let queue = match scene.state() {
                    State::Sending => QUEUE,
                    _ => QUEUE + 1,
                };
                bed.bind(station, queue, Memory::Udmabuf, 4 * MIB)?.stop()?;
            }
            Self::Unload => {
                bed.allow_faults(&[KernelFault::MappingOutlivesDriver])?;
                let device = bed.pci_device(station)?;
                bed.guest.call(UnloadModule::new(bed.driver()))?;
                bed.check_mappings(&device)?;
                return Ok(Happened::DriverGone);
            }
            Self::Removal => {
                bed.allow_faults(&[
                    KernelFault::MappingOutlivesDriver,
                    KernelFault::PciehpLockOrder,
                ])?;
                bed.unplug(station)?;
                // The guest waits five seconds, in which a user may cancel. After that, it is
                // already powering the slot off.
                match done_or_refused(bed.write_file("/sys/bus/pci/slots/1/power", "0"))? {
                    // With ENODEV the slot is being powered off, or is off.
                    Happened::Refused(errno) if errno != ENODEV => {
                        return Ok(Happened::Refused(errno));
                    }
                    _ => {}
                }
                bed.wait_unplugged(station)?;
                return Ok(Happened::NicGone);
            }
            Self::SurpriseRemoval => {
                bed.allow_faults(&[
                    KernelFault::MappingOutlivesDriver,
                    KernelFault::PciehpLockOrder,
                ])?;
                let gone = bed.pull_out()?;
                bed.notice(gone)?;
                return Ok(Happened::NicGone);
            }
        }
        Ok(Happened::Done)
    }

    /// Restores what the event removed, whether or not it was refused.
    pub(crate) fn undo(self, bed: &Testbed) -> Result {
        match self {
            Self::SplitOff => bed.set_header_split(bed.local, TcpDataSplit::On)?,
            Self::ChannelsFewer | Self::ChannelsFewest => {
                done_or_refused(bed.set_channels(bed.local, PAIRS))?;
            }
            Self::RingSizes => {
                done_or_refused(bed.set_rings(bed.local, 1024, 512))?;
            }
            Self::Mtu => {
                bed.set_mtu(bed.local, 9000)?;
                bed.set_mtu(bed.peer, 9000)?;
            }
            Self::Unload => {
                bed.load_driver()?;
                bed.set_up()?;
                bed.set_header_split(bed.local, TcpDataSplit::On)?;
            }
            Self::Removal | Self::SurpriseRemoval => {
                bed.plug(bed.local)?;
                bed.take_in(bed.local)?;
                bed.set_up_station(bed.local)?;
                bed.wait_carrier(true)?;
                bed.set_header_split(bed.local, TcpDataSplit::On)?;
            }
            Self::CloseBinding
            | Self::KillOwner
            | Self::CloseDmaBuf
            | Self::LinkDown
            | Self::InterfaceDown
            | Self::QueueRestart => {}
        }
        Ok(())
    }
}

/// What came of a request that may be refused.
fn done_or_refused(result: Result) -> Result<Happened> {
    match result {
        Ok(()) => Ok(Happened::Done),
        Err(error) => match error.errno() {
            Some(errno) => Ok(Happened::Refused(errno)),
            None => Err(error),
        },
    }
}

/// Its part of a test's name.
impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CloseBinding => "close_binding",
            Self::KillOwner => "kill_owner",
            Self::CloseDmaBuf => "close_dma_buf",
            Self::LinkDown => "link_down",
            Self::InterfaceDown => "interface_down",
            Self::SplitOff => "split_off",
            Self::ChannelsFewer => "channels_fewer",
            Self::ChannelsFewest => "channels_fewest",
            Self::RingSizes => "ring_sizes",
            Self::Mtu => "mtu",
            Self::QueueRestart => "queue_restart",
            Self::Unload => "unload",
            Self::Removal => "removal",
            Self::SurpriseRemoval => "surprise_removal",
        })
    }
}
