import HubCore
import NotificationHubs

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
  /// Deeper than any accepted expression; damaged bytes must not overflow the stack.
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
