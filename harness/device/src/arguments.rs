// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line. Options are lists of `key=value`, as QEMU's are: two commas are one in a value.

use std::{
    num::NonZeroU64,
    os::fd::{FromRawFd, OwnedFd, RawFd},
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use device::{
    link::{Chance, Link},
    pcap,
    wire::Half,
};

/// Serves NICs and engines of accelerators to QEMU's vfio-user-pci, until its standard input ends.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// A NIC: its Ethernet address, and a socket to be made, or one that listens and is inherited.
    #[arg(
        long = "device",
        value_name = "mac=MAC,{socket=PATH|fd=N}",
        required_unless_present = "engines",
        value_parser = device
    )]
    pub(crate) devices: Vec<DeviceArgument>,

    /// An engine of an accelerator, with a socket as a NIC's.
    #[arg(long = "engine", value_name = "{socket=PATH|fd=N}", value_parser = engine)]
    pub(crate) engines: Vec<Place>,

    /// A wire between two NICs, which are counted from 0. LINK is any of rate (in bits per second),
    /// delay-us, loss-ppm, reorder-ppm, duplicate-ppm and corrupt-ppm (in parts per million of the frames),
    /// and the seed that says which frames.
    #[arg(
        long = "wire",
        value_name = "ends=A-B[,pcap=FILE[,snap=BYTES]][,LINK=N]...",
        value_parser = wire
    )]
    pub(crate) wires: Vec<WireArgument>,

    /// A wire from a device to an inherited datagram socket. If another of these programs has the other end,
    /// give both the same LINK, and each its `end`: frames pass the link where they arrive. Without `end`, as for QEMU's
    /// `-netdev dgram`, both directions pass the link here.
    #[arg(
        long = "cable",
        value_name = "device=A,fd=N[,pcap=FILE[,snap=BYTES]][,end={0|1}][,LINK=N]...",
        value_parser = cable
    )]
    pub(crate) cables: Vec<CableArgument>,

    /// An inherited stream socket from which plans come that devices lie by.
    #[arg(long, value_name = "FD")]
    pub(crate) control: Option<RawFd>,

    /// Say more on standard error, twice for all that QEMU asks for.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceArgument {
    pub(crate) mac: [u8; 6],
    pub(crate) place: Place,
}

/// Where QEMU connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Path(PathBuf),
    Fd(RawFd),
}

impl Place {
    /// How a device that is there is called in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Fd(fd) => format!("descriptor {fd}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WireArgument {
    pub(crate) ends: [usize; 2],
    pub(crate) link: Link,
    pub(crate) captured: Option<Captured>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CableArgument {
    pub(crate) device: usize,
    pub(crate) fd: RawFd,
    pub(crate) link: Link,
    pub(crate) half: Half,
    pub(crate) captured: Option<Captured>,
}

/// A capture of a wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured {
    pub(crate) path: PathBuf,
    pub(crate) snap_length: u32,
}

/// Takes an inherited descriptor over. Each can be taken once, and none that this process has made.
pub(crate) fn take(fd: RawFd) -> Result<OwnedFd> {
    static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let target = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    let target = target.with_context(|| format!("descriptor {fd} is not open"))?;
    if fd <= 2 || taken.contains(&fd) || !target.to_string_lossy().starts_with("socket:") {
        bail!("descriptor {fd} is no socket, or is in use");
    }
    taken.push(fd);
    // SAFETY: It is open, and was inherited for this use. Nothing else in the process owns it: it was not
    // taken before, and what the process itself has opened so far is either no socket or got a number that
    // was free, which an inherited one is not.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn device(text: &str) -> Result<DeviceArgument, String> {
    let mut list = List::parse(text)?;
    let mac = mac(&list.need("mac")?)?;
    let place = list.place()?;
    list.end(DeviceArgument { mac, place })
}

fn engine(text: &str) -> Result<Place, String> {
    let mut list = List::parse(text)?;
    let place = list.place()?;
    list.end(place)
}

