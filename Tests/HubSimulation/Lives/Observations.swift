import Foundation
import HubCore
import NotificationHubs

/// Observations of the database and the push services during a life, beside what clients know.
struct Observations {
  struct Notification {
    let number: Int64
    let id: NotificationID
    let hub: Hub.ID
    /// The line of the plan that has sent it.
    let line: Int
    /// When it was accepted, in seconds.
    let since: Double
    let isNative: Bool
    let isDirect: Bool
    /// Since when its delivery is owed, in seconds; `nil` before a schedule is released.
    var owedSince: Double?
    /// Since when its window runs: as ``owedSince``, or since its first claim when the node that
    /// accepted it did not know the time that all nodes share.
    var datedSince: Double?
    /// Those it is for: the handle and the version of each registration when it was owed.
    var audience: [RegistrationID: Member] = [:]
    /// All handles that its targets have had since, and who had them.
    var handles: [String: Set<RegistrationID>] = [:]
    /// The last epoch of each part.
    var epochs: [Int: Int64] = [:]
    /// As often was a part claimed on lines of time that the database has lost.
    var lostClaims: Int64 = 0
    var claims: Int64 { lostClaims + (epochs.values.max() ?? 0) }
    /// The number of deliveries that were given up, for a reason that passes, and the time of the last.
    var abandoned = 0
    var gaveUpAt = 0.0
  }

  /// The handle of a registration that was called dead or replaced, when, and to which process.
  typealias Condemned = (member: Member, at: Double, by: ProcessID)

  /// The changes of a lane's credential.
  struct Changes {
    fileprivate(set) var underWay = 0
    /// Number of those that were begun.
    fileprivate(set) var begun = 0
    fileprivate var lastAt = -Double.infinity
    /// Until then one whose answer was lost may still be made.
    fileprivate(set) var settledAt = -Double.infinity

    func mayBeDone(since moment: Double) -> Bool {
      underWay > 0 || max(lastAt, settledAt) >= moment
    }
  }

  /// Attempts to delete a hub or to erase a user; refused ones do not count.
  struct Removals {
    private var tries: [(hub: Int, end: Double)] = []

    /// - Returns: The number of a try, which is under way from now on.
    mutating func begin(_ hub: Int) -> Int {
      tries.append((hub, .infinity))
      return tries.count - 1
    }

    /// - Parameter end: Until when it may be done; `nil` for one that was refused.
    mutating func end(_ number: Int, at end: Double?) { tries[number].end = end ?? -.infinity }

    /// Whether one may have been done since a moment.
    /// - Parameter hub: `nil` for any.
    func mayBeDone(_ hub: Int? = nil, since moment: Double = 0) -> Bool {
      tries.contains { $0.end >= moment && (hub == nil || $0.hub == hub) }
    }
  }

  struct Member: Hashable {
    let handle: String
    let etag: Int64
  }

  struct PushKey: Hashable {
    let line: Int
    let handle: String
  }

  var notifications: [Int64: Notification] = [:]
  var numbers: [Int: [Int64]] = [:]
  /// Those that are not finished, by number.
  var open: [Int64] = []
  /// Versions of their rows at the last look: a row whose version is the same is unchanged.
  var seenVersions: [Int64: AnyObject] = [:]
  var lastNumber: Int64 = 0
  /// The pushes to a handle for a line of the plan, with the number of each.
  var pushes: [PushKey: [String: Int]] = [:]
  var pushKeys: [String: PushKey] = [:]
  /// Number of pushes of a line to a handle whose answer was, or may have been, lost.
  var unheard: [PushKey: Int] = [:]
  /// Lines that were aborted while there was something to send, and those of them that were sent on.
  var openAborts: Set<Int> = []
  var lateAborts: Set<Int> = []
  /// Parts that no process works on, and since when.
  var idle: [String: Double] = [:]
  /// Hubs that somebody has tried to delete, and those of which somebody has tried to erase a user.
  var deletions = Removals()
  var erasures = Removals()
  /// Something has gone wrong in this life.
  var isDisturbed = false
  /// When the database last lost commits that nodes knew of, in seconds.
  var wentBackAt: Double?
  /// Lines whose notification the database has lost: clients may have it made again, under another id.
  var lost: Set<Int> = []
  /// Schedules that were released, of which the database knows no more.
  var revived: Set<Int> = []
  var hasGoneBack: Bool { wentBackAt != nil }
  /// The database's time of day has gone on by so much that keys of repeats are over.
  var hasSkippedDays = false
  /// The nodes that lived and knew the time when the database's clock was last set, with their heartbeats by then;
  /// `nil` once one of them has seen it.
  var stepWatchers: [Int64: Int64]?
  /// The database's clock was set while no node lived to see it, which counts as time that passed
  /// (docs/reliability.md).
  var hasUnseenStep = false
  /// Machines whose time of day was set by a minute or more; -1 is the database's.
  var stepped: Set<Int> = []
  /// Processes that have begun when the database's time of day was wrong, and know no other.
  var hadWrongDatabase: Set<ProcessID> = []
  /// Registrations whose handle a trusted answer has called dead or replaced.
  var condemned: [RegistrationID: Condemned] = [:]
  /// The changes of credentials, by the lanes that use them. A hub that comes or goes changes all of its.
  private var credentials: [Lane: Changes] = [:]
  var pace = PaceRecords()
  var answers = Answers()
  var handleWords: [Lane: [ProcessID: HandleWords]] = [:]
  /// The progress of each part, and the time of its last change, in seconds.
  var progress: [String: (mark: Progress, since: Double)] = [:]
  /// Until when lanes to a service may rest, in seconds.
  var troubles: [SimulatedService: Double] = [:]
  /// The last commit whose registrations were looked at for ``Life/widenAudiences(_:)``.
  var widenedAt: Int64 = 0
  /// When the database last came to another server, where commits have other numbers.
  var movedAt = -Double.infinity
  /// Number of notifications accepted, including those that the database has lost.
  var accepted = 0
  /// Number of consecutive checks at which a process held more than there is to do.
  var heldMore: [ProcessID: Int] = [:]
  /// When, and by which process, the only hub's credential for a service was last set right; none
  /// once somebody begins to change it.
  var righted: [SimulatedService: (at: Double, by: ProcessID)] = [:]
  /// The last credential of a lane that is right or removed: its state in the plan, when that was
  /// answered, and by which process. None once somebody begins to change it.
  var given: [Lane: (state: Int, at: Double, by: ProcessID)] = [:]
  /// When a push was last refused by a fault of its service (5xx) that names no time, and how often the
  /// parts of its notification had been claimed.
  var failed: [PushKey: (at: Double, claims: Int64)] = [:]
  /// Since when nothing has been asked for and nothing is to be delivered, in seconds.
  var quietSince: Double?
  /// Push services that have called living handles dead.
  var slandered: Set<SimulatedService> = []

