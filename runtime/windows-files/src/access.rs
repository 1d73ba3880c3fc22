//! Security descriptors as bytes: the one that gives access to the user, the system and the administrators alone, and the
//! judgement of one that was read from a file.
//!
//! The layout follows the self-relative descriptors in [MS-DTYP] 2.4.2 to 2.4.6. A descriptor with another layout is
//! refused.

use std::fmt;

/// A descriptor in one block, with offsets in place of pointers.
const SELF_RELATIVE: u16 = 0x8000;
/// The descriptor has an access list.
const LIST_PRESENT: u16 = 0x0004;
/// The access list takes no entries of the folder above.
const LIST_PROTECTED: u16 = 0x1000;
/// Length of the fixed part of a descriptor, and its field positions.
const HEADER_LEN: usize = 20;
const OWNER_AT: usize = 4;
const LIST_AT: usize = 16;
/// Length of the fixed parts in an access list and an entry.
const LIST_HEADER_LEN: usize = 8;
const ENTRY_HEADER_LEN: usize = 8;
/// Revision of an access list for files.
const LIST_REVISION: u8 = 2;

/// Kinds of entries. All others are refused: they may give access under conditions.
const ALLOWED: u8 = 0;
const DENIED: u8 = 1;
const ALLOWED_WITH_CONDITION: u8 = 9;
const DENIED_WITH_CONDITION: u8 = 10;
/// The entry is passed on to new files and folders below a folder.
const PASSED_ON: u8 = 0x01 | 0x02;
/// The entry has no meaning for the folder itself.
const ONLY_PASSED_ON: u8 = 0x08;

/// Every right to a file.
const FULL_ACCESS: u32 = 0x001f_01ff;
/// Rights that reveal the content: reading, executing, and the general forms for both and for all.
const READING: u32 = 0x0000_0001 | 0x0000_0020 | 0x8000_0000 | 0x2000_0000 | 0x1000_0000;
/// Rights that change a file, its attributes, its name, its owner or its access list.
const WRITING: u32 = 0x0000_0002
    | 0x0000_0004
    | 0x0000_0010
    | 0x0000_0040
    | 0x0000_0100
    | 0x0001_0000
    | 0x0004_0000
    | 0x0008_0000
    | 0x4000_0000
    | 0x1000_0000;

/// Maximum number of parts per identifier after its authority.
const MAX_PARTS: usize = 15;
/// `S-1-5-18`: the system itself.
const SYSTEM: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
/// `S-1-5-32-544`: the administrators of the machine, who can take any access.
const ADMINISTRATORS: [u8; 16] = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
/// `S-1-3-4`: whoever owns the file. The owner is judged by itself.
const OWNER_RIGHTS: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0];

/// Access of other users that a file or folder may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherAccess {
    /// Neither reading nor writing.
    None,
    /// Reading.
    Read,
}

impl OtherAccess {
    fn refused(self) -> (u32, &'static str) {
        match self {
            Self::None => (READING | WRITING, "read or write"),
            Self::Read => (WRITING, "write"),
        }
    }
}

/// Identifier of a user or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sid(Vec<u8>);

impl Sid {
    /// Reads the identifier at the start of `bytes`; `None` if there is none.
    #[must_use]
    pub fn at_start_of(bytes: &[u8]) -> Option<Self> {
        let [1, parts, ..] = *bytes else { return None };
        let len = 8 + 4 * usize::from(parts);
        (usize::from(parts) <= MAX_PARTS).then_some(())?;
        bytes.get(..len).map(|bytes| Self(bytes.to_vec()))
    }

    /// Returns `true` for the user, the system and the administrators.
    fn is_trusted(&self, user: &Self) -> bool {
        self == user || self.0 == SYSTEM || self.0 == ADMINISTRATORS
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.0[2..8].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        write!(f, "S-1-{authority}")?;
        self.0[8..].chunks_exact(4).try_for_each(|part| write!(f, "-{}", number(part, 0).unwrap_or_default()))
    }
}

