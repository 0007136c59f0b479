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

/// A unit of work in a queue. Each kind of work is a subclass.
open class QueuedJob: @unchecked Sendable {
  // The queue's lock guards these while it waits; then only the thread that has taken it uses it.
  final var label = JobLabel()
  /// The number by which a queue identifies it; increases with each unit.
  final var number: UInt64 = 0

  public init() {}
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
final class JobRotation {
  private let limits: JobLimits
  private var shares = Turns<ShareJobs>()
  private var waiting = 0

  init(limits: JobLimits) { self.limits = limits }

  var count: Int { waiting }
  /// The share of all of it; `nil` for work of several, and for none.
  var onlyShare: JobLabel.Share? {
    JobLabel.Share.allCases.first { shares.member($0)?.turn.waiting.jobs == waiting }
  }

  /// - Returns: `false` when the limit on waiting work is reached.
  func add(_ job: QueuedJob) -> Bool {
    guard waiting < limits.total else { return false }
    let label = job.label
    if label.caller != nil {
      let hub = shares.member(label.share)?.hubs.member(label.hub)
      let all = hub?.turn.waiting ?? JobLimits.Amount()
      let own = hub?.callers.member(label.caller)?.turn.waiting ?? JobLimits.Amount()
      guard
        own.jobs < limits.reserved
          || own.hasRoom(for: label, below: limits.caller)
            && all.hasRoom(for: label, below: limits.hub)
      else { return false }
    }
    add(job, isFirst: false)
    return true
  }

  /// - Parameter isFirst: Whether it precedes all waiting work of its caller, because it was taken
  ///   and not done.
  private func add(_ job: QueuedJob, isFirst: Bool) {
    let label = job.label
    let share = shares.join(label.share, label, isFirst: isFirst)
    let hub = share.hubs.join(label.hub, label, isFirst: isFirst)
    hub.callers.join(label.caller, label, isFirst: isFirst).add(job, isFirst: isFirst)
    waiting += 1
  }

  /// Takes the work whose turn it is, as much as fits into a group.
  func take(_ group: JobGroup) -> [QueuedJob] {
    var taken: [QueuedJob] = []
    taken.reserveCapacity(min(count, group.jobs))
    var (rows, bytes) = (0, 0)
    while taken.count < group.jobs, rows < group.rows, bytes < group.bytes, let job = shares.next()
    {
      taken.append(job)
      rows += job.label.rows
      bytes += job.label.bytes
    }
    waiting -= taken.count
    return taken
  }

  /// Returns the last part of a taken group: it comes first in its caller's next turn.
  func putBack(_ jobs: ArraySlice<QueuedJob>) {
    for job in jobs.reversed() { add(job, isFirst: true) }
  }

  /// Deducts the cost of work beyond its label from the next turns of its caller, hub and share.
  func charge(_ excess: Int, to label: JobLabel) {
    // A member without waiting work has no debt.
    guard let share = shares.member(label.share) else { return }
    share.turn.charge(excess)
    guard let hub = share.hubs.member(label.hub) else { return }
    hub.turn.charge(excess)
    hub.callers.member(label.caller)?.turn.charge(excess)
  }

  /// Removes a unit of work; `nil` when it is not waiting.
  func remove(_ number: UInt64, _ label: JobLabel) -> QueuedJob? {
    // Empty members are removed when their turn comes.
    guard let share = shares.member(label.share), let hub = share.hubs.member(label.hub),
      let caller = hub.callers.member(label.caller), let job = caller.remove(number)
    else { return nil }
    share.turn.waiting.add(label, times: -1)
    hub.turn.waiting.add(label, times: -1)
    caller.turn.waiting.add(label, times: -1)
    waiting -= 1
    return job
  }
}

/// A member of a level of ``JobRotation``.
private protocol TurnMember: AnyObject {
  associatedtype Key: Hashable
  var key: Key { get }
  var turn: Turn { get set }
  init(_ key: Key)
  /// Takes the next unit of its work.
  func next() -> QueuedJob?
}

/// A member's share of the turns, and the total of its waiting work.
private struct Turn {
  /// The allowance of one turn.
  let allowance: Int
  /// The rest of the current turn's allowance; below 0, a debt.
  var left: Int
  var waiting = JobLimits.Amount()

