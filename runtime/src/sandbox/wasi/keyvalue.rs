//! `wasi:keyvalue`: the store of a tool. The drafts differ in how keys are listed, numbers are incremented and several
//! values are read; the types of the import show the draft that a component was built with.

use std::ops::RangeInclusive;

use wasmtime::component::types::{ComponentInstance, ComponentItem, Type};
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, ResourceType};
use wasmtime::{Engine, StoreContextMut};

use crate::store::keyvalue::{self, Store, Version};

use super::state::WasiStore;

const STORE: &str = "wasi:keyvalue/store";
const ATOMICS: &str = "wasi:keyvalue/atomics";

/// Names under which a tool opens its one store.
const NAMES: [&str; 2] = ["", "default"];

/// Error of a store.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(variant)]
enum StoreError {
    #[component(name = "no-such-store")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

/// Reason why a value was not swapped.
#[derive(ComponentType, Lower)]
#[component(variant)]
enum CasError {
    #[component(name = "store-error")]
    StoreError(StoreError),
    #[component(name = "cas-failed")]
    Changed(Resource<Cas>),
}

/// Part of the keys, and the next part's start.
#[derive(ComponentType, Lower)]
#[component(record)]
struct Page<C> {
    keys: Vec<String>,
    cursor: Option<C>,
}

/// Open store of a guest.
struct Bucket(Store);

/// Value that a guest has read under a key and can swap.
struct Cas {
    store: Store,
    key: String,
    seen: Version,
}

type Value = Option<Vec<u8>>;

/// Version of a function that the drafts declare differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draft {
    First,
    Second,
}

/// Returns the draft of such a function that a component imports; `None` if it does not import it.
pub(super) fn draft(engine: &Engine, instance: &ComponentInstance, function: &str) -> Option<Draft> {
    let ComponentItem::ComponentFunc(function) = instance.get_export(engine, function)?.ty else { return None };
    let last_param = function.params().last().map(|(_, ty)| ty);
    let ok = match function.results().next() {
        Some(Type::Result(result)) => result.ok(),
        _ => None,
    };
    let second = match (last_param, ok) {
        (Some(Type::Option(cursor)), _) => cursor.ty() == Type::String,
        (Some(Type::S64), _) => true,
        (_, Some(Type::List(list))) => matches!(list.ty(), Type::Tuple(_)),
        _ => false,
    };
    Some(if second { Draft::Second } else { Draft::First })
}

/// Links one of the interfaces.
pub(super) fn add_to_linker<T: WasiStore>(
    linker: &mut LinkerInstance<'_, T>,
    interface: &str,
    draft: impl Fn(&str) -> Option<Draft>,
) -> wasmtime::Result<()> {
    match interface {
        STORE => add_store(linker, draft("[method]bucket.list-keys")),
        ATOMICS => add_atomics(linker, draft("increment")),
        _ => add_batch(linker, draft("get-many")),
    }
}

