//! Shapes of well-known credentials, for those that nobody named.
//!
//! A rule is found by a literal, decided within [`MAX_LOOKAHEAD`] bytes after it, and may then swallow any number of
//! further bytes through a [`Tail`], so that a stream needs no long window.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, Match, Span, packed};

use super::tail::{Class, Tail};

/// Most bytes from the start of a literal on that decide whether it is a credential.
pub(super) const MAX_LOOKAHEAD: usize = MAX_LITERAL + JWT_HEADER_MAX + JWT_SECOND.len() + MIN_JWT_PART;

/// Bytes before a literal that a rule may look at.
pub(super) const LOOKBEHIND: usize = 2;

/// Most characters of the header of a JSON Web Token; with a certificate chain in it, it is no longer recognised.
const JWT_HEADER_MAX: usize = 1024;

/// What the second part of a JSON Web Token begins with.
const JWT_SECOND: &[u8] = b".eyJ";

/// Fewest characters in each of the first two parts of a JSON Web Token after its `eyJ`.
const MIN_JWT_PART: usize = 6;

/// Most bytes of the user and password of a URL.
const USERINFO_MAX: usize = JWT_HEADER_MAX;

/// Fewest characters of a token after `Authorization: SCHEME`.
const MIN_AUTHORIZATION: usize = 6;

/// Fewest characters of a token after `Bearer` alone, which is also an English word.
const MIN_BEARER: usize = 16;

/// What a rule says about a literal at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No credential.
    No,
    /// It depends on text that has not arrived.
    More,
    /// The bytes `from..end` are secret, and those after them as long as `tail` goes on.
    Yes { from: usize, end: usize, tail: Tail },
}

#[derive(Clone, Copy)]
enum Rule {
    /// At least `min` characters of a class.
    Token {
        min: usize,
        class: Class,
    },
    /// `sk-` and its families.
    SecretKey,
    Jwt,
    Bearer,
    Authorization,
    UserInfo,
    PrivateKey,
}

const fn token(min: usize, class: Class) -> Rule {
    Rule::Token { min, class }
}

/// No literal may begin with another one, since the search reports one literal at each position.
const LITERALS: &[(&str, Rule)] = &[
    ("sk-", Rule::SecretKey),                 // Anthropic, OpenAI and those who copy them
    ("sk_live_", token(16, Class::AlphaNum)), // Stripe
    ("rk_live_", token(16, Class::AlphaNum)),
    ("ghp_", token(36, Class::Word)), // GitHub: personal, OAuth, server, user, refresh
    ("gho_", token(36, Class::Word)),
    ("ghs_", token(36, Class::Word)),
    ("ghu_", token(36, Class::Word)),
    ("ghr_", token(36, Class::Word)),
    ("github_pat_", token(22, Class::Word)),
    ("glpat-", token(20, Class::Dotted)), // GitLab
    ("AKIA", token(16, Class::Upper)),    // AWS: long-lived and temporary key identifiers
    ("ASIA", token(16, Class::Upper)),
    ("xoxa-", token(10, Class::Base64Url)), // Slack
    ("xoxb-", token(10, Class::Base64Url)),
    ("xoxp-", token(10, Class::Base64Url)),
    ("xoxr-", token(10, Class::Base64Url)),
    ("xoxs-", token(10, Class::Base64Url)),
    ("AIza", token(35, Class::Base64Url)), // Google
    ("npm_", token(36, Class::AlphaNum)),
    ("AGE-SECRET-KEY-1", token(50, Class::Upper)),
    ("eyJ", Rule::Jwt), // base64 of `{"`
    ("Bearer ", Rule::Bearer),
    ("bearer ", Rule::Bearer),
    ("BEARER ", Rule::Bearer),
    ("uthorization", Rule::Authorization), // either case of its first letter, also Proxy-Authorization
    ("UTHORIZATION", Rule::Authorization),
    ("://", Rule::UserInfo),
    (":\\/\\/", Rule::UserInfo), // in JSON with escaped slashes
    ("-----BEGIN ", Rule::PrivateKey),
];

/// Length of the longest literal.
pub(super) const MAX_LITERAL: usize = {
    let mut longest = 0;
    let mut rest = LITERALS;
    while let [(literal, _), others @ ..] = rest {
        if literal.len() > longest {
            longest = literal.len();
        }
        rest = others;
    }
    longest
};

