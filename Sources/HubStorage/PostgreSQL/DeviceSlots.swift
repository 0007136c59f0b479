import HubCore

/// Into how many parts the devices of a database are cut, and in which of them each stands.
///
/// The number of a row says its slot in its lowest bits, so that a row that is known by its number
/// is looked for in one slot only.
struct DeviceSlots: Hashable, Sendable {
  /// A power of two.
  let count: Int

  static let limit = 256
  /// A query for all slots is planned for each of their tables: 256 cost a hundred milliseconds, 32
  /// two. Rows of slots that share a table lie further apart.
  private static let tableLimit = 32
  /// How many bits of a row's number are its slot; enough for ``limit``.
  private static let bits = 8

  /// - Returns: `nil` for a count that there cannot be.
  init?(count: Int) {
    guard (1...Self.limit).contains(count), count & (count - 1) == 0 else { return nil }
    self.count = count
  }

  /// How many tables the registrations stand in: a slot in that of its number, modulo this.
  var tableCount: Int { min(count, Self.tableLimit) }

  /// The slots that share a table.
  func slots(inTable table: Int) -> [Int] {
    Array(stride(from: table, to: count, by: tableCount))
  }

  /// The slot of what clients call so: an installation, or a registration that has an id of theirs.
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
  /// - Parameter sequential: From a sequence; numbers rise with it, whatever their slots.
  func number(_ sequential: Int64, slot: Int64) -> Int64 { sequential << Self.bits | slot }

  /// What ``number(_:slot:)`` has made a number of.
  func sequential(_ number: Int64) -> Int64 { number >> Self.bits }

  /// Any slot: of a registration whose id follows from its number.
  func slot(forNew sequential: Int64) -> Int64 { slot(ofNumber: sequential) }
}

/// A part of the work of a notification, as its number in ``AudienceQuery`` and in the table `work`
/// says it. All parts of a notification are either ``whole``, or one ``slot(_:)`` each and
/// ``sharedHandles``.
enum AudiencePart: Hashable, Sendable {
  /// Everybody: of a direct send, or a narrow audience.
  case whole
  /// Those of one slot, but for those of ``sharedHandles``.
  case slot(Int64)
  /// All registrations, of every slot, whose handle another one had as well when the notification
  /// was accepted. One reader takes them in their order, so that a device gets one push.
  case sharedHandles

  /// - Returns: `nil` for a number that no part has.
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

  /// The parts of a notification for more than a few.
  static func all(_ slots: DeviceSlots) -> [AudiencePart] {
    (0..<slots.count).map { .slot(Int64($0)) } + [.sharedHandles]
  }
}
