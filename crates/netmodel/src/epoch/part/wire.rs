//! Wire format of messages between regions in different processes of the operating system.
//!
//! The first byte is the kind; each message is padded with zeros to a fixed size.

use pdes_core::{SimTime, Wire};

use super::{Booking, EpochMail, Letter};
use crate::HostId;
use crate::epoch::message::{Departure, FlowKey, Message};
use crate::region::RegionId;

const BOOKING: u8 = 0;
const ANNOUNCEMENT: u8 = 1;
const OFFER: u8 = 2;
const ADVERT: u8 = 3;
const REMINDER: u8 = 4;

impl<T: Copy + Wire> Wire for EpochMail<T> {
    /// Size of a request, the longest kind.
    const SIZE: usize = u8::SIZE + SimTime::SIZE + 2 * u64::SIZE + 3 * u32::SIZE + T::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        match self.0 {
            Letter::Booking(Booking { at, place, from, src, dst, size, tag }) => {
                (BOOKING, at, place).write(bytes);
                (from, src.get(), dst.get()).write(bytes);
                (size, tag).write(bytes);
            }
            Letter::Message(Message::Announcement { flow, departure }) => {
                let Departure { src, dst, size, tag } = departure;
                ANNOUNCEMENT.write(bytes);
                flow.write(bytes);
                (src.get(), dst.get()).write(bytes);
                (size, tag).write(bytes);
            }
            Letter::Message(Message::Offer { flow, rate }) => {
                OFFER.write(bytes);
                flow.write(bytes);
                rate.write(bytes);
            }
            Letter::Message(Message::Advert { flow, from, level }) => {
                ADVERT.write(bytes);
                flow.write(bytes);
                (from.get(), level).write(bytes);
            }
            Letter::Reminder => REMINDER.write(bytes),
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
            BOOKING => {
                let (at, place, from) = Wire::read(bytes)?;
                let (src, dst) = hosts(bytes)?;
                let (size, tag) = Wire::read(bytes)?;
                Letter::Booking(Booking { at, place, from, src, dst, size, tag })
            }
            ANNOUNCEMENT => {
                let flow = FlowKey::read(bytes)?;
                let (src, dst) = hosts(bytes)?;
                let (size, tag) = Wire::read(bytes)?;
                let departure = Departure { src, dst, size, tag };
                Letter::Message(Message::Announcement { flow, departure })
            }
            OFFER => Letter::Message(Message::Offer { flow: Wire::read(bytes)?, rate: Wire::read(bytes)? }),
            ADVERT => Letter::Message(Message::Advert {
                flow: Wire::read(bytes)?,
                from: RegionId::new(Wire::read(bytes)?),
                level: Wire::read(bytes)?,
            }),
            REMINDER => Letter::Reminder,
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
        let letters = [
            Letter::Booking(Booking { at, place: u64::MAX, from, src, dst, size, tag }),
            Letter::Message(Message::Announcement { flow, departure: Departure { src, dst, size, tag } }),
            Letter::Message(Message::Offer { flow, rate: u64::MAX }),
            Letter::Message(Message::Advert { flow, from: RegionId::new(5), level: 6 }),
            Letter::Reminder,
        ];
        for letter in letters {
            let mut bytes = Vec::new();
            EpochMail(letter).write(&mut bytes);
            assert_eq!(bytes.len(), EpochMail::<u64>::SIZE);
            assert!(EpochMail::<u64>::read(&mut &bytes[1..]).is_none(), "too short");
            let mut rest = bytes.as_slice();
            let found = EpochMail::<u64>::read(&mut rest).map(|mail| mail.0);
            assert_eq!(format!("{found:?}"), format!("{:?}", Some(letter)));
            assert!(rest.is_empty());
            bytes[0] = 5;
            assert!(EpochMail::<u64>::read(&mut bytes.as_slice()).is_none(), "no such kind");
        }
    }
}
