//! Sentences about the redactor, and properties against chunking.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

/// Has characters that each encoding treats differently.
const SECRET: &str = "p4ss/W0rd+\"ö&x?";

const KEY: &str = "-----BEGIN TEST KEY-----\nc2Vjb25kIGxpbmUgb2Yga2V5\nshort\n-----END TEST KEY-----\n";

fn redactor(secrets: &[&str]) -> Redactor {
    build(secrets).expect("the secrets are fit")
}

fn build(secrets: &[&str]) -> Result<Redactor, RedactorError> {
    let mut builder = Redactor::builder();
    for (index, secret) in secrets.iter().enumerate() {
        builder.secret(format!("secret {index}"), *secret);
    }
    builder.build()
}

fn one_shot(redactor: &Redactor, text: &[u8]) -> (Vec<u8>, u64) {
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    stream.push(text, &mut out);
    let hits = stream.finish(&mut out);
    (out, hits)
}

fn redact(redactor: &Redactor, text: &str) -> String {
    String::from_utf8(one_shot(redactor, text.as_bytes()).0).expect("the secrets are UTF-8")
}

#[test]
fn every_encoding_of_a_secret_is_replaced() {
    // Written by other programs: base64, xxd, Python's urllib and json, PHP, Go, .NET.
    let encodings = [
        SECRET,
        "cDRzcy9XMHJkKyLDtiZ4Pw==",
        "cDRzcy9XMHJkKyLDtiZ4Pw",
        "703473732f573072642b22c3b626783f",
        "703473732F573072642B22C3B626783F",
        "p4ss%2FW0rd%2B%22%C3%B6%26x%3F",
        "p4ss%2fW0rd%2b%22%c3%b6%26x%3f",
        "p4ss/W0rd%2B%22%C3%B6%26x%3F",
        "p4ss/W0rd+%22%C3%B6&x?",
        "%70%34%73%73%2F%57%30%72%64%2B%22%C3%B6%26%78%3F",
        r#"p4ss/W0rd+\"ö&x?"#,
        r#"p4ss/W0rd+\"\u00f6&x?"#,
        r#"p4ss\/W0rd+\"\u00f6&x?"#,
        r#"p4ss/W0rd+\"ö\u0026x?"#,
        r"p4ss/W0rd\u002B\u0022\u00F6\u0026x?",
        r#"p4ss/W0rd+\\\"ö&x?"#,
        r"\u0070\u0034\u0073\u0073\u002f\u0057\u0030\u0072\u0064\u002b\u0022\u00f6\u0026\u0078\u003f",
    ];
    let redactor = redactor(&[SECRET]);
    for encoding in encodings {
        assert_eq!(redact(&redactor, &format!("a {encoding} b")), "a [redacted] b", "{encoding}");
        assert!(redactor.contains_secret(encoding.as_bytes()), "{encoding}");
    }
}

