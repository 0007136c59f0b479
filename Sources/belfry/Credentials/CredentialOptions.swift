import Cryptography
import Foundation
import HubCore
import NotificationHubs
import Wire

/// The command-line options of a credential, with their platforms.
struct CredentialOptions: ParameterGroup {
  @Option("--key", "FILE", "apns: the .p8 signing key from Apple's developer portal")
  var key: String?
  @Option("--key-id", "ID", "apns: the key's id (taken from the name AuthKey_ID.p8 when left out)")
  var keyID: String?
  @Option("--team-id", "ID", "apns: the team that the key belongs to") var teamID: String?
  @Option("--bundle-id", "ID", "apns: the app, which is the topic of its pushes")
  var bundleID: String?
  @Option("--certificate", "FILE", "apns: a .p12 with certificate and key, in place of a .p8")
  var certificate: String?
  @Option("--password", "TEXT", "apns: the password of the .p12 (or BELFRY_CERTIFICATE_PASSWORD)")
  var password: String?
  @Option(
    "--other-endpoint", "URL",
    "apns: where tokens are tried that the endpoint does not know (default Apple's other environment), "
      + "or none") var otherEndpoint: String?
  @Option(
    "--broadcast-endpoint", "URL",
    "apns: where broadcast channels are managed (default Apple's, by the endpoint)")
  var broadcastEndpoint: String?
  @Option("--service-account", "FILE", "fcm: the JSON file of a service account")
  var serviceAccount: String?
  @Option("--subject", "WHO", "web: mailto:ADDRESS or an https page; who sends")
  var subject: String?
  @Option(
    "--private-key", "FILE",
    "web: the private key of the VAPID pair; with --generate, where to write it too")
  var privateKey: String?
  @Option("--public-key", "TEXT", "web: the public key, to be sure that it is the other half")
  var publicKey: String?
  @Flag("--generate", "web: make a VAPID pair and print the public key") var generates
  private let names = PlainCredentialOptions()
  @Option(
    "--secret", "TEXT",
    "\(PlainCredentialValues.words(with: "--secret")): the secret (or BELFRY_CREDENTIAL_SECRET, "
      + "which others cannot see)")
  var secret: String?
  @Option(
    "--endpoint", "WHERE",
    "apns: production (default), sandbox, or a URL; fcm, "
      + PlainCredentialValues.words(with: "--endpoint")
      + ": another address, such as that of a region",
    Reader(words: ["production", "sandbox"]) { text, _ in text })
  var endpoint: String?
  @Option(
    "--token-url", "URL",
    "fcm, \(PlainCredentialValues.words(with: "--token-url")): another token service")
  var tokenURL: String?

  /// The platforms of the options.
  private var owners: [(parameters: [any Parameter], platforms: [PushPlatform])] {
    [
      (
        [
          $key, $keyID, $teamID, $bundleID, $certificate, $password, $otherEndpoint,
          $broadcastEndpoint,
        ], [.apns]
      ),
      ([$serviceAccount], [.fcmv1]),
      ([$subject, $privateKey, $publicKey, $generates], [.browser]),
      plain($secret), plain($endpoint, beside: .apns, .fcmv1), plain($tokenURL, beside: .fcmv1),
    ] + names.parameters.map { plain($0) }
  }

  private func plain(
    _ parameter: any Parameter, beside others: PushPlatform...
  ) -> (parameters: [any Parameter], platforms: [PushPlatform]) {
    ([parameter], others + PlainCredentialValues.platforms(with: parameter.declaration.name))
  }

  /// - Throws: ``UsageError`` for options of other platforms, or invalid combinations.
  func check(for platform: PushPlatform) throws(UsageError) {
    for (parameters, platforms) in owners where !platforms.contains(platform) {
      guard let given = parameters.first(where: \.isGiven) else { continue }
      let owners = platforms.map { $0.word }.joined(separator: ", ")
      throw UsageError(
        "\(given.declaration.name) is an option of \(owners), not of "
          + platform.word)
    }
    for option in names.secrets { try UsageError.check(exclusive: $secret, option) }
    if generates, publicKey != nil {
      throw UsageError("--generate makes a new pair, which no --public-key can fit")
    }
  }

