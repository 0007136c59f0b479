import Cryptography
import Foundation
import HubCore
import NotificationHubs
import Wire

/// A file given for a credential. Its kind is detected, so that the error for a misplaced file says
/// where it belongs.
struct CredentialFile: Sendable {
  enum Kind: Sendable {
    /// PKCS#12: a certificate with its key.
    case archive
    /// A private key of any kind in PEM.
    case privateKey
    case encryptedKey
    /// A private key in DER.
    case binaryKey
    /// A certificate in PEM or DER.
    case certificate
    case publicKey
    /// The JSON file of a Google service account.
    case serviceAccount
    /// A Firebase app configuration: `google-services.json`, `GoogleService-Info.plist`.
    case appConfiguration
    case json
    case other
  }

  /// The kind of file that a parameter needs.
  enum Want: Sendable {
    case signingKey, archive, serviceAccount, vapidKey
  }

  let path: String
  let data: Data
  let kind: Kind

  /// The maximum size in bytes, more than any of them has.
  private static let limit = 1 << 20

  /// - Throws: ``CredentialError`` if the file cannot be read.
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

  /// Detects the kind by the first element of the outer sequence: version 3 for PKCS#12, version 0
  /// or 1 for a key, another sequence for a certificate.
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
  /// - Throws: ``CredentialError`` that says what the file is and where it belongs. A file that may
  ///   be right passes; reading the credential checks more.
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

/// An APNs credential in the form that people have: files and a few ids. Converted to the
/// properties of docs/protocol/rest.md, section 8.1.
struct APNsCredentialFiles: Sendable {
  /// The `.p8` file from Apple's developer portal.
  var keyFile: String?
  var keyID: String?
  var teamID: String?
  var bundleID: String?
  /// A `.p12` file with certificate and key.
  var certificateFile: String?
  var password: String?
  /// `production`, `sandbox`, or a URL.
  var endpoint: String?
  /// A URL, or `none`; by default Apple's other environment.
  var otherEndpoint: String?
  /// A URL; by default that of Apple's environment.
  var broadcastEndpoint: String?

  /// - Throws: ``CredentialError`` if a file cannot be read or is of another kind, or if parts are
  ///   missing or superfluous.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    var properties: [String: String] = [:]
    switch (keyFile, certificateFile) {
    case (let keyFile?, nil):
      guard password == nil else {
        throw CredentialError("a password belongs to a .p12 certificate; a .p8 key has none")
      }
      let file = try CredentialFile(keyFile)
      try file.require(.signingKey)
      properties["Token"] = file.text
      properties["KeyId"] = keyID ?? Self.keyID(inName: keyFile)
      properties["AppId"] = teamID
      properties["AppName"] = bundleID
      for (name, value) in [
        ("the key id (--key-id), as Apple's list of keys shows it", properties["KeyId"]),
        ("the team id (--team-id), as Apple's membership page shows it", teamID),
        ("the bundle id of the app (--bundle-id)", bundleID),
      ] where value?.isEmpty ?? true {
        throw CredentialError("a .p8 key needs \(name)")
      }
    case (nil, let certificateFile?):
      if keyID != nil || teamID != nil || bundleID != nil {
        throw CredentialError(
          "key id, team id and bundle id belong to a .p8 key; a .p12 certificate names its app itself"
        )
      }
      let file = try CredentialFile(certificateFile)
      try file.require(.archive)
      try open(file)
      properties["ApnsCertificate"] = file.data.base64EncodedString()
      properties["CertificateKey"] = password ?? ""
    case (nil, nil):
      throw CredentialError("give either a .p8 key or a .p12 certificate")
    default:
      throw CredentialError("give a .p8 key or a .p12 certificate, not both")
    }
    switch endpoint?.lowercased() {
    case nil, "production": properties["Endpoint"] = "https://api.push.apple.com:443/3/device"
    case "sandbox", "development":
      properties["Endpoint"] = "https://api.development.push.apple.com:443/3/device"
    default: properties["Endpoint"] = endpoint
    }
    properties["OtherEndpoint"] = otherEndpoint
    properties["BroadcastEndpoint"] = broadcastEndpoint
    return PushCredential(platform: .apns, properties: properties, modifiedAt: now)
  }

  /// Reports a wrong password in terms of the option that gave it.
  private func open(_ file: CredentialFile) throws(CredentialError) {
    do {
      _ = try PKCS12.open([UInt8](file.data), password: password ?? "")
    } catch {
      guard error.kind == .wrongPassword else {
        throw CredentialError("\(file.path) cannot be used: \(error.message)")
      }
      throw CredentialError(
        password == nil
          ? "\(file.path) needs its password: give --password or BELFRY_CERTIFICATE_PASSWORD"
          : "\(file.path) does not open with this password")
    }
  }

