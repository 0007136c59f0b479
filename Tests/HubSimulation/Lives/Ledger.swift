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

/// The things that a life's clients write about, from small pools so that they meet.
enum Names {
  static let tags = ["red", "green", "blue", "beta", "news"]

  static func hub(_ index: Int) -> String { "hub\(index)" }
  static func device(_ index: Int) -> String { "device\(index)" }
  static func user(_ index: Int) -> String { "user\(index)" }
  /// Those of a life, by the number that a plan gives them.
  static let platforms: [PushPlatform] = [.apns, .fcmv1, .wns, .browser]
  /// The handles from here on are channels of Windows, and as many later subscriptions of browsers.
  static let windowsHandles = 5_000
  static let browserHandles = 6_000

  /// Of the others one in four is of FCM, and the rest of APNs.
  static func platform(ofHandle index: Int) -> PushPlatform {
    if index >= browserHandles { return .browser }
    return index >= windowsHandles ? .wns : index % 4 == 3 ? .fcmv1 : .apns
  }

  private static let zeros = String(repeating: "0", count: 64)

  /// In the form in which it is stored.
  static func handle(_ index: Int) -> String {
    let number = String(index + 0x1000, radix: 16, uppercase: true)
    return switch platform(ofHandle: index) {
    case .apns: zeros.dropFirst(number.count) + number
    case .wns: "https://db5.notify.windows.com/?token=\(number)"
    case .browser: SimulatedBrowser.handle("https://updates.push.services.mozilla.com/v2/\(number)")
    default: "token-\(number)"
    }
  }

  static func channel(_ index: Int) -> PushChannel {
    PushChannel(stored: handle(index), platform: platform(ofHandle: index))
  }

  /// A handle in the form in which it is stored, from that which its push service has.
  static func handle(_ text: String, of service: SimulatedService) -> String {
    switch service {
    case .apns: text.uppercased()
    case .webPush: SimulatedBrowser.handle(text)
    default: text
    }
  }

  /// The last digits of a handle, for readers.
  static func short(_ handle: String) -> String {
    String(decoding: handle.utf8.prefix { $0 != UInt8(ascii: "\n") }.suffix(4), as: UTF8.self)
  }

  private static let word = Array("line ".utf8)

  /// The line of the plan that a message names: `line 17`.
  static func line(in body: [UInt8]) -> Int? {
    // Not `firstRange(of:)`, which takes longer than what is done with the line.
    let start = body.indices.first { body[$0] == word[0] && body[$0...].starts(with: word) }
    guard let start else { return nil }
    let digits = body[(start + word.count)...].prefix { (0x30...0x39).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self))
  }

  static func index(ofHandle text: String) -> Int? {
    Int(short(text), radix: 16).map { $0 - 0x1000 }
  }

  static func tags(_ mask: Int) -> [String] {
    tags.indices.filter { mask >> $0 & 1 == 1 }.map { tags[$0] }
  }

  static func mask(_ names: some Sequence<String>) -> Int {
    names.reduce(0) { mask, name in tags.firstIndex(of: name).map { mask | 1 << $0 } ?? mask }
  }

  /// `nil` is everyone.
  static func expression(_ index: Int) -> String? {
    switch index {
    case 1...5: tags[index - 1]
    case 6: "red && green"
    case 7: "blue || !beta"
    case 8: "$UserId:{user1}"
    case 9: "$InstallationId:{device2}"
    default: nil
    }
  }

  static let expressions = 10
}
