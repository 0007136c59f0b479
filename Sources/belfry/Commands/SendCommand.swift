import Foundation
import NotificationHubs
import Wire

struct SendCommand: ResultCommand {
  static let about = CommandHelp(
    "send", "send a notification",
    discussion: """
      Template properties reach devices that registered a template, on every platform; a payload
      reaches the devices of its push service as it is. Tag expressions support &&, ||, !
      and parentheses.

      A handle is a push service's identifier of a device; handles get a payload of that service.
      With --at the hub stores the notification until its time, and `belfry notification cancel`
      cancels it.

      On a terminal --broadcast shows how many devices it reaches and asks; --yes skips the
      question.

      With --wait the exit code is 1 if no device was reached.
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

  let client = ClientOptions(directoryAccess: .server)
  @Option(
    repeated: "--template", "NAME=VALUE",
    "a property for the devices' templates, such as message=Hello", .pair)
  var template: [(name: String, value: String)]
  @Option(
    "--properties", "FILE",
    "such properties as a JSON object: a file, - for standard input, or the JSON itself")
  var propertiesFile: String?
  let payloads = PayloadOptions()
  @Flag("--raw", "with --wns: the value is the text to send, as it stands (wns/raw)") var isRaw
  let destination = SendDestination()
  @Option(
    repeated: "--header", "NAME=VALUE", "a header for the push service: apns-priority=5", .pair)
  var headers: [(name: String, value: String)]
  @Flag("--dry-run", "show whom it would reach and with what, and send nothing") var isDryRun
  @Flag("--curl", "print the request as a curl command, and send nothing") var isCurl
  @Flag("--wait", "wait until every device has its outcome, and show the counts") var waits
  @Option("--timeout", "SECONDS", "how long --wait waits", .integer(1...86_400)) var timeout = 60

  /// The validated notification and destination.
  private func request() throws -> (PushNotification, SendDestination.Checked) {
    let given = payloads.given
    let isTemplate = $template.isGiven || propertiesFile != nil
    guard given.count + (isTemplate ? 1 : 0) == 1 else {
      throw UsageError(
        given.isEmpty
          ? "say what to send: --template NAME=VALUE, or the payload of a push service, such as "
            + "--apns FILE"
          : "one send has either template properties or one payload")
    }
    guard !isRaw || given.first?.platform == .wns else {
      throw UsageError("--raw goes with --wns; the others take JSON")
    }
    let notification =
      try given.first.map { try native($0.platform, $0.value) }
      ?? .template(try properties(), headers: headers.dictionary)
    let checked = try destination.checked(platform: given.first?.platform, waits: waits)
    if case .devices(let devices) = checked.target {
      guard !isTemplate else {
        throw UsageError("handles get a payload of their push service, such as --apns FILE")
      }
      guard !isDryRun || devices.count == 1 else {
        throw UsageError("--dry-run takes one handle or an audience, not a batch")
      }
    }
    if isCurl, checked.request == nil {
      throw UsageError(
        "--curl shows one request as text; that of a batch or a subscription is none")
    }
    for other: any Parameter in [destination.$isTest, $waits, $isCurl] where isDryRun {
      try UsageError.check(exclusive: $isDryRun, other)
    }
    if let platform = given.first?.platform { try Self.checkForm(notification.body, platform) }
    return (notification, checked)
  }

  /// Checks for the required member of a payload, whose absence the hub would report less clearly.
  private static func checkForm(
    _ payload: Data, _ platform: PushPlatform
  ) throws(CommandFailure) {
    guard platform == .apns || platform == .fcmv1 else { return }
    let json = try TextInput.json(payload, of: platform.payloadOption)
    guard case .object = json else { return }
    switch platform {
    // Device management payloads have no `aps`.
    case .apns where json["aps"] == nil && json["mdm"] == nil:
      throw CommandFailure(
        #"--apns must be an object with 'aps', such as {"aps":{"alert":"Hello"}}"#, exitCode: .usage
      )
    case .fcmv1 where json["message"] == nil:
      throw CommandFailure(
        "--fcm must be an object with 'message', such as "
          + #"{"message":{"notification":{"title":"Hello"}}}"#,
        exitCode: .usage)
    default: return
    }
  }

  private func native(_ platform: PushPlatform, _ value: String) throws -> PushNotification {
    let payload: Data
    do {
      payload = isRaw && value != "-" ? Data(value.utf8) : try TextInput.read(value)
    } catch let failure as CommandFailure where platform == .wns {
      throw CommandFailure(
        "\(failure); --raw sends the value itself", exitCode: failure.exitCode)
    }
    if platform != .wns, ["{", "["].contains(payload.first { $0 > 0x20 }.map(UnicodeScalar.init)) {
      _ = try TextInput.json(payload, of: platform.payloadOption)
    }
    var notification = PushNotification(
      format: .native(platform), body: payload, headers: headers.dictionary)
    guard platform == .wns else { return notification }
    let type = notification.headers.first { $0.key.lowercased() == "x-wns-type" }?.value
      .lowercased()
    guard !isRaw || type == nil || type == "wns/raw" else {
      throw UsageError("--raw is of the type wns/raw, not \(type ?? "")")
    }
    if isRaw, type == nil { notification.headers["X-WNS-Type"] = "wns/raw" }
    if isRaw || type == "wns/raw" { notification.contentType = "application/octet-stream" }
    return notification
  }

  private func properties() throws -> [String: String] {
    var properties: [String: String] = [:]
    if let propertiesFile {
      let json = try TextInput.json(try TextInput.read(propertiesFile), of: "--properties")
      guard case .object(let members) = json else {
        throw UsageError("--properties must be a JSON object, such as {\"message\":\"Hello\"}")
      }
      for member in members {
        guard let text = member.value.scalarText else {
          throw UsageError("--properties: '\(member.name)' must be a text, a number or a flag")
        }
        properties[member.name] = text
      }
    }
    return properties.merging(template.dictionary) { $1 }
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    let (notification, destination) = try request()
    let access = try await client.access(isDryRun || isCurl ? .looks : .changes, in: context)
    if isCurl { return curl(notification, destination, access) }
    return try await access.calling {
      if isDryRun { return try await preview(notification, destination, access) }
      if destination.isTest { return try await test(notification, destination, access) }
      return try await send(notification, destination, access, in: context)
    }
  }

  private func send(
    _ notification: PushNotification, _ destination: SendDestination.Checked,
    _ access: HubAccess, in context: CommandContext
  ) async throws -> CommandResult {
    if case .audience(nil) = destination.target, context.ask != nil,
      !self.destination.isConfirmed
    {
      try context.confirm(
        "this goes to \(await Self.reach(notification, access)) of hub '\(access.hub)'",
        false)
    }
    let receipt = try await destination.send(notification, through: access.client)
    let id = receipt.notificationID ?? ""
    let hubOptions = client.location.options
    let end = NotificationEnd(id: id, location: client.location, tags: self.destination.expression)
    guard waits, !id.isEmpty else {
      var line = "\(destination.time == nil ? "accepted" : "scheduled"): \(id)"
      if !client.json, destination.time == nil, case .audience(let audience) = destination.target,
        await Self.devices(notification, audience, access) == 0
      {
        line += ", but it reaches nobody: 0 devices match\(end.nobody)"
      }
      let next =
        destination.time == nil
        ? [] : ["to cancel it: belfry notification cancel \(id)\(hubOptions)"]
      return CommandResult(
        ["notificationId": id, "trackingId": receipt.trackingID ?? ""],
        [line] + next + ["see the outcome: belfry notification show \(id)\(hubOptions)"])
    }
    if !client.json { context.print("accepted: \(id)") }
    let telemetry = try await access.finalTelemetry(
      of: id, within: .seconds(timeout), json: client.json, in: context)
    return ShownTelemetry(telemetry).result(
      end.failure(
        telemetry, after: timeout, hint: ": belfry notification show \(id)\(hubOptions)"))
  }

  /// The number of devices that a send would go to; `nil` if the hub does not report it, as in the
  /// original.
  private static func devices(
    _ notification: PushNotification, _ audience: TagExpression?, _ access: HubAccess
  ) async -> Int? {
    try? await access.client.preview(notification, to: audience).devices
  }

  private static func reach(
    _ notification: PushNotification, _ access: HubAccess
  ) async -> String {
    await devices(notification, nil, access)?.counted("device") ?? "every device"
  }

  /// Previews the send. The exit code is 1 if it would fail for some device, or reach none.
  private func preview(
    _ notification: PushNotification, _ destination: SendDestination.Checked, _ access: HubAccess
  ) async throws -> CommandResult {
    let preview =
      switch destination.target {
      case .audience(let audience):
        try await access.client.preview(notification, to: audience)
      case .devices(let devices):
        try await access.client.previewDirect(notification, to: devices[0])
      }
    let failing = preview.problems.filter(\.isFatal).reduce(0) { $0 + $1.devices }
    var failure = failing == 0 ? nil : CommandFailure("it would fail for some devices")
    if preview.devices == 0 {
      let end = NotificationEnd(
        id: "", location: client.location, tags: self.destination.expression)
      failure = CommandFailure("it would reach no device\(end.nobody)")
    }
    return CommandResult(
      written: preview.json, SendPreviewText(preview).lines, failure: failure)
  }

  private func curl(
    _ notification: PushNotification, _ destination: SendDestination.Checked, _ access: HubAccess
  ) -> CommandResult {
    let token = access.connection.token(
      for: access.connection.endpoint.resource(hub: access.hub), lifetime: 3600)
    let lines = destination.request.map { request in
      CurlCommand.send(
        notification, fields: request.fields, to: request.resource, flag: request.flag,
        url: access.connection.endpoint.url, hub: access.hub, token: token.text)
    }
    // The command is printed as it is, also with --json.
    return CommandResult(written: Array((lines ?? "").utf8), lines.map { [$0] } ?? [])
  }

  private struct TestJSON: Encodable {
    struct Result: Encodable {
      let platform: String
      let handle: String
      let registrationId: String
      let outcome: String
      let status: Int?
      let reason: String?
    }
    let success: Int
    let failure: Int
    let results: [Result]
  }

  private func test(
    _ notification: PushNotification, _ destination: SendDestination.Checked, _ access: HubAccess
  ) async throws -> CommandResult {
    guard case .audience(let audience) = destination.target else {
      throw UsageError("--test goes with --tags or --broadcast, not with handles")
    }
    let report = try await access.client.testSend(notification, to: audience)
    let rows = report.results.map { result in
      let said = result.reason.map { ": \($0)" } ?? ""
      return "\(result.platform.padded(to: 14))\(result.pnsHandle)  \(result.outcome)\(said)"
    }
    return CommandResult(
      TestJSON(
        success: report.success, failure: report.failure,
        results: report.results.map {
          .init(
            platform: $0.platform, handle: $0.pnsHandle, registrationId: $0.registrationID,
            outcome: $0.outcome, status: $0.status, reason: $0.reason)
        }),
      rows + ["\(report.success) of \(report.success + report.failure) devices reached"],
      failure: report.failure == 0
        ? nil
        : CommandFailure("the push services refused \(report.failure) of the test's pushes"))
  }
}

/// An option for the payload of each push service.
struct PayloadOptions: ParameterGroup {
  private let options = PushPlatform.phones.map { platform in
    (
      platform,
      Option<String?>(
        platform.payloadOption, "FILE",
        "a payload for \(platform.traits.phone?.payload ?? platform.word): a file, -, or the text itself"
      )
    )
  }

  var parameters: [any Parameter] { options.map(\.1) }

  var given: [(platform: PushPlatform, value: String)] {
    options.compactMap { platform, option in option.wrappedValue.map { (platform, $0) } }
  }
}

/// The recipients and the time of `belfry send`.
struct SendDestination: ParameterGroup {
  @Option(
    "--tags", "EXPR", "to the devices that this tag or tag expression matches", .tagExpression)
  var expression: TagExpression?
  @Flag("--broadcast", "to every device of the hub") var isBroadcast
  @Option("--handle", "HANDLE", "to one device by its push handle, registered or not")
  var handle: String?
  @Option(
    "--handles", "FILE",
    "to up to 1000 devices, 10 000 of Belfry: a file or - with a handle in each line, or a JSON array"
  )
  var handlesFile: String?
  @Option(
    "--at", "TIME",
    "later: 2030-01-05T10:00:00Z (UTC without Z), or from now: +90s, +10m, +2h, +3d", .instant)
  var time: Date?
  @Flag("--yes", "with --broadcast: do not ask, as a terminal is asked") var isConfirmed
  @Flag("--test", "to at most ten of the devices, and wait for what the push services say")
  var isTest
  @Option("--key", "KEY", "of your own for this send: with the same again nothing is sent twice")
  var key: String?

  enum Target: Sendable {
    /// An audience; `nil` for every device of the hub.
    case audience(TagExpression?)
    /// Devices by their handles; several make a batch.
    case devices([PushChannel])
  }

  /// - Parameters:
  ///   - platform: The platform of the payload; `nil` for template properties.
  ///   - waits: Whether `--wait` was given.
  func checked(platform: PushPlatform?, waits: Bool) throws -> Checked {
    let target = try target(platform)
    if let time, time <= Date() {
      throw UsageError("--at: \(WireDate.seconds(time)) has passed; leave --at out to send now")
    }
    if case .devices = target, time != nil || isTest {
      throw UsageError("--at and --test go with --tags or --broadcast, not with handles")
    }
    if isTest, time != nil || key != nil || waits {
      throw UsageError(
        "--test sends at once and waits by itself; leave --at, --key and --wait out")
    }
    return Checked(target: target, time: time, isTest: isTest, key: key)
  }

  private func target(_ platform: PushPlatform?) throws -> Target {
    try UsageError.check(exclusive: $expression, $isBroadcast, $handle, $handlesFile)
    if let expression { return .audience(expression) }
    if isBroadcast { return .audience(nil) }
    if let handle {
      return .devices([try TextInput.channel(handle, of: "--handle", platform)])
    }
    guard let handlesFile else {
      throw UsageError(
        "name the recipients: --tags EXPR, --handle HANDLE, or --broadcast for every device")
    }
    let handles = try Self.handles(TextInput.read(handlesFile))
    // The hub checks the maximum number.
    guard !handles.isEmpty else { throw UsageError("--handles: the file has no handle") }
    if platform == .browser {
      throw UsageError("--handles has no subscriptions; send to one with --handle")
    }
    return .devices(handles.map { .handle($0) })
  }

  private static func handles(_ data: Data) throws -> [String] {
    if let array = try? JSONDecoder().decode([String].self, from: data) { return array }
    return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  struct Checked: Sendable {
    let target: Target
    let time: Date?
    let isTest: Bool
    let key: String?

    /// Sends the notification; not used by tests.
    func send(
      _ notification: PushNotification, through client: NotificationHubClient
    ) async throws -> SendReceipt {
      switch target {
      case .devices(let devices) where devices.count == 1:
        try await client.sendDirect(notification, to: devices[0], idempotencyKey: key)
      case .devices(let devices):
        try await client.sendDirect(notification, to: devices, idempotencyKey: key)
      case .audience(let audience):
        if let time {
          try await client.schedule(notification, at: time, to: audience, idempotencyKey: key)
        } else if let audience {
          try await client.send(notification, to: audience, idempotencyKey: key)
        } else {
          try await client.broadcast(notification, idempotencyKey: key)
        }
      }
    }

    /// The request's headers besides the notification's, its path below the hub, and its flag.
    ///
    /// - Returns: `nil` for a batch, whose body is not text to copy.
    var request: (fields: [(String, String)], resource: String, flag: String?)? {
      var fields: [(String, String)] = []
      if let key { fields.append((WireName.idempotencyKey, key)) }
      switch target {
      case .devices(let devices):
        guard devices.count == 1, case .handle = devices[0] else { return nil }
        return (fields + [(WireName.deviceHandle, devices[0].handle)], "messages", WireName.direct)
      case .audience(let audience):
        if let audience { fields.append((WireName.tags, audience.description)) }
        guard let time else { return (fields, "messages", isTest ? WireName.test : nil) }
        fields.append((WireName.scheduleTime, WireDate.seconds(time)))
        return (fields, "schedulednotifications", nil)
      }
    }
  }
}

/// The preview of a send, in lines of at most 80 columns.
struct SendPreviewText {
  private let preview: SendPreview
  init(_ preview: SendPreview) { self.preview = preview }

  var lines: [String] {
    var lines = ["it would go to " + preview.devices.counted("device")]
    if preview.examined < preview.devices {
      lines[0] += "; what follows is of the first \(preview.examined)"
    }
    for share in preview.shares {
      let duplicates =
        share.duplicates > 0 ? ", \(share.duplicates) of them duplicates that are left out" : ""
      lines.append("  \(share.platform.rawValue.padded(to: 8)) \(share.devices)\(duplicates)")
    }
    if let seconds = preview.estimatedSeconds, let rate = preview.devicesPerSecond {
      lines.append(
        String(
          format: "in about %.1f s, at the %.0f devices/s of the last large send", seconds, rate))
    }
    for problem in preview.problems {
      lines.append("")
      let mark = problem.isFatal ? "✗ would fail" : "! look at this"
      lines += ExplanationText.wrap(
        "\(mark): \(problem.devices) on \(problem.platform.rawValue): \(problem.text)", first: "",
        rest: "  ")
      if let template = problem.template {
        lines += ExplanationText.wrap("template \(template)", first: "    ", rest: "    ")
      }
    }
    let shown = preview.samples.prefix(6)
    for sample in shown {
      lines.append("")
      let size = sample.rendering.limit.map { " of \($0)" } ?? ""
      lines.append(
        "\(sample.platform.rawValue) \(sample.registrationID ?? "the handle named"), "
          + "\(sample.rendering.bytes)\(size) bytes:")
      lines += ExplanationText.wrap(sample.rendering.payload, first: "  ", rest: "  ")
    }
    if shown.count < preview.samples.count {
      lines += ["", "and \(preview.samples.count - shown.count) more; --json has them all"]
    }
    lines += ["", "nothing was sent"]
    return lines
  }
}
