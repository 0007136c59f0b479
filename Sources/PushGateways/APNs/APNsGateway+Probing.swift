package import HubCore
import NotificationHubs

extension APNsGateway: ProbingGateway {
  /// Pushes in the background to a token of zeros, which APNs gives to no device: it looks at the
  /// credential before it looks at the token.
  package func probe() async -> CredentialProbe {
    let body = PushBody(
      bytes: Array(#"{"aps":{"content-available":1}}"#.utf8),
      headers: ["apns-push-type": "background", "apns-priority": "5"], expiry: 0)
    let batch = PushBatch(to: String(repeating: "0", count: 64), body)
    let results = await deliverHere(batch)
    return Self.reading.probe(results.first ?? PushResult(outcome: .unknownError))
  }

  private static let reading = ProbeReading(
    service: "Apple",
    proof: "all that it objects to is the device token that was tried, which no device has",
    open: "Whether the app is the right one shows with the first push to a device.",
    advice: [
      "InvalidProviderToken":
        "The key id and the team id must be those of this very .p8 file, and the key must not be "
        + "revoked: see Certificates, Identifiers & Profiles, Keys, and Membership for the team.",
      "ExpiredProviderToken": "Check this machine's clock: Apple takes tokens of the last hour.",
      "BadEnvironmentKeyIdInToken": environment,
      "BadEnvironmentKeyInToken": environment,
      "BadCertificateEnvironment": environment,
      "BadCertificate": "Make a new Apple Push Notification certificate for the app.",
      "tls-certificate-rejected":
        "The certificate is revoked, expired or not one of Apple's for pushes: make a new one.",
      "TopicDisallowed": topic,
      "BadTopic": topic,
      "MissingTopic": topic,
      "DeviceTokenNotForTopic": topic,
      "UnrelatedKeyIdInToken": "The key is not for this team's apps: check key id and team id.",
    ],
    otherAdvice: "Check key id, team id, bundle id and environment in Apple's developer portal.")

  private static let environment =
    "It is for the other environment: give --endpoint sandbox for builds from Xcode, --endpoint "
    + "production for the App Store and TestFlight; or a key that serves both."
  private static let topic =
    "The bundle id must be that of the app, as Identifiers in Apple's developer portal show it."
}
