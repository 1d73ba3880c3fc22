//! Requests of the extension for skills. Entries come from the catalog; each read of a file is a call of the skill's tool, with its
//! rules, its quota and its record.

use rmcp::RoleServer;
use rmcp::model::{
    CacheScope, ErrorData, GetSkillResult, ListResourcesResult, ListSkillsResult, ReadResourceResult, Resource,
    ResourceContents,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use toolcrib::{Results, ToolResult};

use super::access::{Identity, owner};
use super::answer;
use super::handler::{Handler, LIST_TTL_MS, MAX_READ, invalid};
use super::label;
use super::pages::page;
use super::running::Happening;
use super::skills::ServedSkill;
use super::state::Questions;

/// Number of skills per list page. An entry has up to 512 files.
const PAGE: usize = 50;
/// Number of resources per list page.
const RESOURCE_PAGE: usize = 500;

impl Handler {
    /// Lists the skills.
    pub(super) async fn skills(
        &self,
        cursor: Option<String>,
        client: &Identity,
    ) -> Result<ListSkillsResult, ErrorData> {
        let published = self.published(client).await?;
        let skills = published.skills.skills();
        let (page, next) = page(cursor, skills.len(), PAGE)?;
        let entries = skills[page].iter().map(|skill| skill.entry.clone());
        let mut result = ListSkillsResult::with_all_items(entries.collect());
        (result.next_cursor, result.ttl_ms, result.cache_scope) = (next, Some(LIST_TTL_MS), Some(CacheScope::Private));
        Ok(result)
    }

    /// Returns the entry of a skill.
    pub(super) async fn skill(&self, uri: &str, client: &Identity) -> Result<GetSkillResult, ErrorData> {
        let published = self.published(client).await?;
        let skill = published.skills.skill(uri).ok_or_else(|| unserved(uri))?;
        let result = GetSkillResult::new(skill.entry.clone());
        Ok(result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// Lists the instructions of all skills as resources. Their other files are listed by their entries and folders.
    pub(super) async fn skill_resources(
        &self,
        cursor: Option<String>,
        client: &Identity,
    ) -> Result<ListResourcesResult, ErrorData> {
        let published = self.published(client).await?;
        let resources = published.skills.skills().iter().map(|ServedSkill { resource, .. }| resource);
        resource_page(resources, cursor)
    }

    /// Lists the direct children of a skill's folder.
    pub(super) async fn skill_folder(
        &self,
        uri: &str,
        cursor: Option<String>,
        client: &Identity,
    ) -> Result<ListResourcesResult, ErrorData> {
        let published = self.published(client).await?;
        let children = published.skills.folder(uri);
        resource_page(children.ok_or_else(|| invalid(format!("no folder of a skill is served at {uri}")))?, cursor)
    }

    /// Reads a file by a call of the skill's tool.
    pub(super) async fn read_skill(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let identity = Identity::of(&context.extensions);
        let label = label::stated(&context.meta)?;
        let published = &self.published(&identity).await?;
        let file = published.skills.file(uri).ok_or_else(|| unserved(uri))?;
        if self.stopping.is_cancelled() {
            return Err(ErrorData::internal_error("the server is ending", None));
        }
        let arguments = json!({ "file": file.path, "binary": true }).to_string();
        let name = published.catalog.name_of(file.tool).unwrap_or(file.tool);
        let questions = Questions::default();
        let mut call = self.begun(published, name, (arguments, label, None), (&identity, &questions, None), context);
        let mut request = call.attend(context, &self.stopping);
        let Happening::Ended(result) = call.next(&mut request).await else {
            return Err(ErrorData::internal_error("a skill asks nothing", None));
        };
        let result = result.ok_or_else(|| ErrorData::internal_error("the call was cancelled", None))?;
        let results = published.results.clone().of_owner(owner(&identity.holder).map(Into::into));
        let contents = contents(results, &result, uri, file.mime_type).await?;
        let mut read = ReadResourceResult::new(vec![contents]);
        (read.ttl_ms, read.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        if let Some(label) = answer::label(&result.receipt) {
            read.meta.get_or_insert_default().insert(answer::LABEL.to_owned(), label);
        }
        Ok(read)
    }
}

/// Returns the file that a call's result holds; a long result is read from the store.
async fn contents(
    results: Results,
    result: &ToolResult,
    uri: &str,
    mime_type: &str,
) -> Result<ResourceContents, ErrorData> {
    let failed = |message: String| ErrorData::internal_error(message, None);
    if let Err(error) = &result.outcome {
        return Err(invalid(format!("{uri}: {}", error.message)));
    }
    let reference = result.receipt.persisted.as_ref().map(|persisted| persisted.reference.clone());
    let line = match reference {
        None => result.line().into_owned(),
        Some(None) => return Err(failed("the file is too long, and no result store is configured".to_owned())),
        Some(Some(reference)) => {
            let open = move || results.open(&reference, ..MAX_READ);
            let part = tokio::task::spawn_blocking(open).await.map_err(|_| failed("the file is gone".to_owned()))?;
            let part = part.map_err(|_| failed("the file is gone".to_owned()))?;
            if part.next.is_some() {
                return Err(invalid(format!("{uri}: the file is longer than the {MAX_READ} bytes that are sent")));
            }
            part.text().to_string()
        }
    };
    let answer: Value = serde_json::from_str(&line).map_err(|_| failed("a hook changed the file".to_owned()))?;
    let member = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let contents = match (member("text"), member("base64")) {
        (Some(text), _) => ResourceContents::text(text, uri),
        (None, Some(data)) => ResourceContents::blob(data, uri),
        (None, None) => return Err(failed("a hook changed the file".to_owned())),
    };
    Ok(contents.with_mime_type(mime_type))
}

/// Returns a page of resources.
fn resource_page<'a>(
    resources: impl ExactSizeIterator<Item = &'a Resource>,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ErrorData> {
    let (page, next) = page(cursor, resources.len(), RESOURCE_PAGE)?;
    let resources = resources.skip(page.start).take(page.len()).cloned().collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    (result.next_cursor, result.ttl_ms, result.cache_scope) = (next, Some(LIST_TTL_MS), Some(CacheScope::Private));
    Ok(result)
}

fn unserved(uri: &str) -> ErrorData {
    invalid(format!("no skill is served at {}", toolcrib_base::render::one_line(uri)))
}
