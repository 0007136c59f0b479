import Foundation
import NotificationHubs

/// `belfry send`
struct SendCommand: Subcommand {
  static let help = CommandHelp(
    "send", "send a notification",
    options: ClientOptions.options + [
      .value(
        "--template", "NAME=VALUE", "a property for the devices' templates, such as message=Hello",
        repeats: true),
      .value(
        "--apns", "FILE", "an Apple payload: a file, - for standard input, or the JSON itself"),
      .value("--tags", "EXPR", "to the devices that this tag or tag expression matches"),
      .flag("--broadcast", "to every device of the hub"),
      .value(
        "--header", "NAME=VALUE", "a header for the push service: apns-priority=5", repeats: true),
      .flag("--dry-run", "print the request as a curl command and send nothing"),
      .flag("--wait", "wait until every device has its outcome, and show the counts"),
      .value("--timeout", "SECONDS", "how long --wait waits (default 60)"),
    ],
    discussion: """
      Template properties reach devices that registered a template, on every platform; an --apns
      payload reaches Apple devices as it is. Tag expressions know &&, ||, ! and parentheses.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry send --template message='Hello!' --tags 12345 --wait",
      "belfry send --apns '{\"aps\":{\"alert\":\"Hi\"}}' --tags '(news || sport) && !muted'",
    ])

  let notification: PushNotification
  let audience: TagExpression?
  let isDryRun: Bool
  let waits: Bool
  let timeout: Int
  let client: ClientOptions

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    isDryRun = words.flag("--dry-run")
    waits = words.flag("--wait")
    timeout = try words.integer("--timeout", in: 1...86_400) ?? 60
    var headers: [String: String] = [:]
    for text in words.all("--header") {
      let (name, value) = try TextInput.pair(text, of: "--header", in: words)
      headers[name] = value
    }
    switch (words.all("--template"), words.value("--apns")) {
    case ([], let file?):
      let payload = String(decoding: try TextInput.read(file), as: UTF8.self)
      notification = .native(.apns, payload, headers: headers)
    case (let pairs, nil) where !pairs.isEmpty:
      var properties: [String: String] = [:]
      for pair in pairs {
        let (name, value) = try TextInput.pair(pair, of: "--template", in: words)
        properties[name] = value
      }
      notification = .template(properties, headers: headers)
    default: throw words.fault("say what to send: --template NAME=VALUE, or --apns FILE")
    }
    switch (words.value("--tags"), words.flag("--broadcast")) {
    case (let text?, false):
      do {
        audience = try TagExpression(parsing: text)
      } catch {
        throw words.fault("--tags: \(error)")
      }
    case (nil, true): audience = nil
    default: throw words.fault("say to whom: --tags EXPR, or --broadcast for every device")
    }
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(in: context)
    if isDryRun { return dryRun(access, in: context) }
    let receipt = try await client.calling {
      if let audience { return try await access.client.send(notification, to: audience) }
      return try await access.client.broadcast(notification)
    }
    let id = receipt.notificationID ?? ""
    guard waits, !id.isEmpty else {
      if client.json {
        try context.printJSON(["notificationId": id, "trackingId": receipt.trackingID ?? ""])
      } else {
        context.print("accepted: \(id)")
        context.print("see what became of it: belfry notification show \(id)")
      }
      return
    }
    if !client.json { context.print("accepted: \(id)") }
    let telemetry = try await TelemetryWatch(access: access, client: client, context: context)
      .finished(id, within: .seconds(timeout))
    try ShownTelemetry(telemetry).print(json: client.json, in: context)
    guard telemetry.state.isFinal else {
      throw CommandFailure(
        "still \(telemetry.state) after \(timeout) s; it goes on: belfry notification show \(id)")
    }
  }

  private func dryRun(_ access: ClientOptions.Access, in context: CommandContext) {
    let token = SharedAccessSignature(
      resource: access.connection.endpoint.resource(hub: access.hub),
      keyName: access.connection.keyName, key: access.connection.key,
      expiresAt: Date().addingTimeInterval(3600))
    context.print(
      CurlCommand.send(
        notification, tags: audience?.description, url: access.connection.endpoint.url,
        hub: access.hub, token: token.text))
  }
}
