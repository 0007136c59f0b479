package import Foundation
import HubCore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The newest commit that callers have been told is durable.
struct CommitMark: Hashable, Sendable {
  let number: Int64
  /// Milliseconds since 1970.
  let at: Int64
}

/// A mark beside the database (`belfry.sqlite-mark`). SQLite silently opens a database whose log is
/// damaged or missing, in an older state: the mark tells that there was a newer one.
///
/// It is written after the log is synced, and not synced itself: after a power cut it may be older
/// than the database, never newer.
final class CommitMarkFile: Sendable {
  /// -1 when the file cannot be created, for example on a full disk.
  private let descriptor: Int32

  private static let length = 24
  private static let seal: Int64 = 0x4265_6c66_4d61_726b

  /// - Parameter isReadOnly: Reads an existing mark, and creates none.
  init(database path: String, isReadOnly: Bool = false) {
    let flags = isReadOnly ? O_RDONLY : O_RDWR | O_CREAT
    descriptor = open(path + "-mark", flags | O_CLOEXEC, 0o600)
  }

  deinit { if descriptor >= 0 { _ = close(descriptor) } }

  /// - Returns: `nil` when there is no valid mark.
  func read() -> CommitMark? {
    var words: [Int64] = [0, 0, 0]
    let count = words.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, Self.length, 0) }
    guard count == Self.length, words[2] == words[0] ^ words[1] ^ Self.seal else { return nil }
    return CommitMark(number: Int64(littleEndian: words[0]), at: Int64(littleEndian: words[1]))
  }

  /// Writes a mark. A failure only weakens the later check.
  func write(_ mark: CommitMark) {
    let (number, at) = (mark.number.littleEndian, mark.at.littleEndian)
    let words = [number, at, number ^ at ^ Self.seal]
    _ = words.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, Self.length, 0) }
  }
}

/// Commits lost through a damaged or missing log, or because the database was replaced by a copy.
package struct DiscardedCommits: Hashable, Sendable, CustomStringConvertible {
  /// Number of transactions, each of up to some hundred changes.
  package let count: Int64
  /// The time when the last of them was acknowledged.
  package let last: Date

  init?(_ mark: CommitMark, found commit: Int64) {
    guard mark.number > commit else { return nil }
    count = mark.number - commit
    last = Date(milliseconds: mark.at)
  }

  package var description: String {
    "the database is older than what was acknowledged: \(count) transactions up to "
      + "\(last.formatted(.iso8601)) are gone, because its log (-wal) is damaged or missing, or a copy "
      + "was put in its place"
  }
}
