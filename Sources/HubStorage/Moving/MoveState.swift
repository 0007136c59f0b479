import HubCore
import SQLDatabase

/// The progress of a move into a database: the one row of its table `move_state`.
struct MoveState: Sendable {
  /// The run that may write.
  var run: Int64
  /// Number of tables that are completely copied.
  var step = 0
  /// Position in the table that is being copied.
  var cursor: [MovedValue]?
  /// Copied so far.
  var rows: Int64 = 0
  /// Keeps this row unchanged, and existing rows as they are.
  var isKept = false

  var unmoved: MoveState {
    var state = self
    state.isKept = true
    return state
  }
}

/// The last numbers that a database has allocated, as a file counts them.
struct MoveNumbers: Sendable {
  var hub: Int64
  var installation: Int64
  var registration: Int64
  var notification: Int64
}

extension [MovedValue] {
  var stored: [UInt8] {
    var writer = ByteWriter()
    for value in self {
      switch value {
      case .integer(let number):
        writer.write(UInt8(1))
        writer.write(number)
      case .text(let text):
        writer.write(UInt8(2))
        writer.write(text)
      case .bytes(let bytes):
        writer.write(UInt8(3))
        writer.write(UInt64(bytes.count))
        for byte in bytes { writer.write(byte) }
      // These never occur in an order.
      case .null, .real: writer.write(UInt8(0))
      }
    }
    return writer.bytes
  }

  init(stored bytes: [UInt8]) throws {
    self = []
    var reader = ByteReader(bytes)
    while !reader.isAtEnd {
      switch try reader.byte() {
      case 1: append(.integer(try reader.signedNumber()))
      case 2: append(.text(try reader.text()))
      case 3:
        let count = try reader.count()
        append(.bytes(try (0..<count).map { _ in try reader.byte() }))
      default: append(.null)
      }
    }
  }
}
