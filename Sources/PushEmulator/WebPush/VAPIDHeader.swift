import Cryptography
import Wire

/// The parameters of `Authorization: vapid t=…, k=…` (RFC 8292, section 3).
struct VAPIDHeader: Sendable, Equatable {
  let token: String
  let key: String

  /// Whether the field has the scheme `vapid`, in any case.
  static func isVAPID(_ field: String) -> Bool {
    let scheme = field.prefix { $0 != " " && $0 != "\t" }
    return scheme.lowercased() == "vapid"
  }

  /// Reads the parameters in any order; `nil` when one is missing or stands there twice.
  init?(_ field: String) {
    guard Self.isVAPID(field) else { return nil }
    var values: [String: String] = [:]
    for part in field.dropFirst(5).split(separator: ",") {
      let text = part.trimmed
      guard let equals = text.firstIndex(of: "=") else { return nil }
      let name = text[..<equals].lowercased()
      let value = text[text.index(after: equals)...]
      let plain =
        value.hasPrefix("\"") && value.hasSuffix("\"") && value.count >= 2
        ? value.dropFirst().dropLast() : value
      guard values.updateValue(String(plain), forKey: name) == nil else { return nil }
    }
    guard let token = values["t"], let key = values["k"] else { return nil }
    (self.token, self.key) = (token, key)
  }
}

/// A VAPID token whose signature has been verified.
struct VAPIDToken: Sendable {
  let audience: String?
  /// Unix seconds.
  let expiresAt: Int64?
  let subject: String?
  /// The uncompressed point, 65 bytes.
  let key: [UInt8]

  /// - Returns: `nil` unless `k` is a point of P-256 and the token an ES256 one signed with it.
  init?(_ header: VAPIDHeader) {
    // Far more than any real token: nothing longer is worth decoding.
    guard header.token.utf8.count <= 4096, let point = Base64URL.decode(header.key),
      let key = try? P256PublicKey(point: point),
      let token = try? CompactJWS(header.token), token.verifies(with: key)
    else { return nil }
    self.key = point
    audience = token.claims.string("aud")
    expiresAt = token.claims.integer("exp")
    // A member of another type is no contact.
    subject = token.claims.contains("sub") ? token.claims.string("sub") ?? "" : nil
  }
}
