//! `wasi:keyvalue`: what a tool keeps, where it may keep anything. The drafts differ in how keys are listed, numbers are
//! added and several values are given; which of them a component was built with, the types of its import tell.

use std::ops::RangeInclusive;

use wasmtime::component::types::{ComponentInstance, ComponentItem, Type};
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, ResourceType};
use wasmtime::{Engine, StoreContextMut};

use crate::keyvalue::{Mark, Store};
use crate::sandbox::host::Host;

const STORE: &str = "wasi:keyvalue/store";
const ATOMICS: &str = "wasi:keyvalue/atomics";

/// The names under which a tool finds its one store.
const NAMES: [&str; 2] = ["", "default"];

/// Why there is no answer.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(variant)]
enum Fault {
    #[component(name = "no-such-store")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

/// Why a value was not swapped.
#[derive(ComponentType, Lower)]
#[component(variant)]
enum Unswapped {
    #[component(name = "store-error")]
    Fault(Fault),
    #[component(name = "cas-failed")]
    Changed(Resource<Cas>),
}

/// Some of the keys, and where the others begin.
#[derive(ComponentType, Lower)]
#[component(record)]
struct Page<C> {
    keys: Vec<String>,
    cursor: Option<C>,
}

/// What a guest holds of its store.
struct Bucket(Store);

/// What a guest has seen under a key and may swap.
struct Cas {
    store: Store,
    key: String,
    seen: Mark,
}

type Value = Option<Vec<u8>>;

/// How the drafts write one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    First,
    Second,
}

/// In which form a component imports a function that the drafts write differently; `None` where it does not import it.
pub(super) fn form(engine: &Engine, instance: &ComponentInstance, function: &str) -> Option<Form> {
    let ComponentItem::ComponentFunc(function) = instance.get_export(engine, function)?.ty else { return None };
    let given = function.params().last().map(|(_, ty)| ty);
    let told = match function.results().next() {
        Some(Type::Result(result)) => result.ok(),
        _ => None,
    };
    let second = match (given, told) {
        (Some(Type::Option(cursor)), _) => cursor.ty() == Type::String,
        (Some(Type::S64), _) => true,
        (_, Some(Type::List(list))) => matches!(list.ty(), Type::Tuple(_)),
        _ => false,
    };
    Some(if second { Form::Second } else { Form::First })
}

/// Links one of the interfaces.
pub(super) fn add(
    linker: &mut LinkerInstance<'_, Host>,
    interface: &str,
    form: impl Fn(&str) -> Option<Form>,
) -> wasmtime::Result<()> {
    match interface {
        STORE => add_store(linker, form("[method]bucket.list-keys")),
        ATOMICS => add_atomics(linker, form("increment")),
        _ => add_batch(linker, form("get-many")),
    }
}

