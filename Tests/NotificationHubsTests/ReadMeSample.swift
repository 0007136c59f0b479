import Foundation
import NotificationHubs

/// What the README quotes, line for line, so that it cannot rot.
enum ReadMeSample {
  static func helloWorld(
    connectionString: String, deviceToken: String, installationID: String,
    transport: any HTTPTransport
  ) async throws -> NotificationTelemetry {
    // begin sample
    let client = NotificationHubClient(
      connectionString: try ConnectionString(connectionString), hub: "my-hub",
      transport: transport)

    let phone = try Installation(
      installationID: installationID, platform: .apns,
      pushChannel: .apns(hexToken: deviceToken), tags: ["12345"],
      templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
    try await client.createOrReplace(phone)
    try await client.patch(installation: installationID, [.addTag("news")])

    let receipt = try await client.send(
      .template(["message": "Hello!"]), to: "12345" && !"beta")
    let telemetry = try await client.finalTelemetry(of: receipt)
    print(telemetry.state, telemetry.count(of: .success), "delivered")
    // end sample
    return telemetry
  }

  static func typedPayload(client: NotificationHubClient) async throws -> SendReceipt {
    // begin sample
    let tea = try APNsPayload(
      .init(alert: .init(title: "Tea", body: "It is ready."), sound: .standard),
      custom: ["pot": 2], delivery: .init(collapseID: "tea"))
    let receipt = try await client.send(PushNotification(tea), to: "kitchen")
    // end sample
    return receipt
  }
}
