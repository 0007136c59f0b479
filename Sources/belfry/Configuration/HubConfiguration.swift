import Foundation
import HubCore
import NotificationHubs
import PushGateways

/// A hub as the configuration file describes it: made on start when it is missing.
///
/// ```
/// { "name": "news",
///   "registrationTTL": 7776000, "weight": 2,
///   "policies": [ { "name": "backend", "rights": ["Send"], "primaryKey": "…", "secondaryKey": "…" } ],
///   "apns": { "keyFile": "AuthKey_ABC123DEFG.p8", "keyId": "ABC123DEFG", "teamId": "DEF123GHIJ",
///             "bundleId": "com.example.news", "endpoint": "production" },
///   "fcm": { "serviceAccount": "service-account.json" },
///   "webPush": { "subject": "mailto:ops@example.com", "privateKeyFile": "vapid.pem" } }
/// ```
struct HubConfiguration: Sendable {
  struct Policy: Sendable {
    let name: String
    let rights: AccessRights
    /// `nil`: a random key.
    let primaryKey: String?
    let secondaryKey: String?

    /// - Throws: ``HubFailure`` when a policy cannot be so.
    func policy(at now: Date) throws(HubFailure) -> AccessPolicy {
      try .new(
        named: name, rights: rights, primaryKey: primaryKey, secondaryKey: secondaryKey, at: now)
    }
  }

  let name: String
  let registrationTTL: TimeInterval?
  /// Its share of the machine and of connections in relation to other hubs, while they want more
  /// than there is: 1 to 100.
  let weight: Int
  let policies: [Policy]
  let apns: APNsCredentialFiles?
  let fcm: FCMCredentialFile?
  let webPush: WebPushCredentialFiles?

  /// - Throws: ``ConfigurationError`` naming key, file and line.
  init(_ node: ConfigurationNode, file: String) throws(ConfigurationError) {
    let reader = try ConfigurationReader(node, name: "hubs", file: file)
    try reader.allow(["name", "registrationTTL", "weight", "policies", "apns", "fcm", "webPush"])
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
        _ = try described.policy(at: Date())
      } catch {
        throw policy.fault("name", error.description)
      }
      policies.append(described)
    }
    self.policies = policies
    apns = try reader.object("apns").map { node throws(ConfigurationError) in
      let apns = try ConfigurationReader(node, name: "apns", file: file)
      try apns.allow([
        "keyFile", "keyId", "teamId", "bundleId", "certificateFile", "password", "endpoint",
        "otherEndpoint",
      ])
      let files = APNsCredentialFiles(
        keyFile: try apns.path("keyFile"), keyID: try apns.text("keyId"),
        teamID: try apns.text("teamId"), bundleID: try apns.text("bundleId"),
        certificateFile: try apns.path("certificateFile"), password: try apns.text("password"),
        endpoint: try apns.text("endpoint"), otherEndpoint: try apns.text("otherEndpoint"))
      do {
        _ = try APNsCredential(try files.credential(at: Date()), at: Date())
      } catch {
        throw reader.fault("apns", "\(error)")
      }
      return files
    }
    fcm = try reader.object("fcm").map { node throws(ConfigurationError) in
      let fcm = try ConfigurationReader(node, name: "fcm", file: file)
      try fcm.allow(["serviceAccount", "endpoint", "tokenUri"])
      guard let account = try fcm.path("serviceAccount") else {
        throw fcm.fault("serviceAccount", "wants the JSON file of a service account")
      }
      let files = FCMCredentialFile(
        serviceAccount: account, endpoint: try fcm.text("endpoint"),
        tokenURI: try fcm.text("tokenUri"))
      do {
        _ = try FCMCredential(try files.credential(at: Date()))
      } catch {
        throw reader.fault("fcm", "\(error)")
      }
      return files
    }
    webPush = try reader.object("webPush").map { node throws(ConfigurationError) in
      let webPush = try ConfigurationReader(node, name: "webPush", file: file)
      try webPush.allow(["subject", "publicKey", "privateKey", "privateKeyFile"])
      let files = WebPushCredentialFiles(
        subject: try webPush.required("subject"), publicKey: try webPush.text("publicKey"),
        privateKey: try webPush.text("privateKey"),
        privateKeyFile: try webPush.path("privateKeyFile"))
      do {
        _ = try WebPushCredential(try files.credential(at: Date()))
      } catch {
        throw reader.fault("webPush", "\(error)")
      }
      return files
    }
  }
}

extension AccessRights {
  /// The rights that these words name, with those that Manage brings.
  fileprivate init(words: [String], reader: ConfigurationReader) throws(ConfigurationError) {
    self = []
    for word in words {
      guard let right = AccessRights(word: word) else {
        throw reader.fault("rights", "'\(word)' is no right; they are Listen, Send and Manage")
      }
      formUnion(right)
    }
    guard !isEmpty else { throw reader.fault("rights", "name at least one right") }
  }
}

extension AccessRights {
  /// The right of a word in any letter case; Manage is all three.
  init?(word: String) {
    switch word.lowercased() {
    case "listen": self = .listen
    case "send": self = .send
    case "manage": self = .all
    default: return nil
    }
  }

  /// For people: `Listen, Send`.
  var words: [String] {
    [("Listen", AccessRights.listen), ("Manage", .manage), ("Send", .send)]
      .filter { contains($0.1) }.map(\.0)
  }
}
