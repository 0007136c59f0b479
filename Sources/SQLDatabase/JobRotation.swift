/// The caller and the size of a unit of work, by which ``JobRotation`` orders and limits it.
package struct JobLabel: Sendable {
  /// The category of work. Each has a share of the thread's time while others wait as well.
  package enum Share: Int, CaseIterable, Sendable {
    /// Notifications, and the checkpoints of their delivery.
    case sends
    /// Installations and registrations.
    case devices
    /// Everything else: management, upkeep.
    case others

    /// The weight of its share of the time, relative to the others.
    var weight: Int { self == .sends ? 2 : 1 }
  }

  package var share: Share
  /// The number of the hub; 0 for work of no hub.
  package var hub: Int64
  /// The caller, such as a policy's name. `nil` is the server itself, whose work is neither refused
  /// nor dropped.
  package var caller: String?
  /// Approximate number of rows looked up or written.
  package var rows: Int
  /// Approximate number of bytes kept in memory while it waits, and written.
  package var bytes: Int

  package init(
    _ share: Share = .others, hub: Int64 = 0, caller: String? = nil, rows: Int = 1, bytes: Int = 0
  ) {
    self.share = share
    self.hub = hub
    self.caller = caller
    self.rows = max(1, rows)
    self.bytes = max(0, bytes)
  }

  /// Rows and bytes as one number, for turns. It is bounded, so that a debt is paid in few rounds.
  var cost: Int { min(rows + bytes / 256, 64 * Self.allowance) }

  /// The cost of one turn, times the weight of a share.
  static let allowance = 256

  /// The cost of work beyond its label, from the time that it took: a row takes some 20 µs.
  func excess(after time: Duration) -> Int {
    max(0, min(Int(time / .microseconds(20)), 64 * Self.allowance) - cost)
  }
}

/// Limits on waiting work.
package struct JobLimits: Hashable, Sendable {
  /// Units of work, for any caller.
  package var total = Int.max
  /// Work that may wait for one caller in a hub, of each share.
  package var caller = Amount(jobs: 2_048, rows: 131_072, bytes: 16 << 20)
  /// Work that may wait for one hub, of each share.
  package var hub = Amount(jobs: 4_096, rows: 262_144, bytes: 32 << 20)
  /// A caller with fewer waiting units of work is not refused, regardless of others in the same
  /// hub: a caller that sends 20 requests a second, each waiting a second, has no more.
  package var reserved = 32

  package struct Amount: Hashable, Sendable {
    package var jobs = 0
    package var rows = 0
    package var bytes = 0

    package init(jobs: Int = 0, rows: Int = 0, bytes: Int = 0) {
      self.jobs = jobs
      self.rows = rows
      self.bytes = bytes
    }

    fileprivate mutating func add(_ label: JobLabel, times sign: Int = 1) {
      jobs += sign
      rows += sign * label.rows
      bytes += sign * label.bytes
    }

    /// Whether one more with this label fits below `limit`.
    fileprivate func hasRoom(for label: JobLabel, below limit: Amount) -> Bool {
      jobs < limit.jobs && rows + label.rows <= limit.rows && bytes + label.bytes <= limit.bytes
    }
  }

  package init() {}

  /// No limits.
  package static let none: JobLimits = {
    var limits = JobLimits()
    limits.reserved = .max
    return limits
  }()
}

/// Maximum amount of work taken at a time, for one transaction. The first unit is taken whatever
/// its size.
package struct JobGroup: Hashable, Sendable {
  package var jobs: Int
  package var rows: Int
  package var bytes: Int

  package init(jobs: Int, rows: Int = .max, bytes: Int = .max) {
    self.jobs = max(1, jobs)
    self.rows = rows
    self.bytes = bytes
  }
}

