/// A message that a push service took for a device; never changes, shared by history, store and
/// streams.
final class Notification: Sendable {
  /// The service's own header fields that matter on the device.
  enum Headers: Sendable {
    case apns(APNsHeaders)
    case fields(PushService, [Field])
  }

  /// A header field, or what the service has in its place.
  struct Field: Sendable, Codable, Equatable {
    let name: String
    let value: String
  }

  /// Whether a payload that came encrypted could be read.
  enum Decryption: Sendable, Equatable {
    /// It came in the clear, or the emulator has no key for it.
    case none
    case succeeded
    case failed(reason: String)
  }

  let id: MessageID
  /// In ms since the Unix epoch.
  let receivedAt: Int64
  let headers: Headers
  /// What the device sees, decrypted where that could be done; for APNs one JSON object.
  let payload: [UInt8]
  let decryption: Decryption
  let urgency: Urgency
  /// Takes the place of a shown notification with the same key.
  let collapseKey: String?
  /// Takes the place of a waiting message with the same key.
  let storeKey: String?
  /// May be kept until then, in ms since the Unix epoch; 0 when it may not be kept at all.
  let storableUntil: Int64
  /// No device gets it before, in ms since the Unix epoch; 0 for at once.
  let notBefore: Int64
  /// Where it waits, and with how many others.
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

  /// The memory it holds on to, in bytes and roughly.
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
/// section 3, row "store limit"). It comes with the message, so that the store needs no service's
/// rules.
struct Shelf: Sendable, Codable, Equatable {
  /// What happens to make room for one more.
  enum Overflow: String, Sendable, Codable {
    /// The oldest counts as replaced by the new one.
    case replacesOldest
    /// The oldest is discarded.
    case dropsOldest
    /// All of the shelf are discarded, the new one too, and the app is told so (FCM).
    case dropsAll
  }

  /// Tells the shelves of one device apart.
  let number: UInt8
  /// Most messages on it, at least 1.
  let limit: Int
  let overflow: Overflow

  /// Where messages wait at services that say nothing of a limit.
  static let wide = Shelf(number: 0, limit: 100, overflow: .dropsOldest)
}

/// How much a message presses, in the services' common order: Web Push's four words
/// (RFC 8030, section 5.3); the others' priorities are two of them.
enum Urgency: UInt8, Comparable, Sendable, Codable {
  case veryLow, low, normal, high

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  static let words = ["very-low", "low", "normal", "high"]

  /// As `Urgency` of Web Push says it.
  var word: String { Self.words[Int(rawValue)] }

  init?(word: String) {
    guard let place = Self.words.firstIndex(of: word) else { return nil }
    self.init(rawValue: UInt8(place))
  }
}

/// Something that happened to a device; what its event stream shows (docs/protocol/emulator.md,
/// section 2.3).
struct DeviceEvent: Sendable {
  enum Body: Sendable {
    case notification(Delivery)
    /// A waiting message was replaced by a newer one.
    case replaced(MessageID, by: MessageID)
    /// A waiting message passed its time.
    case expired(MessageID)
    case discarded(MessageID, DiscardReason)
    /// The store overflowed and all that waited is gone; FCM only.
    case deletedMessages
    case state(DeviceStateWord)
  }

  /// Counts from 1 within the device.
  let seq: Int
  let body: Body

  /// The memory it holds on to, in bytes and roughly, for the budget of the history.
  var cost: Int {
    if case .notification(let delivery) = body {
      Self.place + delivery.notification.cost
    } else {
      Self.place
    }
  }

  /// Its place in a ring, of which up to a half is empty, and in two lists of what there is.
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
  /// The notification on the device whose place it took.
  let replaces: MessageID?
}

/// The words of the control API that are not particular to one push service.
enum Presence: String, CaseIterable, Sendable, Codable {
  /// Online while `online` is true, whether or not anybody listens.
  case flag
  /// Online exactly while an event stream of the device, or of its app, is open.
  case stream
}

/// Why a message was thrown away.
enum DiscardReason: String, CaseIterable, Sendable, Codable {
  case offlineNoStore = "offline-no-store"
  case storeFull = "store-full"
  case disabled
  case unregisteredSilent = "unregistered-silent"
  case badPayload = "bad-payload"
}

/// What a `state` event says.
enum DeviceStateWord: String, Sendable, Codable {
  case online, offline, unregistered, rotated
}

/// What became of a message; counted in the statistics and kept in the journal.
enum StoreAction: Int, CaseIterable, Sendable {
  /// Shown on the device at once.
  case delivered
  /// Waits until the device saves no more power.
  case held
  /// Waits until the device is online.
  case stored
  /// As `stored`, and an older one had to go.
  case replaced
  case discarded

  /// As the control API says it.
  var word: String { "\(self)" }
}

/// What a push service calls a message: a UUID for APNs, kept without a string, and a word of the
/// service's own form elsewhere.
enum MessageID: Hashable, Sendable {
  case apns(APNsMessageID)
  case word(String)

  var text: String {
    switch self {
    case .apns(let id): id.text
    case .word(let word): word
    }
  }

  /// Reads what `text` wrote.
  init(_ text: String) { self = APNsMessageID(text).map(MessageID.apns) ?? .word(text) }
}