fn wire(text: &str) -> Result<WireArgument, String> {
    let mut list = List::parse(text)?;
    let ends = list.need("ends")?;
    let pair = ends.split_once('-');
    let pair = pair.and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
    let ends = pair.ok_or_else(|| format!("`{ends}` are no two devices"))?;
    let (link, captured) = (list.link()?, list.captured()?);
    list.end(WireArgument {
        ends,
        link,
        captured,
    })
}

fn cable(text: &str) -> Result<CableArgument, String> {
    let mut list = List::parse(text)?;
    let device = list.number("device")?.ok_or("`device` is missing")?;
    let fd = list.number("fd")?.ok_or("`fd` is missing")?;
    let half = match list.take("end").as_deref() {
        None => Half::Both,
        Some("0") => Half::First,
        Some("1") => Half::Second,
        Some(end) => return Err(format!("`{end}` is no end: they are 0 and 1")),
    };
    let (link, captured) = (list.link()?, list.captured()?);
    list.end(CableArgument {
        device,
        fd,
        link,
        half,
        captured,
    })
}

fn mac(text: &str) -> Result<[u8; 6], String> {
    // `from_str_radix` takes a sign, too.
    let is_byte = |byte: &str| byte.len() == 2 && byte.chars().all(|c| c.is_ascii_hexdigit());
    let byte = |byte| u8::from_str_radix(byte, 16).ok().filter(|_| is_byte(byte));
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    let mac = bytes.and_then(|bytes| bytes.try_into().ok());
    mac.ok_or_else(|| format!("`{text}` is no Ethernet address"))
}

/// A list of options.
struct List(Vec<(String, String)>);

impl List {
    fn parse(text: &str) -> Result<Self, String> {
        // No argument has a NUL.
        let text = text.replace(",,", "\0");
        let pair = |option: &str| {
            let option = option.replace('\0', ",");
            match option.split_once('=') {
                Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
                None => Err(format!("`{option}` is not `key=value`")),
            }
        };
        Ok(Self(text.split(',').map(pair).collect::<Result<_, _>>()?))
    }

    fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    fn need(&mut self, key: &str) -> Result<String, String> {
        self.take(key).ok_or_else(|| format!("`{key}` is missing"))
    }

    fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let number = |value: String| {
            let number = value.parse();
            number.map_err(|_| format!("`{key}={value}` is no number that it can be"))
        };
        self.take(key).map(number).transpose()
    }

    fn place(&mut self) -> Result<Place, String> {
        match (self.take("socket"), self.number("fd")?) {
            (Some(path), None) => Ok(Place::Path(path.into())),
            (None, Some(fd)) => Ok(Place::Fd(fd)),
            _ => Err("it takes either `socket` or `fd`".to_owned()),
        }
    }

    fn captured(&mut self) -> Result<Option<Captured>, String> {
        let snap_length = self.number("snap")?.unwrap_or(pcap::SNAP_LENGTH);
        Ok(self.take("pcap").map(|path| Captured {
            path: path.into(),
            snap_length,
        }))
    }

    fn link(&mut self) -> Result<Link, String> {
        let delay: Option<u32> = self.number("delay-us")?;
        Ok(Link {
            rate: self.number::<NonZeroU64>("rate")?,
            delay: Duration::from_micros(delay.unwrap_or(0).into()),
            loss: self.chance("loss-ppm")?,
            reorder: self.chance("reorder-ppm")?,
            duplicate: self.chance("duplicate-ppm")?,
            corrupt: self.chance("corrupt-ppm")?,
            seed: self.number("seed")?.unwrap_or(0),
        })
    }

    fn chance(&mut self, key: &str) -> Result<Chance, String> {
        let parts = self.number(key)?.unwrap_or(0);
        Chance::per_million(parts).ok_or_else(|| format!("`{key}={parts}` is more than a million"))
    }

    /// Returns the result, if nothing is left.
    fn end<T>(self, result: T) -> Result<T, String> {
        match self.0.first() {
            None => Ok(result),
            Some((key, _)) => Err(format!("`{key}` is not known, or is there twice")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_an_address_and_a_place() {
        let parsed = device("mac=52:54:00:00:00:0a,socket=/tmp/a,,b").unwrap();
        assert_eq!(parsed.mac, [0x52, 0x54, 0, 0, 0, 10]);
        assert_eq!(parsed.place, Place::Path("/tmp/a,b".into()));
        let parsed = device("fd=7,mac=52:54:00:00:00:0a").unwrap();
        assert_eq!(parsed.place, Place::Fd(7));
        for wrong in [
            "",
            "mac=52:54:00:00:00:0a",
            "mac=52:54:00:00:00,fd=7",
            "mac=52:54:00:00:00:+a,fd=7",
            "mac=52:54:00:00:00:0a,fd=7,socket=x",
            "mac=52:54:00:00:00:0a,fd=x",
            "mac=52:54:00:00:00:0a,fd=7,fd=8",
        ] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_engine_is_a_place_and_needs_no_nic() {
        let parsed = Arguments::try_parse_from(["", "--engine", "fd=7"]).unwrap();
        assert_eq!(parsed.engines, [Place::Fd(7)]);
        assert!(Arguments::try_parse_from([""]).is_err());
        for wrong in ["", "fd=7,socket=x", "fd=7,mac=52:54:00:00:00:0a"] {
            assert!(engine(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wire_has_two_ends_and_perhaps_a_capture() {
        let parsed = wire("ends=0-1").unwrap();
        assert_eq!((parsed.ends, parsed.captured), ([0, 1], None));
        let captured = wire("ends=2-3,pcap=a,snap=96").unwrap().captured.unwrap();
        assert_eq!((captured.path, captured.snap_length), ("a".into(), 96));
        for wrong in ["0-1", "ends=0", "ends=0-x", "ends=0-1,snap=-1"] {
            assert!(wire(wrong).is_err(), "{wrong}");
        }
        let parsed = cable("device=1,fd=9,pcap=b").unwrap();
        assert_eq!((parsed.device, parsed.fd), (1, 9));
        assert!(cable("device=1").is_err());
    }

    #[test]
    fn a_cable_has_a_link_for_both_directions_or_for_what_comes_to_its_end() {
        for (text, half) in [
            ("", Half::Both),
            (",end=0", Half::First),
            (",end=1", Half::Second),
        ] {
            let parsed = cable(&format!("device=1,fd=9,loss-ppm=5,seed=7{text}")).unwrap();
            assert_eq!(
                (parsed.link.loss, parsed.link.seed),
                (Chance::per_million(5).unwrap(), 7)
            );
            assert_eq!(parsed.half, half);
        }
        assert!(cable("device=1,fd=9").unwrap().link.is_plain());
        assert!(cable("device=1,fd=9,end=2").is_err());
    }

    #[test]
    fn a_wire_has_a_link_which_is_plain_unless_something_is_said() {
        assert!(wire("ends=0-1,seed=7").unwrap().link.is_plain());
        let parsed = wire(
            "ends=0-1,rate=1000000000,delay-us=500,loss-ppm=1000,reorder-ppm=2,duplicate-ppm=3,\
             corrupt-ppm=1000000,seed=7",
        );
        let chance = |parts| Chance::per_million(parts).unwrap();
        let link = Link {
            rate: NonZeroU64::new(1_000_000_000),
            delay: Duration::from_micros(500),
            loss: chance(1000),
            reorder: chance(2),
            duplicate: chance(3),
            corrupt: chance(1_000_000),
            seed: 7,
        };
        assert_eq!(parsed.unwrap().link, link);
        for (wrong, says) in [
            ("rate=0", "`rate=0` is no number that it can be"),
            ("delay-us=-1", "`delay-us=-1` is no number that it can be"),
            ("loss-ppm=0.1", "`loss-ppm=0.1` is no number that it can be"),
            (
                "corrupt-ppm=1000001",
                "`corrupt-ppm=1000001` is more than a million",
            ),
            ("seed=x", "`seed=x` is no number that it can be"),
            ("loss=1", "`loss` is not known, or is there twice"),
        ] {
            assert_eq!(wire(&format!("ends=0-1,{wrong}")).unwrap_err(), says);
        }
    }

    #[test]
    fn only_open_sockets_are_taken_over() {
        for fd in [-1, 0, 1, 2, 100_000] {
            assert!(take(fd).is_err(), "{fd}");
        }
    }
}
