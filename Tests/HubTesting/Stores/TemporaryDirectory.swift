package import Foundation
import Synchronization

/// A directory for one test; ``remove()`` deletes it. Those of test runs that were killed go with
/// the next run.
package struct TemporaryDirectory: Sendable {
  package let url: URL

  private static let prefix = "belfry-test-"

  package init() throws {
    Self.sweep
    let process = ProcessInfo.processInfo.processIdentifier
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("\(Self.prefix)\(process)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  package func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  package func remove() {
    // A store that closes at the same time takes files away under the removal, which then fails.
    for _ in 0..<10 where FileManager.default.fileExists(atPath: url.path) {
      try? FileManager.default.removeItem(at: url)
    }
  }

  /// Deletes it at the latest when the process ends, for what may still be in use then.
  package func removeAtExit() {
    Self.left.withLock { directories in
      if directories.isEmpty {
        atexit { for directory in TemporaryDirectory.left.withLock(\.self) { directory.remove() } }
      }
      directories.append(self)
    }
  }

  private static let left = Mutex<[TemporaryDirectory]>([])

  /// Once in a process, and beside its tests: what a run has left, or still removes, may be many files.
  private static let sweep: Void = Thread.detachNewThread {
    let files = FileManager.default
    let folder = files.temporaryDirectory
    for name in (try? files.contentsOfDirectory(atPath: folder.path)) ?? []
    where name.hasPrefix(prefix) {
      let parts = name.dropFirst(prefix.count).split(separator: "-", maxSplits: 1)
      guard parts.count == 2, UUID(uuidString: String(parts[1])) != nil,
        let process = pid_t(parts[0]), process > 0, kill(process, 0) != 0, errno == ESRCH
      else { continue }
      try? files.removeItem(at: folder.appendingPathComponent(name))
    }
  }
}