fn add_store(linker: &mut LinkerInstance<'_, Host>, list: Option<Form>) -> wasmtime::Result<()> {
    linker.resource("bucket", ResourceType::host::<Bucket>(), |mut store, rep| {
        store.data_mut().table.delete(Resource::<Bucket>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap("open", |mut store, (name,): (String,)| Ok((open(&mut store, &name)?,)))?;
    linker.func_wrap_async("[method]bucket.get", |store, (bucket, key): (Resource<Bucket>, String)| {
        let kept = kept(&store, &bucket);
        Box::new(async move { Ok((within(kept?, move |kept| kept.get(&key)).await,)) })
    })?;
    linker.func_wrap_async(
        "[method]bucket.set",
        |store, (bucket, key, value): (Resource<Bucket>, String, Vec<u8>)| {
            let kept = kept(&store, &bucket);
            Box::new(async move { Ok((within(kept?, move |kept| kept.set(&[(key, value)])).await,)) })
        },
    )?;
    linker.func_wrap_async("[method]bucket.delete", |store, (bucket, key): (Resource<Bucket>, String)| {
        let kept = kept(&store, &bucket);
        Box::new(async move { Ok((within(kept?, move |kept| kept.delete(&[key])).await,)) })
    })?;
    linker.func_wrap_async("[method]bucket.exists", |store, (bucket, key): (Resource<Bucket>, String)| {
        let kept = kept(&store, &bucket);
        Box::new(async move { Ok((within(kept?, move |kept| kept.exists(&key)).await,)) })
    })?;
    const LIST: &str = "[method]bucket.list-keys";
    match list {
        // Where a draft counts, a place is how many keys come before it.
        Some(Form::First) => linker.func_wrap_async(LIST, |store, asked: (Resource<Bucket>, Option<u64>)| {
            let (kept, skip) = (kept(&store, &asked.0), asked.1.unwrap_or_default());
            Box::new(async move {
                let from = usize::try_from(skip).unwrap_or(usize::MAX);
                let listed = within(kept?, move |kept| kept.keys(None, from)).await;
                Ok((listed.map(|(keys, more)| Page { cursor: more.then(|| skip + keys.len() as u64), keys }),))
            })
        }),
        Some(Form::Second) => linker.func_wrap_async(LIST, |store, asked: (Resource<Bucket>, Option<String>)| {
            let (kept, after) = (kept(&store, &asked.0), asked.1);
            Box::new(async move {
                let listed = within(kept?, move |kept| kept.keys(after.as_deref(), 0)).await;
                Ok((listed.map(|(keys, more)| Page { cursor: keys.last().filter(|_| more).cloned(), keys }),))
            })
        }),
        None => Ok(()),
    }
}

fn add_atomics(linker: &mut LinkerInstance<'_, Host>, increment: Option<Form>) -> wasmtime::Result<()> {
    match increment {
        Some(Form::First) => {
            add_increment::<u64>(linker, 0..=i128::from(u64::MAX))?;
        }
        Some(Form::Second) => {
            add_increment::<i64>(linker, i128::from(i64::MIN)..=i128::from(i64::MAX))?;
        }
        None => {}
    }
    linker.resource("cas", ResourceType::host::<Cas>(), |mut store, rep| {
        store.data_mut().table.delete(Resource::<Cas>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap_async("[static]cas.new", |mut store, (bucket, key): (Resource<Bucket>, String)| {
        let kept = kept(&store, &bucket);
        Box::new(async move {
            let kept = kept?;
            let (asked, store_of) = (key.clone(), kept.clone());
            let value = within(kept, move |kept| kept.get(&asked)).await;
            Ok((match value {
                Ok(value) => {
                    let cas = Cas { store: store_of, key, seen: Mark::of(value.as_deref()) };
                    Ok(store.data_mut().table.push(cas)?)
                }
                Err(fault) => Err(fault),
            },))
        })
    })?;
    linker.func_wrap_async("[method]cas.current", |mut store, (cas,): (Resource<Cas>,)| {
        Box::new(async move {
            let Cas { store: kept, key, .. } = store.data().table.get(&cas)?;
            let (kept, key) = (kept.clone(), key.clone());
            let value = within(kept, move |kept| kept.get(&key)).await;
            if let Ok(value) = &value {
                // What it has seen is what it may swap.
                store.data_mut().table.get_mut(&cas)?.seen = Mark::of(value.as_deref());
            }
            Ok((value,))
        })
    })?;
    linker.func_wrap_async("swap", |mut store, (cas, value): (Resource<Cas>, Vec<u8>)| {
        Box::new(async move {
            let Cas { store: kept, key, seen } = store.data_mut().table.delete(cas)?;
            let (own, asked) = (kept.clone(), key.clone());
            let swapped = within(kept, move |kept| kept.swap(&asked, &seen, &value)).await;
            Ok((match swapped {
                Ok(Ok(())) => Ok(()),
                Ok(Err(seen)) => Err(Unswapped::Changed(store.data_mut().table.push(Cas { store: own, key, seen })?)),
                Err(fault) => Err(Unswapped::Fault(fault)),
            },))
        })
    })
}

/// A number in the form of one draft.
trait Number: ComponentType + Lift + Lower + Send + Sync + Into<i128> + TryFrom<i128> + 'static {}

impl Number for u64 {}
impl Number for i64 {}

fn add_increment<N: Number>(
    linker: &mut LinkerInstance<'_, Host>,
    range: RangeInclusive<i128>,
) -> wasmtime::Result<()> {
    linker.func_wrap_async("increment", move |store, (bucket, key, delta): (Resource<Bucket>, String, N)| {
        let (kept, range) = (kept(&store, &bucket), range.clone());
        Box::new(async move {
            let sum = within(kept?, move |kept| kept.increment(&key, delta.into(), range)).await;
            let outside = |_| Fault::Other("the sum is outside the range of this function".to_owned());
            Ok((sum.and_then(|sum| N::try_from(sum).map_err(outside)),))
        })
    })
}

fn add_batch(linker: &mut LinkerInstance<'_, Host>, get: Option<Form>) -> wasmtime::Result<()> {
    const GET: &str = "get-many";
    match get {
        Some(Form::First) => {
            linker.func_wrap_async(GET, |store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
                let kept = kept(&store, &bucket);
                Box::new(async move {
                    let pairs = pairs(kept?, keys).await;
                    let there = |(key, value): (String, Value)| value.map(|value| (key, value));
                    Ok((pairs.map(|pairs| pairs.into_iter().map(there).collect::<Vec<_>>()),))
                })
            })?
        }
        Some(Form::Second) => {
            linker.func_wrap_async(GET, |store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
                let kept = kept(&store, &bucket);
                Box::new(async move { Ok((pairs(kept?, keys).await,)) })
            })?
        }
        None => {}
    }
    linker.func_wrap_async("set-many", |store, (bucket, pairs): (Resource<Bucket>, Vec<(String, Vec<u8>)>)| {
        let kept = kept(&store, &bucket);
        Box::new(async move { Ok((within(kept?, move |kept| kept.set(&pairs)).await,)) })
    })?;
    linker.func_wrap_async("delete-many", |store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
        let kept = kept(&store, &bucket);
        Box::new(async move { Ok((within(kept?, move |kept| kept.delete(&keys)).await,)) })
    })
}

async fn pairs(kept: Store, keys: Vec<String>) -> Result<Vec<(String, Value)>, Fault> {
    within(kept, move |kept| Ok(kept.get_many(&keys)?.into_iter().zip(keys).map(|(value, key)| (key, value)).collect()))
        .await
}

/// Opens a tool's store. A refusal stands in the record of its call.
fn open(store: &mut StoreContextMut<'_, Host>, name: &str) -> wasmtime::Result<Result<Resource<Bucket>, Fault>> {
    let host = store.data_mut();
    let kept = match &host.provided.store {
        Some(Ok(kept)) => kept.clone(),
        Some(Err(denial)) => {
            host.memory.usage.refused(denial.clone());
            return Ok(Err(Fault::AccessDenied));
        }
        None => return Ok(Err(Fault::AccessDenied)),
    };
    if !NAMES.contains(&name) {
        return Ok(Err(Fault::NoSuchStore));
    }
    Ok(Ok(host.table.push(Bucket(kept))?))
}

fn kept(store: &StoreContextMut<'_, Host>, bucket: &Resource<Bucket>) -> wasmtime::Result<Store> {
    Ok(store.data().table.get(bucket)?.0.clone())
}

/// Does something with a store; where it waits for a disk, elsewhere, so that the call's deadline holds meanwhile.
async fn within<T: Send + 'static>(
    kept: Store,
    act: impl FnOnce(&Store) -> Result<T, String> + Send + 'static,
) -> Result<T, Fault> {
    let done = match kept.is_in_memory() {
        true => act(&kept),
        false => {
            let done = tokio::task::spawn_blocking(move || act(&kept)).await;
            done.unwrap_or_else(|_| Err("the store broke off".to_owned()))
        }
    };
    done.map_err(Fault::Other)
}
