//! `--plug`: a node is moved, within the tree or to another server; and what such a server sends.

use super::filings::{MOVING, Move};
use super::history::remember;
use super::parts::{Due, Effect, Key, Parts, Told};
use crate::definition::{only_node, parse_node};
use crate::model::{Kind, NodeId, Rules, State, at_or_below};
use crate::protocol::{Body, Reply, Request};
use crate::server::log::Category;

/// The host, port and path that `HOST:PORT/path` names.
fn address(destination: &str) -> Option<(&str, &str, String)> {
    let bare = destination.trim_start_matches('/');
    let (address, path) = bare.split_once('/').unwrap_or((bare, ""));
    let (host, port) = address.rsplit_once(':')?;
    let (host, port) = (host.trim().trim_matches(['[', ']']), port.trim());
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    (!host.is_empty() && !port.is_empty()).then_some((host, port, path))
}

/// Moves a node.
pub(super) fn plug(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    (source, destination): (&str, &str),
) -> Result<Told, String> {
    let failed = |why: String| Err(format!("Plug command failed. {why}"));
    let Some(id) = rules.tree.find(source).filter(|id| *id != NodeId::ROOT) else {
        return failed(format!("Could not find source path {source}"));
    };
    // As it is in the tree, without slashes that it doesn't need.
    let path = rules.tree.path(id);
    let source = &*path;
    let node = rules.tree.node(id);
    if matches!(node.state, State::Active | State::Submitted) {
        return failed(format!("The source node {source} is {}", node.state.word()));
    }
    if node.kind == Kind::Alias {
        return failed(format!("The source node {source} is a Alias. Alias cannot be moved"));
    }
    if rules.has_archive(id) {
        return failed(format!("{source}, or a node below it, is archived: restore it first"));
    }
    if let Some(path) = parts.unstarted.job_below(rules.tree, source) {
        return failed(format!(
            "The job of {path} is not started yet: wait until it is, or kill it"
        ));
    }
    if let Some(to) = rules.tree.find(destination).filter(|id| *id != NodeId::ROOT) {
        return within(parts, rules, request, (id, to));
    }
    let Some((host, port, path)) = address(destination) else {
        return failed(format!(
            "The destination path {destination} does not exist on server, and could not extract \
             host/port from the destination path"
        ));
    };
    let own = parts.address.rsplit_once(':').unwrap_or((parts.address, ""));
    if (host == own.0 || host == "localhost") && port == own.1 {
        return match rules.tree.find(&path).filter(|id| *id != NodeId::ROOT) {
            Some(to) => within(parts, rules, request, (id, to)),
            None => failed(format!(
                "The destination path {destination} does not exist on server {}",
                own.0
            )),
        };
    }
    if path.is_empty() && node.kind != Kind::Suite {
        return Err(format!(
            "MoveCmd Failed for {host}:{port}  Destination path can only be empty when moving a \
             whole suite to a new server\n"
        ));
    }
    if parts.filings.moved.contains_key(source) {
        return failed(format!("{source} is being moved already"));
    }
    let user = match &request.body {
        Body::User(user, _) => user.clone(),
        Body::Child(..) => return failed("only users move nodes".to_owned()),
    };
    remember(parts, rules, request, "/");
    let before = rules.tree.snapshot();
    parts.filings.moved.insert(source.to_owned(), before.clone());
    parts.effects.push(Effect::Move(Box::new(Move {
        path: source.to_owned(),
        before,
        host: host.to_owned(),
        port: port.to_owned(),
        destination: path,
        user,
    })));
    Ok(Told::Made(Due { all: vec![Key::of_filing(source.to_owned(), MOVING)], ..Due::default() }))
}

/// Where a node comes to be below `to`: of a task the suite or family around it.
fn container(rules: &Rules<'_>, to: NodeId) -> Result<NodeId, String> {
    if rules.tree.node(to).kind == Kind::Alias {
        return Err("Cannot add children to a Alias".to_owned());
    }
    let mut around = rules.tree.upwards(to).filter(|id| !rules.tree.node(*id).kind.is_job());
    Ok(around.next().unwrap_or(NodeId::ROOT))
}

/// Whether a node may come to be below another one, in ecFlow's words.
fn check_child(rules: &Rules<'_>, parent: NodeId, kind: Kind, name: &str) -> Result<(), String> {
    let what = match kind {
        Kind::Suite => return Err("Cannot add a suite as child.".to_owned()),
        Kind::Family => "Family/Task",
        _ => "Task/Family",
    };
    if rules.tree.child(parent, name).is_none() {
        return Ok(());
    }
    let around = &rules.tree.node(parent).name;
    Err(format!("{what} of name {name} already exist in container node {around}"))
}

