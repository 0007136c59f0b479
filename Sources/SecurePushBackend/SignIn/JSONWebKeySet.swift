import Cryptography
import NotificationHubs
import Wire

/// The public keys of a token's issuer (RFC 7517): those for RS256 and ES256; others are passed over.
struct JSONWebKeySet: Sendable {
  enum Key: Sendable {
    case rsa(RSAPublicKey)
    case p256(P256PublicKey)
  }

  /// By key id; a key without an id stands under the empty text.
  let keys: [String: Key]

  /// - Parameter json: A key set, `{"keys":[…]}`.
  /// - Returns: `nil` when it is none, or holds no key that can be used.
  init?(json: some Collection<UInt8>) {
    guard let document = try? JSONValue.parse(json), case .array(let items)? = document["keys"]
    else { return nil }
    var keys: [String: Key] = [:]
    // An issuer has a handful.
    for item in items.prefix(100) {
      guard let key = Self.key(item) else { continue }
      keys[item["kid"]?.scalarText ?? ""] = key
    }
    guard !keys.isEmpty else { return nil }
    self.keys = keys
  }

  /// The key a token names; without a name the only one there is.
  func key(named id: String?) -> Key? {
    if let id { return keys[id] }
    return keys.count == 1 ? keys.first?.value : nil
  }

  private static func key(_ item: JSONValue) -> Key? {
    if let use = item["use"]?.scalarText, use != "sig" { return nil }
    switch item["kty"]?.scalarText {
    case "RSA":
      guard let modulus = number(item, "n"), let exponent = number(item, "e"),
        let key = try? RSAPublicKey(modulus: modulus, exponent: exponent)
      else { return nil }
      return .rsa(key)
    case "EC":
      guard item["crv"]?.scalarText == "P-256", let x = number(item, "x"), x.count == 32,
        let y = number(item, "y"), y.count == 32, let key = try? P256PublicKey(point: [4] + x + y)
      else { return nil }
      return .p256(key)
    default: return nil
    }
  }

  private static func number(_ item: JSONValue, _ name: String) -> [UInt8]? {
    item[name]?.scalarText.flatMap { Base64URL.decode($0) }
  }
}
