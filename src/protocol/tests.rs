//! Round trips, hostile bytes and limits of the protocol.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn launch() -> Launch {
    Launch {
        program: "/bin/echo".into(),
        argv: vec!["echo".into(), "--".into(), "secret-prompt".into()],
        environment: vec![("NAME".into(), "secret-value".into())],
        working_directory: "/secret-directory".into(),
        stdin: Stdin::Bytes(b"secret-stdin".to_vec()),
        files: vec![LaunchFile { path: "/secret-path".into(), content: b"secret-content".to_vec() }],
        limits: Limits {
            timeout: Duration::from_mins(1),
            grace: Duration::from_secs(5),
            max_output_bytes: 1 << 20,
            processes: Some(512),
        },
        live_output: true,
    }
}

fn report() -> ExecReport {
    ExecReport {
        outcome: Outcome::TerminationFailed(Some(Ended::Stopped(StopReason::ControlLost))),
        exit: Some(Exit::by_signal(9)),
        system_code: Some(SystemCode::process_limit()),
        termination_method: TerminationMethod::Sigkill,
        timeout: false,
        stdout: StreamReport { bytes: 7, truncated: true, complete: false },
        stderr: StreamReport::default(),
        leftovers: 3,
        duration: Duration::from_millis(1234),
    }
}

fn encoded<R: Record>(record: &R) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(&mut out).unwrap();
    out
}

/// Decodes `bytes` cut into pieces of the given lengths (repeated), until the end or an error.
fn decoded<R: Record>(bytes: &[u8], cuts: &[usize], max: u64) -> (Vec<R>, Option<DecodeError>) {
    let (mut decoder, mut records) = (Decoder::new(max), Vec::new());
    let mut cuts = cuts.iter().cycle();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (mut piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
        rest = after;
        loop {
            match decoder.decode(&mut piece) {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.decode(&mut piece).err(), Some(DecodeError::AlreadyFailed));
                    return (records, Some(error));
                }
            }
        }
        assert!(piece.is_empty());
    }
    (records, None)
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    bytes.push(kind);
    bytes.extend_from_slice(body);
    bytes
}

fn error_of(bytes: &[u8]) -> Option<DecodeError> {
    decoded::<ToRunner>(bytes, &[usize::MAX], MAX_PAYLOAD).1
}