/// Finds the literals, with vector instructions where the processor has them.
enum Search {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

static SEARCH: LazyLock<Option<Search>> = LazyLock::new(|| {
    let literals = || LITERALS.iter().map(|(literal, _)| literal);
    let packed = packed::Searcher::new(literals()).map(Search::Packed);
    packed.or_else(|| AhoCorasick::new(literals()).ok().map(Search::Automaton))
});

impl Search {
    fn find(&self, text: &[u8], from: usize) -> Option<Match> {
        match self {
            Self::Packed(search) => search.find_in(text, Span::from(from..text.len())),
            Self::Automaton(search) => search.find(Input::new(text).range(from..)),
        }
    }
}

/// Calls `found` with the verdict of each literal that starts within `from..to`, in ascending order, until it returns
/// false. `last` says that nothing follows `text`.
pub(super) fn find(
    text: &[u8],
    from: usize,
    to: usize,
    last: bool,
    mut found: impl FnMut(usize, Verdict) -> bool,
) {
    let Some(search) = SEARCH.as_ref() else { return };
    let end = text.len().min(to + MAX_LITERAL - 1);
    let Some(searched) = text.get(..end) else { return };
    let mut at = from;
    while at < to {
        let Some(literal) = search.find(searched, at.min(end)) else { return };
        let Some((_, rule)) = LITERALS.get(literal.pattern().as_usize()) else { return };
        if literal.start() >= to {
            return;
        }
        let verdict = rule.decide(&Place { text, start: literal.start(), after: literal.end(), last });
        if !found(literal.start(), verdict) {
            return;
        }
        at = literal.start() + 1;
    }
}

/// Whether `rest` is the beginning of a literal, and nothing but that.
pub(super) fn may_begin(rest: &[u8]) -> bool {
    LITERALS.iter().any(|(literal, _)| rest.len() < literal.len() && literal.as_bytes().starts_with(rest))
}

/// A literal in a text.
struct Place<'a> {
    text: &'a [u8],
    start: usize,
    after: usize,
    last: bool,
}

/// How a run of bytes ends.
enum Run {
    /// At a byte of another class, or where it had to stop counting.
    Ends(usize),
    /// At the end of a text that goes on.
    Open,
}

impl Place<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// What to say when the text ends before a decision.
    fn undecided(&self) -> Verdict {
        if self.last { Verdict::No } else { Verdict::More }
    }

    /// The end of the run of bytes from `at` that `belongs` accepts, counting no further than `max` bytes.
    fn run(&self, at: usize, max: usize, belongs: impl Fn(u8) -> bool) -> Run {
        let rest = self.text.get(at..).unwrap_or_default();
        let len = rest.iter().take(max).take_while(|byte| belongs(**byte)).count();
        if len == rest.len() && len < max && !self.last { Run::Open } else { Run::Ends(at + len) }
    }

    /// Secret if at least `min` bytes of `class` stand at `from`.
    fn token(&self, from: usize, min: usize, class: Class) -> Verdict {
        match self.run(from, min, |byte| class.has(byte)) {
            Run::Open => Verdict::More,
            Run::Ends(end) if end - from < min => Verdict::No,
            Run::Ends(end) => Verdict::Yes { from, end, tail: Tail::Class(class) },
        }
    }

    /// As [`token`](Self::token), with the literal as part of the secret.
    fn prefixed(&self, from: usize, min: usize, class: Class) -> Verdict {
        match self.token(from, min, class) {
            Verdict::Yes { end, tail, .. } => Verdict::Yes { from: self.start, end, tail },
            other => other,
        }
    }

    /// Whether a word begins at the literal: nothing or no letter or digit stands before it, or an escape does.
    fn begins_word(&self) -> bool {
        let Some(before) = self.start.checked_sub(1).and_then(|at| self.byte(at)) else { return true };
        let escaped = self.start.checked_sub(2).and_then(|at| self.byte(at)) == Some(b'\\');
        !(before.is_ascii_alphanumeric() || before == b'_' || before == b'-')
            || (escaped && matches!(before, b'n' | b'r' | b't'))
    }
}

impl Rule {
    fn decide(self, place: &Place<'_>) -> Verdict {
        match self {
            Self::Token { min, class } => place.prefixed(place.after, min, class),
            Self::SecretKey => secret_key(place),
            Self::Jwt => jwt(place),
            Self::Bearer => bearer(place),
            Self::Authorization => authorization(place),
            Self::UserInfo => userinfo(place),
            Self::PrivateKey => private_key(place),
        }
    }
}

