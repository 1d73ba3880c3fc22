//! Options for the budgets of a run.

use std::str::FromStr;
use std::time::Duration;

use toolcrib_base::parse::{count, duration, price, size};
use toolcrib_base::render::usage_error;

use super::{Amounts, Budget, Spent};

const BUDGETS: &str = "Budgets (the run pauses at each)";

/// Options for budgets besides `--max-steps`.
#[derive(Debug, Clone, clap::Args)]
pub struct BudgetOptions {
    /// Maximum tokens, as the server counts them
    #[arg(long, value_name = "N", value_parser = count::<u64, 1, { u64::MAX }>, help_heading = BUDGETS)]
    max_tokens: Option<u64>,
    /// Maximum calls, including those that tools make
    #[arg(long, value_name = "N", value_parser = count::<u64, 0, { u64::MAX }>, help_heading = BUDGETS)]
    max_calls: Option<u64>,
    /// Maximum processor time of all calls together, such as `30s`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = BUDGETS)]
    max_cpu: Option<Duration>,
    /// Maximum bytes that all calls together print, write, send and receive, such as `100MiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = BUDGETS)]
    max_bytes: Option<usize>,
    /// Maximum cost, in the currency of `budgets.price`
    #[arg(long, value_name = "MONEY", value_parser = money, help_heading = BUDGETS)]
    max_cost: Option<f64>,
    /// Price of a million prompt tokens and of a million tokens of answers, such as `0.25/2`; without it no money is counted
    /// [env: TOOLCRIB_PRICE]
    #[arg(long, value_name = "PROMPT/ANSWER", help_heading = BUDGETS)]
    price: Option<Price>,
}

/// Price of a million prompt tokens and a million answer tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    prompt: f64,
    answer: f64,
}

impl BudgetOptions {
    /// Creates the budgets. `variable` returns an environment variable, if it is set.
    pub fn budget(&self, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Budget> {
        let stated = variable("TOOLCRIB_PRICE").filter(|text| !text.trim().is_empty());
        let price = match (self.price, stated) {
            (Some(price), _) => Some(price),
            (None, Some(text)) => {
                Some(text.parse().map_err(|error| usage_error(format!("`TOOLCRIB_PRICE`: {error}")))?)
            }
            (None, None) => None,
        };
        if self.max_cost.is_some() && price.is_none() {
            return Err(usage_error(
                "--max-cost needs the price of the model: set `budgets.price` or `TOOLCRIB_PRICE`",
            ));
        }
        let limits = Amounts {
            tokens: self.max_tokens,
            calls: self.max_calls,
            processor: self.max_cpu,
            bytes: self.max_bytes.map(|bytes| bytes as u64),
            cost: self.max_cost,
        };
        Ok(Budget::new(limits, price))
    }
}

impl Price {
    /// Returns the price of the tokens used so far.
    pub(super) fn of(&self, spent: &Spent) -> f64 {
        (spent.prompt_tokens as f64 * self.prompt + spent.completion_tokens as f64 * self.answer) / 1e6
    }
}

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        price(text).map(|(prompt, answer)| Self { prompt, answer })
    }
}

/// Parses an amount of money above zero.
fn money(text: &str) -> Result<f64, String> {
    let amount = text.trim().parse().ok().filter(|amount: &f64| *amount > 0.0 && *amount <= 1e9);
    amount.ok_or_else(|| format!("`{text}` is not an amount of money above zero, such as `0.50`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_two_amounts() {
        assert_eq!("0.25/2".parse(), Ok(Price { prompt: 0.25, answer: 2.0 }));
        for wrong in ["", "1", "1/", "a/b", "-1/2", "1/2/3", "nan/1", "inf/1", "1/1e12"] {
            assert!(wrong.parse::<Price>().is_err_and(|message| message.contains("not a price")), "{wrong}");
        }
        for wrong in ["0", "-1", "nan", "x", ""] {
            assert!(money(wrong).is_err(), "{wrong}");
        }
    }
}