/// Reason why a file or folder is not private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedReason {
    /// Its descriptor cannot be read.
    Unreadable,
    /// It belongs to someone else.
    Owner(Sid),
    /// It has no access list, so that everyone has all access.
    NoList,
    /// Someone else has access; the second field says which.
    Access(Sid, &'static str),
    /// Its access list has an entry of an unknown kind.
    UnknownEntry(u8),
}

impl fmt::Display for SharedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("its access list cannot be read"),
            Self::Owner(owner) => write!(f, "it belongs to someone else ({owner})"),
            Self::NoList => f.write_str("it has no access list, so everyone may read and write it"),
            Self::Access(who, what) => write!(f, "other users ({who}) may {what} it"),
            Self::UnknownEntry(kind) => write!(f, "its access list has an entry of the unknown kind {kind}"),
        }
    }
}

/// Returns the descriptor of a new file or folder: it belongs to `owner`, who alone has access besides the system and the
/// administrators. In a folder the same holds for everything that is created in it.
#[must_use]
pub fn private_descriptor(owner: &Sid, is_folder: bool) -> Vec<u8> {
    let entries: Vec<u8> =
        [&owner.0[..], &SYSTEM, &ADMINISTRATORS].into_iter().flat_map(|sid| entry(sid, is_folder)).collect();
    let list_at = HEADER_LEN + owner.0.len();
    let mut bytes = vec![1, 0];
    bytes.extend((SELF_RELATIVE | LIST_PRESENT | LIST_PROTECTED).to_le_bytes());
    for offset in [HEADER_LEN, 0, 0, list_at] {
        bytes.extend(u32::try_from(offset).unwrap_or_default().to_le_bytes());
    }
    bytes.extend(&owner.0);
    bytes.extend([LIST_REVISION, 0]);
    bytes.extend(short(LIST_HEADER_LEN + entries.len()));
    bytes.extend([3, 0, 0, 0]);
    bytes.extend(entries);
    bytes
}

fn entry(sid: &[u8], is_folder: bool) -> Vec<u8> {
    let mut bytes = vec![ALLOWED, if is_folder { PASSED_ON } else { 0 }];
    bytes.extend(short(ENTRY_HEADER_LEN + sid.len()));
    bytes.extend(FULL_ACCESS.to_le_bytes());
    bytes.extend(sid);
    bytes
}

fn short(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap_or_default().to_le_bytes()
}

/// Checks the owner and the access list of a file or folder.
///
/// Entries that deny access are not counted: a file that relies on them is refused.
///
/// # Errors
///
/// The descriptor is malformed, the owner is neither `user`, the system nor the administrators, or someone else has more
/// access than `others` allows.
pub fn judge(descriptor: &[u8], user: &Sid, others: OtherAccess) -> Result<(), SharedReason> {
    use SharedReason::{Access, NoList, Owner, UnknownEntry, Unreadable};
    let control = descriptor.get(2..4).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])).ok_or(Unreadable)?;
    let at = |field| number(descriptor, field).and_then(|offset| usize::try_from(offset).ok()).ok_or(Unreadable);
    if control & SELF_RELATIVE == 0 {
        return Err(Unreadable);
    }
    let owner = match at(OWNER_AT)? {
        0 => return Err(Unreadable),
        offset => descriptor.get(offset..).and_then(Sid::at_start_of).ok_or(Unreadable)?,
    };
    if !owner.is_trusted(user) {
        return Err(Owner(owner));
    }
    let list = match at(LIST_AT)? {
        offset if control & LIST_PRESENT == 0 || offset == 0 => return Err(NoList),
        offset => descriptor.get(offset..).ok_or(Unreadable)?,
    };
    let (refused, what) = others.refused();
    for entry in entries(list).ok_or(Unreadable)? {
        let (kind, flags) = (entry[0], entry[1]);
        match kind {
            _ if flags & ONLY_PASSED_ON != 0 => continue,
            DENIED | DENIED_WITH_CONDITION => continue,
            ALLOWED | ALLOWED_WITH_CONDITION => {}
            other => return Err(UnknownEntry(other)),
        }
        let mask = number(entry, 4).ok_or(Unreadable)?;
        let who = entry.get(ENTRY_HEADER_LEN..).and_then(Sid::at_start_of).ok_or(Unreadable)?;
        let is_harmless = mask & refused == 0 || who.is_trusted(user) || who.0 == OWNER_RIGHTS;
        if !is_harmless {
            return Err(Access(who, what));
        }
    }
    Ok(())
}

