//! Macro for enums with a fixed spelling of each value, as in the Agent Tool standard.

/// Declares enums with the spelling of each value.
macro_rules! words {
    ($($(#[$doc:meta])* $Name:ident {
        $($(#[$word_doc:meta])* $Word:ident = $text:literal,)*
    })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $Name {
            $($(#[$word_doc])* $Word,)*
        }

        impl $Name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$Word,)*];

            /// Returns the spelling of the value.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Word => $text,)*
                }
            }

            /// Returns the value with this spelling.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($text => Some(Self::$Word),)*
                    _ => None,
                }
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::tool::fact::FactValue for $Name {
            const EXPECTED: &'static str = $crate::tool::word::listed!($($text),*);

            fn read(value: serde_json::Value) -> Option<Self> {
                value.as_str().and_then(Self::from_word)
            }
        })*
    };
}

/// Joins words into a list for a message.
macro_rules! listed {
    ($one:literal) => { concat!("`", $one, "`") };
    ($one:literal, $last:literal) => { concat!("`", $one, "` or `", $last, "`") };
    ($one:literal, $($more:literal),+) => { concat!("`", $one, "`, ", $crate::tool::word::listed!($($more),+)) };
}

pub(crate) use {listed, words};