  /// Creates the credential that the options describe.
  /// - Throws: ``UsageError`` if something is missing; ``CredentialError`` for a file of the wrong
  ///   kind.
  func credential(
    _ platform: PushPlatform, environment: [String: String]
  ) throws -> PushCredential {
    let now = Date()
    for option in [$key, $certificate, $serviceAccount, $privateKey] where !generates {
      guard let path = option.wrappedValue else { continue }
      do {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        _ = try handle.read(upToCount: 1)
      } catch {
        throw UsageError(
          "\(option.declaration.name): \(path) cannot be read: \(Configuration.reason(error))")
      }
    }
    switch platform {
    case .apns:
      guard key != nil || certificate != nil else {
        throw UsageError("apns needs --key FILE (.p8) or --certificate FILE (.p12)")
      }
      // The variable may be set for another credential.
      let variable = certificate == nil ? nil : environment["BELFRY_CERTIFICATE_PASSWORD"]
      return try APNsCredentialFiles(
        keyFile: key, keyID: keyID, teamID: teamID, bundleID: bundleID,
        certificateFile: certificate, password: password ?? variable, endpoint: endpoint,
        otherEndpoint: otherEndpoint, broadcastEndpoint: broadcastEndpoint
      ).credential(at: now)
    case .fcmv1:
      guard let serviceAccount else { throw UsageError("fcm needs --service-account FILE") }
      return try FCMCredentialFile(
        serviceAccount: serviceAccount, endpoint: endpoint, tokenURI: tokenURL
      ).credential(at: now)
    case .browser:
      guard let subject else {
        throw UsageError(
          "web needs --subject mailto:ADDRESS (or an https page), where push services can ask, "
            + "with --private-key FILE or --generate")
      }
      if generates { return try Self.generated(subject: subject, at: now) }
      guard let privateKey else {
        throw UsageError("web needs --private-key FILE, or --generate to make a pair")
      }
      return try WebPushCredentialFiles(
        subject: subject, publicKey: publicKey, privateKeyFile: privateKey
      ).credential(at: now)
    default:
      let values = parameters.compactMap { $0 as? Option<String?> }
      do {
        return try PlainCredentialValues.credential(
          platform, at: now, name: { $0.options[0] },
          value: { field in
            values.first { field.options.contains($0.declaration.name) && $0.isGiven }?.wrappedValue
              ?? (field.isSecret ? environment["BELFRY_CREDENTIAL_SECRET"] : nil)
          })
      } catch {
        throw UsageError(error.description)
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

/// The options of credentials of names and secrets that the sheet of platforms describes.
private struct PlainCredentialOptions: ParameterGroup {
  private let options: [(isSecret: Bool, option: Option<String?>)]

  var parameters: [any Parameter] { options.map(\.option) }
  var secrets: [any Parameter] { options.filter(\.isSecret).map(\.option) }

  init() {
    var seen: Set<String> = []
    options = PlainCredentialValues.platforms
      .flatMap { PlainCredentialValues.families(of: $0).joined() }
      .compactMap { field, _ in
        guard let name = field.options.first, !field.help.isEmpty, seen.insert(name).inserted else {
          return nil
        }
        let placeholder = name.split(separator: "-").last.map { $0.uppercased() } ?? "TEXT"
        let variable = field.isSecret ? " (or BELFRY_CREDENTIAL_SECRET)" : ""
        return (
          field.isSecret,
          Option<String?>(
            name, field.isSecret ? "TEXT" : placeholder,
            "\(PlainCredentialValues.words(with: name)): \(field.help)\(variable)")
        )
      }
  }
}

/// The platforms in commands about credentials.
enum CredentialPlatform {
  /// The platforms for which a credential can be set here.
  static let served = PushPlatform.running.filter { platform in
    platform.traits.credential.ways.contains { $0.name != nil }
  }
  static let list =
    served.dropLast().map(\.word).joined(separator: ", ") + " or " + served[served.count - 1].word
}

extension Reader where Value == PushPlatform {
  static let servedPlatform = credential { CredentialPlatform.served.contains($0) }
  /// Includes services that have ended, since a hub may have credentials for them.
  static let anyPlatform = credential { _ in true }

  private static func credential(_ fits: @escaping @Sendable (PushPlatform) -> Bool) -> Reader {
    Reader(words: CredentialPlatform.served.map(\.word)) { text, _ throws(UsageError) in
      if let platform = PushPlatform(named: text), fits(platform) { return platform }
      throw UsageError(
        "'\(text)' is not served by this version; it is one of \(CredentialPlatform.list)")
    }
  }
}