  init(weight: Int = 1) {
    allowance = weight * JobLabel.allowance
    left = allowance
  }

  mutating func charge(_ excess: Int) {
    // Several threads may charge one member; a debt is paid in few rounds.
    left = max(left - excess, -64 * JobLabel.allowance)
  }
}

/// Rotates turns among the members of one level.
private struct Turns<Member: TurnMember> {
  private var members: [Member.Key: Member] = [:]
  private var order: [Member] = []
  /// The index of the current member in ``order``.
  private var place = 0
  /// The member that was looked up last: mostly the one that is looked up next.
  private var recent: Member?

  /// `nil` when none of its work is waiting.
  mutating func member(_ key: Member.Key) -> Member? {
    if let recent, recent.key == key { return recent }
    guard let found = members[key] else { return nil }
    recent = found
    return found
  }

  /// The member to which work with a label is added.
  mutating func join(_ key: Member.Key, _ label: JobLabel, isFirst: Bool) -> Member {
    if let member = member(key) {
      member.turn.waiting.add(label)
      if isFirst { member.turn.left += label.cost }
      return member
    }
    let member = Member(key)
    member.turn.waiting.add(label)
    members[key] = member
    recent = member
    // Behind all members that are already waiting.
    order.insert(member, at: place)
    place += 1
    return member
  }

  mutating func next() -> QueuedJob? {
    while !order.isEmpty {
      if place >= order.count { place = 0 }
      let member = order[place]
      if member.turn.left <= 0 {
        // A single member has no debt.
        let isAlone = order.count == 1
        member.turn.left = member.turn.allowance + (isAlone ? 0 : member.turn.left)
        if !isAlone { place += 1 }
        continue
      }
      guard let job = member.next() else {
        order.remove(at: place)
        members[member.key] = nil
        if recent === member { recent = nil }
        continue
      }
      member.turn.left -= job.label.cost
      member.turn.waiting.add(job.label, times: -1)
      return job
    }
    place = 0
    return nil
  }
}

/// The waiting work of a share.
private final class ShareJobs: TurnMember {
  let key: JobLabel.Share
  var turn: Turn
  var hubs = Turns<HubJobs>()

  init(_ share: JobLabel.Share) {
    key = share
    turn = Turn(weight: share.weight)
  }

  func next() -> QueuedJob? { hubs.next() }
}

/// The waiting work of a hub.
private final class HubJobs: TurnMember {
  let key: Int64
  var turn = Turn()
  var callers = Turns<CallerJobs>()

  init(_ hub: Int64) { key = hub }

  func next() -> QueuedJob? { callers.next() }
}

/// The waiting work of one caller, in order of arrival.
private final class CallerJobs: TurnMember {
  let key: String?
  var turn = Turn()
  /// By rising numbers; a removed unit leaves an empty slot.
  private var slots: [(number: UInt64, job: QueuedJob?)] = []
  private var first = 0

  init(_ caller: String?) { key = caller }

  func add(_ job: QueuedJob, isFirst: Bool) {
    if !isFirst {
      slots.append((job.number, job))
    } else if first > 0 {
      first -= 1
      slots[first] = (job.number, job)
    } else {
      slots.insert((job.number, job), at: 0)
    }
  }

  func next() -> QueuedJob? {
    while first < slots.count {
      let job = slots[first].job
      slots[first].job = nil
      first += 1
      if first == slots.count {
        slots.removeAll(keepingCapacity: slots.capacity <= 64)
        first = 0
      } else if first >= 64, first * 2 >= slots.count {
        slots.removeFirst(first)
        first = 0
      }
      if let job { return job }
    }
    return nil
  }

  func remove(_ number: UInt64) -> QueuedJob? {
    var (low, high) = (first, slots.count)
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].number < number { low = middle + 1 } else { high = middle }
    }
    guard low < slots.count, slots[low].number == number, let job = slots[low].job else {
      return nil
    }
    slots[low].job = nil
    return job
  }
}
