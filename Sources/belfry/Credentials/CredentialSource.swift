import Foundation
import HubCore
import NotificationHubs
import PushGateways

/// A credential in a hub's section of the configuration.
enum CredentialSource: Sendable {
  case apns(APNsCredentialFiles)
  case fcm(FCMCredentialFile)
  case webPush(WebPushCredentialFiles)
  /// A name and a secret, as properties by name.
  case plain(PushPlatform, [String: String])

  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    switch self {
    case .apns(let files): try files.credential(at: now)
    case .fcm(let file): try file.credential(at: now)
    case .webPush(let files): try files.credential(at: now)
    case .plain(let platform, let properties):
      PushCredential(platform: platform, properties: properties, modifiedAt: now)
    }
  }
}

extension CredentialSource {
  /// `browser` is an alias of `webPush`.
  private static let webPush = ["webPush", "browser"]

  static let sections = ["apns", "fcm"] + webPush + PlainCredentialValues.platforms.map(\.rawValue)

  /// The credentials of a hub, each read and validated; expired ones are accepted.
  /// - Throws: ``ConfigurationError`` with section, file and line.
  static func all(in hub: ConfigurationReader) throws(ConfigurationError) -> [CredentialSource] {
    var found: [CredentialSource] = []
    func add(
      _ name: String,
      _ read: (ConfigurationReader) throws(ConfigurationError) -> CredentialSource
    ) throws(ConfigurationError) {
      guard let section = try hub.section(name) else { return }
      let source = try read(section)
      do throws(CredentialError) {
        let credential = try source.credential(at: Date())
        do {
          try PushGatewayDirectory.check(credential, at: Date())
        } catch {
          throw CredentialNames.keys.fault(error, of: credential.platform)
        }
      } catch {
        // A credential that has expired since the last start must not keep the other hubs from
        // serving.
        guard error.isExpiry else { throw hub.fault(name, "\(error)") }
      }
      found.append(source)
    }
    try add("apns", apns)
    try add("fcm", fcm)
    for name in webPush { try add(name, webPush) }
    guard found.filter({ if case .webPush = $0 { true } else { false } }).count < 2 else {
      throw hub.fault("browser", "is another name for webPush; give one of them")
    }
    for platform in PlainCredentialValues.platforms {
      try add(platform.rawValue) { section throws(ConfigurationError) in
        try plain(platform, section, of: hub)
      }
    }
    return found
  }

  private static func apns(
    _ section: ConfigurationReader
  ) throws(ConfigurationError) -> CredentialSource {
    try section.allow([
      "keyFile", "keyId", "teamId", "bundleId", "certificateFile", "password", "endpoint",
      "otherEndpoint", "broadcastEndpoint",
    ])
    return .apns(
      APNsCredentialFiles(
        keyFile: try section.path("keyFile"), keyID: try section.text("keyId"),
        teamID: try section.text("teamId"), bundleID: try section.text("bundleId"),
        certificateFile: try section.path("certificateFile"),
        password: try section.secret("password"), endpoint: try section.text("endpoint"),
        otherEndpoint: try section.text("otherEndpoint"),
        broadcastEndpoint: try section.text("broadcastEndpoint")))
  }

  private static func fcm(
    _ section: ConfigurationReader
  ) throws(ConfigurationError) -> CredentialSource {
    try section.allow(["serviceAccount", "endpoint", "tokenUri"])
    guard let account = try section.path("serviceAccount") else {
      throw section.fault("serviceAccount", "must be the JSON file of a service account")
    }
    return .fcm(
      FCMCredentialFile(
        serviceAccount: account, endpoint: try section.text("endpoint"),
        tokenURI: try section.text("tokenUri")))
  }

  private static func webPush(
    _ section: ConfigurationReader
  ) throws(ConfigurationError) -> CredentialSource {
    try section.allow(["subject", "publicKey", "privateKey", "privateKeyFile"])
    return .webPush(
      WebPushCredentialFiles(
        subject: try section.required("subject"), publicKey: try section.text("publicKey"),
        privateKey: try section.secret("privateKey"),
        privateKeyFile: try section.path("privateKeyFile")))
  }

  private static func plain(
    _ platform: PushPlatform, _ section: ConfigurationReader, of hub: ConfigurationReader
  ) throws(ConfigurationError) -> CredentialSource {
    let fields = PlainCredentialValues.families(of: platform).joined().map(\.field)
    try section.allow(fields.map(\.key))
    var values: [String: String] = [:]
    for field in fields where values[field.key] == nil {
      values[field.key] =
        field.isSecret ? try section.secret(field.key) : try section.text(field.key)
    }
    do {
      let credential = try PlainCredentialValues.credential(
        platform, at: Date(), name: \.key, value: { values[$0.key] })
      return .plain(platform, credential.properties)
    } catch {
      throw hub.fault(platform.rawValue, error.description)
    }
  }
}
