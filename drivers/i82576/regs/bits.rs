// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Bits of the device-wide control and status registers.

/// Device control.
pub mod ctrl {
    /// Full duplex.
    pub const FD: u32 = 1 << 0;
    /// No new requests on the bus; wait for STATUS to confirm before a reset.
    pub const GIO_MASTER_DISABLE: u32 = 1 << 2;
    /// Set link up. Without it the link does not come up.
    pub const SLU: u32 = 1 << 6;
    /// Invert the loss-of-signal input.
    pub const ILOS: u32 = 1 << 7;
    /// Mask of the forced speed.
    pub const SPEED_MASK: u32 = 3 << 8;
    /// Forced speed: 100 Mb/s.
    pub const SPEED_100: u32 = 1 << 8;
    /// Forced speed: 1000 Mb/s.
    pub const SPEED_1000: u32 = 2 << 8;
    /// Force the speed instead of taking it from the PHY.
    pub const FRCSPD: u32 = 1 << 11;
    /// Force the duplex mode instead of taking it from the PHY.
    pub const FRCDPLX: u32 = 1 << 12;
    /// Advertise wake up from D3.
    pub const ADVD3WUC: u32 = 1 << 20;
    /// Reset the device, all but PHY and configuration space; clears itself.
    pub const RST: u32 = 1 << 26;
    /// Obey flow control frames received.
    pub const RFCE: u32 = 1 << 27;
    /// Send flow control frames.
    pub const TFCE: u32 = 1 << 28;
    /// Strip VLAN tags on receive, insert them on transmit when a descriptor asks.
    pub const VME: u32 = 1 << 30;
    /// Hold the PHY in reset.
    pub const PHY_RST: u32 = 1 << 31;
    /// Mask of what the NVM says of the board, in a reset: polarity of the loss-of-signal input, the
    /// software-definable pins, and wake up from D3.
    pub const BOARD_MASK: u32 = ILOS | 0xff << 16;
}

/// Device status.
pub mod status {
    /// Full duplex.
    pub const FD: u32 = 1 << 0;
    /// Link is up.
    pub const LU: u32 = 1 << 1;
    /// Shift of the two bits with the number of the port.
    pub const LAN_ID_SHIFT: u32 = 2;
    /// Transmission is paused by flow control.
    pub const TXOFF: u32 = 1 << 4;
    /// Mask of the link speed; see [`speed`].
    pub const SPEED_MASK: u32 = 3 << 6;
    /// Link speed: 100 Mb/s.
    pub const SPEED_100: u32 = 1 << 6;
    /// Link speed: 1000 Mb/s.
    pub const SPEED_1000: u32 = 2 << 6;
    /// The PHY asserted its reset; write 0 to clear.
    pub const PHYRA: u32 = 1 << 10;
    /// The device may still have requests on the bus.
    pub const GIO_MASTER_ENABLE: u32 = 1 << 19;
    /// The reset of the physical function is done; it is cleared by the next reset.
    pub const PF_RST_DONE: u32 = 1 << 21;

    /// The port number in a value of the register.
    #[inline]
    pub const fn port(value: u32) -> u32 {
        value >> LAN_ID_SHIFT & 3
    }

    /// The link speed in Mb/s in a value of the register; valid while [`LU`] is set.
    #[inline]
    pub const fn speed(value: u32) -> u32 {
        match value & SPEED_MASK {
            0 => 10,
            SPEED_100 => 100,
            _ => 1000,
        }
    }
}

/// Flow control.
pub mod fc {
    use crate::limits::RX_PACKET_BUFFER;

    /// FCAL and FCAH: the address that pause frames are sent to, 01:80:c2:00:00:01.
    pub const ADDRESS_LOW: u32 = 0x00c2_8001;
    /// See [`ADDRESS_LOW`].
    pub const ADDRESS_HIGH: u32 = 0x0000_0100;
    /// FCT: the EtherType of MAC control frames.
    pub const ETHERTYPE: u32 = 0x8808;
    /// FCTTV: for how long the other side must pause, in units of 512 bits; the longest.
    pub const PAUSE_TIME: u32 = 0xffff;
    /// FCRTL: end the pause when the packet buffer is below the threshold.
    pub const XONE: u32 = 1 << 31;

    /// FCRTL and FCRTH, in bytes: pause before two frames of `max_frame` bytes, the one on its way
    /// and the one that the other side sends meanwhile, would not fit in the packet buffer, and go
    /// on as soon as they do. Both are multiples of 16.
    #[inline]
    pub const fn thresholds(max_frame: u32) -> (u32, u32) {
        let high = (RX_PACKET_BUFFER - 2 * max_frame) & !0xf;
        ((high - 16) | XONE, high)
    }
}

/// Modes of the port's four LEDs, a byte each.
pub mod ledctl {
    /// Mode: on.
    pub const ON: u32 = 0xe;
    /// Mode: off.
    pub const OFF: u32 = 0xf;