#[test]
fn a_secret_inside_a_longer_base64_text_leaves_at_most_its_edges() {
    let redactor = redactor(&[SECRET]);
    for before in ["", "u", "us", "use", "user:"] {
        for after in ["", "!", "@h", "@host"] {
            for encode in [&STANDARD as &dyn Fn64, &URL_SAFE_NO_PAD] {
                let text = encode.text(&format!("{before}{SECRET}{after}"));
                let out = redact(&redactor, &text);
                let rest = out.replacen(MARKER, "", 1);
                assert_ne!(out, rest, "{text}");
                let foreign = (before.len() + after.len()) * 8 / 6;
                assert!(rest.trim_end_matches('=').len() <= foreign + 4, "{text} became {out}");
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Both alphabets behind one type.
trait Fn64 {
    fn text(&self, text: &str) -> String;
}

impl<E: base64::Engine> Fn64 for E {
    fn text(&self, text: &str) -> String {
        self.encode(text)
    }
}

#[test]
fn a_value_with_a_line_end_is_known_without_it() {
    let redactor = redactor(&["trailing-newline-key\r\n"]);
    assert_eq!(redact(&redactor, "<trailing-newline-key>"), "<[redacted]>");
    let encoded = STANDARD.encode("trailing-newline-key\r\n");
    assert_eq!(redact(&redactor, &format!("<{encoded}>")), "<[redacted]>");
}

#[test]
fn each_line_of_a_value_is_a_secret_but_armour_and_short_ones() {
    let redactor = redactor(&[KEY]);
    assert_eq!(redact(&redactor, "x c2Vjb25kIGxpbmUgb2Yga2V5 y"), "x [redacted] y");
    assert_eq!(redact(&redactor, "-----BEGIN TEST KEY----- short"), "-----BEGIN TEST KEY----- short");
    assert_eq!(redact(&redactor, &format!("{KEY}.")), "[redacted]\n.");
    let other = STANDARD.encode("-----BEGIN TEST KEY-----\nanother key\n-----END TEST KEY-----\n");
    assert_eq!(redact(&redactor, &other), other);
}

#[test]
fn a_long_value_is_covered_whole_in_every_encoding() {
    let long = (0..900).fold(String::new(), |text, index| text + &format!("{index:x}ö"));
    let redactor = redactor(&[&long]);
    assert!(redactor.window() < 2048);
    let hex = hex(long.as_bytes());
    let json = serde_json::to_string(&long).expect("a string");
    for text in [&long, &hex, &json[1..json.len() - 1], &STANDARD.encode(&long)] {
        let out = redact(&redactor, text);
        assert_eq!(out.trim_end_matches('='), MARKER);
    }
    let inside = redact(&redactor, &STANDARD.encode(format!("x{long}")));
    assert!(inside.starts_with("eM[") || inside.starts_with("eD["), "{inside}");
    assert_eq!(inside.matches(MARKER).count(), 1, "{inside}");
    let wrapped = STANDARD.encode(&long).as_bytes().chunks(76).collect::<Vec<_>>().join(&b'\n');
    let (out, hits) = one_shot(&redactor, &wrapped);
    assert_eq!(String::from_utf8_lossy(&out).replace(MARKER, "").trim(), "");
    assert_eq!(hits, wrapped.split(|byte| *byte == b'\n').count() as u64);
}

#[test]
fn overlapping_and_adjacent_secrets_become_one_marker() {
    let redactor = redactor(&["abcdefgh12", "gh12345678"]);
    assert_eq!(redact(&redactor, "<abcdefgh12345678>"), "<[redacted]>");
    assert_eq!(redact(&redactor, "<abcdefgh12abcdefgh12>"), "<[redacted]>");
    assert_eq!(redact(&redactor, "<abcdefgh12,abcdefgh12>"), "<[redacted],[redacted]>");
}

#[test]
fn a_marker_never_completes_a_secret() {
    let tricky = redactor(&["password[", "another-secret"]);
    let out = redact(&tricky, "passwordanother-secret");
    assert_eq!(out, "password<redacted>");
    assert!(!tricky.contains_secret(out.as_bytes()));
    assert_eq!(build(&["redacted"]).expect_err("is in every marker"), RedactorError::NoMarker);
}

#[test]
fn unfit_secrets_are_refused_without_being_shown() {
    for short in ["", "\n", "1234567", "1234567\n\n", "   1234567   "] {
        let error = build(&["long enough", short]).expect_err("too short");
        assert_eq!(error, RedactorError::SecretTooShort { name: "secret 1".to_owned() });
        assert!(!format!("{error} {error:?}").contains("234567"));
    }
    assert!(build(&["12345678"]).is_ok());
    let longest = "x".repeat(MAX_SECRET_BYTES);
    assert!(build(&[&longest]).is_ok());
    let error = build(&[&format!("{longest}x")]).expect_err("too long");
    assert_eq!(error, RedactorError::SecretTooLong { name: "secret 0".to_owned() });
}

#[test]
fn debug_shows_no_secret() {
    let mut builder = Redactor::builder();
    builder.secret("the key", "hunter2hunter2");
    let redactor = builder.build().expect("fit");
    let mut stream = redactor.stream();
    stream.push(b"hunter2hunter2", &mut Vec::new());
    let mut text = redactor.text_stream();
    let _ = text.push(b"hunter2hunter2");
    let mut scan = redactor.secret_scan();
    scan.push(b"hunter2hunter");
    let shown = format!("{builder:?} {redactor:?} {stream:?} {text:?} {scan:?}");
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(!shown.contains("104, 117"), "{shown}");
}

#[test]
fn shapes_of_credentials_are_replaced() {
    let key = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl_-";
    let cases = [
        (format!("k=sk-ant-api03-{key}-x_y;"), "k=[redacted];"),
        (format!("k=sk-proj-{key}"), "k=[redacted]"),
        (format!("k=sk-{key}"), "k=[redacted]"),
        (format!(r#""a\nsk-{key}""#), r#""a\n[redacted]""#),
        (format!("ghp_{key} gho_{key} ghs_{key}"), "[redacted] [redacted] [redacted]"),
        (format!("ghu_{key},ghr_{key}"), "[redacted],[redacted]"),
        (format!("github_pat_{key}_{key}"), "[redacted]"),
        (format!("glpat-{key}"), "[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE/ASIAIOSFODNN7EXAMPLE".to_owned(), "[redacted]/[redacted]"),
        ("xoxb-123456789012-abc".to_owned(), "[redacted]"),
        (format!("AIza{key}"), "[redacted]"),
        (format!("npm_{key}"), "[redacted]"),
        (format!("t {jwt} t"), "t [redacted] t"),
        (format!("Bearer {key}=="), "Bearer [redacted]"),
        ("Authorization: Basic dXNlcjpwYXNz".to_owned(), "Authorization: Basic [redacted]"),
        (
            r#"\"authorization\": \"bearer abc123x\""#.to_owned(),
            r#"\"authorization\": \"bearer [redacted]\""#,
        ),
        ("https://user:p@ss@host/x@y".to_owned(), "https://[redacted]@host/x@y"),
        (r"https:\/\/token@host\/".to_owned(), r"https:\/\/[redacted]@host\/"),
    ];
    let redactor = Redactor::without_secrets();
    for (text, expected) in cases {
        assert_eq!(redact(&redactor, &text), expected, "{text}");
        assert!(!redactor.contains_secret(text.as_bytes()));
    }
}

#[test]
fn a_private_key_is_replaced_from_its_first_line_to_its_last() {
    let redactor = Redactor::without_secrets();
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(3000);
        let text = format!("<-----BEGIN {label}-----\n{body}-----END {label}----->\nand more\n");
        assert_eq!(redact(&redactor, &text), "<[redacted]>\nand more\n");
        let escaped = text.replace('\n', "\\n");
        assert_eq!(redact(&redactor, &escaped), "<[redacted]>\\nand more\\n");
    }
    let public = "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n";
    assert_eq!(redact(&redactor, public), public);
}

#[test]
fn ordinary_text_is_left_alone() {
    let redactor = redactor(&[SECRET, KEY]);
    for text in [
        "see https://example.com/a@b and ssh://host:22/x, ask-me, disk-usage-of-the-main-volume-is-high",
        "task-0123456789abcdef0123456789",
        "sk-learn and sk-ant- and ghp_ and AKIA and eyJ and eyJhbGciOiJI.x",
        "Bearer tokensandotherlongwords are words, Authorization: none, authorization = Basic auth",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN CERTIFICATE-----\r\n\u{1b}[31mred\u{1b}[0m",
    ] {
        assert_eq!(redact(&redactor, text), text);
    }
}

#[test]
fn text_has_no_secret_that_only_sanitizing_puts_together() {
    let redactor = redactor(&["hunter2hunter2", "with\u{1b}[1mcontrol\u{7}s"]);
    for text in [
        "hunter2\u{200b}hunter2",
        "hunter2\u{1b}[31mhunter2",
        "hunter2\u{202e}hunter2",
        "hunter2\u{1b}]0;title\u{7}hunter2",
        "hunter2\0hunter2",
        "hunter2hunter2",
        "with\u{1b}[1mcontrol\u{7}s",
    ] {
        assert_eq!(redactor.text(&format!("<{text}>")).as_str(), "<[redacted]>", "{text:?}");
    }
}

#[test]
fn a_binary_secret_leaves_valid_text() {
    let mut builder = Redactor::builder();
    builder.secret("binary", [0x80, 0xbf, b'a', b'b', b'c', b'd', b'e', 0xc3]);
    let redactor = builder.build().expect("fit");
    let text = redactor.text("é\u{20ac}\u{10ffff}");
    assert_eq!(text.as_str(), "é\u{20ac}");
    let cut = redactor.bytes(b"x\xe1\x80\xbfabcde\xc3\xb6y");
    assert_eq!(cut.as_str(), "x\u{fffd}[redacted]\u{fffd}y");
}

#[test]
fn a_secret_is_found_across_pushes_of_a_scan() {
    let redactor = redactor(&["hunter2hunter2"]);
    let mut scan = redactor.secret_scan();
    assert!(!scan.push(b"say hunter2hun"));
    assert!(!scan.found());
    assert!(scan.push(b"ter2 now"));
    assert!(scan.push(b"still"));
    let mut clean = redactor.secret_scan();
    assert!(!clean.push(b"hunter2 hunter2"));
}

#[test]
fn the_longest_needle_is_found_byte_by_byte() {
    let secret = "k9".repeat(64);
    let redactor = redactor(&[&secret]);
    let escaped: String = "\\\\u006b\\\\u0039".repeat(64);
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    for byte in format!("<{escaped}>").bytes() {
        stream.push(&[byte], &mut out);
    }
    stream.finish(&mut out);
    assert_eq!(String::from_utf8_lossy(&out), "<[redacted]>");
}

#[test]
fn windows_and_blocks_have_no_seams() {
    let redactor = known();
    let header = "A".repeat(1000);
    let secrets = [
        "hunter2hunter2".to_owned(),
        format!("eyJ{header}.eyJ{header}.{header}"),
        format!("://{header}@host"),
        format!("://{header}{header}@host"),
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", header.repeat(100)),
    ];
    let mut text = String::new();
    for index in 0..400 {
        text.push_str(&secrets[if index % 50 == 0 { 4 } else { index % 4 }]);
        text.push_str(&". ".repeat(index % 97));
    }
    let expected = one_shot(&redactor, text.as_bytes());
    assert!(text.len() > 4 * 64 * 1024);
    for size in [7, 1000, 4096, 64 * 1024 - 1, 100_000] {
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        for chunk in text.as_bytes().chunks(size) {
            stream.push(chunk, &mut out);
            assert!(stream.pending() <= redactor.window());
        }
        let hits = stream.finish(&mut out);
        assert!((out, hits) == expected, "chunks of {size}");
    }
    let text = String::from_utf8(expected.0).expect("ASCII");
    assert!(!text.contains("hunter2") && !text.contains("eyJ"));
}

#[test]
fn flush_gives_out_all_but_a_possible_beginning() {
    let redactor = redactor(&["hunter2hunter2"]);
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    stream.push(b"a line\nhunt", &mut out);
    stream.flush(&mut out);
    assert_eq!(out, b"a line\n");
    stream.push(b"ers, sk", &mut out);
    stream.flush(&mut out);
    assert_eq!(out, b"a line\nhunters, ");
    stream.push(b"y\n", &mut out);
    stream.flush(&mut out);
    assert_eq!(out, b"a line\nhunters, sky\n");
    assert_eq!(stream.pending(), 0);
    assert_eq!(stream.hits(), 0);
}

#[test]
fn truncation_keeps_code_points() {
    let text = Redacted::fixed("aöb");
    assert_eq!(text.clone().truncate_end(2), (Redacted::fixed("a"), true));
    assert_eq!(text.clone().truncate_end(3), (Redacted::fixed("aö"), true));
    assert_eq!(text.clone().truncate_start(2), (Redacted::fixed("b"), true));
    assert_eq!(text.clone().truncate_start(0), (Redacted::fixed(""), true));
    assert_eq!(text.clone().truncate_start(4), (text.clone(), false));
    assert_eq!(text.clone().truncate_end(9), (text, false));
}

#[test]
fn redacted_text_serializes_as_a_string() {
    assert_eq!(serde_json::to_string(&Redacted::fixed("a\"b")).expect("a string"), r#""a\"b""#);
}

/// Text that is full of secrets, parts of them, and beginnings of rules.
fn hostile_text() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop_oneof![
        3 => prop::sample::select(PARTS).prop_map(|part| part.as_bytes().to_vec()),
        1 => prop::sample::select(PARTS).prop_flat_map(|part| {
            (0..=part.len()).prop_map(move |cut| part.as_bytes()[..cut].to_vec())
        }),
        1 => prop::collection::vec(any::<u8>(), 0..6),
        1 => "[A-Za-z0-9_.-]{0,60}".prop_map(String::into_bytes),
        1 => prop::sample::select(PARTS).prop_map(|part| STANDARD.encode(part).into_bytes()),
    ];
    prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

const PARTS: &[&str] = &[
    "hunter2hunter2",
    "2hunter2hun",
    SECRET,
    KEY,
    "sk-ant-api03-A1b2C3d4E5f6G7h8I9j0K1l2",
    "sk-A1b2C3d4E5f6G7h8I9j0K1l2",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "Bearer A1b2C3d4E5f6G7h8I9",
    "Authorization: Basic dXNlcjpwYXNz",
    "https://user:pass@host/",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIB\n",
    "-----END PRIVATE KEY-----",
    "\u{1b}[31m",
    "\u{1b}]0;t\u{7}",
    "\r\n",
    "\u{200b}",
    "ö\u{202e}",
    "[redacted]",
    " ",
];

fn known() -> Redactor {
    static KNOWN: LazyLock<Redactor> =
        LazyLock::new(|| redactor(&["hunter2hunter2", "2hunter2hun", SECRET, KEY]));
    KNOWN.clone()
}

proptest! {
    #[test]
    fn output_does_not_depend_on_chunks(
        text in hostile_text(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..8),
    ) {
        let redactor = known();
        let mut positions: Vec<_> = cuts.iter().map(|(at, flush)| (at.index(text.len() + 1), *flush)).collect();
        positions.sort_unstable();
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        let mut visible = redactor.text_stream();
        let mut seen = String::new();
        let mut from = 0;
        for (at, flush) in positions {
            stream.push(&text[from..at], &mut out);
            seen.push_str(visible.push(&text[from..at]).as_str());
            prop_assert!(stream.pending() <= redactor.window());
            if flush {
                stream.flush(&mut out);
                seen.push_str(visible.flush().as_str());
            }
            from = at;
        }
        stream.push(&text[from..], &mut out);
        seen.push_str(visible.push(&text[from..]).as_str());
        seen.push_str(visible.finish().as_str());
        let hits = stream.finish(&mut out);
        prop_assert_eq!((out, hits), one_shot(&redactor, &text));
        prop_assert_eq!(seen, redactor.bytes(&text).into_string());
    }

    #[test]
    fn output_does_not_change_byte_by_byte(text in hostile_text(), flush in any::<bool>()) {
        let redactor = known();
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        let mut scan = redactor.secret_scan();
        for byte in &text {
            stream.push(&[*byte], &mut out);
            scan.push(&[*byte]);
            if flush {
                stream.flush(&mut out);
            }
        }
        let hits = stream.finish(&mut out);
        prop_assert_eq!(scan.found(), redactor.contains_secret(&text));
        prop_assert_eq!((out, hits), one_shot(&redactor, &text));
    }

    #[test]
    fn no_secret_survives(text in hostile_text()) {
        let redactor = known();
        let holds = |text: &[u8], secret: &str| text.windows(secret.len()).any(|part| part == secret.as_bytes());
        let text_out = redactor.bytes(&text);
        for out in [one_shot(&redactor, &text).0, text_out.as_str().into()] {
            prop_assert!(!redactor.contains_secret(&out));
            for secret in ["hunter2hunter2", "2hunter2hun", SECRET, "c2Vjb25kIGxpbmUgb2Yga2V5"] {
                prop_assert!(!holds(&out, secret));
                prop_assert!(!holds(&out, &STANDARD.encode(secret)));
            }
        }
        let mut clean = String::new();
        let mut sanitizer = Sanitizer::default();
        sanitizer.push(text_out.as_str().as_bytes(), &mut clean);
        sanitizer.finish(&mut clean);
        prop_assert_eq!(text_out.as_str(), clean);
    }

    #[test]
    fn any_secret_is_found_in_any_surroundings(
        secret in prop_oneof![
            prop::collection::vec(any::<u8>(), 8..150),
            "[ -~]{8,150}".prop_map(String::into_bytes),
        ],
        before in prop::collection::vec(any::<u8>(), 0..40),
        after in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut builder = Redactor::builder();
        builder.secret("any", secret.clone()).without_rules();
        let Ok(redactor) = builder.build() else { return Ok(()) };
        let hex = hex(&secret);
        for form in [secret, hex.into_bytes()] {
            let (out, hits) = one_shot(&redactor, &[&before[..], &form, &after].concat());
            prop_assert!(hits > 0);
            prop_assert!(!redactor.contains_secret(&out));
        }
    }

    #[test]
    fn the_search_finds_what_a_naive_one_finds(
        base in prop::collection::vec(0_u8..3, 40),
        slices in prop::collection::vec((0_usize..32, 8_usize..24), 1..12),
        parts in prop::collection::vec((0_usize..40, 0_usize..40), 0..12),
        range in (0_usize..300, 0_usize..300),
    ) {
        // Needles and text are slices of one text, so that needles lie in others and in parts of others.
        let slice = |&(start, len): &(usize, usize)| base[start..base.len().min(start + len)].to_vec();
        let needles: BTreeSet<_> = slices.iter().map(slice).collect();
        let text = parts.iter().flat_map(slice).collect::<Vec<_>>();
        let exact = Exact::new(needles.clone()).expect("some needles");
        let (from, to) = (range.0.min(text.len()), range.1.min(text.len()));
        let mut found = Vec::new();
        exact.find(&text, from, to, |start, end| found.push((start, end)));
        let longest = |start: usize| {
            let fits = needles.iter().filter(|needle| text[start..].starts_with(needle));
            fits.map(|needle| (start, start + needle.len())).max()
        };
        prop_assert_eq!(found, (from..to).filter_map(longest).collect::<Vec<_>>());
    }
}
