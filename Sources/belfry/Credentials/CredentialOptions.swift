import Cryptography
import Foundation
import HubCore
import NotificationHubs
import Wire

/// The options that a credential is made of on the command line, and whose they are.
enum CredentialOptions {
  private struct Entry {
    let option: Option
    let platforms: [PushPlatform]
    init(_ option: Option, _ platforms: PushPlatform...) {
      (self.option, self.platforms) = (option, platforms)
    }
  }

  private static let entries: [Entry] = [
    Entry(
      .value("--key", "FILE", "apns: the .p8 signing key from Apple's developer portal"), .apns),
    Entry(
      .value(
        "--key-id", "ID", "apns: the key's id (taken from the name AuthKey_ID.p8 when left out)"),
      .apns),
    Entry(.value("--team-id", "ID", "apns: the team that the key belongs to"), .apns),
    Entry(
      .value("--bundle-id", "ID", "apns: the app, which is the topic of its pushes"), .apns),
    Entry(
      .value(
        "--certificate", "FILE", "apns: a .p12 with certificate and key, in place of a .p8"), .apns),
    Entry(
      .value(
        "--password", "TEXT", "apns: the password of the .p12 (or BELFRY_CERTIFICATE_PASSWORD)"),
      .apns),
    Entry(
      .value(
        "--other-endpoint", "URL",
        "apns: where tokens are tried that the endpoint does not know (default Apple's other "
          + "environment), or none"), .apns),
    Entry(
      .value(
        "--broadcast-endpoint", "URL",
        "apns: where broadcast channels are managed (default Apple's, by the endpoint)"), .apns),
    Entry(
      .value("--service-account", "FILE", "fcm: the JSON file of a service account"), .fcmv1),
    Entry(
      .value("--subject", "WHO", "browser: mailto:ADDRESS or an https page; who sends"), .browser),
    Entry(
      .value(
        "--private-key", "FILE",
        "browser: the private key of the VAPID pair; with --generate, where to write it too"),
      .browser),
    Entry(
      .value(
        "--public-key", "TEXT", "browser: the public key, to be sure that it is the other half"),
      .browser),
    Entry(.flag("--generate", "browser: make a VAPID pair and print the public key"), .browser),
    Entry(.value("--package-sid", "SID", "wns: the package SID, ms-app://…"), .wns),
    Entry(
      .value("--tenant-id", "ID", "wns: the tenant, for an app of Microsoft Entra"), .wns),
    Entry(.value("--client-id", "ID", "wns (Entra), adm: the client id"), .wns, .adm),
    Entry(
      .value(
        "--client-secret", "TEXT",
        "wns (Entra), adm: the client's secret (or BELFRY_CREDENTIAL_SECRET)"), .wns, .adm),
    Entry(.value("--api-key", "KEY", "baidu: the API key"), .baidu),
    Entry(
      .value(
        "--secret", "TEXT",
        "wns, adm, baidu, xiaomi: the secret (or BELFRY_CREDENTIAL_SECRET, which others cannot see)"
      ), .wns, .adm, .baidu, .xiaomi),
    Entry(
      .value(
        "--endpoint", "WHERE",
        "apns: production (default), sandbox, or a URL; fcm, adm, baidu, xiaomi: another address, "
          + "such as that of Xiaomi's region"), .apns, .fcmv1, .adm, .baidu, .xiaomi),
    Entry(
      .value("--token-url", "URL", "fcm, wns, adm: another token service"), .fcmv1, .wns, .adm),
  ]

  static let options: [Option] = entries.map(\.option)

  /// - Throws: ``UsageError`` for options of other platforms, or that make no sense together.
  static func check(_ words: Words, for platform: PushPlatform) throws(UsageError) {
    for entry in entries where !entry.platforms.contains(platform) {
      guard words.value(entry.option.name) != nil else { continue }
      let owners = entry.platforms.map { CredentialPlatform.word($0) }.joined(separator: ", ")
      throw words.fault(
        "\(entry.option.name) is an option of \(owners), not of \(CredentialPlatform.word(platform))"
      )
    }
    if words.value("--secret") != nil, words.value("--client-secret") != nil {
      throw words.fault("--secret and --client-secret exclude each other")
    }
    if words.flag("--generate"), words.value("--public-key") != nil {
      throw words.fault("--generate makes a new pair, which no --public-key can fit")
    }
  }

  /// Makes the credential that the words describe.
  /// - Throws: ``UsageError`` when something is missing; ``CredentialError`` for a file that is not
  ///   what it should be.
  static func credential(
    _ platform: PushPlatform, _ words: Words, environment: [String: String]
  ) throws -> PushCredential {
    let now = Date()
    for option in ["--key", "--certificate", "--service-account", "--private-key"] {
      guard let path = words.value(option), !words.flag("--generate") else { continue }
      do {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        _ = try handle.read(upToCount: 1)
      } catch {
        throw words.fault("\(option): \(path) cannot be read: \(Configuration.reason(error))")
      }
    }
    switch platform {
    case .apns:
      guard words.value("--key") != nil || words.value("--certificate") != nil else {
        throw words.fault("apns wants --key FILE (.p8) or --certificate FILE (.p12)")
      }
      let variable = environment["BELFRY_CERTIFICATE_PASSWORD"]
      return try APNsCredentialFiles(
        keyFile: words.value("--key"), keyID: words.value("--key-id"),
        teamID: words.value("--team-id"), bundleID: words.value("--bundle-id"),
        certificateFile: words.value("--certificate"),
        // The variable may be there for another credential.
        password: words.value("--password")
          ?? (words.value("--certificate") == nil ? nil : variable),
        endpoint: words.value("--endpoint"), otherEndpoint: words.value("--other-endpoint"),
        broadcastEndpoint: words.value("--broadcast-endpoint")
      ).credential(at: now)
    case .fcmv1:
      guard let file = words.value("--service-account") else {
        throw words.fault("fcm wants --service-account FILE")
      }
      return try FCMCredentialFile(
        serviceAccount: file, endpoint: words.value("--endpoint"),
        tokenURI: words.value("--token-url")
      ).credential(at: now)
    case .browser:
      guard let subject = words.value("--subject") else {
        throw words.fault(
          "browser wants --subject mailto:ADDRESS (or an https page), where push services can ask, "
            + "with --private-key FILE or --generate")
      }
      if words.flag("--generate") { return try generated(subject: subject, at: now) }
      guard let file = words.value("--private-key") else {
        throw words.fault("browser wants --private-key FILE, or --generate to make a pair")
      }
      return try WebPushCredentialFiles(
        subject: subject, publicKey: words.value("--public-key"), privateKeyFile: file
      ).credential(at: now)
    default:
      do {
        return try PlainCredentialValues.credential(
          platform, at: now, name: { $0.options[0] },
          value: { field in
            field.options.lazy.compactMap { words.value($0) }.first
              ?? (field.isSecret ? environment["BELFRY_CREDENTIAL_SECRET"] : nil)
          })
      } catch {
        throw words.fault(error.description)
      }
    }
  }

  private static func generated(
    subject: String, at now: Date
  ) throws(CredentialError) -> PushCredential {
    let scalar: [UInt8]
    do { scalar = try P256PrivateKey().scalar() } catch {
      throw CredentialError("a pair cannot be made: \(error.message)")
    }
    return try WebPushCredentialFiles(subject: subject, privateKey: Base64URL.encode(scalar))
      .credential(at: now)
  }
}
