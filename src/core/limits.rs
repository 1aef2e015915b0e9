//! A task's limits: its own where it states them, else the definition's defaults, never above the ceilings.

use crate::api::{
    ByteSize, Cpu, CpuRange, DefinitionLimits, Duration, DurationRange, EffectiveLimits, IntegerRange,
    Limits, SizeRange,
};
use crate::core::validate::Problem;

/// No agent runs longer, whatever a definition says.
const MAX_TIMEOUT: Duration = Duration::from_seconds(24 * 3600);
/// No more of a stream is kept: a status has to fit into an object of the API server.
const MAX_OUTPUT: ByteSize = ByteSize::mebibytes(8);
/// What Linux allows a process-id namespace by default.
const MAX_PROCESSES: i64 = 32_768;
const MAX_CPU: Cpu = Cpu::from_millis(256_000);
const MAX_BYTES: ByteSize = ByteSize::mebibytes(4 * 1024 * 1024);
/// A runtime can't start a container in less.
const MIN_MEMORY: ByteSize = ByteSize::mebibytes(16);

/// A definition's defaults and ceilings with the built-in ones filled in.
struct Ranges {
    timeout: DurationRange,
    max_output_bytes: SizeRange,
    processes: IntegerRange,
    cpu: CpuRange,
    memory: SizeRange,
    ephemeral_storage: SizeRange,
}

impl Ranges {
    fn of(limits: &DefinitionLimits) -> Self {
        let resources = limits.resources.clone().unwrap_or_default();
        let sizes =
            |default, max| SizeRange { default: ByteSize::mebibytes(default), max: ByteSize::mebibytes(max) };
        Self {
            timeout: limits.timeout.unwrap_or(DurationRange {
                default: Duration::from_seconds(600),
                max: Duration::from_seconds(3600),
            }),
            max_output_bytes: limits.max_output_bytes.unwrap_or(sizes(1, 8)),
            processes: limits.processes.unwrap_or(IntegerRange { default: 512, max: 4096 }),
            cpu: resources
                .cpu
                .unwrap_or(CpuRange { default: Cpu::from_millis(1000), max: Cpu::from_millis(4000) }),
            memory: resources.memory.unwrap_or(sizes(2 * 1024, 8 * 1024)),
            ephemeral_storage: resources.ephemeral_storage.unwrap_or(sizes(4 * 1024, 16 * 1024)),
        }
    }
}

/// The limits that a task runs with.
///
/// # Errors
/// Every limit that lies outside its bounds or above the definition's ceiling.
pub fn effective(limits: &Limits, definition: &DefinitionLimits) -> Result<EffectiveLimits, Vec<Problem>> {
    let ranges = Ranges::of(definition);
    let mut problems = Vec::new();
    let mut pick = Picker { prefix: ".spec.limits", problems: &mut problems };
    let effective = EffectiveLimits {
        timeout: pick.within(
            "timeout",
            limits.timeout,
            ranges.timeout.default,
            Duration::from_seconds(1),
            ranges.timeout.max,
        ),
        max_output_bytes: pick.within(
            "maxOutputBytes",
            limits.max_output_bytes,
            ranges.max_output_bytes.default,
            ByteSize::from_bytes(0),
            ranges.max_output_bytes.max,
        ),
        processes: pick.within(
            "processes",
            limits.processes,
            ranges.processes.default,
            1,
            ranges.processes.max,
        ),
        cpu: pick.within(
            "resources.cpu",
            limits.resources.cpu,
            ranges.cpu.default,
            Cpu::from_millis(1),
            ranges.cpu.max,
        ),
        memory: pick.within(
            "resources.memory",
            limits.resources.memory,
            ranges.memory.default,
            MIN_MEMORY,
            ranges.memory.max,
        ),
        ephemeral_storage: pick.within(
            "resources.ephemeralStorage",
            limits.resources.ephemeral_storage,
            ranges.ephemeral_storage.default,
            ByteSize::mebibytes(1),
            ranges.ephemeral_storage.max,
        ),
    };
    if problems.is_empty() { Ok(effective) } else { Err(problems) }
}

/// Defaults that exceed their ceilings, and ceilings that exceed what any task may have.
pub(super) fn check_definition(limits: &DefinitionLimits, problems: &mut Vec<Problem>) {
    let ranges = Ranges::of(limits);
    let mut pick = Picker { prefix: ".spec.limits", problems };
    pick.range(
        "timeout",
        (ranges.timeout.default, ranges.timeout.max),
        Duration::from_seconds(1),
        MAX_TIMEOUT,
    );
    let output = ranges.max_output_bytes;
    pick.range("maxOutputBytes", (output.default, output.max), ByteSize::from_bytes(0), MAX_OUTPUT);
    pick.range("processes", (ranges.processes.default, ranges.processes.max), 1, MAX_PROCESSES);
    pick.range("resources.cpu", (ranges.cpu.default, ranges.cpu.max), Cpu::from_millis(1), MAX_CPU);
    pick.range("resources.memory", (ranges.memory.default, ranges.memory.max), MIN_MEMORY, MAX_BYTES);
    let storage = ranges.ephemeral_storage;
    pick.range(
        "resources.ephemeralStorage",
        (storage.default, storage.max),
        ByteSize::mebibytes(1),
        MAX_BYTES,
    );
}

struct Picker<'a> {
    prefix: &'static str,
    problems: &'a mut Vec<Problem>,
}

impl Picker<'_> {
    fn within<T: Copy + PartialOrd + std::fmt::Display>(
        &mut self,
        name: &str,
        stated: Option<T>,
        default: T,
        min: T,
        max: T,
    ) -> T {
        let value = stated.unwrap_or(default);
        if value < min || value > max {
            self.problems.push(Problem::new(
                format!("{}.{name}", self.prefix),
                format!("must be from {min} to {max}"),
            ));
        }
        value
    }

    fn range<T: Copy + PartialOrd + std::fmt::Display>(
        &mut self,
        name: &str,
        (default, max): (T, T),
        lowest: T,
        highest: T,
    ) {
        if max < lowest || max > highest {
            let path = format!("{}.{name}.max", self.prefix);
            self.problems.push(Problem::new(path, format!("must be from {lowest} to {highest}")));
        }
        if default < lowest || default > max {
            let path = format!("{}.{name}.default", self.prefix);
            self.problems.push(Problem::new(path, format!("must be from {lowest} to the ceiling")));
        }
    }
}