fn add_store<T: WasiStore>(linker: &mut LinkerInstance<'_, T>, list: Option<Draft>) -> wasmtime::Result<()> {
    linker.resource("bucket", ResourceType::host::<Bucket>(), |mut store, rep| {
        store.data_mut().wasi().table.delete(Resource::<Bucket>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap("open", |mut store, (name,): (String,)| Ok((open(&mut store, &name)?,)))?;
    linker.func_wrap_async("[method]bucket.get", |mut store, (bucket, key): (Resource<Bucket>, String)| {
        let values = values(&mut store, &bucket);
        Box::new(async move { Ok((access(values?, move |values| values.get(&key)).await,)) })
    })?;
    linker.func_wrap_async(
        "[method]bucket.set",
        |mut store, (bucket, key, value): (Resource<Bucket>, String, Vec<u8>)| {
            let values = values(&mut store, &bucket);
            Box::new(async move { Ok((access(values?, move |values| values.set(&[(key, value)])).await,)) })
        },
    )?;
    linker.func_wrap_async("[method]bucket.delete", |mut store, (bucket, key): (Resource<Bucket>, String)| {
        let values = values(&mut store, &bucket);
        Box::new(async move { Ok((access(values?, move |values| values.delete(&[key])).await,)) })
    })?;
    linker.func_wrap_async("[method]bucket.exists", |mut store, (bucket, key): (Resource<Bucket>, String)| {
        let values = values(&mut store, &bucket);
        Box::new(async move { Ok((access(values?, move |values| values.exists(&key)).await,)) })
    })?;
    const LIST: &str = "[method]bucket.list-keys";
    match list {
        // In this draft, the cursor is the number of keys before it.
        Some(Draft::First) => linker.func_wrap_async(LIST, |mut store, params: (Resource<Bucket>, Option<u64>)| {
            let (values, skip) = (values(&mut store, &params.0), params.1.unwrap_or_default());
            Box::new(async move {
                let from = usize::try_from(skip).unwrap_or(usize::MAX);
                let listed = access(values?, move |values| values.keys(None, from)).await;
                Ok((listed.map(|(keys, more)| Page { cursor: more.then(|| skip + keys.len() as u64), keys }),))
            })
        }),
        Some(Draft::Second) => linker.func_wrap_async(LIST, |mut store, params: (Resource<Bucket>, Option<String>)| {
            let (values, after) = (values(&mut store, &params.0), params.1);
            Box::new(async move {
                let listed = access(values?, move |values| values.keys(after.as_deref(), 0)).await;
                Ok((listed.map(|(keys, more)| Page { cursor: keys.last().filter(|_| more).cloned(), keys }),))
            })
        }),
        None => Ok(()),
    }
}

fn add_atomics<T: WasiStore>(linker: &mut LinkerInstance<'_, T>, increment: Option<Draft>) -> wasmtime::Result<()> {
    match increment {
        Some(Draft::First) => {
            add_increment::<u64, T>(linker, 0..=i128::from(u64::MAX))?;
        }
        Some(Draft::Second) => {
            add_increment::<i64, T>(linker, i128::from(i64::MIN)..=i128::from(i64::MAX))?;
        }
        None => {}
    }
    linker.resource("cas", ResourceType::host::<Cas>(), |mut store, rep| {
        store.data_mut().wasi().table.delete(Resource::<Cas>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap_async("[static]cas.new", |mut store, (bucket, key): (Resource<Bucket>, String)| {
        let values = values(&mut store, &bucket);
        Box::new(async move {
            let values = values?;
            let (current_key, values_of_cas) = (key.clone(), values.clone());
            let value = access(values, move |values| values.get(&current_key)).await;
            Ok((match value {
                Ok(value) => {
                    let cas = Cas { store: values_of_cas, key, seen: Version::of(value.as_deref()) };
                    Ok(store.data_mut().wasi().table.push(cas)?)
                }
                Err(fault) => Err(fault),
            },))
        })
    })?;
    linker.func_wrap_async("[method]cas.current", |mut store, (cas,): (Resource<Cas>,)| {
        Box::new(async move {
            let Cas { store: values, key, .. } = store.data_mut().wasi().table.get(&cas)?;
            let (values, key) = (values.clone(), key.clone());
            let value = access(values, move |values| values.get(&key)).await;
            if let Ok(value) = &value {
                // The guest can swap the value that it has read.
                store.data_mut().wasi().table.get_mut(&cas)?.seen = Version::of(value.as_deref());
            }
            Ok((value,))
        })
    })?;
    linker.func_wrap_async("swap", |mut store, (cas, value): (Resource<Cas>, Vec<u8>)| {
        Box::new(async move {
            let Cas { store: values, key, seen } = store.data_mut().wasi().table.delete(cas)?;
            let (own, current_key) = (values.clone(), key.clone());
            let swapped = access(values, move |values| values.swap(&current_key, &seen, &value)).await;
            Ok((match swapped {
                Ok(Ok(())) => Ok(()),
                Ok(Err(seen)) => {
                    Err(CasError::Changed(store.data_mut().wasi().table.push(Cas { store: own, key, seen })?))
                }
                Err(fault) => Err(CasError::StoreError(fault)),
            },))
        })
    })
}

/// Number type of one draft.
trait Number: ComponentType + Lift + Lower + Send + Sync + Into<i128> + TryFrom<i128> + 'static {}

impl Number for u64 {}
impl Number for i64 {}

fn add_increment<N: Number, T: WasiStore>(
    linker: &mut LinkerInstance<'_, T>,
    range: RangeInclusive<i128>,
) -> wasmtime::Result<()> {
    linker.func_wrap_async("increment", move |mut store, (bucket, key, delta): (Resource<Bucket>, String, N)| {
        let (values, range) = (values(&mut store, &bucket), range.clone());
        Box::new(async move {
            let sum = access(values?, move |values| values.increment(&key, delta.into(), range)).await;
            let outside = |_| StoreError::Other("the sum is outside the range of this function".to_owned());
            Ok((sum.and_then(|sum| N::try_from(sum).map_err(outside)),))
        })
    })
}

fn add_batch<T: WasiStore>(linker: &mut LinkerInstance<'_, T>, get: Option<Draft>) -> wasmtime::Result<()> {
    const GET: &str = "get-many";
    match get {
        Some(Draft::First) => {
            linker.func_wrap_async(GET, |mut store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
                let values = values(&mut store, &bucket);
                Box::new(async move {
                    let pairs = pairs(values?, keys).await;
                    let there = |(key, value): (String, Value)| value.map(|value| (key, value));
                    Ok((pairs.map(|pairs| pairs.into_iter().map(there).collect::<Vec<_>>()),))
                })
            })?
        }
        Some(Draft::Second) => {
            linker.func_wrap_async(GET, |mut store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
                let values = values(&mut store, &bucket);
                Box::new(async move { Ok((pairs(values?, keys).await,)) })
            })?
        }
        None => {}
    }
    linker.func_wrap_async("set-many", |mut store, (bucket, pairs): (Resource<Bucket>, Vec<(String, Vec<u8>)>)| {
        let values = values(&mut store, &bucket);
        Box::new(async move { Ok((access(values?, move |values| values.set(&pairs)).await,)) })
    })?;
    linker.func_wrap_async("delete-many", |mut store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
        let values = values(&mut store, &bucket);
        Box::new(async move { Ok((access(values?, move |values| values.delete(&keys)).await,)) })
    })
}

async fn pairs(values: Store, keys: Vec<String>) -> Result<Vec<(String, Value)>, StoreError> {
    access(values, move |values| {
        Ok(values.get_many(&keys)?.into_iter().zip(keys).map(|(value, key)| (key, value)).collect())
    })
    .await
}

/// Opens a tool's store, and records a denial.
fn open<T: WasiStore>(
    store: &mut StoreContextMut<'_, T>,
    name: &str,
) -> wasmtime::Result<Result<Resource<Bucket>, StoreError>> {
    let state = store.data_mut().wasi();
    let values = match &state.extras.store {
        Some(Ok(values)) => values.clone(),
        Some(Err(denial)) => {
            state.usage().refused(denial.clone());
            return Ok(Err(StoreError::AccessDenied));
        }
        None => return Ok(Err(StoreError::AccessDenied)),
    };
    if !NAMES.contains(&name) {
        return Ok(Err(StoreError::NoSuchStore));
    }
    Ok(Ok(state.table.push(Bucket(values))?))
}

fn values<T: WasiStore>(store: &mut StoreContextMut<'_, T>, bucket: &Resource<Bucket>) -> wasmtime::Result<Store> {
    let state = store.data_mut().wasi();
    // Another call may have set the values.
    state.usage().whole().flow.join_shared();
    Ok(state.table.get(bucket)?.0.clone())
}

/// Accesses a store. A store on disk is accessed on another thread, so that the deadline of the call still applies.
async fn access<T: Send + 'static>(
    values: Store,
    operation: impl FnOnce(&Store) -> Result<T, keyvalue::StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = match values.is_in_memory() {
        true => operation(&values),
        false => {
            let done = tokio::task::spawn_blocking(move || operation(&values)).await;
            done.map_err(|_| StoreError::Other("the store failed".to_owned()))?
        }
    };
    done.map_err(|error| StoreError::Other(error.to_string()))
}
