/// A broadcast channel: one push to it reaches every device that subscribed
/// (https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns).
struct APNsChannel: Sendable {
  /// What becomes of a broadcast for a subscriber that cannot be reached at once.
  enum StoragePolicy: Int, Sendable, Codable {
    case noMessageStored = 0
    case mostRecentMessageStored = 1
  }

  /// Where a channel lives: one app in one environment.
  struct Place: Hashable, Sendable {
    let app: UInt32
    let environment: APNsEnvironment
  }

  /// The value of `push-type`; Apple has no other yet.
  static let pushType = "LiveActivity"

  /// As APNs tells it: base 64 with padding.
  let id: String
  let place: Place
  let policy: StoragePolicy
  /// In ms since the Unix epoch.
  let createdAt: Int64
  /// Channels are listed in the order of their making.
  let number: Int
  /// Device indices.
  var subscribers: Set<Int> = []

  /// Whether a text can be a channel's id: base 64 with padding, of 1 to 64 characters. Apple names
  /// encoding and length as what can be wrong and gives no number.
  static func isWellFormed(_ id: ArraySlice<UInt8>) -> Bool {
    guard (1...64).contains(id.count), id.count % 4 == 0 else { return false }
    let digits = id.prefix { $0 != UInt8(ascii: "=") }
    return id.count - digits.count <= 2
      && id[digits.endIndex...].allSatisfy { $0 == UInt8(ascii: "=") }
      && digits.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
          true
        default: false
        }
      }
  }
}

/// All broadcast channels.
struct APNsChannels: Sendable {
  private var places: [APNsChannel.Place: [String: APNsChannel]] = [:]
  private var lastNumber = 0

  func channel(_ id: String, at place: APNsChannel.Place) -> APNsChannel? { places[place]?[id] }

  func count(at place: APNsChannel.Place) -> Int { places[place]?.count ?? 0 }

  /// In the order of their making.
  func all(at place: APNsChannel.Place) -> [APNsChannel] {
    (places[place] ?? [:]).values.sorted { $0.number < $1.number }
  }

  /// Of all apps, in the order of their making.
  var all: [APNsChannel] {
    places.values.flatMap(\.values).sorted { $0.number < $1.number }
  }

  mutating func add(
    id: String, at place: APNsChannel.Place, policy: APNsChannel.StoragePolicy, now: Int64,
    subscribers: Set<Int> = []
  ) {
    lastNumber += 1
    places[place, default: [:]][id] = APNsChannel(
      id: id, place: place, policy: policy, createdAt: now, number: lastNumber,
      subscribers: subscribers)
  }

  mutating func remove(_ id: String, at place: APNsChannel.Place) { places[place]?[id] = nil }

  mutating func remove(app: UInt32) { places = places.filter { $0.key.app != app } }

  mutating func removeAll() { places = [:] }

  /// - Returns: Whether the channel is there.
  mutating func setSubscribed(
    _ device: Int, _ isSubscribed: Bool, to id: String, at place: APNsChannel.Place
  ) -> Bool {
    guard places[place]?[id] != nil else { return false }
    if isSubscribed {
      places[place]?[id]?.subscribers.insert(device)
    } else {
      places[place]?[id]?.subscribers.remove(device)
    }
    return true
  }
}
