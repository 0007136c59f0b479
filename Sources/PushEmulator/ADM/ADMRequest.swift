import Cryptography
import HTTP2
import HTTPServer
import Wire

/// A request to ADM or its token service (docs/protocol/push-services/adm.md, sections 1 to 3).
struct ADMRequest: Sendable {
  enum Target: Sendable, Equatable {
    case token
    /// The registration id.
    case message(String)
    case nothing
  }

  static let tokenPath = "/auth/O2/token"

  let plain: PlainRequest
  let target: Target

  init(_ request: HTTP2ServerRequest) {
    plain = PlainRequest(request)
    let parts = HTTPTarget(plain.path).pathSegments.map(\.decoded)
    if plain.path == Self.tokenPath {
      target = .token
    } else if parts.count == 4, parts[0] == "messaging", parts[1] == "registrations",
      parts[3] == "messages", let id = parts[2], !id.isEmpty
    {
      target = .message(id)
    } else {
      target = .nothing
    }
  }

  /// The fields of a message that ADM checks.
  struct Message: Sendable {
    let consolidationKey: String?
    /// In seconds.
    let expiresAfter: Int64
    let isUrgent: Bool
    /// The checksum of `data`, as ADM computes it.
    let checksum: String
  }

  /// Checks the body in the order of the fields in docs/protocol/push-services/adm.md, section 3.
  func message() throws(ADMReason) -> Message {
    guard plain["x-amzn-type-version"] == "com.amazon.device.messaging.ADMMessage@1.0",
      [nil, "com.amazon.device.messaging.ADMSendResult@1.0"].contains(plain["x-amzn-accept-type"])
    else { throw .invalidType }
    guard plain.body.count <= 6144 else { throw .messageTooLarge }
    guard plain.mediaType == "application/json",
      let json = try? JSONValue.read(plain.body, uniqueNames: true),
      json.members != nil
    else { throw .invalidData }
    let checksum = try Self.checksum(json)
    let key = try Self.consolidationKey(json)
    let expiresAfter = try Self.expiresAfter(json)
    if let given = json["md5"], given != .string(checksum) { throw .invalidChecksum }
    let priority = json.member("priority")
    guard [nil, "normal", "high"].contains(priority) else { throw .invalidData }
    return Message(
      consolidationKey: key, expiresAfter: expiresAfter, isUrgent: priority == "high",
      checksum: checksum)
  }

  /// The checksum: keys sorted by their bytes, `key:value` joined with commas, MD5, base 64.
  private static func checksum(_ json: JSONValue) throws(ADMReason) -> String {
    let data = json.member("data")
    guard data != nil || json.member("notification")?.members != nil else { throw .invalidData }
    var pairs: [(name: String, value: String)] = []
    if let data {
      guard let members = data.members else { throw .invalidData }
      for member in members {
        guard let text = member.value.text else { throw .invalidData }
        pairs.append((member.name, text))
      }
    }
    pairs.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let joined = pairs.map { "\($0.name):\($0.value)" }.joined(separator: ",")
    return Base64.encode(Digest.md5(Array(joined.utf8)))
  }

  private static func consolidationKey(_ json: JSONValue) throws(ADMReason) -> String? {
    guard let value = json.member("consolidationKey") else { return nil }
    guard let key = value.text, key.count <= 64 else { throw .invalidConsolidationKey }
    return key
  }

  private static func expiresAfter(_ json: JSONValue) throws(ADMReason) -> Int64 {
    guard let value = json.member("expiresAfter") else { return 7 * 86_400 }
    guard let seconds = value.whole, (60...31 * 86_400).contains(seconds) else {
      throw .invalidExpiration
    }
    return seconds
  }
}

/// The reasons for which ADM refuses a message, spelled as on the wire
/// (docs/protocol/push-services/adm.md, section 4).
enum ADMReason: String, CaseIterable, Error {
  case invalidRegistrationID = "InvalidRegistrationId"
  case unregistered = "Unregistered"
  case invalidData = "InvalidData"
  case invalidConsolidationKey = "InvalidConsolidationKey"
  case invalidExpiration = "InvalidExpiration"
  case invalidChecksum = "InvalidChecksum"
  case invalidType = "InvalidType"
  case accessTokenExpired = "AccessTokenExpired"
  case messageTooLarge = "MessageTooLarge"
  case maxRateExceeded = "MaxRateExceeded"

  var status: Int {
    switch self {
    case .accessTokenExpired: 401
    case .messageTooLarge: 413
    case .maxRateExceeded: 429
    default: 400
    }
  }

  /// The most frequent reason with a status.
  static func usual(for status: Int) -> ADMReason? {
    switch status {
    case 400: .invalidRegistrationID
    case 401: .accessTokenExpired
    case 413: .messageTooLarge
    case 429: .maxRateExceeded
    default: nil
    }
  }
}
