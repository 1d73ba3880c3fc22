//! Requests that a person did not grant although they reviewed and installed the source: they are removed from its tools.

use std::collections::HashSet;

use crate::tool::{
    Body, Disabled, FileRequest, LimitRequest, NetworkRequest, SecretRequest, Service, ServiceKind, Tool,
};

use super::location::real_path;

/// Removes the named requests of a tool that are not granted, and the limits that it raises without a grant. Granted
/// requests have the form of [`named_requests`](super::named_requests).
pub(crate) fn withhold(tool: &mut Tool, granted: &HashSet<String>) {
    let is_granted = |request: String| granted.contains(&request);
    let requested = &mut tool.requested;
    if let FileRequest::Folders(folders) = &mut requested.files {
        folders.retain(|it| is_granted(format!("{}:{}", it.access.as_str(), real_path(&it.path).display())));
    }
    requested.env.retain(|name| is_granted(format!("env:{name}")));
    if let NetworkRequest::Destinations(destinations) = &mut requested.network {
        destinations.retain(|one| is_granted(format!("net:{}", one.clone().with_default_port())));
    }
    requested.secrets.retain(|secret| is_granted(SecretRequest::capability(secret)));
    for service in Service::ALL {
        let mut names = requested.service(service);
        names.retain(|name| match service.kind() {
            ServiceKind::Switch => is_granted(service.as_str().to_owned()),
            // A request for everything grants nothing by itself: a flag decides about it.
            ServiceKind::Names => name.is_everything() || is_granted(format!("{}:{}", service.as_str(), name.as_str())),
        });
        requested.request(service, names);
    }
    if let Body::Interpreter(interpreter) = &tool.body
        && !is_granted(interpreter.capability())
    {
        let reason = format!("`{}` is not granted to it", interpreter.capability());
        tool.disabled = Some(Disabled { field: "programs", reason });
    }
    for (name, value) in tool.limits.raised() {
        if !is_granted(format!("limit:{name}={value}")) {
            lower(&mut tool.limits, name);
        }
    }
}

/// Removes the request for a limit, by the name that [`LimitRequest::raised`] gives it.
fn lower(limits: &mut LimitRequest, name: &str) {
    match name {
        "deadline" => limits.deadline = None,
        "memory" => limits.memory = None,
        "stdout" => limits.stdout = None,
        "disk-bytes" => limits.disk_bytes = None,
        "disk-entries" => limits.disk_entries = None,
        "requests" => limits.requests = None,
        _ => limits.received = None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::policy::named_requests;
    use crate::tool::{Access, Body, FolderRequest, Format, INTERPRETER, Interpreter, Origin};

    fn tool() -> Tool {
        let mut tool = Tool::new("all", Body::Absent, Origin::of(Format::ToolsJson, Path::new("tools.json")));
        let folder = |path: &str| FolderRequest { path: path.into(), beside: "/".into(), access: Access::Read };
        tool.requested.files = FileRequest::Folders(["/one", "/two"].map(folder).into());
        tool.requested.env = vec!["A".to_owned(), "B".to_owned()];
        let hosts = ["https://a.example", "https://b.example"].map(|host| host.parse().unwrap());
        tool.requested.network = NetworkRequest::Destinations(hosts.into());
        tool.requested.delegate = true;
        tool.requested.tools = vec!["fs_*".parse().unwrap(), "other".parse().unwrap()];
        tool.limits.deadline = Some(Duration::from_hours(1));
        tool.requested.declared = true;
        tool
    }

    #[test]
    fn an_interpreter_without_its_grant_is_no_interpreter() {
        let language = r#"{"language":"lua","version":"1","implementation":"x","guide":""}"#;
        let language = serde_json::from_str(language).unwrap();
        let body = Body::Interpreter(Arc::new(Interpreter::new("lua.wasm".into(), &language)));
        let mut tool = Tool::new("lua", body, Origin::of(Format::Component, Path::new("lua.wasm")));
        assert_eq!(named_requests(&tool), ["programs:lua"]);
        withhold(&mut tool, &HashSet::from(["programs:lua".to_owned()]));
        assert_eq!(tool.disabled, None);
        withhold(&mut tool, &HashSet::from(["programs:python".to_owned()]));
        let disabled = tool.disabled.unwrap();
        assert!(disabled.field != INTERPRETER && disabled.reason.contains("`programs:lua` is not granted"));
        assert!(tool.body.program().is_some(), "no tool changes its file either");
    }

    #[test]
    fn exactly_the_granted_requests_stay() {
        let all = named_requests(&tool());
        assert_eq!(all.len(), 10, "{all:?}");
        for granted in [&all[..], &all[..1], &all[2..4], &all[5..], &[]] {
            let mut tool = tool();
            withhold(&mut tool, &granted.iter().cloned().collect());
            assert_eq!(named_requests(&tool), granted);
        }
    }

    #[test]
    fn a_raised_limit_without_a_grant_is_lowered() {
        let raised = LimitRequest {
            deadline: Some(Duration::from_hours(1)),
            memory: Some(1 << 40),
            stdout: Some(1 << 40),
            disk_bytes: Some(1 << 50),
            disk_entries: Some(u64::MAX),
            requests: Some(usize::MAX),
            received: Some(usize::MAX),
            ..LimitRequest::default()
        };
        let names: Vec<&str> = raised.raised().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), 7);
        for name in &names {
            let mut limits = raised;
            lower(&mut limits, name);
            let left: Vec<&str> = limits.raised().into_iter().map(|(name, _)| name).collect();
            assert_eq!(left.len(), 6, "{name}");
            assert!(!left.contains(name));
        }
    }
}