  /// Somebody begins to change the credentials of these lanes.
  mutating func beginChange(of lanes: [Lane]) {
    for lane in lanes {
      credentials[lane, default: Changes()].underWay += 1
      credentials[lane]?.begun += 1
    }
  }

  mutating func endChange(of lanes: [Lane], at seconds: Double) {
    for lane in lanes {
      credentials[lane]?.underWay -= 1
      credentials[lane]?.lastAt = seconds
    }
  }

  /// A try to change these has had no answer, and may still be done.
  mutating func noteUnansweredChange(of lanes: [Lane], until end: Double) {
    for lane in lanes { credentials[lane]?.settledAt = end }
  }

  func changes(of lane: Lane) -> Changes { credentials[lane] ?? Changes() }

  func hasChanged(_ lanes: [Lane], since moment: Double) -> Bool {
    lanes.contains { credentials[$0]?.mayBeDone(since: moment) ?? false }
  }

  /// Somebody sets the database's clock.
  /// - Parameter knowing: The nodes that know what time it was.
  mutating func beginStep(_ state: SimulatedDatabase.State, knowing: Set<Int64>) {
    if stepWatchers != nil { hasUnseenStep = true }
    stepWatchers = Dictionary(
      uniqueKeysWithValues: state.nodes.filter { !$0.isDead && knowing.contains($0.number) }.map {
        ($0.number, $0.beats)
      })
  }

  /// Looks whether a node that lived before the last step has seen it.
  mutating func watchStep(_ state: SimulatedDatabase.State) {
    guard let watchers = stepWatchers else { return }
    let living = state.nodes.filter { !$0.isDead && watchers[$0.number] != nil }
    if living.contains(where: { $0.beats > watchers[$0.number] ?? 0 }) {
      stepWatchers = nil
    } else if living.isEmpty {
      hasUnseenStep = true
      stepWatchers = nil
    }
  }

  /// An older copy of the database has taken its place.
  /// - Parameter isSet: Its clock was set since that was made, which no node of then has seen.
  mutating func restore(_ state: SimulatedDatabase.State, isSet: Bool) {
    if isSet || stepWatchers != nil { hasUnseenStep = true }
    stepWatchers = nil
    righted = [:]
    doubt(state)
  }

  /// The database has gone back to an earlier state.
  mutating func doubt(_ state: SimulatedDatabase.State) {
    // One that was lost, and comes back from a still earlier state, is not a new one.
    lastNumber = state.notifications.last?.number ?? 0
    for (number, seen) in notifications {
      let row = state.notifications[number: number]
      if row?.record.id != seen.id {
        lost.insert(seen.line)
        notifications[number] = nil
      } else {
        // A node that has its part goes on from what the database knows, as with a claim.
        notifications[number]?.lostClaims = seen.claims
        notifications[number]?.epochs = (row?.parts ?? []).reduce(into: [:]) {
          $0[$1.part] = $1.epoch
        }
        notifications[number]?.abandoned = 0
        if row?.record.state == .scheduled {
          if seen.owedSince != nil { revived.insert(seen.line) }
          notifications[number]?.owedSince = nil
          notifications[number]?.audience = [:]
        }
      }
    }
    // Numbers are given out again.
    for line in numbers.keys { numbers[line]?.removeAll { notifications[$0] == nil } }
    open = state.notifications.filter { !$0.record.state.isFinal }.map(\.number)
    seenVersions = [:]
    idle = [:]
  }
}

extension Life {
  /// Those whom a notification is for, by its line of the plan: what the product has made of that has no
  /// part in it.
  /// - Parameter rows: Others are left out; `nil` for all.
  func audience(
    of record: NotificationRecord, among rows: [RegistrationRow]? = nil,
    in state: SimulatedDatabase.State
  ) -> [RegistrationRow] {
    guard let line = Names.line(in: record.request.body).flatMap({ lines[$0] }),
      [.send, .schedule].contains(line.act)
    else { return [] }
    let (platform, expression) = (Self.kinds[line[1]], Names.expression(line[2]))
    let isMember = { (row: RegistrationRow) in
      guard row.hub == record.hub else { return false }
      let isMeant = platform.map { row.isNative && row.draft.platform == $0 } ?? !row.isNative
      return isMeant && (expression.map { Names.matches($0, row.tags) } ?? true)
    }
    return rows?.filter(isMember) ?? state.registrations.filter(isMember)
  }
}
