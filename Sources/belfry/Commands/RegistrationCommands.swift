import Foundation
import NotificationHubs
import Wire

struct RegistrationSetCommand: ResultCommand {
  static let about = CommandHelp(
    "registration set", "create or replace a registration",
    discussion: """
      A registration is one target: native, or one template. Current apps write installations
      instead, which can be both (`belfry installation set`).
      """,
    examples: [
      "belfry registration set --handle 62BC… --tags news",
      "belfry registration set --handle 62BC… --body '{\"aps\":{\"alert\":\"$(message)\"}}' \\",
      "    --name main --priority 10",
      "belfry registration set --id 123-234-1 --etag 2 phone.xml",
    ])

  @Argument("FILE", "the registration as XML: a file, - for standard input, or the text")
  var file: String?
  let client = ClientOptions()
  @Option("--id", "ID", "the registration's id (default: the XML's, or a new one)")
  var id: String?
  @Option("--etag", "N", "only while the registration still has this etag; * for any")
  var etag: String?
  @Option("--platform", "WORD", "apns, fcmv1, wns …", .platform) var platform = PushPlatform.apns
  @Option(
    "--handle", "TEXT",
    "what the push service calls the device; Baidu: USER-CHANNEL, browser: the subscription as JSON"
  )
  var handle: String?
  @Option("--tags", "A,B", "tags, separated by commas", .tags) var tags: [Tag]?
  @Option(repeated: "--variable", "NAME=VALUE", "a value for templates", .pair)
  var variables: [(name: String, value: String)]
  @Option("--body", "TEXT", "makes it a template registration; without it, it is a native one")
  var body: String?
  @Option("--name", "NAME", "the template's name") var name: String?
  @Option(
    repeated: "--header", "NAME=VALUE", "a header of the template, such as X-WNS-Type=wns/toast",
    .pair) var headers: [(name: String, value: String)]
  @Option("--expiry", "DATE", "Apple templates: a date, 0 or an expression") var expiry: String?
  @Option("--priority", "N", "Apple templates: 0 to 255, or an expression") var priority: String?

  func result(in context: CommandContext) async throws -> CommandResult {
    let registration = try registration()
    return try await client.withHub(.changes, in: context) { access in
      let stored =
        if etag != nil {
          try await access.client.update(registration)
        } else if registration.registrationID == nil {
          try await access.client.create(registration)
        } else {
          try await access.client.createOrUpdate(registration)
        }
      return CommandResult(
        ShownRegistration(stored).members,
        [
          "registration \(stored.registrationID ?? "") is in hub \(access.hub), etag "
            + (stored.etag ?? "")
        ])
    }
  }

  private func registration() throws -> Registration {
    do {
      var registration =
        try file.map { try Registration.decode(try TextInput.read($0)) } ?? described()
      if let id { registration.registrationID = id }
      if let etag {
        guard registration.registrationID != nil else {
          throw UsageError("--etag needs --id, the registration to replace")
        }
        registration.etag = etag == "*" ? nil : etag
      }
      return try registration.validated()
    } catch let error as WireFormatError {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  /// The registration that the options describe.
  private func described() throws -> Registration {
    guard let handle else {
      throw UsageError("give the registration as XML, or with --handle and its other options")
    }
    var registration = Registration(
      platform: platform,
      channel: try TextInput.channel(handle, of: "--handle", platform), tags: tags ?? [])
    registration.pushVariables = variables.dictionary
    guard let body else {
      let options: [any Parameter] = [$name, $headers, $expiry, $priority]
      if let option = options.first(where: \.isGiven) {
        throw UsageError("\(option.declaration.name) belongs to a template: give its --body")
      }
      return registration
    }
    var template = PushTemplate(body: body, expiry: expiry)
    template.headers.merge(headers.dictionary) { $1 }
    if let priority { template.applePriority = priority }
    registration.kind = .template(template, name: name)
    return registration
  }
}

struct RegistrationShowCommand: ResultCommand {
  static let about = CommandHelp(
    "registration show", "show a registration",
    examples: ["belfry registration show 123-234-1 --data belfry-data"])

  @Argument("ID", "the registration's id") var id: String
  let client = ClientOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    let shown = ShownRegistration(
      try await client.withHub(in: context) {
        try await $0.client.registration(id)
      })
    return CommandResult(shown.members, shown.lines)
  }
}

struct RegistrationDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "registration delete", "delete a registration",
    discussion: """
      A registration that belongs to an installation is created again by the installation's next
      write; delete the installation instead.
      """,
    examples: ["belfry registration delete 123-234-1"])

  @Argument("ID", "the registration's id") var id: String
  let client = ClientOptions()
  @Option("--etag", "N", "only while the registration still has this etag") var etag: String?

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.changes, in: context) {
      try await $0.client.delete(registration: id, etag: etag)
    }
    return CommandResult(["deleted": id], ["registration \(id) is gone"])
  }
}

struct RegistrationListCommand: ResultCommand {
  static let about = CommandHelp(
    "registration list", "list a hub's registrations, those of installations too",
    examples: [
      "belfry registration list --tag news --limit 20",
      "belfry registration list --handle 62BC… --json",
    ])

  let client = ClientOptions()
  @Option("--tag", "TAG", "those with this tag, such as news or $UserId:{ann}", .tag)
  var tag: Tag?
  @Option("--handle", "TEXT", "those of the device that the push service calls so")
  var handle: String?
  @Option("--limit", "N", "at most so many", .integer(1...1_000_000)) var limit = 100

  private struct List: Encodable {
    let registrations: [ShownRegistration.Members]
    let hasMore: Bool
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    try UsageError.check(exclusive: $tag, $handle)
    return try await client.withHub(in: context) { access in
      let found = try await list(access.client).first(limit + 1)
      let shown = found.prefix(limit).map { ShownRegistration($0) }
      let hasMore = found.count > limit
      return CommandResult(
        List(registrations: shown.map(\.members), hasMore: hasMore),
        shown.map(\.line) + [
          shown.count.counted("registration")
            + " in hub \(access.hub)" + (hasMore ? "; there are more: raise --limit" : "")
        ])
    }
  }

  private func list(_ client: NotificationHubClient) -> PagedList<Registration> {
    let size = min(100, limit + 1)
    if let tag { return client.registrations(tag: tag, pageSize: size) }
    if let handle { return client.registrations(channel: .handle(handle), pageSize: size) }
    return client.registrations(pageSize: size)
  }
}

/// A registration as printed for people.
struct ShownRegistration {
  private let registration: Registration
  init(_ registration: Registration) { self.registration = registration }

  private var id: String { registration.registrationID ?? "" }
  private var kind: String { registration.template == nil ? "native" : "template" }
  private var tags: String { registration.tags.map(\.rawValue).joined(separator: ", ") }
  private var handle: String { registration.channel.shownHandle }

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

  /// All members, for scripts.
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
