import NotificationHubs
import Wire

/// `belfry registration list`
struct RegistrationListCommand: Subcommand {
  static let help = CommandHelp(
    "registration list", "list a hub's registrations, those of installations too",
    options: ClientOptions.options + [
      .value("--tag", "TAG", "those with this tag, such as news or $UserId:{ann}"),
      .value("--handle", "TEXT", "those of the device that the push service calls so"),
      .value("--limit", "N", "at most so many (default 100)"),
    ],
    discussion: ClientOptions.note,
    examples: [
      "belfry registration list --tag news --limit 20",
      "belfry registration list --handle 62BC… --json",
    ])

  let tag: String?
  let handle: String?
  let limit: Int
  let client: ClientOptions

  init(_ words: Words) throws {
    tag = words.value("--tag")
    handle = words.value("--handle")
    if tag != nil && handle != nil { throw words.fault("--tag and --handle exclude each other") }
    limit = try words.integer("--limit", in: 1...1_000_000) ?? 100
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Listen"), in: context)
    var found: [ShownRegistration] = []
    try await access.calling {
      for try await registration in list(access.client) {
        found.append(ShownRegistration(registration))
        if found.count > limit { break }
      }
    }
    let shown = found.prefix(limit)
    let hasMore = found.count > limit
    if client.json {
      try context.printJSON(List(registrations: shown.map(\.members), hasMore: hasMore))
      return
    }
    for registration in shown { context.print(registration.line) }
    context.print(
      (shown.count == 1 ? "1 registration" : "\(shown.count) registrations")
        + " in hub \(access.hub)" + (hasMore ? "; there are more: raise --limit" : ""))
  }

  private struct List: Encodable {
    let registrations: [ShownRegistration.Members]
    let hasMore: Bool
  }

  private func list(_ client: NotificationHubClient) -> PagedList<Registration> {
    // One more than asked for tells whether there are more.
    let size = min(100, limit + 1)
    if let tag { return client.registrations(tag: Tag(rawValue: tag), pageSize: size) }
    if let handle { return client.registrations(channel: .handle(handle), pageSize: size) }
    return client.registrations(pageSize: size)
  }
}

/// A registration as people read it. The handle is cut there: anyone who has it can push to the device.
struct ShownRegistration {
  private let registration: Registration
  init(_ registration: Registration) { self.registration = registration }

  private var id: String { registration.registrationID ?? "" }
  private var kind: String { registration.template == nil ? "native" : "template" }
  private var tags: String { registration.tags.map(\.rawValue).joined(separator: ", ") }
  private var handle: String {
    let text = registration.channel.handle
    return text.count > 16 ? "\(text.prefix(8))…\(text.suffix(4))" : text
  }

  /// A row of a list.
  var line: String {
    [
      id.padded(to: 42), registration.platform.rawValue.padded(to: 7), kind.padded(to: 8), handle,
      registration.templateName ?? "", tags,
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }

  var lines: [String] {
    var rows = [
      ("registration", id), ("etag", registration.etag ?? ""),
      ("platform", registration.platform.rawValue), ("kind", kind), ("handle", handle),
    ]
    if !registration.tags.isEmpty { rows.append(("tags", tags)) }
    for (name, value) in registration.pushVariables.sorted(by: { $0.key < $1.key }) {
      rows.append(("variable", "\(name) = \(value)"))
    }
    if let tile = registration.secondaryTileName { rows.append(("tile", tile)) }
    if let template = registration.template {
      if let name = registration.templateName { rows.append(("name", name)) }
      rows.append(("body", template.body))
      for (name, value) in template.headers.sorted(by: { $0.key < $1.key }) {
        rows.append(("header", "\(name): \(value)"))
      }
      if let expiry = template.expiry { rows.append(("expiry", expiry)) }
    }
    if let end = registration.expirationTime { rows.append(("until", WireDate.trimmed(end))) }
    return rows.map { $0.0.padded(to: 14) + $0.1 }
  }

  /// Everything, for scripts.
  struct Members: Encodable {
    let registrationId: String
    let etag: String?
    let platform: String
    let kind: String
    let pushChannel: String
    let p256dh: String?
    let auth: String?
    let tags: [String]
    let pushVariables: [String: String]?
    let secondaryTileName: String?
    let expirationTime: String?
    let templateName: String?
    let body: String?
    let headers: [String: String]?
    let expiry: String?
  }

  var members: Members {
    var keys: (p256dh: String, auth: String)?
    if case .subscription(_, let p256dh, let auth) = registration.channel { keys = (p256dh, auth) }
    let variables = registration.pushVariables
    let headers = registration.template?.headers
    return Members(
      registrationId: id, etag: registration.etag, platform: registration.platform.rawValue,
      kind: kind, pushChannel: registration.channel.handle, p256dh: keys?.p256dh, auth: keys?.auth,
      tags: registration.tags.map(\.rawValue),
      pushVariables: variables.isEmpty ? nil : variables,
      secondaryTileName: registration.secondaryTileName,
      expirationTime: registration.expirationTime.map(WireDate.trimmed),
      templateName: registration.templateName, body: registration.template?.body,
      headers: headers?.isEmpty == false ? headers : nil, expiry: registration.template?.expiry)
  }
}