/// `sk-ant-…`, `sk-proj-…` and their like, or `sk-` and 20 letters and digits where a word begins (not `disk-…`).
fn secret_key(place: &Place<'_>) -> Verdict {
    const FAMILIES: [&str; 5] = ["ant-", "proj-", "svcacct-", "admin-", "or-"];
    const MIN: usize = 20;
    let rest = place.text.get(place.after..).unwrap_or_default();
    for family in FAMILIES {
        if rest.starts_with(family.as_bytes()) {
            return place.prefixed(place.after + family.len(), MIN, Class::Base64Url);
        }
        if !place.last && family.as_bytes().starts_with(rest) {
            return Verdict::More;
        }
    }
    if !place.begins_word() {
        return Verdict::No;
    }
    match place.prefixed(place.after, MIN, Class::AlphaNum) {
        Verdict::Yes { from, end, .. } => Verdict::Yes { from, end, tail: Tail::Class(Class::Base64Url) },
        other => other,
    }
}

/// A JSON Web Token (RFC 7519): two base64url texts of JSON objects and whatever follows, with dots between.
fn jwt(place: &Place<'_>) -> Verdict {
    let Run::Ends(dot) = place.run(place.after, JWT_HEADER_MAX, |byte| Class::Base64Url.has(byte)) else {
        return Verdict::More;
    };
    if dot - place.after < MIN_JWT_PART {
        return Verdict::No;
    }
    let rest = place.text.get(dot..).unwrap_or_default();
    if rest.starts_with(JWT_SECOND) {
        place.prefixed(dot + JWT_SECOND.len(), MIN_JWT_PART, Class::Dotted)
    } else if JWT_SECOND.starts_with(rest) {
        place.undecided()
    } else {
        Verdict::No
    }
}

/// A bearer token (RFC 6750, section 2.1) outside a header: long, and not all small letters as a word is.
fn bearer(place: &Place<'_>) -> Verdict {
    let word = place.text.get(place.after..place.after + MIN_BEARER).unwrap_or_default();
    if !word.is_empty() && word.iter().all(u8::is_ascii_lowercase) {
        return Verdict::No;
    }
    place.token(place.after, MIN_BEARER, Class::Token68)
}

/// The credentials of an `Authorization` header (RFC 9110, section 11.6.2), also as a quoted JSON or code string.
fn authorization(place: &Place<'_>) -> Verdict {
    const MAX_SEPARATORS: usize = 12;
    const MAX_SCHEME: usize = 16;
    let separator =
        |byte: u8| matches!(byte, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'' | b'\\' | b',' | b'>');
    let Run::Ends(scheme) = place.run(place.after, MAX_SEPARATORS, separator) else { return Verdict::More };
    let Run::Ends(end) = place.run(scheme, MAX_SCHEME, |byte| byte.is_ascii_alphanumeric()) else {
        return Verdict::More;
    };
    let Run::Ends(credentials) = place.run(end, MAX_SEPARATORS, |byte| byte == b' ') else {
        return Verdict::More;
    };
    if scheme == place.after || end == scheme || credentials == end {
        return Verdict::No;
    }
    let known = [&b"basic"[..], b"bearer", b"token", b"digest", b"negotiate"];
    let scheme = place.text.get(scheme..end).unwrap_or_default();
    if known.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        place.token(credentials, MIN_AUTHORIZATION, Class::Token68)
    } else {
        Verdict::No
    }
}

/// User and password of a URL (RFC 3986, section 3.2.1), up to the last `@` before the host ends.
fn userinfo(place: &Place<'_>) -> Verdict {
    let ends = |byte: u8| {
        byte <= b' ' || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'\\' | b'`' | 0x7f)
    };
    let Run::Ends(end) = place.run(place.after, USERINFO_MAX, |byte| !ends(byte)) else {
        return Verdict::More;
    };
    let authority = place.text.get(place.after..end).unwrap_or_default();
    match authority.iter().rposition(|byte| *byte == b'@') {
        None | Some(0) => Verdict::No,
        Some(len) => Verdict::Yes { from: place.after, end: place.after + len, tail: Tail::None },
    }
}

/// A private key in PEM (RFC 7468) or `OpenPGP` armour, from its first line to its last.
fn private_key(place: &Place<'_>) -> Verdict {
    const MAX_LABEL: usize = 48;
    let label = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    let Run::Ends(end) = place.run(place.after, MAX_LABEL, label) else { return Verdict::More };
    let text = place.text.get(place.after..end).unwrap_or_default();
    let dashes = place.text.get(end..).unwrap_or_default();
    if !text.ends_with(b"PRIVATE KEY") && !text.ends_with(b"PRIVATE KEY BLOCK") {
        Verdict::No
    } else if dashes.starts_with(b"-----") {
        Verdict::Yes { from: place.start, end: end + 5, tail: Tail::KEY }
    } else if b"-----".starts_with(dashes) {
        place.undecided()
    } else {
        Verdict::No
    }
}
