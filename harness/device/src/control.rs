// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whoever started the program has devices lie, asks what they told and counted, and pulls their cables: a line of
//! JSON for each request, and a line of JSON for each answer.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread::{self, JoinHandle},
};

use model::nic::{Accesses, Plan};
use serde::{Deserialize, Serialize};

use crate::Port;

/// What is done to a device.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Which, counted from 0.
    pub device: usize,
    /// What.
    #[serde(flatten)]
    pub order: Order,
}

/// What can be done to a device.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// It lies about this from now on; a plan without lies ends them, and with none it goes on as it was.
    Plan(Option<Plan>),
    /// Its cable is plugged in, or out.
    Cable(bool),
    /// It says how often its registers were accessed since it was last asked.
    Accesses(()),
}

/// What becomes of a [`Request`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done. How often each lie was told so far, of the plan that it went by until now.
    Told(Vec<u32>),
    /// It has its cable in, or out.
    Cable(bool),
    /// How often its registers were accessed.
    Accesses(Accesses),
    /// It makes no sense.
    Error(String),
}

/// Answers requests, in a thread, until the other end is closed.
///
/// # Errors
///
/// When there is no thread.
pub fn serve(socket: UnixStream, ports: Vec<Arc<Port>>) -> io::Result<JoinHandle<()>> {
    let mut output = socket.try_clone()?;
    let builder = thread::Builder::new().name("control".to_owned());
    builder.spawn(move || {
        for line in BufReader::new(socket).lines().map_while(Result::ok) {
            let answer = answer(&line, &ports).unwrap_or_else(Answer::Error);
            // It always can be JSON, and who is gone needs none.
            let text = serde_json::to_string(&answer).unwrap_or_default();
            if writeln!(output, "{text}").is_err() {
                return;
            }
        }
    })
}

fn answer(line: &str, ports: &[Arc<Port>]) -> Result<Answer, String> {
    let Request { device, order } =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let port = ports.get(device);
    let port = port.ok_or_else(|| format!("there is no device {device}"))?;
    Ok(match order {
        Order::Plan(None) => Answer::Told(port.told()),
        Order::Plan(Some(plan)) => Answer::Told(port.lie(&plan)),
        Order::Cable(cable) => {
            port.set_cable(cable);
            Answer::Cable(cable)
        }
        Order::Accesses(()) => Answer::Accesses(port.accesses()),
    })
}

#[cfg(test)]
mod tests {
    use model::nic::{Kind, Lie, Nic};

    use super::*;

    #[test]
    fn plans_are_taken_and_nonsense_is_refused() {
        let port = Port::new(Box::new(Nic::new([2; 6]))).unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        serve(there, vec![port]).unwrap();
        let mut answers = BufReader::new(here.try_clone().unwrap()).lines();
        let mut ask = |text: &str| {
            writeln!(&here, "{text}").unwrap();
            let answer = answers.next().unwrap().unwrap();
            serde_json::from_str::<Answer>(&answer).unwrap()
        };
        let lie = Lie {
            after: 1,
            times: 2,
            ..Lie::once(Kind::HeaderLength, 3)
        };
        let order = Order::Plan(Some(Plan { lies: vec![lie] }));
        let request = serde_json::to_string(&Request { device: 0, order }).unwrap();
        assert!(request.contains("\"header-length\""), "{request}");
        assert_eq!(ask(&request), Answer::Told(vec![]));
        assert_eq!(ask("{\"device\":0,\"plan\":null}"), Answer::Told(vec![0]));
        assert_eq!(ask(&request), Answer::Told(vec![0]));
        let pulled = ask("{\"device\":0,\"cable\":false}");
        assert_eq!(pulled, Answer::Cable(false));
        let accesses = ask("{\"device\":0,\"accesses\":null}");
        assert_eq!(accesses, Answer::Accesses(Accesses::default()));
        let refused = ask("{\"device\":1,\"plan\":{\"lies\":[]}}");
        assert_eq!(refused, Answer::Error("there is no device 1".to_owned()));
        assert!(matches!(ask("nonsense"), Answer::Error(_)));
    }
}