/// The order in which units of work get their turn: by share, within a share by hub, within a hub
/// by caller; the work of one caller is done in order of arrival.
///
/// Each of these levels uses deficit round robin: a member continues until it has used its
/// allowance of rows, then the next has its turn. Usage beyond the allowance is deducted from the
/// member's next turns, as long as it has work. So a caller beside a flood waits for one turn of
/// each of the others, not for all of their work.
/// - SeeAlso: M. Shreedhar and G. Varghese, Efficient Fair Queuing using Deficit Round Robin,
///   SIGCOMM 1995
final class JobRotation<Item> {
  struct Entry {
    /// Increases with each unit of work.
    let number: UInt64
    let label: JobLabel
    let item: Item
  }

  private let limits: JobLimits
  private let shares: Rotation<Item, JobLabel.Share>

  init(limits: JobLimits) {
    self.limits = limits
    shares = Rotation(
      by: { $0.share }, weight: { $0.share.weight },
      of: { Rotation(by: { $0.hub }, of: { Rotation(by: { $0.caller }, of: { CallerJobs() }) }) })
  }

  var count: Int { shares.waiting.jobs }

  /// - Returns: `false` when the limit on waiting work is reached.
  func add(_ entry: Entry) -> Bool {
    guard count < limits.total else { return false }
    let label = entry.label
    if label.caller != nil {
      let hub = shares.child(label)?.child(label)
      let all = hub?.waiting ?? JobLimits.Amount()
      let own = hub?.child(label)?.waiting ?? JobLimits.Amount()
      guard
        own.jobs < limits.reserved
          || own.hasRoom(for: label, below: limits.caller)
            && all.hasRoom(for: label, below: limits.hub)
      else { return false }
    }
    shares.add(entry, isFirst: false)
    return true
  }

  /// Takes the work whose turn it is, as much as fits into a group.
  func take(_ group: JobGroup) -> [Entry] {
    var taken: [Entry] = []
    taken.reserveCapacity(min(count, group.jobs))
    var (rows, bytes) = (0, 0)
    while taken.count < group.jobs, rows < group.rows, bytes < group.bytes,
      let entry = shares.next()
    {
      taken.append(entry)
      rows += entry.label.rows
      bytes += entry.label.bytes
    }
    return taken
  }

  /// Returns the last part of a taken group: it comes first in its caller's next turn.
  func putBack(_ entries: some BidirectionalCollection<Entry>) {
    for entry in entries.reversed() { shares.add(entry, isFirst: true) }
  }

  /// Deducts the cost of work beyond its label from the next turns of its caller, hub and share.
  func charge(_ excess: Int, to label: JobLabel) { shares.charge(excess, to: label) }

  /// Removes a unit of work; `nil` when it is not waiting.
  func remove(_ number: UInt64, _ label: JobLabel) -> Item? {
    shares.remove(number, label)?.item
  }
}

/// A level of ``JobRotation``, or a leaf.
private class RotationNode<Item> {
  typealias Entry = JobRotation<Item>.Entry

  /// Total of the waiting work below.
  fileprivate(set) final var waiting = JobLimits.Amount()

  /// The next level's node for a label; `nil` when none of its work is waiting.
  func child(_ label: JobLabel) -> RotationNode<Item>? { nil }

  /// - Parameter isFirst: Whether it precedes all waiting work of its caller, because it was taken
  ///   and not done.
  func add(_ entry: Entry, isFirst: Bool) { waiting.add(entry.label) }

  func next() -> Entry? { nil }

  func remove(_ number: UInt64, _ label: JobLabel) -> Entry? { nil }

  func charge(_ excess: Int, to label: JobLabel) {}
}

/// Rotates turns among the members of one level.
private final class Rotation<Item, Key: Hashable>: RotationNode<Item> {
  private final class Member {
    let key: Key
    let node: RotationNode<Item>
    /// The allowance of one turn.
    let allowance: Int
    /// The rest of the current turn's allowance; below 0, a debt.
    var left: Int

