import Foundation
import NotificationHubs
import Wire

/// `belfry send`
struct SendCommand: Subcommand {
  static let help = CommandHelp(
    "send", "send a notification",
    options: ClientOptions.options + [
      .value(
        "--template", "NAME=VALUE", "a property for the devices' templates, such as message=Hello",
        repeats: true),
      .value(
        "--properties", "FILE",
        "such properties as a JSON object: a file, - for standard input, or the JSON itself"),
    ] + Self.payloads + SendDestination.options + [
      .flag("--raw", "with --wns: the value is the text to send, as it stands (wns/raw)"),
      .value(
        "--header", "NAME=VALUE", "a header for the push service: apns-priority=5", repeats: true),
      .flag("--dry-run", "show whom it would reach and with what, and send nothing"),
      .flag("--curl", "print the request as a curl command, and send nothing"),
      .flag("--wait", "wait until every device has its outcome, and show the counts"),
      .value("--timeout", "SECONDS", "how long --wait waits (default 60)"),
    ],
    discussion: """
      Template properties reach devices that registered a template, on every platform; a payload
      reaches the devices of its push service as it is. Tag expressions know &&, ||, ! and
      parentheses.

      A handle is what a push service calls a device; handles get a payload of that service. With
      --at the hub keeps the notification until its time, and `belfry notification cancel` takes it
      back.

      With --wait the exit code is 1 when no device was reached.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry send --template message='Hello!' --tags 12345 --wait",
      "belfry send --apns '{\"aps\":{\"alert\":\"Hi\"}}' --tags '(news || sport) && !muted'",
      "belfry send --apns payload.json --handle 0A1B2C…",
      "belfry send --fcm '{\"message\":{\"notification\":{\"body\":\"Hi\"}}}' --tags news",
      "belfry send --wns 'door open' --raw --tags news",
      "belfry send --properties props.json --tags news",
      "belfry send --template message=Soon --broadcast --at +10m",
    ])

  /// An option for a payload of each push service.
  private static let payloads = PhonePlatform.allCases.map { platform in
    Option.value(
      platform.payloadOption, "FILE",
      "a payload for \(platform.serviceName): a file, -, or the text itself")
  }

  let notification: PushNotification
  let destination: SendDestination
  let isDryRun: Bool
  let isCurl: Bool
  let waits: Bool
  let timeout: Int
  let client: ClientOptions

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    isDryRun = words.flag("--dry-run")
    isCurl = words.flag("--curl")
    waits = words.flag("--wait")
    timeout = try words.integer("--timeout", in: 1...86_400) ?? 60
    var headers: [String: String] = [:]
    for text in words.all("--header") {
      let (name, value) = try TextInput.pair(text, of: "--header", in: words)
      headers[name] = value
    }
    let given = PhonePlatform.allCases.filter { words.flag($0.payloadOption) }
    let isTemplate = words.flag("--template") || words.flag("--properties")
    guard given.count + (isTemplate ? 1 : 0) == 1 else {
      throw words.fault(
        given.isEmpty
          ? "say what to send: --template NAME=VALUE, or the payload of a push service, such as "
            + "--apns FILE"
          : "one send has either template properties or one payload")
    }
    if let platform = given.first {
      notification = try Self.native(platform, headers: headers, words)
    } else if words.flag("--raw") {
      throw words.fault("--raw goes with --wns; the others take JSON")
    } else {
      notification = .template(try Self.properties(words), headers: headers)
    }
    destination = try SendDestination(words, platform: given.first?.platform, now: Date())
    if case .devices = destination.target, given.isEmpty {
      throw words.fault("handles get a payload of their push service, such as --apns FILE")
    }
    if isCurl, destination.request == nil {
      throw words.fault(
        "--curl shows one request as text; that of a batch or a subscription is none")
    }
    if isDryRun {
      if case .devices(let devices) = destination.target, devices.count > 1 {
        throw words.fault("--dry-run looks at one handle, or at an audience; not at a batch")
      }
      for other in ["--test", "--wait", "--curl"] where words.flag(other) {
        throw words.fault("--dry-run and \(other) exclude each other")
      }
    }
  }

  private static func native(
    _ platform: PhonePlatform, headers: [String: String], _ words: Words
  ) throws -> PushNotification {
    let option = platform.payloadOption
    let value = words.value(option) ?? ""
    let takesText = platform == .wns
    let isRaw = words.flag("--raw")
    guard takesText || !isRaw else {
      throw words.fault("--raw goes with --wns; the others take JSON")
    }
    let payload: Data
    do {
      payload = isRaw && value != "-" ? Data(value.utf8) : try TextInput.read(value)
    } catch let failure as CommandFailure where takesText {
      throw CommandFailure(
        "\(failure); --raw sends the value itself", exitCode: failure.exitCode)
    }
    if !takesText, ["{", "["].contains(payload.first { $0 > 0x20 }.map(UnicodeScalar.init)) {
      _ = try TextInput.json(payload, of: option)
    }
    var notification = PushNotification(
      format: .native(platform.platform), body: payload, headers: headers)
    guard platform == .wns else { return notification }
    let type = headers.first { $0.key.lowercased() == "x-wns-type" }?.value.lowercased()
    guard !isRaw || type == nil || type == "wns/raw" else {
      throw words.fault("--raw is of the type wns/raw, not \(type ?? "")")
    }
    if isRaw, type == nil { notification.headers["X-WNS-Type"] = "wns/raw" }
    if isRaw || type == "wns/raw" { notification.contentType = "application/octet-stream" }
    return notification
  }

  private static func properties(_ words: Words) throws -> [String: String] {
    var properties: [String: String] = [:]
    if let file = words.value("--properties") {
      let json = try TextInput.json(try TextInput.read(file), of: "--properties")
      guard case .object(let members) = json else {
        throw words.fault("--properties wants a JSON object, such as {\"message\":\"Hello\"}")
      }
      for member in members {
        guard let text = member.value.scalarText else {
          throw words.fault("--properties: '\(member.name)' must be a text, a number or a flag")
        }
        properties[member.name] = text
      }
    }
    for pair in words.all("--template") {
      let (name, value) = try TextInput.pair(pair, of: "--template", in: words)
      properties[name] = value
    }
    return properties
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(
      isDryRun || isCurl ? .looks("Send") : .changes("Send"), in: context)
    if isCurl { return printCurl(access, in: context) }
    if isDryRun { return try await dryRun(access, in: context) }
    if destination.isTest { return try await test(access, in: context) }
    let receipt = try await access.calling {
      try await destination.send(notification, through: access.client)
    }
    let id = receipt.notificationID ?? ""
    guard waits, !id.isEmpty else {
      if client.json {
        try context.printJSON(["notificationId": id, "trackingId": receipt.trackingID ?? ""])
      } else {
        context.print("\(destination.time == nil ? "accepted" : "scheduled"): \(id)")
        if destination.time != nil {
          context.print("take it back: belfry notification cancel \(id)\(client.words.sameHub)")
        }
        context.print(
          "see what became of it: belfry notification show \(id)\(client.words.sameHub)")
      }
      return
    }
    if !client.json { context.print("accepted: \(id)") }
    let telemetry = try await TelemetryWatch(access: access, client: client, context: context)
      .finished(id, within: .seconds(timeout))
    try ShownTelemetry(telemetry).print(json: client.json, in: context)
    guard telemetry.state.isFinal else {
      throw CommandFailure(
        "still \(telemetry.state) after \(timeout) s; it goes on: belfry notification show \(id)"
          + client.words.sameHub)
    }
    try NotificationEnd.check(
      telemetry.state, succeeded: telemetry.count(of: .success), id, client.words)
  }

  /// Exit code 1 when there is somebody whom it would not reach, or nobody at all.
  private func dryRun(_ access: ClientOptions.Access, in context: CommandContext) async throws {
    let preview = try await access.calling {
      switch destination.target {
      case .audience(let audience):
        try await access.client.preview(notification, to: audience)
      case .devices(let devices):
        try await access.client.previewDirect(notification, to: devices[0])
      }
    }
    if client.json {
      context.print(String(decoding: preview.json, as: UTF8.self))
    } else {
      for line in SendPreviewText(preview).lines { context.print(line) }
    }
    guard preview.devices > 0 else {
      throw CommandFailure("it would reach nobody" + NotificationEnd.nobody(client.words))
    }
    let failing = preview.problems.filter(\.isFatal).reduce(0) { $0 + $1.devices }
    guard failing == 0 else { throw CommandFailure("it would fail for some devices") }
  }

  private func printCurl(_ access: ClientOptions.Access, in context: CommandContext) {
    let token = SharedAccessSignature(
      resource: access.connection.endpoint.resource(hub: access.hub),
      keyName: access.connection.keyName, key: access.connection.key,
      expiresAt: Date().addingTimeInterval(3600))
    guard let request = destination.request else { return }
    context.print(
      CurlCommand.send(
        notification, fields: request.fields, to: request.resource, flag: request.flag,
        url: access.connection.endpoint.url, hub: access.hub, token: token.text))
  }

  private struct TestJSON: Encodable {
    struct Result: Encodable {
      let platform: String
      let handle: String
      let registrationId: String
      let outcome: String
    }
    let success: Int
    let failure: Int
    let results: [Result]
  }

  private func test(_ access: ClientOptions.Access, in context: CommandContext) async throws {
    guard case .audience(let audience) = destination.target else { return }
    let report = try await access.calling {
      try await access.client.testSend(notification, to: audience)
    }
    if client.json {
      try context.printJSON(
        TestJSON(
          success: report.success, failure: report.failure,
          results: report.results.map {
            .init(
              platform: $0.platform, handle: $0.pnsHandle, registrationId: $0.registrationID,
              outcome: $0.outcome)
          }))
    } else {
      for result in report.results {
        context.print("\(result.platform.padded(to: 14))\(result.pnsHandle)  \(result.outcome)")
      }
      context.print("\(report.success) of \(report.success + report.failure) devices reached")
    }
    guard report.failure == 0 else {
      throw CommandFailure("the push services refused \(report.failure) of the test's pushes")
    }
  }
}
