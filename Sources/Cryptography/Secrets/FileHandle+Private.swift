package import Foundation

extension FileHandle {
  /// Replaces the file with this name by a new one, accessible only to its owner from the
  /// beginning.
  /// - Returns: `nil` when it cannot be created; `errno` has the reason.
  package static func newPrivate(_ path: String) -> FileHandle? {
    _ = unlink(path)
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    return file < 0 ? nil : FileHandle(fileDescriptor: file, closeOnDealloc: true)
  }
}