    /// All LEDs on or off, none blinking.
    #[inline]
    pub const fn all(on: bool) -> u32 {
        (if on { ON } else { OFF }) * 0x0101_0101
    }
}

/// Extended device control.
pub mod ctrl_ext {
    /// Physical function reset done: virtual functions may continue.
    pub const PFRSTD: u32 = 1 << 14;
    /// Mask of the link mode; zero is the internal copper PHY.
    pub const LINK_MODE_MASK: u32 = 3 << 22;
    /// Extended interrupt auto mask enable, for MSI and legacy interrupts.
    pub const EIAME: u32 = 1 << 24;
    /// Frames carry an outer VLAN tag too.
    pub const EXTENDED_VLAN: u32 = 1 << 26;
    /// Interrupt acknowledge auto mask enable.
    pub const IAME: u32 = 1 << 27;
    /// A driver is loaded; tells the firmware to leave the device alone.
    pub const DRV_LOAD: u32 = 1 << 28;
    /// Clear pending bits when MSI-X is not used.
    pub const PBA_CLR: u32 = 1 << 31;
}

/// Receive control.
pub mod rctl {
    /// Receiver enabled.
    pub const EN: u32 = 1 << 1;
    /// Store bad packets.
    pub const SBP: u32 = 1 << 2;
    /// Accept all unicast packets.
    pub const UPE: u32 = 1 << 3;
    /// Accept all multicast packets.
    pub const MPE: u32 = 1 << 4;
    /// Accept packets longer than 1522 bytes, up to RLPML.
    pub const LPE: u32 = 1 << 5;
    /// Mask of the loopback mode.
    pub const LBM_MASK: u32 = 3 << 6;
    /// Loopback in the MAC.
    pub const LBM_MAC: u32 = 1 << 6;
    /// Mask of the multicast offset: which 12 bits of an address index MTA. Zero is 47:36.
    pub const MO_MASK: u32 = 3 << 12;
    /// Accept broadcast packets.
    pub const BAM: u32 = 1 << 15;
    /// Filter VLANs by VFTA.
    pub const VFE: u32 = 1 << 18;
    /// Discard pause frames.
    pub const DPF: u32 = 1 << 22;
    /// Pass MAC control frames.
    pub const PMCF: u32 = 1 << 23;
    /// Strip the Ethernet CRC. Without it four bytes of FCS end every packet in memory.
    pub const SECRC: u32 = 1 << 26;
}

/// Transmit control.
pub mod tctl {
    /// Transmitter enabled.
    pub const EN: u32 = 1 << 1;
    /// Pad short packets to 64 bytes.
    pub const PSP: u32 = 1 << 3;
    /// Shift of the collision threshold.
    pub const CT_SHIFT: u32 = 4;
    /// The collision threshold the datasheet recommends.
    pub const CT_DEFAULT: u32 = 15 << CT_SHIFT;
    /// Back-off slot time in bytes, for half duplex: what it is after a reset (BST in the 82575's manual,
    /// 14.3.64), and what `igb` writes (`igb_config_collision_dist()`).
    pub const BST_DEFAULT: u32 = 63 << 12;
    /// Retransmit on late collision.
    pub const RTLC: u32 = 1 << 24;
    /// All that is set while the transmitter is enabled, but EN.
    pub const DEFAULT: u32 = PSP | CT_DEFAULT | BST_DEFAULT | RTLC;
}

/// Transmit inter-packet gap.
pub mod tipg {
    /// Value for copper at all speeds: IPGT 8, IPGR1 8, IPGR2 6.
    pub const DEFAULT: u32 = 8 | 8 << 10 | 6 << 20;
}

/// Receive checksum control.
pub mod rxcsum {
    /// Check IPv4 header checksums.
    pub const IPOFL: u32 = 1 << 8;
    /// Check TCP and UDP checksums.
    pub const TUOFL: u32 = 1 << 9;
    /// Check the CRC of SCTP.
    pub const CRCOFL: u32 = 1 << 11;
    /// Put the checksum of IP payloads in the descriptor, for fragments of UDP.
    pub const IPPCSE: u32 = 1 << 12;
    /// Put the RSS hash in the descriptor in place of the packet checksum.
    pub const PCSD: u32 = 1 << 13;
}

/// Receive filter control.
pub mod rfctl {
    /// Do not treat NFS writes as a packet type of their own.
    pub const NFSW_DIS: u32 = 1 << 6;
    /// Do not treat NFS reads as a packet type of their own.
    pub const NFSR_DIS: u32 = 1 << 7;
    /// Do not parse IPv6.
    pub const IPV6_DIS: u32 = 1 << 10;
    /// Do not check TCP and UDP over IPv6.
    pub const IPV6_XSUM_DIS: u32 = 1 << 11;
    /// Do not split fragments of IP packets.
    pub const IPFRSP_DIS: u32 = 1 << 14;
    /// Do not parse IPv6 extension headers. An erratum asks for it; RSS over IPv6 with
    /// extension headers is not computed then.
    pub const IPV6_EX_DIS: u32 = 1 << 16;
    /// Forward packets with a length error.
    pub const LEF: u32 = 1 << 18;
}

