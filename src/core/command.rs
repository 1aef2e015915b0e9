//! The command line: `binary [arguments] [options] [model] -- [prompt]`, and what of it may be shown.

use std::fmt;

use serde_json::Value;

use crate::api::{AgentCliDefinitionSpec, AgentCliTaskSpec, PromptDelivery};
use crate::redact::{Redacted, Redactor};

/// Longest single argument in bytes with its terminating NUL: Linux's `MAX_ARG_STRLEN`, 32 pages of 4 KiB.
pub const MAX_ARGUMENT_BYTES: usize = 131_072;
/// Most arguments, the program's name included.
pub const MAX_ARGUMENTS: usize = 256;
/// Most bytes of all arguments together, each with its NUL.
pub const MAX_COMMAND_BYTES: usize = 256 * 1024;

/// Longest path, Linux's `PATH_MAX` without its NUL but with the `=` before it.
const MAX_PATH_BYTES: usize = 4096;
/// Most bytes of a command's display: what the schema of a status takes. The contract hash covers what is cut off.
pub const MAX_DISPLAY_BYTES: usize = 4096;

/// The text that a task asks an agent to act on. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Prompt(String);

impl Prompt {
    /// The prompt `text`.
    ///
    /// # Errors
    /// When it contains a NUL character, which no command line can carry.
    pub fn new(text: String) -> Result<Self, NulInPrompt> {
        if text.contains('\0') { Err(NulInPrompt) } else { Ok(Self(text)) }
    }

    /// The text, for the agent alone.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// SHA-256 as 64 hexadecimal digits.
    pub fn sha256(&self) -> String {
        super::canonical::sha256_hex(self.0.as_bytes())
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prompt({} bytes)", self.0.len())
    }
}

/// The prompt contains a NUL character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the prompt must not contain a NUL character")]
pub struct NulInPrompt;

/// The command line is longer than the kernel or our own bounds allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the command line is too long")]
pub struct CommandTooLarge;

/// Where the prompt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptChannel {
    /// It is the last argument.
    Argument,
    /// It is standard input.
    Stdin,
    /// It is a private file; the argument that carries its path is the flag followed by `=` and the path.
    File,
}

/// A command line, ready to be started. `Debug` and `display` show no value.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// The program as the definition names it.
    pub binary: String,
    /// Every argument after the program's name. With file delivery the flag is not among them.
    pub arguments: Vec<String>,
    /// Where the prompt goes.
    pub channel: PromptChannel,
    /// With file delivery: the flag that takes the file's path.
    pub file_flag: Option<String>,
    display: Redacted,
}

impl Command {
    /// The command with every value and the prompt replaced by placeholders.
    pub fn display(&self) -> &Redacted {
        &self.display
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Command").field(&self.display).finish()
    }
}

/// Builds the command line of a task that fits its definition.
///
/// # Errors
/// When an argument, their number or their sum exceeds the bounds.
pub fn build(
    spec: &AgentCliTaskSpec,
    definition: &AgentCliDefinitionSpec,
    prompt: &Prompt,
) -> Result<Command, CommandTooLarge> {
    let mut arguments = definition.arguments.clone();
    let mut shown: Vec<String> = definition.arguments.iter().map(|argument| quote(argument)).collect();
    for (flag, value) in flags(spec, definition) {
        shown.push(if value.is_some() { format!("{flag}=[redacted]") } else { flag.to_owned() });
        arguments.push(value.map_or_else(|| flag.to_owned(), |value| format!("{flag}={value}")));
    }
    let (channel, file_flag) = channel(&definition.prompt_delivery);
    match channel {
        PromptChannel::Argument => {
            arguments.extend(["--".to_owned(), prompt.as_str().to_owned()]);
            shown.push(format!("-- [prompt, {} bytes]", prompt.bytes()));
        }
        PromptChannel::Stdin => shown.push(format!("< [prompt, {} bytes]", prompt.bytes())),
        PromptChannel::File => {
            shown.push(format!(
                "{}=[prompt file, {} bytes]",
                file_flag.as_deref().unwrap_or_default(),
                prompt.bytes()
            ));
        }
    }
    // The file's path isn't known yet; the longest one that Linux takes is kept free.
    let file_argument = file_flag.as_ref().map(|flag| flag.len() + MAX_PATH_BYTES);
    check_bounds(&definition.binary, &arguments, file_argument)?;
    shown.insert(0, quote(&definition.binary));
    let (display, _) = Redactor::without_secrets().text(&shown.join(" ")).truncate_end(MAX_DISPLAY_BYTES);
    Ok(Command { binary: definition.binary.clone(), arguments, channel, file_flag, display })
}

/// Options in the order of their names, then the model. A boolean is its bare flag, or nothing.
fn flags<'a>(
    spec: &'a AgentCliTaskSpec,
    definition: &'a AgentCliDefinitionSpec,
) -> impl Iterator<Item = (&'a str, Option<String>)> {
    let options = spec.options.iter().filter_map(|(name, value)| {
        let option = definition.options.iter().find(|option| option.name == *name)?;
        match value {
            Value::Bool(false) => None,
            Value::Bool(true) => Some((option.flag.as_str(), None)),
            Value::String(text) => Some((option.flag.as_str(), Some(text.clone()))),
            other => Some((option.flag.as_str(), Some(other.to_string()))),
        }
    });
    let model =
        definition.model_flag.as_deref().zip(spec.model.clone()).map(|(flag, model)| (flag, Some(model)));
    options.chain(model)
}

fn channel(delivery: &PromptDelivery) -> (PromptChannel, Option<String>) {
    match delivery {
        PromptDelivery { file: Some(file), .. } => (PromptChannel::File, Some(file.flag.clone())),
        PromptDelivery { stdin: Some(_), .. } => (PromptChannel::Stdin, None),
        PromptDelivery { .. } => (PromptChannel::Argument, None),
    }
}

fn check_bounds(
    binary: &str,
    arguments: &[String],
    file_argument: Option<usize>,
) -> Result<(), CommandTooLarge> {
    let lengths = || {
        let stated = arguments.iter().map(String::len).chain([binary.len()]).chain(file_argument);
        stated.map(|length| length + 1)
    };
    let too_large = lengths().any(|length| length > MAX_ARGUMENT_BYTES)
        || lengths().count() > MAX_ARGUMENTS
        || lengths().sum::<usize>() > MAX_COMMAND_BYTES;
    if guard!("command-bounds", too_large) { Err(CommandTooLarge) } else { Ok(()) }
}

/// An argument as a shell would need it written. For people only: nothing is ever given to a shell.
fn quote(argument: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,@%+".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
