/// A message that a push service accepted for a device; immutable, shared by history, store and
/// streams.
final class Notification: Sendable {
  /// The service's own header fields that are relevant on the device.
  enum Headers: Sendable {
    case apns(APNsHeaders)
    case fields(PushService, [Field])
  }

  /// A header field, or the service's equivalent.
  struct Field: Sendable, Codable, Equatable {
    let name: String
    let value: String
  }

  /// Whether an encrypted payload could be decrypted.
  enum Decryption: Sendable, Equatable {
    /// It was not encrypted, or the emulator has no key for it.
    case none
    case succeeded
    case failed(reason: String)
  }

  let id: MessageID
  /// In ms since the Unix epoch.
  let receivedAt: Int64
  let headers: Headers
  /// The payload as the device sees it, decrypted if possible; for APNs one JSON object.
  let payload: [UInt8]
  let decryption: Decryption
  let urgency: Urgency
  /// The key of a shown notification that this one replaces.
  let collapseKey: String?
  /// The key of a waiting message that this one replaces.
  let storeKey: String?
  /// Time until which it may be stored, in ms since the Unix epoch; 0 when it must not be stored.
  let storableUntil: Int64
  /// Time before which no device gets it, in ms since the Unix epoch; 0 for immediately.
  let notBefore: Int64
  /// The part of the store in which it waits, with its limit.
  let shelf: Shelf
  /// The request in the journal.
  let requestSeq: Int

  /// - Parameter storeKey: By default the collapse key.
  init(
    id: MessageID, receivedAt: Int64, headers: Headers, payload: [UInt8],
    decryption: Decryption = .none, urgency: Urgency, collapseKey: String?,
    storeKey: String?? = .none, storableUntil: Int64, notBefore: Int64 = 0, shelf: Shelf,
    requestSeq: Int
  ) {
    self.id = id
    self.receivedAt = receivedAt
    self.headers = headers
    self.payload = payload
    self.decryption = decryption
    self.urgency = urgency
    self.collapseKey = collapseKey
    self.storeKey = storeKey ?? collapseKey
    self.storableUntil = storableUntil
    self.notBefore = notBefore
    self.shelf = shelf
    self.requestSeq = requestSeq
  }

  /// Approximate memory that it occupies, in bytes.
  var cost: Int {
    let texts = [collapseKey, storeKey].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    let fields: Int =
      switch headers {
      case .apns: 256
      case .fields(_, let fields):
        fields.reduce(0) { $0 + 96 + $1.name.utf8.count + $1.value.utf8.count }
      }
    return 384 + payload.count + texts + fields
  }

  var service: PushService {
    switch headers {
    case .apns: .apns
    case .fields(let service, _): service
    }
  }
}

/// The part of a device's store that a message waits in, with its limit (docs/protocol/emulator.md,
/// section 3, row "store limit"). It is part of the message, so that the store is independent of
/// the services' rules.
struct Shelf: Sendable, Codable, Equatable {
  /// The policy for making room for one more.
  enum Overflow: String, Sendable, Codable {
    /// The oldest counts as replaced by the new one.
    case replacesOldest
    /// The oldest is discarded.
    case dropsOldest
    /// All on the shelf are discarded, including the new one, and the app is notified (FCM).
    case dropsAll
  }

  /// Distinguishes the shelves of one device.
  let number: UInt8
  /// Maximum number of messages on it, at least 1.
  let limit: Int
  let overflow: Overflow

  /// The shelf of services that document no limit.
  static let wide = Shelf(number: 0, limit: 100, overflow: .dropsOldest)
}

/// The urgency of a message, in an order common to all services: Web Push's four words (RFC 8030,
/// section 5.3); the priorities of others map to two of them.
enum Urgency: UInt8, Comparable, Sendable, Codable {
  case veryLow, low, normal, high

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  static let words = ["very-low", "low", "normal", "high"]

  /// The value of Web Push's `Urgency`.
  var word: String { Self.words[Int(rawValue)] }

  init?(word: String) {
    guard let place = Self.words.firstIndex(of: word) else { return nil }
    self.init(rawValue: UInt8(place))
  }
}

/// Something that happened to a device, as shown by its event stream (docs/protocol/emulator.md,
/// section 2.3).
struct DeviceEvent: Sendable {
  enum Body: Sendable {
    case notification(Delivery)
    /// A waiting message was replaced by a newer one.
    case replaced(MessageID, by: MessageID)
    /// A waiting message expired.
    case expired(MessageID)
    case discarded(MessageID, DiscardReason)
    /// The store overflowed and all waiting messages were discarded; FCM only.
    case deletedMessages
    case state(DeviceStateName)
  }

  /// Counts from 1 within the device.
  let seq: Int
  let body: Body

  /// Approximate memory that it occupies, in bytes, for the budget of the history.
  var cost: Int {
    if case .notification(let delivery) = body {
      Self.place + delivery.notification.cost
    } else {
      Self.place
    }
  }

  /// Memory for its entry in a ring buffer, up to half of which is empty, and in two other lists.
  static let place = 2 * MemoryLayout<DeviceEvent?>.stride + 32
}

/// A notification shown on a device.
struct Delivery: Sendable {
  enum Source: String, Sendable, Codable {
    case live, store
  }

  let notification: Notification
  let source: Source
  /// In ms since the Unix epoch.
  let deliveredAt: Int64
  /// The notification on the device that it replaced.
  let replaces: MessageID?
}

/// The rule by which a virtual device counts as online.
enum Presence: String, CaseIterable, Sendable, Codable {
  /// Online while `online` is true, whether or not anybody listens.
  case flag
  /// Online exactly while an event stream of the device, or of its app, is open.
  case stream
}

/// The reason for which a message was discarded.
enum DiscardReason: String, CaseIterable, Sendable, Codable {
  case offlineNoStore = "offline-no-store"
  case storeFull = "store-full"
  case disabled
  case unregisteredSilent = "unregistered-silent"
  case badPayload = "bad-payload"
}

/// The word in a `state` event.
enum DeviceStateName: String, Sendable, Codable {
  case online, offline, unregistered, rotated
}

/// The result for a message; counted in the statistics and kept in the journal.
enum StoreAction: Int, CaseIterable, Sendable {
  /// Shown on the device at once.
  case delivered
  /// Held until the device leaves low-power mode.
  case held
  /// Waits until the device is online.
  case stored
  /// As `stored`, and it replaced an older one.
  case replaced
  case discarded

  /// The word in the control API.
  var word: String { "\(self)" }
}

/// The id of a message at a push service: a UUID for APNs, stored without a string, and elsewhere a
/// word in the service's own form.
enum MessageID: Hashable, Sendable {
  case apns(APNsMessageID)
  case word(String)

  var text: String {
    switch self {
    case .apns(let id): id.text
    case .word(let word): word
    }
  }

  /// Reads the output of `text`.
  init(_ text: String) { self = APNsMessageID(text).map(MessageID.apns) ?? .word(text) }
}
