import Cryptography

/// An app as Apple's developer account knows it: team, bundle id, certificates.
struct APNsApp: Sendable {
  /// Unique in the emulator.
  let number: UInt32
  let bundleID: String
  let teamID: String
  let environment: APNsEnvironmentScope
  /// SHA-256 of the registered client certificates, lower-case hex.
  var certificates: [String]
  /// Whether the app may have broadcast channels; at Apple a capability of the app's identifier.
  var hasBroadcasts = true

  var id: String { "app-\(number)" }

  /// Every kind's topic, by the kind's place in `APNsKind.allCases`: notifications share the string.
  let topics: [String]

  init(
    number: UInt32, bundleID: String, teamID: String, environment: APNsEnvironmentScope,
    certificates: [String], hasBroadcasts: Bool = true
  ) {
    self.number = number
    self.bundleID = bundleID
    self.teamID = teamID
    self.environment = environment
    self.certificates = certificates
    self.hasBroadcasts = hasBroadcasts
    topics = APNsKind.allCases.map { bundleID + $0.topicSuffix }
  }
}

/// A signing key that APNs knows (`.p8`); belongs to a team and was registered with an app.
struct APNsKey: Sendable {
  let kid: String
  let teamID: String
  /// The app it was registered with; it goes when that app is deleted.
  let app: UInt32
  let publicKey: P256PublicKey
  /// Of a key that the emulator made; shown once, and kept for its operator.
  var privateKeyPEM: String?
  let scope: APNsKeyScope
  /// Topics or bundle ids a topic-scoped key may use.
  let topics: [String]
  var environment: APNsEnvironmentScope
  var isRevoked = false

  func allows(topic: ArraySlice<UInt8>, bundleID: String) -> Bool {
    scope == .team
      || topics.contains { $0 == bundleID || topic.elementsEqual($0.utf8) }
  }
}
