// SPDX-License-Identifier: MIT OR Apache-2.0

//! Restarts a receive queue again and again.

use anyhow::{Result, ensure};
use protocol::{Restarts, measure::RestartsReport};

use super::{binding::bind, job::Ready, memory::allocate, switch::Switch};
use crate::failure;

pub(super) fn set_up(spec: Restarts) -> Result<Ready> {
    ensure!(
        spec.restarts % 2 == 0,
        "a binding that comes and goes restarts a queue twice"
    );
    let dmabuf = allocate(spec.memory, spec.dmabuf_bytes)?;
    let switch = Switch::new("Restarts");
    Ok(Ready::new::<Restarts, _>(switch, move |switch| {
        let mut report = RestartsReport::default();
        while report.restarts < spec.restarts && !switch.finishing() {
            match bind(spec.ns, &spec.interface, &[spec.queue], &dmabuf, None) {
                Ok(binding) => drop(binding),
                Err(error) => {
                    report.error = Some(failure::from_error(&error));
                    break;
                }
            }
            report.restarts += 2;
        }
        report
    }))
}
