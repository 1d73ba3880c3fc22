//! A store in memory: values with the count of their bytes.

use std::collections::HashMap;
use std::io;

use super::Entries;

#[derive(Default)]
pub(super) struct Values {
    values: HashMap<String, Vec<u8>>,
    bytes: usize,
}

impl Entries for Values {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.values.get(key).cloned())
    }

    fn put(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        self.remove(key)?;
        self.bytes += key.len() + value.len();
        self.values.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn remove(&mut self, key: &str) -> io::Result<()> {
        if let Some(value) = self.values.remove(key) {
            self.bytes -= key.len() + value.len();
        }
        Ok(())
    }

    fn keys(&self) -> io::Result<Vec<String>> {
        Ok(self.values.keys().cloned().collect())
    }

    fn size_of(&self, key: &str) -> io::Result<Option<usize>> {
        Ok(self.values.get(key).map(|value| key.len() + value.len()))
    }

    fn size(&self) -> io::Result<(usize, usize)> {
        Ok((self.values.len(), self.bytes))
    }
}
