import Foundation
import HubCore
import NotificationHubs

/// `belfry installation put`
struct InstallationPutCommand: Subcommand {
  static let help = CommandHelp(
    "installation put", "create or replace an installation",
    arguments: [("[FILE]", "the installation as JSON: a file, - for standard input, or the text")],
    options: ClientOptions.options + [
      .value("--id", "ID", "the installation's id (default: the JSON's, or a new UUID)"),
      .value(
        "--platform", "WORD", "apns, fcmv1, wns … (default apns)",
        words: PushPlatform.allCases.map(\.rawValue)),
      .value("--handle", "TEXT", "what the push service calls the device: its token or channel"),
      .value("--tags", "A,B", "tags, separated by commas"),
      .value("--user", "ID", "the signed-in user"),
      .value(
        "--template", "NAME=BODY",
        "a template, such as 'main={\"aps\":{\"alert\":\"$(message)\"}}'",
        repeats: true),
    ], discussion: ClientOptions.note,
    examples: [
      "belfry installation put --handle 62BC… --tags 12345 \\",
      "    --template 'main={\"aps\":{\"alert\":\"$(message)\"}}'",
      "belfry installation put phone.json",
    ])

  let client: ClientOptions
  let words: Words

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    self.words = words
    if words.arguments.isEmpty && words.value("--handle") == nil {
      throw words.fault("give the installation as JSON, or --handle and what else it has")
    }
  }

  func run(in context: CommandContext) async throws {
    let installation = try installation()
    let access = try await client.access(.changes("Listen"), in: context)
    try await access.calling { try await access.client.createOrReplace(installation) }
    if client.json {
      try context.printJSON(["installationId": installation.installationID])
    } else {
      context.print("installation \(installation.installationID) is in hub \(access.hub)")
    }
  }

  private func installation() throws -> Installation {
    if let word = words.arguments.first {
      var installation: Installation
      do {
        let text = try TextInput.read(word)
        _ = try TextInput.json(text, of: "the installation")
        installation = try Installation(jsonData: text)
      } catch let error as WireFormatError {
        throw CommandFailure("\(error)", exitCode: .usage)
      }
      if let id = words.value("--id") { installation.installationID = id }
      return installation
    }
    let word = words.value("--platform") ?? "apns"
    guard let platform = PushPlatform(installationWord: word) else {
      throw words.fault("'\(word)' is no platform")
    }
    var templates: [String: PushTemplate] = [:]
    for text in words.all("--template") {
      let (name, body) = try TextInput.pair(text, of: "--template", in: words)
      templates[name] = PushTemplate(body: body)
    }
    return Installation(
      installationID: words.value("--id") ?? UUID().uuidString.lowercased(),
      userID: words.value("--user"), platform: platform,
      pushChannel: .handle(words.value("--handle") ?? ""),
      tags: TextInput.list(words.value("--tags")).map { Tag(rawValue: $0) }, templates: templates)
  }
}

/// `belfry installation get`
struct InstallationGetCommand: Subcommand {
  static let help = CommandHelp(
    "installation get", "read an installation", arguments: [("ID", "the installation's id")],
    options: ClientOptions.options, discussion: ClientOptions.note,
    examples: ["belfry installation get 3f1c6c0e --data belfry-data"])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Listen"), in: context)
    let installation = try await access.calling { try await access.client.installation(id) }
    if client.json {
      context.print(String(decoding: installation.hubJSON, as: UTF8.self))
    } else {
      for line in ShownInstallation(installation).lines { context.print(line) }
    }
  }
}

