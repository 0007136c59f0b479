import Cryptography
import Foundation
import HubCore

/// A file that somebody gave for a credential. It knows what kind of file it is, so that one in the
/// wrong place is told where it belongs.
struct CredentialFile: Sendable {
  enum Kind: Sendable {
    /// PKCS#12: a certificate and its key.
    case archive
    /// PEM of a private key, of whatever kind.
    case privateKey
    case encryptedKey
    /// A private key without PEM's armour and base 64.
    case binaryKey
    /// PEM or DER.
    case certificate
    case publicKey
    /// The JSON file of a Google service account.
    case serviceAccount
    /// What Firebase gives apps: `google-services.json`, `GoogleService-Info.plist`.
    case appConfiguration
    case json
    case other
  }

  /// What is wanted in a place.
  enum Want: Sendable {
    case signingKey, archive, serviceAccount, vapidKey
  }

  let path: String
  let data: Data
  let kind: Kind

  /// More than any of them has.
  private static let limit = 1 << 20

  /// - Throws: ``CredentialError`` when the file cannot be read.
  init(_ path: String) throws(CredentialError) {
    self.path = path
    do {
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      defer { try? handle.close() }
      data = try handle.read(upToCount: Self.limit + 1) ?? Data()
    } catch {
      throw CredentialError("\(path) cannot be read: \(Configuration.reason(error))")
    }
    guard !data.isEmpty else { throw CredentialError("\(path) is empty") }
    guard data.count <= Self.limit else {
      throw CredentialError("\(path) is larger than any credential: more than a megabyte")
    }
    kind = Self.kind(of: [UInt8](data))
  }

  var text: String {
    String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static func kind(of bytes: [UInt8]) -> Kind {
    if bytes[0] == 0x30 { return kind(ofDER: bytes) }
    if let members = (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any] {
      return kind(of: members)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    if text.contains("-----BEGIN") {
      if text.contains("ENCRYPTED") { return .encryptedKey }
      if text.contains("PRIVATE KEY-----") { return .privateKey }
      if text.contains("BEGIN CERTIFICATE-----") { return .certificate }
      if text.contains("PUBLIC KEY-----") { return .publicKey }
    }
    return text.contains("GOOGLE_APP_ID") && text.contains("<plist") ? .appConfiguration : .other
  }

  private static func kind(of members: [String: Any]) -> Kind {
    if members["project_info"] != nil { return .appConfiguration }
    return members["private_key"] != nil || members["type"] as? String == "service_account"
      ? .serviceAccount : .json
  }

  /// By what comes first in the outer sequence: PKCS#12 its version 3, a key its version 0 or 1, a
  /// certificate another sequence.
  private static func kind(ofDER bytes: [UInt8]) -> Kind {
    guard bytes.count > 8 else { return .other }
    let start = bytes[1] < 0x80 ? 2 : 2 + Int(bytes[1] & 0x7F)
    guard start + 3 <= bytes.count else { return .other }
    switch (bytes[start], bytes[start + 1], bytes[start + 2]) {
    case (0x02, 0x01, 0x03): return .archive
    case (0x02, 0x01, 0x00), (0x02, 0x01, 0x01): return .binaryKey
    case (0x30, _, _): return .certificate
    default: return .other
    }
  }
}

extension CredentialFile {
  /// - Throws: ``CredentialError`` that says what the file is and where it belongs. What may be right
  ///   passes; anyone who reads the credential looks closer.
  func require(_ want: Want) throws(CredentialError) {
    guard let fault = fault(want) else { return }
    throw CredentialError("\(path) \(fault)")
  }

  private func fault(_ want: Want) -> String? {
    switch (want, kind) {
    case (.signingKey, .privateKey), (.signingKey, .other), (.archive, .archive),
      (.serviceAccount, .serviceAccount), (.vapidKey, .privateKey), (.vapidKey, .json),
      (.vapidKey, .other):
      return nil
    case (.signingKey, .archive):
      return "is a .p12 archive, not a .p8 key: give it as the certificate (--certificate)"
    case (.archive, .privateKey):
      return "is a private key, not a .p12 archive: give a .p8 as the key (--key)"
    case (.archive, .certificate):
      return
        "is a certificate without its private key: export both together as a .p12, in Keychain "
        + "Access or with `openssl pkcs12 -export -in \(path) -inkey KEY -out push.p12`"
    case (.serviceAccount, .appConfiguration):
      return "is the configuration of the app, not a key of the server: make one in the Firebase "
        + "console, under project settings, service accounts, Generate new private key"
    case (_, .encryptedKey):
      return "is encrypted with a password: take it off with `openssl pkcs8 -in \(path) -out NEW`"
    case (.signingKey, .binaryKey), (.vapidKey, .binaryKey):
      return
        "is a key in binary form: `openssl pkey -inform der -in \(path) -out NEW` makes text of it"
    case (.vapidKey, .publicKey):
      return "is the public half of a pair: give the private one"
    case (.signingKey, .serviceAccount), (.archive, .serviceAccount), (.vapidKey, .serviceAccount):
      return "is a Google service account, which is a credential of fcm"
    case (.signingKey, _):
      return "is not a .p8 signing key: make one in Apple's developer portal, under Keys"
    case (.archive, _): return "is not a .p12 archive with certificate and key"
    case (.serviceAccount, _):
      return
        "is not the JSON file of a service account: make a key for it in the Firebase console, "
        + "under project settings, service accounts"
    case (.vapidKey, _):
      return "is no private key of a VAPID pair, in PEM or base 64 URL; --generate makes a pair"
    }
  }
}
