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

  var service: PushService {
    switch headers {
    case .apns: .apns
    case .fields(let service, _): service
    }
  }
}

/// The part of a device's store that a message waits in, with its limit (emulator.md, section 3,
/// row "store limit"). It comes with the message, so that the store needs no service's rules.
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
}
