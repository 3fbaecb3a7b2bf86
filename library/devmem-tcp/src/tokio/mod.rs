// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving and sending in programs that run on [tokio](https://docs.rs/tokio).
//!
//! [`Receiver`] is a stream that holds no more of the dma-buf than it may: when the application has not
//! recycled enough, it stops reading, the receive window closes, and memory is left for segments in flight.
//! [`Sender`] has no more in flight than it may. Both work on blocking sockets, too, whose flags they leave
//! alone, on an ordinary connection, and side by side on one socket.
//!
//! ```no_run
//! use devmem_tcp::tokio::{Limit, Receiver};
//!
//! # async fn serve(stream: std::net::TcpStream) -> Result<(), devmem_tcp::ReceiveError> {
//! let mut receiver = Receiver::new(stream, Limit::new(8 << 20))?;
//! loop {
//!     let received = receiver.receive().await?;
//!     if received.end_of_stream {
//!         return Ok(());
//!     }
//!     // In whatever task is done with them.
//!     let mut recycler = receiver.recycler();
//!     ::tokio::spawn(async move { recycler.recycle(received.fragments) });
//! }
//! # }
//! ```
//!
//! # Cancellation
//!
//! A future that is dropped before it is ready has lost nothing: [`Receiver::receive`] has received
//! nothing, [`Sender::send`] has sent nothing, and the caller has the completions that [`Sender::flush`] saw. After
//! [`Sender::send_all`] it isn't known how much was sent.

mod edges;
mod held;
mod receiver;
mod sender;
#[cfg(test)]
mod test;

pub use self::held::Limit;
pub use self::receiver::{Receiver, Recycler};
pub use self::sender::Sender;
