/// A message that a push service took for a device; never changes, shared by history, store and
/// streams.
final class Notification: Sendable {
  /// The service's own header fields that matter on the device.
  enum Headers: Sendable {
    case apns(APNsHeaders)
  }

  let id: MessageID
  /// In ms since the Unix epoch.
  let receivedAt: Int64
  let headers: Headers
  /// As sent; for APNs one JSON object.
  let payload: [UInt8]
  /// A newer message with the same key replaces this one.
  let collapseKey: String?
  /// May be kept until then, in ms since the Unix epoch; 0 when it may not be kept at all.
  let storableUntil: Int64
  /// The request in the journal.
  let requestSeq: Int

  init(
    id: MessageID, receivedAt: Int64, headers: Headers, payload: [UInt8], collapseKey: String?,
    storableUntil: Int64, requestSeq: Int
  ) {
    self.id = id
    self.receivedAt = receivedAt
    self.headers = headers
    self.payload = payload
    self.collapseKey = collapseKey
    self.storableUntil = storableUntil
    self.requestSeq = requestSeq
  }
}
