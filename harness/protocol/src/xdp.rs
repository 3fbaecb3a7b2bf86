// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP programs.

use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

/// What an XDP program does with the frames that it is for. All others pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum XdpAction {
    /// They go up.
    Pass,
    /// They are dropped.
    Drop,
    /// The program fails (`XDP_ABORTED`).
    Abort,
    /// The program returns an unknown action.
    Unknown,
    /// They go back to their sender, with source and destination exchanged.
    Transmit,
    /// They leave through another interface.
    Redirect {
        /// Its namespace.
        ns: Ns,
        /// Its name.
        interface: String,
    },
    /// They go up on another processor.
    RedirectToCpu(u32),
    /// They go to the socket that is bound to a queue of the interface ([`crate::XdpSocket`]).
    RedirectToSocket(u32),
    /// So many bytes are cut off in front of them, and what is left goes up; or they get so many
    /// more, at least 14, which begin with a copy of the Ethernet header, and go up.
    MoveHead(i32),
    /// So many bytes, all zeroes, are added at their end, or cut off, and they go up.
    MoveTail(i32),
}

/// An XDP program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpProgram {
    /// The Ethernet type of the frames that it is for; `None` for all.
    pub ethertype: Option<u16>,
    /// What it does with them.
    pub action: XdpAction,
    /// It says that it can deal with frames in fragments (`BPF_F_XDP_HAS_FRAGS`).
    pub fragments: bool,
}

interface_requests! {
    /// Attaches a program to an interface, in native mode, instead of any that is attached.
    ///
    /// Fails with the kernel's errno.
    AttachXdp {
        /// The program.
        program: XdpProgram,
    },
    /// Takes the program of an interface away, if there is one.
    DetachXdp {},
    /// How many frames the program that was attached last was for, since it was attached. The answer
    /// is the same after it was detached.
    XdpRuns {},
    /// What an interface says that it can do of XDP (`enum netdev_xdp_act`).
    XdpFeatures {},
}
