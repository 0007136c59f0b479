import Foundation
import HubCore
import NotificationHubs

/// The knowledge of clients: all that they were told is done, and when.
struct Ledger {
  struct DeviceKey: Hashable, Comparable {
    let hub: Int
    let device: Int

    static func < (one: Self, other: Self) -> Bool {
      (one.hub, one.device) < (other.hub, other.device)
    }
  }

  /// `nil` where there is no such device.
  struct Device {
    var handle = Acknowledged<Int?>(nil)
    var tags = Acknowledged<Int?>(nil)
    var user = Acknowledged<Int?>(nil)
  }

  struct Registration: Sendable {
    let hub: Int
    let id: String
    let handle: Int
    var isThere = Acknowledged(false)
  }

  /// A send that was answered.
  struct Send {
    let hub: Int
    /// When its client has first asked for it, in seconds.
    let since: Double
    var ids: [NotificationID] = []
    /// When it was told the last of its ids.
    var answeredAt = Double.infinity
    /// When it was told that it will not be sent.
    var cancelledAt: Double?
    var abortedAt: Double?
    /// The database has lost its last commits since.
    var isDoubtful = false
  }

  /// Devices of a hub that were removed at once.
  private struct Removal {
    let hub: Int
    /// `nil`: all of the hub.
    let user: Int?
    let begin: Double
    var end: Double
    var isCertain: Bool

    /// Until when it may be done.
    var last: Double { isCertain ? end : end + Acknowledged<Int?>.straggling }
  }

  private var removals: [Removal] = []
  var devices: [DeviceKey: Device] = [:]
  /// By the line that made it.
  var registrations: [Int: Registration] = [:]
  var sends: [Int: Send] = [:]
  /// By hub, whether there is one.
  var hubs: [Int: Acknowledged<Bool>] = [:]
  /// The handles that a push service has said to take in place of one.
  var replacements: [Int: Set<Int>] = [:]

  /// The database has lost what it committed since a moment.
  mutating func doubt(since moment: Double, at now: Double) {
    for key in devices.keys {
      devices[key]?.handle.doubt(since: moment, at: now)
      devices[key]?.tags.doubt(since: moment, at: now)
      devices[key]?.user.doubt(since: moment, at: now)
    }
    for key in registrations.keys { registrations[key]?.isThere.doubt(since: moment, at: now) }
    for key in hubs.keys { hubs[key]?.doubt(since: moment, at: now) }
    for index in removals.indices where removals[index].last >= moment {
      removals[index].isCertain = false
      removals[index].end = max(removals[index].end, now)
    }
    for (key, send) in sends {
      if send.answeredAt >= moment { sends[key]?.isDoubtful = true }
      if let at = send.cancelledAt, at >= moment { sends[key]?.cancelledAt = nil }
      if let at = send.abortedAt, at >= moment { sends[key]?.abortedAt = nil }
    }
  }

  /// A device was written, or removed by its own name.
  mutating func note(
    _ place: DeviceKey, handle: Int?, tags: Int?, user: Int?, since begin: Double, at end: Double,
    isCertain: Bool
  ) {
    add(place, handle: handle, tags: tags, user: user, since: begin, at: end, isCertain: isCertain)
    // One that was under way beside it, and was answered first, did not find it here.
    for removal in removals where removal.hub == place.hub && removal.last >= begin {
      apply(removal, to: place)
    }
  }

  private mutating func add(
    _ place: DeviceKey, handle: Int?, tags: Int?, user: Int?, since begin: Double, at end: Double,
    isCertain: Bool
  ) {
    devices[place, default: Device()].handle
      .note(handle, since: begin, at: end, isCertain: isCertain)
    devices[place]?.tags.note(tags, since: begin, at: end, isCertain: isCertain)
    devices[place]?.user.note(user, since: begin, at: end, isCertain: isCertain)
  }

  mutating func note(
    _ place: DeviceKey, tags: Int, since begin: Double, at end: Double, isCertain: Bool
  ) {
    devices[place, default: Device()].tags.note(tags, since: begin, at: end, isCertain: isCertain)
  }

  /// Devices of a hub are gone, whichever they are: all of a user, or just all.
  mutating func remove(
    user: Int?, hub: Int, since begin: Double, at end: Double, isCertain: Bool
  ) {
    let removal = Removal(hub: hub, user: user, begin: begin, end: end, isCertain: isCertain)
    removals.append(removal)
    for place in devices.keys.sorted() where place.hub == hub { apply(removal, to: place) }
  }

  private mutating func apply(_ removal: Removal, to place: DeviceKey) {
    let users = devices[place]?.user.possible ?? []
    guard removal.user.map({ users.contains($0) }) ?? true else { return }
    add(
      place, handle: nil, tags: nil, user: nil, since: removal.begin, at: removal.end,
      isCertain: removal.isCertain && (removal.user == nil || users.count == 1))
  }
}
