import Foundation
import HubCore
import NotificationHubs

/// A hub in the configuration file, created at the start if it is missing.
///
/// ```
/// { "name": "news",
///   "registrationTTL": 7776000, "weight": 2,
///   "policies": [ { "name": "backend", "rights": ["Send"], "primaryKey": "…", "secondaryKey": "…" } ],
///   "apns": { "keyFile": "AuthKey_ABC123DEFG.p8", "keyId": "ABC123DEFG", "teamId": "DEF123GHIJ",
///             "bundleId": "com.example.news", "endpoint": "production" },
///   "fcm": { "serviceAccount": "service-account.json" },
///   "webPush": { "subject": "mailto:ops@example.com", "privateKeyFile": "vapid.pem" },
///   "wns": { "packageSid": "ms-app://…", "secret": { "variable": "NEWS_WNS_SECRET" } } }
/// ```
struct HubConfiguration: Sendable {
  struct Policy: Sendable {
    let name: String
    let rights: AccessRights
    /// The primary key; `nil` for a random one.
    let primaryKey: String?
    let secondaryKey: String?

    /// - Throws: ``HubFailure`` for an invalid policy.
    func policy(at now: Date, random: HubRandom) throws(HubFailure) -> AccessPolicy {
      try .new(
        named: name, rights: rights, primaryKey: primaryKey, secondaryKey: secondaryKey, at: now,
        random: random)
    }
  }

  let name: String
  let registrationTTL: TimeInterval?
  /// The share of the machine and of connections relative to other hubs when demand exceeds supply:
  /// 1 to 100.
  let weight: Int
  let policies: [Policy]
  let credentials: [CredentialSource]

  /// - Throws: ``ConfigurationError`` with key, file and line.
  init(
    _ node: ConfigurationNode, file: String, environment: [String: String]
  ) throws(ConfigurationError) {
    let reader = try ConfigurationReader(node, name: "hubs", file: file, environment: environment)
    try reader.allow(
      ["name", "registrationTTL", "weight", "policies"] + CredentialSource.sections)
    name = try reader.required("name")
    guard HubDescription.isName(name) else {
      throw reader.fault(
        "name",
        "'\(name)' is no name of a hub: it begins with a letter and holds letters, digits, -._")
    }
    registrationTTL = try reader.integer("registrationTTL", in: 86_400...Int(Int32.max))
      .map(TimeInterval.init)
    weight = try reader.integer("weight", in: 1...100) ?? 1
    var policies: [Policy] = []
    for item in try reader.list("policies") {
      let policy = try ConfigurationReader(item, name: "policies", file: file)
      try policy.allow(["name", "rights", "primaryKey", "secondaryKey"])
      let described = Policy(
        name: try policy.required("name"),
        rights: try AccessRights(words: policy.texts("rights"), reader: policy),
        primaryKey: try policy.text("primaryKey"), secondaryKey: try policy.text("secondaryKey"))
      do {
        _ = try described.policy(at: Date(), random: .system)
      } catch {
        throw policy.fault("name", error.description)
      }
      policies.append(described)
    }
    self.policies = policies
    credentials = try CredentialSource.all(in: reader)
  }
}

extension AccessRights {
  /// The rights that these words name, including those that Manage implies.
  fileprivate init(words: [String], reader: ConfigurationReader) throws(ConfigurationError) {
    self = []
    for word in words {
      guard let right = AccessRights(word: word) else {
        throw reader.fault(
          "rights", "'\(word)' is not a right; the rights are Listen, Send and Manage")
      }
      formUnion(right)
    }
    guard !isEmpty else { throw reader.fault("rights", "name at least one right") }
  }
}

extension AccessRights {
  /// The right for a word in any letter case; Manage is all three.
  init?(word: String) {
    switch word.lowercased() {
    case "listen": self = .listen
    case "send": self = .send
    case "manage": self = .all
    default: return nil
    }
  }
}
