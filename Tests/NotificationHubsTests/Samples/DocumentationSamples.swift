import Foundation
import NotificationHubs

// The samples of the documentation catalogue, compiled; `DocumentationTests` compares them with the
// articles.

enum DocumentationSamples {
  static func getStarted(text: String) async throws {
    let client = NotificationHubClient(
      connectionString: try ConnectionString(text), hub: "demo")
    let receipt = try await client.send(.template(["message": "Hello!"]), to: "12345")
    if let id = receipt.notificationID {
      let telemetry = try await client.finalTelemetry(of: id)
      print(telemetry.state, telemetry.count(of: .success, on: .apns))
    }
  }

  static func register(
    _ client: NotificationHubClient, installationID: String, deviceToken: Data
  ) async throws {
    let installation = Installation(
      installationID: installationID, platform: .apns, pushChannel: .apns(deviceToken),
      tags: ["news"],
      templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
    try await client.createOrReplace(installation)
  }

  static func backendTokens(
    endpoint: ServiceEndpoint, fetchToken: @escaping @Sendable () async throws -> String
  ) -> NotificationHubClient {
    let tokens = TokenProvider {
      try SharedAccessSignature(parsing: try await fetchToken())
    }
    let client = NotificationHubClient(endpoint: endpoint, hub: "demo", tokens: tokens)
    return client
  }

  static func tags(
    _ client: NotificationHubClient, notification: PushNotification, installationID: String
  ) async throws {
    let audience: TagExpression = "news" && !"city:oslo"
    try await client.send(notification, to: audience)
    try await client.send(notification, to: .user("alice"))
    try await client.send(notification, to: .installation(installationID))
    let count = try await client.count(of: "news")
    _ = count
  }

  static func templates() -> [Any] {
    let english = PushTemplate(body: #"{"aps":{"alert":"$(sender) wrote: $(text)"}}"#)
    let norwegian = PushTemplate(body: #"{"aps":{"alert":"$(sender) skrev: $(text)"}}"#)
    let message = PushNotification.template(["sender": "Bob", "text": "Coffee?"])
    return [english, norwegian, message]
  }

  static func export(_ client: NotificationHubClient, container: String) async throws {
    let job = try await client.submit(
      NotificationHubJob(kind: .exportRegistrations, outputContainerURI: container))
    _ = job
  }
}