/// `belfry installation patch`
struct InstallationPatchCommand: Subcommand {
  static let help = CommandHelp(
    "installation patch", "change parts of an installation: all of them or none",
    arguments: [
      ("ID", "the installation's id"),
      ("[FILE]", "the operations as JSON: a file, - for standard input, or the text"),
    ],
    options: ClientOptions.options + [
      .value("--add-tag", "TAG", "add a tag", repeats: true),
      .value("--remove-tag", "TAG", "remove a tag", repeats: true),
      .value("--user", "ID", "set the signed-in user; an empty text removes it"),
      .value("--handle", "TEXT", "set the push channel"),
      .value("--template", "NAME=BODY", "set a template", repeats: true),
      .value("--remove-template", "NAME", "remove a template", repeats: true),
    ], discussion: ClientOptions.note,
    examples: [
      "belfry installation patch 3f1c6c0e --add-tag news --user ann",
      "belfry installation patch 3f1c6c0e '[{\"op\":\"add\",\"path\":\"/tags\",\"value\":\"news\"}]'",
    ])

  let id: String
  let client: ClientOptions
  let words: Words

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
    self.words = words
  }

  func run(in context: CommandContext) async throws {
    let patch = try patch()
    guard !patch.operations.isEmpty else { throw words.fault("nothing to change was given") }
    let access = try await client.access(.changes("Listen"), in: context)
    try await access.calling { try await access.client.patch(installation: id, patch) }
    if client.json {
      try context.printJSON(["installationId": id])
    } else {
      context.print("changed installation \(id)")
    }
  }

  private func patch() throws -> InstallationPatch {
    var patch = InstallationPatch([])
    if words.arguments.count == 2 {
      do {
        let text = try TextInput.read(words.arguments[1])
        _ = try TextInput.json(text, of: "the list of operations")
        patch = try InstallationPatch(jsonData: text)
      } catch let error as WireFormatError {
        throw CommandFailure("\(error)", exitCode: .usage)
      }
    }
    var operations = patch.operations
    operations += words.all("--add-tag").map { .addTag(Tag(rawValue: $0)) }
    operations += words.all("--remove-tag").map { .removeTag(Tag(rawValue: $0)) }
    if let user = words.value("--user") { operations.append(.setUserID(user.isEmpty ? nil : user)) }
    if let handle = words.value("--handle") { operations.append(.setPushChannel(.handle(handle))) }
    for text in words.all("--template") {
      let (name, body) = try TextInput.pair(text, of: "--template", in: words)
      operations.append(.setTemplate(name, PushTemplate(body: body)))
    }
    operations += words.all("--remove-template").map { .removeTemplate($0) }
    return InstallationPatch(operations)
  }
}

/// `belfry installation delete`
struct InstallationDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "installation delete", "delete an installation and what was derived from it",
    arguments: [("ID", "the installation's id")], options: ClientOptions.options,
    discussion: ClientOptions.note, examples: ["belfry installation delete 3f1c6c0e"])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Listen"), in: context)
    try await access.calling { try await access.client.delete(installation: id) }
    if client.json {
      try context.printJSON(["deleted": id])
    } else {
      context.print("installation \(id) is gone")
    }
  }
}

/// `belfry installation list`
struct InstallationListCommand: Subcommand {
  static let help = CommandHelp(
    "installation list", "list a hub's installations",
    options: ClientOptions.options + [
      .value("--tag", "TAG", "only those with this tag, their own or a template's"),
      .value("--user", "ID", "only those of this user"),
      .value(
        "--platform", "WORD", "only those of this platform: apns, fcmv1, wns …",
        words: PushPlatform.allCases.map(\.rawValue)),
      .value(
        "--expired", "true|false", "only those that nothing reaches any more, or the others",
        words: ["true", "false"]),
      .value("--limit", "N", "at most so many (default 100)"),
      .value("--after", "ID", "start behind this installation id (on a data directory)"),
    ],
    discussion: """
      Reads the data directory, also when no server runs on it; with a connection string it asks a
      server over HTTP, which has to be Belfry: Azure has no such list.

      \(HubTarget.note)
      """,
    examples: [
      "belfry installation list --hub news --limit 20",
      "belfry installation list --user ann --connection 'Endpoint=sb://…' --hub news",
    ])

  let limit: Int
  let after: String?
  let management: ManagementOptions
  let query: InstallationQuery

