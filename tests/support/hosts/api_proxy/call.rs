//! What a request asks of a Kubernetes API server, read from its method and URI alone.

use std::fmt;

use hyper::{Method, Uri};

/// What the API server authorises: a verb on a resource. `get` and the like also stand for paths without a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// One request. It holds neither headers nor body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// The method.
    pub(crate) method: Method,
    /// The path with its query.
    pub(crate) path: String,
    /// What is asked.
    pub(crate) verb: Verb,
    /// The resource in plural, with its subresource if there is one: `pods`, `pods/log`. Empty if the path has none.
    pub(crate) resource: String,
    /// The namespace, empty for what has none or is asked of all.
    pub(crate) namespace: String,
    /// The object's name, empty for a collection.
    pub(crate) name: String,
}

impl Call {
    /// Reads a request, as the API server's `RequestInfo` does.
    pub(crate) fn parse(method: &Method, uri: &Uri) -> Self {
        let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let below = match segments[..] {
            ["api", _, ref below @ ..] | ["apis", _, _, ref below @ ..] => below,
            _ => &[],
        };
        let (namespace, below) = match below {
            // `namespaces/NAME` itself, and these two of its subresources, are no path inside the namespace.
            ["namespaces", namespace, below @ ..] if !matches!(below, [] | ["status" | "finalize"]) => {
                (*namespace, below)
            }
            below => ("", below),
        };
        let (resource, name) = match below {
            [] => (String::new(), ""),
            [resource] => ((*resource).to_owned(), ""),
            [resource, name] => ((*resource).to_owned(), *name),
            [resource, name, subresource, ..] => (format!("{resource}/{subresource}"), *name),
        };
        let collection = name.is_empty() && !resource.is_empty();
        let watch = uri.query().is_some_and(|query| {
            query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1" | "watch"))
        });
        let verb = match (method.as_str(), collection) {
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", true) => Verb::DeleteCollection,
            ("DELETE", false) => Verb::Delete,
            (_, true) if watch => Verb::Watch,
            (_, true) => Verb::List,
            (_, false) => Verb::Get,
        };
        Self {
            method: method.clone(),
            path: uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Which requests. What isn't set matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Match {
    method: Option<Method>,
    path: Option<String>,
    verbs: Vec<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Match {
    /// Every request.
    pub(crate) fn any() -> Self {
        Self::default()
    }

    /// Every request that changes something.
    pub(crate) fn writes() -> Self {
        let verbs = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
        Self { verbs: verbs.into(), ..Self::default() }
    }

    /// One verb on a resource, or on a subresource such as `pods/status`. Neither stands for the other.
    pub(crate) fn of(verb: Verb, resource: &str) -> Self {
        Self { verbs: vec![verb], ..Self::default() }.resource(resource)
    }

    #[must_use]
    pub(crate) fn method(self, method: Method) -> Self {
        Self { method: Some(method), ..self }
    }

    /// What a path starts with.
    #[must_use]
    pub(crate) fn path(self, prefix: &str) -> Self {
        Self { path: Some(prefix.to_owned()), ..self }
    }

    #[must_use]
    pub(crate) fn resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    #[must_use]
    pub(crate) fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    #[must_use]
    pub(crate) fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Whether a request is meant.
    pub(crate) fn matches(&self, call: &Call) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, actual: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == actual)
        }
        is(self.method.as_ref(), &call.method)
            && self.path.as_ref().is_none_or(|prefix| call.path.starts_with(prefix))
            && (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && is(self.resource.as_ref(), &call.resource)
            && is(self.namespace.as_ref(), &call.namespace)
            && is(self.name.as_ref(), &call.name)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.path)
    }
}