#[test]
fn every_record_to_the_supervisor_survives_the_way() {
    let hello = encoded(&ToSupervisor::Hello { version: 1, pid: 7, token: Token::from_bytes([9; 32]) });
    let (records, error) = decoded::<ToSupervisor>(&hello, &[3], MAX_PAYLOAD);
    assert_eq!(error, None);
    match records.as_slice() {
        [ToSupervisor::Hello { version: 1, pid: 7, token }] => {
            assert!(token.matches(&Token::from_bytes([9; 32])));
            let mut other = [9; 32];
            other[31] = 8;
            assert!(!token.matches(&Token::from_bytes(other)));
        }
        other => panic!("{other:?}"),
    }

    let exited =
        encoded(&ToSupervisor::Exited { report: report(), stdout: b"out".to_vec(), stderr: Vec::new() });
    match decoded(&exited, &[1], MAX_PAYLOAD).0.as_slice() {
        [ToSupervisor::Exited { report: read, stdout, stderr }] => {
            assert_eq!((read, stdout.as_slice(), stderr.as_slice()), (&report(), &b"out"[..], &b""[..]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_wire_format_is_the_documented_one() {
    let stop = ToRunner::Stop(Stop { reason: StopReason::ControlLost, grace: Duration::from_secs(5) });
    assert_eq!(encoded(&stop), frame(1, br#"{"stop":{"reason":"control-lost","grace_ms":5000}}"#));

    let output = ToSupervisor::Output { stream: Stream::Stderr, bytes: b"x".to_vec() };
    let expected = [frame(1, br#"{"output":{"stream":"stderr","bytes":1}}"#), frame(2, b"x")].concat();
    assert_eq!(encoded(&output), expected);

    let exited = ToSupervisor::Exited { report: report(), stdout: Vec::new(), stderr: Vec::new() };
    let json = concat!(
        r#"{"exited":{"report":{"outcome":{"termination-failed":{"stopped":"control-lost"}},"#,
        r#""exit":{"code":-1,"signal":9},"system_code":"PROCESS_LIMIT","termination_method":"sigkill","timeout":false,"#,
        r#""stdout":{"bytes":7,"truncated":true,"complete":false},"stderr":{"bytes":0,"truncated":false,"complete":false},"#,
        r#""leftovers":3,"duration_ms":1234},"stdout":0,"stderr":0}}"#
    );
    assert_eq!(encoded(&exited), frame(1, json.as_bytes()));
}

#[test]
fn nothing_secret_is_in_a_header_or_a_debug_text() {
    let record = ToRunner::Launch(Box::new(launch()));
    let bytes = encoded(&record);
    let header_length = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[5..5 + header_length].to_vec()).unwrap();
    assert!(!header.contains("secret"), "{header}");

    let output = ToSupervisor::Output { stream: Stream::Stdout, bytes: b"secret".to_vec() };
    let exited =
        ToSupervisor::Exited { report: report(), stdout: b"secret".to_vec(), stderr: b"secret".to_vec() };
    let hello = ToSupervisor::Hello { version: 1, pid: 1, token: Token::from_bytes([115; 32]) };
    let debug = format!("{record:?}{output:?}{exited:?}{hello:?}");
    assert!(!debug.contains("secret") && !debug.contains("115"), "{debug}");
}

type Spoil = fn(&mut Launch);

#[test]
fn a_launch_that_nobody_can_start_is_refused_by_both_ends() {
    let table: Vec<(&str, LaunchError, Spoil)> = vec![
        ("argument", LaunchError::Nul { field: "argument" }, |l| l.argv.push("a\0b".into())),
        ("variable", LaunchError::Nul { field: "environment" }, |l| {
            l.environment.push(("A".into(), "\0".into()));
        }),
        ("name", LaunchError::Nul { field: "environment" }, |l| {
            l.environment.push(("A\0".into(), "b".into()));
        }),
        ("program", LaunchError::Nul { field: "program" }, |l| l.program = "/a\0".into()),
        ("file", LaunchError::Nul { field: "file path" }, |l| l.files[0].path = "/a\0".into()),
        ("relative", LaunchError::NotAbsolute { field: "program" }, |l| l.program = "echo".into()),
        ("directory", LaunchError::NotAbsolute { field: "working directory" }, |l| {
            l.working_directory = ".".into();
        }),
        ("no argv", LaunchError::NoArguments, |l| l.argv.clear()),
        ("empty name", LaunchError::VariableName, |l| l.environment.push(("".into(), "x".into()))),
        ("name with =", LaunchError::VariableName, |l| l.environment.push(("A=B".into(), "x".into()))),
        ("timeout", LaunchError::LimitTooLarge { limit: "timeout" }, |l| l.limits.timeout = Duration::MAX),
        ("grace", LaunchError::LimitTooLarge { limit: "grace" }, |l| {
            l.limits.grace = MAX_DURATION + Duration::from_millis(1);
        }),
        ("tail", LaunchError::LimitTooLarge { limit: "output limit" }, |l| {
            l.limits.max_output_bytes = MAX_TAIL + 1;
        }),
    ];
    for (case, expected, spoil) in table {
        let mut bad = launch();
        spoil(&mut bad);
        let mut out = Vec::new();
        let refused = ToRunner::Launch(Box::new(bad)).encode(&mut out);
        assert_eq!(refused, Err(EncodeError::Launch(expected)), "{case}");
        assert!(out.is_empty(), "{case}");
    }

    // A peer that doesn't check: the same launch with one argument byte turned into NUL on the wire.
    let mut bytes = encoded(&ToRunner::Launch(Box::new(launch())));
    let at = bytes.windows(13).position(|window| window == b"secret-prompt").unwrap();
    bytes[at] = 0;
    assert_eq!(error_of(&bytes), Some(DecodeError::Launch(LaunchError::Nul { field: "argument" })));
}

#[test]
fn a_broken_stream_is_refused_with_its_reason() {
    let stop = br#"{"stop":{"reason":"cancelled","grace_ms":1}}"#;
    assert_eq!(error_of(&frame(3, b"x")), Some(DecodeError::UnknownKind { code: 3 }));
    assert_eq!(error_of(&frame(1, b"")), Some(DecodeError::FrameSize { bytes: 0 }));
    assert_eq!(error_of(&[255, 255, 255, 255, 1]), Some(DecodeError::FrameSize { bytes: u32::MAX }));
    assert_eq!(error_of(&[0, 1, 0, 1, 1]), Some(DecodeError::FrameSize { bytes: 65537 }));
    assert_eq!(error_of(&[0, 16, 0, 1, 2]), Some(DecodeError::FrameSize { bytes: (1 << 20) + 1 }));
    assert_eq!(error_of(&frame(2, b"x")), Some(DecodeError::OutOfOrder));
    assert_eq!(error_of(&frame(1, b"{}")), Some(DecodeError::MalformedHeader { column: 2 }));
    let unknown = br#"{"stop":{"reason":"cancelled","grace_ms":1,"extra":1}}"#;
    assert!(matches!(error_of(&frame(1, unknown)), Some(DecodeError::MalformedHeader { .. })));
    assert_eq!(error_of(&frame(1, stop)), None);

    let launch = encoded(&ToRunner::Launch(Box::new(launch())));
    let header = &launch[..5 + u32::from_be_bytes(launch[..4].try_into().unwrap()) as usize];
    assert_eq!(error_of(&[header, &frame(1, stop)].concat()), Some(DecodeError::OutOfOrder));
    assert_eq!(error_of(&[header, &frame(2, &[b'/'; 4096])].concat()), Some(DecodeError::OutOfOrder));

    let exited = br#"{"output":{"stream":"stdout","bytes":11}}"#;
    let (_, error) = decoded::<ToSupervisor>(&frame(1, exited), &[9], 10);
    assert_eq!(error, Some(DecodeError::PayloadTooLarge { bytes: 11, max: 10 }));
}

#[test]
fn a_system_code_is_short_and_upper_case() {
    let longest = format!("A{}", "9".repeat(31));
    for (text, good) in [
        ("ENOENT", true),
        ("E2BIG", true),
        ("PROCESS_LIMIT", true),
        (longest.as_str(), true),
        ("", false),
        ("2BIG", false),
        ("_A", false),
        ("enoent", false),
        ("E NOENT", false),
        ("E\n", false),
        ("É", false),
        (&format!("{longest}9"), false),
    ] {
        assert_eq!(SystemCode::try_from(text.to_owned()).is_ok(), good, "{text:?}");
        assert_eq!(serde_json::from_value::<SystemCode>(text.into()).is_ok(), good, "{text:?}");
    }
}

#[test]
fn a_large_prompt_travels_in_pieces_of_at_most_a_mebibyte() {
    let mut large = launch();
    large.stdin = Stdin::Bytes(vec![b'x'; 3 * (1 << 20) + 5]);
    let record = ToRunner::Launch(Box::new(large));
    let bytes = encoded(&record);
    let (records, error) = decoded::<ToRunner>(&bytes, &[65536], MAX_PAYLOAD);
    assert_eq!(error, None);
    assert!(records == [record]);

    let mut longer = launch();
    longer.files[0].content = vec![0; usize::try_from(MAX_PAYLOAD).unwrap()];
    let refused = ToRunner::Launch(Box::new(longer)).encode(&mut Vec::new());
    assert!(matches!(refused, Err(EncodeError::PayloadTooLarge { .. })));
    let mut many = launch();
    many.argv = vec!["x".into(); 40_000];
    let refused = ToRunner::Launch(Box::new(many)).encode(&mut Vec::new());
    assert!(matches!(refused, Err(EncodeError::HeaderTooLarge { .. })));
}

fn text() -> impl Strategy<Value = OsString> {
    prop::collection::vec(1_u8.., 0..40).prop_map(OsString::from_vec)
}

fn path() -> impl Strategy<Value = std::path::PathBuf> {
    text().prop_map(|rest| {
        let mut path = OsString::from("/");
        path.push(rest);
        path.into()
    })
}

fn any_launch() -> impl Strategy<Value = ToRunner> {
    let name = "[A-Za-z_][A-Za-z0-9_]{0,8}".prop_map(OsString::from);
    let content = || prop::collection::vec(any::<u8>(), 0..600);
    (
        (path(), prop::collection::vec(text(), 1..6), prop::collection::vec((name, text()), 0..4), path()),
        (prop::option::of(content()), prop::collection::vec((path(), content()), 0..3)),
        (0..1_000_000_u64, 0..1_000_000_u64, 0..=MAX_TAIL, any::<Option<u32>>(), any::<bool>()),
    )
        .prop_map(|((program, argv, environment, working_directory), (stdin, files), limits)| {
            let (timeout, grace, max_output_bytes, processes, live_output) = limits;
            ToRunner::Launch(Box::new(Launch {
                program,
                argv,
                environment,
                working_directory,
                stdin: stdin.map_or(Stdin::Closed, Stdin::Bytes),
                files: files.into_iter().map(|(path, content)| LaunchFile { path, content }).collect(),
                limits: Limits {
                    timeout: Duration::from_millis(timeout),
                    grace: Duration::from_millis(grace),
                    max_output_bytes,
                    processes,
                },
                live_output,
            }))
        })
}

fn any_to_runner() -> impl Strategy<Value = ToRunner> {
    let stop = (0..100_000_u64).prop_map(|grace| {
        ToRunner::Stop(Stop { reason: StopReason::Retired, grace: Duration::from_millis(grace) })
    });
    prop_oneof![any_launch(), stop]
}

proptest! {
    #[test]
    fn any_cut_of_valid_bytes_gives_the_same_records(
        records in prop::collection::vec(any_to_runner(), 0..4),
        cuts in prop::collection::vec(1_usize..200, 1..8),
    ) {
        let bytes: Vec<u8> = records.iter().flat_map(encoded).collect();
        let (read, error) = decoded::<ToRunner>(&bytes, &cuts, MAX_PAYLOAD);
        prop_assert_eq!(error, None);
        prop_assert!(read == records);
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic_and_the_same_however_they_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        cuts in prop::collection::vec(1_usize..50, 1..8),
    ) {
        let (whole, error) = decoded::<ToSupervisor>(&bytes, &[usize::MAX], 1000);
        let (cut, cut_error) = decoded::<ToSupervisor>(&bytes, &cuts, 1000);
        prop_assert_eq!(error, cut_error);
        prop_assert_eq!(whole.len(), cut.len());
    }

    #[test]
    fn a_spoilt_valid_stream_never_panics_nor_holds_more_than_the_bound(
        records in prop::collection::vec(any_to_runner(), 1..3),
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        max in 0_u64..3000,
    ) {
        let mut bytes: Vec<u8> = records.iter().flat_map(encoded).collect();
        for (at, byte) in spoils {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut decoder = Decoder::<ToRunner>::new(max);
        for byte in bytes {
            let read = decoder.decode(&mut [byte].as_slice());
            prop_assert!(decoder.held() as u64 <= 2 * (max + MAX_CONTROL as u64));
            if read.is_err() {
                prop_assert_eq!(decoder.held(), 0);
                break;
            }
        }
    }

    #[test]
    fn an_announced_length_alone_allocates_nothing(stdout in any::<u32>(), length in 1_u32..=1 << 20) {
        let header = format!(r#"{{"output":{{"stream":"stdout","bytes":{stdout}}}}}"#);
        let mut bytes = frame(1, header.as_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.push(2);
        let mut decoder = Decoder::<ToSupervisor>::default();
        let mut input = bytes.as_slice();
        while let Ok(Some(_)) = decoder.decode(&mut input) {}
        prop_assert_eq!(decoder.held(), 0);
    }
}
