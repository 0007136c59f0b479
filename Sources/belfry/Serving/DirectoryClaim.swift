import Foundation

/// A lock on a directory and a file in it, which the system releases when the process ends in any
/// way, including `kill -9`. The lock on the directory is needed if the file is deleted under a
/// running server; the lock on the file, if a file system cannot lock directories, and for earlier
/// versions.
final class DirectoryClaim: Sendable {
  /// The purpose of a claim; stored in the file for processes that are refused.
  enum Purpose: String {
    case serving, moving
    case rotatingKey = "rotating the key"
    case restoring
  }

  private let descriptors: [Int32]

  /// - Parameter purpose: The purpose; `nil` to inspect the directory.
  /// - Throws: ``CommandFailure`` if another process holds it.
  init(file: String, for purpose: Purpose? = nil) throws {
    let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
    let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    let descriptors = [directory, descriptor].filter { $0 >= 0 }
    func end(_ failure: CommandFailure) -> CommandFailure {
      for descriptor in descriptors { close(descriptor) }
      return failure
    }
    guard descriptor >= 0 else {
      throw end(
        CommandFailure(
          "\(file) cannot be made: \(String(cString: strerror(errno)))", exitCode: .usage))
    }
    for descriptor in descriptors where flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if descriptor == directory, errno != EWOULDBLOCK { continue }
      throw end(CommandFailure(Self.holder(file, of: folder), exitCode: .unreachable))
    }
    if let purpose, ftruncate(descriptor, 0) == 0 {
      let text = Array((purpose.rawValue + "\n").utf8)
      // On a full disk the refusal is less precise, but the lock holds.
      _ = pwrite(descriptor, text, text.count, 0)
    }
    self.descriptors = descriptors
  }

  private static func holder(_ file: String, of folder: String) -> String {
    let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
    let command: String
    switch Purpose(rawValue: text.trimmingCharacters(in: .newlines)) {
    case .moving: command = "move"
    case .rotatingKey: command = "key rotate"
    case .restoring: command = "restore"
    case .serving, nil:
      return "another Belfry serves from \(folder); stop it, or name another directory with "
        + "--data DIR"
    }
    return "`belfry \(command)` works on \(folder) at the moment; try again when it has ended"
  }

  deinit { for descriptor in descriptors { close(descriptor) } }
}