  /// The key id in the file name, which Apple makes `AuthKey_{key id}.p8`.
  private static func keyID(inName path: String) -> String? {
    let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
    guard name.hasPrefix("AuthKey_") else { return nil }
    return String(name.dropFirst("AuthKey_".count))
  }
}

/// An FCM credential in the form that people have: the JSON file of a service account from Google's
/// console. Converted to the properties of docs/protocol/rest.md, section 8.1.
struct FCMCredentialFile: Sendable {
  var serviceAccount: String
  /// The URL for messages, for a stand-in; `nil` for Google's.
  var endpoint: String?
  /// The URL for access tokens; `nil` for the one in the file.
  var tokenURI: String?

  /// The members that are used.
  private struct Account: Decodable {
    let projectId: String?
    let clientEmail: String?
    let privateKey: String?
    let privateKeyId: String?
    let tokenUri: String?
  }

  /// - Throws: ``CredentialError`` if the file cannot be read or is not a service account's.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    let file = try CredentialFile(serviceAccount)
    try file.require(.serviceAccount)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let account = try? decoder.decode(Account.self, from: file.data) else {
      throw CredentialError("\(serviceAccount) is a damaged service account: make a new key")
    }
    var properties: [String: String] = [:]
    properties["ProjectId"] = account.projectId
    properties["ClientEmail"] = account.clientEmail
    properties["PrivateKey"] = account.privateKey
    properties["PrivateKeyId"] = account.privateKeyId
    properties["TokenUri"] = tokenURI ?? account.tokenUri
    properties["Endpoint"] = endpoint
    return PushCredential(platform: .fcmv1, properties: properties, modifiedAt: now)
  }
}

/// A Web Push credential in the form that people have: a VAPID key pair as printed by libraries, or
/// a PEM file. Converted to the properties of docs/protocol/rest.md, section 8.1.
struct WebPushCredentialFiles: Sendable {
  /// The contact: `mailto:` with an address, or an https page.
  var subject: String
  /// The public key in base64url; `nil` derives it from the private key.
  var publicKey: String?
  /// The private key in base64url.
  var privateKey: String?
  /// A PEM file, a file with the key in base64url, or the JSON of `web-push generate-vapid-keys`.
  var privateKeyFile: String?

  /// The output of `web-push generate-vapid-keys --json`.
  private struct Pair: Decodable {
    let publicKey: String
    let privateKey: String
  }

  /// - Throws: ``CredentialError`` if a file cannot be read or parts are missing.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    var text: String
    var publicKey = publicKey
    switch (privateKey, privateKeyFile) {
    case (let key?, nil): text = key
    case (nil, let path?):
      let file = try CredentialFile(path)
      try file.require(.vapidKey)
      text = file.text
      if file.kind == .json {
        guard let pair = try? JSONDecoder().decode(Pair.self, from: file.data) else {
          throw CredentialError("\(path) is JSON without publicKey and privateKey")
        }
        text = pair.privateKey
        publicKey = publicKey ?? pair.publicKey
      }
    case (nil, nil): throw CredentialError("give the private key, or the file that holds it")
    default: throw CredentialError("give the private key or its file, not both")
    }
    var properties = ["Subject": subject, "VapidPrivateKey": text]
    let ownKey = try Self.publicKey(of: text)
    properties["VapidPublicKey"] = publicKey ?? ownKey
    return PushCredential(platform: .browser, properties: properties, modifiedAt: now)
  }

  private static func publicKey(of text: String) throws(CredentialError) -> String {
    do {
      return Base64URL.encode(try key(text).publicKey().point)
    } catch {
      throw CredentialError(
        "the private key of a VAPID pair must be of the curve P-256, as PEM or 43 characters of "
          + "base 64 URL: \(error.message)")
    }
  }

  private static func key(_ text: String) throws(CryptographyError) -> P256PrivateKey {
    if let scalar = Base64.decodeAnyAlphabet(text.utf8), scalar.count == 32 {
      return try P256PrivateKey(scalar: scalar)
    }
    return try P256PrivateKey(pem: text)
  }
}

/// A new file for a private key, readable only by its owner.
struct NewKeyFile {
  private let path: String

  /// Creates the empty file at once, so that no key is stored that could not be written out.
  /// - Throws: ``CommandFailure`` if it exists or cannot be created.
  init(_ path: String) throws(CommandFailure) {
    self.path = path
    let file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      let code = errno
      throw CommandFailure(
        code == EEXIST
          ? "\(path) exists, and a key is never overwritten; to use the key that it holds, leave "
            + "out --generate"
          : "\(path) cannot be made: \(String(cString: strerror(code)))", exitCode: .usage)
    }
    close(file)
  }

  func write(_ text: String) throws(CommandFailure) {
    do {
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try handle.write(contentsOf: Data(text.utf8))
      try handle.close()
    } catch {
      throw CommandFailure("\(path) cannot be written: \(Configuration.reason(error))")
    }
  }

  func remove() { unlink(path) }
}
