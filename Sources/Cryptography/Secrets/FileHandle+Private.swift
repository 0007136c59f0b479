package import Foundation

extension FileHandle {
  /// A new file in place of what has that name, for its owner alone from its first byte on.
  /// - Returns: `nil` when it cannot be made; `errno` says why.
  package static func newPrivate(_ path: String) -> FileHandle? {
    _ = unlink(path)
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    return file < 0 ? nil : FileHandle(fileDescriptor: file, closeOnDealloc: true)
  }
}
