// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules that steer packets to queues: offered only where the device has the filters. QEMU's model
//! has none.

use std::collections::BTreeSet;

use cases::{Ability, Result, Testbed, assert_fails_saying, assert_refused};
use libc::EOPNOTSUPP;
use protocol::{
    ethtool::GetFeatures,
    flow_rules::{
        DeleteFlowRule, FlowRule, FlowRules, FlowType, InsertFlowRule, ListFlowRules, RulePlace,
    },
    pci::WriteRegister,
};

/// By its kernel name.
const NTUPLE: &str = "rx-ntuple-filter";

/// The first of eight registers with a filter's protocol, the fields it compares, and its queue.
const FTQF: u32 = 0x59e0;

/// Whether the register keeps what is written to it behind the driver's back. The value steers no
/// packet, and is restored afterwards.
fn has_filters(bed: &Testbed) -> Result<bool> {
    let device = bed.pci_device(bed.local)?;
    let read = || bed.read_register(bed.local, FTQF);
    let write = |value| bed.guest.call(WriteRegister::new(&device, FTQF, value));
    let before = read()?;
    let pattern = before ^ 0x000f_0006;
    write(pattern)?;
    let kept = read()? == pattern;
    write(before)?;
    Ok(kept)
}

/// Whether the feature is in a list.
fn has(features: &BTreeSet<String>) -> bool {
    features.contains(NTUPLE)
}

#[test]
fn rules_are_offered_where_the_device_has_filters_and_nowhere_else() -> Result {
    let bed = Testbed::options().boot("flow-rules")?;
    let has_filters = has_filters(&bed)?;
    assert_eq!(bed.can(Ability::Ntuple)?, has_filters, "the description");
    let features = || bed.guest.call(GetFeatures::on(bed.local));
    let list = || bed.guest.call(ListFlowRules::on(bed.local));
    let insert = || {
        bed.guest.call(InsertFlowRule::on(
            bed.local,
            RulePlace::Any,
            FlowRule {
                destination_port: Some((5201, 0xffff).into()),
                ..FlowRule::all(FlowType::Tcp4, 1)
            },
        ))
    };
    let delete = |place| bed.guest.call(DeleteFlowRule::on(bed.local, place));

    let now = features()?;
    assert_eq!(has(&now.changeable), has_filters);
    assert_eq!(has(&now.active), has_filters);
    if has_filters {
        let place = insert()?;
        let FlowRules { places, rules, .. } = list()?;
        assert_eq!((places, rules.len(), rules[0].0), (8, 1, place));
        delete(place)?;
        assert_eq!(list()?.rules, []);
    } else {
        assert_refused(list(), EOPNOTSUPP, "a list of rules");
        assert_refused(insert(), EOPNOTSUPP, "a new rule");
        assert_refused(delete(0), EOPNOTSUPP, "the end of a rule");

        let refused = bed.set_features(bed.local, &[(NTUPLE, true)]);
        assert_fails_saying(refused, NTUPLE);
    }
    bed.finish()
}
