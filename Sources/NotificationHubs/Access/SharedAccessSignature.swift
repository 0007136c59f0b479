import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A token that proves possession of a key for a resource until an instant
/// (spec `sas.md` section 2).
///
/// ```swift
/// let token = SharedAccessSignature(
///   resource: "https://contoso-ns.servicebus.windows.net/hub1", keyName: "Listen", key: key,
///   expiresAt: Date().addingTimeInterval(20 * 60))
/// request.setValue(token.text, forHTTPHeaderField: "Authorization")
/// ```
public struct SharedAccessSignature: Hashable, Sendable {
  /// The token as the `Authorization` header carries it. It is a secret until it expires.
  public let text: String
  /// The name of the access policy, decoded.
  public let keyName: String
  /// The instant from which on it is worth nothing.
  public let expiresAt: Date

  /// The resource as it stands in the token: what is signed, so never decoded and encoded again.
  package let rawResource: String
  /// The expiry as it stands in the token.
  package let rawExpiry: String
  /// The `skn` field as it stands in the token.
  package let rawKeyName: String
  /// The signature, decoded; empty when it does not decode to 32 bytes.
  package let signature: [UInt8]

  /// Mints a token.
  ///
  /// - Parameters:
  ///   - resource: The address that the token opens, with all below it.
  ///   - keyName: The name of the access policy.
  ///   - key: The policy's primary or secondary key, as text.
  ///   - expiresAt: Rounded down to a whole second.
  public init(resource: String, keyName: String, key: String, expiresAt: Date) {
    let seconds = Int64(min(max(expiresAt.timeIntervalSince1970.rounded(.down), 0), 1e15))
    rawResource = resource.percentEncoded
    rawExpiry = String(seconds)
    rawKeyName = keyName.percentEncoded
    self.keyName = keyName
    self.expiresAt = Date(timeIntervalSince1970: Double(seconds))
    signature = Self.sign(rawResource: rawResource, rawExpiry: rawExpiry, key: key)
    let sig = Data(signature).base64EncodedString().percentEncoded
    text = "\(Self.scheme) sr=\(rawResource)&sig=\(sig)&se=\(rawExpiry)&skn=\(rawKeyName)"
  }

  static let scheme = "SharedAccessSignature"

  /// The signature of a resource and an expiry as they stand in a token (spec `sas.md` 2.1).
  package static func sign(rawResource: String, rawExpiry: String, key: String) -> [UInt8] {
    messageAuthenticationCode(of: Array("\(rawResource)\n\(rawExpiry)".utf8), key: Array(key.utf8))
  }

  /// Reads a token: the value of an `Authorization` header.
  ///
  /// The fields may come in any order, unknown ones are passed over. Whether the signature is right
  /// only the holder of the key can say.
  public init(parsing text: String) throws(WireFormatError) {
    let trimmed = text.trimmingBlanks
    guard let blank = trimmed.utf8.firstIndex(of: 0x20),
      trimmed[..<blank].lowercased() == Self.scheme.lowercased()
    else { throw Self.malformed("it does not begin with '\(Self.scheme) '") }
    var fields: [String: Substring] = [:]
    let list = trimmed.utf8[blank...].drop { $0 == 0x20 }
    for field in list.split(separator: UInt8(ascii: "&")) {
      guard let equals = field.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = Substring(field[..<equals]).lowercased()
      guard ["sr", "sig", "se", "skn"].contains(name) else { continue }
      let value = Substring(field[field.index(after: equals)...])
      guard fields.updateValue(value, forKey: name) == nil else {
        throw Self.malformed("the field '\(name)' is repeated")
      }
    }
    guard let resource = fields["sr"], let sig = fields["sig"], let expiry = fields["se"],
      let name = fields["skn"]
    else { throw Self.malformed("one of the fields sr, sig, se, skn is missing") }
    guard !expiry.isEmpty, expiry.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw Self.malformed("the field 'se' is not a decimal number of seconds")
    }
    self.text = trimmed
    rawResource = String(resource)
    rawExpiry = String(expiry)
    rawKeyName = String(name)
    keyName = String(name).percentDecoded
    // More digits than fit are a date past all dates.
    expiresAt = Date(timeIntervalSince1970: min(Double(expiry) ?? 1e15, 1e15))
    signature = Self.decodedSignature(String(sig))
  }

  private static func malformed(_ fault: String) -> WireFormatError {
    WireFormatError("The shared access signature is malformed: \(fault).")
  }

  private static func decodedSignature(_ raw: String) -> [UInt8] {
    // Form decoding on the way turns a raw `+` into a blank.
    let bytes = raw.percentDecoded.utf8.map { $0 == 0x20 ? UInt8(ascii: "+") : $0 }
    guard let decoded = Data(base64Encoded: Data(bytes)), decoded.count == 32 else { return [] }
    return Array(decoded)
  }
}

extension SharedAccessSignature: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// Without the signature; ``text`` has it.
  public var description: String {
    "\(Self.scheme) sr=\(rawResource)&sig=…&se=\(rawExpiry)&skn=\(rawKeyName)"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror {
    Mirror(self, children: ["keyName": keyName, "expiresAt": expiresAt])
  }
}
