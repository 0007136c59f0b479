import Foundation
import HubCore
import NotificationHubs

extension PushPlatform {
  /// The number stored in columns.
  var code: Int64 { storedCode }

  init(code: Int64) throws(StoreError) {
    guard let index = Int(exactly: code), Self.byCode.indices.contains(index),
      let platform = Self.byCode[index]
    else { throw .corrupt("unknown platform \(code)") }
    self = platform
  }

  /// An array, because every row of a page is looked up in it.
  private static let byCode: [PushPlatform?] = (0...(allCases.map(\.code).max() ?? 0)).map { code in
    allCases.first { $0.code == code }
  }
}

/// The part of a stored handle that identifies the device at its push service: all of it, the
/// endpoint of a Web Push subscription, or the installation id that a token of FCM begins with.
func handleIdentity(_ stored: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  if let id = stored.firebaseInstallationID { return UnsafeRawBufferPointer(rebasing: id) }
  let end = stored.firstIndex(of: UInt8(ascii: "\n")) ?? stored.endIndex
  return UnsafeRawBufferPointer(rebasing: stored[..<end])
}

extension NotificationOutcome {
  /// The outcome stored in a column; one that a newer build has written becomes unknown.
  init(code: Int64) {
    self = UInt8(exactly: code).flatMap(NotificationOutcome.init(rawValue:)) ?? .unknownError
  }
}

extension OutcomeKeeping {
  /// The number in the column `kept`; never changes.
  var code: Int64 {
    switch self {
    case .none: 0
    case .failures: 1
    case .all: 2
    }
  }

  /// - Returns: `nil` for a number that a newer build has written.
  init?(code: Int64) {
    guard let found = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = found
  }
}

extension ByteWriter {
  /// The expression in prefix notation.
  mutating func write(_ expression: TagExpression) {
    switch expression {
    case .tag(let tag):
      write(UInt8(0))
      write(tag.rawValue)
    case .not(let inner):
      write(UInt8(1))
      write(inner)
    case .and(let left, let right):
      write(UInt8(2))
      write(left)
      write(right)
    case .or(let left, let right):
      write(UInt8(3))
      write(left)
      write(right)
    }
  }
}

extension ByteReader {
  /// A limit deeper than any accepted expression; damaged bytes must not overflow the stack.
  private static var depthLimit: Int { 4_096 }

  mutating func expression(depth: Int = 0) throws(StoreError) -> TagExpression {
    let kind = try byte()
    guard depth < Self.depthLimit, kind <= 3 else {
      throw .corrupt("a stored tag expression cannot be read")
    }
    if kind == 0 { return .tag(Tag(rawValue: try text())) }
    let first = try expression(depth: depth + 1)
    if kind == 1 { return .not(first) }
    let second = try expression(depth: depth + 1)
    return kind == 2 ? .and(first, second) : .or(first, second)
  }
}
