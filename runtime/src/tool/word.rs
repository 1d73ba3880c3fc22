//! Closed lists of words, each an enum with the standard's spelling.

/// Declares enums whose values are words of a standard.
macro_rules! words {
    ($($(#[$doc:meta])* $Name:ident {
        $($(#[$word_doc:meta])* $Word:ident = $text:literal,)*
    })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $($(#[$word_doc])* $Word,)*
        }

        impl $Name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$Word,)*];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Word => $text,)*
                }
            }

            /// The value that a word means.
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

        impl $crate::tool::fact::Stated for $Name {
            const WANTED: &'static str = $crate::tool::word::listed!($($text),*);

            fn read(value: serde_json::Value) -> Option<Self> {
                value.as_str().and_then(Self::from_word)
            }
        })*
    };
}

/// The words of a list in a sentence.
macro_rules! listed {
    ($one:literal) => { concat!("`", $one, "`") };
    ($one:literal, $last:literal) => { concat!("`", $one, "` or `", $last, "`") };
    ($one:literal, $($more:literal),+) => { concat!("`", $one, "`, ", $crate::tool::word::listed!($($more),+)) };
}

pub(crate) use {listed, words};
