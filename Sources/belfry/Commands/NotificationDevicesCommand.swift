import NotificationHubs
import Wire

/// `belfry notification devices`
struct NotificationDevicesCommand: Subcommand {
  static let help = CommandHelp(
    "notification devices", "list what became of a notification device by device",
    arguments: [("ID", "what `belfry send` printed")],
    options: ClientOptions.options + [
      .value(
        "--outcome", "NAME", "only devices with this outcome, such as ExpiredChannel",
        words: NotificationOutcome.allCases.map(\.name)),
      .value(
        "--platform", "NAME", "only devices of this platform, such as apns",
        words: PushPlatform.allCases.map(\.rawValue)),
      .value("--installation", "ID", "only this installation"),
      .value("--limit", "N", "the most devices to list (default 1000)"),
    ],
    discussion: """
      A server keeps failures for a week unless it was told otherwise (keepOutcomes in `belfry
      serve --help`); devices that are not listed then have got the notification.

      Belfry only; needs the Send right. With --json each device is a line of its own.
      \(HubTarget.note)
      """,
    examples: ["belfry notification devices ID --outcome ExpiredChannel --json"])

  let id: String
  let query: DeviceOutcomeQuery
  let limit: Int
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
    limit = try words.integer("--limit", in: 1...1_000_000_000) ?? 1000
    var query = DeviceOutcomeQuery(installation: words.value("--installation"))
    if let word = words.value("--outcome") {
      let known = NotificationOutcome.allCases.map(\.name)
      guard let name = known.first(where: { $0.lowercased() == word.lowercased() }) else {
        throw words.fault(
          "--outcome: '\(word)' is no outcome" + Words.suggestion(word, among: known)
            + "\nthey are " + known.joined(separator: ", "))
      }
      query.outcome = NotificationOutcome(name: name)
    }
    if let word = words.value("--platform") {
      guard let platform = PushPlatform(installationWord: word) else {
        let known = PushPlatform.allCases.map(\.rawValue)
        throw words.fault(
          "--platform: '\(word)' is no platform; they are " + known.joined(separator: ", "))
      }
      query.platform = platform
    }
    self.query = query
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Send"), in: context)
    var count = 0
    try await access.calling {
      for try await device in access.client.devices(of: id, query) {
        if count == limit {
          context.note("there are more; --limit lists them")
          return
        }
        count += 1
        context.print(client.json ? device.jsonText : Self.line(device))
      }
    }
    if !client.json { context.print(count == 1 ? "1 device" : "\(count) devices") }
  }

  private static func line(_ device: DeviceOutcome) -> String {
    var parts = [
      (device.installationID ?? device.registrationID ?? device.handle ?? "?").padded(to: 38),
      (device.platform?.rawValue ?? "?").padded(to: 8), device.outcomeName,
    ]
    var details: [String] = []
    if device.status > 0 { details.append(String(device.status)) }
    if let reason = device.reason { details.append(reason) }
    if device.attempts > 1 { details.append("after \(device.attempts) tries") }
    if !details.isEmpty { parts.append("(" + details.joined(separator: " ") + ")") }
    return parts.joined(separator: " ")
  }
}

extension DeviceOutcome {
  /// One line of JSON, as the hub writes it.
  var jsonText: String {
    var writer = JSONWriter()
    write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