  init(_ words: Words) throws {
    limit = try words.integer("--limit", in: 1...100_000) ?? 100
    after = words.value("--after")
    management = ManagementOptions(words: words)
    var query = InstallationQuery(
      tag: words.value("--tag").map { Tag(rawValue: $0) }, user: words.value("--user"))
    if let word = words.value("--platform") {
      guard let platform = PushPlatform(installationWord: word) else {
        throw words.fault("'\(word)' is no platform")
      }
      query.platform = platform
    }
    if let word = words.value("--expired") {
      guard let expired = Bool(word) else { throw words.fault("--expired wants true or false") }
      query.expired = expired
    }
    self.query = query
  }

  func run(in context: CommandContext) async throws {
    let client = ClientOptions(words: management.words)
    if case .connection = try client.target(in: context).place {
      guard after == nil else {
        throw management.words.fault("--after is for a data directory, not for a connection string")
      }
      let access = try await client.access(.looks("Manage"), in: context)
      let found = try await access.calling {
        var found: [Installation] = []
        for try await installation in access.client.installations(query) {
          found.append(installation)
          if found.count > limit { break }
        }
        return found
      }
      show(found, of: access.hub, in: context, next: nil)
      return
    }
    try await management.withHub(in: context) { runtime in
      let hub = try await runtime.hub(named: try await management.hubName(runtime, in: context))
      let filter = InstallationFilter(
        tag: query.tag, userID: query.user, platform: query.platform, isExpired: query.expired,
        asOf: Date())
      // One more than asked for tells whether there are more.
      var found: [Installation] = []
      var after = after
      repeat {
        let page = try await runtime.service.installations(
          hub: hub, filter, after: after, limit: limit + 1 - found.count)
        found += page.installations
        after = page.next
      } while after != nil && found.count <= limit
      let next = found.count > limit ? found[limit - 1].installationID : nil
      show(found, of: hub.name, in: context, next: next)
    }
  }

  /// - Parameter next: What `--after` continues with.
  private func show(
    _ found: [Installation], of hub: String, in context: CommandContext, next: String?
  ) {
    let shown = Array(found.prefix(limit))
    if management.json {
      context.print(String(decoding: InstallationList.json(shown), as: UTF8.self))
      return
    }
    for installation in shown { context.print(ShownInstallation(installation).line) }
    var line =
      (shown.count == 1 ? "1 installation" : "\(shown.count) installations") + " in hub \(hub)"
    if found.count > limit {
      line += next.map { "; more: --after \($0)" } ?? "; there are more: raise --limit"
    }
    context.print(line)
  }
}

/// An installation as people read it. The handle is cut: anyone who has it can push to the device.
struct ShownInstallation {
  private let installation: Installation
  init(_ installation: Installation) { self.installation = installation }

  private var handle: String {
    let text = installation.pushChannel.handle
    return text.count > 16 ? "\(text.prefix(8))…\(text.suffix(4))" : text
  }

  private var tags: String { installation.tags.map(\.rawValue).joined(separator: ", ") }

  var line: String {
    [
      installation.installationID.padded(to: 36), installation.platform.rawValue.padded(to: 7),
      handle, installation.pushChannelExpired ? "expired" : "", tags,
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }

  var lines: [String] {
    var rows = [
      ("installation", installation.installationID), ("platform", installation.platform.rawValue),
      ("handle", handle + (installation.pushChannelExpired ? " (expired)" : "")),
    ]
    if let user = installation.userID { rows.append(("user", user)) }
    if !installation.tags.isEmpty { rows.append(("tags", tags)) }
    for (name, value) in installation.pushVariables.sorted(by: { $0.key < $1.key }) {
      rows.append(("variable", "\(name) = \(value)"))
    }
    for (name, template) in installation.templates.sorted(by: { $0.key < $1.key }) {
      rows.append(("template", "\(name): \(template.body)"))
    }
    return rows.map { $0.0.padded(to: 14) + $0.1 }
  }
}