    init(_ key: Key, _ node: RotationNode<Item>, allowance: Int) {
      self.key = key
      self.node = node
      self.allowance = allowance
      left = allowance
    }
  }

  private let key: (JobLabel) -> Key
  private let weight: (JobLabel) -> Int
  private let make: () -> RotationNode<Item>
  private var members: [Key: Member] = [:]
  private var order: [Member] = []
  /// The index of the current member in ``order``.
  private var place = 0

  init(
    by key: @escaping (JobLabel) -> Key, weight: @escaping (JobLabel) -> Int = { _ in 1 },
    of make: @escaping () -> RotationNode<Item>
  ) {
    self.key = key
    self.weight = weight
    self.make = make
  }

  override func child(_ label: JobLabel) -> RotationNode<Item>? { members[key(label)]?.node }

  override func add(_ entry: Entry, isFirst: Bool) {
    super.add(entry, isFirst: isFirst)
    let key = key(entry.label)
    if let member = members[key] {
      member.node.add(entry, isFirst: isFirst)
      if isFirst { member.left += entry.label.cost }
      return
    }
    let member = Member(key, make(), allowance: weight(entry.label) * JobLabel.allowance)
    member.node.add(entry, isFirst: isFirst)
    members[key] = member
    // Behind all members that are already waiting.
    order.insert(member, at: place)
    place += 1
  }

  override func next() -> Entry? {
    while !order.isEmpty {
      if place >= order.count { place = 0 }
      let member = order[place]
      if member.left <= 0 {
        // A single member has no debt.
        member.left = order.count == 1 ? member.allowance : member.left + member.allowance
        if order.count > 1 { place += 1 }
        continue
      }
      guard let entry = member.node.next() else {
        order.remove(at: place)
        members[member.key] = nil
        continue
      }
      member.left -= entry.label.cost
      waiting.add(entry.label, times: -1)
      return entry
    }
    place = 0
    return nil
  }

  override func charge(_ excess: Int, to label: JobLabel) {
    // A member without waiting work has no debt.
    guard let member = members[key(label)] else { return }
    // Several threads may charge one member; a debt is paid in few rounds.
    member.left = max(member.left - excess, -64 * JobLabel.allowance)
    member.node.charge(excess, to: label)
  }

  override func remove(_ number: UInt64, _ label: JobLabel) -> Entry? {
    // An empty node is removed when its turn comes.
    guard let entry = child(label)?.remove(number, label) else { return nil }
    waiting.add(label, times: -1)
    return entry
  }
}

/// The waiting work of one caller, in order of arrival.
private final class CallerJobs<Item>: RotationNode<Item> {
  /// By rising numbers; a removed unit leaves an empty slot.
  private var slots: [(number: UInt64, entry: Entry?)] = []
  private var first = 0

  override func add(_ entry: Entry, isFirst: Bool) {
    super.add(entry, isFirst: isFirst)
    if !isFirst {
      slots.append((entry.number, entry))
    } else if first > 0 {
      first -= 1
      slots[first] = (entry.number, entry)
    } else {
      slots.insert((entry.number, entry), at: 0)
    }
  }

  override func next() -> Entry? {
    while first < slots.count {
      let entry = slots[first].entry
      slots[first].entry = nil
      first += 1
      if first == slots.count {
        slots.removeAll(keepingCapacity: slots.capacity <= 64)
        first = 0
      } else if first >= 64, first * 2 >= slots.count {
        slots.removeFirst(first)
        first = 0
      }
      guard let entry else { continue }
      waiting.add(entry.label, times: -1)
      return entry
    }
    return nil
  }

  override func remove(_ number: UInt64, _ label: JobLabel) -> Entry? {
    var (low, high) = (first, slots.count)
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].number < number { low = middle + 1 } else { high = middle }
    }
    guard low < slots.count, slots[low].number == number, let entry = slots[low].entry else {
      return nil
    }
    slots[low].entry = nil
    waiting.add(label, times: -1)
    return entry
  }
}