fn within(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    (id, to): (NodeId, NodeId),
) -> Result<Told, String> {
    let (node, other) = (rules.tree.node(id), rules.tree.node(to));
    let parent = other.parent;
    let is_sibling = node.parent == parent;
    if id == to {
        // In ecFlow's words.
        let path = rules.tree.path(to);
        return Err(format!(
            "NodeContainermove choose a different location as sibling {path} matches node to be \
             moved"
        ));
    }
    if rules.tree.upwards(to).any(|above| above == id) {
        return Err("Plug command failed. A node can't be moved below itself".to_owned());
    }
    let destination = rules.tree.path(to);
    let below = match parent {
        Some(parent) if is_sibling => {
            let place = rules.tree.children(parent).position(|child| child == to);
            rules.move_child(parent, id, place.unwrap_or(0));
            None
        }
        _ => {
            let below = container(rules, to);
            Some(below.map_err(|why| format!("Plug command failed. {why}"))?)
        }
    };
    if let Some(below) = below {
        let node = rules.tree.node(id);
        check_child(rules, below, node.kind, &node.name)
            .map_err(|why| format!("Plug command failed. {why}"))?;
        let old = rules.tree.path(id);
        let moved = rules.move_below(id, below);
        let moved = moved.map_err(|why| format!("Plug command failed. {why}"))?;
        let new = rules.tree.path(moved);
        // What users give for jobs and scripts there is known by their paths.
        let edited = std::mem::take(&mut parts.edited).into_iter();
        let edited = edited.map(|(path, one)| match at_or_below(&path, &old) {
            Some(rest) => (format!("{new}{rest}"), one),
            None => (path, one),
        });
        parts.edited = edited.collect();
    }
    remember(parts, rules, request, &destination);
    Ok(Told::Reply(Reply::OK))
}

/// Takes a node that another server sends.
pub(super) fn take(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    (text, destination): (&str, &str),
) -> Result<Told, String> {
    let parsed = parse_node(text, "the node that is moved")
        .map_err(|why| format!("Plug(Move) command failed. Error in source:\n{why}"))?;
    let node = only_node(&parsed.tree)
        .ok_or_else(|| "Plug(Move) command failed. Error in source: not one node".to_owned())?;
    let (kind, name) = (parsed.tree.node(node).kind, parsed.tree.node(node).name.clone());
    let parent = if destination.is_empty() {
        if kind != Kind::Suite {
            return Err("::Destination path can only be empty when moving a whole suite to a new \
                        server"
                .to_owned());
        }
        if rules.tree.child(NodeId::ROOT, &name).is_some() {
            return Err(format!("Add Suite failed: A Suite of name '{name}' already exist"));
        }
        NodeId::ROOT
    } else {
        let to = rules.tree.find(destination).filter(|id| *id != NodeId::ROOT);
        let to = to.ok_or_else(|| {
            format!(
                "Plug(Move) command failed. The destination path {destination} does not exist on \
                 server"
            )
        })?;
        let below = container(rules, to);
        let checked =
            below.and_then(|below| check_child(rules, below, kind, &name).map(|()| below));
        checked.map_err(|why| format!("Plug(Move) command failed. {why}"))?
    };
    let id = rules.put(&parsed.tree, node, parent, None).map_err(|why| why.to_string())?;
    if parent == NodeId::ROOT {
        parts.handles.added(&[name.to_string()]);
    }
    let of = if destination.is_empty() { rules.tree.path(id) } else { destination.to_owned() };
    remember(parts, rules, request, &of);
    Ok(Told::Reply(Reply::OK))
}

/// Takes what came of a node that was sent to another server.
pub(super) fn moved(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    path: &str,
    done: Result<(), &str>,
) {
    let before = parts.filings.moved.remove(path);
    let id = rules.tree.find(path);
    let why = match (done, before, id) {
        (Err(why), ..) => why.to_owned(),
        (Ok(()), Some(before), Some(id)) if before.is_same_below(rules.tree, id) => {
            rules.delete(id);
            return;
        }
        (Ok(()), _, None) => {
            format!(
                "{path} was moved to another server, and here it was deleted or moved meanwhile"
            )
        }
        (Ok(()), ..) => format!(
            "{path} was moved to another server, and has changed here meanwhile: it is kept here, \
             too"
        ),
    };
    parts.filings.undeleted = done.is_ok().then(|| why.clone());
    parts.effects.push(Effect::Log(Category::Error, why));
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_host_and_port_and_may_have_a_path() {
        assert_eq!(address("h:1"), Some(("h", "1", String::new())));
        assert_eq!(address("/h:1/s/f"), Some(("h", "1", "/s/f".to_owned())));
        assert_eq!(address("/s/f"), None);
        assert_eq!(address(":1/s"), None);
        assert_eq!(address("[::1]:7/s"), Some(("::1", "7", "/s".to_owned())));
    }
}
