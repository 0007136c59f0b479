import Foundation
import HubCore
import NotificationHubs
import PushDevice
import SecurePush

/// The tutorial as performed by `belfry demo`. Every step is real, and uses the SDK over the same
/// sockets as the printed curl commands.
struct DemoStory: Sendable {
  let stack: DevelopmentStack
  let context: CommandContext
  /// The time limit for the push to reach the phone.
  let limit: Duration

  private var hub: DevelopmentStack.Addresses.Hub { stack.addresses.hub }
  private var emulator: StandInAddresses { stack.addresses.emulator }

  /// The result of the demo, for scripts.
  struct Ending: Encodable, Sendable {
    let installationId: String
    let token: String
    let notificationId: String
    /// The text that the phone showed.
    let shown: String
    /// The time from the send to the phone.
    let milliseconds: Int
  }

  /// - Parameter stays: Whether the stack keeps running, so that next steps are suggested.
  func tell(stays: Bool) async throws -> Ending {
    let listen = try ConnectionString(hub.connectionStrings.listen)
    let full = try ConnectionString(hub.connectionStrings.full)

    step("Hub and push services are up on this machine")
    say("hub    \(hub.url)  (\(hub.name))")
    say("APNs   \(emulator.apns)  (stand-in: HTTP/2 over TLS, strict)")
    say("Both tokens below are good for an hour:")
    show("LISTEN='\(token(listen))'")
    show("FULL='\(token(full))'")

    step("A virtual phone asks APNs for a device token")
    let control = try EmulatorControl(emulator.control)
    let phone = try await VirtualPhone.make(control: control, topic: emulator.topic)
    show(
      CurlCommand.command(
        "POST", "\(emulator.control)/v1/devices", headers: [("Content-Type", "application/json")],
        body: #"{"appId":"app-1","kind":"alert"}"#))
    say(phone.token)

    step(#"It registers: tag 12345, template {"aps":{"alert":"$(message)"}}"#)
    let device = phone.installation(id: UUID().uuidString.lowercased())
    let address =
      "\(hub.url)/\(hub.name)/installations/\(device.installationID)?api-version=2020-06"
    show(
      CurlCommand.command(
        "PUT", address,
        headers: [("Authorization", "$LISTEN"), ("Content-Type", "application/json")],
        body: String(decoding: device.jsonData, as: UTF8.self)))
    let registering = NotificationHubClient(
      connectionString: listen, hub: hub.name, transport: ClientTransport.shared)
    try await registering.createOrReplace(device)
    say("200 OK")

    step("The installation is read back")
    show(CurlCommand.command("GET", address, headers: [("Authorization", "$LISTEN")]))
    let kept = try await registering.installation(device.installationID)
    say(String(decoding: kept.hubJSON, as: UTF8.self))

    step(#"{"message":"Hello from Postman!"} is sent to tag 12345"#)
    let hello = PushNotification.template(["message": "Hello from Postman!"])
    show(
      CurlCommand.send(
        hello, fields: [(WireName.tags, "12345")], url: hub.url, hub: hub.name, token: "$FULL"))
    let client = NotificationHubClient(
      connectionString: full, hub: hub.name, transport: ClientTransport.shared)
    let sentAt = Date()
    let receipt = try await client.send(hello, to: "12345")
    let id = receipt.notificationID ?? ""
    say("201 Created: \(id)")

    step("The phone rings")
    let arrival: VirtualPhone.Arrival
    do {
      arrival = try await self.arrival(at: phone)
    } catch let failure as CommandFailure {
      throw await explained(failure, id, of: device.installationID, client)
    }
    for line in arrival.banner(app: "PushDemo") { say(line) }
    guard let shown = arrival.shown?.body, shown == "Hello from Postman!" else {
      throw CommandFailure("the phone shows something else than was sent")
    }
    // The stand-in has a precision of milliseconds.
    let taken = Int(max(0, arrival.deliveredAt.timeIntervalSince(sentAt) * 1000).rounded(.up))
    say("\(taken) ms after the send")

    step("The hub knows what became of it")
    show(
      CurlCommand.command(
        "GET", "\(hub.url)/\(hub.name)/messages/\(id)?api-version=2020-06",
        headers: [("Authorization", "$FULL")]))
    let telemetry = try await finished(id, client: client)
    say("\(telemetry.state): Success \(telemetry.count(of: .success, on: .apns))")

    try await tellSecret(control)
    context.print("")
    let ending = Ending(
      installationId: device.installationID, token: phone.token, notificationId: id, shown: shown,
      milliseconds: taken)
    guard stays else {
      context.print("The push went all the way. That is the demo.")
      return ending
    }
    context.print("Everything stays up until Ctrl-C. Copy any of the commands above, or try:")
    show("export BELFRY_CONNECTION_STRING='\(hub.connectionStrings.full)' BELFRY_HUB=\(hub.name)")
    show("belfry phone --control \(emulator.control) --tags news")
    show("belfry send --template message=Hi --tags 'news || 12345' --wait")
    context.print("All of it, in a browser: \(stack.addresses.portal)")
    context.print("A web push arrives in the browser that opens \(stack.addresses.browserPage)")
    return ending
  }

  /// The tutorial "Secure push": a payload that must not be readable on the way stays at the
  /// backend.
  private func tellSecret(_ control: EmulatorControl) async throws {
    step("Alice sends herself a secret; only its id passes the push service")
    let backend = stack.addresses.backend.url
    guard let address = URL(string: backend) else {
      throw CommandFailure("'\(backend)' is not a valid address", exitCode: .defect)
    }
    let alice = SecurePushClient(
      backend: address, credentials: .password(user: "alice", password: "alice"),
      transport: ClientTransport.shared)
    let bob = SecurePushClient(
      backend: address, credentials: .password(user: "bob", password: "bob"),
      transport: ClientTransport.shared)
    let phone = try await VirtualPhone.make(control: control, topic: emulator.topic)
    try await alice.install(phone.installation(id: UUID().uuidString.lowercased()))
    show("curl -u alice:alice -X POST \(backend)/api/notifications")
    let id = try await alice.send()
    say("200 OK: \(id)")
    say("Her phone gets: \(try await arrival(at: phone).payload)")
    show("curl -u alice:alice \(backend)/api/notifications/\(id)")
    say("Her phone fetches and shows: \(try await alice.payload(of: id).payload)")
    show("curl -u bob:bob \(backend)/api/notifications/\(id)")
    do {
      _ = try await bob.payload(of: id)
      throw CommandFailure("bob could read alice's secret", exitCode: .defect)
    } catch SecurePushClientError.notFound {
      say("404: for Bob there is no such notification")
    }
  }

  /// Waits for the first notification on the phone.
  private func arrival(at phone: VirtualPhone) async throws -> VirtualPhone.Arrival {
    try await withThrowingTaskGroup(of: VirtualPhone.Arrival?.self) { group in
      group.addTask {
        for try await arrival in phone.arrivals() { return arrival }
        return nil
      }
      group.addTask { [limit] in
        try await Task.sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      guard let arrival = try await group.next() ?? nil else {
        throw CommandFailure("the push did not reach the phone within \(limit)")
      }
      return arrival
    }
  }

  /// A failed delivery, with the hub's explanation.
  private func explained(
    _ failure: CommandFailure, _ id: String, of installation: String,
    _ client: NotificationHubClient
  ) async -> CommandFailure {
    guard let found = try? await client.explanation(of: id, installation: installation) else {
      return failure
    }
    let facts = (found.facts + found.candidates.flatMap(\.facts)).filter { $0.holds != true }
    return CommandFailure(
      ([failure.description + ": " + found.text] + facts.map { "  · " + $0.text })
        .joined(separator: "\n"), exitCode: failure.exitCode)
  }

  private func finished(
    _ id: String, client: NotificationHubClient
  ) async throws -> NotificationTelemetry {
    let hub = try await stack.runtime.service.hub(named: hub.name)
    _ = try await stack.runtime.service.dispatcher.record(
      of: .init(rawValue: id), hub: hub.id, finishedWithin: limit)
    return try await client.telemetry(of: id)
  }

  private func token(_ connection: ConnectionString) -> String {
    SharedAccessSignature(
      resource: connection.endpoint.resource(hub: hub.name), keyName: connection.keyName,
      key: connection.key, expiresAt: Date().addingTimeInterval(3600)
    ).text
  }

  // MARK: Telling

  private func step(_ title: String) {
    context.print("")
    context.print(context.isStyled ? "\u{1B}[1m● \(title)\u{1B}[0m" : "● \(title)")
  }

  private func say(_ text: String) {
    for line in text.split(separator: "\n") { context.print("   " + line) }
  }

  /// Shows an equivalent command, dimmed on a terminal.
  private func show(_ command: String) {
    let lines = command.split(separator: "\n").enumerated()
      .map { ($0.offset == 0 ? "   $ " : "     ") + $0.element }
    for line in lines {
      context.print(context.isStyled ? "\u{1B}[2m\(line)\u{1B}[0m" : line)
    }
  }
}