/// Splits an access list into its entries; `None` if a length in it is wrong.
fn entries(list: &[u8]) -> Option<Vec<&[u8]>> {
    let half = |bytes: &[u8], at: usize| Some(usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
    let list = list.get(..half(list, 2)?)?;
    let count = half(list, 4)?;
    let mut rest = list.get(LIST_HEADER_LEN..)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let len = half(rest, 2).filter(|len| *len >= ENTRY_HEADER_LEN)?;
        let (entry, after) = rest.split_at_checked(len)?;
        found.push(entry);
        rest = after;
    }
    Some(found)
}

/// Reads a number of four bytes.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A descriptor of `owner`, with these rights for everyone.
    #[cfg_attr(not(windows), allow(dead_code, reason = "no file has a descriptor there"))]
    pub(crate) fn shared_descriptor(owner: &Sid, mask: u32) -> Vec<u8> {
        descriptor(owner, &[(ALLOWED, 0, FULL_ACCESS, owner), (ALLOWED, 0, mask, &everyone())])
    }

    /// `S-1-5-21-1-2-3-N`
    fn account(last: u8) -> Sid {
        Sid([&[1, 5, 0, 0, 0, 0, 0, 5, 21][..], &[0; 3], &[1, 0, 0, 0], &[2, 0, 0, 0], &[3, 0, 0, 0], &[last, 0, 0, 0]]
            .concat())
    }

    /// `S-1-1-0`
    fn everyone() -> Sid {
        Sid(vec![1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])
    }

    /// A descriptor of `owner` with these entries.
    fn descriptor(owner: &Sid, entries: &[(u8, u8, u32, &Sid)]) -> Vec<u8> {
        let mut list = vec![LIST_REVISION, 0, 0, 0];
        list.extend(short(entries.len()));
        list.extend([0, 0]);
        for (kind, flags, mask, sid) in entries {
            list.extend([*kind, *flags]);
            list.extend(short(ENTRY_HEADER_LEN + sid.0.len()));
            list.extend(mask.to_le_bytes());
            list.extend(&sid.0);
        }
        let len = short(list.len());
        list[2..4].copy_from_slice(&len);
        let whole = private_descriptor(owner, false);
        let list_at = HEADER_LEN + owner.0.len();
        [&whole[..list_at], &list].concat()
    }

    #[test]
    fn a_created_descriptor_is_private_and_takes_nothing_from_its_folder() {
        let (user, other) = (account(7), account(8));
        for is_folder in [false, true] {
            let bytes = private_descriptor(&user, is_folder);
            assert_eq!(judge(&bytes, &user, OtherAccess::None), Ok(()));
            assert_eq!(judge(&bytes, &other, OtherAccess::Read), Err(SharedReason::Owner(user.clone())));
            assert_eq!(u16::from_le_bytes([bytes[2], bytes[3]]) & LIST_PROTECTED, LIST_PROTECTED);
            assert_eq!(bytes.len() % 4, 0, "the system reads whole words");
        }
    }

    #[test]
    fn access_of_others_is_refused_and_that_of_the_system_is_not() {
        let (user, other, everyone) = (account(7), account(8), everyone());
        let (system, admins) = (Sid(SYSTEM.to_vec()), Sid(ADMINISTRATORS.to_vec()));
        let judged = |entries: &[(u8, u8, u32, &Sid)], others| judge(&descriptor(&user, entries), &user, others);
        let trusted: [(u8, u8, u32, &Sid); 4] = [
            (ALLOWED, 0, FULL_ACCESS, &user),
            (ALLOWED, 0, FULL_ACCESS, &system),
            (ALLOWED, 0, FULL_ACCESS, &admins),
            (ALLOWED, 0, FULL_ACCESS, &Sid(OWNER_RIGHTS.to_vec())),
        ];
        assert_eq!(judged(&trusted, OtherAccess::None), Ok(()));
        assert_eq!(judged(&[], OtherAccess::None), Ok(()), "an empty list gives nothing");
        // Reading: FILE_READ_DATA, FILE_EXECUTE, GENERIC_READ.
        for mask in [0x1, 0x20, 0x8000_0000_u32] {
            let entries = [(ALLOWED, 0, mask, &everyone)];
            assert_eq!(
                judged(&entries, OtherAccess::None),
                Err(SharedReason::Access(everyone.clone(), "read or write"))
            );
            assert_eq!(judged(&entries, OtherAccess::Read), Ok(()), "{mask:x}");
        }
        // Writing, appending, attributes, removing, the list, the owner, GENERIC_WRITE, GENERIC_ALL.
        for mask in [0x2, 0x4, 0x10, 0x40, 0x100, 0x1_0000, 0x4_0000, 0x8_0000, 0x4000_0000, 0x1000_0000_u32] {
            for kind in [ALLOWED, ALLOWED_WITH_CONDITION] {
                let entries = [(DENIED, 0, FULL_ACCESS, &other), (kind, 0x10, mask, &other)];
                assert_eq!(
                    judged(&entries, OtherAccess::Read),
                    Err(SharedReason::Access(other.clone(), "write")),
                    "{mask:x}"
                );
            }
        }
        // The attributes and the descriptor itself may be read.
        assert_eq!(judged(&[(ALLOWED, 0, 0x12_0080, &everyone)], OtherAccess::None), Ok(()));
        assert_eq!(judged(&[(ALLOWED, ONLY_PASSED_ON | 3, FULL_ACCESS, &everyone)], OtherAccess::None), Ok(()));
        assert_eq!(judged(&[(5, 0, 0, &everyone)], OtherAccess::Read), Err(SharedReason::UnknownEntry(5)));
    }

    #[test]
    fn the_owner_is_the_user_the_system_or_the_administrators() {
        let user = account(7);
        for owner in [user.clone(), Sid(SYSTEM.to_vec()), Sid(ADMINISTRATORS.to_vec())] {
            assert_eq!(judge(&descriptor(&owner, &[]), &user, OtherAccess::None), Ok(()), "{owner}");
        }
        for owner in [account(8), everyone()] {
            assert_eq!(judge(&descriptor(&owner, &[]), &user, OtherAccess::Read), Err(SharedReason::Owner(owner)));
        }
    }

    #[test]
    fn a_missing_list_gives_everyone_everything() {
        let user = account(7);
        let mut absent = private_descriptor(&user, false);
        absent[2] &= !4;
        let mut null = private_descriptor(&user, false);
        null[LIST_AT..HEADER_LEN].fill(0);
        for bytes in [absent, null] {
            assert_eq!(judge(&bytes, &user, OtherAccess::Read), Err(SharedReason::NoList));
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_refused_or_read_within_its_bounds() {
        let user = account(7);
        let whole = descriptor(&user, &[(ALLOWED, 0, FULL_ACCESS, &user), (ALLOWED, 0, 0x1, &everyone())]);
        for len in 0..whole.len() {
            assert!(judge(&whole[..len], &user, OtherAccess::None).is_err(), "cut to {len}");
        }
        for (at, value) in (0..whole.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|value| (at, value))) {
            let mut changed = whole.clone();
            changed[at] = value;
            // Ends without a panic.
            let _ = judge(&changed, &user, OtherAccess::None);
        }
    }

    #[test]
    fn an_identifier_is_shown_as_administrators_know_it() {
        assert_eq!(account(7).to_string(), "S-1-5-21-1-2-3-7");
        assert_eq!(Sid(ADMINISTRATORS.to_vec()).to_string(), "S-1-5-32-544");
        for bytes in [&[][..], &[1], &[2, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0], &SYSTEM[..11], &[1, 16, 0, 0, 0, 0, 0, 5]]
        {
            assert_eq!(Sid::at_start_of(bytes), None);
        }
    }
}
