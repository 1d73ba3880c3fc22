//! Name server on the loopback address with a table of true and false answers. It implements the DNS that a resolver
//! needs (RFC 1035): one question, answers of the types A, AAAA and CNAME, over UDP.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// Answer of the server for a name.
#[derive(Clone)]
pub(super) enum Says {
    /// These addresses, each for the question of its family.
    Addresses(Vec<IpAddr>),
    /// The first list for the first question of a family, the second for the second, and the last from then on.
    InTurn(Vec<Vec<IpAddr>>),
    /// Alias of a name with these addresses.
    Alias(&'static str, Vec<IpAddr>),
    /// No answer.
    Silence,
    /// First these addresses for a question that was not sent, then those for the question that was.
    Forged(Vec<IpAddr>, Vec<IpAddr>),
    /// These bytes after the header of an answer.
    Garbage(&'static [u8]),
}

/// One address, from its text.
pub(super) fn at(address: &str) -> Says {
    Says::Addresses(addresses(&[address]))
}

pub(super) fn addresses(written: &[&str]) -> Vec<IpAddr> {
    written.iter().map(|address| address.parse().expect("an address")).collect()
}

/// Name server that runs until it is dropped. A name that is not in its table does not exist.
pub(super) struct Names {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
    over: Arc<AtomicBool>,
}

impl Names {
    pub(super) fn new<const N: usize>(table: [(&str, Says); N]) -> Self {
        Self::of(table.map(|(name, says)| (name.to_owned(), says)).into())
    }

    pub(super) fn of(table: Vec<(String, Says)>) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback address");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
        let names =
            Self { address: socket.local_addr().expect("an address"), asked: Arc::default(), over: Arc::default() };
        let table: HashMap<String, Says> = table.into_iter().collect();
        let (asked, over) = (names.asked.clone(), names.over.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !over.load(Ordering::SeqCst) {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
                let Some(question) = Question::read(&bytes[..length]) else { continue };
                let before = {
                    let mut asked = asked.lock().unwrap();
                    let this = (question.name.clone(), question.kind);
                    asked.push(this.clone());
                    asked.iter().filter(|other| **other == this).count() - 1
                };
                for answer in answers(&question, table.get(&question.name), before) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        names
    }

    /// `127.0.0.1:PORT`
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Number of questions for the IPv4 address of this name.
    pub(super) fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(asked, kind)| asked == name && *kind == A).count()
    }

    /// All names in questions.
    pub(super) fn all_asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// The one question of a query.
struct Question {
    id: u16,
    /// Lower case, without the final dot.
    name: String,
    kind: u16,
    /// Bytes of the question.
    bytes: Vec<u8>,
}

impl Question {
    fn read(query: &[u8]) -> Option<Self> {
        let id = u16::from_be_bytes([*query.first()?, *query.get(1)?]);
        let mut labels = Vec::new();
        let mut place = 12;
        loop {
            let length = usize::from(*query.get(place)?);
            place += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(query.get(place..place + length)?).to_lowercase());
            place += length;
        }
        let kind = u16::from_be_bytes([*query.get(place)?, *query.get(place + 1)?]);
        Some(Self { id, name: labels.join("."), kind, bytes: query.get(12..place + 4)?.to_vec() })
    }
}

fn answers(question: &Question, says: Option<&Says>, before: usize) -> Vec<Vec<u8>> {
    let own = |addresses: &[IpAddr]| records(&[0xc0, 0x0c], question.kind, addresses);
    let whole = |records: Vec<Vec<u8>>| vec![message(question.id, question, 0, &records)];
    match says {
        None => vec![message(question.id, question, 3, &[])],
        Some(Says::Silence) => Vec::new(),
        Some(Says::Addresses(addresses)) => whole(own(addresses)),
        Some(Says::InTurn(turns)) => whole(own(turns.get(before).or(turns.last()).map_or(&[], Vec::as_slice))),
        Some(Says::Alias(other, addresses)) => {
            let mut all = vec![record(&[0xc0, 0x0c], CNAME, &labels(other))];
            all.extend(records(&labels(other), question.kind, addresses));
            whole(all)
        }
        Some(Says::Forged(forged, real)) => {
            vec![message(!question.id, question, 0, &own(forged)), message(question.id, question, 0, &own(real))]
        }
        Some(Says::Garbage(bytes)) => {
            let mut head = message(question.id, question, 0, &[]);
            head[7] = 9;
            head.extend_from_slice(bytes);
            vec![head]
        }
    }
}

fn message(id: u16, question: &Question, code: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let count = u16::try_from(records.len()).expect("few records");
    let mut message = Vec::new();
    // An answer, with recursion requested and available.
    for field in [id, 0x8180 | code, 1, count, 0, 0] {
        message.extend_from_slice(&field.to_be_bytes());
    }
    message.extend_from_slice(&question.bytes);
    records.iter().for_each(|record| message.extend_from_slice(record));
    message
}

/// Addresses of the family in the question.
fn records(name: &[u8], kind: u16, addresses: &[IpAddr]) -> Vec<Vec<u8>> {
    let of_kind = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(address) if kind == A => Some(record(name, A, &address.octets())),
        IpAddr::V6(address) if kind == AAAA => Some(record(name, AAAA, &address.octets())),
        _ => None,
    });
    of_kind.collect()
}

fn record(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short data");
    let mut record = name.to_vec();
    record.extend_from_slice(&kind.to_be_bytes());
    // Class internet, with a time to live of zero.
    record.extend_from_slice(&[0, 1, 0, 0, 0, 0]);
    record.extend_from_slice(&length.to_be_bytes());
    record.extend_from_slice(data);
    record
}

fn labels(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}
