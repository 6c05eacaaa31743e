//! Wire format of messages between regions in different processes of the operating system.
//!
//! The first byte is the kind; each message is padded with zeros to a fixed size.

use pdes_core::{SimTime, Wire};

use super::{MessageKind, RegionMessage, RemoteFlowRequest};
use crate::HostId;
use crate::epoch::message::{FlowKey, FlowUpdate, MessageSpec};
use crate::region::RegionId;

const REQUEST: u8 = 0;
const ANNOUNCEMENT: u8 = 1;
const OFFER: u8 = 2;
const ADVERT: u8 = 3;
const REMINDER: u8 = 4;

impl<T: Copy + Wire> Wire for RegionMessage<T> {
    /// Size of a request, the longest kind.
    const SIZE: usize = u8::SIZE + SimTime::SIZE + 2 * u64::SIZE + 3 * u32::SIZE + T::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        match self.0 {
            MessageKind::Request(RemoteFlowRequest {
                at,
                order: place,
                submitter: from,
                src,
                dst,
                size,
                tag,
            }) => {
                (REQUEST, at, place).write(bytes);
                (from, src.get(), dst.get()).write(bytes);
                (size, tag).write(bytes);
            }
            MessageKind::Update(FlowUpdate::Announcement { flow, spec: departure }) => {
                let MessageSpec { src, dst, size, tag } = departure;
                ANNOUNCEMENT.write(bytes);
                flow.write(bytes);
                (src.get(), dst.get()).write(bytes);
                (size, tag).write(bytes);
            }
            MessageKind::Update(FlowUpdate::Offer { flow, rate }) => {
                OFFER.write(bytes);
                flow.write(bytes);
                rate.write(bytes);
            }
            MessageKind::Update(FlowUpdate::Advert { flow, from, level }) => {
                ADVERT.write(bytes);
                flow.write(bytes);
                (from.get(), level).write(bytes);
            }
            MessageKind::Reminder => REMINDER.write(bytes),
        }
        bytes.resize(end, 0);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (mut mail, rest) = bytes.split_at_checked(Self::SIZE)?;
        *bytes = rest;
        let bytes = &mut mail;
        let hosts = |bytes: &mut &[u8]| {
            let (src, dst) = Wire::read(bytes)?;
            Some((HostId::new(src), HostId::new(dst)))
        };
        Some(Self(match u8::read(bytes)? {
            REQUEST => {
                let (at, place, from) = Wire::read(bytes)?;
                let (src, dst) = hosts(bytes)?;
                let (size, tag) = Wire::read(bytes)?;
                MessageKind::Request(RemoteFlowRequest {
                    at,
                    order: place,
                    submitter: from,
                    src,
                    dst,
                    size,
                    tag,
                })
            }
            ANNOUNCEMENT => {
                let flow = FlowKey::read(bytes)?;
                let (src, dst) = hosts(bytes)?;
                let (size, tag) = Wire::read(bytes)?;
                let departure = MessageSpec { src, dst, size, tag };
                MessageKind::Update(FlowUpdate::Announcement { flow, spec: departure })
            }
            OFFER => {
                MessageKind::Update(FlowUpdate::Offer { flow: Wire::read(bytes)?, rate: Wire::read(bytes)? })
            }
            ADVERT => MessageKind::Update(FlowUpdate::Advert {
                flow: Wire::read(bytes)?,
                from: RegionId::new(Wire::read(bytes)?),
                level: Wire::read(bytes)?,
            }),
            REMINDER => MessageKind::Reminder,
            _ => return None,
        }))
    }
}

impl Wire for FlowKey {
    const SIZE: usize = SimTime::SIZE + 2 * u32::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.begin, self.src.get(), self.count).write(bytes);
    }

    #[inline]
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (begin, src, count) = Wire::read(bytes)?;
        Some(Self { begin, src: HostId::new(src), count })
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::{Bytes, Rank};

    use super::*;

    #[test]
    fn mail_comes_back() {
        let flow = FlowKey { begin: SimTime::from_picos(u64::MAX - 1), src: HostId::new(2), count: 3 };
        let [src, dst] = [4, u32::MAX].map(HostId::new);
        let (size, tag) = (Bytes::new(1 << 50), u64::MAX - 2);
        let (at, from) = (SimTime::from_picos(8), Rank::new(9));
        let kinds = [
            MessageKind::Request(RemoteFlowRequest {
                at,
                order: u64::MAX,
                submitter: from,
                src,
                dst,
                size,
                tag,
            }),
            MessageKind::Update(FlowUpdate::Announcement { flow, spec: MessageSpec { src, dst, size, tag } }),
            MessageKind::Update(FlowUpdate::Offer { flow, rate: u64::MAX }),
            MessageKind::Update(FlowUpdate::Advert { flow, from: RegionId::new(5), level: 6 }),
            MessageKind::Reminder,
        ];
        for kind in kinds {
            let mut bytes = Vec::new();
            RegionMessage(kind).write(&mut bytes);
            assert_eq!(bytes.len(), RegionMessage::<u64>::SIZE);
            assert!(RegionMessage::<u64>::read(&mut &bytes[1..]).is_none(), "too short");
            let mut rest = bytes.as_slice();
            let found = RegionMessage::<u64>::read(&mut rest).map(|mail| mail.0);
            assert_eq!(format!("{found:?}"), format!("{:?}", Some(kind)));
            assert!(rest.is_empty());
            bytes[0] = 5;
            assert!(RegionMessage::<u64>::read(&mut bytes.as_slice()).is_none(), "no such kind");
        }
    }
}
