//! Reading a hostile directory tree: by directory descriptors, one name at a time, following nothing.
//!
//! A name that is swapped for a symbolic link, a FIFO or a device between two steps is refused by the next one.
//! Nothing here blocks on a FIFO or opens a device.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};

/// What a directory entry was when it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Regular,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: CString,
    pub(super) kind: Kind,
}

/// The identity of a directory, which a replacement does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

/// A regular file that was opened without following or waiting for anything.
#[derive(Debug)]
pub(super) struct RegularFile {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) executable: bool,
}

impl RegularFile {
    /// The whole content, or `None` when it has more than `limit` bytes.
    pub(super) fn read_at_most(self, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let expected = usize::try_from(self.size.min(limit)).unwrap_or_default();
        let mut content = Vec::with_capacity(expected + 1);
        self.file.take(limit + 1).read_to_end(&mut content)?;
        Ok((content.len() as u64 <= limit).then_some(content))
    }
}

/// An open directory.
pub(super) struct Directory(Dir);

impl Directory {
    /// Opens a directory whose parents are trusted; it may itself not be a symbolic link.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Dir::open(path, directory_flags(), Mode::empty())?))
    }

    /// Opens a directory inside this one; fails with `ELOOP` or `ENOTDIR` when it is a symbolic link.
    pub(super) fn child(&self, name: &CStr) -> io::Result<Self> {
        Ok(Self(Dir::openat(&self.0, name, directory_flags(), Mode::empty())?))
    }

    pub(super) fn identity(&self) -> io::Result<Identity> {
        let status = fstat(&self.0)?;
        Ok(Identity { device: status.st_dev, inode: status.st_ino })
    }

    /// The entries, sorted by name, and whether there were more than `limit`.
    pub(super) fn entries(&mut self, limit: usize) -> io::Result<(Vec<Entry>, bool)> {
        let mut listed = Vec::new();
        let mut more = false;
        for entry in self.0.iter() {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            if listed.len() == limit {
                more = true;
                break;
            }
            listed.push((entry.file_name().to_owned(), entry.file_type()));
        }
        let mut entries = Vec::with_capacity(listed.len());
        for (name, kind) in listed {
            let kind = match kind {
                Some(kind) => of_type(kind),
                None => self.kind(&name)?,
            };
            entries.push(Entry { name, kind });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok((entries, more))
    }

    /// What a name is now.
    pub(super) fn kind(&self, name: &CStr) -> io::Result<Kind> {
        let status = fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(match SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFREG => Kind::Regular,
            SFlag::S_IFDIR => Kind::Directory,
            SFlag::S_IFLNK => Kind::Symlink,
            SFlag::S_IFIFO => Kind::Fifo,
            SFlag::S_IFSOCK => Kind::Socket,
            _ => Kind::Device,
        })
    }

    /// Opens a regular file; `None` when the name is something else by now.
    pub(super) fn file(&self, name: &CStr) -> io::Result<Option<RegularFile>> {
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let descriptor: OwnedFd = openat(&self.0, name, flags, Mode::empty())?;
        let file = File::from(descriptor);
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then(|| RegularFile {
            size: metadata.len(),
            executable: metadata.mode() & 0o100 != 0,
            file,
        }))
    }

    /// The text of a symbolic link.
    pub(super) fn link(&self, name: &CStr) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, name)?.into_vec())
    }
}

fn directory_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

fn of_type(kind: Type) -> Kind {
    match kind {
        Type::File => Kind::Regular,
        Type::Directory => Kind::Directory,
        Type::Symlink => Kind::Symlink,
        Type::Fifo => Kind::Fifo,
        Type::Socket => Kind::Socket,
        Type::CharacterDevice | Type::BlockDevice => Kind::Device,
    }
}
