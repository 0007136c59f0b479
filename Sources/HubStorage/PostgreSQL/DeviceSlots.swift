import HubCore

/// The division of a database's devices into slots.
///
/// The lowest bits of a row's number are its slot, so that a row whose number is known is searched
/// for in one slot only.
struct DeviceSlots: Hashable, Sendable {
  /// A power of two.
  let count: Int

  static let limit = 256
  /// A query over all slots is planned for each of their tables: planning takes a hundred
  /// milliseconds with 256 tables, two with 32. The more slots share a table, the further apart
  /// their rows are.
  private static let tableLimit = 32
  /// Number of bits of a row's number that are its slot; enough for ``limit``.
  private static let bits = 8

  /// - Returns: `nil` for a count that is not allowed.
  init?(count: Int) {
    guard (1...Self.limit).contains(count), count & (count - 1) == 0 else { return nil }
    self.count = count
  }

  /// Number of tables that hold the registrations: a slot is in the table of its number modulo
  /// this.
  var tableCount: Int { min(count, Self.tableLimit) }

  /// The slots that share a table.
  func slots(inTable table: Int) -> [Int] {
    Array(stride(from: table, to: count, by: tableCount))
  }

  /// The slot of an id that clients use: of an installation, or of a registration with an id of
  /// their own.
  func slot(of id: String) -> Int64 {
    var hash = StableHash()
    hash.combine(id.utf8)
    return slot(ofNumber: hash.value)
  }

  /// The slot of a row of this number.
  func slot(ofNumber number: Int64) -> Int64 { number & Int64(count - 1) }

  /// ``slot(ofNumber:)`` in SQL.
  func sqlSlot(ofNumber column: String) -> String { "(\(column) & \(count - 1))::int2" }

  /// The number of a new row of a slot.
  /// - Parameter sequential: A number from a sequence; the result rises with it, whatever the slot.
  func number(_ sequential: Int64, slot: Int64) -> Int64 { sequential << Self.bits | slot }

  /// The inverse of ``number(_:slot:)``.
  func sequential(_ number: Int64) -> Int64 { number >> Self.bits }

  /// A slot for a registration whose id follows from its number; any would do.
  func slot(forNew sequential: Int64) -> Int64 { slot(ofNumber: sequential) }
}

/// A part of the work of a notification, identified by its number in ``AudienceQuery`` and in the
/// table `work`. The parts of a notification are either ``whole`` alone, or one ``slot(_:)`` each
/// and ``sharedHandles``.
enum AudiencePart: Hashable, Sendable {
  /// The complete audience, of a direct send or a narrow query.
  case whole
  /// The audience in one slot, except that of ``sharedHandles``.
  case slot(Int64)
  /// All registrations, of every slot, whose handle another one also had when the notification was
  /// accepted. One reader processes them in order, so that a device gets one push.
  case sharedHandles

  /// - Returns: `nil` for the number of no part.
  init?(number: Int, slots: DeviceSlots) {
    switch number {
    case 0: self = .whole
    case 1...slots.count: self = .slot(Int64(number - 1))
    case slots.count + 1: self = .sharedHandles
    default: return nil
    }
  }

  func number(in slots: DeviceSlots) -> Int {
    switch self {
    case .whole: 0
    case .slot(let slot): Int(slot) + 1
    case .sharedHandles: slots.count + 1
    }
  }

  /// The parts of a notification with a large audience.
  static func all(_ slots: DeviceSlots) -> [AudiencePart] {
    (0..<slots.count).map { .slot(Int64($0)) } + [.sharedHandles]
  }
}