/// Multiple receive queues command: RSS.
pub mod mrqc {
    /// RSS over all queues, without virtual functions.
    pub const ENABLE_RSS: u32 = 2;
    /// Hash TCP over IPv4 with ports.
    pub const RSS_FIELD_IPV4_TCP: u32 = 1 << 16;
    /// Hash IPv4 addresses.
    pub const RSS_FIELD_IPV4: u32 = 1 << 17;
    /// Hash TCP over IPv6 with ports, addresses from extension headers if there are any. QEMU's
    /// model hashes TCP over IPv6 by this bit alone; silicon wants [`RSS_FIELD_IPV6_TCP`] for
    /// plain IPv6, so set both.
    pub const RSS_FIELD_IPV6_TCP_EX: u32 = 1 << 18;
    /// Hash IPv6 addresses, from extension headers if there are any.
    pub const RSS_FIELD_IPV6_EX: u32 = 1 << 19;
    /// Hash IPv6 addresses.
    pub const RSS_FIELD_IPV6: u32 = 1 << 20;
    /// Hash TCP over IPv6 with ports.
    pub const RSS_FIELD_IPV6_TCP: u32 = 1 << 21;
    /// Hash UDP over IPv4 with ports.
    pub const RSS_FIELD_IPV4_UDP: u32 = 1 << 22;
    /// Hash UDP over IPv6 with ports.
    pub const RSS_FIELD_IPV6_UDP: u32 = 1 << 23;
    /// Hash UDP over IPv6 with ports, addresses from extension headers if there are any.
    pub const RSS_FIELD_IPV6_UDP_EX: u32 = 1 << 24;
}

/// Receive address, high.
pub mod rah {
    /// The entry is valid.
    pub const AV: u32 = 1 << 31;

    /// The values of [`ral`](crate::regs::ral()) and [`rah`](crate::regs::rah()) that accept
    /// `mac`.
    #[inline]
    pub const fn encode(mac: [u8; 6]) -> (u32, u32) {
        let [a, b, c, d, e, f] = mac;
        (
            u32::from_le_bytes([a, b, c, d]),
            u32::from_le_bytes([e, f, 0, 0]) | AV,
        )
    }

    /// The MAC address in the values of [`ral`](crate::regs::ral()) and
    /// [`rah`](crate::regs::rah()); `None` unless the entry is valid.
    #[inline]
    pub const fn decode(low: u32, high: u32) -> Option<[u8; 6]> {
        if high & AV == 0 {
            return None;
        }
        let [a, b, c, d] = low.to_le_bytes();
        let [e, f, _, _] = high.to_le_bytes();
        Some([a, b, c, d, e, f])
    }
}

/// VM offload of a pool. Without virtual functions pool 0 is the whole device.
pub mod vmolr {
    /// Mask of the longest packet in bytes.
    pub const RLPML_MASK: u32 = 0x3fff;
    /// Accept packets longer than 1522 bytes.
    pub const LPE: u32 = 1 << 16;
    /// RSS in this pool.
    pub const RSSE: u32 = 1 << 17;
    /// Accept untagged packets.
    pub const AUPE: u32 = 1 << 24;
    /// Accept broadcast packets.
    pub const BAM: u32 = 1 << 27;
    /// Accept all multicast packets.
    pub const MPME: u32 = 1 << 28;
    /// Strip VLAN tags.
    pub const STRVLAN: u32 = 1 << 30;
    /// Strip the Ethernet CRC.
    pub const STRCRC: u32 = 1 << 31;
}

/// Software semaphore.
pub mod swsm {
    /// Between the drivers of the ports; reading it as 0 takes it.
    pub const SMBI: u32 = 1 << 0;
    /// Between software and firmware; set it and read it back to take it.
    pub const SWESMBI: u32 = 1 << 1;
}

/// Software-firmware synchronisation: who owns a shared resource. The firmware's bits are the
/// same, shifted left by [`FIRMWARE_SHIFT`](sw_fw_sync::FIRMWARE_SHIFT).
pub mod sw_fw_sync {
    /// The EEPROM.
    pub const EEPROM: u32 = 1 << 0;
    /// The PHY of port 0.
    pub const PHY0: u32 = 1 << 1;
    /// The PHY of port 1.
    pub const PHY1: u32 = 1 << 2;
    /// Shift of the firmware's bits.
    pub const FIRMWARE_SHIFT: u32 = 16;

    /// The PHY of a port.
    #[inline]
    pub const fn phy(port: u32) -> u32 {
        if port == 0 {
            PHY0
        } else {
            PHY1
        }
    }
}
