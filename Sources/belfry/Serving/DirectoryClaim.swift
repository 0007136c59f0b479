import Foundation

/// A lock on a file that the system lifts when the process ends, `kill -9` included.
final class DirectoryClaim: Sendable {
  private let descriptor: Int32

  /// - Throws: ``CommandFailure`` when another process holds it.
  init(file: String) throws {
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw CommandFailure(
        "\(file) cannot be made: \(String(cString: strerror(errno)))", exitCode: .usage)
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw CommandFailure(
        "another Belfry serves from \(URL(fileURLWithPath: file).deletingLastPathComponent().path); "
          + "stop it, or name another directory with --data DIR", exitCode: .unreachable)
    }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }
}
