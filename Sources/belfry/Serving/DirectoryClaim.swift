import Foundation

/// A lock on a directory and a file in it that the system lifts when the process ends, `kill -9`
/// included. The directory's own counts where the file has been deleted under a running server; the
/// file's where a file system does not lock directories, and for earlier versions.
final class DirectoryClaim: Sendable {
  private let descriptors: [Int32]

  /// - Throws: ``CommandFailure`` when another process holds it.
  init(file: String) throws {
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
      throw end(
        CommandFailure(
          "another Belfry serves from \(folder); stop it, or name another directory with "
            + "--data DIR", exitCode: .unreachable))
    }
    self.descriptors = descriptors
  }

  deinit { for descriptor in descriptors { close(descriptor) } }
}
