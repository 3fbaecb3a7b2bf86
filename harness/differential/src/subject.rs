// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC that does what the other does.

use i82576::regs::{self, EICR, GPIE, MDIC, Reg, STATUS, ctrl, gpie, mdic, phy, status};

use crate::{Error, Result, place};

/// The station's address.
pub const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// Longer than negotiation takes in either model, in nanoseconds.
const NEGOTIATION: u64 = 1_000_000_000;

/// A NIC, its machine's memory and the other end of its wire.
///
/// Addresses are the device's, which are the machine's: there is no IOMMU. Each method fails only where the
/// machine is gone.
#[expect(clippy::missing_errors_doc, reason = "said above, once")]
pub trait Subject {
    /// Whose model it is, for messages.
    fn name(&self) -> &'static str;

    /// Reads a register.
    fn read(&mut self, reg: Reg) -> Result<u32>;

    /// Writes a register.
    fn write(&mut self, reg: Reg, value: u32) -> Result<()>;

    /// Reads memory.
    fn read_memory(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>>;

    /// Writes memory.
    fn write_memory(&mut self, address: u64, bytes: &[u8]) -> Result<()>;

    /// Fills memory from [`place::START`] on, all of [`place::BYTES`].
    fn fill(&mut self, value: u8) -> Result<()>;

    /// Puts a frame on the wire, without its check sequence, and waits until the NIC has looked at it, if it
    /// wants to look at any.
    fn send(&mut self, frame: &[u8]) -> Result<()>;

    /// Takes the frames off the wire that the NIC has sent.
    fn take(&mut self) -> Result<Vec<Vec<u8>>>;

    /// Lets time pass.
    fn elapse(&mut self, nanoseconds: u64) -> Result<()>;
}

/// Resets a NIC and its memory, brings its link up and lets each queue have a vector of its own: those of
/// reception the first ones, those of transmission the next.
///
/// # Errors
///
/// [`Error::NoLink`], and when the machine is gone.
pub fn start(subject: &mut dyn Subject) -> Result<()> {
    subject.write(regs::CTRL, ctrl::RST)?;
    subject.fill(place::FILL)?;
    subject.write(regs::CTRL, ctrl::SLU)?;
    subject.write(MDIC, mdic::write(phy::CONTROL, phy::CR_AUTONEG))?;
    subject.elapse(NEGOTIATION)?;
    if subject.read(STATUS)? & status::LU == 0 {
        return Err(Error::NoLink);
    }
    subject.write(GPIE, gpie::MSIX_MODE)?;
    for queue in 0..place::QUEUES {
        for ((reg, shift), vector) in [
            (regs::ivar_rx(queue), queue),
            (regs::ivar_tx(queue), place::QUEUES + queue),
        ] {
            // CAST: There are eight vectors.
            let entry = regs::ivar_entry(vector as u8);
            let value = subject.read(reg)?;
            subject.write(reg, regs::ivar_replace(value, shift, entry))?;
        }
    }
    // Causes are kept until they are read.
    subject.write(regs::EIAC, 0)?;
    subject.write(regs::EIMS, 0xff)?;
    subject.read(EICR).map(drop)
}
